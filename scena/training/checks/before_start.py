"""Checks that need no TensorFlow, which takes seconds to load."""

import contextlib
import json
import logging
from pathlib import Path
from typing import Any

from scena.backends.selection import check_present
from scena.data.params import PipelineMode
from scena.data.sources.params import try_source
from scena.errors import CheckpointError, TrainingError
from scena.storage.code_fingerprints import CodeChange, Fingerprints, changed_code, stored_fingerprints
from scena.storage.run_layout import STATE_FILE, run_paths
from scena.training.checkpoint.store import CheckpointStore
from scena.training.directory import refuse_used_directory
from scena.training.optimizers.params import Lookahead, no_momentum
from scena.training.params import TrainerParams, WarmStartParams
from scena.training.schedules.params import OneCycle
from scena.training.trackers.params import services_of

logger = logging.getLogger(__name__)


def check_before_start(params: TrainerParams[Any, Any], *, fresh: bool) -> None:
    """Raises errors that would otherwise appear at the start of the training; a fresh run is one in a new directory."""
    check_present(params.device)
    for form in params.export_formats:
        form.check_ready()
    optimizer, rate = params.optimizer, params.learning_rate
    inner = optimizer.inner if isinstance(optimizer, Lookahead) else optimizer
    if isinstance(rate, OneCycle) and rate.cycle_momentum and getattr(inner, "cycled", None) is None:
        raise TrainingError(no_momentum(inner, "--learning_rate OneCycle"))
    for service in services_of(params.tracker).values():
        service.check_ready()
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


def check_code(directory: Path, params: TrainerParams[Any, Any], start: int | str, module: str) -> None:
    """Refuses changed code on `resume --strict`, if the checkpoint is known already.

    Args:
        start: "latest", or the step of a checkpoint; "best" is looked up when the run is read.
        module: the module of the scenario.

    Raises:
        CheckpointError: the code has changed.
    """
    store = CheckpointStore(run_paths(directory, params).checkpoint)
    step = max(store.steps(), default=None) if start == "latest" else start
    if step not in store.steps():
        return
    path = store.path(int(step))
    with contextlib.suppress(OSError, ValueError, RecursionError):  # the training itself reports a damaged checkpoint
        stored = json.loads((path / STATE_FILE).read_bytes())
        compare_code(stored_fingerprints(stored.get("code")), module, path, strict=True)


def compare_code(before: Fingerprints | None, module: str, checkpoint: Path, *, strict: bool) -> list[CodeChange]:
    """Compares the code of a checkpoint with the current code: warns of changes, or raises if `strict`."""
    if before is None:
        if strict:
            raise CheckpointError(f"{checkpoint} does not record its code, which --strict needs for the comparison.")
        logger.info("%s does not record its code, so code changes go unnoticed.", checkpoint)
        return []
    changes = changed_code(before, module)
    if strict and changes:
        raise CheckpointError(
            f"The code has changed since {checkpoint} was written: {'; '.join(map(str, changes))}. "
            "Check out the code of that time, or remove --strict."
        )
    for change in changes:
        logger.warning("The code has changed since %s was written, so the run is not exact: %s", checkpoint, change)
    return changes


def _check_weights(path: Path | None) -> None:
    if path is not None and not path.exists():
        raise TrainingError(
            f"--warmstart.model {path}: it does not exist. "
            "Give an export, the directory of a run, a checkpoint (OUTPUT_DIR/checkpoint/STEP) or a .safetensors file."
        )
