"""`Evaluator` and `LAVCallback`: measures and other code in plain Python, on samples after post-processing."""

from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from scena.data.sample import Sample
from scena.evaluation.params import EvaluatorParams
from scena.overriding import Overridable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from scena.evaluation.lav import LAV

TEvaluatorParams = TypeVar("TEvaluatorParams", bound=EvaluatorParams)


class Evaluator(Overridable, Generic[TEvaluatorParams]):
    """Like a Keras metric, but in Python and with whole samples: override `update_state` and `result`.

    It is entered before a validation and left after it; reset what it counts in `__enter__`.

    Args:
        params: the evaluator's parameters, also available as `self.params`.
    """

    def __init__(self, params: TEvaluatorParams) -> None:
        self.params = params

    def __enter__(self) -> Self:
        """Starts a validation: reset the counts here."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends a validation."""

    def update_state(self, sample: Sample) -> None:
        """Counts one predicted sample (un-batched, post-processed)."""

    def result(self) -> dict[str, Any]:
        """The named results: numbers."""
        return {}

    def plots(self) -> "dict[str, Figure]":
        """Figures for `scena lav --report`, by title: `matplotlib.figure.Figure` objects drawn from what was counted."""
        return {}

    def class_names(self) -> list[str]:
        """The names of the classes for a report, in the order of their numbers; empty to show the numbers."""
        return []


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
