"""How LAV runs a model and measures its losses and metrics: in Keras, both in one compiled step; elsewhere, on the outputs of a runtime."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, Self

from scena.data.sample import Arrays, Batch

if TYPE_CHECKING:
    from scena.backends.base import PredictionEngine
    from scena.model.built import BuiltModel
    from scena.model.measures.given_outputs import GivenOutputs


class Measuring(Protocol):
    """Predicts batches, and counts losses and metrics."""

    def predict(self, batch: Batch) -> Arrays:
        """The outputs of one batch, which is counted."""

    def label_counts(self, batch: Batch, outputs: Arrays) -> dict[str, int]:
        """The number of classes of each target that a loss turns into one-hot vectors; found with the first batch."""

    def reset(self) -> None:
        """Starts a validation."""

    def results(self) -> dict[str, Any]:
        """Losses and metrics of the batches since then."""

    def no_means(self) -> set[str]:
        """Metrics that are no means over samples, such as AUC."""

    def retrace(self) -> None:
        """Compiles again, because a layer has replaced tensors."""


class OutputsOnly:
    """Predicts without losses and metrics, and without targets."""

    def __init__(self, engine: "PredictionEngine") -> None:
        self._engine = engine

    @classmethod
    def in_keras(cls, built: "BuiltModel", *, eager: bool) -> Self:
        """Predicts in Keras."""
        from scena.backends.base import backend

        specs = built.data.input_layer_specs()
        return cls(backend().create_prediction_engine(built.prediction_model, specs, eager=eager))

    def predict(self, batch: Batch) -> Arrays:
        return self._engine.predict(batch.inputs)

    def label_counts(self, batch: Batch, outputs: Arrays) -> dict[str, int]:
        return {}

    def reset(self) -> None:
        pass

    def results(self) -> dict[str, Any]:
        return {}

    def no_means(self) -> set[str]:
        return set()

    def retrace(self) -> None:
        pass


class MeasuredOutputs(OutputsOnly):
    """Predicts in a runtime, and computes losses and metrics of its outputs in Keras.

    Args:
        engine: the runtime.
        network: builds the model in Keras.
    """

    def __init__(self, engine: "PredictionEngine", network: "Callable[[], BuiltModel]") -> None:
        super().__init__(engine)
        self._network = network
        self._label_counts: dict[str, int] | None = None

    @cached_property
    def _measures(self) -> "GivenOutputs":
        from scena.model.measures.given_outputs import GivenOutputs

        built = self._network()
        return GivenOutputs(built.model, built, penalties=True)

    def predict(self, batch: Batch) -> Arrays:
        outputs = super().predict(batch)
        self._measures.count(batch.inputs, batch.targets, outputs)
        return outputs

    def label_counts(self, batch: Batch, outputs: Arrays) -> dict[str, int]:
        if self._label_counts is None:
            self._label_counts = self._measures.label_counts(batch.inputs, batch.targets, outputs)
        return self._label_counts

    def reset(self) -> None:
        self._measures.reset()

    def results(self) -> dict[str, Any]:
        return self._measures.results()

    def no_means(self) -> set[str]:
        return self._measures.no_means()


class MeasuredSteps:
    """Predicts and measures in one step of Keras.

    Args:
        built: the model in Keras.
        eager: run op by op.
    """

    def __init__(self, built: "BuiltModel", *, eager: bool) -> None:
        from scena.backends.base import backend

        self.model = built.validation_model()
        data = built.data
        self._engine = backend().create_engine(
            self.model, data.input_layer_specs(), data.target_layer_specs(), eager=eager
        )
        self._label_counts: dict[str, int] | None = None

    def predict(self, batch: Batch) -> Arrays:
        return self._engine.evaluate(batch.inputs, batch.targets)

    def label_counts(self, batch: Batch, outputs: Arrays) -> dict[str, int]:
        """The number of classes of each target that a loss turns into one-hot vectors; found with the first batch."""
        from scena.model.measures.traced_checks import label_counts_with

        if self._label_counts is None:
            self._label_counts = label_counts_with(self.model.measures, batch.inputs, batch.targets, outputs)
        return self._label_counts

    def reset(self) -> None:
        self.model.reset_metrics()

    def results(self) -> dict[str, Any]:
        """Losses and metrics, and what metrics measure beside numbers."""
        measured: dict[str, Any] = {name: float(value) for name, value in self.model.results().items()}
        return measured | self.model.data_results()

    def no_means(self) -> set[str]:
        return self.model.no_means()

    def retrace(self) -> None:
        self._engine.retrace()
