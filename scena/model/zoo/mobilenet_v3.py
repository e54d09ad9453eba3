"""MobileNetV3 Small and Large (Howard et al. 2019): inverted residuals with squeeze-and-excitation and hard swish."""

from typing import NamedTuple

from scena.model.zoo.namespace import Layers, Options, Tensor, make_divisible


class Step(NamedTuple):
    """One inverted residual."""

    expansion: float
    channels: int
    kernel: int
    strides: int
    excite: bool
    activation: str


R, H = "relu", "hard_silu"
SMALL = (
    Step(1, 16, 3, 2, True, R),
    Step(72 / 16, 24, 3, 2, False, R),
    Step(88 / 24, 24, 3, 1, False, R),
    Step(4, 40, 5, 2, True, H),
    *[Step(6, 40, 5, 1, True, H)] * 2,
    *[Step(3, 48, 5, 1, True, H)] * 2,
    Step(6, 96, 5, 2, True, H),
    *[Step(6, 96, 5, 1, True, H)] * 2,
)
LARGE = (
    Step(1, 16, 3, 1, False, R),
    Step(4, 24, 3, 2, False, R),
    Step(3, 24, 3, 1, False, R),
    Step(3, 40, 5, 2, True, R),
    *[Step(3, 40, 5, 1, True, R)] * 2,
    Step(6, 80, 3, 2, False, H),
    Step(2.5, 80, 3, 1, False, H),
    *[Step(2.3, 80, 3, 1, False, H)] * 2,
    *[Step(6, 112, 3, 1, True, H)] * 2,
    Step(6, 160, 5, 2, True, H),
    *[Step(6, 160, 5, 1, True, H)] * 2,
)
VARIANTS = {"small": (SMALL, 1024), "large": (LARGE, 1280)}


def mobilenet_v3(nn: Layers, x: Tensor, options: Options, size: str) -> Tensor:
    """The steps of a variant between two convolutions, and a dense layer before the classifier."""
    steps, features = VARIANTS[size]
    x = nn.activate(_normalise(nn, nn.conv(x, _width(nn, 16), 3, 2, bias=False)), H)
    for step in steps:
        x = _step(nn, x, step)
    x = nn.activate(_normalise(nn, nn.conv(x, make_divisible(6 * nn.count(x)), 1, bias=False)), H)
    x = nn.dense(nn.global_pool(x), _width(nn, features), H)
    x = nn.dropout(x, options.dropout_or(0.2))
    return nn.classify(x, options.num_classes)


def _step(nn: Layers, x: Tensor, step: Step) -> Tensor:
    inputs, before = x, nn.count(x)
    channels = _width(nn, step.channels)
    if step.expansion > 1:
        x = nn.conv(x, make_divisible(before * step.expansion), 1, bias=False)
        x = nn.activate(_normalise(nn, x), step.activation)
    if step.strides == 2:
        x = nn.depthwise(nn.pad_for_stride(x, step.kernel), step.kernel, 2, "valid")
    else:
        x = nn.depthwise(x, step.kernel)
    x = nn.activate(_normalise(nn, x), step.activation)
    if step.excite:
        x = _excite(nn, x)
    x = _normalise(nn, nn.conv(x, channels, 1, bias=False))
    return nn.add([inputs, x]) if step.strides == 1 and before == channels else x


def _excite(nn: Layers, x: Tensor) -> Tensor:
    channels = nn.count(x)
    gate = nn.conv(nn.global_pool(x, keepdims=True), make_divisible(channels * 0.25), 1, activation="relu")
    return nn.multiply([x, nn.conv(gate, channels, 1, activation="hard_sigmoid")])


def _width(nn: Layers, channels: int) -> int:
    return make_divisible(channels / nn.setting.factor)


def _normalise(nn: Layers, x: Tensor) -> Tensor:
    return nn.batch_norm(x, epsilon=1e-3, momentum=0.999)
