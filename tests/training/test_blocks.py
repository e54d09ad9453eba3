"""Blocks of compiled steps: their length changes nothing, and callbacks see what they would see step by step."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from scena.training.callbacks.base import TrainerCallback
from scena.training.optimizers.params import Adam
from scena.training.trigger import Trigger
from tests.training.toy_runs import KeepWeights, train_toy, weights_hash


class BatchLogs(TrainerCallback):
    """The logs of each batch; does not look at the weights."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[int, dict[str, float]]] = []
        self.blocks: list[int] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.seen.append((batch, dict(logs)))

    def on_block_end(self, steps: int, logs: Any) -> None:
        self.blocks.append(steps)


class PlainKeras(keras.callbacks.Callback):
    """A callback that knows nothing of blocks and reads weights after each batch."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, int, bytes]] = []

    def note(self, what: str, batch: int) -> None:
        self.seen.append((what, batch, np.asarray(self.model.trainable_variables[0].value).tobytes()))

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.note("begin", batch)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.note("end", batch)


SETTINGS: dict[str, Any] = {
    "gen__train__batch_size": 2,
    "ema_decay": 0.9,
    "optimizer": Adam(gradient_accumulation_steps=3),
    "epochs": 3,
}


def test_one_seven_and_thirty_two_steps_in_a_block_give_the_same_weights_and_logs(tmp_path: Path) -> None:
    results = set()
    for steps in (1, 7, 32, None):
        keep, logs = KeepWeights(), BatchLogs()
        trainer = train_toy(tmp_path / str(steps), [keep, logs], steps_per_execution=steps, **SETTINGS)
        rows = [{k: v for k, v in row.items() if k != "seconds"} for row in trainer.history]
        results.add((weights_hash(keep.weights), str(logs.seen), str(rows)))
        assert len(logs.seen) == 3 * 32
        if steps is not None:
            assert max(logs.blocks) == steps
    assert len(results) == 1


def test_blocks_grow_by_themselves(tmp_path: Path) -> None:
    logs = BatchLogs()
    train_toy(tmp_path / "run", [logs], gen__train_val__count=2048, gen__train__batch_size=8, epochs=1)
    assert max(logs.blocks) > 8


def test_a_keras_callback_sees_the_weights_of_each_step(tmp_path: Path) -> None:
    plain = PlainKeras()
    train_toy(tmp_path / "run", [plain], epochs=1, gen__train__batch_size=8)
    kinds = [(what, batch) for what, batch, _ in plain.seen]
    assert kinds == [(what, batch) for batch in range(8) for what in ("begin", "end")]
    weights = [value for _, _, value in plain.seen]
    assert weights[1:-1:2] == weights[2::2]  # nothing happens between the end of one and the beginning of the next
    assert len(set(weights)) == 9


class EveryFifth(TrainerCallback):
    """Looks at the weights every five steps."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[int, bytes] = {}

    def steps_until_weights(self, step: int) -> int | None:
        return 5 - step % 5

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if (batch + 1) % 5 == 0:
            self.seen[batch] = np.asarray(self.model.trainable_variables[0].value).tobytes()


def test_a_block_ends_where_a_callback_wants_to_see_the_weights(tmp_path: Path) -> None:
    fifth, plain, blocks = EveryFifth(), PlainKeras(), BatchLogs()
    same: dict[str, Any] = {"epochs": 1, "gen__train__batch_size": 2}
    train_toy(tmp_path / "fifth", [fifth, blocks], steps_per_execution=8, **same)
    train_toy(tmp_path / "plain", [plain], **same)
    each = {batch: value for what, batch, value in plain.seen if what == "end"}
    assert fifth.seen == {batch: each[batch] for batch in (4, 9, 14, 19, 24, 29)}
    assert blocks.blocks == [5] * 6 + [2]


class Moments(TrainerCallback):
    """When validations happen."""

    def __init__(self) -> None:
        super().__init__()
        self.val: list[int] = []
        self.lav: list[int] = []

    def on_validation(self, logs: Any) -> None:
        for name in ("val", "lav"):
            if any(key.startswith(f"{name}_") for key in logs):
                getattr(self, name).append(self.run.progress.step)


@pytest.mark.parametrize(
    ("settings", "val", "lav"),
    [
        ({}, [4, 8, 12, 16, 20], []),
        ({"val_every_n": Trigger(2)}, [8, 16], []),
        ({"val_every_n": Trigger(3, "steps")}, [3, 6, 9, 12, 15, 18], []),
        ({"lav_every_n": Trigger(3)}, [4, 8, 12, 16, 20], [4, 12, 20]),  # LAV: the first and the last epoch always
        ({"lav_every_n": Trigger(7, "steps"), "val_every_n": Trigger(0)}, [], [4, 7, 14, 20]),
        ({"lav_every_n": Trigger(1), "lav_min_epoch": 4}, [4, 8, 12, 16, 20], [16, 20]),
    ],
    ids=lambda value: str(value)[:40],
)
def test_validation_and_lav_are_at_their_exact_step(
    tmp_path: Path, settings: Any, val: list[int], lav: list[int]
) -> None:
    moments = Moments()
    train_toy(tmp_path / "run", [moments], epochs=5, **settings)
    assert (moments.val, moments.lav) == (val, lav)


def test_validation_by_time(tmp_path: Path) -> None:
    moments = Moments()
    train_toy(tmp_path / "run", [moments], epochs=2, val_every_n=Trigger(1e-6, "seconds"))
    assert len(moments.val) >= 4


def test_an_epoch_can_be_longer_or_shorter_than_the_data(tmp_path: Path) -> None:
    longer = train_toy(tmp_path / "longer", scale_epoch_size=2.0).history
    shorter = train_toy(tmp_path / "shorter", scale_epoch_size=0.5).history
    assert [row["step"] for row in longer] == [8, 16]
    assert [row["step"] for row in shorter] == [2, 4]
