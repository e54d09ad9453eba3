"""Exports are read back when they are written: what differs from the model in memory is an error, and nothing else changes."""

import logging
import random
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from scena.backends.tensorflow.op_by_op import OFTEN
from scena.errors import TrainingError
from scena.model.state.layer_state import Layers
from scena.model.state.randomness import unnoticed
from scena.scenario.stored import model_content, read_description
from scena.scenario.verifying import RunningModel
from scena.storage.checksums import verify_tree
from scena.training.params import BestBy
from tests.derived.scenario import DerivedScenario
from tests.faults.harness import fingerprint
from tests.faults.survivor.scenario import SurvivorScenario
from tests.toy.model import ToyGraph, ToyModel
from tests.toy.scenario import ToyScenario
from tests.training.toy_runs import train_toy

SMALL: dict[str, Any] = {"gen__train__num_processes": 0, "gen__val__num_processes": 0, "export_best": True}


class Odd(keras.layers.Layer):
    """Computes something that an export does not repeat."""

    factor = 1.0

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way

    def call(self, x: Any) -> Any:
        if self.way == "hidden":
            return x * self.factor
        if self.way == "random":
            return x + tf.random.normal(tf.shape(x))
        if self.way == "seeded":
            return x + keras.random.normal(keras.ops.shape(x))
        return x * 2.0 if tf.executing_eagerly() else x


class OddGraph(ToyGraph):
    way = "eager"

    def __init__(self, params: Any, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        self.odd = Odd(self.way)

    def build_graph(self, inputs: Any, training: bool | None = None) -> Any:
        outputs = super().build_graph(inputs, training)
        return {**outputs, "odd": self.odd(outputs["logits"])}


class OddModel(ToyModel):
    def create_graph(self) -> ToyGraph:
        return OddGraph(self.params)


class OddScenario(ToyScenario):
    def create_model(self, data: Any) -> Any:
        return OddModel(self.params.model)


def test_what_a_layer_keeps_to_itself_is_found_at_the_first_export(tmp_path: Path) -> None:
    with pytest.raises(TrainingError) as error:
        train_toy(tmp_path / "run", scenario=DerivedScenario, scenario__model__kinds=["normalization"],
                  scenario__model__forgetful=True, **SMALL)  # fmt: skip
    text = str(error.value)
    assert text.startswith(
        f"{tmp_path / 'run' / 'best'} does not give what the model in memory gives: its output 'logits' differs by "
    )
    assert "(tolerance: 1e-05)" in text and "--trainer.verify_export False" in text and "docs/graph.md" in text
    assert not (tmp_path / "run" / "best").exists()


def test_without_the_check_it_is_written(tmp_path: Path) -> None:
    train_toy(tmp_path / "run", scenario=DerivedScenario, scenario__model__kinds=["normalization"], verify_export=False,
              scenario__model__forgetful=True, epochs=1, **SMALL)  # fmt: skip
    assert (tmp_path / "run" / "best" / "model.keras").is_file()


def test_the_last_model_is_verified_once_if_it_is_the_best(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What is equal in both exports is neither read back nor written twice; another best model has files of its own."""
    for best, epochs in ((None, 1), (BestBy("max", "val_loss"), 3)):
        run = tmp_path / str(epochs)
        caplog.clear()
        with caplog.at_level(logging.DEBUG, logger="scena.training.checks.verification"):
            train_toy(run, export_final=True, epochs=epochs, best=best, **SMALL)
        files = [run / name / "saved_model" / "variables" / "variables.index" for name in ("best", "export")]
        assert files[0].samefile(files[1]) == (epochs == 1)
        for name in ("best", "export"):
            verify_tree(run / name)
        (line,) = [record.getMessage() for record in caplog.records if "Verifying exports took" in record.getMessage()]
        assert re.fullmatch(r"Verifying exports took \d+\.\d+ s of \d+\.\d s\.", line)


class HideLater(keras.callbacks.Callback):
    """Changes what a layer keeps to itself after the first best model, and changes it back at the end."""

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if epoch == 1:
            self._set(3.0)

    def on_train_end(self, logs: Any = None) -> None:
        self._set(1.0)

    def _set(self, factor: float) -> None:
        (layer,) = [layer for layer in self.model._flatten_layers() if isinstance(layer, Odd)]
        layer.factor = factor


@pytest.mark.parametrize("final", [False, True])
def test_what_a_layer_keeps_to_itself_is_found_in_a_later_best_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, final: bool
) -> None:
    """Also if `export/` has the same files and is right, because the model in memory has changed since."""
    monkeypatch.setattr(OddGraph, "way", "hidden")
    with pytest.raises(TrainingError) as error:
        train_toy(tmp_path / "run", [HideLater()], OddScenario, export_final=final, best=BestBy("min", "val_loss"),
                  **SMALL)  # fmt: skip
    best, export = tmp_path / "run" / "best", tmp_path / "run" / "export"
    assert str(error.value).startswith(
        f"{best} does not give what the model in memory gives: its output 'odd' differs by "
    )
    assert read_description(best / "scenario.json")["result"]["epoch"] == 2
    assert export.exists() == final and (not final or model_content(export) == model_content(best))


class KeepFirst(keras.callbacks.Callback):
    """Puts the first best model in the place of the last one."""

    def __init__(self, best: Path) -> None:
        super().__init__()
        self.best = best

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if epoch == 1:
            shutil.copytree(self.best, self.best.with_name("first"))

    def on_train_end(self, logs: Any = None) -> None:
        shutil.rmtree(self.best)
        self.best.with_name("first").rename(self.best)


def test_the_best_model_on_disk_at_the_end_is_the_one_that_was_written_last(tmp_path: Path) -> None:
    best = tmp_path / "run" / "best"
    with pytest.raises(TrainingError, match="best does not give what the model in memory gives: its output 'logits'"):
        train_toy(tmp_path / "run", [KeepFirst(best)], best=BestBy("min", "val_loss"), **SMALL)


def test_a_saved_model_that_differs_is_not_kept(tmp_path: Path) -> None:
    with pytest.raises(
        TrainingError,
        match=r"export/saved_model does not give .*: its output 'odd' differs by .* \(tolerance: 0.0001\)",
    ):
        train_toy(tmp_path / "run", scenario=OddScenario, export_final=True, epochs=1, **SMALL)
    assert not (tmp_path / "run" / "export").exists() and (tmp_path / "run" / "best" / "model.keras").is_file()


def test_random_outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Those of Keras depend on a state that can be repeated; others are left out, and named."""
    for way in ("seeded", "random"):
        monkeypatch.setattr(OddGraph, "way", way)
        with caplog.at_level(logging.WARNING, logger="scena"):
            train_toy(tmp_path / way, scenario=OddScenario, epochs=1, **SMALL)
        assert ("The output 'odd' is random, so it is not verified" in caplog.text) == (way == "random")


CALLS: list[int] = []


class ScaledCell(keras.layers.LSTMCell):
    factor = 1.0

    def call(self, *args: Any, **kwargs: Any) -> Any:
        CALLS.append(1)
        outputs, states = super().call(*args, **kwargs)
        return outputs * self.factor, states


def test_a_recurrent_layer_is_traced_once_unless_it_keeps_something_else() -> None:
    x = keras.Input((None, 2), name="x")
    rnn = keras.layers.RNN(ScaledCell(3))
    graph = keras.Model({"x": x}, {"y": rnn(x)})
    built: Any = SimpleNamespace(graphs={"default": graph}, layers=lambda: Layers(graph))
    model, inputs = RunningModel(built), {"x": np.linspace(-1, 1, 120, dtype="float32").reshape(2, 30, 2)}

    def run() -> tuple[np.ndarray, int]:
        CALLS.clear()
        return model.outputs(inputs)["default"]["y"], len(CALLS)

    first, traced = run()
    CALLS.clear()
    longer = np.ones((3, 40, 2), "float32")
    of_longer = model.outputs({"x": longer})["default"]["y"]
    assert not CALLS  # the traced layer takes any size
    np.testing.assert_allclose(of_longer, graph({"x": longer})["y"], rtol=1e-5)
    rnn.cell.kernel.assign(2 * rnn.cell.kernel)
    second, repeated = run()
    assert traced > 0 and repeated == 0
    assert np.abs(first - second).max() > 1e-3
    assert not graph.jit_compile  # Keras decides now, as when `model.keras` is written
    assert run()[1] == 0
    rnn.cell.factor = 2.0
    third, again = run()
    assert again > 0
    np.testing.assert_allclose(third, 2 * second, rtol=1e-5)
    np.testing.assert_allclose(third, graph(inputs)["y"], rtol=1e-5, atol=1e-6)


class Kept(keras.layers.Layer):
    """Multiplies by what it keeps, in a list; with a `way`, differently when it is compiled."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way, self.factors = way, [2.0]

    def build(self, shape: Any) -> None:
        self.scale = self.add_weight((), initializer="ones")

    def call(self, x: Any) -> Any:
        CALLS.append(1)
        if self.way == "differs" and not tf.executing_eagerly():
            return x
        if self.way == "cannot" and not tf.executing_eagerly() and CALLS[0] != 0:
            raise ValueError("op by op only")
        return x * self.scale * self.factors[0]


@pytest.mark.parametrize("way", ["", "differs", "cannot"])
def test_a_model_that_runs_often_is_compiled_if_that_gives_the_same(way: str) -> None:
    CALLS[:] = [0]
    x = keras.Input((2,), name="x")
    layer = Kept(way)
    graph = keras.Model({"x": x}, {"y": layer(x)})
    built: Any = SimpleNamespace(graphs={"default": graph}, layers=lambda: Layers(graph))
    model, inputs = RunningModel(built), {"x": np.ones((1, 2), "float32")}

    def calls_until(number: int, factor: float) -> int:
        CALLS.clear()
        for value in range(number):
            layer.scale.assign(value)
            assert model.outputs(inputs)["default"]["y"].tolist() == [[factor * value] * 2]
        return len(CALLS)

    assert calls_until(OFTEN, 2.0) == OFTEN + 1
    assert calls_until(5, 2.0) == (5 if way else 0)
    layer.factors[0] = 3.0  # the same list
    assert calls_until(5, 3.0) == 5


def test_a_training_does_not_notice_the_check(tmp_path: Path) -> None:
    """Dropout, noise without a seed, batch statistics, an average of the weights: the same bits with and without."""
    found = []
    for verify in (True, False):
        directory = tmp_path / str(verify)
        train_toy(
            directory,
            scenario=SurvivorScenario,
            verify_export=verify,
            export_final=True,
            ema_decay=0.5,
            epochs=3,
            **SMALL,
        )
        found.append(fingerprint(directory))
    for state in (found[0]["state"], found[1]["state"]):
        state.pop("code", None)
    assert found[0] == found[1]


def test_what_happens_unnoticed_changes_neither_names_nor_random_numbers() -> None:
    def draws() -> list[Any]:
        drawn = [random.random(), np.random.random(), tf.random.normal(()), keras.random.normal(())]
        return [float(value) for value in drawn] + [keras.layers.Dense(1).name]

    def begin() -> None:
        keras.utils.set_random_seed(3)
        keras.random.normal(())  # makes Keras' generator, which a training has from its beginning

    first = keras.layers.Dense(1).name
    begin()
    expected = draws()
    begin()
    with unnoticed():
        draws()
        keras.layers.Dense(3).build((None, 2))
    after = draws()
    assert after[:-1] == expected[:-1]
    numbers = [int(name.removeprefix("dense").removeprefix("_") or 0) for name in (first, expected[-1], after[-1])]
    assert numbers[1:] == [numbers[0] + 1, numbers[0] + 2]
