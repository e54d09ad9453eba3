"""Mutation testing of modules that need no TensorFlow: small changes of the code that some test has to notice.

`python -m tests.reliability.mutation --count 1000 --out mutants.jsonl` samples mutants of `TARGETS` (`mutants.py` makes them) and runs, for
each, the tests that call the changed function, the fastest first, until one fails. All of that happens in forked copies of one
process that has collected the tests. A limit of processor time ends mutants that never stop; one that waits without working is
ended after a while that only passes when this process runs, too. Code that runs only in other processes is not changed. Results go to
a file, line by line: the same command continues, `--again` tries the survivors once more, and `--report` prints those that `EQUIVALENT`
does not explain.
"""

import argparse
import contextlib
import importlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import pytest
from _pytest.runner import runtestprotocol

from tests.reliability.mutants import Key, Mutant, functions_by_key, install, mutants_of

TARGETS = [
    "scena/storage/checksums.py",
    "scena/storage/durable.py",
    "scena/storage/location.py",
    "scena/storage/tensor_file.py",
    "scena/storage/run_layout.py",
    "scena/data/sample.py",  # Cursor
    "scena/data/stages/feed.py",
    "scena/data/stages/rng.py",
    "scena/data/sources/splits.py",
    "scena/data/folds.py",
    "scena/data/records",
    "scena/params",
    "scena/training/trigger.py",
    "scena/training/checkpoint/store.py",
    "scena/training/checkpoint/format.py",
]
TESTS = """tests/storage tests/params tests/data tests/faults tests/commands tests/training tests/packaging tests/reliability/test_bitrot.py
tests/reliability/test_fuzz.py tests/reliability/test_power_cuts.py""".split()
WITHOUT = {"zygote", "chromium"}
"""Tests with these fixtures start processes, which have the unchanged code."""
SHARED = {"scena", "tests", "numpy", "h5py", "yaml", "fsspec", "upath", "aiohttp", "openpyxl", "PIL", "google", "safetensors", "keras",
          "tensorflow", "tensorboard", "rich", "msgspec", "pandas", "sklearn"}  # fmt: skip
SLOWEST = 3.0
"""Seconds of processor time of a test that is used."""
EQUIVALENT: dict[str, str] = json.loads(Path(__file__).with_name("equivalent_mutants.json").read_text(encoding="utf-8"))
"""Mutants that change nothing a user can see, as `FILE: CHANGE: LINE OF CODE`, and why."""


class Map:
    """Which tests call which functions, and how much processor time they take."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.tests: dict[Key, list[str]] = {}

    def add(self, test: str, seconds: float, functions: list[Key]) -> None:
        self.seconds[test] = seconds
        for key in functions:
            self.tests.setdefault(key, []).append(test)

    def tests_of(self, key: Key) -> list[str]:
        """The fastest first."""
        return sorted(self.tests.get(key, []), key=lambda test: self.seconds[test])


class Campaign:
    """A plugin of pytest that runs its tests on mutants instead of once."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        paths = [Path(target) for target in options.only or TARGETS]
        self.paths = [file for path in paths for file in ([path] if path.is_file() else sorted(path.rglob("*.py")))]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.items = {item.nodeid: item for item in session.items if not WITHOUT & set(item.fixturenames)}  # type: ignore[attr-defined]
        self.functions = functions_by_key(self.paths)
        self.map = self._read_map()
        mutants = [mutant for path in self.paths for mutant in mutants_of(path)]
        reached = [mutant for mutant in mutants if self.map.tests_of(mutant.function)]
        print(f"{len(mutants)} mutants, {len(mutants) - len(reached)} in functions that no test calls here", flush=True)
        results = {result["mutant"]: result["result"] for result in self._results()}
        chosen = random.Random(self.options.seed).sample(mutants, min(self.options.count, len(mutants)))
        if self.options.again:
            alive = {name for name, result in results.items() if not result.startswith("killed")}
            chosen, results = [mutant for mutant in mutants if mutant.name in alive], {}
        for mutant in chosen:
            if mutant.name not in results and not mutant.idle:
                self._note(mutant, self._try(mutant))
        return True

    def _read_map(self) -> Map:
        """From the file beside the results; tests that it lacks are run once."""
        file = self.options.out.with_suffix(".map.jsonl")
        found = Map()
        known = set()
        if file.exists():
            for line in file.read_text().splitlines():
                test, seconds, functions, modules = json.loads(line)
                known.add(test)
                _import(modules)
                if functions and test in self.items:
                    found.add(test, seconds, [tuple(key) for key in functions])
        with file.open("a") as out:
            for name, item in self.items.items():
                if name not in known:
                    status, text, seconds = forked(lambda write, item=item: self._trace(item, write), SLOWEST)
                    functions, modules = json.loads(text) if status == 0 and text else ([], [])
                    print(json.dumps([name, seconds, functions, modules]), file=out, flush=True)
                    _import(modules)
                    if functions:
                        found.add(name, seconds, [tuple(key) for key in functions])
        return found

    def _trace(self, item: pytest.Item, write: Callable[[str], None]) -> int:
        """Runs a test and writes the functions it has called; what other threads call counts, too."""
        known = {str(path.resolve()): str(path) for path in self.paths}
        keys = set(self.functions)
        called: set[Key] = set()
        before = set(sys.modules)

        def note(frame: FrameType, event: str, _: Any) -> None:
            if event == "call" and (path := known.get(frame.f_code.co_filename)) is not None:
                called.add((path, frame.f_code.co_firstlineno, frame.f_code.co_qualname))

        threading.setprofile(note)
        sys.setprofile(note)
        failed = _run_tests([item])
        sys.setprofile(None)
        write(json.dumps([sorted(called & keys), sorted(set(sys.modules) - before)]))
        return failed

    def _try(self, mutant: Mutant) -> str:
        tests = self.map.tests_of(mutant.function)
        if not tests:
            return "no test"
        functions = self.functions[mutant.function]

        def run(write: Callable[[str], None]) -> int:
            install(mutant, functions)
            return _run_tests([self.items[test] for test in tests], write)

        limit = 5 + 5 * sum(self.map.seconds[test] for test in tests)
        status, text, _ = forked(run, limit)
        return "survived" if status == 0 else f"killed by {text}" if text else f"killed: ended with {status}"

    def _results(self) -> list[dict[str, str]]:
        file = self.options.out
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def _note(self, mutant: Mutant, result: str) -> None:
        with self.options.out.open("a") as out:
            print(json.dumps({"mutant": mutant.name, "result": result}), file=out)


def _import(modules: list[str]) -> None:
    """Imports what a test has imported in its process, so that the next ones need not; modules of tests' own folders stay away."""
    for name in modules:
        if name.partition(".")[0] in SHARED and name not in sys.modules:
            with contextlib.suppress(Exception):
                importlib.import_module(name)


def _run_tests(items: list[pytest.Item], write: Callable[[str], None] = lambda text: None) -> int:
    """1 at the first test that fails, and writes its name; 0 if all pass."""
    for item, following in zip(items, [*items[1:], None], strict=True):
        reports = runtestprotocol(item, log=False, nextitem=following)
        if any(report.failed for report in reports):
            write(item.nodeid)
            return 1
    return 0


def forked(run: Callable[[Callable[[str], None]], int], seconds: float) -> tuple[int, str, float]:
    """Calls a function in a copy of this process; its status (negative: a signal), what it wrote, its processor time."""
    reader, writer = os.pipe()
    folder = tempfile.mkdtemp(prefix="scena-mutant-", dir="/dev/shm")
    pid = os.fork()
    if pid == 0:
        _become(run, seconds, writer, folder)
    os.close(writer)
    status, used = _wait(pid, seconds)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    shutil.rmtree(folder, ignore_errors=True)
    return status, text, used


def _become(run: Callable[[Callable[[str], None]], int], seconds: float, writer: int, folder: str) -> NoReturn:
    status = 1
    with contextlib.suppress(BaseException):
        os.setsid()  # so that everything it starts can be ended with it
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nothing, number)
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        os.environ["PYTEST_DEBUG_TEMPROOT"] = folder
        limit = int(seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
        status = run(lambda text: os.write(writer, text.encode()) and None)
    os._exit(status)


def _wait(pid: int, seconds: float) -> tuple[int, float]:
    """Waits for a process; ends one that has done nothing for a while, which passes only while this process runs."""
    idle, before = 0, -1.0
    while True:
        found, status, usage = os.wait4(pid, os.WNOHANG)
        if found:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime
        time.sleep(0.01)
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            used = float(fields[11]) + float(fields[12])
            idle, before = (idle + 1, before) if used == before else (0, used)
        if idle > 100 * (20 + seconds):
            os.killpg(pid, signal.SIGKILL)


def report(out: Path) -> int:
    """Prints how many mutants were killed, and the survivors."""
    results = {found["mutant"]: found["result"] for found in map(json.loads, out.read_text().splitlines())}
    paths = {Path(name.partition(":")[0]) for name in results}
    for idle in (mutant.name for path in paths for mutant in mutants_of(path) if mutant.idle):
        results.pop(idle, None)
    alive = {name: result for name, result in results.items() if not result.startswith("killed")}
    sources = {path: path.read_text(encoding="utf-8").splitlines() for path in paths}
    equivalent = 0
    for name in sorted(alive):
        path, line, change = name.rpartition(" (")[0].split(":", 2)
        source = sources[Path(path)][int(line) - 1].strip()
        reason = EQUIVALENT.get(f"{path}:{change}: {source}", "")
        equivalent += bool(reason)
        print(f"{name}: {alive[name]}{': ' if reason else ''}{reason}\n    {source}")
    counted = len(results) - equivalent
    killed = len(results) - len(alive)
    print(
        f"{len(results)} mutants, {equivalent} equivalent; {killed} of the other {counted} killed: {killed / max(counted, 1):.1%}"
    )
    return killed < 0.9 * counted


def main() -> int:
    """Runs a campaign, or reports on one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("build/mutants.jsonl"))
    parser.add_argument("--only", nargs="*", help="files or folders to change")
    parser.add_argument("--tests", nargs="*", help="tests to run")
    parser.add_argument("--again", action="store_true", help="try those that survived once more, with tests of today")
    parser.add_argument("--report", action="store_true", help="print the results that are there")
    options = parser.parse_args()
    if not options.report:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        tests = [test for test in options.tests or TESTS if Path(test).exists()]
        flags = ["-q", "-s", "-p", "no:xdist", "-p", "no:cacheprovider", "-o", "timeout=0"]
        pytest.main([*flags, *tests], plugins=[Campaign(options)])
    return report(options.out)


if __name__ == "__main__":
    raise SystemExit(main())
