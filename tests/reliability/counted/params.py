"""Parameters of the scenario that counts its samples."""

from scena import DataBaseParams, DataGeneratorParams, ModelBaseParams, ScenarioBaseParams, param


class NumbersParams(DataGeneratorParams, builds=".scenario:Numbers"):
    """Samples with a number each."""

    count: int = param(44, ge=1, help="number of samples")


class CountedDataParams(DataBaseParams, builds=".scenario:CountedData"):
    """A number in, a sine out."""


class CountedModelParams(ModelBaseParams, builds=".scenario:CountedModel"):
    """A network that counts."""

    count: int = param(44, ge=1, help="number of samples")


class CountedScenarioParams(ScenarioBaseParams[CountedDataParams, CountedModelParams]):
    """The scenario that counts its samples."""
