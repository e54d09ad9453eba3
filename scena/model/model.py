"""`ModelBase`: a researcher's model, with its graph, losses, metrics, the meaning of "best", and how to print a result.

The compiled Keras model that runs a training step is in `training_model.py`.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar

import keras
from keras.src.utils.naming import to_snake_case

from scena.errors import ModelError
from scena.model.graph import GenericGraphBase, RootGraph, Tensors
from scena.model.params import ModelBaseParams
from scena.model.printing import PrintsDescription
from scena.overriding import Overridable, OverridingError

TModelParams = TypeVar("TModelParams", bound=ModelBaseParams)


class ModelBase(PrintsDescription, Overridable, Generic[TModelParams]):
    """Base of every model: name its `graph`, override `loss` and, as needed, the rest.

    Keras losses and metrics with state are created in `__init__` and used in `loss` and `metrics`.

    Args:
        params: the model's parameters, also available as `self.params`.
    """

    __two_names__ = {
        "loss": "_loss",
        "loss_weights": "_loss_weights",
        "sample_weights": "_sample_weights",
        "metrics": "_metric",
        "export_graphs": "_export_graphs",
    }
    __attributes__ = {"graph": "create_graph", "best": "_best_logging_settings"}
    __elsewhere__ = dict.fromkeys(("describe", "input_specs", "target_specs"), "the data class (DataBase)")

    graph: ClassVar[type[GenericGraphBase[Any]] | None] = None
    """The network; override `create_graph` instead if it needs more than the model's parameters."""

    best: tuple[str, str] = ("min", "loss")
    """Which value makes a model the best: ("min" or "max", name of a loss or metric).

    A plain name means the value of the validation (else of LAV, else of the training); `lav_NAME` and `val_NAME` are explicit.
    """

    root_graph_cls: ClassVar[type[RootGraph]] = RootGraph
    """The layer around the graph; replace it to wrap every graph of this model."""

    def __init__(self, params: TModelParams) -> None:
        self.params = params

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "best" in vars(cls):
            _check_best(cls.__name__, vars(cls)["best"])

    def create_graph(self) -> GenericGraphBase[Any]:
        """Creates the network.

        It may take more arguments, which the scenario's `graph_kwargs` provides, for example the size of a codec.
        """
        return self._create_graph()

    def create_root_graph(self, root: Mapping[str, Any] | None = None, /, **static: Any) -> RootGraph:
        """Creates the graph, and the layer around it with the arguments in `root`."""
        own = type(self).create_graph is not ModelBase.create_graph
        graph = self.create_graph(**static) if own else self._create_graph(**static)
        if not isinstance(graph, GenericGraphBase):
            raise ModelError(
                f"{type(self).__name__}.create_graph must return a GraphBase. Received: {type(graph).__name__}."
            )
        if not hasattr(graph, "params"):
            raise ModelError(f"{type(graph).__name__}.__init__ must call super().__init__(params, **kwargs) first.")
        return self.root_graph_cls(graph, name="root", **(root or {}))

    def _create_graph(self, **static: Any) -> GenericGraphBase[Any]:
        graph = type(self).graph
        if graph is None:
            raise ModelError(
                f"{type(self).__name__} must name its network (graph = MyGraph), or implement create_graph(self)."
            )
        if not (isinstance(graph, type) and issubclass(graph, GenericGraphBase)):
            raise ModelError(f"{type(self).__name__}.graph must be a subclass of GraphBase. Received: {graph!r}.")
        static.setdefault("name", to_snake_case(graph.__name__))  # the name that Keras would give to the first one
        return graph(self.params, **static)

    def training_model_cls(self) -> type[Any]:
        """The Keras model that runs a step: return a subclass of `TrainingModel` with a `train_step` or `test_step` of its own.

        Its `train_step` gets `({"inputs": …, "targets": …},)`, has the network as `self(x, training=True)` and the losses as
        `self.compute_loss(x=x, y_pred=outputs)`, applies gradients with `self.optimizer`, and returns named values such as
        `self.results()`.
        """
        from scena.model.training_model import TrainingModel

        return TrainingModel

    def loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        """The named losses: tensors per sample or scalars; `keras.losses` functions and called `keras.losses.Loss` objects both fit."""
        raise NotImplementedError(
            f"{type(self).__name__} must implement loss(self, inputs, targets, outputs) and return a dict of losses."
        )

    def loss_weights(self) -> dict[str, float]:
        """The factor of each loss in the sum that is minimised; those not named count once."""
        return {}

    def sample_weights(self, inputs: Tensors, targets: Tensors) -> Tensors:
        """Weights per sample for losses and metrics, by their name; those not named count each sample once."""
        del inputs, targets
        return {}

    def metrics(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> dict[str, Any] | list[Any]:
        """The named metrics, each a tensor (averaged over the samples) or a called `keras.metrics.Metric` of `__init__`.

        `(metric, y_true, y_pred)` is the same as a called metric. A list of called metrics takes their own names.
        """
        del inputs, targets, outputs
        return {}

    def _best_logging_settings(self) -> tuple[str, str]:
        """tfaip's name for `best`, as a method."""
        return self.best

    def export_graphs(self, inputs: Tensors, outputs: Tensors, targets: Tensors) -> dict[str, keras.Model]:
        """The graphs to export, by name; "default" is the one that predicts."""
        del targets
        return {"default": keras.Model(inputs=inputs, outputs=outputs, name="default")}

    def keras_metrics(self) -> list[keras.metrics.Metric]:
        """The Keras metrics this model created in `__init__`."""
        return [value for value in vars(self).values() if isinstance(value, keras.metrics.Metric)]


def _check_best(kind: str, value: Any) -> None:
    if isinstance(value, property):
        return
    if not (isinstance(value, tuple | list) and len(value) == 2 and value[0] in ("min", "max")):
        raise OverridingError(
            f'{kind}.best must be ("min" or "max", NAME), for example ("max", "acc"). Received: {value!r}.'
        )
