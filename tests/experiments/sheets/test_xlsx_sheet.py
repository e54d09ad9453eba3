"""Adding a sheet to an xlsx file: everything that is in the file stays, byte for byte."""

import zipfile
from pathlib import Path

import openpyxl
import pytest
from openpyxl.chart import BarChart, Reference
from openpyxl.styles import Font, PatternFill

from scena.errors import ExperimentError
from scena.experiments.sheets.xlsx import add_sheet

ROWS = [["ID", "val_acc", "note"], [1, 0.5, "a < b & c"], ["two", None, "  spaces\x07"], [3, float("nan"), "ü"]]


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """A file with formats, a chart, a comment-like second sheet and a part that nobody knows."""
    path = tmp_path / "runs.xlsx"
    made = openpyxl.Workbook()
    sheet = made.active
    assert sheet is not None
    sheet["A1"] = "USER"
    sheet["A1"].font, sheet["A1"].fill = Font(bold=True, color="FF0000"), PatternFill("solid", fgColor="00FF00")
    sheet.column_dimensions["A"].width = 33
    sheet.append([1, 2])
    chart = BarChart()
    chart.add_data(Reference(sheet, min_col=1, min_row=2, max_col=2))
    sheet.add_chart(chart, "C3")
    made.create_sheet("Results & more")["B2"] = "kept"
    made.save(path)
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("xl/custom/unknown.bin", b"\x00\x01")
    return path


def parts(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as file:
        assert file.testzip() is None
        return {name: file.read(name) for name in file.namelist()}


def test_the_sheet_is_new_and_the_rest_is_as_it_was(book: Path) -> None:
    before = parts(book)
    assert add_sheet(book, "results", ROWS) == "results"
    after = parts(book)
    lists = {"xl/workbook.xml", "xl/_rels/workbook.xml.rels", "[Content_Types].xml"}
    assert {name for name in before if before[name] != after[name]} == lists
    assert set(after) - set(before) == {"xl/worksheets/scena1.xml"}
    assert any(name.startswith("xl/charts/") for name in after)
    read = openpyxl.load_workbook(book)
    assert read.sheetnames == ["Sheet", "Results & more", "results"]
    assert [list(row) for row in read["results"].values] == [
        ["ID", "val_acc", "note"],
        [1, 0.5, "a < b & c"],
        ["two", None, "  spaces"],
        [3, "nan", "ü"],
    ]
    assert read["Sheet"]["A1"].font.bold and read["Sheet"].column_dimensions["A"].width == 33


def test_a_second_sheet_gets_another_name(book: Path) -> None:
    assert [add_sheet(book, "results", ROWS), add_sheet(book, "RESULTS", ROWS[:1])] == ["results", "RESULTS 2"]
    read = openpyxl.load_workbook(book)
    assert read.sheetnames[2:] == ["results", "RESULTS 2"] and read["RESULTS 2"].max_row == 1


def test_many_columns(book: Path) -> None:
    add_sheet(book, "wide", [list(range(800))])
    row = next(iter(openpyxl.load_workbook(book)["wide"].values))
    assert list(row) == list(range(800))


def test_a_file_that_is_no_xlsx_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.xlsx"
    path.write_text("text")
    with pytest.raises(ExperimentError, match="Cannot add a sheet"):
        add_sheet(path, "results", ROWS)
    assert path.read_text() == "text" and len(list(tmp_path.iterdir())) == 1
