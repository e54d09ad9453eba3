"""How many instructions a sample costs in a plain loop and in the pipeline: a count that no neighbour of this machine changes.

    python -m benchmarks.pipeline_instructions [--batches 400]

Needs valgrind (Debian's). Each contender makes 10 batches of 32 samples and then so many, and the differences are compared: starting,
importing and ending cancel out. The work is light, so that what the pipeline adds to it is seen.
"""

import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.options import read_options
from benchmarks.pipeline_peers import contenders
from benchmarks.pipeline_work import Amount, Done
from scena.data.engines.workers import pool
from scena.params import Params, param

SIZE = 32
AMOUNTS = {"PYTHON": Amount(1, 10), "NUMPY": Amount(1, 2)}
_INNER = "SCENA_BENCHMARK_COUNTED"


class Options(Params):
    """How much to count."""

    batches: int = param(400, gt=10, help="batches of the longer run")


def main() -> None:
    """Counts and prints."""
    if _INNER in os.environ:
        make_batches(*sys.argv[1:])
        return
    options = read_options(Options, __doc__)
    if shutil.which("valgrind") is None:
        raise SystemExit("This benchmark needs valgrind: apt install valgrind.")
    for task in AMOUNTS:
        plain = 0.0
        for name in ("plain loop", "scena, 0", "scena, 1"):
            short, long = (count(name, task, batches) for batches in (10, options.batches))
            made = sum(samples for _, samples in long) - sum(samples for _, samples in short)
            here, *workers = [(last - first) / made for (first, _), (last, _) in zip(short, long, strict=True)]
            plain = plain or here
            parts = f"{here:,.0f} in this process" + "".join(f", {worker:,.0f} in a worker" for worker in workers)
            more = sum(workers, here) - plain
            print(f"{task}, {name}: {parts} for each sample; {more:,.0f} more than the plain loop", flush=True)


def count(name: str, task: str, batches: int) -> list[tuple[int, int]]:
    """(instructions, samples made) of each process of a contender, the first one first."""
    with tempfile.TemporaryDirectory(prefix="scena-benchmark-") as folder:
        command = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--trace-children=yes"]
        command += ["--cachegrind-out-file=/dev/null", sys.executable, "-m", "benchmarks.pipeline_instructions"]
        environment = {**os.environ, Done.FOLDER: folder, _INNER: "1", "PYTHONHASHSEED": "0"}
        done = subprocess.run([*command, name, task, str(batches)], capture_output=True, text=True, env=environment)
        found = sorted((int(pid), int(number.replace(",", ""))) for pid, number in _REFS.findall(done.stderr))
        if done.returncode or not found:
            raise SystemExit(f"{name} failed:\n{done.stdout}{done.stderr}")
        samples = {int(file.name): int.from_bytes(file.read_bytes(), "little") for file in Path(folder).iterdir()}
        return [(number, samples.get(pid, 0)) for pid, number in found]


_REFS = re.compile(r"==(\d+)== I\s+refs:\s+([\d,]+)")


def make_batches(name: str, task: str, batches: str) -> None:
    """What is counted; the processes may take their time to end, or they could not report."""
    pool.END_SECONDS = 100.0
    contender = contenders(tensorflow=False)[name]
    with contender.how(task, AMOUNTS[task], SIZE, contender.workers) as made:
        for _ in itertools.islice(made, int(batches)):
            pass


if __name__ == "__main__":
    main()
