"""Margin heads against their formulas, in training and out of it, in half precision, and after saving."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from scena.model.metric_learning import ArcFace, CombinedMargin, CosFace, MarginHead, SphereFace

HEADS = [ArcFace(5, 20.0, 0.5), CosFace(5, 20.0, 0.3), SphereFace(5, 20.0, 1.7), CombinedMargin(5, 20.0, 1.2, 0.2, 0.1)]


def sample_batch() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    return rng.normal(size=(40, 6)).astype("float32") * 3, rng.integers(0, 5, 40)


def angles(head: MarginHead, embedding: np.ndarray) -> np.ndarray:
    """The angle of each sample to each class, computed one by one."""
    kernel = np.asarray(head.kernel.value, "float64")
    return np.array(
        [[math.acos(x @ w / np.linalg.norm(x) / np.linalg.norm(w)) for w in kernel.T] for x in embedding.astype(float)]
    )


def falling(angle: float) -> float:
    """ψ of SphereFace: (−1)^k cos φ − 2k where φ lies in [kπ, (k + 1)π]."""
    k = int(angle // math.pi)
    return (-1) ** k * math.cos(angle) - 2 * k


FORMULAS: dict[type[MarginHead], Callable[[float], float]] = {
    ArcFace: lambda t: math.cos(t + 0.5) if t + 0.5 <= math.pi else math.cos(t) - 0.5 * math.sin(0.5),
    CosFace: lambda t: math.cos(t) - 0.3,
    SphereFace: lambda t: falling(1.7 * t),
    CombinedMargin: lambda t: falling(1.2 * t + 0.2) - 0.1,
}


@pytest.mark.parametrize("head", HEADS, ids=lambda head: type(head).__name__)
def test_the_right_class_has_its_margin_and_the_others_none(head: MarginHead) -> None:
    embedding, labels = sample_batch()
    logits = np.asarray(head(embedding, labels, training=True))
    theta = angles(head, embedding)
    formula = FORMULAS[type(head)]
    expected = 20 * np.cos(theta)
    for row, label in enumerate(labels):
        expected[row, label] = 20 * formula(theta[row, label])
    np.testing.assert_allclose(logits, expected, atol=1e-3)
    np.testing.assert_allclose(head(embedding, labels, training=False), 20 * np.cos(theta), atol=1e-4)
    np.testing.assert_allclose(head(embedding, training=True), 20 * np.cos(theta), atol=1e-4)


@pytest.mark.parametrize("head", HEADS, ids=lambda head: type(head).__name__)
def test_a_larger_angle_is_never_better_and_gradients_are_finite(head: MarginHead) -> None:
    theta = tf.constant(np.linspace(0, math.pi, 1001), tf.float32)
    cosine = tf.cos(theta)
    with tf.GradientTape() as tape:
        tape.watch(cosine)
        logits = head.with_margin(cosine)
    assert np.all(np.isfinite(tape.gradient(logits, cosine)))
    assert np.all(np.diff(logits)[2:-2] < 1e-5), "the logit grows with the angle somewhere"


def test_behind_pi_arcface_goes_on_as_the_formula_says() -> None:
    head = ArcFace(2, s=1.0, m=0.5)
    theta = math.pi - 0.3
    assert float(head.with_margin(tf.constant(math.cos(theta)))) == pytest.approx(
        math.cos(theta) - 0.5 * math.sin(0.5), abs=1e-6
    )


@pytest.mark.parametrize(
    ("one", "margins"),
    [
        (ArcFace(5, 20.0, 0.4), (1, 0.4, 0)),
        (CosFace(5, 20.0, 0.3), (1, 0, 0.3)),
        (SphereFace(5, 20.0, 1.5), (1.5, 0, 0)),
    ],
    ids=["ArcFace", "CosFace", "SphereFace"],
)
def test_the_combined_margin_holds_the_three_others(one: MarginHead, margins: tuple[float, float, float]) -> None:
    embedding, labels = sample_batch()
    combined = CombinedMargin(5, 20.0, *margins)
    combined.build(embedding.shape)
    one.build(embedding.shape)
    combined.kernel.assign(one.kernel)
    np.testing.assert_allclose(
        combined(embedding, labels, training=True), one(embedding, labels, training=True), atol=1e-4
    )


def test_without_a_factor_the_length_of_the_embedding_counts() -> None:
    embedding, labels = sample_batch()
    head = SphereFace(5)
    logits = np.asarray(head(embedding, labels))
    np.testing.assert_allclose(np.asarray(head(2 * embedding, labels)), 2 * logits, rtol=1e-4)
    np.testing.assert_allclose(
        logits, np.linalg.norm(embedding, axis=1, keepdims=True) * np.cos(angles(head, embedding)), atol=1e-4
    )


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_logits_are_float32_under_mixed_precision(policy: str) -> None:
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        dense, head = keras.layers.Dense(6), ArcFace(5)
    finally:
        keras.config.set_dtype_policy(before)
    embedding, labels = sample_batch()
    half = dense(embedding)
    assert keras.backend.standardize_dtype(half.dtype) == policy.removeprefix("mixed_")
    logits = head(half, labels, training=True)
    assert keras.backend.standardize_dtype(logits.dtype) == "float32"
    same = ArcFace(5)
    same.build((None, 6))
    same.kernel.assign(head.kernel)
    np.testing.assert_allclose(logits, same(tf.cast(half, tf.float32), labels, training=True), atol=1e-5)


@pytest.mark.parametrize("head", [*HEADS, SphereFace(5)], ids=lambda head: f"{type(head).__name__}-{head.s}")
def test_a_saved_model_gives_the_same(tmp_path: Path, head: MarginHead) -> None:
    embedding, labels = sample_batch()
    inputs: Any = [keras.Input((6,)), keras.Input((), dtype="int32")]
    model = keras.Model(inputs, type(head).from_config(head.get_config())(*inputs, training=True))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded([embedding, labels]), model([embedding, labels]))


def test_embeddings_of_zeros_do_no_harm() -> None:
    head = ArcFace(3)
    zeros = tf.zeros((2, 4))
    with tf.GradientTape() as tape:
        tape.watch(zeros)
        loss = tf.reduce_sum(head(zeros, np.array([0, 1]), training=True))
    assert np.all(np.isfinite(tape.gradient(loss, zeros)))
