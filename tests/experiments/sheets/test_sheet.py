"""Reading sheets: the layout in xlsx, CSV and YAML, and what is wrong with it."""

import re
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from scena.errors import ExperimentError
from scena.experiments.sheets.files import read_sheet
from scena.experiments.sheets.sheet import SheetRun

GRID: list[list[Any]] = [
    ["USER", None, "RESULT", "SKIP", "SCRIPT", "ID", "CLEANUP", "PARAMS", None, None, None, None],
    [None, None, None, None, None, None, None, "default", None, "model", "EMPTY", "learning_rate"],
    ["who", "why", None, None, None, None, None, "trainer.epochs", "train.lists:split", "graph", "graph.filters:split:empty", "lr"],
    ["ann", None, 0.9, None, "scena train x", 1, None, 5, "a.lst 'b c.lst'", "CNN", "40 20", 1e-4],
    [None, "test", None, "x", "scena train x", 2, None, 5.0, None, "MLP", None, -1],
    [None] * 12,
    [None, None, None, 0, "other.sh --fast", "three", True, None, None, None, None, None],
]  # fmt: skip
WORDS = {
    "1": "scena train x --trainer.epochs 5 --train.lists a.lst|b@c.lst --model.graph CNN --model.graph.filters 40|20 "
    "--learning_rate.lr 0.0001",
    "2": "scena train x --trainer.epochs 5 --model.graph MLP --model.graph.filters --learning_rate.lr=-1",
    "three": "other.sh --fast --model.graph.filters",
}


def expected(text: str) -> list[str]:
    return [part.replace("@", " ") for word in text.split() for part in word.split("|")]


def check(runs: list[SheetRun]) -> None:
    assert {run.id: run.words() for run in runs} == {key: expected(text) for key, text in WORDS.items()}
    assert [(run.skip, run.cleanup) for run in runs] == [(False, False), (True, False), (False, True)]


def write_xlsx(path: Path, grid: list[list[Any]] = GRID, title: str = "runs") -> Path:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = title
    for row in grid:
        sheet.append(row)
    book.save(path)
    return path


def test_the_layout_in_xlsx(tmp_path: Path) -> None:
    path = write_xlsx(tmp_path / "runs.xlsx")
    runs = read_sheet(path)
    check(runs)
    assert runs[0].user == {"who": "ann"} and runs[0].where == f"{path} row 4"
    check(read_sheet(path, "runs"))
    with pytest.raises(ExperimentError, match=r"has no sheet 'rums' \(did you mean runs\?\); there are: runs"):
        read_sheet(path, "rums")


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_same_as_csv(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "runs.csv"
    text = "\n".join(separator.join("" if cell is None else str(cell) for cell in row) for row in GRID)
    path.write_text(text.replace("5.0", "5"), encoding="utf-8-sig")
    check(read_sheet(path))


YAML = """
script: scena train x
params: {trainer: {epochs: 5}, note: common}
runs:
  - id: 1
    params:
      train.lists: [a.lst, b c.lst]
      model: {graph: {class: CNN, filters: [40, 20]}}
      learning_rate.lr: 1e-4
  - {id: 2, skip: true, cleanup: yes_please, params: {note: own, unset: null, flag: false, less: -1}}
  - {id: three, script: other.sh --fast, user: {who: ann}}
"""


def test_the_same_as_yaml(tmp_path: Path) -> None:
    path = tmp_path / "runs.yaml"
    path.write_text(YAML)
    first, second, third = read_sheet(path)
    assert first.words() == [
        *"scena train x --trainer.epochs 5 --note common --train.lists a.lst".split(), "b c.lst",
        *"--model.graph CNN --model.graph.filters 40 20 --learning_rate.lr 0.0001".split(),
    ]  # fmt: skip
    assert second.words() == "scena train x --trainer.epochs 5 --note own --flag False --less=-1".split()
    assert second.skip and second.cleanup
    assert third.script == ["other.sh", "--fast"] and third.user == {"who": "ann"}


def changed(row: int, column: int, value: Any) -> list[list[Any]]:
    return [[value if (r, c) == (row, column) else cell for c, cell in enumerate(line)] for r, line in enumerate(GRID)]


WRONG = [
    (
        changed(0, 4, "SKRIPT"),
        "row 1 has the heading 'SKRIPT' (did you mean SCRIPT or SKIP?); there are: USER, RESULT, SKIP,",
    ),
    (changed(0, 7, None), "row 1 lacks the heading PARAMS; it has: USER, RESULT, SKIP, SCRIPT, ID, CLEANUP."),
    (changed(0, 7, "SKIP"), "the heading SKIP appears twice in row 1."),
    (changed(3, 5, None), "row 4: the ID is missing."),
    (changed(4, 5, 1), "row 5: the ID 1 appears twice; the first is in"),
    (changed(4, 5, "../x"), "row 5: the ID names a directory, so it has letters, digits,"),
    (
        changed(2, 8, "lists:splti"),
        "row 3 has 'lists:splti', but after the name there may be `:split` and `:empty` only.",
    ),
    (changed(3, 8, "a 'b"), 'row 4: "a \'b" cannot be split into words: No closing quotation.'),
    (changed(3, 7, "=2+3"), "the cell H4 holds a formula, '=2+3'; a sheet of runs holds plain values."),
    (
        changed(2, 7, None),
        "column H has values ('5' in row 4) but no name. Name the parameter in row 3, or move the column",
    ),
    (changed(2, 9, None), "column J has values ('CNN' in row 4) but no name."),
    ([*GRID[:3], [*GRID[3], *[None] * 20, 5]], "column AG has values ('5' in row 4) but no name."),
    (GRID[:2], "a sheet has three rows of headings"),
    (GRID[:3], "there is no run in it."),
]


@pytest.mark.parametrize(("grid", "message"), WRONG, ids=[message for _, message in WRONG])
def test_wrong_sheets(tmp_path: Path, grid: list[list[Any]], message: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        read_sheet(write_xlsx(tmp_path / "runs.xlsx", grid))
    assert message in str(caught.value)


def test_a_value_without_a_name_in_csv(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    file.write_text("SCRIPT,ID,PARAMS,\n,,default,\n,,trainer.epochs,\nscena train x,1,5,0.1\n")
    with pytest.raises(ExperimentError, match=r"runs.csv: column D has values \('0.1' in row 4\) but no name"):
        read_sheet(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "runs: [{id: 1, scirpt: x}]",
            "yaml:1: 'scirpt' does not exist here (did you mean script?); there are: id, script,",
        ),
        ("runs: [{id: 1}]", "run 1: the script is missing."),
        ("script: x", "expected a list of runs"),
        ("script: x\nruns: [3]", "run 1 must hold names and values"),
        ("a: [", "this is not valid YAML"),
    ],
)
def test_wrong_yaml(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "runs.yaml").write_text(text)
    with pytest.raises(ExperimentError) as caught:
        read_sheet(tmp_path / "runs.yaml")
    assert message in str(caught.value)


def test_files_that_are_no_sheets(tmp_path: Path) -> None:
    (tmp_path / "a.xlsx").write_text("no zip")
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(ExperimentError, match="cannot be read as an xlsx file"):
        read_sheet(tmp_path / "a.xlsx")
    with (
        zipfile.ZipFile(write_xlsx(tmp_path / "runs.xlsx")) as whole,
        zipfile.ZipFile(tmp_path / "empty.xlsx", "w") as empty,
    ):
        for name in whole.namelist():
            empty.writestr(name, re.sub(rb"<sheet [^>]*>", b"", whole.read(name)))
    with pytest.raises(ExperimentError, match=r"empty.xlsx has no sheet with cells\."):
        read_sheet(tmp_path / "empty.xlsx")
    with pytest.raises(ExperimentError, match=r"expected a file \.xlsx, \.csv or \.yaml"):
        read_sheet(tmp_path / "a.txt")
    with pytest.raises(ExperimentError, match="There is no file"):
        read_sheet(tmp_path / "none.csv")
