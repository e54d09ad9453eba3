"""A whole training in which one call fails: on a file of the run (open, write, sync, rename, link, remove), or the start of a process.

At each Nth call the failure is reported, and a resume gives the result of a run without it; or the result is unharmed.
`python -m tests.reliability.failing_calls --count 100` tries that many N, evenly spread over the training.
"""

import argparse
import errno
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.faults.harness import SCENARIO, fingerprint, flags
from tests.zygote import Zygote

FILE_EVENTS = {"open", "os.mkdir", "os.rename", "os.link", "os.remove", "os.rmdir", "os.truncate"}
PROCESS_EVENTS = {"subprocess.Popen", "os.posix_spawn", "os.fork"}
WRAPPED = ("fsync", "write", "ftruncate")
FLAGS = flags("--trainer.epochs 3")


def main_with_failure(words: list[str]) -> int:
    """Runs `scena` in a process where call number N fails: the words are N, the run's directory, a file for the count, and the command."""
    number, directory, report, *command = words
    _install(int(number), os.path.realpath(directory), report)
    from scena.commands.main import main

    return main(command)


def _install(number: int, directory: str, report: str) -> None:
    calls = 0
    reporting = os.open(report, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    real_write = os.write

    def count(name: str) -> None:
        nonlocal calls
        calls += 1
        os.pwrite(reporting, f"{calls:>12}".encode(), 0)
        if calls == number:
            os.pwrite(reporting, f"{calls:>12} {name}".encode(), 0)
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in PROCESS_EVENTS or (event in FILE_EVENTS and any(map(inside, arguments))):
            count(event)

    def inside(path: Any) -> bool:
        return isinstance(path, str | bytes | os.PathLike) and os.path.abspath(os.fsdecode(path)).startswith(directory)

    def wrapped(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(handle: int, *rest: Any) -> Any:
            if inside(os.readlink(f"/proc/self/fd/{handle}")):
                count(f"os.{name}")
            return function(handle, *rest)

        return call

    for name in WRAPPED:
        setattr(os, name, wrapped(name, real_write if name == "write" else getattr(os, name)))
    sys.addaudithook(hook)


class Outcome(NamedTuple):
    """What a failure led to."""

    call: str
    kind: str
    problem: str = ""


def fail_at(zygote: Zygote, number: int, folder: Path, expected: dict[str, Any] | None) -> tuple[int, Outcome]:
    """Trains with a failure at call `number`; the count of calls, and what happened. Without `expected` nothing is compared."""
    folder.mkdir(parents=True)
    run, log, report = folder / "run", folder / "log", folder / "report"
    train = ["train", SCENARIO, "--trainer.output_dir", str(run), *FLAGS]
    function = "tests.reliability.failing_calls:main_with_failure"
    status = zygote.run(str(number), run, report, *train, log=log, function=function)
    count, _, call = report.read_text().strip().partition(" ")
    text = log.read_text()
    if expected is None:
        assert status == 0, text
        return int(count), Outcome(call, "no failure")
    kind = "unharmed" if status == 0 else "reported"
    if "Traceback" in text:
        return int(count), Outcome(call, kind, f"a traceback: {text[-600:]}")
    if status != 0:
        if "error: " not in text and "Error" not in text:
            return int(count), Outcome(call, kind, f"ended with {status} without an error: {text[-300:]}")
        again = ["resume", str(run)] if (run / "trainer_params.json").exists() else train
        if zygote.run(*again, log=log) != 0:
            return int(count), Outcome(call, kind, f"cannot be resumed: {log.read_text()[-600:]}")
    found = comparable(run)
    different = [part for part, value in expected.items() if found[part] != value]
    if different == ["scalars"] and "its curves will have a gap" in text:
        different = []  # reported
    return int(count), Outcome(call, kind, f"{different} differ" if different else "")


def comparable(run: Path) -> dict[str, Any]:
    """The result of a run; its code includes modules of this test, which a resume does not load."""
    found = fingerprint(run)
    found["state"].pop("code")
    return found


def main() -> int:
    """Tries failures that are spread evenly over a training."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    options = parser.parse_args()
    zygote = Zygote.started()
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="scena-failing-") as folder:
        total, _ = fail_at(zygote, 0, Path(folder) / "whole", None)
        expected = comparable(Path(folder) / "whole" / "run")
        for place in range(options.count):
            number = 1 + place * total // options.count
            _, outcome = fail_at(zygote, number, Path(folder) / str(number), expected)
            outcomes.append(outcome)
            print(f"{number} of {total}: {outcome.call}: {outcome.kind} {outcome.problem}", flush=True)
    zygote.close()
    kinds = Counter(outcome.kind for outcome in outcomes)
    wrong = [outcome for outcome in outcomes if outcome.problem]
    print(f"{len(outcomes)} of {total} calls failed: {dict(kinds)}, {len(wrong)} wrong")
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
