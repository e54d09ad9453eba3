"""Which GPUs are used, with a list of devices where there is none."""

from pathlib import Path
from typing import Any

import pytest

from scena.backends import selection
from scena.backends.params import DeviceParams, TrainerDeviceParams
from scena.backends.selection import DeviceError, choose_gpus
from scena.errors import ExperimentError
from scena.experiments.schedulers.local import make_slots
from scena.params import ParamsError, build, parse
from scena.params.cli.completion import flag_completions

TWO = ["GPU:0", "GPU:1"]


@pytest.mark.parametrize(
    ("words", "present", "chosen"),
    [
        ("", TWO, [0]),
        ("", [], []),
        ("--gpus auto", TWO, [0]),
        ("--gpus none", TWO, []),
        ("--gpus 1", TWO, [1]),
        ("--gpus 1 0", TWO, [1, 0]),
        ("--dist_strategy mirror", TWO, [0, 1]),
        ("--dist_strategy mirror --gpus 1", TWO, [1]),
    ],
)
def test_the_first_visible_gpu_is_used_unless_told_otherwise(words: str, present: list[str], chosen: list[int]) -> None:
    params = parse(TrainerDeviceParams(), words.split()).params
    assert choose_gpus(params, present, "") == chosen


@pytest.mark.parametrize(
    ("stored", "named", "chosen"), [(None, "", []), (None, "0,1", [0, 1]), ([], "0,1", []), ([1], "", [1])]
)
def test_stored_runs_keep_their_devices(stored: Any, named: str, chosen: list[int]) -> None:
    assert choose_gpus(build({"gpus": stored}, DeviceParams), TWO, named) == chosen


def test_words_and_indices_are_not_mixed() -> None:
    with pytest.raises(ParamsError, match="gpus is auto, none, or indices; received auto 1"):
        parse(DeviceParams(), ["--gpus", "auto", "1"])


def test_help_and_completion_offer_one_word_for_no_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(DeviceParams(), ["--help", "gpus"])
    assert "--gpus [{auto,none}|INT ...]" in capsys.readouterr().out
    assert flag_completions(DeviceParams(), ["--gpus"], "")[:2] == ["auto", "none"]
    assert parse(DeviceParams(), ["--gpus", "None"]).params.gpus is None, "commands that earlier versions printed"


def test_runs_of_tune_and_experiment_use_the_first_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def slots(gpus: list[Any], cpus: list[int]) -> list[tuple[str, str]]:
        return [(slot.name, slot.environment["CUDA_VISIBLE_DEVICES"]) for slot in make_slots(gpus, cpus)]

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(selection, "GPU_FILES", (f"{tmp_path}/nvidia[0-9]*",))
    assert slots(["auto"], []) == [("cpu 0", "-1")]
    with pytest.raises(DeviceError, match=r"--gpus 0 1: there is no GPU 0\. This machine has none\."):
        slots([0, 1], [])
    (tmp_path / "nvidia0").touch()
    (tmp_path / "nvidia1").touch()
    assert slots(["auto"], []) == [("gpu 0", "0")]
    assert slots(["auto"], [1]) == slots(["none"], []) == [("cpu 0", "-1")]
    assert slots([1], []) == [("gpu 1", "1")]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    assert slots(["auto"], []) == [("gpu 3", "3")]
    assert slots([1], []) == [("gpu 1", "1")] and slots([0], []) == [("gpu 3", "3")]
    with pytest.raises(DeviceError, match=r"--gpus 2: there is no GPU 2\. CUDA_VISIBLE_DEVICES=3,1 has 0, 1\."):
        slots([2], [])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-8932f937, MIG-4f1e")
    assert slots([1, 0], []) == [("gpu MIG-4f1e", "MIG-4f1e"), ("gpu GPU-8932f937", "GPU-8932f937")]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,-1,0")
    assert slots([0], []) == [("gpu 1", "1")]
    with pytest.raises(DeviceError, match=r"--gpus 1: there is no GPU 1\. CUDA_VISIBLE_DEVICES=1,-1,0 has 0\."):
        slots([1], [])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(DeviceError, match=r"--gpus 0: there is no GPU 0\. CUDA_VISIBLE_DEVICES= has none\."):
        slots([0], [])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert slots(["auto"], []) == [("cpu 0", "-1")]
    with pytest.raises(ExperimentError, match=r"--gpus is auto, none, or indices\. Received: auto 1"):
        slots(["auto", 1], [])
