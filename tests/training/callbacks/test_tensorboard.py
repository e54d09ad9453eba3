"""TensorBoard's event files, read back: curves, parameters, hparams, histograms, graph, data of layers and evaluators, profile."""

import csv
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from scena import Evaluator, GraphBase, Sample, TensorBoardWriter, add_tensorboard
from scena.commands.main import main
from scena.errors import ModelError
from scena.model.tensorboard import (
    AudioData,
    HistogramData,
    ImageData,
    PRCurveData,
    TextData,
    split_results,
)
from scena.training.callbacks.params import TensorBoardParams
from scena.training.trigger import Trigger
from tests.toy.model import ToyGraph, ToyModel
from tests.toy.params import ToyModelParams, ToyScenarioParams
from tests.toy.scenario import ToyScenario
from tests.training.toy_runs import train_toy, trained_weights, weights_hash


def events(directory: Path, name: str) -> Any:
    read = EventAccumulator(str(directory / "tensorboard" / name), size_guidance={"tensors": 0, "scalars": 0})
    read.Reload()
    return read


def scalars(read: Any, tag: str) -> list[tuple[int, float]]:
    return [(event.step, float(tf.make_ndarray(event.tensor_proto))) for event in read.Tensors(tag)]


class Shown(Evaluator[Any]):
    """Gives one of everything."""

    def __enter__(self) -> Any:
        self.labels: list[bool] = []
        self.predictions: list[float] = []
        return self

    def update_state(self, sample: Sample) -> None:
        self.labels.append(bool(sample.targets["y"]))
        self.predictions.append(float(sample.outputs["pred"][1]))

    def result(self) -> dict[str, Any]:
        with tf.Graph().as_default():
            raw = tf.compat.v1.Summary(value=[tf.compat.v1.Summary.Value(tag="raw", simple_value=4.0)])
        return {
            "count": len(self.labels),
            "picture": ImageData(np.zeros((4, 5), "uint8")),
            "sound": AudioData(np.sin(np.arange(100)), 8000),
            "curve": PRCurveData(self.labels, self.predictions),
            "spread": HistogramData(self.predictions),
            "words": TextData("**hello**"),
            "raw": raw.SerializeToString(),
        }


def show(name: str, value: np.ndarray, step: int) -> None:
    tf.summary.image(name, value[:, :, None, None], step=step)


class ShowingGraph(ToyGraph):
    def build_graph(self, inputs: Any, training: bool | None = None) -> Any:
        add_tensorboard(TensorBoardWriter("inputs", show), inputs["x"])
        return super().build_graph(inputs, training)


class Curve(keras.metrics.Metric):
    """A metric whose result is no number."""

    def __init__(self) -> None:
        super().__init__(name="predicted")
        self.counts = self.add_weight(shape=(2,), initializer="zeros", name="counts")

    def update_state(self, labels: Any, predictions: Any, sample_weight: Any = None) -> None:
        self.counts.assign_add(keras.ops.sum(predictions, axis=0))

    def result(self) -> Any:
        return PRCurveData([False, True], np.asarray(self.counts.value) / 1000)


class ShowingModel(ToyModel):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.curve = Curve()

    def create_graph(self) -> GraphBase[Any]:
        return ShowingGraph(self.params)

    def _metric(self, inputs: Any, targets: Any, outputs: Any) -> Any:
        return {**super()._metric(inputs, targets, outputs), "predicted": self.curve(targets["y"], outputs["pred"])}


class ShowingModelParams(ToyModelParams, builds=":ShowingModel"):
    """Shows its inputs."""


class ShowingScenario(ToyScenario):
    @classmethod
    def default_params(cls) -> ToyScenarioParams:
        return ToyScenarioParams(model=ShowingModelParams())

    @classmethod
    def evaluator_cls(cls) -> type[Evaluator[Any]]:
        return Shown


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    directory = tmp_path_factory.mktemp("tensorboard") / "run"
    settings = TensorBoardParams(histograms=Trigger(2), gradients=True, graph=True)
    return train_toy(
        directory, scenario=ShowingScenario, epochs=4, lav_every_n=Trigger(1), tensorboard=settings
    ), directory


def test_curves_have_the_values_of_the_history(run: Any) -> None:
    trainer, directory = run
    for name, prefix in (("train", ""), ("val", "val_"), ("lav", "lav_")):
        read = events(directory, name)
        for key in ("loss", "acc"):
            expected = [(row["step"], pytest.approx(row[prefix + key])) for row in trainer.history]
            assert scalars(read, key) == expected
    assert [step for step, _ in scalars(events(directory, "train"), "learning_rate")] == [4, 8, 12, 16]
    assert [value for _, value in scalars(events(directory, "lav"), "count")] == [64] * 4
    with (directory / "history.csv").open() as file:
        assert [int(row["step"]) for row in csv.DictReader(file)] == [4, 8, 12, 16]


def test_parameters_are_text_and_hparams(run: Any) -> None:
    read = events(run[1], "train")
    text = tf.make_ndarray(
        read.Tensors(
            "parameters/text_summary" if "parameters/text_summary" in read.Tags()["tensors"] else "parameters"
        )[0].tensor_proto
    )
    assert b"epochs: 4" in text.item()
    found = read.summary_metadata["_hparams_/session_start_info"]
    from tensorboard.plugins.hparams import plugin_data_pb2

    data = plugin_data_pb2.HParamsPluginData.FromString(found.plugin_data.content)
    values = data.session_start_info.hparams
    assert values["trainer.epochs"].number_value == 4 and values["train.batch_size"].number_value
    assert values["optimizer"].string_value == "Adam"
    assert values["learning_rate.lr"].number_value == 0.001


def test_histograms_of_weights_and_gradients_and_the_graph(run: Any) -> None:
    read = events(run[1], "train")
    tags = read.Tags()["tensors"]
    for kind in ("weights", "gradients"):
        found = [tag for tag in tags if tag.startswith(f"{kind}/")]
        assert [tag.split("/", 3)[3] for tag in found] == [
            "hidden/kernel",
            "hidden/bias",
            "logits/kernel",
            "logits/bias",
        ]
        assert [event.step for event in read.Tensors(found[0])] == [8, 16]
    assert read.Graph() is not None


def test_layers_and_evaluators_show_what_they_like(run: Any) -> None:
    assert [event.step for event in events(run[1], "val").Tensors("inputs")] == [4, 8, 12, 16]
    read = events(run[1], "lav")
    tags = read.Tags()["tensors"]
    for name, plugin in [
        ("picture", "images"), ("sound", "audio"), ("curve/pr_curves", "pr_curves"), ("spread", "histograms"), ("words", "text"),
    ]:  # fmt: skip
        assert name in tags, tags
        assert read.summary_metadata[name].plugin_data.plugin_name == plugin
    curve = tf.make_ndarray(read.Tensors("curve/pr_curves")[0].tensor_proto)
    assert curve.shape == (6, 127)
    assert curve[0].max() <= 64 and 0 <= curve[4].min() <= curve[4].max() <= 1  # true positives; precision
    assert "raw" in [*read.Tags()["scalars"], *tags]


def test_metrics_show_what_is_no_number(run: Any) -> None:
    for part in ("val", "lav"):
        read = events(run[1], part)
        assert [event.step for event in read.Tensors("predicted/pr_curves")] == [4, 8, 12, 16]
    assert not [name for name in run[0].history[0] if "predicted" in name]


def test_looking_changes_nothing(tmp_path: Path) -> None:
    """Histograms with gradients, graph, values by steps and a profile: the weights are those of a run without any of it."""
    plain = trained_weights(tmp_path / "plain", tensorboard=TensorBoardParams(write=False))
    settings = TensorBoardParams(histograms=Trigger(1), gradients=True, graph=True, scalars_every=Trigger(1, "steps"))
    shown = trained_weights(tmp_path / "shown", tensorboard=settings, profile=True, profile_steps=[3, 5])
    assert weights_hash(plain) == weights_hash(shown)
    assert not (tmp_path / "plain" / "tensorboard").exists()
    assert [step for step, _ in scalars(events(tmp_path / "shown", "train"), "loss")] == list(range(1, 9))
    traces = list((tmp_path / "shown" / "tensorboard" / "train" / "plugins" / "profile").rglob("*.xplane.pb"))
    assert len(traces) == 1 and traces[0].stat().st_size > 100


def test_wrong_settings_say_so(capsys: Any) -> None:
    for flags, text in [
        (["--tensorboard.gradients"], "gradients needs histograms"),
        (["--tensorboard.scalars_every", "10min"], "counted in epochs or steps"),
        (["--tensorboard.histograms", "5steps"], "counted in epochs"),
        (["--trainer.profile_steps", "9", "3"], "the first and the last step"),
    ]:
        assert main(["params", "tests.toy", *flags]) == 2
        assert text in capsys.readouterr().err


def test_a_result_that_is_neither_a_number_nor_to_look_at_is_named() -> None:
    with pytest.raises(
        ModelError, match=r"The result 'x' is neither a number nor data for TensorBoard .* Received: list"
    ):
        split_results({"x": [1, 2]})
    with pytest.raises(ModelError, match=r"The result 'x' is bytes, but no serialized summary .* Received: b'correct'"):
        split_results({"x": b"correct"})
    assert split_results({"a": np.float32(1), "b": True}) == ({"a": 1.0, "b": 1.0}, {})
    assert keras is not None
