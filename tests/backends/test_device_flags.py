"""What can be said about devices, and what is said when it is wrong."""

import json
import os
from pathlib import Path

import pytest

from scena.backends.cluster import find_cluster
from scena.backends.params import DeviceParams, TrainerDeviceParams
from scena.backends.selection import DeviceError
from scena.backends.tensorflow.backend import memory_in_mb, select_devices
from scena.commands.main import main
from tests.toy.scenario import ToyScenario
from tests.training.toy_runs import toy_params

WRONG = {
    "--device.memory_limit lots": "memory_limit must be an amount such as 4000MB or 40%; received 'lots'",
    "--device.memory_limit 140%": "memory_limit must be an amount such as 4000MB or 40%; received '140%'",
    "--device.memory_limit 0MB": "memory_limit must be an amount such as 4000MB or 40%; received '0MB'",
    "--device.dist_strategy mirrored": "mirrored",
    "--device.workers a:1 b:2 --device.worker_index 0": "workers and worker_index need dist_strategy multi_worker; it is default",
    "--device.dist_strategy multi_worker --device.workers a:1 b:2": "set both workers and worker_index",
    "--device.dist_strategy multi_worker --device.workers a:1 b:2 --device.worker_index 2": "worker_index must be from 0 to 1",
    "--device.dist_strategy multi_worker --device.workers a b:2 --device.worker_index 0": "addresses such as node1:2222; received 'a'",
    "--device.virtual_devices 0": "virtual_devices",
}


@pytest.mark.parametrize("flags", WRONG)
def test_wrong_flags_are_refused(flags: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "tests.toy", *flags.split()]) == 2
    assert WRONG[flags] in capsys.readouterr().err


def test_a_wrong_strategy_is_told_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    main(["train", "tests.toy", "--device.dist_strategy", "mirrored"])
    error = capsys.readouterr().err
    assert all(name in error for name in ("default", "mirror", "central_storage", "multi_worker"))


def test_prediction_has_no_flags_of_distribution() -> None:
    assert "dist_strategy" not in DeviceParams.__params__
    assert set(DeviceParams.__params__) < set(TrainerDeviceParams.__params__)


def test_a_memory_limit_without_a_gpu_is_refused() -> None:
    with pytest.raises(DeviceError, match=r"--device.memory_limit 40% is for GPUs, and none is used"):
        select_devices(DeviceParams(memory_limit="40%"))


def test_a_share_of_the_memory_is_asked_of_nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program is a stand-in here: this machine has no GPU."""
    program = tmp_path / "nvidia-smi"
    program.write_text('#!/bin/sh\nfor last; do :; done\n[ "$last" = --id=5 ] && echo 8000 || echo 16000\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert memory_in_mb("40%", 0) == 6400
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    assert memory_in_mb("50%", 1) == 4000
    assert memory_in_mb("4000MB", 1) == memory_in_mb("4000", 1) == 4000


def test_without_nvidia_smi_an_amount_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DeviceError, match=r"The size of GPU 0 is unknown.*Give --device.memory_limit in MB"):
        memory_in_mb("40%", 0)


def multi_worker(**fields: object) -> TrainerDeviceParams:
    return TrainerDeviceParams(dist_strategy="multi_worker", **fields)


@pytest.fixture
def no_cluster(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in [name for name in os.environ if name.startswith("SLURM_") or name in ("TF_CONFIG", "SCENA_PORT")]:
        monkeypatch.delenv(name)
    return monkeypatch


def test_workers_from_flags(no_cluster: pytest.MonkeyPatch) -> None:
    no_cluster.setenv("TF_CONFIG", "{}")  # flags come first
    cluster = find_cluster(multi_worker(workers=["a:1", "b:2"], worker_index=1))
    assert (cluster.addresses, cluster.index, cluster.chief) == (("a:1", "b:2"), 1, False)
    assert (cluster.name(0), cluster.name(1)) == ("the chief (a:1)", "worker 1 (b:2)")


@pytest.mark.parametrize(
    ("jobs", "task", "addresses", "index"),
    [
        ({"worker": ["a:1", "b:2"]}, ("worker", 1), ("a:1", "b:2"), 1),
        ({"chief": ["c:1"], "worker": ["a:1"]}, ("worker", 0), ("c:1", "a:1"), 1),
        ({"chief": ["c:1"], "worker": ["a:1"]}, ("chief", 0), ("c:1", "a:1"), 0),
    ],
)
def test_workers_from_tf_config(
    no_cluster: pytest.MonkeyPatch, jobs: object, task: tuple[str, int], addresses: tuple[str, ...], index: int
) -> None:
    config = {"cluster": jobs, "task": {"type": task[0], "index": task[1]}}
    no_cluster.setenv("TF_CONFIG", json.dumps(config))
    cluster = find_cluster(multi_worker())
    assert (cluster.addresses, cluster.index) == (addresses, index)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"TF_CONFIG cannot be read \(JSONDecodeError"),
        ('{"cluster": {"worker": ["a:1"]}}', r"TF_CONFIG cannot be read \(KeyError: 'task'\)"),
        (
            '{"cluster": {"worker": ["a:1"], "ps": ["b:1"]}, "task": {"type": "worker", "index": 0}}',
            "a job that Scena does not use: ps",
        ),
        (
            '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 2}}',
            "names this process worker 2, but has 2 addresses: a:1, b:1",
        ),
    ],
)
def test_a_wrong_tf_config_is_explained(no_cluster: pytest.MonkeyPatch, text: str, message: str) -> None:
    no_cluster.setenv("TF_CONFIG", text)
    with pytest.raises(DeviceError, match=message):
        find_cluster(multi_worker())


def test_workers_from_slurm(no_cluster: pytest.MonkeyPatch) -> None:
    """Two tasks on the first node, one on the second."""
    job = {"PROCID": "2", "STEP_NUM_TASKS": "3", "STEP_NODELIST": "node[07-08]", "STEP_TASKS_PER_NODE": "2,1"}
    for name, value in job.items():
        no_cluster.setenv(f"SLURM_{name}", value)
    cluster = find_cluster(multi_worker())
    assert (cluster.addresses, cluster.index) == (("node07:8888", "node07:8889", "node08:8888"), 2)
    no_cluster.setenv("SCENA_PORT", "4000")
    assert find_cluster(multi_worker()).addresses[2] == "node08:4000"
    no_cluster.delenv("SLURM_STEP_NODELIST")
    with pytest.raises(DeviceError, match=r"The SLURM variables of this job cannot be read .*SLURM_STEP_NODELIST"):
        find_cluster(multi_worker())


def test_devices_must_be_chosen_before_tensorflow_starts(tmp_path: Path) -> None:
    import tensorflow as tf

    tf.config.list_logical_devices()
    params = toy_params(tmp_path / "run", device__virtual_devices=3)
    with pytest.raises(DeviceError, match="The devices must be chosen before TensorFlow starts"):
        ToyScenario.create_trainer(params).train()


def test_devices_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("CPU    ")
    assert "TensorFlow sees no GPU" in lines[1] or lines[1].startswith("GPU 0  ")
    assert main(["devices", "--gpus"]) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--workers 2 predict", "unexpected 'predict': scena launch [--flag value …] train|resume …"),
        ("--workers 1 train tests.toy", "--workers 1 is a training in one process: scena train …"),
        (
            "train tests.toy --device.worker_index 1",
            "--device.worker_index is for processes that are started one by one",
        ),
        ("--workers 0 train tests.toy", "workers"),
    ],
)
def test_launch_explains_itself(arguments: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["launch", *arguments.split()]) == 2
    assert message in capsys.readouterr().err
