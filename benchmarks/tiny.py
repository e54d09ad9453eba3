"""A tiny scenario, two dense layers on eight numbers: what is left of a step is what the framework itself costs."""

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


class NumbersParams(DataGeneratorParams, builds=":Numbers"):
    """Random numbers."""

    count: int = param(32_000, help="number of samples")


class Numbers(RandomAccessGenerator[NumbersParams]):
    """Some numbers, and which half of them is larger."""

    features = 8
    validated = 1600

    def __init__(self, params: NumbersParams, mode: PipelineMode) -> None:
        super().__init__(params, mode)
        training = mode == PipelineMode.TRAINING
        rng = np.random.default_rng(1 if training else 2)
        count, half = params.count if training else self.validated, self.features // 2
        self.numbers = rng.normal(size=(count, self.features)).astype("float32")
        self.larger = (self.numbers[:, :half].sum(1) > self.numbers[:, half:].sum(1)).astype("int32")

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: int) -> Sample:
        return Sample(inputs={"x": self.numbers[index]}, targets={"y": self.larger[index]})


class TinyDataParams(DataBaseParams, builds=":TinyData"):
    """Eight numbers in, a class out."""


class TinyData(DataBase[TinyDataParams]):
    """Numbers in, a class out."""

    features = Numbers.features

    def _input_layer_specs(self) -> dict[str, ArraySpec]:
        return {"x": ArraySpec((self.features,), "float32")}

    def _target_layer_specs(self) -> dict[str, ArraySpec]:
        return {"y": ArraySpec((), "int32")}


class TinyModelParams(ModelBaseParams, builds=":TinyModel"):
    """Dense layers."""

    units: list[int] = param([16], help="units of the hidden layers")


class TinyGraph(GraphBase[TinyModelParams]):
    """Two dense layers."""

    def __init__(self, params: TinyModelParams, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        self.hidden = [layers.Dense(units, activation="relu") for units in params.units]
        self.logits = layers.Dense(2)

    def build_graph(self, inputs: dict[str, Any], training: bool | None = None) -> dict[str, Any]:
        x = inputs["x"]
        for layer in self.hidden:
            x = layer(x)
        logits = self.logits(x)
        return {"logits": logits, "pred": ops.softmax(logits)}


class TinyModel(ModelBase[TinyModelParams]):
    """Two dense layers."""

    def create_graph(self) -> TinyGraph:
        return TinyGraph(self.params)

    def _loss(self, inputs: Any, targets: Any, outputs: Any) -> dict[str, Any]:
        return {"loss": keras.losses.sparse_categorical_crossentropy(targets["y"], outputs["logits"], from_logits=True)}

    def _metric(self, inputs: Any, targets: Any, outputs: Any) -> dict[str, Any]:
        return {"acc": keras.metrics.sparse_categorical_accuracy(targets["y"], outputs["pred"])}

    def _best_logging_settings(self) -> tuple[str, str]:
        return "max", "acc"


class TinyScenarioParams(ScenarioBaseParams[TinyDataParams, TinyModelParams]):
    """The tiny scenario."""


class TinyScenario(ScenarioBase[TinyScenarioParams, TrainValParams[NumbersParams]]):
    """Which half of eight numbers has the larger sum?"""
