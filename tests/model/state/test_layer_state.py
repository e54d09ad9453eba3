"""What layers keep beside their variables: read through their hooks, kept as plain data, and set in another model."""

import json
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from scena import PipelineMode
from scena.errors import ModelError
from scena.model.state.archive import read_layer_file, write_layer_file
from scena.model.state.layer_state import Layers, LayerState, encode
from scena.storage.run_layout import LAYERS_FILE
from tests.derived.data import Rows
from tests.derived.params import NUMBERS, WORDS, RowsParams
from tests.derived.scenario import DerivedScenario
from tests.training.toy_runs import toy_params


def inputs() -> dict[str, np.ndarray]:
    """Rows that no layer was adapted to."""
    rows = Rows(RowsParams(count=6), PipelineMode.EVALUATION)
    samples = [rows[index] for index in range(6)]
    return {name: np.stack([sample.inputs[name] for sample in samples]) for name in samples[0].inputs}


def created(*kinds: str) -> Any:
    """A scenario with some kinds of layers."""
    params = DerivedScenario.default_params()
    params.model.kinds = list(kinds)
    return DerivedScenario(params)


def outputs(built: Any) -> np.ndarray:
    given = {name: keras.ops.convert_to_tensor(value) for name, value in inputs().items()}
    return np.asarray(built.prediction_model(given, training=False)["logits"])


@pytest.mark.parametrize("kind", [*NUMBERS, *WORDS])
def test_another_model_gives_the_same_outputs(tmp_path: Path, kind: str) -> None:
    scenario = created(kind)
    first, second = scenario.build(), scenario.build()
    scenario.initialise(first, toy_params(tmp_path, DerivedScenario))
    first.prediction_model.save(tmp_path / "model.keras")
    write_layer_file(tmp_path, first.layers().read())
    expected = outputs(first)
    second.load(tmp_path)
    np.testing.assert_array_equal(outputs(second), expected)


def test_a_model_goes_back_to_a_snapshot(tmp_path: Path) -> None:
    scenario = created("normalization", "string", "discretization", "whitening")
    built = scenario.build()
    scenario.initialise(built, toy_params(tmp_path, DerivedScenario))
    before, expected = built.snapshot(), outputs(built)
    graph = built.root.graph
    data = {name: value[:3] for name, value in inputs().items()}
    graph.adapt({**data, "x": data["x"] * 2})
    graph.logits.kernel.assign(graph.logits.kernel + 1)
    assert not np.allclose(outputs(built), expected)
    before.put_back()
    np.testing.assert_array_equal(outputs(built), expected)


def test_layers_that_only_have_variables_are_left_alone() -> None:
    dense = keras.layers.Dense(3)
    dense.build((None, 2))
    lstm = keras.layers.Bidirectional(keras.layers.LSTM(2))
    lstm.build((None, 3, 2))
    model = keras.Sequential([keras.layers.Conv1D(2, 2), keras.layers.BatchNormalization(), keras.layers.Dropout(0.5)])
    model.build((None, 4, 2))
    assert Layers(dense, lstm, model).read() == []


class Named(keras.layers.Layer):
    """Stores words where only numbers can be."""

    def save_own_variables(self, store: Any) -> None:
        store["names"] = ["a", "b"]


def test_words_in_place_of_numbers_are_refused_with_the_way_out() -> None:
    with pytest.raises(ModelError) as error:
        Layers(Named(name="named")).read()
    assert str(error.value) == (
        "named: save_own_variables stores 'names' of the type <U1, and only numbers can be kept. "
        "Write it to a file in save_assets, and read it in load_assets."
    )


def test_a_layer_that_is_not_there_any_more_is_named(tmp_path: Path) -> None:
    scenario = created("string")
    first, second = scenario.build(), created("integer").build()
    scenario.initialise(first, toy_params(tmp_path, DerivedScenario))
    states = first.layers().read()
    with pytest.raises(
        ModelError, match=r"string_lookup.* \(StringLookup\) is stored, and the model has no such layer"
    ):
        second.layers().set(states)
    with pytest.raises(
        ModelError, match=r"the state of .*string_lookup.* is not stored there; it was written by an older"
    ):
        first.layers().set([])


# ---- files that are made to do harm -----------------------------------------------------------------------------------


def described(change: Any) -> Any:
    """Changes the description inside the file."""

    def apply(path: Path) -> None:
        arrays = load_file(path)
        entries = json.loads(arrays["layers"].tobytes())
        change(entries)
        arrays["layers"] = np.frombuffer(json.dumps(entries).encode(), np.uint8)
        save_file(arrays, path)

    return apply


def leading_out(entries: Any) -> None:
    entries[0]["files"] = {"../../evil": None}


def bomb(path: Path) -> None:
    save_file({"layers": np.frombuffer(b"[" * 100_000, np.uint8)}, path)


CORPUS: dict[str, tuple[Any, str]] = {
    "a file elsewhere": (described(leading_out), "damaged|points outside its directory"),
    "a missing array": (described(lambda entries: entries[0].update(values={"more": None})), "damaged"),
    "no list": (described(lambda entries: entries.clear() or entries.append(1)), "damaged"),
    "nesting without end": (bomb, "damaged"),
    "numbers for bytes": (lambda path: save_file({"layers": np.zeros(3, "float32")}, path), "damaged"),
    "no safetensors": (lambda path: path.write_bytes(b"cos\nsystem\n"), "is not a safetensors file"),
    "a link": (lambda path: (path.rename(path.with_name("x")), path.symlink_to("x")), "is not a plain file"),
}


@pytest.mark.parametrize("name", CORPUS)
def test_a_bad_file_is_refused(tmp_path: Path, name: str) -> None:
    state = LayerState(0, "offset", "Offset", values={"factor": np.ones(())}, files={"inner/offset.txt": b"1.0"})
    save_file(encode([state]), tmp_path / LAYERS_FILE)
    assert read_layer_file(tmp_path) == [state]
    make, message = CORPUS[name]
    make(tmp_path / LAYERS_FILE)
    with pytest.raises(ModelError, match=message):
        read_layer_file(tmp_path)
    assert not (tmp_path.parent.parent / "evil").exists()


def test_a_graph_is_checked_before_its_layers_are_adapted(tmp_path: Path) -> None:
    created("discretization", "normalization", "string").check_graph(toy_params(tmp_path, DerivedScenario).gen)
