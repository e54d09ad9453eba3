"""The network itself, as a Keras layer: `GraphBase` for most models, `GenericGraphBase` where training and prediction differ.

Losses and metrics are the model's (`model.py`), not the graph's.
"""

from abc import abstractmethod
from typing import Any, Generic, TypeVar

import keras

from scena.model.announced import import_announced
from scena.overriding import refuse_misspelt
from scena.params import Params, build, to_raw

TParams = TypeVar("TParams", bound=Params)
Tensors = dict[str, Any]
"""Named tensors: inputs, targets or outputs."""


def _register(cls: type[keras.layers.Layer]) -> None:
    """Lets `keras.saving.load_model` find a class by its name and module, once that module is imported."""
    keras.saving.register_keras_serializable(package=cls.__module__)(cls)


class GenericGraphBase(keras.layers.Layer, Generic[TParams]):
    """A network whose training and prediction may differ, for example teacher forcing and decoding.

    Create the layers in `__init__`, connect them in `build_train_graph` and `build_prediction_graph`; both return a dict of outputs.

    Args:
        params: the parameters of the graph, also available as `self.params`.
    """

    def __init__(self, params: TParams, **kwargs: Any) -> None:
        kwargs.setdefault("autocast", False)  # inputs keep their precision until a layer computes with them
        super().__init__(**kwargs)
        self.params = params

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        refuse_misspelt(cls)
        _register(cls)

    @abstractmethod
    def build_train_graph(self, inputs: Tensors, targets: Tensors, training: bool | None = None) -> Tensors:
        """Connects the layers for training and for validation during training.

        Args:
            inputs: the named input tensors, batched.
            targets: the named target tensors, batched (for teacher forcing).
            training: True in a training step, False in validation.
        """

    @abstractmethod
    def build_prediction_graph(self, inputs: Tensors) -> Tensors:
        """Connects the layers for prediction, LAV and export."""

    def pre_proc_targets(self, inputs: Tensors, targets: Tensors) -> Tensors:
        """Changes the targets before losses and metrics see them. The default leaves them as they are."""
        del inputs
        return targets

    def call(self, inputs: Tensors, targets: Tensors | None = None, training: bool | None = None) -> Tensors:
        """Runs the training graph if targets are given, else the prediction graph."""
        if targets is None:
            return self.build_prediction_graph(inputs)
        return self.build_train_graph(inputs, targets, training)

    def get_config(self) -> dict[str, Any]:
        """The layer's configuration with its parameters as plain data, so that a Keras archive needs no pickle."""
        return {**super().get_config(), "params": to_raw(self.params)}

    def build(self, inputs_shape: Any = None, targets_shape: Any = None) -> None:
        """Does nothing: the layers inside are built when they are called, some of them in training only."""

    def build_from_config(self, config: dict[str, Any]) -> None:
        """Does nothing: a graph is built by being called, which happens when the model around it is read back."""

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "GenericGraphBase[TParams]":
        """Rebuilds the layer; its parameter class is looked up among the imported ones."""
        config = dict(config)
        params: Any = build(config.pop("params"), Params)
        return cls(params, **config)


class GraphBase(GenericGraphBase[TParams]):
    """A network that is the same in training and prediction: implement `build_graph`."""

    @abstractmethod
    def build_graph(self, inputs: Tensors, training: bool | None = None) -> Tensors:
        """Connects the layers and returns the named outputs.

        Args:
            inputs: the named input tensors, batched.
            training: True in a training step; hand it to layers that differ (Keras does so by itself for its own).
        """

    def build_train_graph(self, inputs: Tensors, targets: Tensors, training: bool | None = None) -> Tensors:
        del targets
        return self.build_graph(inputs, training=training)

    def build_prediction_graph(self, inputs: Tensors) -> Tensors:
        return self.build_graph(inputs, training=False)


class RootGraph(keras.layers.Layer):
    """The layer around the whole graph. Override it (`ModelBase.root_graph_cls`) to add something before or after any graph.

    Args:
        graph: the graph of the model.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _register(cls)

    def __init__(self, graph: GenericGraphBase[Any], **kwargs: Any) -> None:
        kwargs.setdefault("autocast", False)
        super().__init__(**kwargs)
        self.graph = graph

    def call(self, inputs: Tensors, targets: Tensors | None = None, training: bool | None = None) -> Tensors:
        outputs: Tensors = self.graph(inputs, targets=targets, training=training)
        return outputs

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "graph": keras.saving.serialize_keras_object(self.graph)}

    def build(self, inputs_shape: Any = None, targets_shape: Any = None) -> None:
        """Does nothing: the layers inside are built when they are called, some of them in training only."""

    def build_from_config(self, config: dict[str, Any]) -> None:
        """Does nothing: a graph is built by being called, which happens when the model around it is read back."""

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "RootGraph":
        import_announced()
        config = dict(config)
        return cls(keras.saving.deserialize_keras_object(config.pop("graph")), **config)


_register(RootGraph)
