"""The sanity check warns of data that gives plausible numbers of the wrong kind."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keras import layers, ops

from examples.tagging import model as tagging
from examples.tagging.scenario import TaggingScenario
from scena import PipelineMode, Sample
from tests.toy.data import Halves, ToyData
from tests.toy.model import ToyGraph, ToyModel
from tests.training.toy_runs import train_toy


def warnings_of(caplog: pytest.LogCaptureFixture, directory: Path, **settings: Any) -> list[str]:
    """What a short training warns of."""
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="scena"):
        train_toy(directory, epochs=1, **settings)
    return [record.getMessage() for record in caplog.records if record.name.startswith("scena")]


def test_validation_on_the_samples_of_the_training(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert warnings_of(caplog, tmp_path / "right") == []
    init = Halves.__init__
    monkeypatch.setattr(Halves, "__init__", lambda self, params, mode: init(self, params, PipelineMode.TRAINING))
    (text,) = warnings_of(caplog, tmp_path / "same")
    assert text == (
        "Training and validation read the same samples, so the validation tells nothing about new data. Let the source use its "
        "mode, or set other data with --val."
    )


def test_samples_that_differ_each_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Halves.__getitem__

    def noisy(self: Halves, index: int) -> Sample:
        sample = read(self, index)
        return sample.new_inputs({"x": sample.inputs["x"] + np.random.normal(size=8)})

    monkeypatch.setattr(Halves, "__getitem__", noisy)
    found = warnings_of(caplog, tmp_path)
    assert found[0] == (
        "Halves makes sample 0 (meta: {'index': 0}) of the training data differently each time, so the run cannot be repeated or resumed "
        "exactly. Draw random numbers from `rng` (apply(self, sample, rng)), or seed them by the index of the sample, and keep no "
        "state between samples."
    )
    assert len(found) == 2 and "of the evaluation data" in found[1]


def test_numbers_that_are_not_finite_although_the_loss_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rectifier may swallow them."""
    build = ToyGraph.build_graph

    def robust(self: ToyGraph, inputs: Any, training: bool | None = None) -> Any:
        x = inputs["x"]
        return build(self, {"x": ops.where(ops.isfinite(x), x, 0.0)}, training=training)

    monkeypatch.setattr(ToyGraph, "build_graph", robust)
    (found,) = warnings_of(
        caplog, tmp_path / "warned", gen__train_val__bad="nan"
    )  # once, also if the validation has them
    assert found.startswith(
        "The training data is not finite: the input 'x' is nan at [0] in the sample with meta {'index': "
    )
    assert found.endswith("declare allow_nan = True in the data class.")
    monkeypatch.setattr(ToyData, "allow_nan", True)
    assert warnings_of(caplog, tmp_path / "missing", gen__train_val__bad="nan") == []


@pytest.mark.parametrize("where", ["training", "validation"])
def test_numbers_that_are_not_finite_in_a_later_batch(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    build, read = ToyGraph.build_graph, Halves.__getitem__
    monkeypatch.setattr(
        ToyGraph,
        "build_graph",
        lambda self, inputs, training=None: build(
            self, {"x": ops.where(ops.isfinite(inputs["x"]), inputs["x"], 0.0)}, training=training
        ),
    )
    spoilt = PipelineMode.TRAINING if where == "training" else PipelineMode.EVALUATION

    def late(self: Halves, index: int) -> Sample:
        sample = read(self, index)
        if self.mode is spoilt and index == len(self) - 1:
            return sample.new_inputs({"x": np.full(8, np.nan, "float32")})
        return sample

    monkeypatch.setattr(Halves, "__getitem__", late)
    (found,) = warnings_of(caplog, tmp_path)
    assert found.startswith(f"The {where} data is not finite: the input 'x' is nan at [0] in the sample with meta")


def test_padding_that_counts(tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {
        "scenario": TaggingScenario,
        "gen__train_val__count": 40,
        "scenario__model__units": 4,
        "scenario__print_eval_limit": 0,
    }
    assert warnings_of(caplog, tmp_path / "right", **settings) == []
    there = tagging._there

    def unmasked(targets: Any) -> Any:
        mask, tags = there(targets)
        return 0 * mask + 1, tags

    monkeypatch.setattr(tagging, "_there", unmasked)
    found = warnings_of(caplog, tmp_path / "wrong", **settings)
    assert [text.split(":")[0] for text in found] == ["Padding counts in 'loss'", "Padding counts in 'letter_acc'"]
    assert found[0].endswith(
        "when the samples of a batch are padded by 8 more, so it depends on the batch size. Mask the padding."
    )


class NormalizedGraph(ToyGraph):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.norm = layers.BatchNormalization(momentum=0.9)

    def build_graph(self, inputs: Any, training: bool | None = None) -> Any:
        return super().build_graph({"x": self.norm(inputs["x"], training=training)}, training)


def test_a_training_too_short_for_moving_averages(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ToyModel, "create_graph", lambda self: NormalizedGraph(self.params))
    (text,) = warnings_of(caplog, tmp_path / "short")
    assert text.startswith("Batch normalization: after the ")
    assert "of its moving averages are still their initial values, so validation and predictions lag behind" in text
    assert warnings_of(caplog, tmp_path / "long", gen__train__batch_size=1) == []
