"""Parameters of the toy scenario."""

from scena import (
    DataBaseParams,
    DataGeneratorParams,
    EvaluatorParams,
    ModelBaseParams,
    Resource,
    ScenarioBaseParams,
    param,
)


class HalvesParams(DataGeneratorParams, builds=".data:Halves"):
    """Random numbers."""

    count: int = param(64, ge=0, help="number of samples")
    bad: str = param("", help="what to do wrong")


class ToyDataParams(DataBaseParams, builds=".data:ToyData"):
    """Eight numbers in, a class out."""

    names: Resource | None = param(None, help="a file with the names of the classes")


class ToyModelParams(ModelBaseParams, builds=".model:ToyModel"):
    """Two dense layers."""

    units: int = param(4, ge=1, help="units of the hidden layer")
    dropout: float = param(0.1, ge=0, lt=1, help="share of hidden units switched off")
    l2: float = param(0.0, ge=0, help="weight of the L2 regularisation")
    wrong: str = param("", help="which part to get wrong")


class ToyEvaluatorParams(EvaluatorParams):
    """Counts."""


class ToyScenarioParams(ScenarioBaseParams[ToyDataParams, ToyModelParams]):
    """The toy scenario."""
