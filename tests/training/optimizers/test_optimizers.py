"""Each optimizer against its published rule, and what all of them share: clipping, weight decay, accumulation, Lookahead."""

import inspect
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from scena.commands.main import main
from scena.errors import TrainingError
from scena.params import subclasses
from scena.training.optimizers.create import create_optimizer
from scena.training.optimizers.params import (
    SGD,
    AdaBelief,
    Adadelta,
    Adagrad,
    Adam,
    AdamW,
    GradientOptimizerParams,
    Lookahead,
    Nadam,
    OptimizerParams,
    RAdam,
    RMSprop,
)
from scena.training.schedules.params import Constant, ExponentialDecay, OneCycle
from tests.training.toy_runs import trained_weights

START = np.array([1.0, -2.0, 3.0])


def gradients(count: int) -> list[np.ndarray]:
    return list(np.random.default_rng(3).normal(size=(count, 3)))


def run(
    params: Any, steps: list[np.ndarray], rate: Any = None, name: str = "kernel", distributed: bool = False
) -> np.ndarray:
    """The weights after these gradients."""
    variable = keras.Variable(START.astype("float32"), name=name)
    schedule = (rate or Constant(lr=0.1)).create(1, max(len(steps), 1))
    optimizer = create_optimizer(params, schedule, [variable], distributed=distributed)
    for gradient in steps:
        optimizer.apply([keras.ops.convert_to_tensor(gradient.astype("float32"))])
    return np.asarray(variable.value)


CONCRETE = [cls for cls in subclasses(GradientOptimizerParams) if not cls.__abstract__]


@pytest.mark.parametrize("cls", CONCRETE, ids=lambda cls: cls.__name__)
def test_every_optimizer_lowers_a_quadratic(cls: Any) -> None:
    variable = keras.Variable(START.astype("float32"), name="kernel")
    rate = 1.0 if cls.__name__ == "Adadelta" else 0.05
    optimizer = create_optimizer(cls(), Constant(lr=rate).create(1, 1), [variable])
    for _ in range(30):
        optimizer.apply([2 * variable.value])
    assert np.sum(np.asarray(variable.value) ** 2) < 0.97 * np.sum(START**2)


@pytest.mark.parametrize("cls", CONCRETE, ids=lambda cls: cls.__name__)
def test_the_flags_of_an_optimizer_are_its_own(cls: Any) -> None:
    shared = set(GradientOptimizerParams.__params__)
    accepted = set(inspect.signature(cls.implementation().__init__).parameters)
    assert set(cls.__params__) - shared <= accepted


def test_a_flag_of_another_optimizer_is_an_error(capsys: Any) -> None:
    assert main(["train", "examples.tutorial.min", "--optimizer", "SGD", "--optimizer.beta_1", "0.5"]) == 2
    assert "Adam" in capsys.readouterr().err


def test_adabelief_follows_its_published_rule() -> None:
    weight, mean, spread = START.copy(), np.zeros(3), np.zeros(3)
    for t, gradient in enumerate(gradients(20), 1):
        mean = 0.9 * mean + 0.1 * gradient
        spread = 0.999 * spread + 0.001 * (gradient - mean) ** 2 + 1e-8
        weight -= 0.1 * (mean / (1 - 0.9**t)) / (np.sqrt(spread / (1 - 0.999**t)) + 1e-8)
    np.testing.assert_allclose(run(AdaBelief(epsilon=1e-8), gradients(20)), weight, rtol=2e-4)


@pytest.mark.parametrize("beta_2", [0.9, 0.99, 0.999])
def test_radam_follows_its_published_rule(beta_2: float) -> None:
    weight, mean, square = START.copy(), np.zeros(3), np.zeros(3)
    longest = 2 / (1 - beta_2) - 1
    rectified = 0
    for t, gradient in enumerate(gradients(20), 1):
        mean = 0.9 * mean + 0.1 * gradient
        square = beta_2 * square + (1 - beta_2) * gradient**2
        unbiased = mean / (1 - 0.9**t)
        length = longest - 2 * t * beta_2**t / (1 - beta_2**t)
        if length > 4:
            rectified += 1
            r = np.sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length))
            weight -= 0.1 * r * unbiased / (np.sqrt(square / (1 - beta_2**t)) + 1e-7)
        else:
            weight -= 0.1 * unbiased
    assert 0 < rectified < 20  # both branches were taken
    np.testing.assert_allclose(run(RAdam(beta_2=beta_2), gradients(20)), weight, rtol=1e-3, atol=1e-3)


def test_lookahead_follows_its_published_rule() -> None:
    fast, slow = START.copy(), START.copy()
    for t, gradient in enumerate(gradients(10), 1):
        fast = fast - 0.1 * gradient
        if t % 3 == 0:
            slow = slow + 0.4 * (fast - slow)
            fast = slow.copy()
    made = run(Lookahead(inner=SGD(), sync_period=3, slow_step_size=0.4), gradients(10))
    np.testing.assert_allclose(made, fast, rtol=1e-5)


def test_lookahead_counts_updates_and_not_accumulated_batches() -> None:
    twice = [gradient for gradient in gradients(6) for _ in range(2)]
    inner = SGD(gradient_accumulation_steps=2)
    np.testing.assert_allclose(
        run(Lookahead(inner=inner, sync_period=3), twice),
        run(Lookahead(inner=SGD(), sync_period=3), gradients(6)),
        rtol=1e-6,
    )


def test_weight_decay_follows_the_schedule() -> None:
    expected = START.copy()
    for epoch in range(4):
        expected *= 1 - 0.1 * 0.5**epoch * 0.2
    made = run(SGD(weight_decay=0.2), [np.zeros(3)] * 4, ExponentialDecay(lr=0.1, decay=0.5))
    np.testing.assert_allclose(made, expected, rtol=1e-6)


@pytest.mark.parametrize("cls", CONCRETE, ids=lambda cls: cls.__name__)
def test_weight_decay_is_decoupled_in_every_optimizer(cls: Any) -> None:
    """A weight whose gradient is zero loses lr · decay of itself, whatever the optimizer."""
    made = run(cls(weight_decay=0.2), [np.zeros(3)])
    np.testing.assert_allclose(made, START * (1 - 0.1 * 0.2), rtol=1e-5)


@pytest.mark.parametrize("name", ["bias", "gamma", "beta"])
def test_biases_and_normalisation_are_not_decayed_unless_asked_for(name: str) -> None:
    assert (run(SGD(weight_decay=0.2), [np.zeros(3)], name=name) == START).all()
    everything = SGD(weight_decay=0.2, weight_decay_exclude="")
    np.testing.assert_allclose(run(everything, [np.zeros(3)], name=name), START * 0.98, rtol=1e-6)
    assert (run(SGD(weight_decay=0.2, weight_decay_exclude="^ker"), [np.zeros(3)]) == START).all()


def test_a_broken_regular_expression_is_named() -> None:
    with pytest.raises(ValueError, match=r"weight_decay_exclude is not a regular expression .*'\('"):
        SGD(weight_decay_exclude="(")


def test_adamw_decays_by_default_and_adam_does_not() -> None:
    assert (run(Adam(), [np.zeros(3)]) == START).all()
    np.testing.assert_allclose(run(AdamW(), [np.zeros(3)]), START * (1 - 0.1 * 0.004), rtol=1e-6)


@pytest.mark.parametrize("cls", [SGD, AdamW, RAdam])
def test_a_part_of_the_network_learns_at_its_own_rate(cls: Any) -> None:
    """Each part does, decay included, what an optimizer of its own with that rate would do."""
    params = cls(weight_decay=0.2, lr_factors=["encoder=0.1", ".=0.5"])
    variables = [keras.Variable(START.astype("float32"), name=name) for name in ("encoder_kernel", "kernel")]
    optimizer = create_optimizer(params, Constant(lr=0.1).create(1, 1), variables)
    for gradient in gradients(5):
        optimizer.apply([keras.ops.convert_to_tensor(gradient.astype("float32"))] * 2)
    for variable, rate in zip(variables, (0.01, 0.05), strict=True):
        alone = run(cls(weight_decay=0.2), gradients(5), Constant(lr=rate))
        np.testing.assert_allclose(np.asarray(variable.value), alone, rtol=1e-6)


def test_the_optimizer_of_a_replica_updates_weights_as_on_one_device() -> None:
    params = AdamW(weight_decay=0.2, weight_decay_exclude="", lr_factors=["kernel=0.3"])
    one, replica = (run(params, gradients(4), distributed=distributed) for distributed in (False, True))
    np.testing.assert_array_equal(one, replica)
    assert not np.allclose(one, run(AdamW(weight_decay=0.2, weight_decay_exclude=""), gradients(4)))


def test_rules_of_rates_are_checked() -> None:
    for wrong in ("encoder", "(=1", "x=fast", "x=-1"):
        with pytest.raises(ValueError, match="a rule of lr_factors is EXPRESSION=FACTOR"):
            SGD(lr_factors=[wrong])
    with pytest.raises(TrainingError, match="'encoder' matches no weight. The weights are:\n  kernel"):
        run(SGD(lr_factors=["encoder=0.1"]), [np.zeros(3)])
    variable = keras.Variable(START.astype("float32"), name="kernel")
    schedule = Constant(lr=0.1).create(1, 1)
    assert create_optimizer(SGD(lr_factors=["encoder=0.1"]), schedule, [variable], frozen=["encoder/kernel"]).built


def test_clipping() -> None:
    gradient = np.array([3.0, -4.0, 0.1])
    np.testing.assert_allclose(
        run(SGD(clip_value=0.5), [gradient]), START - 0.1 * np.clip(gradient, -0.5, 0.5), rtol=1e-6
    )
    scaled = gradient / np.linalg.norm(gradient)
    np.testing.assert_allclose(run(SGD(clip_norm=1.0), [gradient]), START - 0.1 * scaled, rtol=1e-5)
    np.testing.assert_allclose(run(SGD(clip_global_norm=1.0), [gradient]), START - 0.1 * scaled, rtol=1e-5)
    with pytest.raises(ValueError, match="choose one of clip_value and clip_norm"):
        RMSprop(clip_value=1.0, clip_norm=1.0)


def test_one_cycle_moves_the_momentum_of_sgd() -> None:
    rate = OneCycle(lr=0.1, rise=0.5, base_momentum=0.5, max_momentum=0.9)
    schedule = rate.create(1, 10)
    weight, velocity = START.copy(), np.zeros(3)
    for step, gradient in enumerate(gradients(10)):
        velocity = float(schedule.momentum(step)) * velocity - float(schedule(step)) * gradient
        weight += velocity
    np.testing.assert_allclose(run(SGD(), gradients(10), rate), weight, rtol=1e-5)


def test_one_cycle_moves_beta_1_of_adam() -> None:
    rate = OneCycle(lr=0.1, rise=0.5, base_momentum=0.5, max_momentum=0.9)
    schedule = rate.create(1, 6)
    weight, mean, square = START.copy(), np.zeros(3), np.zeros(3)
    for t, gradient in enumerate(gradients(6), 1):
        beta = float(schedule.momentum(t - 1))
        mean = beta * mean + (1 - beta) * gradient
        square = 0.999 * square + 0.001 * gradient**2
        weight -= float(schedule(t - 1)) * np.sqrt(1 - 0.999**t) / (1 - beta**t) * mean / (np.sqrt(square) + 1e-7)
    np.testing.assert_allclose(run(Adam(), gradients(6), rate), weight, rtol=1e-4)


@pytest.mark.parametrize("optimizer", [RMSprop(), Nadam(), Adagrad(), Lookahead(inner=Adadelta())])
def test_one_cycle_refuses_an_optimizer_whose_momentum_it_cannot_move(optimizer: OptimizerParams) -> None:
    with pytest.raises(
        TrainingError, match=r"has none that can be changed. Add --learning_rate.cycle_momentum False, or choose"
    ):
        run(optimizer, gradients(1), OneCycle())
    run(optimizer, gradients(1), OneCycle(cycle_momentum=False))


def test_an_optimizer_of_ones_own_can_name_what_a_cycle_moves() -> None:
    class OwnAdam(GradientOptimizerParams, builds="keras.optimizers:Adam"):
        """Adam with defaults only."""

        cycled = "beta_1"

    rate = OneCycle(lr=0.1, rise=0.5, base_momentum=0.5, max_momentum=0.9)
    np.testing.assert_array_equal(run(OwnAdam(), gradients(6), rate), run(Adam(), gradients(6), rate))


@pytest.mark.parametrize("ema", [0.0, 0.9])
def test_three_accumulated_batches_of_one_are_one_batch_of_three(tmp_path: Path, ema: float) -> None:
    same = {
        "gen__train_val__count": 24,
        "scenario__model__dropout": 0.0,
        "epochs": 3,
        "gen__train__shuffle_buffer_size": 1,
        "ema_decay": ema,
    }
    large = trained_weights(tmp_path / "large", gen__train__batch_size=3, optimizer=Adam(), **same)
    small = trained_weights(
        tmp_path / "small", gen__train__batch_size=1, optimizer=Adam(gradient_accumulation_steps=3), **same
    )
    for one, other in zip(large, small, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
