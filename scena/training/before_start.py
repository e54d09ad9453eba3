"""What can be wrong with a training and is found without TensorFlow, which takes seconds to load."""

from pathlib import Path
from typing import Any

from scena.data.modes import PipelineMode
from scena.data.opening import try_source
from scena.devices.present import check_present
from scena.training.directory import refuse_used_directory
from scena.training.errors import TrainingError
from scena.training.optimizers.params import Lookahead, no_momentum
from scena.training.params import TrainerParams
from scena.training.schedules.params import OneCycle
from scena.training.warmstart.params import WarmStartParams


def check_before_start(params: TrainerParams[Any, Any], *, fresh: bool) -> None:
    """Raises the errors that the training would end with at its start.

    Args:
        params: all parameters.
        fresh: the training starts anew, in a directory of its own and perhaps from given weights.
    """
    check_present(params.device)
    optimizer, rate = params.optimizer, params.learning_rate
    inner = optimizer.inner if isinstance(optimizer, Lookahead) else optimizer
    if isinstance(rate, OneCycle) and rate.cycle_momentum and getattr(inner, "cycled", None) is None:
        raise TrainingError(no_momentum(inner, "--learning_rate OneCycle"))
    if fresh and params.output_dir is not None:
        refuse_used_directory(params.output_dir)
    if fresh and type(params.warmstart) is WarmStartParams:
        _check_weights(params.warmstart.model)
    try_source(params.gen.train_gen(), PipelineMode.TRAINING)
    if params.val_every_n:
        try_source(params.gen.val_gen(), PipelineMode.EVALUATION)
    if params.lav_every_n:
        for source in params.gen.lav_gen().values():
            try_source(source, PipelineMode.EVALUATION)


def _check_weights(path: Path | None) -> None:
    if path is not None and not path.exists():
        raise TrainingError(
            f"--warmstart.model {path}: there is nothing there. "
            "Give an export, the directory of a run, a checkpoint (OUTPUT_DIR/checkpoint/STEP) or a .safetensors file."
        )
