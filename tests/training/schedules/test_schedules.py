"""Each learning-rate schedule against its formula; warm-up, offset and per-epoch changes in front of any."""

import math
from typing import Any

import keras
import numpy as np
import pytest

from scena.params import subclasses
from scena.training.optimizers.create import create_optimizer
from scena.training.optimizers.params import SGD
from scena.training.schedules.params import (
    ChangingRateParams,
    Constant,
    CosineDecay,
    CosineRestarts,
    ExponentialDecay,
    FlatAndAnneal,
    InverseTimeDecay,
    LearningRateParams,
    ListedRates,
    Noam,
    OneCycle,
    PolynomialDecay,
    ReduceOnPlateau,
    StepDecay,
    StepListDecay,
)
from scena.training.trigger import Trigger

STEPS, EPOCHS = 4, 10
ALL = [cls for cls in subclasses(LearningRateParams) if not cls.__abstract__]


def rates(params: LearningRateParams, steps: int = STEPS * EPOCHS) -> np.ndarray:
    """The learning rate at each step of ten epochs of four."""
    return np.asarray(params.create(STEPS, EPOCHS)(np.arange(steps)))


def cosine(first: float, last: float, time: float) -> float:
    return last + (first - last) * (1 + math.cos(math.pi * time)) / 2


def restarts(epoch: float) -> float:
    start, length, height = 0.0, 2.0, 1.0
    while epoch >= start + length:
        start, length, height = start + length, length * 2, height * 0.5
    return height * cosine(1, 0.1, (epoch - start) / length)


def one_cycle(epoch: float) -> float:
    time = epoch / EPOCHS
    return cosine(1 / 25, 1, time / 0.3) if time < 0.3 else cosine(1, 1 / 25 / 1e4, (time - 0.3) / 0.7)


FORMULAS: list[tuple[Any, Any]] = [
    (Constant(lr=0.1), lambda e: 1),
    (ExponentialDecay(lr=0.1, decay=0.8), lambda e: 0.8 ** math.floor(e)),
    (ExponentialDecay(lr=0.1, decay=0.8, per="step"), lambda e: 0.8**e),
    (ExponentialDecay(lr=0.1, decay=0.5, min_fraction=0.2), lambda e: max(0.5 ** math.floor(e), 0.2)),
    (StepDecay(lr=0.1, decay=0.5, every=3), lambda e: 0.5 ** math.floor(e / 3)),
    (StepListDecay(lr=0.1, decay=0.5, boundaries=[2, 5.5]), lambda e: 0.5 ** ((e >= 2) + (e >= 5.5))),
    (ListedRates(lr=0.1, factors=[1, 0.3, 0.7]), lambda e: [1, 0.3, 0.7][min(math.floor(e), 2)]),
    (PolynomialDecay(lr=0.1, power=2, end_fraction=0.1), lambda e: 0.1 + 0.9 * (1 - e / 10) ** 2),
    (PolynomialDecay(lr=0.1, end_fraction=0.0, decay_epochs=5), lambda e: 1 - min(e / 5, 1)),
    (InverseTimeDecay(lr=0.1, decay=0.5), lambda e: 1 / (1 + 0.5 * e)),
    (InverseTimeDecay(lr=0.1, decay=0.5, per="epoch"), lambda e: 1 / (1 + 0.5 * math.floor(e))),
    (InverseTimeDecay(lr=0.1, decay=0.5, every=2.5), lambda e: 1 / (1 + 0.5 * e / 2.5)),
    (InverseTimeDecay(lr=0.1, decay=0.5, every=2.5, staircase=True), lambda e: 1 / (1 + 0.5 * math.floor(e / 2.5))),
    (CosineDecay(lr=0.1, alpha=0.1), lambda e: cosine(1, 0.1, e / 10)),
    (CosineRestarts(lr=0.1, alpha=0.1, first_period=2, m_mul=0.5), restarts),
    (CosineRestarts(lr=0.1, first_period=2, t_mul=1), lambda e: cosine(1, 0, (e % 2) / 2)),
    (OneCycle(lr=0.1), one_cycle),
    (FlatAndAnneal(lr=0.1, flat=0.5), lambda e: 1 if e < 5 else cosine(1, 0, (e - 5) / 5)),
    (ReduceOnPlateau(lr=0.1), lambda e: 1),
]


@pytest.mark.parametrize(("params", "formula"), FORMULAS, ids=lambda value: type(value).__name__)
def test_a_schedule_is_its_formula(params: Any, formula: Any) -> None:
    expected = [0.1 * formula(step / STEPS) for step in range(STEPS * EPOCHS)]
    np.testing.assert_allclose(rates(params), expected, rtol=1e-4, atol=1e-8)


def test_every_schedule_has_a_formula_here() -> None:
    assert {type(params) for params, _ in FORMULAS} | {Noam} == set(ALL)


def test_noam() -> None:
    made = rates(Noam(lr=2.0, d_model=64, warmup=Trigger(10, "steps")))
    expected = [2 * 64**-0.5 * min(s**-0.5, s * 10**-1.5) for s in range(1, 41)]
    np.testing.assert_allclose(made, expected, rtol=1e-5)
    assert made.argmax() == 9
    with pytest.raises(ValueError, match="Noam needs a warmup"):
        Noam(warmup=Trigger(0))


@pytest.mark.parametrize("cls", [cls for cls in ALL if cls is not Noam], ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("warmup", [Trigger(8, "steps"), Trigger(2)], ids=["steps", "epochs"])
def test_a_warm_up_goes_in_front_of_any(cls: Any, warmup: Trigger) -> None:
    """It rises in a straight line to where the schedule starts, which then goes on as if the training were shorter."""
    made = rates(cls(lr=0.1, warmup=warmup, warmup_from=0.2))
    alone = np.asarray(cls(lr=0.1).create(STEPS, EPOCHS - 2)(np.arange(STEPS * EPOCHS - 8)))
    np.testing.assert_allclose(made[:8], alone[0] * (0.2 + 0.8 * np.arange(1, 9) / 8), rtol=1e-5)
    np.testing.assert_allclose(made[8:], alone, rtol=1e-4, atol=1e-9)


def test_a_warm_up_is_not_counted_in_seconds() -> None:
    with pytest.raises(ValueError, match="warmup is counted in epochs or steps.*received 30s"):
        Constant(warmup=Trigger(30, "seconds"))


@pytest.mark.parametrize(
    "cls", [cls for cls in ALL if issubclass(cls, ChangingRateParams) and cls is not Noam], ids=lambda cls: cls.__name__
)
def test_per_epoch_holds_a_rate_for_an_epoch(cls: Any) -> None:
    made = rates(cls(lr=0.1, per="epoch"))
    by_step = rates(cls(lr=0.1, per="step"))
    assert (made.reshape(EPOCHS, STEPS) == made[::STEPS, None]).all()
    np.testing.assert_allclose(made[::STEPS], by_step[::STEPS], rtol=1e-6)


def test_an_offset_delays_the_schedule() -> None:
    made = rates(ExponentialDecay(lr=0.1, decay=0.5, offset_epochs=2))
    np.testing.assert_allclose(made[:12], 0.1)
    np.testing.assert_allclose(made[12:16], 0.05)


def test_steps_beyond_the_precision_of_float32_are_still_counted() -> None:
    schedule = ExponentialDecay(lr=1.0, decay=0.5).create(20_000_000, 10)
    assert float(schedule(20_000_000 - 1)) == 1.0
    assert float(schedule(20_000_000)) == 0.5


def test_the_optimizer_sees_batches_whether_gradients_are_accumulated_or_not() -> None:
    variable = keras.Variable([1.0], name="kernel")
    schedule = ListedRates(lr=1.0, factors=[1, 0.5]).create(2, 2)
    optimizer = create_optimizer(SGD(gradient_accumulation_steps=2), schedule, [variable])
    seen = []
    for _ in range(4):
        seen.append(float(optimizer.learning_rate))
        optimizer.apply([keras.ops.ones(1)])
    assert seen == [1.0, 1.0, 0.5, 0.5]


def test_the_scale_of_reduce_on_plateau_is_state_of_the_optimizer() -> None:
    variable = keras.Variable([1.0], name="kernel")
    schedule: Any = ReduceOnPlateau(lr=0.1, decay=0.5, min_fraction=0.3).create(STEPS, EPOCHS)
    optimizer = create_optimizer(SGD(), schedule, [variable])
    assert any(schedule.scale is known for known in optimizer.variables)
    assert schedule.reduce() == 0.5
    assert float(optimizer.learning_rate) == pytest.approx(0.05)
    assert schedule.reduce() == pytest.approx(0.3)  # not below min_fraction
