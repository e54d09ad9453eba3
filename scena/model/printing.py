"""How a predicted sample is printed unless a model has its own way: as the data describes it. No Keras here."""

from collections.abc import Callable
from typing import Any

from scena.data.sample import Sample


class PrintsDescription:
    """Prints what the data says about a sample."""

    def _print_evaluate(self, sample: Sample, data: Any, print_fn: Callable[[str], None] = print) -> None:
        """Prints one predicted sample of a validation. The default prints the data's `describe`."""
        if text := data.describe(sample):
            print_fn(text)

    def _print_prediction(self, sample: Sample, data: Any, print_fn: Callable[[str], None] = print) -> None:
        """Prints one predicted sample of `scena predict`. The default prints the data's `describe_prediction`."""
        print_fn(data.describe_prediction(sample))


def prints_itself(model: PrintsDescription) -> bool:
    """Whether a model has a way of its own."""
    own = type(model)
    return (
        own._print_evaluate is not PrintsDescription._print_evaluate
        or own._print_prediction is not PrintsDescription._print_prediction
    )
