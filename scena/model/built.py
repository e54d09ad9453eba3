"""A scenario's network, built from its data's specs, and its summary: the trainer, LAV and the predictor share it."""

import html
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import keras
import numpy as np

from scena.data.database import DataBase
from scena.errors import ModelError
from scena.model.building import check_kept, full_precision, symbolic, traceable
from scena.model.debugging import explaining_graph
from scena.model.graph import RootGraph, Tensors
from scena.model.model import ModelBase
from scena.model.state.archive import read_layer_file, unpacked_weights
from scena.model.state.layer_state import Layers
from scena.model.training_model import TrainingModel
from scena.overriding import spelled
from scena.storage.run_layout import model_file

ROWS = 8
"""Layers in a summary; those between the first and the last ones are folded into one line."""


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
        return f"<pre>{html.escape(summarize(self.root.graph))}</pre>"

    @property
    def prediction_model(self) -> keras.Model:
        """The functional Keras model that predicts: inputs by name to outputs by name."""
        return self.graphs["default"]

    def training_model(self, extend: Callable[[type[TrainingModel]], Any] | None = None) -> TrainingModel:
        """A model that trains the graph with the scenario's losses and metrics; `extend` may extend its class."""
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
        """A copy of the state that determines predictions, to restore it later."""
        return Snapshot(self)

    def load(self, directory: Path) -> None:
        """Reads weights and the state of layers, and nothing else, from an export.

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
        # no number has more than eight bytes
        size = 8 * sum(math.prod(variable.shape) for variable in self.prediction_model.variables)
        with unpacked_weights(path, size) as weights:
            try:
                self.prediction_model.load_weights(weights)
            except (ValueError, OSError, KeyError, RuntimeError, TypeError, IndexError, EOFError) as error:
                raise ModelError(
                    f"The weights in {path} do not fit the model that its parameters describe: {error}"
                ) from error

    def build_training_graph(self) -> None:
        """Builds layers that only the training graph uses: a file has weights for them too."""
        if not all(layer.built for layer in self.root._flatten_layers()):
            with traceable(self.root):
                self.root(self.inputs, targets=self.targets)


class Snapshot:
    """A copy of the variables of a prediction model and of the state of its layers."""

    def __init__(self, built: BuiltModel) -> None:
        self._built = built
        self._values = [keras.ops.convert_to_numpy(variable.value) for variable in built.prediction_model.variables]
        self._states = built.layers().read()

    def put_back(self) -> None:
        """Restores the copied state."""
        for variable, value in zip(self._built.prediction_model.variables, self._values, strict=True):
            variable.assign(value)
        self._built.layers().set(self._states)


def summarize(graph: keras.layers.Layer, optimizer: keras.optimizers.Optimizer | None = None) -> str:
    """The layers of a built graph with their parameters, and the memory of weights and optimizer."""
    layers = _layers(graph)
    while len(layers) == 1 and _layers(layers[0]):  # a graph around one network: that one's layers say more
        layers = _layers(layers[0])
    if len(layers) > ROWS:
        layers = [layer for layer in layers if layer.weights]
    folded = layers[ROWS // 2 : len(layers) - ROWS // 2 + 1] if len(layers) > ROWS else []
    rows = [("layer", "type", "parameters", "trainable")]
    for layer in layers:
        if layer not in folded:
            inside = len([one for one in _layers(layer, recursive=True) if not _layers(one)])
            name = f"{type(layer).__name__} ({inside} layers)" if inside else type(layer).__name__
            rows.append((layer.name, name, *_counts([layer])))
        elif layer is folded[0]:
            rows.append((f"… {len(folded)} more layers", "", *_counts(folded)))
    rows.append(("total", "", *_counts([graph])))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        f"{name:{widths[0]}}  {kind:{widths[1]}}  {all_weights:>{widths[2]}}  {trainable:>{widths[3]}}"
        for name, kind, all_weights, trainable in rows
    ]
    memory = f"Memory: weights {_size(graph.weights)}"
    if optimizer is not None:
        memory += f", optimizer {_size(optimizer.variables)}"
    return "\n".join([*lines, memory])


def _layers(layer: keras.layers.Layer, recursive: bool = False) -> list[keras.layers.Layer]:
    found: list[Any] = list(layer._flatten_layers(include_self=False, recursive=recursive))
    return [one for one in found if not isinstance(one, keras.layers.InputLayer)]


def _counts(layers: list[keras.layers.Layer]) -> tuple[str, str]:
    every = {id(weight): weight for layer in layers for weight in layer.weights}
    trained = {id(weight): weight for layer in layers for weight in layer.trainable_weights}
    both = (sum(math.prod(weight.shape) for weight in weights.values()) for weights in (every, trained))
    total, trainable = (f"{count:,}" for count in both)
    return total, trainable


def _size(variables: Iterable[Any]) -> str:
    names = [(each.shape, keras.backend.standardize_dtype(each.dtype)) for each in variables]
    size = float(
        sum(math.prod(shape) * (2 if name == "bfloat16" else np.dtype(name).itemsize) for shape, name in names)
    )
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"
