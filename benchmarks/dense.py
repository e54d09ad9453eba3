"""A scenario with something to compute and something to exchange: dense layers of 2.4 million weights."""

from typing import Any

import keras
import numpy as np
from keras import layers, ops

from scena import (
    ArraySpec,
    DataBase,
    DataBaseParams,
    DataGeneratorParams,
    GraphBase,
    ModelBase,
    ModelBaseParams,
    PipelineMode,
    RandomAccessGenerator,
    Sample,
    ScenarioBase,
    ScenarioBaseParams,
    TrainValParams,
    param,
)

FEATURES = 256


class VectorsParams(DataGeneratorParams, builds=":Vectors"):
    """Random vectors."""

    count: int = param(8192, help="number of samples")


class Vectors(RandomAccessGenerator[VectorsParams]):
    """Vectors, and whether the sum of their first half is the larger one."""

    def __init__(self, params: VectorsParams, mode: PipelineMode) -> None:
        super().__init__(params, mode)
        self.vectors = np.random.default_rng(1).normal(size=(params.count, FEATURES)).astype("float32")
        half = FEATURES // 2
        self.larger = (self.vectors[:, :half].sum(1) > self.vectors[:, half:].sum(1)).astype("int32")

    def __len__(self) -> int:
        return len(self.vectors)

    def __getitem__(self, index: int) -> Sample:
        return Sample(inputs={"x": self.vectors[index]}, targets={"y": self.larger[index]})


class DenseDataParams(DataBaseParams, builds=":DenseData"):
    """A vector in, a class out."""


class DenseData(DataBase[DenseDataParams]):
    """A vector in, a class out."""

    def _input_layer_specs(self) -> dict[str, ArraySpec]:
        return {"x": ArraySpec((FEATURES,), "float32")}

    def _target_layer_specs(self) -> dict[str, ArraySpec]:
        return {"y": ArraySpec((), "int32")}


class DenseModelParams(ModelBaseParams, builds=":DenseModel"):
    """Dense layers."""

    units: list[int] = param([1024, 1024, 1024], help="units of the hidden layers")


class DenseGraph(GraphBase[DenseModelParams]):
    """Dense layers."""

    def __init__(self, params: DenseModelParams, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        self.hidden = [layers.Dense(units, activation="relu") for units in params.units]
        self.logits = layers.Dense(2)

    def build_graph(self, inputs: dict[str, Any], training: bool | None = None) -> dict[str, Any]:
        x = inputs["x"]
        for layer in self.hidden:
            x = layer(x)
        logits = self.logits(x)
        return {"logits": logits, "pred": ops.softmax(logits)}


class DenseModel(ModelBase[DenseModelParams]):
    """Dense layers."""

    def create_graph(self) -> DenseGraph:
        return DenseGraph(self.params)

    def _loss(self, inputs: Any, targets: Any, outputs: Any) -> dict[str, Any]:
        return {"loss": keras.losses.sparse_categorical_crossentropy(targets["y"], outputs["logits"], from_logits=True)}

    def _metric(self, inputs: Any, targets: Any, outputs: Any) -> dict[str, Any]:
        return {"acc": keras.metrics.sparse_categorical_accuracy(targets["y"], outputs["pred"])}

    def _best_logging_settings(self) -> tuple[str, str]:
        return "max", "acc"


class DenseScenarioParams(ScenarioBaseParams[DenseDataParams, DenseModelParams]):
    """The dense scenario."""


class DenseScenario(ScenarioBase[DenseScenarioParams, TrainValParams[VectorsParams]]):
    """Which half of a vector has the larger sum?"""
