"""Responses: outputs as JSON, and an error in place of a sample that failed."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from scena.data.sample import Sample
from scena.errors import DataError, SampleError
from scena.prediction.answer_files import plain


class RefusedError(Exception):
    """A request that is answered with an error: (status, message)."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def refusal(error: Exception) -> RefusedError:
    """The status and the message for an error of a sample."""
    if isinstance(error, DataError):
        return RefusedError(422, error.reason if isinstance(error, SampleError) else str(error))
    if isinstance(error, ValueError):
        return RefusedError(400, str(error))
    return RefusedError(500, f"The prediction failed: {type(error).__name__}: {error}")


def answer_of(outcomes: Sequence[Sample | RefusedError], columns: bool) -> dict[str, Any]:
    """The body of a response, in the format of TensorFlow Serving: a single output has no name.

    Raises RefusedError if all samples failed, or one of a response in columns, which cannot hold an error.
    """
    outcomes = [_refused_if_nan(outcome) for outcome in outcomes]
    errors = [(index, outcome) for index, outcome in enumerate(outcomes) if isinstance(outcome, RefusedError)]
    if errors and (columns or len(errors) == len(outcomes)):
        index, error = errors[0]
        raise RefusedError(error.status, f"Sample {index}: {error}" if len(outcomes) > 1 else str(error))
    outputs: list[Any] = [
        outcome if isinstance(outcome, RefusedError) else plain(outcome.outputs) for outcome in outcomes
    ]
    if columns:
        keys = list(outputs[0]) if isinstance(outputs[0], dict) else []
        table = {key: [output[key] for output in outputs] for key in keys}
        return {"outputs": next(iter(table.values())) if len(table) == 1 else table or outputs}
    good = [output for output in outputs if not isinstance(output, RefusedError)]
    single = all(isinstance(output, dict) and len(output) == 1 for output in good)
    return {
        "predictions": [
            {"error": str(output)}
            if isinstance(output, RefusedError)
            else next(iter(output.values()))
            if single
            else output
            for output in outputs
        ]
    }


def _refused_if_nan(outcome: Sample | RefusedError) -> Sample | RefusedError:
    """NaN has no JSON, and the class of a NaN would look like any other."""
    if isinstance(outcome, RefusedError):
        return outcome
    values = outcome.outputs.values() if isinstance(outcome.outputs, dict) else [outcome.outputs]
    if any(
        isinstance(value, np.ndarray | np.floating) and value.dtype.kind == "f" and np.isnan(value).any()
        for value in values
    ):
        return RefusedError(422, "The model predicts NaN: does it handle missing values (null)?")
    return outcome
