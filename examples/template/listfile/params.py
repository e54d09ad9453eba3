"""What can be set. Keep this file free of numpy, Keras and TensorFlow: `--help` reads it."""

from scena import (
    DataBaseParams,
    DataProcessorParams,
    ModelBaseParams,
    PipelineMode,
    SequentialProcessorPipelineParams,
    param,
)


class LoadSampleParams(DataProcessorParams, builds=".data:LoadSample"):
    """Reads a sample from the file that a list names. [Replace it by your own format.]"""


class JitterParams(DataProcessorParams, builds=".data:Jitter"):
    """Data augmentation: moves the points a little. [Replace or remove it.]"""

    modes = {PipelineMode.TRAINING}
    size: float = param(0.05, ge=0, help="how far, on average")


class TemplateDataParams(DataBaseParams, builds=".data:TemplateData"):
    """What samples look like, and how they are processed."""

    pre_proc = SequentialProcessorPipelineParams(processors=[LoadSampleParams(), JitterParams()])


class TemplateModelParams(ModelBaseParams, builds=".model:TemplateModel"):
    """The network. [Add what you want to change on the command line.]"""

    units: list[int] = param([32, 32], gt=0, help="units of each hidden layer")
