"""Every callback of Keras works in a training, also after a resume, or is refused in one line that says what to use instead."""

import http.server
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import pytest

from scena.errors import TrainingError
from scena.training.callbacks.keras_callbacks import check_callbacks
from tests.toy.scenario import ToyScenario
from tests.training.toy_runs import toy_params, trained_weights, weights_hash

C = keras.callbacks


class Watcher(keras.callbacks.Callback):
    """Notes the batches of training and validation."""

    def __init__(self) -> None:
        super().__init__()
        self.train: list[int] = []
        self.test: list[int] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        assert logs["loss"] > 0
        self.train.append(batch)

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        assert logs["loss"] > 0
        self.test.append(batch)


def train(directory: Path, callbacks: list[Any], epochs: int = 2, resume: bool = False) -> Any:
    trainer = ToyScenario.create_trainer(toy_params(directory / "run", epochs=epochs))
    return trainer.train(callbacks, resume=resume)


def test_a_lambda_sees_each_batch_of_training_and_validation(tmp_path: Path) -> None:
    train_batches: list[int] = []
    test_batches: list[int] = []
    lambdas = C.LambdaCallback(
        on_train_batch_end=lambda batch, logs: train_batches.append(batch),
        on_test_batch_begin=lambda batch, logs: test_batches.append(batch),
    )
    watcher = Watcher()
    train(tmp_path, [lambdas, watcher])
    assert train_batches == watcher.train == [0, 1, 2, 3] * 2
    assert test_batches == watcher.test == [0, 1, 2, 3] * 2


def test_hooks_of_batches_do_not_change_the_training(tmp_path: Path) -> None:
    plain = trained_weights(tmp_path / "plain")
    assert weights_hash(plain) == weights_hash(trained_weights(tmp_path / "watched", [Watcher()]))


@pytest.fixture
def server() -> Iterator[Any]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.server.received.append(self.rfile.read(int(self.headers["Content-Length"])))  # type: ignore[attr-defined]
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            """Keeps quiet."""

    made: Any = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    made.received = []
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def test_each_callback_works_and_resumes(tmp_path: Path, server: Any) -> None:
    """All that work, in one training of two epochs and its continuation to four."""

    def make() -> list[Any]:
        return [
            C.EarlyStopping(patience=50, restore_best_weights=True),
            C.CSVLogger(tmp_path / "log.csv"),
            C.ModelCheckpoint(tmp_path / "last.weights.h5", save_weights_only=True),
            C.ModelCheckpoint(tmp_path / "best.weights.h5", save_weights_only=True, save_best_only=True),
            C.TensorBoard(str(tmp_path / "tensorboard"), histogram_freq=1, update_freq=2),
            C.TerminateOnNaN(),
            C.RemoteMonitor(root=f"http://127.0.0.1:{server.server_port}", send_as_json=True),
            C.History(),
        ]

    train(tmp_path, make())
    again = make()
    train(tmp_path, again, epochs=4, resume=True)
    rows = (tmp_path / "log.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in rows] == ["epoch", "0", "1", "2", "3"]
    assert len(again[-1].history["val_loss"]) == 4 and again[0].best == min(again[-1].history["val_loss"])
    assert again[3].best == again[0].best and len(server.received) == 4
    assert (tmp_path / "last.weights.h5").is_file() and list((tmp_path / "tensorboard").rglob("events*"))


def test_a_csv_log_repeats_no_epoch_of_a_run_that_was_cut_off(tmp_path: Path) -> None:
    train(tmp_path, [C.CSVLogger(tmp_path / "log.csv")], epochs=3)
    (newest := tmp_path / "run" / "checkpoint" / "12").rename(newest.with_name("set-aside"))
    train(tmp_path, [C.CSVLogger(tmp_path / "log.csv")], epochs=3, resume=True)
    rows = (tmp_path / "log.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in rows] == ["epoch", "0", "1", "2"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: C.BackupAndRestore("backup"), "BackupAndRestore cannot be used here: .*`scena resume` continues"),
        (lambda: C.SwapEMAWeights(), "SwapEMAWeights cannot be used here: .*--trainer.ema_decay"),
        (lambda: C.ProgbarLogger(), "ProgbarLogger cannot be used here: .*remove it"),
        (lambda: C.LearningRateScheduler(lambda epoch: 0.1), "LearningRateScheduler .*follows --learning_rate here"),
        (lambda: C.ReduceLROnPlateau(), "ReduceLROnPlateau .*train with --learning_rate ReduceOnPlateau"),
        (lambda: C.ModelCheckpoint("model.keras"), "ModelCheckpoint cannot save .*save_weights_only=True"),
        (lambda: C.EarlyStopping("val_acc"), "EarlyStopping monitors 'val_acc', .*mode='max' or mode='min'"),
        (lambda: Watcher, "A callback must be a keras.callbacks.Callback. .*not its class"),
    ],
    ids=lambda value: "" if isinstance(value, str) else None,
)
def test_what_cannot_work_is_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(TrainingError, match=message) as error:
        check_callbacks([make()])
    assert "\n" not in str(error.value)


def test_a_value_that_will_not_be_there_is_found_before_the_first_step(tmp_path: Path) -> None:
    watcher = Watcher()
    with pytest.raises(TrainingError, match="monitors 'val_typo', but there are only acc, loss, val_acc, val_loss"):
        train(tmp_path, [watcher, C.EarlyStopping("val_typo", mode="min")])
    assert not watcher.train
