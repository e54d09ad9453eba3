"""Parameters of a prediction, and of the vote of several models."""

from scena.backends.params import DeviceParams
from scena.data.params import DataPipelineParams
from scena.params import Params, param
from scena.prediction.runtimes.params import KerasRuntimeParams, RuntimeParams


class PredictorParams(Params, builds=".predictor:Predictor"):
    """How samples are run through a trained model."""

    pipeline: DataPipelineParams = param(flat=True, help="how batches are made")
    device: DeviceParams = param(flat=True, help="what to compute on")
    runtime: RuntimeParams = param(KerasRuntimeParams(), help="what runs the model")
    run_eagerly: bool = param(False, help="run op by op, so that a debugger stops inside the model")
    include_targets: bool = param(False, help="keep the targets of the samples, where the data has them")


class VoterParams(Params, builds=".voting:Voter"):
    """How the outputs of several models are combined. Subclass it with `builds=".voter:MyVoter"`."""


class ServeParams(Params):
    """Where the service listens, and what it accepts."""

    host: str = param("127.0.0.1", help="the address to listen on; the default is reachable from this machine only")
    port: int = param(8501, ge=0, le=65535, help="the port to listen on (0: a free one)")
    name: str | None = param(None, help="the model's name in addresses (default: that of the scenario)")
    max_batch: int = param(32, ge=1, help="largest number of samples that are predicted together")
    max_delay: float = param(1.0, ge=0, help="milliseconds without a new sample after which a batch begins")
    max_queue: int = param(256, ge=1, help="samples that may be queued; more are refused with status 429")
    max_body: int = param(10_000_000, ge=1, help="largest request in bytes; larger ones are refused with status 413")
    max_pixels: int = param(
        50_000_000, ge=1, help="largest number of pixels of all images of a request; more are refused with status 413"
    )
    body_timeout: float = param(
        10.0, gt=0, help="seconds for the head of a request to arrive, and then for its body; else status 408"
    )
    time_limit: float = param(30.0, gt=0, help="seconds until a response must be ready; else status 504")
    shutdown_time: int = param(10, ge=0, help="seconds for running requests to finish at shutdown")
