"""Listing the sets of a file, and adding one to it."""

from pathlib import Path

import pytest

from scena.params import ParamsError, load
from scena.params.files.files import add_set, list_sets
from tests.params.trees import Root

SETS = """\
# of the project
default: &D  # a comment
  trainer: {epochs: 3}
big:
  <<: *D
  extends: [default, other.yaml:x]
  learning_rate: 1e-3
empty:
"""


def test_sets_are_listed_with_what_they_extend(tmp_path: Path) -> None:
    path = tmp_path / "sets.yaml"
    path.write_text(SETS)
    found = list_sets(str(path))
    assert [(info.name, info.place.rpartition(":")[2], info.parents, info.keys) for info in found] == [
        ("default", "2", [], ["trainer"]),
        ("big", "4", ["default", "other.yaml:x"], ["trainer", "learning_rate"]),
        ("empty", "8", [], []),
    ]
    path.write_text("trainer: {epochs: 3}\nlearning_rate: 1e-3")
    with pytest.raises(ParamsError, match="yaml:2: 'learning_rate' holds a plain value, so this file holds parameters"):
        list_sets(str(path))


@pytest.mark.parametrize("before", ["", SETS, SETS.rstrip()])
def test_a_set_is_appended_and_the_file_stays_as_it_was(tmp_path: Path, before: str) -> None:
    path = tmp_path / "sets.yaml"
    if before:
        path.write_text(before)
    add_set(path, "saved-1", "trainer:\n  epochs: 9\n  note: |\n    two\n    lines\n", "from runs/1")
    assert path.read_text().startswith(before)
    default = Root()
    default.trainer.source.lists = [Path("x")]
    trainer = load(default, [path], "saved-1").trainer
    assert (trainer.epochs, trainer.note) == (9, "two\nlines\n")
    add_set(path, "nothing", "{}")
    assert [info.name for info in list_sets(str(path))][-2:] == ["saved-1", "nothing"]
    with pytest.raises(ParamsError, match="the file has a set 'nothing' already"):
        add_set(path, "nothing", "{}")
    with pytest.raises(ParamsError, match="the name of a set begins with a letter"):
        add_set(path, "a: b", "{}")


@pytest.mark.parametrize(
    ("before", "between"),
    [(None, ""), ("", ""), ("a: {}\n", "\n"), ("a: {}", "\n\n"), ("a:\n  trainer: {epochs: 3}\n", "\n")],
)
def test_one_empty_line_stands_before_a_set(tmp_path: Path, before: str | None, between: str) -> None:
    path = tmp_path / "sets.yaml"
    if before is not None:
        path.write_text(before)
    add_set(path, "b", "trainer:\n  epochs: 4\n", "from runs/1")
    assert path.read_text() == f"{before or ''}{between}# from runs/1\nb:\n  trainer:\n    epochs: 4\n"
    add_set(path, "c", "{}")
    assert path.read_text().endswith("    epochs: 4\n\nc:\n")


def test_a_file_in_braces_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "sets.yaml"
    path.write_text("{a: {trainer: {epochs: 3}}}\n")
    with pytest.raises(ParamsError):
        add_set(path, "b", "trainer: {epochs: 4}")
    assert path.read_text() == "{a: {trainer: {epochs: 3}}}\n"
    assert [file.name for file in tmp_path.iterdir()] == ["sets.yaml"]
