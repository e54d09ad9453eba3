"""Parameters of the heads for training embeddings."""

from scena.params import Params, param


class HeadParams(Params, abstract=True):
    """The head that separates the training classes; used in training only."""


class SoftmaxParams(HeadParams):
    """A dense layer, as for classification."""


class SoftmaxCenterParams(HeadParams):
    """A dense layer, and center loss, which keeps embeddings of one class together."""

    weight: float = param(0.1, ge=0, help="weight of the center loss, added to the cross-entropy")
    alpha: float = param(0.9, ge=0, le=1, help="inertia of a center: c − (1 − alpha) Σ (c − x)")


class ArcFaceParams(HeadParams):
    """A margin on the angle: s · cos(θ + m)."""

    s: float = param(16.0, gt=0, help="factor of the cosine")
    m: float = param(0.3, ge=0, help="margin, in radians")


class CosFaceParams(HeadParams):
    """A margin on the cosine: s · (cos θ − m)."""

    s: float = param(16.0, gt=0, help="factor of the cosine")
    m: float = param(0.2, ge=0, help="margin")


class SphereFaceParams(HeadParams):
    """A factor of the angle: s · cos(m θ)."""

    s: float | None = param(None, gt=0, help="factor of the cosine (default: the length of each embedding)")
    m: float = param(1.35, ge=1, help="factor of the angle")


class CombinedMarginParams(HeadParams):
    """All margins: s · (cos(m1 θ + m2) − m3)."""

    s: float = param(16.0, gt=0, help="factor of the cosine")
    m1: float = param(1.0, ge=1, help="factor of the angle")
    m2: float = param(0.2, ge=0, help="added to the angle, in radians")
    m3: float = param(0.1, ge=0, help="subtracted from the cosine")
