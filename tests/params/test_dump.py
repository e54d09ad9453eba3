"""Parameters written back as YAML and as a command line give the same parameters again."""

import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scena.params import Params, ParamsError, build, dump_command, dump_words, dump_yaml, load, param, parse, to_raw
from scena.params.cli.words import from_words, to_words
from tests.params.trees import (
    CNN,
    MLP,
    Augment,
    Crop,
    EarlyStoppingParams,
    Every,
    ExponentialDecay,
    HeadParams,
    LearningRateParams,
    Mode,
    Root,
    Wide,
    parsed,
)


def assert_round_trip(root: Root, default: Root, folder: Path) -> None:
    assert parse(default, dump_words(root, default)).params == root
    assert parse(default, shlex.split(dump_command(root, default))).params == root
    for full in (False, True):
        for comments in (False, True):
            text = dump_yaml(root, default, full=full, comments=comments)
            (folder / "run.yaml").write_text(text, encoding="utf-8")
            assert load(default, [folder / "run.yaml"]) == root, text


LINES = [
    "",
    "--trainer.epochs 3 --trainer.force_eager --trainer.output_dir runs/x",
    "--model.graph MLP --model.graph.nodes",
    "--model.graph MLP --model.graph.nodes 1 2 --model.graph.activation elu",
    "--data.processors",
    "--data.processors Crop Augment Crop --data.processors.2.size 1 2 --data.processors.Augment.p 0.25",
    "--data.processors.Augment.p 0.25",
    "--data.weights",
    "--data.weights b=1",
    "--data.heads",
    "--data.heads a=Wide b=Head --data.heads.a.factor 3",
    "--data.heads.main Wide",
    "--early_stopping EarlyStopping --early_stopping.mode max",
    "--learning_rate ExponentialDecay",
    "--learning_rate 1e-5",
    "--trainer.shapes 1,2 3",
    "--trainer.shapes [[],[1]]",
    '--trainer.tag "5"',
    "--trainer.tag 5",
    "--trainer.tag 5.0",
    "--trainer.tag=-inf",
    "--trainer.tag inf",
    '--trainer.note "None"',
    "--trainer.note=--help",
    "--trainer.note=-h",
    "--trainer.note=",
    '--trainer.names ["--a","b"]',
    "--trainer.names [a]",
    '--trainer.names ["[1]"]',
    '--trainer.extra {"a":null}',
    "--trainer.seen",
    "--lav.batch_size 3 --run_eagerly",
]


@pytest.mark.parametrize("line", LINES)
def test_a_command_line_comes_back(line: str, tmp_path: Path) -> None:
    assert_round_trip(parsed(*line.split()).params, Root(), tmp_path)


def test_the_texts() -> None:
    root = parsed(*"--model.graph MLP --model.graph.nodes 5 --data.processors Crop --learning_rate 0.1".split()).params
    assert dump_command(root, Root()) == (
        "--data.processors Crop --model.graph MLP --model.graph.nodes 5 --data.lists train.lst --learning_rate.lr 0.1"
    )
    assert dump_yaml(root, Root()) == (
        "data:\n"
        "  processors:\n"
        "    - Crop\n"
        "  lists: [train.lst]\n"
        "model:\n"
        "  graph:\n"
        "    class: MLP\n"
        "    nodes: [5]\n"
        "learning_rate:\n"
        "  lr: 0.1\n"
    )
    assert dump_yaml(Root(), Root()) == "{}\n"
    assert dump_command(Root(), Root()) == ""
    assert "  epochs: 100  # number of epochs\n" in dump_yaml(Root(), full=True, comments=True)


def test_values_are_written_as_a_user_would_write_them() -> None:
    words = dump_words(parsed("--trainer.shapes", "[[1,2],[3]]", "--trainer.names", '["-ü"]').params, Root())
    assert words == ["--trainer.shapes", "1,2", "3", "--trainer.names", '["-ü"]', "--data.lists", "train.lst"]


def test_a_full_file_names_each_class_that_was_chosen() -> None:
    lines = dump_yaml(Root(), full=True).splitlines()
    assert lines[lines.index("  graph:") + 1] == "    class: CNN"
    assert "trainer:" in lines and "  class: Trainer" not in lines  # there is no other


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("note: Größe", 'note: "Größe"'),
        ("note: 😀", 'note: "😀"'),
        ("note: \x7f\x85", 'note: "\\x7f\\x85"'),
        ("note: \u2028\ufeff", 'note: "\\u2028\\ufeff"'),
        ("note: \ue000\U0010ffff", 'note: "\\ue000\\U0010ffff"'),
    ],
)
def test_any_character_comes_back_and_letters_stay_readable(written: str, text: str, tmp_path: Path) -> None:
    root = Root()
    root.trainer.source.lists = [Path("x")]
    root.trainer.note = written.removeprefix("note: ")
    assert f"  {text}\n" in dump_yaml(root)
    assert_round_trip(root, Root(), tmp_path)


@pytest.mark.parametrize("char", ["\ud800", "\udfff"])
def test_half_a_character_cannot_be_written(char: str) -> None:
    root = Root()
    root.trainer.note = char
    with pytest.raises(ParamsError, match=rf"not valid Unicode, U\+{ord(char):04X}: it cannot be written to a file"):
        dump_yaml(root)


class Source(Params, abstract=True):
    pass


class Files(Source):
    folder: str = "a"


class Download(Source):
    address: str = "b"


class Steps(Params, abstract=True):
    pass


class Few(Steps):
    few: int = 1


class Many(Steps):
    many: int = 1


class Inner(Params):
    source: Source = param(Files(), flat="data")


class Shared(Params):
    inner: Inner
    steps: Steps = param(Few(), flat="data")


def test_two_params_objects_share_a_name_at_the_root(tmp_path: Path) -> None:
    changed = Shared(inner=Inner(source=Download(address="x")), steps=Many(many=7))
    words = dump_words(changed, Shared())
    assert parse(Shared(), words).params == changed
    assert parse(Shared(), "--data Download --data.address x --steps Many --data.many 7".split()).params == changed
    (tmp_path / "run.yaml").write_text(dump_yaml(changed, Shared()))
    assert load(Shared(), [tmp_path / "run.yaml"]) == changed
    unchanged_class = Shared(inner=Inner(source=Files(folder="x")), steps=Few(few=7))
    assert dump_yaml(unchanged_class, Shared()) == "data:\n  folder: x\n  few: 7\n"


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    [
        "None",
        "null",
        "true",
        "no",
        "1e-4",
        "--x",
        "-h",
        "[]",
        "[1]",
        "{}",
        "a=b",
        "a,b",
        " ",
        "~",
        "0x1",
        "'",
        '"',
        '"a"',
        ".5",
        "#",
        "- a",
        "x: y",
        "&a",
        "*a",
        "!t",
        "%",
        "\n",
    ]
)
numbers = st.floats(allow_nan=False)
values: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers.filter(lambda number: abs(number) < 1e300) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=5,
)
names = st.from_regex(r"[a-z]{1,5}", fullmatch=True)
graphs = st.builds(
    CNN, filters=st.lists(st.integers(1, 2**63 - 1), max_size=3), dense=st.integers(1, 2**63 - 1)
) | st.builds(MLP, nodes=st.lists(st.integers(), max_size=2), activation=text)
processors = st.builds(Augment, p=st.floats(0, 1)) | st.builds(Crop, size=st.tuples(st.integers(), st.integers()))
heads = st.builds(HeadParams, units=st.integers()) | st.builds(Wide, units=st.integers(), factor=numbers)


@st.composite
def roots(draw: st.DrawFn) -> Root:
    root = Root()
    trainer = root.trainer
    trainer.epochs = draw(st.integers(1, 2**63 - 1))
    trainer.output_dir = draw(
        st.none() | st.builds(Path, text.filter(lambda path: path not in ("", "None") and "\0" not in path))
    )
    trainer.val_every = draw(st.builds(Every, st.integers(0), st.sampled_from(["epochs", "min"])))
    trainer.shapes = draw(st.lists(st.lists(st.integers(), max_size=3), max_size=3))
    trainer.tag = draw(st.none() | st.integers() | numbers | text)
    trainer.note = draw(st.none() | text)
    trainer.names = draw(st.lists(text, max_size=3))
    trainer.extra = draw(values)
    trainer.seen = draw(st.sets(st.integers(), max_size=3))
    trainer.force_eager = draw(st.booleans())
    trainer.source.lists = draw(
        st.lists(st.builds(Path, text.filter(lambda path: path != "" and "\0" not in path)), max_size=2)
    )
    trainer.learning_rate = draw(
        st.builds(LearningRateParams, lr=st.floats(0, exclude_min=True, allow_infinity=False))
        | st.builds(ExponentialDecay, decay=numbers)
    )
    trainer.early_stopping = draw(st.none() | st.builds(EarlyStoppingParams, mode=st.sampled_from(Mode)))
    trainer.scenario.model.graph = draw(graphs)
    trainer.scenario.data.processors = draw(st.lists(processors, max_size=3))
    trainer.scenario.data.weights = draw(st.dictionaries(text, numbers, max_size=3))
    trainer.scenario.data.heads = draw(st.dictionaries(names, heads, max_size=3))
    return root


@settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(root=roots(), default=roots())
def test_any_parameters_come_back(tmp_path: Path, root: Root, default: Root) -> None:
    assert build(to_raw(root), Root) == root
    assert_round_trip(root, default, tmp_path)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(value=st.lists(st.lists(text, max_size=3), max_size=3))
def test_nested_lists_of_text_come_back(value: list[list[str]]) -> None:
    assert from_words(to_words(value, list[list[str]]), list[list[str]]) == value
