"""Before the first step, a few samples of each mode are tried: mistakes in validation, LAV and names cost no epoch."""

import errno
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras import ops

from scena import Evaluator, Sample, ScenarioBase
from scena.commands.main import main
from scena.data.params import PipelineMode
from scena.errors import DataError, EmptyDataError, ModelError, ScenaError, TrainingError
from scena.prediction.params import OnnxParams, OnnxRuntimeParams
from scena.training.params import BestBy
from scena.training.pipelines import TrainerPipelineParams
from scena.training.prepare import check_initialised
from scena.training.trigger import Trigger
from tests.toy.data import Halves
from tests.toy.model import ToyGraph, ToyModel
from tests.toy.params import HalvesParams, ToyModelParams, ToyScenarioParams
from tests.toy.scenario import ToyScenario
from tests.training.spoilt import SpoiltHalves, SpoiltParams
from tests.training.toy_runs import KeepWeights, toy_params, train_toy, weights_hash


class SanityGraph(ToyGraph):
    def __init__(self, params: Any, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        self.score = keras.layers.Dense(1, name="score")

    def build_graph(self, inputs: Any, training: bool | None = None) -> Any:
        return {**super().build_graph(inputs, training=training), "score": self.score(inputs["x"])}


class SanityModel(ToyModel):
    def __init__(self, params: ToyModelParams) -> None:
        super().__init__(params)
        self.seeds = keras.random.SeedGenerator(1) if params.wrong == "random" else None

    def create_graph(self) -> SanityGraph:
        return SanityGraph(self.params)

    def _loss(self, inputs: Any, targets: Any, outputs: Any) -> Any:
        y = ops.cast(targets["y"], "float32")
        if self.params.wrong == "pairs":
            return {"loss": ops.mean(ops.square(y - outputs["score"]))}
        if self.params.wrong == "classes":
            return {"loss": ops.mean(ops.square(y - outputs["pred"]))}
        unused = 0.0 * ops.squeeze(outputs["score"], -1)  # Keras warns of weights without gradients
        if self.params.wrong == "one hot":
            return {
                "loss": keras.losses.categorical_crossentropy(ops.one_hot(targets["y"], 2), outputs["pred"]) + unused
            }
        if self.params.wrong == "random":
            unused = unused + 0.0 * keras.random.uniform((), seed=self.seeds)
        return {"loss": super()._loss(inputs, targets, outputs)["loss"] + unused}

    def _metric(self, inputs: Any, targets: Any, outputs: Any) -> Any:
        made = super()._metric(inputs, targets, outputs)
        if self.params.wrong == "metric pairs":
            made["close"] = ops.mean(ops.cast(ops.equal(targets["y"], ops.cast(outputs["score"], "int32")), "float32"))
        return made


class SanityModelParams(ToyModelParams, builds=":SanityModel"):
    """A score beside the classes."""


class Wrong(Evaluator[Any]):
    mistake = ""

    def __enter__(self) -> Any:
        self.count = 0
        return self

    def update_state(self, sample: Sample) -> None:
        self.count += 1
        if self.mistake == "key":
            sample.outputs["klass"]

    def result(self) -> dict[str, Any]:
        if self.mistake == "few" and self.count < 64:
            raise ValueError("only one class")
        return {"name": ["a"]} if self.mistake == "list" else {"count": self.count}


class Pipelines(TrainerPipelineParams[SpoiltParams, SpoiltParams]):
    """Two lists of LAV."""

    def lav_gen(self) -> Any:
        return {"a": self.val_source, "b": self.val_source}


class SanityScenario(ScenarioBase[ToyScenarioParams, Pipelines]):
    """The toy scenario with two lists of LAV and an evaluator."""

    @classmethod
    def default_params(cls) -> ToyScenarioParams:
        return ToyScenarioParams(model=SanityModelParams())

    @classmethod
    def evaluator_cls(cls) -> Any:
        return Wrong


@pytest.fixture(autouse=True)
def _reset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SpoiltHalves, "read", [])


class Steps(keras.callbacks.Callback):
    """Counts steps."""

    count = 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.count += 1


def refused(directory: Path, kind: type[ScenaError], **changes: Any) -> str:
    """The message of a training that is refused before its first step, and whose folder is free afterwards."""
    steps = Steps()
    with pytest.raises(kind) as error:
        train_toy(directory / "run", [steps], scenario=SanityScenario, **changes)
    assert steps.count == 0
    assert not (directory / "run").exists()
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_sample_that_fails_names_the_flag(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fault = "--import tests.data.toys --data.pre_proc.processors Fault --data.pre_proc.processors.Fault.at 1"
    assert main(f"train tests.toy {fault} --trainer.output_dir {tmp_path}/run".split()) == 1
    error = capsys.readouterr().err
    assert "this picture is broken" in error and "Set on_error=skip to skip such samples." in error
    assert error.splitlines()[-1] == "The flag: --train.on_error skip or --val.on_error skip"
    assert not (tmp_path / "run").exists()


LAV_ON = {"lav_every_n": Trigger(1)}
BEST = {"export_best": True, "verify_export": False}


def test_a_label_out_of_range_is_named(tmp_path: Path) -> None:
    text = refused(tmp_path, DataError, gen__val_source__bad="evaluation:label")
    assert text == (
        "A label is out of range in the validation: the target 'y' is 7 in the sample with meta {'index': 3}, and there are 2 (0 to 1)."
    )
    text = refused(tmp_path, DataError, gen__train_source__bad="training:label", gen__train__batch_size=64)
    assert "in a training step: the target 'y' is 7 in the sample with meta {'index': 3}" in text


@pytest.mark.parametrize("where", ["training", "evaluation"])
def test_a_label_out_of_range_is_named_though_its_one_hot_vector_is_zero(tmp_path: Path, where: str) -> None:
    source = "train_source" if where == "training" else "val_source"
    bad: dict[str, Any] = {f"gen__{source}__bad": f"{where}:label", "scenario__model__wrong": "one hot"}
    text = refused(tmp_path, DataError, gen__train__batch_size=64, **bad)
    assert text.startswith(
        "A label is out of range: the target 'y' is 7 in the sample with meta {'index': 3}, and there "
    )
    assert "mark it with -1, or set --trainer.sanity_check False" in text


@pytest.mark.parametrize("runtime", ["keras", "onnx"])
def test_lav_names_a_label_out_of_range_though_its_one_hot_vector_is_zero(tmp_path: Path, runtime: str) -> None:
    changes: dict[str, Any] = {"scenario__model__wrong": "one hot", "epochs": 1, "export_final": True}
    if runtime == "onnx":
        changes["export_formats"] = [OnnxParams()]
    train_toy(tmp_path / "run", scenario=SanityScenario, **changes)
    params = SanityScenario.lav_params(metrics=True)
    if runtime == "onnx":
        params.runtime = OnnxRuntimeParams()
    lav = SanityScenario.create_lav(tmp_path / "run/export", params)
    with pytest.raises(
        DataError, match=r"the target 'y' is 7 in the sample with meta {'index': 3}, and there are 2.*lav.check_labels"
    ):
        lav.run(SpoiltParams(bad="evaluation:label"))
    params.check_labels = False
    results = SanityScenario.create_lav(tmp_path / "run/export", params).run(SpoiltParams(bad="evaluation:label"))
    assert results["loss"] > 0


def test_numbers_that_are_not_finite_are_named(tmp_path: Path) -> None:
    text = refused(tmp_path, TrainingError, gen__val_source__bad="evaluation:nan")
    assert "the input 'x' is nan at [0] in the sample with meta {'index': 3}" in text


def test_a_sample_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    text = refused(tmp_path, DataError, gen__val_source__bad="evaluation:key")
    assert "SpoiltHalves failed to read sample 3: KeyError: 'column'" in text


def test_validation_without_samples_is_an_error_at_once(tmp_path: Path) -> None:
    assert "evaluation data is empty" in refused(tmp_path, EmptyDataError, gen__val_source__count=0)
    text = refused(tmp_path, EmptyDataError, gen__val_source__count=5, gen__val__batch_drop_remainder=True)
    assert "fewer than 16 samples gives no batch" in text


def test_pairs_by_accident_are_refused(tmp_path: Path) -> None:
    text = refused(tmp_path, ModelError, scenario__model__wrong="pairs")
    assert "SanityModel._loss pairs each sample with every other one at test_sanity.py:" in text
    assert "target 'y' of shape (batch,) meets output 'score' of shape (batch, 1)" in text
    text = refused(tmp_path, ModelError, scenario__model__wrong="classes", gen__train__batch_size=2)  # of 2 classes
    assert text.startswith("SanityModel._loss works for batches of exactly 2 samples only at test_sanity.py:")
    assert "Dimensions must be equal, but are 10007 and 2" in text
    text = refused(tmp_path, ModelError, scenario__model__wrong="metric pairs")
    assert "SanityModel._metric pairs" in text and "the result has batch × batch values" in text


def test_the_evaluator_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Wrong, "mistake", "key")
    text = refused(tmp_path, TrainingError, **LAV_ON)
    assert (
        "The sanity check fails in LAV of 'a' at " in text and "test_sanity.py:" in text and "KeyError: 'klass'" in text
    )
    monkeypatch.setattr(Wrong, "mistake", "list")
    assert "The result 'name' is neither a number nor" in refused(tmp_path, ModelError, **LAV_ON)
    monkeypatch.setattr(Wrong, "mistake", "few")  # what needs more than a few samples gets them
    with caplog.at_level(logging.WARNING, logger="scena"):
        history = train_toy(tmp_path / "few", scenario=SanityScenario, **LAV_ON).history
    assert "Wrong.result fails on the few samples of the sanity check at test_sanity.py:" in caplog.text
    assert history[0]["lav_a_count"] == 64


def test_best_by_a_flag_is_checked_and_works(tmp_path: Path) -> None:
    text = refused(tmp_path, TrainingError, best=BestBy("min", "val_typo"), **BEST, **LAV_ON)
    assert "chosen by 'val_typo' (--trainer.best), but there are only acc, lav_a_acc, lav_a_count, " in text
    trainer = train_toy(
        tmp_path / "lists",
        scenario=SanityScenario,
        best=BestBy("max", "lav_count"),
        gen__val_source__count=32,
        **BEST,
        **LAV_ON,
    )
    assert trainer.best.value == 32.0 and trainer.best.epoch == 1
    trainer = train_toy(tmp_path / "train", scenario=SanityScenario, best=BestBy.from_param("min:train_loss"), **BEST)
    assert trainer.best.value == min(row["loss"] for row in trainer.history)
    with pytest.raises(ValueError, match="a direction and a value, such as min:val_loss"):
        BestBy.from_param("val_loss")


def test_another_value_that_decides_is_not_compared_with_the_old_one(tmp_path: Path) -> None:
    train_toy(tmp_path / "run", scenario=SanityScenario, best=BestBy("min", "val_loss"), **BEST)
    params = toy_params(tmp_path / "run", SanityScenario, best=BestBy("min", "val_acc"), epochs=3, **BEST)
    trainer = SanityScenario.create_trainer(params)
    trainer.train(resume=True)
    assert trainer.best is not None
    assert (trainer.best.value, trainer.best.epoch) == (trainer.history[2]["val_acc"], 3)


@pytest.mark.parametrize("processes", [0, 1])
def test_the_check_changes_nothing(tmp_path: Path, processes: int) -> None:
    """Weights, history and the order of samples are the same, though the data draws global random numbers."""
    found = []
    for on in (True, False):
        keep = KeepWeights()
        trainer = train_toy(
            tmp_path / str(on),
            [keep],
            scenario=SanityScenario,
            sanity_check=on,
            gen__train__num_processes=processes,
            gen__val__num_processes=processes,
            **LAV_ON,
        )
        rows = [{name: value for name, value in row.items() if name != "seconds"} for row in trainer.history]
        found.append((weights_hash(keep.weights), rows, np.random.random() if processes == 0 else 0))
    assert found[0] == found[1]


def test_it_reads_a_few_samples_only_and_not_on_resume(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = {"gen__val_source__count": 500, "val_every_n": Trigger(2), "epochs": 1, "gen__val__preload": False}
    with caplog.at_level(logging.INFO, logger="scena"):
        train_toy(tmp_path / "run", scenario=SanityScenario, **settings)
        assert "Sanity check: a few samples of training and validation before the first step." in caplog.text
        assert sum(mode is PipelineMode.EVALUATION for mode, _ in SpoiltHalves.read) <= 24
        caplog.clear()
        params = toy_params(tmp_path / "run", SanityScenario, **{**settings, "epochs": 2})
        SanityScenario.create_trainer(params).train(resume=True)
    assert "Sanity check" not in caplog.text


def test_preloaded_data_and_a_cache_are_tried_too(tmp_path: Path) -> None:
    train_toy(tmp_path / "preload", scenario=SanityScenario, preload_data=True, epochs=1, **LAV_ON)
    train_toy(
        tmp_path / "cache", scenario=SanityScenario, gen__val__cache_dir=str(tmp_path / "kept"), epochs=1, **LAV_ON
    )


def test_a_source_that_can_be_read_once_is_left_alone() -> None:
    params = SanityScenario.default_trainer_params()
    data = SanityScenario(params.scenario).create_data()

    def samples() -> Iterator[Sample]:
        yield from (Halves(HalvesParams(count=20), PipelineMode.EVALUATION)[index] for index in range(20))

    once = data.create_pipeline(PipelineMode.EVALUATION, params.gen.val, samples())
    assert once.peek(2, 8) == []
    assert sum(batch.size for batch in once.stream(repeat=False)) == 20
    again = data.create_pipeline(PipelineMode.EVALUATION, params.gen.val, list(samples()))
    assert [batch.size for batch in again.peek(2, 8)] == [8, 8]
    assert sum(batch.size for batch in again.stream(repeat=False)) == 20


def test_whatever_fails_before_the_first_step_leaves_the_folder_free(tmp_path: Path) -> None:
    """Also the folders outside the run's own, and if a user's code ends the program."""

    class Failing(keras.callbacks.Callback):
        def __init__(self, error: BaseException) -> None:
            super().__init__()
            self.error = error

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            raise self.error

    outside = {"log_dir": tmp_path / "logs", "checkpoint_dir": tmp_path / "checkpoints"}
    for error in (RuntimeError("own mistake"), KeyboardInterrupt(), SystemExit(3)):
        with pytest.raises(type(error)):
            train_toy(tmp_path / "run", [Failing(error)], **outside)
    (tmp_path / "taken" / "best").mkdir(parents=True)
    with pytest.raises(TrainingError, match="already holds best of another run"):
        train_toy(tmp_path / "runs" / "run", export_dir=tmp_path / "taken", **outside)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["logs", "taken"]
    assert [path.name for path in (tmp_path / "taken").iterdir()] == ["best"]
    assert [path.name for path in (tmp_path / "logs").rglob("*")] in ([], ["train.log"])
    trainer = train_toy(tmp_path / "run", epochs=1, **outside)
    assert len(trainer.history) == 1


def test_a_directory_that_cannot_be_written_leaves_none_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_halfway(directory: Path) -> None:
        directory.parent.mkdir(parents=True)
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "old").mkdir()
    monkeypatch.setattr("scena.training.directory.make_directory", fail_halfway)
    with pytest.raises(TrainingError, match="No space left on device"):
        train_toy(tmp_path / "old" / "new" / "newer" / "run")
    assert (tmp_path / "old").is_dir() and not list((tmp_path / "old").iterdir())


def test_checkpoints_may_have_a_name(tmp_path: Path) -> None:
    train_toy(tmp_path / "run", epochs=1, checkpoint_name="model.ckpt")
    assert [path.name for path in (tmp_path / "run" / "checkpoint").iterdir()] == ["model.ckpt-4"]
    trainer = ToyScenario.create_trainer(toy_params(tmp_path / "run", epochs=2, checkpoint_name="model.ckpt"))
    assert len(trainer.train(resume=True)) == 2


def test_a_learning_rate_of_zero_changes_nothing(tmp_path: Path) -> None:
    trainer = train_toy(tmp_path / "run", learning_rate__lr=0.0)
    assert trainer.history[0]["val_loss"] == trainer.history[1]["val_loss"]


class BrokenGraph(ToyGraph):
    mistake = ""

    def build_graph(self, inputs: Any, training: bool | None = None) -> Any:
        if self.mistake == "key":
            return {"pred": inputs["picture"]}
        if self.mistake == "shape":
            return {"pred": ops.matmul(inputs["x"], ops.ones((3, 2)))}
        return {"pred": unknown_name}  # type: ignore[name-defined]  # noqa: F821


class BrokenModel(ToyModel):
    def create_graph(self) -> BrokenGraph:
        return BrokenGraph(self.params)


class BrokenModelParams(ToyModelParams, builds=":BrokenModel"):
    """A graph that cannot be built."""


@pytest.mark.parametrize(
    ("mistake", "reason"),
    [("key", "there is no 'picture'"), ("shape", "are 8 and 3"), ("name", "name 'unknown_name' is not defined")],
)
def test_a_graph_that_cannot_be_built_is_one_line(monkeypatch: pytest.MonkeyPatch, mistake: str, reason: str) -> None:
    monkeypatch.setattr(BrokenGraph, "mistake", mistake)
    with pytest.raises(ModelError) as error:
        ToyScenario(ToyScenarioParams(model=BrokenModelParams())).build()
    text = str(error.value)
    assert text.startswith("BrokenGraph cannot be built at test_sanity.py:") and "\n" not in text
    assert reason in text and "--scenario.debug_graph_construction runs it on real data" in text


def test_a_layer_that_was_adapted_to_missing_values_is_refused() -> None:
    """Its mean is NaN, and a graph that replaces NaN by 0 would ignore the column."""
    layer = keras.layers.Normalization(name="scale")
    layer.adapt(np.array([[1.0, 2.0], [np.nan, 3.0], [3.0, 4.0]]))
    with pytest.raises(TrainingError, match=r"scale/mean has a NaN before the first step.*np\.nanmean"):
        check_initialised(layer)
    mask = keras.layers.Dense(2, use_bias=False, kernel_initializer=keras.initializers.Constant(-np.inf))
    check_initialised(keras.Sequential([keras.layers.Input((2,)), mask]))
