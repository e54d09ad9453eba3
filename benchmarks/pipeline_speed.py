"""How fast the contenders of benchmarks/pipeline.py are: here, or in a process of their own.

python -m benchmarks.pipeline_speed NAME TASK LOOPS BATCH_SIZE SECONDS
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.pipeline_peers import contenders

STOLEN_SHARE = 0.02
"""A measurement that lost more than this share of a core to the machine's host is repeated."""
ATTEMPTS = 5


def speed_alone(name: str, task: str, loops: int, batch_size: int, seconds: float) -> float:
    """Batches per second of a contender without workers, in a new process."""
    arguments = [name, task, str(loops), str(batch_size), str(seconds)]
    command = [sys.executable, "-m", "benchmarks.pipeline_speed", *arguments]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def undisturbed_speed(batches: Any, seconds: float) -> float:
    """Batches per second while the host of a virtual machine left it its cores; after some attempts, as it is."""
    for _ in range(ATTEMPTS):
        before, begun = stolen_seconds(), time.perf_counter()
        found = speed(batches, seconds)
        if stolen_seconds() - before < STOLEN_SHARE * (time.perf_counter() - begun):
            break
    return found


def stolen_seconds() -> float:
    """What the host of this virtual machine took from its cores so far."""
    path = Path("/proc/stat")
    return int(path.read_text().split(maxsplit=9)[8]) / os.sysconf("SC_CLK_TCK") if path.is_file() else 0.0


def speed(batches: Any, seconds: float) -> float:
    """Batches per second once it is running."""
    warm = time.perf_counter()
    count = 0
    while count < 3 or time.perf_counter() - warm < 0.3 * seconds:
        next(batches)
        count += 1
    start = time.perf_counter()
    count = 0
    while time.perf_counter() - start < seconds:
        next(batches)
        count += 1
    return count / (time.perf_counter() - start)


def main() -> None:
    """Prints the speed of one contender."""
    name, task, loops, batch_size, seconds = sys.argv[1:]
    how, workers = contenders(tensorflow=False)[name]
    with how(task, int(loops), int(batch_size), workers) as batches:
        print(undisturbed_speed(batches, float(seconds)))


if __name__ == "__main__":
    main()
