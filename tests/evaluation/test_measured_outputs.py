"""LAV measures what the outputs allow: a prediction graph without some of them, and the outputs of a vote."""

import json
import logging
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers, ops

from scena import (
    Evaluator,
    GenericGraphBase,
    ModelBase,
    ModelBaseParams,
    ScenarioBase,
    ScenarioBaseParams,
    TrainValParams,
)
from scena.commands.main import main
from scena.errors import ScenaError
from scena.model.tensorboard import AudioData, HistogramData, ImageData, PRCurveData, TextData
from scena.params import param
from tests.evaluation.exporting import export
from tests.evaluation.test_lav import lav_params
from tests.toy.params import HalvesParams, ToyDataParams
from tests.toy.scenario import ToyScenario

Tensors = dict[str, Any]


class PartialModelParams(ModelBaseParams, builds=":PartialModel"):
    """Which losses there are."""

    style: str = param("functions", help="functions, objects or raw")


class PartialGraph(GenericGraphBase[PartialModelParams]):
    """An auxiliary output that only the training has."""

    def __init__(self, params: PartialModelParams, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        self.logits = layers.Dense(2)
        self.aux = layers.Dense(2)

    def build_prediction_graph(self, inputs: Tensors) -> Tensors:
        return {"logits": self.logits(inputs["x"])}

    def build_train_graph(self, inputs: Tensors, targets: Tensors, training: bool | None = None) -> Tensors:
        return {"logits": self.logits(inputs["x"]), "aux": self.aux(inputs["x"])}


class PartialModel(ModelBase[PartialModelParams]):
    """Two losses and three metrics, of which one loss and two metrics need the auxiliary output."""

    def __init__(self, params: PartialModelParams) -> None:
        super().__init__(params)
        self.of_main = keras.metrics.SparseCategoricalAccuracy()
        self.of_aux = keras.metrics.SparseCategoricalAccuracy()

    def create_graph(self) -> PartialGraph:
        return PartialGraph(self.params)

    def _loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        if self.params.style == "objects":
            entropy: Any = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            return {"aux": entropy(targets["y"], outputs["aux"]), "main": entropy(targets["y"], outputs["logits"])}
        if self.params.style == "raw":
            import tensorflow as tf

            return {"aux": tf.reduce_mean(outputs["aux"]), "main": tf.reduce_mean(outputs["logits"])}
        entropy = keras.losses.sparse_categorical_crossentropy
        return {
            "main": entropy(targets["y"], outputs["logits"], from_logits=True),
            "aux": entropy(targets["y"], outputs["aux"], from_logits=True),
        }

    def _loss_weights(self) -> dict[str, float]:
        return {"aux": 0.5}

    def _metric(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {
            "acc": (self.of_main, targets["y"], outputs["logits"]),
            "aux_acc": (self.of_aux, targets["y"], outputs["aux"]),
            "distance": ops.mean(ops.abs(outputs["aux"] - outputs["logits"]), axis=-1),
        }


class PartialScenarioParams(ScenarioBaseParams[ToyDataParams, PartialModelParams]):
    """A scenario whose prediction graph lacks an output."""


class PartialScenario(ScenarioBase[PartialScenarioParams, TrainValParams[HalvesParams]]):
    """A scenario without an evaluator whose prediction graph lacks an output."""


def exported(folder: Path, seed: int, style: str = "functions") -> Path:
    params = PartialScenario.default_trainer_params()
    params.scenario.model.style = style
    return export(folder / f"{style}{seed}", seed, PartialScenario, params)


def expected_loss(logits: np.ndarray, classes: np.ndarray) -> float:
    return float(np.mean(keras.losses.sparse_categorical_crossentropy(classes, logits, from_logits=True)))


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("style", ["functions", "objects"])
def test_only_what_needs_the_missing_output_is_skipped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, style: str, eager: bool
) -> None:
    with caplog.at_level(logging.INFO, "scena"):
        lav = PartialScenario.create_lav(exported(tmp_path, 1, style), lav_params(7, run_eagerly=eager))
    seen: list[Any] = []
    results = lav.run(HalvesParams(count=30), observer=seen.append)
    logits = np.stack([sample.outputs["logits"] for sample in seen])
    classes = np.stack([sample.targets["y"] for sample in seen])
    assert set(results) == {"main", "acc"}  # no "loss": it would be the sum of what is left
    assert results["main"] == pytest.approx(expected_loss(logits, classes), rel=1e-5)
    assert results["acc"] == pytest.approx(np.mean(logits.argmax(1) == classes))
    assert (
        "LAV does not measure the losses aux: they need aux, which the prediction graph does not return." in caplog.text
    )
    assert "LAV does not measure the metrics aux_acc, distance: they need aux, which" in caplog.text


def test_code_that_takes_no_symbolic_tensor_is_measured_in_a_graph_and_refused_op_by_op(tmp_path: Path) -> None:
    model, source = exported(tmp_path, 1, "raw"), HalvesParams(count=30)
    assert set(PartialScenario.create_lav(model, lav_params(7)).run(source)) == {"main", "acc"}
    lav = PartialScenario.create_lav(model, lav_params(7, run_eagerly=True))
    with pytest.raises(
        ScenaError, match=r"PartialModel._loss cannot run op by op without the outputs aux.*run_eagerly"
    ):
        lav.run(source)


def test_the_vote_is_measured_without_an_evaluator(tmp_path: Path) -> None:
    models = [exported(tmp_path, seed) for seed in (1, 2)]
    seen: dict[str, list[Any]] = {}
    lav = PartialScenario.create_multi_lav(models, lav_params(7))
    source = HalvesParams(count=30)
    results = lav.run(source, observer=lambda name, sample: seen.setdefault(name, []).append(sample))
    logits = np.stack([sample.outputs["logits"] for sample in seen["voted"]])
    classes = np.stack([sample.targets["y"] for sample in seen["voted"]])
    assert set(results["voted"]) == {"main", "acc"}
    assert results["voted"]["main"] == pytest.approx(expected_loss(logits, classes), rel=1e-5)
    assert results["voted"]["acc"] == pytest.approx(np.mean(logits.argmax(1) == classes))
    for path in models:  # the vote's metrics have a state of their own
        assert results[str(path)] == pytest.approx(
            PartialScenario.create_lav(path, lav_params(7)).run(source), abs=1e-6
        )
    assert lav.run(source)["voted"] == results["voted"]


class Shown(Evaluator[Any]):
    """Returns all that TensorBoard can show."""

    def result(self) -> dict[str, Any]:
        return {
            "f1": np.float32(0.5),
            "worst": ImageData(np.zeros((28, 28), "uint8")),
            "sound": AudioData(np.zeros((2, 800)), sample_rate=8000),
            "pr": PRCurveData(labels=[True, False], predictions=[0.8, 0.3]),
            "weights": HistogramData(np.zeros(9)),
            "note": TextData("two\x1b[31m\nlines"),
            "made": b"\x01\x02",
            "other": object(),
        }


class ShownScenario(ToyScenario):
    """The toy scenario with that evaluator."""

    @classmethod
    def evaluator_cls(cls) -> type[Shown]:
        return Shown


def test_data_for_tensorboard_is_described(
    exports: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "results.json"
    flags = ["--scenario", "tests.evaluation.test_measured_outputs:ShownScenario", "--lav.num_processes", "0"]
    assert main(["lav", str(exports[0]), *flags, "--json", str(file), "--report", f"{tmp_path}/r"]) == 0
    shown = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    described = {
        "worst": "[image data of shape 28×28]",
        "sound": "[2 sounds of 0.1 s]",
        "pr": "[PR curve of 2 samples]",
        "weights": "[histogram of 9 values]",
        "made": "[TensorBoard summary of 2 bytes]",
        "other": "[object]",
    }
    assert shown.items() >= {**described, "f1": "0.5", "note": r"two\x1b[31m\nlines"}.items()
    results = json.loads(file.read_text())[str(exports[0])]
    assert results.items() >= {**described, "f1": 0.5, "note": "two\x1b[31m\nlines"}.items()
    page = (tmp_path / "r" / "index.html").read_text()
    assert "[PR curve of 2 samples]" in page and "object at 0x" not in page + str(results) + str(shown)
