"""What a command line means: selection, flat and inline names, lists, precedence; and parse_options."""

import math
from pathlib import Path

import pytest

from scena.params import Params, ParamsError, param, parse, parse_options, take_part
from scena.params.cli.command_line import refuse_unknown
from tests.params.trees import CNN, MLP, Augment, Crop, Every, ExponentialDecay, Mode, Root, Wide, parsed, trainer

VALUES = [
    # words, where to look, what is there
    ("--trainer.epochs 3", "epochs", 3),
    ("--trainer.epochs=3", "epochs", 3),
    ("--trainer.epochs 3.0", "epochs", 3),
    ("--trainer.epochs 1e3", "epochs", 1000),
    ("--trainer.n-epochs 4", "epochs", 4),
    ("--trainer.output-dir runs/a", "output_dir", Path("runs/a")),
    ("--trainer.output_dir None", "output_dir", None),
    ("--trainer.val_every 10min", "val_every", Every(10, "min")),
    ("--trainer.val_every 3", "val_every", Every(3, "epochs")),
    ("--trainer.shapes 1,2 3", "shapes", [[1, 2], [3]]),
    ("--trainer.shapes [1,2] [3,4]", "shapes", [[1, 2], [3, 4]]),
    ("--trainer.shapes [[1,2],[]]", "shapes", [[1, 2], []]),
    ("--trainer.shapes", "shapes", []),
    ("--trainer.shapes []", "shapes", []),
    ("--trainer.tag 5", "tag", 5),
    ("--trainer.tag 5.5", "tag", 5.5),
    ("--trainer.tag -1e-3", "tag", -1e-3),
    ("--trainer.tag five", "tag", "five"),
    ('--trainer.tag "5"', "tag", "5"),
    ("--trainer.tag None", "tag", None),
    ("--trainer.note None", "note", None),
    ('--trainer.note "None"', "note", "None"),
    ("--trainer.note=--x", "note", "--x"),
    ("--trainer.note=a=b", "note", "a=b"),
    ("--trainer.note=", "note", ""),
    ("--trainer.note ünï✓", "note", "ünï✓"),
    ("--trainer.names a b", "names", ["a", "b"]),
    ("--trainer.names -a -1", "names", ["-a", "-1"]),
    ('--trainer.names ["--a","b"]', "names", ["--a", "b"]),
    ("--trainer.names [a]", "names", ["[a]"]),
    ("--trainer.extra 3", "extra", 3),
    ('--trainer.extra {"a":[1]}', "extra", {"a": [1]}),
    ("--trainer.extra word", "extra", "word"),
    ("--trainer.seen 3 2 3", "seen", {2, 3}),
    ("--trainer.force_eager", "force_eager", True),
    ("--trainer.force_eager False", "force_eager", False),
    ("--trainer.force_eager yes", "force_eager", True),
    ("--data.dataset mnist", "source.dataset", "mnist"),
    ("--data.lists [a,b]", "source.lists", [Path("a"), Path("b")]),
    ("--data.weights b=2 c=1e-1", "scenario.data.weights", {"b": 2.0, "c": 0.1}),
    ("--data.weights", "scenario.data.weights", {}),
    ('--data.weights {"b":2.5}', "scenario.data.weights", {"b": 2.5}),
    ("--data.weights.b 2", "scenario.data.weights", {"a": 1.0, "b": 2.0}),
    ("--learning_rate 0.0001", "learning_rate.lr", 0.0001),
    ("--learning_rate.lr 1e-4", "learning_rate.lr", 0.0001),
    ("--learning_rate .01", "learning_rate.lr", 0.01),
    ("--learning_rate.lr 1.e-2", "learning_rate.lr", 0.01),
    ("--learning_rate ExponentialDecay --learning_rate.decay inf", "learning_rate.decay", math.inf),
    ("--learning-rate ExponentialDecay --learning-rate.decay 0.95", "learning_rate.decay", 0.95),
    ("--learning_rate.decay -1e-3 --learning_rate ExponentialDecay", "learning_rate.decay", -0.001),
    ("--early_stopping EarlyStopping", "early_stopping.n_to_go", 5),
    ("--early_stopping EarlyStoppingParams --early_stopping.patience 3", "early_stopping.n_to_go", 3),
    ("--early_stopping EarlyStopping --early_stopping.mode max", "early_stopping.mode", Mode.MAX),
    ("--early_stopping EarlyStopping --early_stopping.mode MAX", "early_stopping.mode", Mode.MAX),
    ("--early_stopping None", "early_stopping", None),
    ("--lav.batch_size 3", "lav.pipeline.batch_size", 3),
    ("--lav.pipeline.batch_size 3", "lav.pipeline.batch_size", 3),
    ("--trainer.lav.pipeline.batch_size 3", "lav.pipeline.batch_size", 3),
    ("--run_eagerly", "lav.run_eagerly", True),
    ("--lav.run_eagerly True", "lav.run_eagerly", True),
    ("--trainer.lav.run-eagerly", "lav.run_eagerly", True),
    ("--model.n_classes 3", "scenario.model.n_classes", 3),
    ("--scenario.model.n_classes 3", "scenario.model.n_classes", 3),
    ("--trainer.scenario.model.n_classes 3", "scenario.model.n_classes", 3),
    ("--trainer.scenario.model.graph MLP", "scenario.model.graph", MLP()),
    ("--model.graph MLP --model.graph.nodes 200 100 50", "scenario.model.graph", MLP(nodes=[200, 100, 50])),
    ("--model.graph.nodes 7 --model.graph MLP", "scenario.model.graph", MLP(nodes=[7])),
    ("--model.graph.filters --model.graph CNN", "scenario.model.graph", CNN(filters=[])),
    ("--model.graph tests.params.trees:MLP", "scenario.model.graph", MLP()),
    ("--data.processors Crop", "scenario.data.processors", [Crop()]),
    ("--data.processors", "scenario.data.processors", []),
    ("--data.processors.Augment.p 0.25", "scenario.data.processors", [Augment(p=0.25), Crop()]),
    ("--data.processors.1.size 3 4", "scenario.data.processors", [Augment(), Crop(size=(3, 4))]),
    (
        "--data.processors Crop Crop --data.processors.1.size 1 2",
        "scenario.data.processors",
        [Crop(), Crop(size=(1, 2))],
    ),
    ("--data.processors.0 Crop", "scenario.data.processors", [Crop(), Crop()]),
    ("--data.heads a=Wide b=Head --data.heads.a.factor 3", "scenario.data.heads.a", Wide(factor=3.0)),
    ("--data.heads.main.units 9", "scenario.data.heads.main.units", 9),
    ("--data.heads.main Wide", "scenario.data.heads.main", Wide()),
]


@pytest.mark.parametrize(("words", "path", "expected"), VALUES, ids=[words for words, _, _ in VALUES])
def test_a_flag_sets_a_value(words: str, path: str, expected: object) -> None:
    value: object = trainer(*words.split())
    for name in path.split("."):
        value = value[name] if isinstance(value, dict) else getattr(value, name)
    assert value == expected
    assert type(value) is type(expected)


class Types(Params):
    count: int | str = param(0)
    text: str = param("")
    pair: tuple[int, str | None] = param((0, ""))
    columns: list = param([])  # type: ignore[type-arg]
    groups: list[list[str]] = param([])
    named: tuple[str, int] = param(("", 0))
    limits: tuple[float, bool] = param((0.0, False))


@pytest.mark.parametrize(
    ("words", "name", "expected"),
    [
        ("--count 5", "count", 5),
        ("--count five", "count", "five"),
        ('--text "5"', "text", '"5"'),  # nothing but text fits, so the quotes are part of it
        ("--pair 1 None", "pair", (1, None)),
        ("--columns 1 a", "columns", [1, "a"]),
        ('--groups ["a,b"] c', "groups", [["a,b"], ["c"]]),
        ("--groups a,b c", "groups", [["a", "b"], ["c"]]),
        ('--groups [["a","b"],["c"]]', "groups", [["a", "b"], ["c"]]),
        ("--named 5 3", "named", ("5", 3)),
        ("--limits 0.5 1", "limits", (0.5, True)),
    ],
)
def test_a_type_decides_what_a_word_means(words: str, name: str, expected: object) -> None:
    value = getattr(parse(Types(), words.split()).params, name)
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize("word", ["[[a,b],[c]]", "[[a,b", '[["a","b"],["c"]'])
def test_brackets_in_brackets_are_a_whole_list_of_lists(word: str) -> None:
    with pytest.raises(ParamsError, match=r"texts in quotes"):
        parse(Types(), ["--groups", word])


def test_a_value_with_spaces_stays_one() -> None:
    assert trainer("--trainer.note", "two words").note == "two words"
    assert trainer("--trainer.names", "two words", "").names == ["two words", ""]


def test_not_a_number_is_a_number() -> None:
    assert math.isnan(trainer("--trainer.tag", "nan").tag)  # type: ignore[arg-type]


def test_the_same_class_keeps_its_values_and_another_one_starts_anew() -> None:
    default = Root()
    default.trainer.learning_rate = ExponentialDecay(lr=0.5, decay=0.1)
    default.trainer.source.lists = [Path("x")]
    same = parse(default, ["--learning_rate", "ExponentialDecay"]).params.trainer.learning_rate
    other = parse(default, ["--learning_rate", "LearningRate"]).params.trainer.learning_rate
    assert same == ExponentialDecay(lr=0.5, decay=0.1)
    assert (type(other).__name__, other.lr) == ("LearningRateParams", 0.001)


def test_default_instances_are_not_changed() -> None:
    default = Root()
    before = repr(default)
    parse(default, ["--model.graph", "MLP", "--data.lists", "x", "--data.weights.b", "3"])
    assert repr(default) == before
    assert CNN().filters is not CNN().filters


def test_origins_say_who_set_a_value() -> None:
    origins = parsed("--model.graph", "MLP", "--model.graph.nodes", "3").origins
    assert origins["model.graph"] == origins["model.graph.nodes"] == "command line"
    assert origins["model.graph.activation"] == origins["trainer.epochs"] == "default"
    assert "model.graph.filters" not in origins


def test_raw_is_the_tree_of_the_result() -> None:
    raw = parsed("--trainer.epochs", "7", "--trainer.val_every", "2min").raw
    assert (raw["trainer"]["epochs"], raw["trainer"]["val_every"], raw["trainer"]["class"]) == (7, "2min", "Trainer")


class Options(Params):
    export_dir: list[Path] = param([], help="what to load")
    dump: Path | None = param(None, help="where to write to", aliases=["dump_to"])
    run_eagerly: bool = param(False, help="op by op")
    modules: list[str] = param([], flat="import")


def test_options_are_taken_out_and_the_rest_is_left() -> None:
    argv = [
        "scenario",
        "--export-dir",
        "a",
        "b",
        "--x",
        "1",
        "--run_eagerly",
        "word",
        "--dump_to=c",
        "--y",
        "--import",
        "m",
    ]
    options, rest = parse_options(Options, argv)
    assert options == Options(export_dir=[Path("a"), Path("b")], dump=Path("c"), run_eagerly=True, modules=["m"])
    assert rest == ["scenario", "--x", "1", "word", "--y"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--dump", "--dump: expected a path or None, received nothing"),
        ("--dump a --dump b", "--dump is given twice"),
        ("--run_eagerly=maybe", "--run_eagerly: expected True or False, received 'maybe'"),
    ],
)
def test_wrong_options(words: str, message: str) -> None:
    with pytest.raises(ParamsError) as caught:
        parse_options(Options, words.split())
    assert str(caught.value) == message


def test_options_leave_help_to_parse() -> None:
    assert parse_options(Options, ["--export_dir", "a", "-h"])[1] == ["-h"]


@pytest.mark.parametrize(
    ("word", "expected"),
    [("True", True), ("yes", True), ("on", True), ("1", True), ("False", False), ("no", False), ("off", False), ("0", False)],
)  # fmt: skip
def test_an_option_takes_only_the_words_it_needs(word: str, expected: bool) -> None:
    options, rest = parse_options(Options, ["--run_eagerly", word, "other", "--dump", "to", "more"])
    assert (options.run_eagerly, options.dump) == (expected, Path("to"))
    assert rest == ["other", "more"]


class Copy(Params):
    source: Path = param(required=True, positional="SOURCE", help="what to copy")
    target: Path = param(required=True, positional="TARGET", help="where to")
    force: bool = param(False)


@pytest.mark.parametrize("words", ["a b", "a b --force", "a --force b", "--force a b"])
def test_arguments_keep_their_order_wherever_the_options_stand(words: str) -> None:
    options, rest = parse_options(Copy, words.split())
    assert (options.source, options.target, rest) == (Path("a"), Path("b"), [])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("here", "unexpected 'here': scena devices"),
        ("here there", "unexpected 'here': scena devices"),
        ("--dump_tp x", "--dump_tp does not exist; did you mean --dump?"),  # not --dump_to, which help does not show
        ("--wrong", "--wrong does not exist; see --help"),
    ],
)
def test_a_command_without_flags_refuses_what_is_no_option(words: str, message: str) -> None:
    with pytest.raises(ParamsError) as caught:
        refuse_unknown(words.split(), Options, "scena devices")
    assert str(caught.value) == message


class Limits(Options):
    limit: int = param(0)


@pytest.mark.parametrize(
    ("flag", "meant"),
    [
        ("--dmup", "--dump"),
        ("--dump_tp", "--dump"),
        ("--limt", "--limit"),
        ("--lv.limit", "--lav.limit"),  # a name with a dot is a parameter
    ],
)
def test_an_unknown_flag_may_mean_an_option_of_the_command(flag: str, meant: str) -> None:
    with pytest.raises(ParamsError) as caught:
        parse(Root(), [flag, "1"], options=Limits)
    assert str(caught.value) == f"{flag} does not exist; did you mean {meant}?"


def test_a_command_line_is_divided_by_the_part_that_its_flags_are_of() -> None:
    words = "run --lr 1 --early-stopping A --early_stopping.mode=max --early-stopping.n 2 3 --early 4 -h"
    own, rest = take_part("early_stopping", words.split())
    assert " ".join(own) == "--early-stopping A --early_stopping.mode=max --early-stopping.n 2 3"
    assert " ".join(rest) == "run --lr 1 --early 4 -h"
