"""The schedulers that carry out the runs of `tune` and `experiment`: one params class each."""

from typing import Literal

from scena.params import Params, param


class SchedulerParams(Params, abstract=True):
    """What carries out runs. Subclass it with `name="myqueue", builds=".myqueue:MyQueue"` (see `schedulers/base.py`)."""


class SlotParams(Params):
    """The devices of this machine."""

    gpus: list[int | Literal["auto", "none"]] = param(
        ["auto"],
        help="auto: the first visible GPU, if there is one and no --cpus; none; or indices: each run sees its own GPU only",
    )
    cpus: list[int] = param(
        [],
        help="runs at once on the CPU (default: 1); several numbers name the slots: `--cpus 0 1` is the same as `--cpus 2`",
    )
    per_device: int = param(1, ge=1, help="runs at once on each device")


class LocalParams(SlotParams, SchedulerParams, name="local", builds=".local:LocalScheduler"):
    """Processes on this machine, one on each device at a time."""


class RayParams(SchedulerParams, name="ray", builds=".ray_cluster:RayScheduler"):
    """A Ray cluster (extra 'cluster')."""

    address: str = param("", help="HOST:PORT of the cluster (default: the one of this machine, or a new one)")
    cpus: float = param(1.0, ge=0, help="CPUs that each run needs")
    gpus: float = param(0.0, ge=0, help="GPUs that each run needs; a part of one, such as 0.5, shares it")
