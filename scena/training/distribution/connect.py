"""Connects the processes of a training on several devices; imports TensorFlow's distribution only then."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from scena.backends.selection import WorkerLostError
from scena.errors import TrainingError, TrainingInterrupted
from scena.params.tree import changed_flags
from scena.training.params import TrainerParams

if TYPE_CHECKING:
    from scena.training.distribution.control_channel import ControlChannel
    from scena.training.distribution.replica_group import ReplicaGroup

logger = logging.getLogger(__name__)


def connect(params: TrainerParams[Any, Any]) -> "ControlChannel | None":
    """Starts what `--device.dist_strategy` asks for; None for a training on one device.

    Raises:
        TrainingError: a flag works on one device only.
        DeviceError: the devices or processes are not available.
    """
    strategy = params.device.dist_strategy
    if strategy == "default":
        if len(params.device.gpu_indices()) > 1:
            logger.warning(
                "--device.gpus %s: the training runs on the first of them. --device.dist_strategy mirror uses all.",
                " ".join(map(str, params.device.gpu_indices())),
            )
        return None
    for flag, field in changed_flags(params, "trainer"):
        if field.one_device:
            raise TrainingError(
                f"{flag} works on one device only, and --device.dist_strategy is {strategy}. Remove one of them."
            )
    from scena.backends.tensorflow.distribution import start_distribution
    from scena.training.distribution.control_channel import ControlChannel

    distribution = start_distribution(params.device)
    params.device.workers, params.device.worker_index = [], None  # addresses belong to this process, not to the run
    return None if distribution is None else ControlChannel(distribution)


@contextmanager
def leading(replica_group: "ReplicaGroup | None") -> Iterator[None]:
    """Lets the workers exit when the block ends, however it ends."""
    status = 1
    try:
        yield
        status = 0
    except TrainingInterrupted as interruption:
        status = interruption.exit_status
        raise
    finally:
        if replica_group is not None:
            with suppress(WorkerLostError):  # it is lost already
                replica_group.end(status)
