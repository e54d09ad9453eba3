"""A scenario with something to compute and something to exchange: the dense layers of benchmarks/tiny.py, many of them."""

import numpy as np

from benchmarks.tiny import TinyModelParams
from scena import (
    ArraySpec,
    DataBase,
    DataBaseParams,
    DataGeneratorParams,
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


class DenseScenarioParams(ScenarioBaseParams[DenseDataParams, TinyModelParams]):
    """The dense scenario."""


class DenseScenario(ScenarioBase[DenseScenarioParams, TrainValParams[VectorsParams]]):
    """Which half of a vector has the larger sum?"""
