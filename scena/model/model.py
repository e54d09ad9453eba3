"""What a model is to its researcher: a graph, losses, metrics, what "best" means, and how to print a result.

The compiled Keras model that runs a training step is in `training_model.py`.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

import keras

from scena.data.sample import Sample
from scena.model.errors import ModelError
from scena.model.graph import GenericGraphBase, RootGraph, Tensors
from scena.model.params import ModelBaseParams
from scena.overriding import Overridable

TModelParams = TypeVar("TModelParams", bound=ModelBaseParams)


class ModelBase(Overridable, Generic[TModelParams]):
    """Base of every model: override `create_graph`, `_loss` and, as needed, the rest.

    Keras losses and metrics with state are created in `__init__` and used in `_loss` and `_metric`.

    Args:
        params: the model's parameters, also available as `self.params`.
    """

    root_graph_cls: ClassVar[type[RootGraph]] = RootGraph
    """The layer around the graph; replace it to wrap every graph of this model."""

    def __init__(self, params: TModelParams) -> None:
        self.params = params

    def create_graph(self) -> GenericGraphBase[Any]:
        """Creates the network.

        It may take more arguments, which the scenario's `graph_kwargs` then hands over, for example the size of a codec.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement create_graph(self) and return its GraphBase.")

    def create_root_graph(self, root: Mapping[str, Any] | None = None, /, **static: Any) -> RootGraph:
        """Creates the graph, and the layer around it with the arguments in `root`."""
        graph = self.create_graph(**static)
        if not isinstance(graph, GenericGraphBase):
            raise ModelError(
                f"{type(self).__name__}.create_graph must return a GraphBase. Received: {type(graph).__name__}."
            )
        if not hasattr(graph, "params"):
            raise ModelError(f"{type(graph).__name__}.__init__ must call super().__init__(params, **kwargs) first.")
        return self.root_graph_cls(graph, name="root", **(root or {}))

    def training_model_cls(self) -> type[Any]:
        """The Keras model that runs a step: return a subclass of `TrainingModel` with a `train_step` or `test_step` of its own.

        Its `train_step` gets `({"inputs": …, "targets": …},)`, has the network as `self(x, training=True)` and the losses as
        `self.compute_loss(x=x, y_pred=outputs)`, applies gradients with `self.optimizer`, and returns named values such as
        `self.results()`.
        """
        from scena.model.training_model import TrainingModel

        return TrainingModel

    def _loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        """The named losses: tensors per sample or scalars; `keras.losses` functions and called `keras.losses.Loss` objects both fit."""
        raise NotImplementedError(
            f"{type(self).__name__} must implement _loss(self, inputs, targets, outputs) and return a dict of losses."
        )

    def _loss_weights(self) -> dict[str, float]:
        """The factor of each loss in the sum that is minimised; those not named count once."""
        return {}

    def _sample_weights(self, inputs: Tensors, targets: Tensors) -> Tensors:
        """Weights per sample for losses and metrics, by their name; those not named count each sample once."""
        del inputs, targets
        return {}

    def _metric(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> dict[str, Any] | list[Any]:
        """The named metrics, each a tensor (averaged over the samples) or a called `keras.metrics.Metric` of `__init__`.

        `(metric, y_true, y_pred)` is the same as a called metric. A list of called metrics takes their own names.
        """
        del inputs, targets, outputs
        return {}

    def _best_logging_settings(self) -> tuple[str, str]:
        """Which value makes a model the best: ("min" or "max", name of a loss or metric).

        A plain name means the value of the validation (else of LAV, else of the training); `lav_NAME` or `val_NAME` says which.
        """
        return "min", "loss"

    def _print_evaluate(self, sample: Sample, data: Any, print_fn: Callable[[str], None] = print) -> None:
        """Prints one predicted sample of the validation for a person to read. The default prints nothing."""

    def _print_prediction(self, sample: Sample, data: Any, print_fn: Callable[[str], None] = print) -> None:
        """Prints one predicted sample of `scena predict` for a person to read. The default prints its outputs."""
        del data
        print_fn(", ".join(f"{name}: {value}" for name, value in sample.outputs.items()))

    def _export_graphs(self, inputs: Tensors, outputs: Tensors, targets: Tensors) -> dict[str, keras.Model]:
        """The graphs to export, by name; "default" is the one that predicts."""
        del targets
        return {"default": keras.Model(inputs=inputs, outputs=outputs, name="default")}

    def keras_metrics(self) -> list[keras.metrics.Metric]:
        """The Keras metrics this model created in `__init__`."""
        return [value for value in vars(self).values() if isinstance(value, keras.metrics.Metric)]
