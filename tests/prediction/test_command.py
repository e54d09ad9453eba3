"""`scena predict`: what the scenario prints, JSON lines, several models, an export that was moved."""

import json
import shutil
from pathlib import Path

import pytest

from scena.commands.main import main
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
    assert main([*COMMAND, "--export_dir", str(exports[0]), "--out", "/nowhere/x"]) == 1
    assert "Cannot write to --out /nowhere/x: No such file or directory." in capsys.readouterr().err


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
    stored["trainer"]["gen"]["val"]["limit"] = 3
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
