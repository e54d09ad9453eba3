"""Parameters of a prediction."""

from scena.backends.params import DeviceParams
from scena.data.params import DataPipelineParams
from scena.params import Params, param


class PredictorParams(Params):
    """How samples are run through a trained model."""

    pipeline: DataPipelineParams = param(flat=True, help="how batches are made")
    device: DeviceParams = param(flat=True, help="what to compute on")
    run_eagerly: bool = param(False, help="run op by op, so that a debugger stops inside the model")
    include_targets: bool = param(False, help="keep the targets of the samples, where the data has them")
