"""A run that is killed with SIGKILL again and again, anywhere, ends with exactly what the run ends with that was not."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.faults.harness import FLAGS, SCENARIO, fingerprint, flags, kill_until_finished
from tests.zygote import Zygote


def assert_same(directory: Path, expected: dict[str, Any]) -> None:
    """Compares a run with the reference, part by part."""
    found = fingerprint(directory)
    for part, value in expected.items():
        assert found[part] == value, part
    log = directory.with_suffix(".log").read_text()
    assert "It is skipped" not in log, "a checkpoint could not be read"


def any_workers(rng: random.Random) -> list[str]:
    return ["--train.num_processes", str(rng.choice([0, 0, 1, 2]))]


def test_twenty_random_kills(zygote: Zygote, expected: dict[str, Any], tmp_path: Path) -> None:
    assert kill_repeatedly(20, 8, zygote, expected, tmp_path).total() >= 20


def kill_repeatedly(
    count: int, at_once: int, zygote: Zygote, expected: dict[str, Any], folder: Path, workers: bool = False
) -> Counter[str]:
    """Kills runs until there were so many kills, a few of them in each run."""
    total: Counter[str] = Counter()
    seed = 0
    while total.total() < count:
        seed += 1
        rng = random.Random(seed)
        changed = (lambda: any_workers(rng)) if workers else list  # noqa: B023  (called in this round only)
        kills = min(at_once, count - total.total())
        total += kill_until_finished(zygote, folder / f"{seed}", FLAGS, rng, kills, changed)
        assert_same(folder / f"{seed}", expected)
    print(f"{total.total()} kills ({dict(total)}), 0 unreadable checkpoints, 0 differing hashes")
    return total


@pytest.mark.long
def test_three_hundred_random_kills(zygote: Zygote, expected: dict[str, Any], tmp_path: Path) -> None:
    assert kill_repeatedly(300, 12, zygote, expected, tmp_path, workers=True).total() >= 300


VARIANTS = {
    "epochs of unknown length": "--data.counted False --trainer.checkpoint_every 1steps --trainer.val_every_n 3steps",
    "checkpoints by epochs": "--trainer.checkpoint_every 2 --trainer.val_every_n 1 --train.batch_drop_remainder True",
    "average, accumulation, schedule": (
        "--trainer.ema_decay 0.9 --optimizer.gradient_accumulation_steps 2 --learning_rate CosineDecay "
        "--learning_rate.lr 0.01 --trainer.lav_every_n 2"
    ),
    "plateau, early stopping": (
        "--learning_rate ReduceOnPlateau --learning_rate.lr 0.5 --early_stopping.n_to_go 2 --trainer.epochs 12 "
        "--trainer.val_every_n 1 --trainer.lav_every_n 3"
    ),
    "bfloat16": "--trainer.precision mixed_bfloat16",
    "float16 with a scaled loss": "--trainer.precision mixed_float16",
    "workers": "--train.num_processes 2 --trainer.samples_per_epoch 40",
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.long) for name in VARIANTS])
def test_variants_survive_too(zygote: Zygote, tmp_path: Path, name: str) -> None:
    words, whole = flags(VARIANTS[name]), tmp_path / "whole"
    assert zygote.run("train", SCENARIO, "--trainer.output_dir", whole, *words, log=tmp_path / "whole.log") == 0
    kill_until_finished(zygote, tmp_path / "killed", words, random.Random(7), kills=8)
    assert_same(tmp_path / "killed", fingerprint(whole))
