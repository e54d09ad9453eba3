"""Parameters of the scenario that is killed."""

from scena import (
    DataBaseParams,
    DataGeneratorParams,
    DataProcessorParams,
    ModelBaseParams,
    ScenarioBaseParams,
    SequentialProcessorPipelineParams,
    param,
)
from scena.data.params import DataProcessorPipelineParams


class WavesParams(DataGeneratorParams, builds=".data:waves"):
    """Noisy waves."""

    count: int = param(48, ge=1, help="number of samples")
    counted: bool = param(True, help="whether the source knows its length")


class JitterParams(DataProcessorParams, builds=".data:Jitter"):
    """Augmentation."""

    strength: float = param(0.1, ge=0, help="how much")
    seconds: float = param(0.0, ge=0, help="how long it takes")


class SurvivorDataParams(DataBaseParams, builds=".data:SurvivorData"):
    """A wave in, a class out."""

    pre_proc: DataProcessorPipelineParams = param(
        SequentialProcessorPipelineParams(processors=[JitterParams()]), help="what is done with a sample"
    )


class SurvivorModelParams(ModelBaseParams, builds=".model:SurvivorModel"):
    """A network with state in many places."""

    units: int = param(6, ge=1, help="units of the hidden layer")


class SurvivorScenarioParams(ScenarioBaseParams[SurvivorDataParams, SurvivorModelParams]):
    """The scenario that is killed."""
