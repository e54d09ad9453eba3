"""A model with a `train_step` of its own, any Keras callback, and a rate that falls on a plateau."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from scena import ScenarioBase, TrainValParams
from scena.errors import ModelError
from scena.model.training_model import TrainingModel
from scena.training.optimizers.params import SGD, Adam
from scena.training.schedules.params import ReduceOnPlateau
from tests.toy.model import ToyModel
from tests.toy.params import HalvesParams, ToyModelParams, ToyScenarioParams
from tests.toy.scenario import ToyScenario
from tests.training.toy_runs import KeepWeights, train_toy, trained_weights, weights_hash


class TwiceModel(TrainingModel):
    """Does by hand what Keras does, and counts its steps in a variable of its own."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.steps = keras.Variable(0, dtype="int64", trainable=False, name="own_steps")

    def train_step(self, data: Any) -> dict[str, Any]:
        x = data[0]
        with tf.GradientTape() as tape:
            outputs = self(x, training=True)
            loss = self.compute_loss(x=x, y_pred=outputs, training=True)
            scaled = self.optimizer.scale_loss(loss)
        weights = self.trainable_weights
        self.optimizer.apply_gradients(zip(tape.gradient(scaled, weights), weights, strict=True))
        self.steps.assign_add(1)
        return {**self.results(), "own": tf.cast(self.steps, tf.float32)}


class OwnModel(ToyModel):
    def training_model_cls(self) -> type[Any]:
        return TwiceModel


class OwnModelParams(ToyModelParams, builds=":OwnModel"):
    """With a train_step of its own."""


class OwnScenario(ToyScenario):
    @classmethod
    def default_params(cls) -> ToyScenarioParams:
        return ToyScenarioParams(model=OwnModelParams())


@pytest.mark.parametrize(
    "settings",
    [
        {},
        pytest.param({"ema_decay": 0.9}, marks=pytest.mark.long),
        pytest.param({"optimizer": Adam(gradient_accumulation_steps=2)}, marks=pytest.mark.long),
        {"precision": "mixed_float16"},
        pytest.param({"xla": True}, marks=pytest.mark.long),
        pytest.param({"steps_per_execution": 3}, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_everything_works_with_a_step_of_ones_own(tmp_path: Path, settings: Any) -> None:
    """The same step by hand gives the same training, whatever is switched on."""
    keep = KeepWeights()
    trainer = train_toy(tmp_path / "own", [keep], OwnScenario, **settings)
    assert [row["own"] for row in trainer.history] == [4, 8]
    assert weights_hash(keep.weights) == weights_hash(trained_weights(tmp_path / "keras", **settings))


def test_its_own_variables_are_in_checkpoints(tmp_path: Path) -> None:
    train_toy(tmp_path / "run", scenario=OwnScenario, epochs=1)
    params = OwnScenario.default_trainer_params()
    params.epochs, params.output_dir, params.random_seed, params.export_final = 2, tmp_path / "run", 7, False
    rows = OwnScenario.create_trainer(params).train(resume=True)
    assert [row["own"] for row in rows] == [4, 8]


class SecondModel(TwiceModel):
    """Has an optimizer of its own, whose steps it counts."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.second = keras.optimizers.SGD(0.0)
        self.second.build(self.trainable_variables)

    def train_step(self, data: Any) -> dict[str, Any]:
        logs = super().train_step(data)
        self.second.iterations.assign_add(1)
        return {**logs, "second": tf.cast(self.second.iterations, tf.float32)}


def test_the_state_of_a_second_optimizer_is_in_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(OwnModel, "training_model_cls", lambda self: SecondModel)
    params = OwnScenario.default_trainer_params()
    params.epochs, params.output_dir, params.random_seed, params.export_final = 2, tmp_path / "run", 7, False
    train_toy(tmp_path / "run", scenario=OwnScenario, epochs=1)
    assert [row["second"] for row in OwnScenario.create_trainer(params).train(resume=True)] == [4, 8]
    # checkpoints of older versions do not have it
    with monkeypatch.context() as before:
        before.setattr("scena.training.checkpoint.state.untracked_variables", lambda model: [])
        train_toy(tmp_path / "old", scenario=OwnScenario, epochs=1)
    params.output_dir = tmp_path / "old"
    assert [row["second"] for row in OwnScenario.create_trainer(params).train(resume=True)] == [4, 4]
    assert "does not hold the model's state_variables" in caplog.text


class UnbuiltModel(SecondModel):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.second = keras.optimizers.Adam()


def test_an_optimizer_that_could_not_be_restored_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OwnModel, "training_model_cls", lambda self: UnbuiltModel)
    with pytest.raises(
        ModelError, match=r"UnbuiltModel\.second is an optimizer without variables.*self\.second\.build\("
    ):
        train_toy(tmp_path / "run", scenario=OwnScenario)


class LearnedLossModel(ToyModel):
    """A loss with a weight of its own: a temperature, a projection."""

    kind = ""

    def __init__(self, params: ToyModelParams, names: list[str] | None = None) -> None:
        super().__init__(params, names)
        self.extra: Any = keras.layers.Dense(2) if "layer" in self.kind else keras.Variable(0.5, name="temperature")
        self.extra.trainable = "constant" not in self.kind
        self.draws = keras.random.SeedGenerator(1)
        if "list" in self.kind:
            self.extra = [self.extra]

    def _loss(self, inputs: Any, targets: Any, outputs: Any) -> Any:
        extra = self.extra[0] if "list" in self.kind else self.extra
        logits = extra(outputs["logits"]) if "layer" in self.kind else outputs["logits"] / extra
        noise = keras.random.normal(keras.ops.shape(logits), stddev=0.1, seed=self.draws)
        return super()._loss(inputs, targets, {**outputs, "logits": logits + noise})


class LearnedLossParams(ToyModelParams, builds=":LearnedLossModel"):
    """With a loss that has weights."""


class LearnedLossScenario(ToyScenario):
    @classmethod
    def default_params(cls) -> ToyScenarioParams:
        return ToyScenarioParams(model=LearnedLossParams())


@pytest.mark.parametrize("kind", ["variable", "layer", "list of layers"])
def test_weights_of_a_loss_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """They would silently stay what they were, and an export would not have them."""
    monkeypatch.setattr(LearnedLossModel, "kind", kind)
    with pytest.raises(
        ModelError, match=r"LearnedLossModel\.extra has weights that would be neither trained nor exported"
    ):
        train_toy(tmp_path / "run", scenario=LearnedLossScenario)


def test_a_loss_may_have_constants_and_random_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A resumed training draws what an uninterrupted one draws."""
    monkeypatch.setattr(LearnedLossModel, "kind", "constant")
    whole = train_toy(tmp_path / "whole", scenario=LearnedLossScenario).history
    train_toy(tmp_path / "run", scenario=LearnedLossScenario, epochs=1)
    params = LearnedLossScenario.default_trainer_params()
    params.epochs, params.output_dir, params.random_seed, params.export_final = 2, tmp_path / "run", 7, False
    resumed = LearnedLossScenario.create_trainer(params).train(resume=True)
    assert [row["loss"] for row in resumed] == [row["loss"] for row in whole]


def test_what_cannot_work_with_it_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(
        ModelError, match=r"input_gradient_penalty cannot be added to TwiceModel, which overrides train_step"
    ):
        train_toy(tmp_path / "run", scenario=OwnScenario, input_gradient_penalty=0.1)


class NoModel(ToyModel):
    def training_model_cls(self) -> type[Any]:
        return keras.Model


class NoModelParams(ToyModelParams, builds=":NoModel"):
    """With a step that does not fit."""


class NoScenario(ScenarioBase[ToyScenarioParams, TrainValParams[HalvesParams]]):
    @classmethod
    def default_params(cls) -> ToyScenarioParams:
        return ToyScenarioParams(model=NoModelParams())


def test_another_keras_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="NoModel.training_model_cls must return a subclass of TrainingModel"):
        train_toy(tmp_path / "run", scenario=NoScenario)


def test_callbacks_of_keras_do_what_they_do_in_fit(tmp_path: Path) -> None:
    seen: list[tuple[str, float]] = []
    add = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: seen.append(("epoch", logs["val_acc"])),
        on_train_batch_end=lambda batch, logs: seen.append(("batch", logs["loss"])),
    )
    logger = keras.callbacks.CSVLogger(str(tmp_path / "log.csv"))
    stopping = keras.callbacks.EarlyStopping(monitor="val_acc", mode="min", patience=1, baseline=-1.0)
    trainer = train_toy(tmp_path / "run", [add, logger, stopping, keras.callbacks.TerminateOnNaN()], epochs=9)
    assert len(trainer.history) == 2
    assert [kind for kind, _ in seen] == (["batch"] * 4 + ["epoch"]) * 2
    assert (tmp_path / "log.csv").read_text().splitlines()[0].startswith("epoch,")


def test_the_rate_falls_when_nothing_improves(tmp_path: Path) -> None:
    rate = ReduceOnPlateau(lr=1e-9, decay=0.5, patience=2, cooldown=1)
    rows = train_toy(tmp_path / "run", learning_rate=rate, epochs=9, optimizer=SGD()).history
    # epoch 1 sets the value to beat, 2 and 3 wait, the rate falls; 4 cools down, 5 and 6 wait, it falls again; and so on
    shares = [row["learning_rate"] / 1e-9 for row in rows]
    np.testing.assert_allclose(shares, [1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25], rtol=1e-5)


@pytest.mark.long
def test_the_rate_falls_the_same_when_the_run_is_resumed_in_between(tmp_path: Path) -> None:
    rate = ReduceOnPlateau(lr=1e-9, decay=0.5, patience=2)
    whole = train_toy(tmp_path / "whole", learning_rate=rate, epochs=6).history
    train_toy(tmp_path / "cut", learning_rate=rate, epochs=2)
    params = ToyScenario.default_trainer_params()
    params.epochs, params.output_dir, params.random_seed, params.export_final = 6, tmp_path / "cut", 7, False
    params.learning_rate = rate
    again = ToyScenario.create_trainer(params).train(resume=True)
    assert [row["learning_rate"] for row in again] == [row["learning_rate"] for row in whole]
