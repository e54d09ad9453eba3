"""Pixelwise binary cross-entropy and balanced weights against their definitions."""

import json

import keras
import numpy as np
import pytest

from scena.model.metric_learning import PixelwiseBinaryCrossentropy, balanced_weights

LABELS = np.array([1, 0, 0, 0, 1, 0])


def maps() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(6, 4, 3, 1)).astype("float32") * 3


def test_weights_are_batch_over_count_and_classes() -> None:
    np.testing.assert_allclose(balanced_weights(LABELS, 2), [6 / (2 * 2) if y else 6 / (4 * 2) for y in LABELS])
    weights = np.asarray(balanced_weights(np.array([2, 0, 1, 1, 1, 1, 2]), 3))
    np.testing.assert_allclose(weights, [7 / 6, 7 / 3, 7 / 12, 7 / 12, 7 / 12, 7 / 12, 7 / 6], rtol=1e-6)
    assert weights.mean() == pytest.approx(1)


def test_a_class_that_is_not_in_the_batch_does_no_harm() -> None:
    np.testing.assert_allclose(balanced_weights(np.ones((4, 1), int), 2), [0.5] * 4)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("balanced", [False, True])
def test_each_pixel_is_a_yes_or_no_about_the_picture(smoothing: float, balanced: bool) -> None:
    logits = maps()
    p = 1 / (1 + np.exp(-logits.astype("float64")))
    wanted = (LABELS * (1 - smoothing) + smoothing / 2)[:, None, None, None]
    expected = -(wanted * np.log(p) + (1 - wanted) * np.log(1 - p)).mean(axis=(1, 2, 3))
    if balanced:
        expected *= np.where(LABELS == 1, 1.5, 0.75)
    loss = PixelwiseBinaryCrossentropy(smoothing, balanced)
    np.testing.assert_allclose(loss.call(LABELS, logits), expected, rtol=1e-5)
    assert float(loss(LABELS, logits)) == pytest.approx(expected.mean(), rel=1e-5)


def test_large_logits_and_half_precision_stay_finite() -> None:
    loss = PixelwiseBinaryCrossentropy().call(np.array([0, 1]), np.array([[6e4], [-6e4]], "float16"))
    np.testing.assert_allclose(loss, [60000, 60000], rtol=1e-2)


def test_its_settings_are_stored_as_plain_data() -> None:
    stored = json.dumps(keras.losses.serialize(PixelwiseBinaryCrossentropy(0.1, balanced=False)))
    again = keras.losses.deserialize(json.loads(stored))
    assert isinstance(again, PixelwiseBinaryCrossentropy)
    assert (again.label_smoothing, again.balanced) == (0.1, False)
