"""Layers inside layers are traced once when a model is built, with the variables that Keras would give them."""

import re
from typing import Any

import keras
import numpy as np
from keras import layers

from scena import ArraySpec, DataBase, DataBaseParams, GraphBase, ModelBase, ModelBaseParams
from scena.model.built import BuiltModel


class PointData(DataBase[DataBaseParams]):
    inputs = {"x": ArraySpec((3,), "float32")}


class Inner(layers.Layer):
    """Has no `build`, like most layers that people write out of others."""

    def __init__(self) -> None:
        super().__init__()
        self.dense, self.drop, self.traces = layers.Dense(3), layers.Dropout(0.5), 0

    def call(self, x: Any, training: bool | None = None) -> Any:
        self.traces += 1
        return self.drop(self.dense(x), training=training)


class Outer(layers.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = [Inner(), Inner()]

    def call(self, x: Any) -> Any:
        for block in [*self.blocks, self.blocks[0]]:
            x = block(x)
        return x


class NestedGraph(GraphBase[ModelBaseParams]):
    def __init__(self, params: ModelBaseParams, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        self.outer, self.last = Outer(), layers.Dense(2)

    def build_graph(self, inputs: dict[str, Any], training: bool | None = None) -> dict[str, Any]:
        return {"y": self.last(self.outer(inputs["x"]))}


class NestedModel(ModelBase[ModelBaseParams]):
    def create_graph(self) -> NestedGraph:
        return NestedGraph(self.params)


def built() -> Any:
    keras.utils.set_random_seed(7)
    model = NestedModel(ModelBaseParams())
    return BuiltModel(PointData(DataBaseParams()), model, model.create_root_graph())


def test_a_layer_is_traced_as_often_as_the_graph_calls_it() -> None:
    graph = built().root.graph
    assert [block.traces for block in graph.outer.blocks] == [2, 1]
    assert all(layer.built for layer in graph._flatten_layers())


def test_variables_are_those_that_keras_makes() -> None:
    ours = built().root
    keras.utils.set_random_seed(7)
    theirs = NestedModel(ModelBaseParams()).create_root_graph()
    theirs({"x": keras.Input((3,), name="x")})
    for one, other in zip(ours.variables, theirs.variables, strict=True):
        assert unnumbered(one.path) == unnumbered(other.path) and np.array_equal(one, other)
    pairs = zip(ours._flatten_layers(), theirs._flatten_layers(), strict=True)
    assert all(unnumbered(str(one.path)) == unnumbered(str(other.path)) for one, other in pairs)


def unnumbered(path: str) -> str:
    """Keras numbers the layers of a process."""
    return re.sub(r"_\d+", "", path)
