"""`LAVCallback`: a user's code that accompanies a LAV, sample by sample."""

from typing import TYPE_CHECKING, Any

from scena.data.sample import Sample

if TYPE_CHECKING:
    from scena.evaluation.lav import LAV


class LAVCallback:
    """Override what you need. A scenario names its callbacks in `lav_callbacks`; `LAV.run` takes more."""

    lav: "LAV"
    """The LAV that calls it; `lav.built` has data and model."""

    def on_lav_begin(self, source: Any) -> None:
        """Called before the first sample of a source."""

    def on_sample_end(self, source: Any, sample: Sample) -> None:
        """Called with each predicted, post-processed sample, after the evaluator has seen it."""

    def on_lav_end(self, source: Any, results: dict[str, Any]) -> None:
        """Called with the results on a source: losses, metrics and those of the evaluator."""
