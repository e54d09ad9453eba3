"""Parts that `built_parts` builds."""

from collections.abc import Callable, Iterator
from typing import Any

from scena import LAV, Predictor, Sample, Trainer
from tests.prediction.built_parts import CountingParams, ShoutingParams


class Shouting(Predictor):
    """Prints with exclamation marks."""

    params: ShoutingParams

    def print_prediction(self, sample: Sample, print_fn: Callable[[str], None] = print) -> None:
        super().print_prediction(sample, lambda text: print_fn(text + "!" * self.params.marks))


class Counting(LAV):
    """Counts the runs."""

    params: CountingParams

    def validate(self, predicted: Any) -> Iterator[Sample]:
        yield from super().validate(predicted)
        self.results["runs"] = self.params.start + 1


class Patient(Trainer):
    """A trainer of its own."""
