"""Parameters of the devices a command runs on."""

import re
from typing import Literal

from scena.params import Params, param

Gpu = int | Literal["auto", "none"]
AUTO: list[Gpu] = ["auto"]


class ComputeParams(Params, abstract=True):
    """The devices to compute on. Without GPUs the CPU is used."""

    gpus: list[Gpu] | None = param(
        AUTO,
        ge=0,
        help="auto: the first visible GPU, if there is one (all of them if several devices share each batch); none: the CPU; "
        "or the indices of the GPUs to use",
        common=True,
        known_as=["devices", "num_gpus", "accelerator"],
    )
    memory_limit: str | None = param(
        None,
        help="memory limit of each GPU, such as 4000MB or 40% (default: as much as needed)",
        backends=["tensorflow"],
        affects_results=False,
    )
    virtual_devices: int = param(
        1,
        ge=1,
        le=1000,
        help="split each GPU, or the CPU, into this many devices, to run code for several on one",
        backends=["tensorflow"],
    )
    soft_placement: bool = param(
        True,
        help="run an operation on the CPU if its device does not support it; otherwise raise an error",
        backends=["tensorflow"],
    )
    threads: int = param(
        0, ge=0, le=100_000, help="CPU threads for one operation (0: TensorFlow decides)", backends=["tensorflow"]
    )

    def __post_init__(self) -> None:
        if len(self.gpus or ()) > 1 and any(isinstance(gpu, str) for gpu in self.gpus or ()):
            raise ValueError(f"gpus is auto, none, or indices; received {' '.join(map(str, self.gpus or ()))}")
        if self.memory_limit is None:
            return
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(MB|%)?", self.memory_limit)
        if not found or float(found[1]) <= 0 or (found[2] == "%" and float(found[1]) > 100):
            raise ValueError(f"memory_limit must be an amount such as 4000MB or 40%; received {self.memory_limit!r}")

    def gpu_indices(self) -> list[int]:
        """The requested GPUs, if they are given by index."""
        return [gpu for gpu in self.gpus or () if isinstance(gpu, int)]


class DeviceParams(ComputeParams):
    """The devices to compute on. Without GPUs the CPU is used."""


class TrainerDeviceParams(ComputeParams):
    """The devices to train on: one, several of this machine, or several machines."""

    dist_strategy: Literal["default", "mirror", "central_storage", "multi_worker"] = param(
        "default",
        help="how to use several devices; mirror: divide each batch over those of this machine; multi_worker: over the "
        "processes of --device.workers, TF_CONFIG or SLURM; batch_size is always that of the whole batch",
        backends=["tensorflow"],
        known_as=["strategy", "distribute_strategy"],
    )
    workers: list[str] = param(
        [], help="multi_worker: the address HOST:PORT of each process, the same list for all", backends=["tensorflow"]
    )
    worker_index: int | None = param(
        None,
        ge=0,
        help="multi_worker: the index of this process; 0 is the chief, which writes",
        backends=["tensorflow"],
    )
    worker_timeout: float = param(
        60.0,
        gt=0,
        help="multi_worker: seconds without a heartbeat of a worker after which the training ends",
        backends=["tensorflow"],
        affects_results=False,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.workers or self.worker_index is not None) and self.dist_strategy != "multi_worker":
            raise ValueError("workers and worker_index need dist_strategy multi_worker; it is " + self.dist_strategy)
        if bool(self.workers) != (self.worker_index is not None):
            raise ValueError(
                "set both workers and worker_index: the addresses of all processes, and the index of this one"
            )
        if self.worker_index is not None and self.worker_index >= len(self.workers):
            raise ValueError(f"worker_index must be from 0 to {len(self.workers) - 1}; received {self.worker_index}")
        for address in self.workers:
            host, _, port = address.rpartition(":")
            if not host or not port.isdecimal() or not 0 < int(port) < 65536:
                raise ValueError(f"workers must be addresses such as node1:2222; received {address!r}")
