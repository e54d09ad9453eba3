"""Files of parameters: names, lines, sets and what they inherit, precedence; and files that are wrong or hostile."""

# ruff: noqa: E501  # a message stands in one piece

import os
from pathlib import Path
from typing import Any

import pytest

from scena.params import Params, ParamsError, load, param, parse
from scena.params.files import yaml_reader
from scena.params.files.entries import Entry, Spellings
from tests.params.trees import CNN, MLP, Augment, Crop, ExponentialDecay, Root, Wide


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(text: str, name: str = "runs.yaml") -> str:
    Path(name).write_text(text, encoding="utf-8")
    return name


def read(text: str, *words: str, name: str = "runs.yaml") -> Root:
    return parse(Root(), ["--config", write(text, name), *words, "--data.lists", "x"]).params


def error(text: str | bytes, *words: str, name: str = "runs.yaml") -> str:
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ParamsError) as caught:
        parse(Root(), ["--config", name, *words, "--data.lists", "x"])
    return str(caught.value)


SHORT = """
trainer:
  n_epochs: 7
  output_dir: ~
  note: None
  tag: 1e-4
  names: [yes, "5", 2020-01-01]
  force_eager: yes
data:
  dataset: mnist
  processors:
    - Crop
    - class: Augment
      p: 1e-1
  heads: {main: {units: 4}, side: Wide}
model:
  graph: {class: MLP, nodes: [1, 2]}
learning_rate: 1e-4
lav: {batch_size: 3}
run_eagerly: true
early_stopping: {patience: 2}
"""

LONG = """
trainer:
  scenario:
    model:
      graph:
        class: MLP
        nodes: [1, 2]
  lav: {pipeline: {batch_size: 3}, run_eagerly: true}
  learning_rate: {lr: 0.0001}
"""


def test_a_file_uses_the_names_of_the_command_line() -> None:
    trainer = read(SHORT).trainer
    assert (trainer.epochs, trainer.output_dir, trainer.note, trainer.tag) == (7, None, None, 1e-4)
    assert trainer.names == ["yes", "5", "2020-01-01"]
    assert trainer.force_eager is True
    assert trainer.source.dataset == "mnist"
    assert trainer.scenario.data.processors == [Crop(), Augment(p=0.1)]
    assert trainer.scenario.data.heads["main"].units == 4
    assert trainer.scenario.data.heads["side"] == Wide()
    assert trainer.scenario.model.graph == MLP(nodes=[1, 2])
    assert trainer.learning_rate.lr == 1e-4
    assert (trainer.lav.pipeline.batch_size, trainer.lav.run_eagerly) == (3, True)
    assert trainer.early_stopping is not None
    assert trainer.early_stopping.n_to_go == 2


def test_a_file_may_use_the_full_nesting() -> None:
    trainer = read(LONG).trainer
    assert trainer.scenario.model.graph == MLP(nodes=[1, 2])
    assert (trainer.lav.pipeline.batch_size, trainer.lav.run_eagerly) == (3, True)
    assert trainer.learning_rate.lr == 1e-4


def test_json_is_read_as_well() -> None:
    text = '{\n\t"trainer": {"note": "\\ud83d\\ude00 \\\\ud83d", "epochs": 3},\n\t"model": {"graph": "MLP"}}'
    trainer = read(text, name="runs.json").trainer
    assert (trainer.note, trainer.epochs, trainer.scenario.model.graph) == ("😀 \\ud83d", 3, MLP())


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_the_command_line_wins_over_files_wherever_it_stands(order: tuple[int, ...]) -> None:
    write("trainer: {epochs: 3, note: file}\nmodel: {graph: {class: MLP, nodes: [5]}}")
    groups = [["--config", "runs.yaml"], ["--trainer.epochs", "4"], ["--data.lists", "x", "--model.graph", "MLP"]]
    trainer = parse(Root(), [word for place in order for word in groups[place]]).params.trainer
    assert (trainer.epochs, trainer.note, trainer.scenario.model.graph) == (4, "file", MLP(nodes=[5]))


def test_later_files_win() -> None:
    write("trainer: {epochs: 3, note: a}\nmodel: {graph: {class: MLP, nodes: [5]}}", "a.yaml")
    write("trainer: {epochs: 4}\nmodel: {graph: {activation: elu}}", "b.yaml")
    for words in (["--config", "a.yaml", "b.yaml"], ["--config", "a.yaml", "--config", "b.yaml"]):
        trainer = parse(Root(), [*words, "--data.lists", "x"]).params.trainer
        assert (trainer.epochs, trainer.note) == (4, "a")
        assert trainer.scenario.model.graph == MLP(nodes=[5], activation="elu")


SETS = """
default: &DEFAULT
  trainer: {epochs: 3}
  model:
    graph: {class: CNN, filters: [7], dense: 5}
gtx1080ti:
  <<: *DEFAULT
  lav: {batch_size: 4}
big:
  extends: default
  model: {graph: {filters: [9]}}
other:
  extends: [big, fast]
  trainer: {note: x}
fast:
  learning_rate: {class: ExponentialDecay, decay: 0.5}
  model: {graph: MLP}
empty:
a: {extends: b}
b: {extends: c}
c: {extends: a}
lost: {extends: bigg}
wrong: {extends: {x: 1}}
plain: 3
"""


def test_sets_are_chosen_by_name() -> None:
    assert read(SETS).trainer.epochs == 3
    assert read(SETS, "--config_set", "gtx1080ti").trainer.lav.pipeline.batch_size == 4
    assert read(SETS, "--config_set", "gtx1080ti").trainer.epochs == 3
    assert read(SETS, "--config-set=empty").trainer.epochs == 100


def test_extends_lays_a_set_over_another() -> None:
    assert read(SETS, "--config_set", "big").trainer.scenario.model.graph == CNN(filters=[9], dense=5)
    other = read(SETS, "--config_set", "other").trainer
    assert (other.epochs, other.note, other.scenario.model.graph) == (3, "x", MLP())
    assert other.learning_rate == ExponentialDecay(decay=0.5)


def test_a_set_and_a_plain_file_go_together() -> None:
    write(SETS)
    write("trainer: {epochs: 9}", "plain.yaml")
    default = Root()
    default.trainer.source.lists = [Path("x")]
    assert load(default, ["runs.yaml", "plain.yaml"], "big").trainer.epochs == 9
    assert load(default, ["plain.yaml", "runs.yaml"], "big").trainer.epochs == 3
    with pytest.raises(ParamsError, match="there is no set 'small'; there are: default, gtx1080ti"):
        load(default, ["plain.yaml", "runs.yaml"], "small")


def test_origins_have_file_line_and_set() -> None:
    write(SETS)
    write("trainer:\n  note: x\n", "plain.yaml")
    words = ["--config", "runs.yaml", "plain.yaml", "--config_set", "big", "--data.lists", "x"]
    origins = parse(Root(), words).origins
    assert origins["model.graph.filters"] == "runs.yaml:11 (set big)"
    assert origins["model.graph.dense"] == "runs.yaml:5 (set default)"
    assert origins["trainer.note"] == "plain.yaml:2"
    assert origins["data.lists"] == "command line"
    assert origins["trainer.step"] == "default"


def test_an_entry_that_was_removed_leaves_no_origin() -> None:
    write("data: {heads: {side: {units: 3}}}", "a.yaml")
    write("data: {heads: {side: null}}", "b.yaml")
    write("data: {heads: {side: {}}}", "c.yaml")
    parsed = parse(Root(), ["--config", "a.yaml", "b.yaml", "c.yaml", "--data.lists", "x"])
    assert parsed.params.trainer.scenario.data.heads["side"].units == 1
    assert parsed.origins["data.heads.side.units"] == "default"


class Stopping(Params):
    patience: int = param(3, aliases=["early.stop"])
    least: float = param(0.0, aliases=["early.least"])


class Run(Params):
    stopping: Stopping


def test_an_alias_with_a_dot_is_a_whole_name_from_the_root() -> None:
    stopping = load(Run(), [write("early: {stop: 4, least: 0.5}")]).stopping
    assert (stopping.patience, stopping.least) == (4, 0.5)
    assert parse(Run(), ["--early.stop", "4"]).params.stopping.patience == 4
    with pytest.raises(ParamsError, match="--stopping.early.stop does not exist"):
        parse(Run(), ["--stopping.early.stop", "4"])
    for text, message in (
        ("early: 4", "early does not exist"),
        ("early: {stpo: 4}", "early.stpo does not exist"),
        ("stopping: {early: {stop: 4}}", "stopping.early does not exist"),
    ):
        with pytest.raises(ParamsError, match=message):
            load(Run(), [write(f"{text}\n" if "stopping" in text else f"{text}\nstopping: {{}}")])


class Timing(Params):
    hours: int = 1


class Job(Params):
    __spellings__ = "tests.params.test_files:FOREIGN"

    name: str = "a"
    epochs: int = 1
    timing: Timing


class Plan(Params):
    job: Job


FOREIGN = Spellings(
    {"job.timing.num_epochs", "job.num_epochs"},
    lambda given: [Entry("job.epochs", entry.value, entry.origin) for entry in given.values()],
)


@pytest.mark.parametrize(
    ("text", "epochs", "hours", "name"),
    [
        ("job: {name: b, num_epochs: 7}", 7, 1, "b"),
        ("job: {name: b, timing: {num_epochs: 7}}", 7, 1, "b"),
        ("job: {name: b, timing: {num_epochs: 7, hours: 3}}", 7, 3, "b"),
        ("job: {class: Job, timing: {class: Timing, num_epochs: 7}, name: b}", 7, 1, "b"),
        ("job: {timing: {num_epochs: 7}}", 7, 1, "a"),
        ("job: {timing: {hours: 3}}", 1, 3, "a"),
    ],
)
def test_names_of_another_system_may_stand_beside_ours(text: str, epochs: int, hours: int, name: str) -> None:
    job = load(Plan(), [write(text)]).job
    assert (job.epochs, job.timing.hours, job.name) == (epochs, hours, name)


SET_ERRORS = [
    ("bigg", "runs.yaml: there is no set 'bigg' (did you mean big?); there are: default, gtx1080ti, big, other, fast, empty, a, b, c, lost, wrong, plain"),
    ("a", "runs.yaml:21: the sets extend each other in a circle: a -> b -> c -> a"),
    ("lost", "runs.yaml:22: the set 'lost' extends 'bigg', which does not exist (did you mean big?); there are: default, gtx1080ti, big, other, fast, empty, a, b, c, lost, wrong, plain"),
    ("wrong", "runs.yaml:23: `extends` of the set 'wrong' expects the name of a set, or a list of names"),
    ("plain", "runs.yaml:24: the set 'plain' must hold names and values"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "message"), SET_ERRORS)
def test_wrong_sets(name: str, message: str) -> None:
    assert error(SETS, "--config_set", name) == message


ERRORS = [
    ("model:\n  graph:\n    fliters: 3", "runs.yaml:3: model.graph.fliters does not exist; did you mean model.graph.filters?"),
    ("model:\n  graph:\n    nodes: 3", "runs.yaml:3: model.graph.nodes does not exist for model.graph CNN; MLP has it: model.graph: MLP"),
    ("trainer: {}\nmodle:\n  graph: CNN", "runs.yaml:2: modle does not exist; did you mean model?"),
    ("modle:\n  graph: CNN", "runs.yaml:1: modle does not exist (did you mean model?)"),
    ("one: {trainer: {}}\ntwo: {}", "runs.yaml: no top-level key is a parameter, so its keys are names of sets. Choose one with --config_set: one, two"),
    ("model:\n  graph: {class: CMN}", "runs.yaml:2: model.graph: unknown BackendParams 'CMN' (did you mean CNN?); choose from: CNN, MLP"),
    ("model:\n  graph: [CNN]", "runs.yaml:2: model.graph: expected one of CNN, MLP, received ['CNN']"),
    ("trainer:\n  epochs: 3.5", "runs.yaml:2: trainer.epochs: expected a whole number, received 3.5"),
    ("trainer:\n  epochs: true", "runs.yaml:2: trainer.epochs: expected a whole number, received True"),
    ("trainer:\n  epochs:", "runs.yaml:2: trainer.epochs: expected a whole number, received None"),
    ("trainer:\n  note: 5", "runs.yaml:2: trainer.note: expected text (put it in quotes to make it a text), received 5"),
    ("trainer:\n  names: [a, 5]", "runs.yaml:2: trainer.names: expected text at position 2 (put it in quotes to make it a text), received 5"),
    ("trainer: 3", "runs.yaml:1: trainer: expected one of Trainer, received 3"),
    ("data:\n  processors:\n  - class: Crop\n    p: 1", "runs.yaml:4: data.processors.0.p does not exist for data.processors.Crop Crop; Augment has it: data.processors.Crop: Augment"),
    ("data:\n  processors: Crop", "runs.yaml:2: data.processors: expected a list of Processor, received 'Crop'"),
    ("data:\n  processors: [Flip]", "runs.yaml:2: data.processors: unknown Processor 'Flip'; choose from: Augment, Crop"),
    ("data:\n  processors: [3]", "runs.yaml:2: data.processors: unknown Processor 3; choose from: Augment, Crop"),
    ("data:\n  heads: [Wide]", "runs.yaml:2: data.heads: expected a mapping of names to HeadParams, received ['Wide']"),
    ("data:\n  heads: {a.b: Wide}", "runs.yaml:2: data.heads: a name in it must not be empty and must not have a dot, received 'a.b'"),
    ("trainer: {epochs: 3}\ntrainer: {epochs: 4}", "runs.yaml:2: the key 'trainer' stands here twice; the first is in line 1"),
    ("trainer:\n  epochs: 3\n  n_epochs: 4", "runs.yaml:3: trainer.n_epochs is given twice, also in runs.yaml:2"),
    ("extends: x\ntrainer: {}", "runs.yaml:1: this file holds parameters and no sets, so `extends` expects a file: FILE or FILE:SET"),
    ("- a\n- b", "runs.yaml: expected names and values (`trainer: …`), but the file is a list"),
    ("word", "runs.yaml: expected names and values (`trainer: …`), but the file is a single value"),
    ("trainer:\n\tepochs: 3", "runs.yaml:2: this is not valid YAML: found character that cannot start any token (indent with spaces instead of a tab)"),
    ("trainer: {epochs: 3\n", "runs.yaml:2: this is not valid YAML: did not find expected ',' or '}'"),
    ("trainer: *x", "runs.yaml:1: *x is not defined above"),
    ("trainer: &x {a: *x}", "runs.yaml:1: *x contains itself"),
    ("a: {<<: 3}", "runs.yaml:1: `<<` expects a mapping (`<<: *NAME`), received 3"),
    ("[a]: 3", "runs.yaml:1: a key must be a plain name"),
    ("a: 1\n---\nb: 2", "runs.yaml:2: a second document begins here (`---`); a file holds one"),
    ("trainer: !!python/object/apply:os.system ['touch hacked']", "runs.yaml:1: the tag 'tag:yaml.org,2002:python/object/apply:os.system' is not allowed: a file of parameters holds plain values only"),
    ("trainer: !x {}", "runs.yaml:1: the tag '!x' is not allowed: a file of parameters holds plain values only"),
    (b"\xff\xfe\x00\x01", "runs.yaml: is not a text file in UTF-8"),
    (b"a: \x00", "runs.yaml: is not a text file: it has NUL characters"),
    ("trainer: " + "[" * 61, "runs.yaml:1: is nested more than 60 levels deep"),
    ("trainer: " + "{a: " * 5000, "runs.yaml:1: is nested more than 60 levels deep"),
    ("trainer: {epochs: " + "9" * 5000 + "}", "runs.yaml:1: the number has too many digits: '99999999999999999999999999999999999999…"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), ERRORS, ids=[str(message) for _, message in ERRORS])
def test_wrong_files(text: str | bytes, message: str) -> None:
    assert error(text) == message
    assert not Path("hacked").exists()


def test_aliases_cannot_blow_up() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert error("\n".join(lines)) == "runs.yaml:5: holds more than 100000 values, with those that aliases stand for"


def test_a_file_has_a_limited_number_of_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_reader, "MAX_VALUES", 7)
    assert read("trainer: {names: [a, b, c, d]}").trainer.names == list("abcd")  # 4 texts, a list and 2 mappings
    assert "more than 7 values" in error("trainer: {names: [a, b, c, d, e]}")


def test_a_mark_makes_a_text_of_any_value() -> None:
    assert read("trainer: {note: ! 5}").trainer.note == "5"
    assert read("trainer: {note: !!str 5}").trainer.note == "5"


def test_files_that_are_no_files(tmp_path: Path) -> None:
    def message(name: str) -> str:
        with pytest.raises(ParamsError) as caught:
            parse(Root(), ["--config", name])
        return str(caught.value)

    write("", "sets.yaml")
    assert message("set.yaml") == "set.yaml: there is no such file (did you mean sets.yaml?)"
    assert message("none/x.yaml") == "none/x.yaml: there is no such file"
    assert message(".") == ".: is a directory, expected a YAML or JSON file"
    assert message("a\0b").startswith("a\0b: cannot be read")
    assert message("/dev/zero") == "/dev/zero: is too large: a file of parameters has at most 10 MB"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission() -> None:
    write("trainer: {}")
    Path("runs.yaml").chmod(0)
    with pytest.raises(ParamsError, match=r"runs\.yaml: cannot be read: Permission denied"):
        parse(Root(), ["--config", "runs.yaml"])


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "{}", "null", "\ufeff"])
def test_an_empty_file_changes_nothing(text: str) -> None:
    assert read(text).trainer.epochs == 100


def test_load_does_from_python_what_config_does() -> None:
    default = Root()
    default.trainer.source.lists = [Path("x")]
    assert load(default, [Path(write(SETS))], "big").trainer.epochs == 3
    assert default.trainer.epochs == 100


def test_help_shows_although_a_file_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    write("trainer: [")
    with pytest.raises(SystemExit):
        parse(Root(), ["--config", "runs.yaml", "--help", "--model.graph", "MLP"])
    assert "--model.graph.nodes" in capsys.readouterr().out


HYPER = """
default: &DEFAULT
  learning_rate: 1e-4
  model: {graph: {class: CNN, filters: [3], dense: 9}}
mobilenet:
  <<: *DEFAULT
  learning_rate: 1e-5
"""
PROJECT = """
default: &DEFAULT
  extends: hyper/hyper.yaml:default
  trainer: {epochs: 1000}
gtx1080ti:
  <<: *DEFAULT
  lav: {batch_size: 512}
thinkpad:
  <<: *DEFAULT
  extends: hyper/hyper.yaml:mobilenet
  trainer: {epochs: 10}
  model: {graph: {dense: 4}}
plain: {extends: [hyper/plain.yaml, hyper/hyper.yaml]}
missing: {extends: nowhere.yaml:x}
typo: {extends: hyper/hyper.yaml:mobilnet}
circle: {extends: hyper/back.yaml:circle}
"""


def write_project() -> None:
    Path("hyper").mkdir()
    write(HYPER, "hyper/hyper.yaml")
    write("trainer: {note: plain}", "hyper/plain.yaml")
    write("circle: {extends: ../project.yaml:circle}", "hyper/back.yaml")
    write(PROJECT, "project.yaml")


def test_a_set_may_stand_on_a_set_of_another_file_relative_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_project()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    def trainer(name: str) -> Any:
        return parse(Root(), ["--config", "../project.yaml", "--config_set", name, "--data.lists", "x"]).params.trainer

    default, gtx, thinkpad, plain = (trainer(name) for name in ("default", "gtx1080ti", "thinkpad", "plain"))
    assert (default.epochs, default.learning_rate.lr, default.scenario.model.graph.dense) == (1000, 1e-4, 9)
    assert (gtx.epochs, gtx.learning_rate.lr, gtx.lav.pipeline.batch_size) == (1000, 1e-4, 512)
    assert (thinkpad.epochs, thinkpad.learning_rate.lr) == (10, 1e-5)
    assert thinkpad.scenario.model.graph == CNN(filters=[3], dense=4)
    assert (plain.note, plain.learning_rate.lr) == ("plain", 1e-4)


def test_wrong_references_to_other_files() -> None:
    write_project()

    def message(name: str) -> str:
        with pytest.raises(ParamsError) as caught:
            parse(Root(), ["--config", f"project.yaml:{name}", "--data.lists", "x"])
        return str(caught.value)

    assert message("missing") == "project.yaml:14: `extends: nowhere.yaml:x`: there is no file nowhere.yaml"
    assert (
        message("typo")
        == "hyper/hyper.yaml: there is no set 'mobilnet' (did you mean mobilenet?); there are: default, mobilenet"
    )
    assert message("circle") == (
        "hyper/back.yaml:1: the sets extend each other in a circle: "
        "project.yaml:circle -> hyper/back.yaml:circle -> project.yaml:circle"
    )


def test_each_file_may_have_a_set_of_its_own() -> None:
    write("a: {trainer: {epochs: 3}}\nb: {trainer: {epochs: 4, note: b}}", "one.yaml")
    write("a: {trainer: {note: two}}\nc: {lav: {batch_size: 9}}", "two.yaml")
    parsed = parse(Root(), ["--config", "one.yaml:b", "two.yaml:c", "two.yaml", "--config_set", "a", "--data.lists=x"])
    trainer = parsed.params.trainer
    assert (trainer.epochs, trainer.note, trainer.lav.pipeline.batch_size) == (4, "two", 9)
    assert parsed.origins["trainer.epochs"] == "one.yaml:2 (set b)"
    write("trainer: {epochs: 8}", "odd:name.yaml")
    assert parse(Root(), ["--config", "odd:name.yaml", "--data.lists=x"]).params.trainer.epochs == 8
    with pytest.raises(ParamsError, match="--config_set a has no effect: each file of --config names its own set"):
        parse(Root(), ["--config", "one.yaml:b", "--config_set", "a"])
    with pytest.raises(ParamsError, match="one.yaml: there is no set 'd'; there are: a, b"):
        parse(Root(), ["--config", "one.yaml:d"])


def test_a_plain_file_may_stand_on_another() -> None:
    write("trainer: {epochs: 3, note: base}", "base.yaml")
    assert read("extends: base.yaml\ntrainer: {note: own}").trainer.note == "own"
    assert read("extends: base.yaml\ntrainer: {note: own}").trainer.epochs == 3
    assert (
        error("extends: runs.yaml\ntrainer: {}")
        == "runs.yaml:1: the sets extend each other in a circle: runs.yaml -> runs.yaml"
    )


NESTED = """
default: &DEFAULT
  trainer: {n_epochs: 7, tag: a}
  model: {n_classes: 4, graph: {class: CNN, filters: [3], dense: 5}}
more: &MORE
  trainer: {tag: b, note: c}
wider:
  <<: *DEFAULT
  trainer: {n_epochs: 8}
  model: {graph: {filters: [9]}}
other:
  <<: [*MORE, *DEFAULT]
  model: {graph: {class: MLP, nodes: [6]}}
"""


def test_merge_keys_merge_nested_mappings() -> None:
    """`<<` keeps what a nested mapping does not name; another class starts anew."""
    wider = read(NESTED, "--config_set", "wider")
    assert (wider.trainer.epochs, wider.trainer.tag, wider.trainer.scenario.model.n_classes) == (8, "a", 4)
    assert wider.trainer.scenario.model.graph == CNN(filters=[9], dense=5)
    other = read(NESTED, "--config_set", "other")
    assert (other.trainer.epochs, other.trainer.tag, other.trainer.note) == (7, "b", "c")
    assert other.trainer.scenario.model.graph == MLP(nodes=[6])
    assert read(NESTED).trainer.epochs == 7  # what was inherited from is as it was
