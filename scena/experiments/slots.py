"""What runs are spread over: one slot per device, or several."""

import os
from typing import NamedTuple

from scena.experiments.errors import ExperimentError


class Slot(NamedTuple):
    """A place for one run at a time."""

    name: str
    environment: dict[str, str]


MOST = 10_000


def make_slots(gpus: list[int], cpus: list[int], per_device: int = 1) -> list[Slot]:
    """The slots of some devices; without any, one on the CPU.

    Args:
        gpus: indices of GPUs; a run sees its own one only.
        cpus: how many CPU slots (one number from 1 on), or their numbers; a run there sees no GPU.
        per_device: runs at once on each.
    """
    if per_device < 1:
        raise ExperimentError(f"--per_device must be at least 1. Received: {per_device}.")
    for flag, numbers in (("gpus", gpus), ("cpus", cpus)):
        if wrong := [number for number in numbers if number < 0 or numbers.count(number) > 1]:
            raise ExperimentError(f"--{flag} takes different numbers from 0 on. Received: {wrong[0]}.")
    if len(cpus) * per_device > MOST or (len(cpus) == 1 and cpus[0] * per_device > MOST):
        raise ExperimentError(f"--cpus {' '.join(map(str, cpus))} are too many: at most {MOST} runs go on at once.")
    if len(cpus) == 1 and cpus[0] > 0:
        cpus = list(range(cpus[0]))
    devices = [(f"gpu {index}", str(index)) for index in gpus] + [(f"cpu {index}", "-1") for index in cpus]
    if not devices:
        devices = [("cpu 0", "-1")]
    several = per_device > 1
    return [
        Slot(f"{name}.{number}" if several else name, {"CUDA_VISIBLE_DEVICES": visible, **_order()})
        for number in range(1, per_device + 1)
        for name, visible in devices
    ]


def _order() -> dict[str, str]:
    """GPUs are numbered as nvidia-smi shows them, unless the user has said otherwise."""
    return {} if "CUDA_DEVICE_ORDER" in os.environ else {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
