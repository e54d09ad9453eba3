"""A scenario with something to compute and something to exchange: that of benchmarks/tiny.py with more numbers and many more units."""

from benchmarks.tiny import Numbers, NumbersParams, TinyData, TinyDataParams, TinyModelParams
from scena import ScenarioBase, ScenarioBaseParams, TrainValParams, param


class VectorsParams(NumbersParams, builds=":Vectors"):
    """Random vectors."""

    count: int = param(8192, help="number of samples")


class Vectors(Numbers):
    """Vectors, and whether the sum of their first half is the larger one."""

    features = 256
    validated = 8192


class DenseDataParams(TinyDataParams, builds=":DenseData"):
    """A vector in, a class out."""


class DenseData(TinyData):
    """A vector in, a class out."""

    features = Vectors.features


class DenseScenarioParams(ScenarioBaseParams[DenseDataParams, TinyModelParams]):
    """The dense scenario."""


class DenseScenario(ScenarioBase[DenseScenarioParams, TrainValParams[VectorsParams]]):
    """Which half of a vector has the larger sum?"""
