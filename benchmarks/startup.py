"""How long the command line takes to start, beside a bare interpreter and `import tensorflow`.

    python benchmarks/startup.py [--rounds 7] [--scenario examples.tutorial.full] [--tensorflow False]

Prints the median wall time of each command, in rounds that take turns so that a busy machine is unfair to none of them,
and the ratio to `python -c pass`. Bytecode is compiled first: that is done once at set-up, not at each start.
"""

import compileall
import importlib.util
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.options import read_options
from scena.params import Params, param

ROOT = Path(__file__).resolve().parents[1]
BAR = 10  # help may take so many bare starts
PYTHON = ("python -c pass", "import scena.params", "import tensorflow")


class Options(Params):
    """What to measure."""

    rounds: int = param(7, ge=1, help="how often each command is run")
    scenario: str = param("examples.tutorial.full", help="the scenario whose help is shown")
    tensorflow: bool = param(True, help="measure `import tensorflow` too (seconds a round)")


def commands(options: Options) -> dict[str, list[str]]:
    """What is measured: its name -> its command line."""
    python = {name: [sys.executable, "-c", name.removeprefix("python -c ")] for name in PYTHON}
    if not options.tensorflow or importlib.util.find_spec("tensorflow") is None:
        del python["import tensorflow"]
    if importlib.util.find_spec("scena.commands") is None:
        return python
    script = Path(sys.executable).with_name("scena")  # as a user starts it; `python -m` takes some 5 ms more
    program = [str(script)] if script.is_file() else [sys.executable, "-m", "scena"]
    train = ["train", options.scenario]
    scena = {
        "scena --help": ["--help"],
        f"scena train {options.scenario} --help": [*train, "--help"],
        "one unknown flag": [*train, "--no.such.flag", "1"],
        "one wrong value": [*train, "--trainer.epochs", "many"],
    }
    return {**python, **{name: [*program, *arguments] for name, arguments in scena.items()}}


def main() -> None:
    """Measures and prints."""
    options = read_options(Options, __doc__)
    for folder in ("scena", "examples"):
        compileall.compile_dir(str(ROOT / folder), quiet=2)
    measured = commands(options)
    times: dict[str, list[float]] = {name: [] for name in measured}
    for round_number in range(options.rounds + 1):
        for name, command in measured.items():
            seconds = run(command)
            if round_number:  # the first round only fills the caches of the disk
                times[name].append(seconds)
    bare = statistics.median(times["python -c pass"])
    width = max(map(len, times)) + 2
    print(f"{'':{width}}{'median':>10}{'fastest':>10}{'ratio':>8}")
    for name, seconds_of in times.items():
        median = statistics.median(seconds_of)
        print(f"{name:{width}}{median * 1000:>7.0f} ms{min(seconds_of) * 1000:>7.0f} ms{median / bare:>7.1f}x")
    print(f"\nThe bar: help of {options.scenario} within {BAR} bare starts ({BAR * bare * 1000:.0f} ms here).")


def run(command: list[str]) -> float:
    """The wall time of one command, with its output in a pipe."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    start = time.perf_counter()
    subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
