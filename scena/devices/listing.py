"""What there is to compute on, in words."""

import os
from collections.abc import Mapping
from typing import Any

import tensorflow as tf


def describe_devices(environment: Mapping[str, str]) -> list[str]:
    """A line for each device that TensorFlow sees, and how to use it."""
    cores = len(os.sched_getaffinity(0))
    lines = [f"CPU    {cores} core{'s' if cores > 1 else ''}"]
    gpus = tf.config.list_physical_devices("GPU")
    lines += [f"GPU {index}  {_details(gpu)}" for index, gpu in enumerate(gpus)]
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    if not gpus:
        lines.append("TensorFlow sees no GPU" + (f" (CUDA_VISIBLE_DEVICES={visible})." if visible is not None else "."))
    elif visible:
        lines.append(f"CUDA_VISIBLE_DEVICES={visible}: these GPUs are used unless --device.gpus names others.")
    else:
        lines.append("None is used unless you say so: --device.gpus 0")
    several = "--device.gpus 0 1" if len(gpus) > 1 else "--device.virtual_devices 2"
    lines.append(f"Several devices at once: --device.dist_strategy mirror {several}")
    lines.append("Several processes or machines: scena launch --workers 2 train …")
    return lines


def _details(gpu: Any) -> str:
    details = tf.config.experimental.get_device_details(gpu)
    capability = details.get("compute_capability")
    return details.get("device_name", gpu.name) + (
        f", compute capability {capability[0]}.{capability[1]}" if capability else ""
    )
