"""Several devices of one machine (here: parts of a CPU) train as one."""

from pathlib import Path

import pytest

from tests.faults.harness import FLAGS as SURVIVOR_FLAGS
from tests.faults.harness import SCENARIO as SURVIVOR
from tests.faults.harness import fingerprint
from tests.training.distribution.runs import SCENARIO, assert_equal_runs, history, merged, train
from tests.zygote import Zygote


def mirror(devices: int) -> str:
    return f"--device.dist_strategy mirror --device.virtual_devices {devices}"


@pytest.fixture(scope="module")
def one_device(zygote: Zygote, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same training on one device."""
    return train(zygote, tmp_path_factory.mktemp("one") / "run")


@pytest.mark.parametrize("devices", [2, pytest.param(3, marks=pytest.mark.long), 4])
def test_several_devices_give_what_one_gives(zygote: Zygote, one_device: Path, tmp_path: Path, devices: int) -> None:
    assert_equal_runs(train(zygote, tmp_path / "run", mirror(devices)), one_device)


TECHNIQUES = {
    "accumulated, clipped, decayed, averaged": "--optimizer AdamW --optimizer.gradient_accumulation_steps 2 "
    "--optimizer.clip_global_norm 0.05 --optimizer.weight_decay 0.1 --trainer.ema_decay 0.9 --model.l2 0.01",
    "scaled loss": "--trainer.precision mixed_float16",
    "Lookahead": "--optimizer Lookahead --learning_rate CosineDecay --trainer.steps_per_execution 3",
    "input gradient": "--trainer.input_gradient_penalty 0.1",
    "a step of one's own": "--model.step own",
}


@pytest.mark.parametrize(
    "technique",
    [
        name if number in (0, 4) else pytest.param(name, marks=pytest.mark.long)
        for number, name in enumerate(TECHNIQUES)
    ],
)
def test_techniques_see_the_whole_batch(zygote: Zygote, tmp_path: Path, technique: str) -> None:
    flags = TECHNIQUES[technique]
    one = train(zygote, tmp_path / "one", flags)
    two = train(zygote, tmp_path / "two", f"{flags} {mirror(2)}")
    # half-precision sums are rounded differently for other sizes of a batch
    assert_equal_runs(two, one, 2e-3 if "16" in flags else 1e-5)
    assert history(one)[0]["loss"] != history(one)[-1]["loss"]


def test_resuming_is_exact(zygote: Zygote, tmp_path: Path) -> None:
    """With dropout, noise without a seed and batch statistics: bit for bit, as on one device, between epochs and within one."""
    flags = merged(SURVIVOR_FLAGS, f"--trainer.epochs 3 --trainer.keep_checkpoints 9 {mirror(2)}")
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    train(zygote, whole, flags=flags, scenario=SURVIVOR)
    train(zygote, cut, "--trainer.epochs 1", flags=flags, scenario=SURVIVOR)
    log = tmp_path / "resume.log"
    assert zygote.run("resume", cut, "--trainer.epochs", "3", log=log) == 0, log.read_text()
    expected = fingerprint(whole)
    assert fingerprint(cut) == expected
    assert zygote.run("resume", whole, "--from", "8", log=log) == 0, log.read_text()
    assert fingerprint(whole) == expected


def test_going_on_with_another_number_of_devices(zygote: Zygote, one_device: Path, tmp_path: Path) -> None:
    """In the middle of an epoch: the same samples in the same order."""
    directory, log = tmp_path / "run", tmp_path / "resume.log"
    train(zygote, directory, f"--trainer.checkpoint_every 2steps --trainer.keep_checkpoints 9 {mirror(2)}")
    words = ["--from", "6", "--device.virtual_devices", "3"]
    assert zygote.run("resume", directory, *words, log=log) == 0, log.read_text()
    assert "device.virtual_devices: 2 → 3" in log.read_text()
    assert_equal_runs(directory, one_device)


REFUSED = {
    "--device.dist_strategy mirror": "mirror needs several devices. There is one: /device:CPU:0. Choose more with --device.gpus 0 1",
    "--device.dist_strategy central_storage": "central_storage is not offered: under Keras 3, TensorFlow's strategy logs a wrong",
    f"{mirror(2)} --trainer.xla True": "--trainer.xla works on one device only, and --device.dist_strategy is mirror",
    f"{mirror(2)} --model.step second": "SecondOptimizer has an optimizer of its own (critic), whose gradients are not summed",
    "--device.dist_strategy multi_worker": "needs the addresses of all processes. Start them with `scena launch",
}


@pytest.mark.parametrize("flags", REFUSED)
def test_what_cannot_work_is_refused_by_name(zygote: Zygote, tmp_path: Path, flags: str) -> None:
    log = tmp_path / "run.log"
    words = ["train", SCENARIO, "--trainer.output_dir", str(tmp_path / "run"), *flags.split()]
    assert zygote.run(*words, log=log) == 1
    assert REFUSED[flags] in log.read_text()


def test_all_replicas_know_what_layers_keep_beside_their_variables(zygote: Zygote, tmp_path: Path) -> None:
    """Statistics, boundaries, vocabularies and quantized weights of the first one; also after a resume."""
    flags = (
        "--trainer.epochs 2 --trainer.random_seed 7 --train.batch_size 10 --val.batch_size 16 --trainer.export_final False "
        "--tensorboard.write False --train.num_processes 0 --val.num_processes 0"
    ).split()
    one, two = tmp_path / "one", tmp_path / "two"
    for directory, more in ((one, ""), (two, f"--trainer.epochs 1 {mirror(2)}")):
        log = directory.with_suffix(".log")
        words = [
            *merged(flags, more),
            "--model.kinds",
            "normalization",
            "discretization",
            "quantized",
            "whitening",
            "string",
        ]
        words += ["--model.dropout", "0"]
        assert zygote.run("train", "tests.derived", "--trainer.output_dir", directory, *words, log=log) == 0, (
            log.read_text()
        )
    log = tmp_path / "resumed.log"
    assert zygote.run("resume", two, "--trainer.epochs", "2", log=log) == 0, log.read_text()
    assert_equal_runs(two, one)
