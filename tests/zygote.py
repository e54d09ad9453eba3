"""Processes that start in a fraction of a second, for tests that run `scena` as a user does.

Importing TensorFlow takes seconds, so one process does it, the zygote, and is then forked for each run. What runs is a process of
its own, with the whole program in it, and can be killed like any other. The zygote reads requests and writes answers as lines of
JSON. (A test of what happens while TensorFlow is imported, or before, starts the program itself.)
"""

import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NoReturn

ROOT = Path(__file__).parents[1]
SCENA = "scena.commands.main:main"
NEEDED = """scena.commands.main scena.commands.model.lav scena.commands.model.predict scena.commands.run.resume scena.commands.run.train
scena.backends.tensorflow.backend scena.backends.tensorflow.engine scena.data.engines.parallel scena.data.engines.parallel
scena.evaluation.lav scena.prediction.predictor scena.scenario.exporting scena.scenario.verifying scena.training.callbacks.best
scena.training.callbacks.history scena.training.callbacks.progress scena.training.callbacks.tensorboard
scena.training.schedules.schedules
scena.training.trainer tensorboard.summary.writer.event_file_writer safetensors.numpy""".split()
"""What trainings and predictions import late: one import here is a quarter of a second less in each process."""


class Child:
    """A process that was forked from the zygote."""

    def __init__(self, zygote: "Zygote", pid: int, log: Path) -> None:
        self._zygote = zygote
        self.pid = pid
        self.log = log
        self._from = len(self.text)

    @property
    def text(self) -> str:
        """What it and its predecessors have written."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def wait_for(self, text: str, timeout: float = 300) -> bool:
        """Waits until it has written this; False if it ended before."""
        end = time.monotonic() + timeout
        while text not in self.text[self._from :]:
            if not self.is_alive():
                return text in self.text[self._from :]
            assert time.monotonic() < end, f"{text!r} was not written in {timeout} s:\n{self.text}"
            time.sleep(0.01)
        return True

    def is_alive(self) -> bool:
        """Whether it has not ended yet."""
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except FileNotFoundError:
            return False

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Sends a signal."""
        os.kill(self.pid, number)

    def wait(self) -> int:
        """Its exit status; negative for a signal."""
        return int(self._zygote.ask({"wait": self.pid})["status"])


class Zygote:
    """Forks processes that run `scena`, or another function of the tests."""

    def __init__(self, requests: IO[str], answers: IO[str], join: Callable[[], object]) -> None:
        self._requests = requests
        self._answers = answers
        self._join = join

    @classmethod
    def started(cls, python: str | Path = sys.executable, **environment: str) -> "Zygote":
        """A new process that has imported Keras and its backend, with these changes to the environment."""
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            [python, "-m", "tests.zygote"],
            cwd=ROOT,
            env=os.environ | environment,
            stdin=pipe,
            stdout=pipe,
            text=True,
        )
        assert process.stdin is not None and process.stdout is not None
        assert json.loads(process.stdout.readline()) == {"ready": True}
        return cls(process.stdin, process.stdout, lambda: process.wait(60))

    @classmethod
    def copied(cls) -> "Zygote":
        """A copy of this process, which must not have computed with TensorFlow yet."""
        request_reader, request_writer = os.pipe()
        answer_reader, answer_writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(request_writer)
            os.close(answer_reader)
            serve(os.fdopen(request_reader), os.fdopen(answer_writer, "w"))
            os._exit(0)
        os.close(request_reader)
        os.close(answer_writer)
        return cls(os.fdopen(request_writer, "w"), os.fdopen(answer_reader), lambda: os.waitpid(pid, 0))

    def start(
        self,
        *arguments: str | Path,
        log: Path,
        errors: Path | None = None,
        function: str = SCENA,
        folder: Path | None = None,
        environment: dict[str, str] | None = None,
    ) -> Child:
        """Calls a function, `scena` unless told otherwise, with these arguments in a process of its own.

        It runs in `folder` and writes to `log`; what goes to standard error is written to `errors`, if that is given.
        """
        request = {
            "function": function,
            "arguments": [str(word) for word in arguments],
            "log": str(log),
            "errors": str(errors or log),
            "folder": str(folder or ROOT),
            "environment": environment or {},
        }
        return Child(self, int(self.ask(request)["pid"]), log)

    def run(self, *arguments: str | Path, log: Path, **options: Any) -> int:
        """Like `start`, but waits for the end and returns the exit status."""
        return self.start(*arguments, log=log, **options).wait()

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        self._requests.write(json.dumps(request) + "\n")
        self._requests.flush()
        answer: dict[str, Any] = json.loads(self._answers.readline())
        return answer

    def close(self) -> None:
        self._requests.close()
        self._join()
        self._answers.close()


def serve(requests: IO[str], answers: IO[str]) -> None:
    """Starts a process for each request, and says how it ended."""
    for line in requests:
        request = json.loads(line)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            answer: dict[str, object] = {"status": os.waitstatus_to_exitcode(status)}
        else:
            pid = os.fork()
            if pid == 0:
                _become(**request)
            answer = {"pid": pid}
        print(json.dumps(answer), file=answers, flush=True)


def _become(
    function: str, arguments: list[str], log: str, errors: str, folder: str, environment: dict[str, str]
) -> NoReturn:
    """Calls a function as the program that this process was started for, and ends."""
    status: object = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, path in ((1, log), (2, errors)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
        os.chdir(folder)
        os.environ.update(environment)
        sys.path.insert(0, folder)
        sys.argv = ["scena", *arguments]
        module, _, name = function.partition(":")
        status = getattr(importlib.import_module(module), name)(arguments)
    except SystemExit as ended:
        status = ended.code
        if isinstance(status, str):
            print(status, file=sys.stderr)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status if isinstance(status, int) else 0 if status is None else 1)


def _import_what_most_tests_need() -> None:
    from scena.backends.quiet import load_tensorflow, silence_tensorflow
    from scena.backends.selection import load_keras

    silence_tensorflow()
    if load_keras() == "tensorflow":
        load_tensorflow()
        for name in NEEDED:
            importlib.import_module(name)
    import tests.faults.survivor.model
    import tests.faults.survivor.scenario  # noqa: F401


if __name__ == "__main__":
    _import_what_most_tests_need()
    gc.freeze()  # else the first collection of a child would copy all pages that it shares with this process
    print(json.dumps({"ready": True}), flush=True)
    serve(sys.stdin, sys.stdout)
    os._exit(0)  # nothing is left to clear away, and TensorFlow takes its time
