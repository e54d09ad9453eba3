"""LAV: the same numbers for any batch size, several lists and models, a subclass, the command line."""

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scena import LAV, DataPipelineParams, LAVCallback, LAVParams, Sample
from scena.commands.main import main
from scena.data.params import DataGeneratorParams
from scena.params import param
from tests.evaluation.light import LightEvaluated
from tests.toy.params import HalvesParams


class CountingLAV(LAV):
    """A LAV of a scenario's own."""

    def extract_dump_data(self, sample: Sample) -> Sample:
        return sample.new_outputs({"pred": sample.outputs["pred"]}).new_inputs(None)


class Evaluated(LightEvaluated):
    """The toy scenario with an evaluator and a LAV of its own."""

    @classmethod
    def lav_cls(cls) -> type[CountingLAV]:
        return CountingLAV


class TwoPartsParams(HalvesParams):
    """A source of two parts."""

    smaller: int = param(7, help="samples of the first part")

    def parts(self) -> dict[str, DataGeneratorParams]:
        return {"few": HalvesParams(count=self.smaller), "all": HalvesParams(count=self.count)}


def lav_params(batch_size: int, **changes: Any) -> LAVParams:
    return LAVParams(pipeline=DataPipelineParams(batch_size=batch_size, num_processes=0), print_limit=0, **changes)


def test_the_batch_size_does_not_matter(exports: list[Path]) -> None:
    source = HalvesParams(count=1001)
    results = [Evaluated.create_lav(exports[0], lav_params(size)).run(source) for size in (1, 16, 333, 5000)]
    assert set(results[0]) == {"loss", "acc", "said", "right"}
    for other in results[1:]:
        assert other == pytest.approx(results[0], abs=1e-6, rel=1e-6)


def test_preloaded_samples_serve_the_next_validation(exports: list[Path], caplog: pytest.LogCaptureFixture) -> None:
    params = lav_params(16)
    expected = Evaluated.create_lav(exports[0], params).run(HalvesParams(count=50))
    params.pipeline.preload = True
    lav = Evaluated.create_lav(exports[0], params)
    source = HalvesParams(count=50)
    with caplog.at_level(logging.INFO, "scena.data"):
        assert lav.run(source) == lav.run(HalvesParams(count=50)) == expected
        source.count = 20
        assert lav.run(source) != expected
    assert [record.args[0] for record in caplog.records if "into memory" in record.msg + str(record.args)] == [50, 20]


def test_run_eagerly_gives_the_same(exports: list[Path]) -> None:
    source = HalvesParams(count=20)
    expected = Evaluated.create_lav(exports[0], lav_params(8)).run(source)
    assert Evaluated.create_lav(exports[0], lav_params(8, run_eagerly=True)).run(source) == pytest.approx(
        expected, abs=1e-6
    )


def test_a_subclass_is_used(exports: list[Path]) -> None:
    lav = Evaluated.create_lav(exports[0], lav_params(4))
    assert isinstance(lav, CountingLAV)
    seen: list[Sample] = []
    lav.run(HalvesParams(count=5), observer=seen.append)
    assert [sample.meta["index"] for sample in seen] == [0, 1, 2, 3, 4]


class Noting(LAVCallback):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def on_lav_begin(self, source: Any) -> None:
        self.events.append(("begin", source.count, type(self.lav).__name__))

    def on_sample_end(self, source: Any, sample: Sample) -> None:
        self.events.append(sample.meta["index"])

    def on_lav_end(self, source: Any, results: dict[str, Any]) -> None:
        self.events.append(("end", sorted(results)))


def test_callbacks_accompany_a_lav(exports: list[Path]) -> None:
    """Those of the scenario in every LAV, those of one run in that one only."""
    always, once = Noting(), Noting()

    class Accompanied(Evaluated):
        def lav_callbacks(self) -> list[LAVCallback]:
            return [always]

    lav = Accompanied.create_lav(exports[0], lav_params(2))
    lav.run(HalvesParams(count=3), callbacks=[once])
    expected = [("begin", 3, "CountingLAV"), 0, 1, 2, ("end", ["acc", "loss", "right", "said"])]
    assert once.events == always.events == expected
    lav.run(HalvesParams(count=3))
    assert once.events == expected and always.events == expected * 2
    always.events.clear()
    Accompanied.create_multi_lav(exports[:1], lav_params(2)).run(HalvesParams(count=3))
    assert always.events == expected


def test_several_models_in_one_pass_give_what_each_gives_alone(exports: list[Path]) -> None:
    source = HalvesParams(count=50)
    progress: list[int] = []
    together = Evaluated.create_multi_lav(exports, lav_params(7)).run(source, progress.append)
    assert sum(progress) == 50  # the data was read once
    for path in exports:
        assert together[str(path)] == pytest.approx(Evaluated.create_lav(path, lav_params(7)).run(source), abs=1e-6)
    assert together[str(exports[0])]["loss"] != together[str(exports[1])]["loss"]
    voted = Evaluated.create_predictor(exports)
    share = np.mean([sample.outputs["pred"].argmax() for sample in voted.predict(source)])
    assert together["voted"]["said"] == pytest.approx(share)
    assert set(together["voted"]) == {"loss", "acc", "said", "right"}


def test_a_pipeline_can_be_used_twice(exports: list[Path]) -> None:
    lav = Evaluated.create_lav(exports[0], lav_params(4))
    assert lav.run(HalvesParams(count=9)) == lav.run(HalvesParams(count=9))


SCENARIO = ["--scenario", "tests.evaluation.test_lav:Evaluated"]


def test_the_command_prints_a_table_and_writes_json(
    exports: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "results.json"
    flags = ["--lav.batch_size", "5", "--lav.num_processes", "0", "--run_eagerly", "--json", str(file)]
    assert main(["lav", str(exports[0]), *SCENARIO, "--data.count", "21", *flags]) == 0
    results = json.loads(file.read_text())
    expected = Evaluated.create_lav(exports[0], lav_params(16)).run(HalvesParams(count=21))
    assert results == {str(exports[0]): pytest.approx(expected, abs=1e-6)}
    output = capsys.readouterr().out
    assert [line.split()[0] for line in output.splitlines()] == ["loss", "acc", "said", "right"]


def test_each_part_of_the_data_has_its_results(exports: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    data = ["--data", "TwoParts", "--data.count", "9"]
    models = [str(path) for path in exports]
    assert main(["lav", *models, *SCENARIO, *data, "--json", "-", "--lav.num_processes", "0"]) == 0
    results = json.loads(capsys.readouterr().out)
    names = [*models, "voted"]
    assert set(results) == {f"{name} {part}" for name in names for part in ("few", "all")}
    expected = Evaluated.create_lav(exports[1], lav_params(16)).run(HalvesParams(count=7))
    assert results[f"{models[1]} few"] == pytest.approx(expected, abs=1e-6)


def test_a_gpu_that_is_not_there_is_named(exports: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lav", str(exports[0]), *SCENARIO, "--lav.device.gpus", "7"]) == 1
    assert "--device.gpus 7: there is no GPU 7" in capsys.readouterr().err


def test_places_that_cannot_be_written_are_named_before_the_work(
    exports: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    for flags, reason in [
        (["--json", f"{tmp_path}/none/x.json"], f"there is no folder {tmp_path}/none"),
        (["--json", str(tmp_path)], "it is a folder"),
        (["--report", f"{tmp_path}/file"], "File exists"),
        (["--plot", f"{tmp_path}/none/x.png"], f"there is no folder {tmp_path}/none"),
    ]:
        assert main(["lav", str(exports[0]), *SCENARIO, *flags]) == 1
        output = capsys.readouterr()
        assert output.err == f"scena lav: error: Cannot write to {' '.join(flags)}: {reason}.\n"
        assert output.out == ""
