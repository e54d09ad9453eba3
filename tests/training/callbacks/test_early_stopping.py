"""Early stopping: each of its settings, by values that are known in advance."""

from pathlib import Path
from typing import Any

import pytest

from scena.training.callbacks.monitored import EarlyStopping
from scena.training.callbacks.params import EarlyStoppingParams
from scena.training.prepare import prepare_run
from scena.training.trigger import Trigger
from tests.toy.scenario import ToyScenario
from tests.training.toy_runs import toy_params, train_toy


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    params = toy_params(tmp_path_factory.mktemp("run"))
    return prepare_run(params, ToyScenario(params.scenario), params.output_dir)


@pytest.fixture
def stopping(run: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes early stopping for a run whose model is best by a given value."""
    val_data = run.val_data

    def make(better: str, name: str = "acc", lav: int = 0, validates: bool = True, **settings: Any) -> EarlyStopping:
        monkeypatch.setattr(run.built.model, "_best_logging_settings", lambda: (better, name))
        monkeypatch.setattr(run, "val_data", val_data if validates else None)
        monkeypatch.setattr(run.params, "lav_every_n", Trigger(lav))
        callback = EarlyStopping(EarlyStoppingParams(**settings))
        callback.set_run(run)
        callback.set_model(run.model)
        run.model.stop_training = False
        return callback

    return make


def epoch(callback: Any, number: int, value: float | None, key: str = "val_acc") -> bool:
    """One epoch with this value, as the loop reports it; whether the training has stopped after it."""
    logs = {"loss": 1.0} if value is None else {"loss": 1.0, key: value}
    if value is not None and key != "acc":
        callback.on_validation(logs)
    callback.before_lav(number - 1, logs)
    callback.on_epoch_end(number - 1, logs)
    return bool(callback.model.stop_training)


def stops_at(callback: Any, values: list[float | None], key: str = "val_acc") -> int | None:
    """The epoch in which it stops."""
    return next((n for n, value in enumerate(values, 1) if epoch(callback, n, value, key)), None)


def test_n_to_go_counts_epochs_without_improvement(stopping: Any) -> None:
    assert stops_at(stopping("max", n_to_go=2), [0.5, 0.6, 0.6, 0.7, 0.7, 0.6, 0.9]) == 6
    assert stops_at(stopping("max", n_to_go=1), [0.5, 0.6, 0.6, 0.7]) == 3
    assert stops_at(stopping("max"), [0.5, 0.5, 0.5, 0.5]) is None
    assert stops_at(stopping("min", "loss", n_to_go=2), [0.5, 0.4, 0.5, 0.5], "val_loss") == 4


def test_frequency_looks_only_every_so_many_epochs(stopping: Any) -> None:
    values: list[float | None] = [0.5, 0.6, 0.1, 0.6, 0.1, 0.5, 0.5, 0.5]
    assert stops_at(stopping("max", n_to_go=2), values) == 4
    # with a frequency of 3 the best of epochs 1 to 3 counts in epoch 3, and that of 4 to 6 in epoch 6
    assert stops_at(stopping("max", n_to_go=3, frequency=3), values) == 6


@pytest.mark.parametrize(
    ("mode", "settings", "values", "stops"),
    [
        ("max", {"upper_threshold": 0.99}, [0.5, 0.98, 0.99, 1.0], 3),  # reached or exceeded: at once
        ("max", {"upper_threshold": 0.99, "lower_threshold": 0.5, "n_to_go": 1}, [0.1, 0.1, 0.1, 0.6, 0.6], 5),
        ("max", {"lower_threshold": 0.5, "n_to_go": 1}, [0.1, 0.1, 0.1], None),  # not before it was good at all
        ("min", {"lower_threshold": 0.1}, [0.5, 0.2, 0.1, 0.0], 3),
        ("min", {"upper_threshold": 0.5, "n_to_go": 1}, [0.9, 0.9, 0.9, 0.4, 0.4], 5),
    ],
)
def test_thresholds(stopping: Any, mode: str, settings: Any, values: list[float | None], stops: int | None) -> None:
    assert stops_at(stopping(mode, **settings), values) == stops


def test_the_mode_can_be_given(stopping: Any) -> None:
    assert stops_at(stopping("max", n_to_go=2, mode="min"), [0.5, 0.6, 0.7]) == 3


def test_epochs_without_validation_do_not_count_as_values(stopping: Any) -> None:
    assert stops_at(stopping("max", n_to_go=2), [0.5, None, None, 0.6, None, 0.5]) == 6


def test_the_value_of_lav_or_of_the_training_can_decide(stopping: Any) -> None:
    assert stops_at(stopping("max", "lav_acc", lav=1, n_to_go=1), [0.5, 0.5], "lav_acc") == 2
    assert stops_at(stopping("max", validates=False, n_to_go=1), [0.5, 0.5], "acc") == 2


def test_its_state_goes_through_a_checkpoint(stopping: Any) -> None:
    values: list[float | None] = [0.5, 0.6, 0.6, 0.6, 0.6]
    whole = stopping("max", n_to_go=3)
    assert stops_at(whole, values) == 5
    for cut in range(1, 5):
        first = stopping("max", n_to_go=3)
        for number in range(1, cut + 1):
            epoch(first, number, values[number - 1])
        second = stopping("max", n_to_go=3)
        second.restore(first.state())
        assert [epoch(second, n, values[n - 1]) for n in range(cut + 1, 6)][-1]
        assert second.state() == whole.state()
    resumed = stopping("max", n_to_go=3)
    resumed.restore(whole.state())
    resumed.on_train_begin()
    assert resumed.model.stop_training  # what has stopped stays stopped


def test_lower_above_upper_is_an_error() -> None:
    with pytest.raises(ValueError, match="lower_threshold 2 is above upper_threshold 1"):
        EarlyStoppingParams(lower_threshold=2, upper_threshold=1)


def test_a_training_stops_and_lav_runs_in_its_last_epoch(tmp_path: Path) -> None:
    early = EarlyStoppingParams(upper_threshold=0.0)  # any accuracy reaches it
    trainer = train_toy(tmp_path / "run", epochs=50, early_stopping=early, lav_every_n=Trigger(50))
    assert len(trainer.history) == 1
    assert "lav_acc" in trainer.history[0]
    early = EarlyStoppingParams(n_to_go=1)
    params = toy_params(tmp_path / "two", epochs=50, early_stopping=early, lav_every_n=Trigger(100))
    params.learning_rate.lr = 1e-9
    rows = ToyScenario.create_trainer(params).train()
    assert len(rows) == 2 and "lav_acc" in rows[-1]
