"""What can be set. Keep this file free of numpy, Keras and TensorFlow: `--help` reads it."""

from scena import (
    DataBaseParams,
    DataGeneratorParams,
    DataProcessorParams,
    EvaluatorParams,
    ModelBaseParams,
    PipelineMode,
    ScenarioBaseParams,
    SequentialProcessorPipelineParams,
    param,
)


class TemplateSourceParams(DataGeneratorParams, builds=".data:TemplateSource"):
    """Where samples come from. [Replace the two rings by your own data.]"""

    count: int = param(400, ge=1, help="number of samples")
    spread: float = param(0.08, ge=0, help="how far points lie from their ring; the rings are 0.5 apart")


class JitterParams(DataProcessorParams, builds=".data:Jitter"):
    """Data augmentation: moves the points a little. [Replace or remove it.]"""

    modes = {PipelineMode.TRAINING}
    size: float = param(0.05, ge=0, help="how far, on average")


class TemplateDataParams(DataBaseParams, builds=".data:TemplateData"):
    """What samples look like, and how they are processed."""

    pre_proc = SequentialProcessorPipelineParams(processors=[JitterParams()])


class TemplateModelParams(ModelBaseParams, builds=".model:TemplateModel"):
    """The network. [Add what you want to change on the command line.]"""

    units: list[int] = param([32, 32], gt=0, help="units of each hidden layer")
    dropout: float = param(0.1, ge=0, lt=1, help="share of units to drop in training")


class TemplateEvaluatorParams(EvaluatorParams, builds=".evaluator:TemplateEvaluator"):
    """Measures in Python."""


class TemplateScenarioParams(ScenarioBaseParams[TemplateDataParams, TemplateModelParams]):
    """The scenario's parameters."""

    evaluator: TemplateEvaluatorParams = param(flat=True, help="measures in Python")
