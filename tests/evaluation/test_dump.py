"""Dumps: exact, streamable, without the model; evaluated later they give what LAV gave."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scena import Sample
from scena.commands.main import main
from scena.evaluation.dump import DumpError, DumpWriter, from_json, read_dump, to_json

SCENARIO = ["--scenario", "tests.evaluation.test_lav:Evaluated"]
VALUES = [
    np.arange(6, dtype=">i2").reshape(2, 3),
    np.float32(0.1),
    np.array(["ä", "bcd"]),
    np.array([b"x", "y"], dtype=object),
    np.zeros((0, 3)),
    {"a": [1, None, True, "t", b"\x00"], "b": {"c": 1.5}},
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_come_back_exactly(value: Any) -> None:
    back = from_json(json.loads(json.dumps(to_json(value))))
    if isinstance(value, np.ndarray | np.generic):
        assert back.dtype == value.dtype and back.shape == value.shape
        np.testing.assert_array_equal(back, value)
    else:
        assert back == value


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz"])
def test_samples_are_read_one_at_a_time(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with DumpWriter(path, {"note": "n"}) as writer:
        for index in range(3):
            writer.write(Sample(outputs={"p": np.float32(index)}, meta={"index": index}), model="m", data="d")
    samples = read_dump(path)
    model, data, sample = next(samples)
    assert (model, data, sample.meta, sample.targets) == ("m", "d", {"index": 0}, None)
    assert [float(sample.outputs["p"]) for _, _, sample in samples] == [1.0, 2.0]


def test_what_cannot_be_dumped_is_named(tmp_path: Path) -> None:
    with DumpWriter(tmp_path / "x", {}) as writer, pytest.raises(DumpError, match="cannot hold a object"):
        writer.write(Sample(outputs={"x": object()}))


def test_a_file_that_is_no_dump_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").write_text("hello\n")
    assert main(["evaluate-dump", str(tmp_path / "x")]) == 1
    assert "is not a dump of `scena lav --dump`" in capsys.readouterr().err
    assert main(["evaluate-dump", str(tmp_path / "y")]) == 1
    assert "Cannot read the dump" in capsys.readouterr().err


def test_a_dump_that_was_cut_off_is_named(tmp_path: Path) -> None:
    with DumpWriter(tmp_path / "x", {}) as writer:
        writer.write(Sample(outputs={"p": np.float32(1)}))
    text = (tmp_path / "x").read_text()
    (tmp_path / "x").write_text(text[:-9])
    with pytest.raises(DumpError, match="line 3 is damaged"):
        list(read_dump(tmp_path / "x"))


def test_evaluating_a_dump_gives_what_lav_gave(exports: list[Path], tmp_path: Path) -> None:
    """In a process of its own, in which TensorFlow is never loaded."""
    dump, found = tmp_path / "run.jsonl", tmp_path / "lav.json"
    command = ["lav", *map(str, exports), *SCENARIO, "--dump", str(dump), "--json", str(found)]
    assert main([*command, "--lav.num_processes", "0"]) == 0
    later = tmp_path / "later.json"
    code = "import sys; from scena.commands.main import main; s = main(sys.argv[1:]); print('tensorflow' in sys.modules); sys.exit(s)"
    # a module of a scenario imports nothing heavy; the one of these tests does, so its base is named
    scenario = ["--scenario", "tests.evaluation.light:LightEvaluated"]
    done = subprocess.run(
        [sys.executable, "-c", code, "evaluate-dump", str(dump), *scenario, "--json", str(later)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "False"
    lav, evaluated = json.loads(found.read_text()), json.loads(later.read_text())
    assert set(lav) == set(evaluated) == {*map(str, exports), "voted"}
    for name, values in evaluated.items():
        assert values == {key: lav[name][key] for key in ("said", "right")}


def test_a_lav_chooses_what_is_dumped(exports: list[Path], tmp_path: Path) -> None:
    dump = tmp_path / "run.jsonl.gz"
    assert main(["lav", str(exports[0]), *SCENARIO, "--data.count", "3", "--dump", str(dump)]) == 0
    samples = [sample for _, _, sample in read_dump(dump)]
    assert [set(sample.outputs) for sample in samples] == [{"pred"}] * 3
    assert [sample.meta["index"] for sample in samples] == [0, 1, 2]
    assert all(sample.inputs is None and sample.targets["y"].dtype == np.int32 for sample in samples)


def test_a_scenario_without_an_evaluator_is_told_where_metrics_come_from(
    exports: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = tmp_path / "run.jsonl"
    plain = ["--scenario", "tests.toy"]
    assert main(["lav", str(exports[0]), *plain, "--data.count", "4", "--dump", str(dump)]) == 0
    capsys.readouterr()
    assert main(["evaluate-dump", str(dump), *plain]) == 0
    assert "this scenario has no evaluator (evaluator_cls), and losses and metrics need" in capsys.readouterr().out
