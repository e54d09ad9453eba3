"""No process, no memory, no file descriptor outlives its pipeline: whatever ends it."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.data.toys import NumbersParams, NumberStreamParams, SlowParams, SumParams, sequence, toy_pipeline

SCRIPT = """
import os, sys, time
from tests.data.toys import *
pipeline = toy_pipeline(NumbersParams(count=10000), sequence({processors}), num_processes=2)
{before}
with pipeline.stream() as stream:
    next(stream)
    children = os.popen("ps -o pid= --ppid %d" % os.getpid()).read().split()
    print("started", *children, flush=True)
    while True:
        next(stream)
        time.sleep(0.02)
"""


def started(
    processors: str = "NoiseParams(), SumParams()", before: str = ""
) -> tuple[subprocess.Popen[str], list[int]]:
    parent = subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(processors=processors, before=before)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": "."},
    )
    assert parent.stdout is not None
    words = parent.stdout.readline().split()
    assert words[:1] == ["started"], parent.communicate()[1]
    pids = [int(pid) for pid in words[1:] if is_worker(int(pid))]
    assert len(pids) == 3, "two workers and a serial one"
    return parent, pids


def is_worker(pid: int) -> bool:
    try:
        return b"scena.data.engines" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until_gone(pids: list[int], seconds: float = 10.0) -> float:
    start = time.monotonic()
    while any(alive(pid) for pid in pids):
        assert time.monotonic() - start < seconds, f"still there: {[pid for pid in pids if alive(pid)]}"
        time.sleep(0.02)
    return time.monotonic() - start


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("busy", [False, True])
def test_workers_end_with_their_parent(how: signal.Signals, busy: bool) -> None:
    # A busy worker sleeps in the code of a processor and does not look at its channel.
    processors = "SlowParams(seconds=0.001), FaultParams(at=77, kind='sleep'), SumParams()" if busy else "SumParams()"
    if not busy:
        processors = "NoiseParams(), SumParams()"
    parent, pids = started(processors)
    if busy:
        time.sleep(0.5)
    parent.send_signal(how)
    parent.wait(10)
    print(f"gone after {wait_until_gone(pids):.2f} s")
    parent.communicate()


def test_workers_started_by_a_thread_live_on_after_it() -> None:
    """The kernel's signal at a parent's death belongs to the thread that started the child; we must not rely on it."""
    streams = []

    def start() -> None:
        pipeline = toy_pipeline(NumbersParams(count=100), sequence(SlowParams(seconds=0.001)), num_processes=1)
        streams.append(pipeline.stream())

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    with streams[0] as stream:
        assert sum(next(stream).size for _ in range(60)) > 200


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("count", [10, pytest.param(100, marks=pytest.mark.long)])
def test_many_pipelines_leak_nothing(count: int) -> None:
    def use(source) -> None:
        pipeline = toy_pipeline(source, sequence(SumParams()), num_processes=1)
        with pipeline.stream() as stream:
            next(stream)
        pipeline.close()

    use(NumbersParams())
    gc.collect()
    files, threads = open_files(), threading.active_count()
    for number in range(count):
        use(NumbersParams() if number % 2 else NumberStreamParams())
    gc.collect()
    assert open_files() <= files
    assert threading.active_count() <= threads
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(os.getpid())], capture_output=True, text=True).stdout
    assert not [pid for pid in children.split() if is_worker(int(pid))]


def test_a_stream_that_is_dropped_ends_its_workers() -> None:
    pipeline = toy_pipeline(NumbersParams(count=1000), num_processes=1)
    stream = pipeline.stream()
    next(stream)
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(os.getpid())], capture_output=True, text=True).stdout
    pids = [int(pid) for pid in children.split() if is_worker(int(pid))]
    assert pids
    del stream, pipeline
    gc.collect()
    wait_until_gone(pids)


def test_arrays_outlive_their_pipeline() -> None:
    pipeline = toy_pipeline(NumbersParams(), num_processes=1, shuffle_buffer_size=0)
    with pipeline.stream() as stream:
        batch = next(stream)
    pipeline.close()
    del pipeline, stream
    gc.collect()
    assert batch.targets["y"].tolist() == [0, 1, 2, 3]
    batch.targets["y"][0] = 7
    assert batch.targets["y"].tolist() == [7, 1, 2, 3]


MAIN = """
from scena.data import *
from tests.data.toys import NumbersParams, ToyData, ToyDataParams, sequence
import logging
logging.basicConfig(level=logging.INFO)

class MineParams(DataProcessorParams, builds=":Mine"):
    pass

class Mine(MappingDataProcessor):
    def apply(self, sample):
        import time
        time.sleep(0.02)
        return sample

data = ToyData(ToyDataParams(pre_proc=sequence(MineParams())))
source = NumbersParams(count=80)
pipeline = data.create_pipeline(PipelineMode.EVALUATION, DataPipelineParams({settings}), source)
with pipeline.stream() as stream:
    print(len(list(stream)), "batches")
"""


@pytest.mark.parametrize(
    ("settings", "status", "text"),
    [
        (
            "num_processes=2",
            1,
            "MineParams is defined in the main script, which worker processes do not run again",
        ),
        ("", 0, "The input pipeline stays in this process: MineParams"),
    ],
)
def test_classes_of_the_main_script(settings: str, status: int, text: str) -> None:
    script = MAIN.replace("{settings}", settings)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": "."}
    )
    assert done.returncode == status, done.stderr
    assert text in done.stderr
    assert status or "5 batches" in done.stdout
