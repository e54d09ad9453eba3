"""Parameters of LAV (load and validate) and of evaluators."""

from scena.backends.params import DeviceParams
from scena.data.params import DataPipelineParams
from scena.params import Params, param
from scena.prediction.params import KerasRuntimeParams, RuntimeParams


class EvaluatorParams(Params, builds=".evaluator:Evaluator"):
    """Measures computed in Python on post-processed samples. Subclass it with `builds=".evaluator:MyEvaluator"`."""


class LAVParams(Params, builds=".lav:LAV"):
    """Load and validate: how the validation data is run through the model."""

    pipeline: DataPipelineParams = param(inline=True, help="how batches are made")
    device: DeviceParams = param(flat=True, help="what to compute on")
    runtime: RuntimeParams = param(KerasRuntimeParams(), help="what runs the model; evaluator and dump need no Keras")
    metrics: bool | None = param(
        None, help="compute losses and metrics, which load Keras (default: only if Keras runs the model)"
    )
    check_labels: bool = param(True, help="refuse labels that a loss would turn into one-hot vectors of zeros")
    run_eagerly: bool = param(False, flat=True, help="run op by op, so that a debugger stops inside the model")
    print_limit: int = param(10, ge=0, help="how many samples the model may print")
