"""`scena predict`: what the scenario prints, JSON lines, several models, an export that was moved."""

import csv
import json
import shutil
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from scena import ArraySpec, Sample
from scena.commands.main import main
from scena.errors import ScenaError
from scena.prediction.answer_files import JsonLines, Table
from scena.prediction.class_names import has_one_class
from tests.toy.params import HalvesParams
from tests.toy.scenario import ToyScenario

COMMAND = ["predict", "--scenario", "tests.toy.scenario", "--pipeline.num_processes", "0"]


def test_the_scenario_prints_each_sample(exports: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMAND, "--export_dir", str(exports[0]), "--data.count", "5", "--pipeline.batch_size", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["0", "1", "2", "3", "4"]
    assert {line.split(": ")[1] for line in lines} <= {"first", "second"}


def test_json_lines(exports: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    flags = ["--data.count", "5", "--out", str(out), "--predict.include_targets"]
    assert main([*COMMAND, "--export_dir", *map(str, exports), *flags]) == 0
    records = [json.loads(line) for line in out.read_text().splitlines()]
    expected = list(ToyScenario.create_predictor(exports).predict(HalvesParams(count=5)))
    assert [record["meta"]["index"] for record in records] == [0, 1, 2, 3, 4]
    for record, sample in zip(records, expected, strict=True):
        assert record["outputs"]["pred"] == pytest.approx(sample.outputs["pred"].tolist(), abs=1e-6)
        assert record["targets"]["y"] in (0, 1)


def test_json_lines_on_the_terminal(exports: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMAND, "--export_dir", str(exports[0]), "--data.count", "2", "--out", "-"]) == 0
    assert [json.loads(line)["meta"] for line in capsys.readouterr().out.splitlines()] == [{"index": 0}, {"index": 1}]


def test_a_file_that_cannot_be_written_is_named(exports: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMAND, "--export_dir", str(exports[0]), "--out", "/nowhere/x.csv"]) == 1
    assert "Cannot write to --out /nowhere/x.csv: there is no folder /nowhere." in capsys.readouterr().err
    for name, received in (("answers.xlsx", ".xlsx"), ("answers", "no suffix")):
        assert main(["predict", "nowhere", "--out", name]) == 1  # before anything is loaded
        assert capsys.readouterr().err == (
            f"scena predict: error: --out {name}: the suffix gives the format: .jsonl (or .json) for JSON lines, .csv for a table. "
            f"Received: {received}.\n"
        )


def test_an_error_keeps_the_older_file_and_what_was_predicted_before_it(
    exports: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    command = [*COMMAND, "--export_dir", str(exports[0]), "--out", str(out), "--pipeline.batch_size", "1"]
    assert main([*command, "--data.count", "3"]) == 0
    older = out.read_text()
    assert main([*command, "--data.count", "9", "--data.bad", "shape"]) == 1  # of the sample 5
    assert "out.jsonl.part" in capsys.readouterr().err and out.read_text() == older
    before = (tmp_path / "out.jsonl.part").read_text()
    assert main([*command, "--data.count", "9"]) == 0
    (tmp_path / "link.jsonl").symlink_to(out)
    assert main([*command[:-3], str(tmp_path / "link.jsonl"), *command[-2:], "--data.count", "9"]) == 0
    assert (tmp_path / "link.jsonl").is_symlink()
    assert before and out.read_text().startswith(before) and not (tmp_path / "out.jsonl.part").exists()


def test_a_table(exports: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    flags = ["--data.count", "5", "--out", str(out), "--predict.include_targets"]
    assert main([*COMMAND, "--export_dir", *map(str, exports), *flags]) == 0
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    expected = list(ToyScenario.create_predictor(exports).predict(HalvesParams(count=5)))
    assert list(rows[0]) == ["meta.index", "logits.0", "logits.1", "pred.0", "pred.1", "target.y"]
    assert [row["meta.index"] for row in rows] == ["0", "1", "2", "3", "4"]
    for row, sample in zip(rows, expected, strict=True):
        assert [float(row["pred.0"]), float(row["pred.1"])] == pytest.approx(sample.outputs["pred"].tolist(), abs=1e-6)
        assert row["target.y"] in ("0", "1")


def written(*samples: Sample) -> str:
    file = StringIO()
    table = Table(file)
    for sample in samples:
        table.write(sample)
    return file.getvalue()


def test_what_a_table_holds() -> None:
    answer = Sample(outputs={"text": 'a "b",\nc', "p": np.float32(0.5), "more": {"n": np.int8(3)}}, meta="x.png")
    assert written(answer) == 'meta,text,p,more.n\nx.png,"a ""b"",\nc",0.5,3\n'
    assert written(Sample(outputs=np.arange(2))) == "output.0,output.1\n0,1\n"
    with pytest.raises(ScenaError, match=r"A row of CSV cannot hold 'map': it is nested. Write .jsonl instead"):
        written(Sample(outputs={"map": np.zeros((2, 2))}))
    with pytest.raises(ScenaError, match="cannot hold 'long': it has 5000 values"):
        written(Sample(outputs={"long": np.zeros(5000)}))
    with pytest.raises(
        ScenaError, match=r"Sample 1 does not fit the columns of the first one: a\.2\. A CSV file has the same"
    ):
        written(Sample(outputs={"a": np.zeros(2)}), Sample(outputs={"a": np.zeros(3)}))
    with pytest.raises(ScenaError, match="Two columns of the CSV file would be called 'a.0'"):
        written(Sample(outputs={"a": np.zeros(1), "a.0": 1}))


def test_an_export_can_be_moved(exports: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--data.count", "3", "--out", "-"]
    assert main([*COMMAND, "--export_dir", str(exports[0]), *flags]) == 0
    before = capsys.readouterr().out
    shutil.copytree(exports[0], tmp_path / "elsewhere")
    assert main([*COMMAND, "--export_dir", str(tmp_path / "elsewhere"), *flags]) == 0
    assert capsys.readouterr().out == before


def test_a_limit_of_the_run_that_cuts_other_data_is_said(
    exports: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limited = tmp_path / "limited"
    shutil.copytree(exports[0], limited)
    file = limited / "scenario.json"
    stored = json.loads(file.read_text())
    stored["pipelines"]["val"]["limit"] = 3
    file.write_text(json.dumps(stored))
    said = "Only the first 3 samples, as in the run's validation; all of them: --pipeline.limit None"
    for count, limit, lines in (("2", [], 2), ("5", [], 3), ("5", ["--pipeline.limit", "None"], 5)):
        assert main([*COMMAND, "--export_dir", str(limited), "--data.count", count, *limit]) == 0
        output = capsys.readouterr()
        assert len(output.out.splitlines()) == lines
        assert (said in output.err) == (lines == 3)
    assert main(["lav", *COMMAND[1:3], "--export_dir", str(limited), "--data.count", "5"]) == 0
    assert (
        "Only a choice of 3 samples, as in the run's validation; all of them: --lav.limit None"
        in capsys.readouterr().err
    )


def test_a_sample_with_several_labels_is_given_no_class() -> None:
    several, one = (
        {"tags": ArraySpec((3,), "int32")},
        {"y": ArraySpec((), "int32"), "price": ArraySpec((1,), "float32")},
    )
    assert has_one_class(one) and has_one_class({"y": ArraySpec((1,), "str")})
    assert not has_one_class(several) and not has_one_class({"price": ArraySpec((1,), "float32")})
    answer = Sample(outputs={"tags": np.array([0.9, 0.1, 0.8], "float32")})
    names, file = ["garden", "balcony", "garage"], StringIO()
    Table(file, names, one_class=False).write(answer)
    assert file.getvalue().splitlines()[0] == "tags.garden,tags.balcony,tags.garage"
    lines = StringIO()
    JsonLines(lines, names, one_class=False).write(answer)
    assert list(json.loads(lines.getvalue())["outputs"]) == ["tags"]
    Table(file, names).write(answer)
    assert file.getvalue().splitlines()[-2:] == [
        "tags.garden,tags.balcony,tags.garage,class",
        "0.8999999761581421,0.10000000149011612,0.800000011920929,garden",
    ]
