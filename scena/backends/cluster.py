"""The processes of a training: from the flags, TF_CONFIG or SLURM."""

import json
import os
from dataclasses import dataclass

from scena.backends.params import TrainerDeviceParams
from scena.backends.selection import DeviceError

SLURM_PORT = 8888
"""The port of the first task on each node of a SLURM job, unless SCENA_PORT is set."""

MOST_TASKS = 10_000
"""More than a node ever has."""


@dataclass(frozen=True)
class Cluster:
    """The processes of a training.

    Attributes:
        addresses: HOST:PORT of each.
        index: the index of this process.
    """

    addresses: tuple[str, ...]
    index: int

    @property
    def chief(self) -> bool:
        """Whether this process is the chief, which decides and writes."""
        return self.index == 0

    def name(self, index: int) -> str:
        """The name of a worker in messages."""
        return f"{'the chief' if index == 0 else f'worker {index}'} ({self.addresses[index]})"

    def __len__(self) -> int:
        return len(self.addresses)


def find_cluster(params: TrainerDeviceParams) -> Cluster:
    """The cluster of `--device.dist_strategy multi_worker`.

    Raises:
        DeviceError: the processes are not set, or cannot be read.
    """
    if params.workers:
        return Cluster(tuple(params.workers), params.worker_index or 0)
    if os.environ.get("TF_CONFIG"):
        return _from_tf_config(os.environ["TF_CONFIG"])
    if "SLURM_PROCID" in os.environ:
        return _from_slurm()
    raise DeviceError(
        "--device.dist_strategy multi_worker needs the addresses of all processes. Start them with "
        "`scena launch --workers 2 train …`, in a SLURM job with srun, with TF_CONFIG, or give each process "
        "--device.workers HOST:PORT HOST:PORT … and its --device.worker_index."
    )


def _from_tf_config(text: str) -> Cluster:
    try:
        config = json.loads(text)
        jobs, task = config["cluster"], config["task"]
        others = sorted(set(jobs) - {"chief", "worker"})
        kind, index = task["type"], int(task["index"])
        chiefs, workers = list(jobs.get("chief", [])), list(jobs.get("worker", []))
        addresses = tuple(str(address) for address in [*chiefs, *workers])
        position = index + (len(chiefs) if kind == "worker" else 0)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DeviceError(
            f"TF_CONFIG cannot be read ({type(error).__name__}: {error}). It should look like "
            '{"cluster": {"worker": ["node1:2222", "node2:2222"]}, "task": {"type": "worker", "index": 0}}. '
            f"Received: {text[:200]}"
        ) from None
    if others or kind not in ("chief", "worker"):
        named = ", ".join(others) or kind
        raise DeviceError(f"TF_CONFIG has a job that Scena does not use: {named}. Use worker only.")
    if not 0 <= position < len(addresses):
        raise DeviceError(
            f"TF_CONFIG names this process {kind} {index}, but has {len(addresses)} addresses: {', '.join(addresses)}."
        )
    return Cluster(addresses, position)


def _from_slurm() -> Cluster:
    import tensorflow as tf

    try:
        port = int(os.environ.get("SCENA_PORT", SLURM_PORT))
        resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
            port_base=port,
            auto_set_gpu=False,
            # not used, but the resolver would call nvidia-smi and require one for each task
            gpus_per_node=MOST_TASKS,
            gpus_per_task=1,
        )
        addresses = tuple(resolver.cluster_spec().as_dict()["worker"])
        _, index = resolver.get_task_info()
    except (KeyError, ValueError, RuntimeError, OSError) as error:
        raise DeviceError(
            f"The SLURM variables of this job cannot be read ({type(error).__name__}: {error}). Start it with srun, or give "
            "--device.workers and --device.worker_index."
        ) from error
    return Cluster(addresses, int(index))
