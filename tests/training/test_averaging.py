"""The moving average of the weights: its definition, and that validation, LAV, the best model and exports use it."""

import math
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from scena.commands.main import main
from scena.errors import TrainingError
from scena.training.callbacks.base import TrainerCallback
from scena.training.optimizers.params import SGD, Adam
from scena.training.prepare import automatic_decay, create_average
from scena.training.schedules.params import Constant
from scena.training.trigger import Trigger
from tests.toy.scenario import ToyScenario
from tests.training.toy_runs import toy_params, train_toy


class Watch(TrainerCallback):
    """Follows the average with its definition, step by step."""

    def __init__(self, decay: Any) -> None:
        super().__init__()
        self.decay = decay
        self.seen_in_validation: list[np.ndarray] = []

    def steps_until_weights(self, step: int) -> int | None:
        return 1

    def weights(self) -> np.ndarray:
        return np.concatenate([np.ravel(v.value) for v in self.model.trainable_variables]).astype("float64")

    def on_train_begin(self, logs: Any = None) -> None:
        self.expected = self.weights()
        self.count = 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        decay = self.decay(self.count)
        self.expected = decay * self.expected + (1 - decay) * self.weights()
        self.count += 1
        self.current = self.weights()

    def on_validation(self, logs: Any) -> None:
        self.seen_in_validation.append(self.weights())
        np.testing.assert_allclose(self.weights(), self.expected, atol=1e-6)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        assert (self.weights() == self.current).all()  # the training goes on with its own weights


def test_the_average_is_what_its_definition_says_and_validation_sees_it(tmp_path: Path) -> None:
    watch = Watch(lambda n: 0.9)
    train_toy(tmp_path / "run", [watch], ema_decay=0.9, lav_every_n=Trigger(1), epochs=3)
    assert len(watch.seen_in_validation) == 6  # validation and LAV, three epochs
    assert not np.allclose(watch.current, watch.expected, atol=1e-3)


def test_the_automatic_rate_comes_from_the_number_of_steps(tmp_path: Path) -> None:
    steps = 4 * 2  # 64 samples in batches of 16, two epochs
    rate = 1 - 1 / max(0.1 * steps, 1.0)
    watch = Watch(lambda n: min(rate, (1 + n) / (10 + n)))
    train_toy(tmp_path / "run", [watch], ema_decay=-1.0)
    assert len(watch.seen_in_validation) == 2
    assert [round(automatic_decay(n), 4) for n in (100, 1000, 10_000, 10**7)] == [0.9, 0.99, 0.999, 0.9999]


def test_the_automatic_rate_counts_updates_and_not_accumulated_batches(tmp_path: Path) -> None:
    params = toy_params(tmp_path, ema_decay=-1.0, epochs=100)
    alone = create_average(params, 10)
    params.optimizer = Adam(gradient_accumulation_steps=10)
    accumulated = create_average(params, 10)
    assert alone is not None and accumulated is not None
    assert (alone.decay, accumulated.decay) == (0.99, 0.9)
    with pytest.raises(TrainingError, match="computed from the number of steps"):
        create_average(params, None)


def test_exports_hold_the_average_and_checkpoints_both(tmp_path: Path) -> None:
    watch = Watch(lambda n: 0.9)
    train_toy(tmp_path / "run", [watch], ema_decay=0.9, export_best=True, export_final=True)
    for name in ("best", "export"):
        built = ToyScenario.create_predictor(tmp_path / "run" / name).built
        stored = np.concatenate([np.ravel(v.value) for v in built.root.trainable_variables])
        if name == "export":
            np.testing.assert_allclose(stored, watch.expected, atol=1e-6)
        assert any(np.allclose(stored, seen, atol=1e-6) for seen in watch.seen_in_validation)
    from safetensors.numpy import load_file

    newest = max((tmp_path / "run" / "checkpoint").iterdir(), key=lambda path: int(path.name))
    kept = [np.ravel(array) for array in load_file(newest / "tensors.safetensors").values()]
    for wanted in (watch.current, watch.expected):
        kernel = wanted[:32]  # the hidden kernel: 8 x 4
        assert any(array.size == 32 and np.allclose(array, kernel, atol=1e-6) for array in kept)


def test_accumulated_batches_move_the_average_once() -> None:
    from scena.training.optimizers.create import MovingAverage, create_optimizer
    from scena.training.schedules.params import Constant

    variable = keras.Variable([1.0], name="kernel")
    average = MovingAverage(0.5)
    rate = Constant(lr=1.0).create(1, 1)
    optimizer = create_optimizer(SGD(gradient_accumulation_steps=3), rate, [variable], average)
    seen = []
    for _ in range(6):
        optimizer.apply([keras.ops.ones(1)])
        seen.append((float(variable.value[0]), float(average.copies[0][0])))
    assert seen == [(1, 1), (1, 1), (0, 0.5), (0, 0.5), (0, 0.5), (-1, -0.25)]


def test_constrained_weights_are_averaged_as_they_are_constrained() -> None:
    from scena.training.optimizers.create import MovingAverage, create_optimizer
    from scena.training.schedules.params import Constant

    layer = keras.layers.Dense(1, use_bias=False, kernel_constraint=keras.constraints.NonNeg())
    layer.build((None, 1))
    layer.kernel.assign([[1.0]])
    average = MovingAverage(0.5)
    optimizer = create_optimizer(SGD(), Constant(lr=3.0).create(1, 1), [layer.kernel], average)
    optimizer.apply([keras.ops.ones((1, 1))])
    assert float(layer.kernel.value[0, 0]) == 0.0
    assert float(average.copies[0][0, 0]) == 0.5


def test_the_flag_has_its_old_name_too_and_says_what_is_wrong(capsys: Any) -> None:
    assert main(["params", "tests.toy", "--trainer.calc_ema", "0.99"]) == 0
    assert "ema_decay: 0.99" in capsys.readouterr().out
    assert main(["params", "tests.toy", "--trainer.ema_decay", "-0.5"]) == 2
    assert "-1 for an automatic value" in capsys.readouterr().err
    assert math.isclose(automatic_decay(0), 0.0)


@pytest.mark.parametrize("decay", [0.0, 0.5])
def test_tensors_derived_from_trained_weights_follow_them(tmp_path: Path, decay: float) -> None:
    """Validation, LAV and the export agree, also with the average; the verification of exports would find a difference."""
    from tests.derived.params import RowsParams
    from tests.derived.scenario import DerivedScenario

    history = train_toy(
        tmp_path / "run", scenario=DerivedScenario, scenario__model__kinds=["cached"], ema_decay=decay, export_final=True,
        lav_every_n=Trigger(1), learning_rate=Constant(lr=0.05), epochs=2,
    ).history  # fmt: skip
    exported = DerivedScenario.create_lav(tmp_path / "run" / "export").run(RowsParams())
    assert history[-1]["val_loss"] == pytest.approx(history[-1]["lav_loss"], abs=1e-6)
    assert exported["loss"] == pytest.approx(history[-1]["lav_loss"], abs=1e-6)
