"""`scena cv` on real trainings: folds, out-of-fold predictions, the ensemble, and what it refuses."""

import json
import math
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from scena import Sample
from scena.commands.main import main
from scena.data.image.params import WriteImagesParams
from scena.data.image.writer import write_images
from scena.data.params import FoldParams, FoldSourceParams, PipelineMode
from scena.data.sources.fold import FoldSource, open_pool, write_folds
from scena.data.sources.params import (
    ArrayGeneratorParams,
    ImageFilesParams,
    ImageRecordsParams,
    ListFileGeneratorParams,
    RowGeneratorParams,
)
from scena.errors import DataError, ExperimentError, ScenarioError, TrainingError
from scena.evaluation.dump import read_dump
from scena.experiments.cross_validation import CrossValidation, values_at
from scena.experiments.stored_run import read_history
from scena.scenario.ensemble import members
from scena.training.prepare import check_fold
from tests.data.image.pictures import class_folders
from tests.experiments.program import ROOT, scena, start
from tests.prediction.http_service import ask, started
from tests.toy.params import HalvesParams
from tests.toy.scenario import ToyScenario
from tests.zygote import Zygote

COMMAND = (
    "cv tests.toy --folds 2 --stratify targets.y --trainer.epochs 1 --data.count 40 --trainer.random_seed 3 --cpus 2"
)


def cv(zygote: Zygote, folder: Path) -> str:
    """What the command prints in a folder."""
    log, errors = folder / "out", folder / "err"
    log.unlink(missing_ok=True)
    environment = {"PYTHONPATH": str(ROOT)}
    status = zygote.run(*COMMAND.split(), log=log, errors=errors, folder=folder, environment=environment)
    assert status == 0, errors.read_text()
    return log.read_text()


@pytest.fixture(scope="module")
def done(zygote: Zygote, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A finished cross-validation, and what it printed."""
    folder = tmp_path_factory.mktemp("cv")
    return folder / "cv" / "toy", cv(zygote, folder)


def test_each_fold_is_tested_by_a_model_that_has_not_seen_it(done: tuple[Path, str]) -> None:
    output, text = done
    assert text.splitlines()[0].split() == ["samples", "loss", "acc"]
    assert "widened for the training samples that folds share" in text
    assert "is chosen on the scenario's validation data (Halves), which is in no fold" in " ".join(text.split())
    folds = np.array(json.loads((output / "folds.json").read_text())["folds"])[0]
    assert Counter(folds.tolist()) == {0: 20, 1: 20}
    samples = [sample for _, _, sample in read_dump(output / "out_of_fold.jsonl")]
    assert [sample.meta["index"] for sample in samples] == list(range(40))
    # the prediction of each sample is that of the model whose training left it out
    predictors = [ToyScenario.create_predictor(output / "runs" / f"fold-{n}" / "best") for n in (1, 2)]
    pool = open_pool(HalvesParams(count=40))
    for index in (0, 7, 33):
        own, other = predictors[folds[index]], predictors[1 - folds[index]]
        expected = own.predict_sample(pool[index]).outputs["pred"]
        assert np.allclose(samples[index].outputs["pred"], expected, atol=1e-5)
        assert not np.allclose(samples[index].outputs["pred"], other.predict_sample(pool[index]).outputs["pred"])
    results = json.loads((output / "results.json").read_text())
    assert list(results["folds"]) == ["fold-1", "fold-2"] and results["summary"]["acc"]["n"] == 2
    assert (output / "report" / "index.html").is_file()


def test_the_ensemble_is_used_like_an_export(done: tuple[Path, str], zygote: Zygote, tmp_path: Path) -> None:
    moved = tmp_path / "ensemble"
    shutil.copytree(done[0] / "ensemble", moved)
    assert json.loads((moved / "ensemble.json").read_text())["voter"] == "Voter"
    file, out = tmp_path / "lav.json", tmp_path / "out.jsonl"
    assert main(["lav", str(moved), "--data.count", "9", "--json", str(file)]) == 0
    assert list(json.loads(file.read_text()))[-1] == "voted"
    assert main(["predict", str(moved), "--data.count", "5", "--out", str(out)]) == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    single = [ToyScenario.create_predictor(path) for path in members(moved)]
    pool = HalvesParams(count=5).create(PipelineMode.EVALUATION)
    mean = np.mean([one.predict_sample(pool[0]).outputs["pred"] for one in single], axis=0)
    assert len(rows) == 5 and np.allclose(rows[0]["outputs"]["pred"], mean, atol=1e-5)
    assert np.allclose(ToyScenario.create_predictor(moved).predict_sample(pool[0]).outputs["pred"], mean, atol=1e-5)
    with started(zygote, str(moved), log=tmp_path / "served") as (process, port):
        address = next(path for path in ask(port, "/openapi.json")[1]["paths"] if path.endswith(":predict"))
        status, answer = ask(port, address, {"instances": [{"x": pool[0].inputs["x"].tolist()}]})
        assert status == 200 and np.allclose(answer["predictions"][0]["pred"], mean, atol=1e-5)
        process.kill()
    shutil.rmtree(moved / "fold-2")
    with pytest.raises(ScenarioError, match="not complete: its member fold-2 is missing"):
        members(moved)
    (moved / "ensemble.json").write_text('{"format": 1, "members": ["../other"]}')
    with pytest.raises(ScenarioError, match="names of folders in it"):
        members(moved)


@pytest.mark.long
def test_the_same_command_repeats_no_run(done: tuple[Path, str], zygote: Zygote) -> None:
    output, text = done
    logs = {path: path.read_bytes() for path in (output / "logs").iterdir()}
    assert cv(zygote, output.parents[1]) == text
    assert {path: path.read_bytes() for path in (output / "logs").iterdir()} == logs


@pytest.mark.long
def test_a_killed_cross_validation_ends_with_the_same_results(done: tuple[Path, str], tmp_path: Path) -> None:
    """SIGKILL of the command while its folds train, at several moments; its trainings end with it and are resumed."""
    chance, kills, output = random.Random(3), 0, tmp_path / "cv" / "toy"
    for _ in range(6):
        process = start(COMMAND, tmp_path)
        until = time.monotonic() + chance.uniform(2, 40)
        while process.poll() is None and time.monotonic() < until and not (output / "ensemble").exists():
            time.sleep(0.05)
        if process.poll() is None:
            process.kill()
            kills += 1
        process.communicate()
    ended = scena(COMMAND, tmp_path)
    print(f"{kills} kills")
    assert kills >= 2 and ended.stdout == done[1]
    for name in ("folds.json", "results.json"):
        assert (output / name).read_bytes() == (done[0] / name).read_bytes()
    found, expected = ([sample for _, _, sample in read_dump(one / "out_of_fold.jsonl")] for one in (output, done[0]))
    assert repr(found) == repr(expected)
    for fold in ("fold-1", "fold-2"):
        rows = [read_history(one / "runs" / fold) for one in (output, done[0])]
        for row in (*rows[0], *rows[1]):
            del row["seconds"]
        assert rows[0] == rows[1]


def test_another_cross_validation_needs_another_folder(
    done: tuple[Path, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(done[0].parents[1])
    assert main(COMMAND.replace("--folds 2", "--folds 3").split()) == 1
    other = capsys.readouterr().err
    assert "holds another cross-validation (number of folds: 2 before, 3 now). Choose another --output." in other
    assert main([*COMMAND.split(), "--model.units", "9"]) == 1
    assert "its parameters have changed since it was started; choose another --output" in capsys.readouterr().err


@pytest.fixture
def folds(tmp_path: Path) -> CrossValidation:
    drawn = CrossValidation(HalvesParams(count=30), tmp_path, 3, 2, 0, None, None)
    drawn.store()
    return drawn


def test_training_and_test_samples_of_a_fold_are_the_source_without_overlap(folds: CrossValidation) -> None:
    for fold in folds.folds:
        test = FoldSource(folds.test_source(fold), PipelineMode.EVALUATION)
        train: Any = FoldParams(file=str(folds.file), digest=folds.digest, repeat=fold.repeat, number=fold.number).of(
            HalvesParams(count=30)
        )
        rest = FoldSource(train, PipelineMode.TRAINING)
        assert sorted([*test.indices, *rest.indices]) == list(range(30)) and len(test) == 10
        assert test[3].meta["index"] == test.indices[3]
        assert np.array_equal(test[3].inputs["x"], open_pool(HalvesParams(count=30))[test.indices[3]].inputs["x"])
    assert [fold.name for fold in folds.folds[:4]] == [
        "repeat-1-fold-1", "repeat-1-fold-2", "repeat-1-fold-3", "repeat-2-fold-1",
    ]  # fmt: skip
    assert not np.array_equal(folds.assigned[0], folds.assigned[1])


def _list_file(folder: Path) -> tuple[Any, str, str | None]:
    (folder / "all.txt").write_text("".join(f"{number}.png\n" for number in range(24)))
    return ListFileGeneratorParams(lists=[str(folder / "all.txt")]), "", None


def _table(folder: Path) -> tuple[Any, str, str | None]:
    rows = "".join(f"{number},{number % 2},site {number % 8}\n" for number in range(24))
    (folder / "all.csv").write_text(f"x,y,site\n{rows}")
    return RowGeneratorParams(files=[str(folder / "all.csv")], target_columns=["y"]), "targets.y", "inputs.site"


def _arrays(folder: Path) -> tuple[Any, str, str | None]:
    np.savez(folder / "a.npz", x=np.arange(48).reshape(24, 2), y=np.arange(24) % 3)
    return (
        ArrayGeneratorParams(inputs={"x": f"{folder}/a.npz:x"}, targets={"y": f"{folder}/a.npz:y"}),
        "targets.y",
        None,
    )


def _image_folder(folder: Path) -> tuple[Any, str, str | None]:
    images = class_folders(folder / "flowers", {"daisy": 16, "rose": 8})
    return ImageFilesParams(images=images, split="all"), "targets.label", None


def _image_records(folder: Path) -> tuple[Any, str, str | None]:
    write_images(WriteImagesParams(output=folder, name="set", images=_image_folder(folder)[0].images))
    return ImageRecordsParams(records=folder / "set", split="train+validation+test"), "targets.label", None


@pytest.mark.parametrize("make", [_list_file, _table, _arrays, _image_folder, _image_records])
def test_every_source_with_random_access_is_divided(
    make: Callable[[Path], tuple[Any, str, str | None]], tmp_path: Path
) -> None:
    source, stratify, group = make(tmp_path)
    made = CrossValidation(source, tmp_path / "cv", 4, 1, 5, stratify or None, group)
    made.store()
    pool = open_pool(source)
    tested = [FoldSource(made.test_source(fold), PipelineMode.EVALUATION) for fold in made.folds]
    assert sorted(index for one in tested for index in one.indices) == list(range(len(pool)))
    for one in tested:
        assert repr(one[1]) == repr(pool[int(one.indices[1])])
    if group is None:  # whole groups need not be of one size
        assert max(map(len, tested)) - min(map(len, tested)) <= 1
    if stratify:
        classes, folds = values_at(pool, stratify, ""), made.assigned[0]
        splitter = StratifiedKFold(4, shuffle=True, random_state=0)
        expected = [test for _, test in splitter.split(np.zeros(len(pool)), classes)]
        shares = [sorted(Counter(classes[i] for i in fold).items()) for fold in expected]
        assert sorted(sorted(Counter(np.array(classes)[folds == n].tolist()).items()) for n in range(4)) == sorted(
            shares
        )
    if group == "inputs.site":
        sites = values_at(pool, group, "")
        assert all(
            len({fold for fold, own in zip(made.assigned[0], sites, strict=True) if own == site}) == 1 for site in sites
        )


def test_data_or_folds_that_changed_are_noticed(folds: CrossValidation) -> None:
    source = folds.test_source(folds.folds[0])
    with pytest.raises(DataError, match="divides 30 samples, but Halves has 31 now"):
        FoldSource(source.replace(source=HalvesParams(count=31)), PipelineMode.EVALUATION)
    folds.assigned[0, 0] = (folds.assigned[0, 0] + 1) % 3
    folds.file.write_text(json.dumps({"folds": folds.assigned.tolist()}))
    with pytest.raises(DataError, match="does not hold the folds that this run began with"):
        FoldSource(source, PipelineMode.EVALUATION)
    with pytest.raises(DataError, match=r"holds another cross-validation \(seed: None before, 1 now\)"):
        write_folds(folds.file, folds.assigned, {"seed": 1})


def test_pipelines_that_would_train_on_the_tested_fold_are_refused(folds: CrossValidation) -> None:
    gen = ToyScenario.default_pipelines()
    gen.fold = FoldParams(file=str(folds.file), digest=folds.digest)
    gen.train_val.count = 30
    data = ToyScenario(ToyScenario.default_params()).create_data()
    check_fold(gen, gen.train_data(data))
    with pytest.raises(TrainingError, match="does not leave out the fold"):
        check_fold(gen, data.create_pipeline(PipelineMode.TRAINING, gen.train, gen.train_gen()))


def test_streams_and_values_that_are_no_classes_are_refused() -> None:
    with pytest.raises(DataError, match="is a stream, and cross-validation reads samples by their index"):
        open_pool(iter([Sample()]))
    pool = [Sample(targets={"y": np.int32(4), "v": np.zeros(2)}, meta={"site": "A"})]
    assert values_at(pool, "targets.y", "--stratify") == [4] and values_at(pool, "meta.site", "--group") == ["A"]
    pool[0].meta |= {"none": None, "nan": float("nan"), "empty": ""}
    for path, message in {
        "meta.none": r"has no value there \(None\), so its fold cannot be chosen",
        "meta.nan": r"has no value there \(nan\)",
        "meta.empty": r"has no value there \(''\)",
        "targets.z": "a sample .* has no 'z'; it has y, v, before any processor",
        "targets.v": r"an array of shape \(2,\), and a class or group is a single value",
        "meta": "is a dict, and a class or group is a number or a text",
        "gt": "it begins with targets, meta or inputs",
    }.items():
        with pytest.raises(ExperimentError, match=message):
            values_at(pool, path, "--stratify")


def test_validation_data_that_is_in_the_folds_may_not_choose_the_best_epoch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tests.toy.data.Halves.__init__", _same_in_each_mode)
    assert main(["cv", "tests.toy", "--folds", "2"]) == 2
    assert "tested samples would choose the best epoch. Test the last model instead (--last)" in " ".join(
        capsys.readouterr().err.split()
    )
    assert main(["cv", "tests.toy", "--folds", "2", "--last", "--dry_run"]) == 0
    assert "the last model of each run is tested" in capsys.readouterr().err
    shutil.rmtree(tmp_path / "cv")
    for status, *refused in (
        (2, "--train.limit", "5"),
        (2, "--trainer.output_dir", "x"),
        (2, "--folds", "2"),
        (2, "--folds", "1"),
        (1, "--folds", "1000", "--last"),
        (1, "--last", "--stratify", "targets.z"),
        (1, "--last", "--group", "targets.y"),
        (1, "--last", "--cluster", "ray://localhost:1"),
    ):
        if "ray" in refused[-1]:
            monkeypatch.setattr("scena.experiments.schedulers.ray_cluster.connect", _unreachable)
        assert main(["cv", "tests.toy", *refused]) == status, refused
        assert not list(tmp_path.iterdir()), refused


def test_validation_data_in_another_order_is_noticed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tests.toy.data.Halves.__init__", _backwards_in_validation)
    assert main(["cv", "tests.toy", "--folds", "2", "--dry_run"]) == 0
    error = " ".join(capsys.readouterr().err.split())
    assert "If they are the same, tested samples choose the best epoch, and all results are too good" in error
    assert "(Halves), whose first samples have equals in the folds." in error
    assert main(["cv", "tests.toy", "--folds", "3", "--dry_run"]) == 0  # a dry run decides nothing


def _unreachable(address: str) -> Any:
    raise ExperimentError(f"{address} cannot be reached")


def _backwards_in_validation(self: Any, params: HalvesParams, mode: PipelineMode) -> None:
    _same_in_each_mode(self, params, mode)
    if mode != PipelineMode.TRAINING:
        self.numbers = self.numbers[::-1]


def _same_in_each_mode(self: Any, params: HalvesParams, mode: PipelineMode) -> None:
    self.params, self.mode = params, mode
    self.numbers = np.random.default_rng(1).normal(size=(params.count, 8)).astype("float32")


def test_results_of_folds_are_summed_up_whatever_library_they_come_from(folds: CrossValidation) -> None:
    results = {
        fold.name: {"f1": np.float32(0.5), "auc": np.array(0.25), "n": number, "note": "x", "ok": True, "nan": math.nan}
        for number, fold in enumerate(folds.folds)
    }
    results[folds.folds[0].name]["rare"] = 1.0
    found = folds.summary(results)
    assert list(found) == ["f1", "auc", "n", "nan"] and (found["f1"].mean, found["n"].mean) == (0.5, 2.5)
    assert math.isnan(found["nan"].mean) and found["auc"].half_width == 0


def test_fold_sources_keep_strata_and_order(folds: CrossValidation) -> None:
    source = FoldSource(folds.test_source(folds.folds[0]), PipelineMode.TRAINING)
    assert source.strata() is None and source.epoch_order(np.random.default_rng(0), range(len(source))) is None
    source.inner.strata = lambda: list(range(100, 130))
    source.inner.epoch_order = lambda rng, chosen: list(reversed(chosen))
    assert source.strata() == [100 + index for index in source.indices]
    assert source.epoch_order(np.random.default_rng(0), [0, 2, 3]) == [3, 2, 0]
    assert isinstance(folds.test_source(folds.folds[0]), FoldSourceParams)
