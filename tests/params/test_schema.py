"""The JSON schema: files that the command line reads are valid, others are not."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from scena.params import Params, ParamsError, dump_yaml, json_schema, load, param
from scena.params.files.yaml_reader import read
from tests.params.test_dump import LINES, Files, Source, Steps
from tests.params.test_files import LONG, SETS, SHORT
from tests.params.trees import Root, parsed


def validator_of(tree: Params) -> Any:
    schema = json.loads(json.dumps(json_schema(tree, "training")))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.fixture(scope="module")
def validator() -> Any:
    return validator_of(Root())


def is_valid(validator: Any, text: str, folder: Path) -> bool:
    path = folder / "file.yaml"
    path.write_text(text, encoding="utf-8")
    return bool(validator.is_valid(read(str(path))))


GOOD = [
    "",
    "{}",
    SHORT,
    LONG,
    SETS.partition("lost:")[0],
    "model: {graph: MLP}",
    "model: {graph: {class: MLP, nodes: []}}",
    "learning_rate: ExponentialDecay",
    "learning_rate: LearningRateParams",
    "learning_rate: 0.5",
    "learning_rate: {class: ExponentialDecay, decay: 1}",
    "early_stopping: null",
    "data: {processors: {Augment: {p: 0.1}}, dataset: mnist, lists: [a]}",
    "data: {weights: {a: null, b: 3}}",
    "trainer: {extra: {anything: [1]}, val_every: 3, shapes: [[1], []], step: 3}",
]


@pytest.mark.parametrize("text", GOOD)
def test_real_files_are_valid(validator: Any, text: str, tmp_path: Path) -> None:
    assert is_valid(validator, text, tmp_path)


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("full", [False, True])
def test_printed_parameters_are_valid(validator: Any, line: str, full: bool, tmp_path: Path) -> None:
    text = dump_yaml(parsed(*line.split()).params, Root(), full=full, comments=True)
    assert is_valid(validator, text, tmp_path), text


BAD = [
    "[]",
    "3",
    "modle: {}\ntrainer: {}",
    "model: {grahp: CNN}",
    "model: {graph: CMN}",
    "model: {graph: {class: CNN, nodes: [1]}}",
    "model: {graph: {class: MLP, nodes: [x]}}",
    "model: {graph: {class: CNN, filters: [0]}}",
    "model: {n_classes: 1}",
    "trainer: {epochs: 1.5}",
    "trainer: {epochs: null}",
    "trainer: {note: 5}",
    "trainer: {force_eager: maybe}",
    "learning_rate: fast",
    "early_stopping: {mode: best}",
    "data: {dataset: cifar}",
    "data: {processors: Crop}",
    "data: {processors: [Flip]}",
    "data: {processors: [{class: Crop, p: 1}]}",
    "data: {processors: [{class: Crop, size: [1]}]}",
    "data: {processors: [{class: Crop, size: 3}]}",
    "data: {processors: {Augment: {length: 3}}}",
    "data: {heads: {main: Tall}}",
    "data: {weights: [1]}",
    "model: {graph: {class: MLP, nodes: 3}}",
    "run_eagerly: 3",
    "one: {extends: 3}",
    "one: {trainer: {epochs: x}}",
]


@pytest.mark.parametrize("text", BAD)
def test_wrong_files_are_not_valid(validator: Any, text: str, tmp_path: Path) -> None:
    assert not is_valid(validator, text, tmp_path)


class Picky(Params):
    colour: str = param("red", choices=["red", "blue"])
    sides: list[str] = param(["left"], choices=["left", "right"])
    path: tuple[int, ...] = param((1, 2))
    anything: tuple = param(())  # type: ignore[type-arg]
    stop: int = param(3, aliases=["early.stop"])
    depth: int = param(3, aliases=["deep.down.below", "early.depth"])


class Inner(Params):
    n: int = param(1, aliases=["early.n", "nested.m"])


class Outer(Params):
    stop: int = param(3, aliases=["early.stop"])
    nested: Inner = param(Inner())


class Shared(Params):
    source: Source = param(Files(), flat="data")
    steps: Steps | None = param(None, flat="data")


@pytest.mark.parametrize(
    ("tree", "good", "bad"),
    [
        (Picky(), "colour: blue", "colour: green"),
        (Picky(), "sides: [right, left]", "sides: [up]"),
        (Picky(), "sides: []", "sides: left"),
        (Picky(), "path: [1, 2, 3]", "path: [1, x]"),
        (Picky(), "anything: [1, x]", "anything: 3"),
        (Picky(), "early: {stop: 4}", "early: {stop: x}"),
        (Picky(), "deep: {down: {below: 4}}", "deep: {down: {under: 4}}"),
        (Picky(), "early: {stop: 4, depth: 5}", "early: {stop: 4, deep: 5}"),
        (Outer(), "early: {stop: 4, n: 5}", "early: {stop: 4, m: 5}"),
        (Outer(), "nested: {m: 5}", "nested: {o: 5}"),
        (Outer(), "nested: {n: 5}", "nested: {early: {n: 5}}"),
        (Shared(), "data: Download", "data: Upload"),
        (Shared(), "data: Many", "data: 3"),
        (Shared(), "data: {class: Many, many: 3, folder: x}", "data: {class: Most, folder: x}"),
        (Shared(), "data: null", "data: {many: x}"),
    ],
)
def test_the_schema_agrees_with_the_loader(tree: Params, good: str, bad: str, tmp_path: Path) -> None:
    validator = validator_of(tree)
    assert is_valid(validator, good, tmp_path)
    load(tree, [tmp_path / "file.yaml"])
    assert not is_valid(validator, bad, tmp_path)
    with pytest.raises(ParamsError):
        load(tree, [tmp_path / "file.yaml"])


DOTTED = {
    "trainer.epochs: 3": "file.yaml:1: a name in a file has no dots; write `trainer: {epochs: …}` instead of `trainer.epochs: …`",
    "data: {lists: [a]}\nmodel.graph.nodes: [3]": "file.yaml:2: a name in a file has no dots; write `model: {graph: {nodes: …}}`",
    "data: {lists: [a], weights.a: 3}": "file.yaml:1: data: a name in a file has no dots; write `weights: {a: …}`",
    "model: {graph.class: MLP}": "file.yaml:1: model: a name in a file has no dots; write `graph: {class: …}`",
    "default: {trainer.epochs: 3}": "file.yaml:1 (set default): a name in a file has no dots; write `trainer: {epochs: …}`",
}


@pytest.mark.parametrize("text", DOTTED)
def test_schema_and_loader_agree_that_names_are_nested(validator: Any, text: str, tmp_path: Path) -> None:
    assert not is_valid(validator, text, tmp_path)
    with pytest.raises(ParamsError) as caught:
        load(Root(), [tmp_path / "file.yaml"])
    assert str(caught.value).removeprefix(f"{tmp_path}/").startswith(DOTTED[text])


def test_a_key_of_a_dict_of_plain_values_may_have_dots(validator: Any, tmp_path: Path) -> None:
    assert is_valid(validator, "data: {lists: [a], weights: {a.b: 3}}", tmp_path)
    assert load(Root(), [tmp_path / "file.yaml"]).trainer.scenario.data.weights["a.b"] == 3


def test_it_explains_and_knows_defaults() -> None:
    schema = json_schema(Root)
    cnn = schema["$defs"]["CNN"]
    assert cnn["description"] == "Convolutions and a dense layer."
    assert cnn["properties"]["dense"] == {
        "type": "integer",
        "minimum": 1,
        "description": "units of the dense layer after them",
        "default": 100,
    }
    assert schema["$defs"]["parameters"]["properties"]["run_eagerly"]["description"] == "op by op, for debugging"
    assert schema["title"] == "Root"
    assert schema["$schema"] == jsonschema.Draft202012Validator.META_SCHEMA["$id"]
    extends = {name: schema["$defs"][name]["properties"]["extends"]["description"] for name in ("parameters", "set")}
    assert extends == {
        "parameters": "the file, or FILE:SET, this one is laid over",
        "set": "the set, or sets, this one is laid over",
    }
