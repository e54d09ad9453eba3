"""The scenario that counts its samples: data, model and the layer that counts."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from scena import (
    ArraySpec,
    DataBase,
    DataGenerator,
    GraphBase,
    ModelBase,
    PipelineMode,
    Sample,
    ScenarioBase,
    TrainValParams,
)

from .params import CountedDataParams, CountedModelParams, CountedScenarioParams, NumbersParams

Tensors = dict[str, Any]


class Numbers(DataGenerator[NumbersParams]):
    def generate(self) -> Iterator[Sample]:
        yield from (self[index] for index in range(len(self)))

    def __len__(self) -> int:
        return self.params.count if self.mode == PipelineMode.TRAINING else 8

    def __getitem__(self, index: int) -> Sample:
        return Sample({"number": np.int32(index)}, {"y": np.float32(np.sin(index))})


class CountedData(DataBase[CountedDataParams]):
    def _input_layer_specs(self) -> dict[str, ArraySpec]:
        return {"number": ArraySpec((), "int32")}

    def _target_layer_specs(self) -> dict[str, Any]:
        return {"y": ArraySpec((), "float32")}


class CountedModel(ModelBase[CountedModelParams]):
    def create_graph(self) -> "CountedGraph":
        return CountedGraph(self.params)

    def _loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        from keras import ops

        return {"loss": ops.square(targets["y"] - outputs["y"])}

    def _best_logging_settings(self) -> tuple[str, str]:
        return "min", "loss"


class CountedGraph(GraphBase[CountedModelParams]):
    def __init__(self, params: CountedModelParams, **kwargs: Any) -> None:
        from keras import layers

        super().__init__(params, **kwargs)
        self.tally = _tally(params.count)
        self.dense = layers.Dense(4, activation="tanh")
        self.last = layers.Dense(1)

    def build_graph(self, inputs: Tensors, training: bool | None = None) -> Tensors:
        x = self.tally(inputs["number"], training=training)
        return {"y": self.last(self.dense(x))[:, 0]}


def _tally(count: int) -> Any:
    """A layer with three variables: how often each sample was used, as which one it was used last, and how many there were."""
    from keras import layers, ops

    class Tally(layers.Layer):
        def build(self, shape: Any) -> None:
            self.times = self.add_weight(
                shape=(count,), dtype="int32", initializer="zeros", trainable=False, name="times"
            )
            self.last = self.add_weight(
                shape=(count,), dtype="int32", initializer="zeros", trainable=False, name="last"
            )
            self.total = self.add_weight(shape=(), dtype="int32", initializer="zeros", trainable=False, name="total")

        def call(self, numbers: Any, training: bool | None = None) -> Any:
            if training:
                size = ops.shape(numbers)[0]
                used = ops.sum(ops.one_hot(numbers, count, dtype="int32"), axis=0)
                self.times.assign_add(used)
                when = self.total + ops.arange(size, dtype="int32")
                self.last.assign(ops.scatter_update(self.last, ops.expand_dims(numbers, -1), when))
                self.total.assign_add(ops.cast(size, "int32"))
            return ops.expand_dims(ops.cast(numbers, "float32") / count, -1)

    return Tally(name="tally")


class CountedScenario(ScenarioBase[CountedScenarioParams, TrainValParams[NumbersParams]]):
    """Counts its samples."""
