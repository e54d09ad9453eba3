"""Several processes on this machine train as one: real processes, on loopback."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.faults.harness import FLAGS as SURVIVOR_FLAGS
from tests.faults.harness import SCENARIO as SURVIVOR
from tests.faults.harness import fingerprint
from tests.training.distribution.runs import FLAGS, SCENARIO, assert_equal_runs, merged, start_workers, train
from tests.training.distribution.several import NOTES
from tests.zygote import ROOT, Zygote

# slow enough that a process can be ended in the middle of it
SLOW = "--data.pre_proc.processors.Jitter.seconds 0.02 --trainer.epochs 6"


@pytest.fixture(scope="module")
def one_process(zygote: Zygote, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same training in one process."""
    return train(zygote, tmp_path_factory.mktemp("one") / "run")


def command(directory: Path, more: str = "") -> list[str]:
    return ["train", SCENARIO, "--trainer.output_dir", str(directory), *merged(FLAGS, more)]


def survivor(directory: Path, more: str = "") -> list[str]:
    return ["train", SURVIVOR, "--trainer.output_dir", str(directory), *merged(SURVIVOR_FLAGS, more)]


def test_launched_workers_give_what_one_process_gives(one_process: Path, tmp_path: Path) -> None:
    """Nothing is read twice, and all end with the same weights."""
    notes = tmp_path / "notes"
    notes.mkdir()
    # the checks of the chief read samples besides
    words = command(tmp_path / "run", "--trainer.sanity_check False --trainer.verify_export False")
    done = subprocess.run(
        [sys.executable, "-m", "scena", "launch", "--workers", "2", "--share_cores", *words],
        env={**os.environ, NOTES: str(notes)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert_equal_runs(tmp_path / "run", one_process)
    assert "worker 1: Training as worker 1 (127.0.0.1:" in done.stderr
    read = Counter(int(line) for path in notes.glob("samples-*") for line in path.read_text().split())
    # in each of three epochs the last batch has one sample, which both processes read, one of them only to keep step
    assert set(read) == set(range(61))
    assert sum(read.values()) == 3 * 61 + 3
    assert len(list(notes.glob("samples-*"))) == 2
    first, second = (np.load(path) for path in sorted(notes.glob("weights-*.npz")))
    assert first.files == second.files
    for name in first.files:
        np.testing.assert_array_equal(first[name], second[name])


def test_three_workers_and_only_the_chief_writes(zygote: Zygote, one_process: Path, tmp_path: Path) -> None:
    """Each with a data worker of its own."""
    directory = tmp_path / "run"
    workers = start_workers(zygote, 3, directory, command(directory, "--train.num_processes 1"))
    assert [worker.wait() for worker in workers] == [0, 0, 0], "".join(worker.text for worker in workers)
    assert_equal_runs(directory, one_process)
    assert "the chief writes all results" in workers[2].text
    logs = {path.name for path in tmp_path.iterdir()} - {"run"}
    assert logs == {"run.0.log", "run.1.log", "run.2.log"}


@pytest.mark.parametrize("slow", [0, 1])
def test_a_process_whose_data_is_slower_takes_the_same_steps(
    slow: int, zygote: Zygote, one_process: Path, tmp_path: Path
) -> None:
    """It has one batch at a time while the other has many: both must take as many steps in a call."""
    directory = tmp_path / "run"
    workers = start_workers(zygote, 2, directory, command(directory, f"--data.slow_worker {slow}"))
    assert [worker.wait() for worker in workers] == [0, 0], "".join(worker.text for worker in workers)
    assert_equal_runs(directory, one_process)


def test_a_killed_worker_ends_the_training_and_it_goes_on_exactly(zygote: Zygote, tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert [w.wait() for w in start_workers(zygote, 2, whole, survivor(whole, "--trainer.epochs 6"))] == [0, 0]
    chief, other = start_workers(zygote, 2, cut, survivor(cut, SLOW))
    assert chief.wait_for("Epoch 2/")
    other.kill()
    killed = time.monotonic()
    assert chief.wait() == 1
    assert time.monotonic() - killed < 60
    assert other.wait() == -signal.SIGKILL
    assert "orker 1 (127.0.0.1:" in chief.text and "is lost: it ended, or no longer responds" in chief.text
    assert f"The last checkpoint is {cut / 'checkpoint'}" in chief.text
    assert f"scena launch --workers N resume {cut}" in chief.text
    again = start_workers(zygote, 2, cut, ["resume", str(cut)], "--data.pre_proc.processors.Jitter.seconds 0.001")
    assert [worker.wait() for worker in again] == [0, 0], again[0].text
    assert fingerprint(cut) == fingerprint(whole)


@pytest.mark.long
def test_a_frozen_worker_is_missed_after_the_given_time(zygote: Zygote, tmp_path: Path) -> None:
    directory = tmp_path / "run"
    chief, other = start_workers(zygote, 2, directory, survivor(directory, SLOW), "--device.worker_timeout 6")
    assert chief.wait_for("Epoch 1/")
    other.kill(signal.SIGSTOP)
    assert chief.wait() == 1
    assert "is lost: it ended, or no longer responds" in chief.text
    other.kill(signal.SIGKILL)
    other.wait()


@pytest.mark.long
def test_the_chief_ends_and_the_others_say_so(zygote: Zygote, tmp_path: Path) -> None:
    directory = tmp_path / "run"
    chief, other = start_workers(zygote, 2, directory, survivor(directory, SLOW))
    assert chief.wait_for("Epoch 1/")
    chief.kill()
    assert other.wait() == 1
    assert "The chief (127.0.0.1:" in other.text
    chief.wait()


def test_a_signal_to_any_worker_saves_and_ends_all(zygote: Zygote, tmp_path: Path) -> None:
    directory = tmp_path / "run"
    chief, other = start_workers(zygote, 2, directory, survivor(directory, SLOW))
    assert chief.wait_for("Epoch 1/")
    other.kill(signal.SIGTERM)
    assert [chief.wait(), other.wait()] == [143, 143], chief.text + other.text
    assert "Stopped by a signal to another worker at step " in chief.text
    assert f"resume with: scena launch --workers N resume {directory}" in chief.text
    assert "The training was stopped; the chief has saved it." in other.text


def test_a_worker_that_never_comes_is_named(zygote: Zygote, tmp_path: Path) -> None:
    directory = tmp_path / "run"
    chief, other = start_workers(zygote, 2, directory, command(directory), "--device.worker_timeout 4 --train.limit x")
    assert [chief.wait(), other.wait()] == [2, 2]  # the flag is wrong: neither starts
    words = [
        "--device.workers",
        "127.0.0.1:1",
        "127.0.0.1:2",
        "--device.worker_index",
        "1",
        "--device.worker_timeout",
        "3",
    ]
    log = tmp_path / "alone.log"
    more = ["--device.dist_strategy", "multi_worker", *words]
    assert zygote.run(*command(directory), *more, log=log) == 1
    assert "The training cannot start: the chief (127.0.0.1:1) did not connect within 3 s" in log.read_text()


@pytest.mark.long
def test_data_without_an_index_is_cut_instead(zygote: Zygote, tmp_path: Path) -> None:
    """A stream is read by each process, of which each keeps its part; and an epoch ends where the stream does."""
    flags = "--data.counted False --trainer.epochs 2 --trainer.val_every_n 1 --trainer.samples_per_epoch 40"
    directory = tmp_path / "run"
    workers = start_workers(zygote, 2, directory, survivor(directory, flags))
    assert [worker.wait() for worker in workers] == [0, 0], workers[0].text
    assert "each process makes all of it and keeps its part" in workers[1].text
