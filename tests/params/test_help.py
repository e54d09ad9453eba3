"""The help text: the flags of the current selection, grouped; byte for byte at two widths."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import pytest

from scena.params import Params, param, parse, root_of
from scena.params.cli.command_line import current_tree
from scena.params.cli.help import help_text
from tests.params.trees import CNN, Root

SNAPSHOTS = Path(__file__).parent / "snapshots"
ROOT = Path(__file__).parents[2]


class Options(Params):
    params: Path | None = param(None, help="start from stored parameters, 100 %")


def shown(capsys: pytest.CaptureFixture[str], *words: str, width: int = 120) -> str:
    os.environ["COLUMNS"] = str(width)
    try:
        with pytest.raises(SystemExit) as caught:
            parse(Root(), [*words, "--help"], prog="scena train x", description="Tells digits apart.", options=Options)
    finally:
        os.environ["COLUMNS"] = "120"
    assert caught.value.code == 0
    return capsys.readouterr().out


class Batches(Params):
    """How batches are made."""

    size: int = param(8, help="samples of a batch")


class Buckets(Batches):
    """By length."""


class Files(Params, abstract=True):
    """Where samples come from."""


class Lists(Files):
    """Names in text files."""


class Folders(Files):
    """All files."""


class SharedName(Params):
    batches: Batches = param(flat="train", help="how batches are made")
    files: Files = param(Lists(), flat="train", help="where samples come from")


def test_one_flag_chooses_the_class_of_objects_that_share_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(SharedName(), ["--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert text.count("--train CLASS") == 1
    assert "how batches are made (default: Batches) {Batches,Buckets}; or where samples come from" in text
    assert "{Lists,Folders}" in text
    chosen = parse(SharedName(), ["--train", "Folders", "--train.size", "2"]).params
    assert isinstance(chosen.files, Folders) and chosen.batches.size == 2


def help_of(default: Params, capsys: pytest.CaptureFixture[str], *words: str, **details: Any) -> str:
    with pytest.raises(SystemExit):
        parse(default, [*words, "--help"], **details)
    return capsys.readouterr().out


class Types(Params):
    sizes: tuple[int, ...] = param((), help="any number")
    mixed: list[int | str] = param([], help="numbers and texts")
    layers: list[Literal["all"] | int] = param([], help="some or all")
    columns: list = param([], help="whatever you like")  # type: ignore[type-arg]


def test_placeholders_show_the_types_of_values(capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of(Types(), capsys)
    for line in ("--sizes [INT ...]", "--mixed [INT|TEXT ...]", "--layers [{all}|INT ...]", "--columns [VALUE ...]"):
        assert f"  {line} " in text


def test_an_empty_list_of_objects_is_called_empty(capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of(Root(), capsys, "--data.processors")
    assert "the steps, in order (set: empty, by the command line)" in text


def test_parameters_at_the_root_have_a_group_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of(Batches(), capsys)
    assert "\nparameters:\n  How batches are made.\n\n  --size INT " in text


class Copy(Params):
    source: Path = param(required=True, positional="SOURCE", help="what to copy")
    quality: Literal["good", "best"] = param("good", positional="QUALITY", help="how well")


def test_arguments_of_a_command_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of(Batches(), capsys, options=Copy)
    lines = [line.split(maxsplit=1) for line in text.partition("arguments:\n")[2].splitlines()[:2]]
    assert lines == [["SOURCE", "what to copy"], ["QUALITY", "how well (good, best)"]]


class OneEngine(Params):
    engine: str = param("python", choices=["python"], plugin="EngineOfNobody", help="what makes the batches")


class TwoEngines(Params):
    engine: str = param("python", choices=["python", "other"], plugin="EngineOfNobody", help="what makes the batches")


def test_what_plugins_may_add_to_is_shown_once_there_is_a_choice(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--engine" not in help_of(OneEngine(), capsys)
    assert "--engine {python,other}" in help_of(TwoEngines(), capsys)


class Stream(Params):
    batch_size: int = param(8, common=True, help="samples of a batch")
    limit: int = param(0, help="how many of them")


def test_what_many_users_set_stands_first_where_there_is_much(capsys: pytest.CaptureFixture[str]) -> None:
    def common(count: int) -> list[str]:
        parts = {f"graph{number}": CNN() for number in range(count)}
        text = help_of(root_of(train=Stream(), val=Stream(), **parts), capsys)
        return [word for word in text.partition("most used:")[2].partition("options:")[0].split() if word[:2] == "--"]

    assert common(2) == []
    assert common(20) == ["--train.batch_size"]


def test_the_description_is_folded_and_its_examples_are_kept(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    path = f"/data/{'x' * 60}"
    description = (
        f"Trains a network on\nimages or\ntables; --resume-from-checkpoint {path}\nresumes.\n\nExamples:\n  a\n  b"
    )
    lines = help_of(Batches(), capsys, description=description).splitlines()
    assert lines[1:10] == [
        "",
        "Trains a network on images or tables;",
        "--resume-from-checkpoint",
        path,
        "resumes.",
        "",
        "Examples:",
        "  a",
        "  b",
    ]


def test_a_terminal_shows_defaults_in_a_dim_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    reader, writer = pty.openpty()
    with os.fdopen(reader), os.fdopen(writer, "w") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        text = help_text(current_tree(Batches(), []), usage="x")
    assert re.search(r"\x1b\[2(;\d+)*mdefault: 8\x1b\[0m", text)


@pytest.mark.parametrize(
    ("name", "words", "width"),
    [
        ("default_80.txt", "", 80),
        ("default_120.txt", "", 120),
        ("selected_120.txt", "--model.graph MLP --early_stopping EarlyStopping --data.processors Crop Crop --trainer.epochs 3", 120),
    ],
)  # fmt: skip
def test_the_text(name: str, words: str, width: int, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, *words.split(), width=width)
    path = SNAPSHOTS / name
    if os.environ.get("SNAPSHOT_UPDATE"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
    assert max(map(len, text.splitlines())) <= width


def test_only_what_the_selection_accepts_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "--model.graph", "MLP")
    assert "--model.graph.nodes" in text
    assert "--model.graph.filters" not in text
    assert "--trainer.step" not in text  # hidden
    assert "n_epochs" not in text  # an alias
    assert "--early_stopping.n_to_go" not in text


def test_words_after_help_search_the_flags(capsys: pytest.CaptureFixture[str]) -> None:
    def found(*words: str) -> str:
        with pytest.raises(SystemExit):
            parse(Root(), ["--model.graph", "CNN", "--help", *words], options=Options)
        return capsys.readouterr().out

    def flags(text: str) -> list[str]:
        return [line.split()[0] for line in text.splitlines() if line.startswith("  --")]

    assert flags(found("epochs"))[0] == "--trainer.epochs" and "--model" not in found("epochs")
    assert flags(found("stored", "from")) == ["--params"]  # in the help text, all words
    assert flags(found("Filters")) == ["--model.graph.filters"]
    assert found("nodes") == "with another choice:\n  --model.graph.nodes: with --model.graph MLP\n"
    assert found("zebra") == "No flag matches 'zebra'. `--help` alone lists all flags.\n"


@pytest.mark.parametrize(
    "words",
    [
        "--trainer.epochs x",
        "--nothing 3",
        "--learning_rate Wrong",
        "word",
        "--trainer.epochs 3 --trainer.epochs 4",
        "--config none.yaml",
        "--config_set x",
    ],
)
def test_mistakes_do_not_keep_the_help_from_showing(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--model.graph.nodes" in shown(capsys, *words.split(), "--model.graph", "MLP")


PROGRAM = """
import sys
from scena.params import ParamsError, parse
from tests.params.trees import Root
try:
    parse(Root(), sys.argv[1:], prog="x")
except (ParamsError, SystemExit) as end:
    print(end, file=sys.stderr)
print(*sys.modules)
"""

HEAVY = {"numpy", "keras", "tensorflow", "pandas", "rich"}
NOT_FOR_HELP = HEAVY | {"dataclasses", "inspect", "msgspec", "yaml", "logging", "asyncio", "difflib", "shutil"}


@pytest.mark.parametrize(
    ("words", "message", "unwanted"),
    [
        ("--help", "0", NOT_FOR_HELP),
        ("--model.graph MLP --model.graph.nodes 3 -h", "0", NOT_FOR_HELP),
        ("--nothing 1", "--nothing does not exist", HEAVY),
        ("--trainer.epochs x --data.lists a", "--trainer.epochs: expected a whole number, received 'x'", HEAVY),
    ],
)
def test_help_and_errors_load_only_what_they_need(words: str, message: str, unwanted: set[str]) -> None:
    command = [sys.executable, "-c", PROGRAM, *words.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr.strip() == message
    assert not unwanted & set(done.stdout.splitlines()[-1].split())


def test_a_terminal_gets_colours() -> None:
    reader, writer = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, "--help"], cwd=ROOT, stdout=writer, env=environment)
    os.close(writer)
    chunks = []
    while True:
        try:
            chunk = os.read(reader, 65536)
        except OSError:  # the other side is closed
            break
        if not chunk:
            break
        chunks.append(chunk)
    os.close(reader)
    text = b"".join(chunks).decode()
    assert process.wait() == 0
    assert "\x1b[" in text
    assert "--model.graph" in text
