"""A scenario's network, built from its data's specs: what the trainer, LAV and the predictor share."""

import html
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras

from scena.data.database import DataBase
from scena.errors import ModelError
from scena.model.building import check_kept, full_precision, symbolic, traceable
from scena.model.debugging import explaining_graph
from scena.model.graph import RootGraph, Tensors
from scena.model.model import ModelBase
from scena.model.state.archive import check_weights_file, read_layer_file
from scena.model.state.layer_state import Layers
from scena.model.summary import summarize
from scena.model.training_model import TrainingModel
from scena.overriding import spelled
from scena.storage.run_layout import model_file


class BuiltModel:
    """Data, model and graph of one scenario, with all variables created.

    Args:
        data: gives the names, shapes and types of inputs and targets.
        model: the scenario's model.
        root: its graph; building it here fixes the order in which variables are made.
    """

    def __init__(self, data: DataBase[Any], model: ModelBase[Any], root: RootGraph) -> None:
        self.data = data
        self.model = model
        self.root = root
        self.inputs = symbolic(data.input_layer_specs())
        self.targets = symbolic(data.target_layer_specs())
        self.outputs = self._outputs()
        self.graphs = model.export_graphs(self.inputs, self.outputs, self.targets)
        if "default" not in self.graphs:
            raise ModelError(
                f"{spelled(type(model), 'export_graphs')} returned {sorted(self.graphs)}; one of them must be called 'default'."
            )

    def _outputs(self) -> Tensors:
        with explaining_graph(type(self.root.graph).__name__), traceable(self.root) as built:
            outputs = self.root(self.inputs)
            check_kept(self.root, built)
        if not isinstance(outputs, dict):
            raise ModelError(
                f"{type(self.root.graph).__name__} must return a dict of named outputs. Received: {type(outputs).__name__}."
            )
        return full_precision(outputs)

    def __repr__(self) -> str:
        graph = type(self.root.graph).__name__
        return (
            f"BuiltModel({graph}, {self.root.count_params():,} parameters, {list(self.inputs)} -> {list(self.outputs)})"
        )

    def _repr_html_(self) -> str:
        """The summary for notebooks."""
        return f"<pre>{html.escape(summarize(self.root.graph))}</pre>"

    @property
    def prediction_model(self) -> keras.Model:
        """The functional Keras model that predicts: inputs by name to outputs by name."""
        return self.graphs["default"]

    def training_model(self, extend: Callable[[type[TrainingModel]], Any] | None = None) -> TrainingModel:
        """A model that trains the graph with the scenario's losses and metrics.

        Args:
            extend: adds something to the class of the model before it is created.
        """
        create: Any = self.model.training_model_cls()
        if not (isinstance(create, type) and issubclass(create, TrainingModel)):
            raise ModelError(
                f"{type(self.model).__name__}.training_model_cls must return a subclass of TrainingModel. Received: {create!r}."
            )
        if extend is not None:
            create = extend(create)
        with traceable(self.root):
            model: TrainingModel = create(self.model, self.root, self.inputs, self.targets, name="training")
        return model

    def validation_model(self) -> TrainingModel:
        """A model that measures losses and metrics on the prediction graph, as LAV does."""
        return TrainingModel(self.model, self.root, self.inputs, self.targets, prediction=True, name="validation")

    def layers(self) -> Layers:
        """All layers of the model, with the state of those that keep more than variables."""
        return Layers(self.root, *self.graphs.values())

    def snapshot(self) -> "Snapshot":
        """A copy of all that the model predicts with, to go back to."""
        return Snapshot(self)

    def load(self, directory: Path) -> None:
        """Reads weights and the state of layers from an export; nothing else in it is looked at.

        Raises:
            ModelError: they do not fit, or a file is damaged.
        """
        states, layers = read_layer_file(directory), self.layers()
        self.build_training_graph()
        try:
            layers.quantize(states)
            self.load_weights(directory / model_file())
            layers.set(states)
        except ModelError as error:
            if str(directory) in str(error):
                raise
            raise ModelError(f"{directory} does not fit the model that its parameters describe: {error}.") from error

    def load_weights(self, path: Path) -> None:
        """Reads the weights, and only them, from a `model.keras`."""
        self.build_training_graph()
        check_weights_file(path, _size(self.prediction_model))
        try:
            self.prediction_model.load_weights(path)
        except (ValueError, OSError, KeyError, RuntimeError, TypeError, IndexError, EOFError) as error:
            raise ModelError(
                f"The weights in {path} do not fit the model that its parameters describe: {error}"
            ) from error

    def build_training_graph(self) -> None:
        """Builds layers that the training graph alone uses: a file has weights for them too."""
        if not all(layer.built for layer in self.root._flatten_layers()):
            with traceable(self.root):
                self.root(self.inputs, targets=self.targets)


class Snapshot:
    """The variables of a prediction model and what its layers keep beside them.

    Args:
        built: the model; its present state is copied.
    """

    def __init__(self, built: BuiltModel) -> None:
        self._built = built
        self._values = [keras.ops.convert_to_numpy(variable.value) for variable in built.prediction_model.variables]
        self._states = built.layers().read()

    def put_back(self) -> None:
        """Makes the model what it was."""
        for variable, value in zip(self._built.prediction_model.variables, self._values, strict=True):
            variable.assign(value)
        self._built.layers().set(self._states)


def _size(model: keras.Model) -> int:
    """The bytes of all variables; none has more than eight bytes for a number."""
    return 8 * sum(math.prod(variable.shape) for variable in model.variables)
