"""Center loss against its definition: distances, moving centers, several replicas, half precision, saving."""

import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from scena.model.metric_learning import CenterLoss

X = np.array([[1, 2], [3, 4], [5, 6], [0, 1]], "float32")
LABELS = np.array([0, 2, 2, 0])
CENTERS = np.array([[1, 1], [9, 9], [2, -2]], "float32")


def layer_with_centers(alpha: float = 0.9) -> CenterLoss:
    layer = CenterLoss(3, alpha)
    layer.build(X.shape)
    layer.centers.assign(CENTERS)
    return layer


def moved_centers(alpha: float = 0.9) -> np.ndarray:
    """c − (1 − α) Σ (c − x), class by class."""
    expected = CENTERS.copy()
    for label in range(3):
        expected[label] -= (1 - alpha) * sum((CENTERS[label] - x for x in X[label == LABELS]), np.zeros(2))
    return expected


def test_the_loss_is_the_mean_square_and_the_centers_move_after_it() -> None:
    layer = layer_with_centers()
    loss = layer(X, LABELS, training=True)
    expected = [np.mean((x - CENTERS[label]) ** 2) for x, label in zip(X, LABELS, strict=True)]
    np.testing.assert_allclose(loss, expected, rtol=1e-6)  # of the centers before they moved
    np.testing.assert_allclose(layer.centers, moved_centers(), rtol=1e-6)
    np.testing.assert_array_equal(layer.centers[1], [9, 9])  # no sample of this class


@pytest.mark.parametrize("training", [False, None])
def test_nothing_moves_in_evaluation(training: bool | None) -> None:
    layer = layer_with_centers()
    layer(X, LABELS, training=training)
    np.testing.assert_array_equal(layer.centers, CENTERS)


def test_gradients_go_to_the_embeddings_and_not_to_the_centers() -> None:
    layer = layer_with_centers()
    assert not layer.trainable_variables and len(layer.non_trainable_variables) == 1
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(layer(x, LABELS, training=True))
    np.testing.assert_allclose(tape.gradient(loss, x), 2 * (X - CENTERS[LABELS]) / 2, rtol=1e-6)


def test_a_compiled_step_moves_them_once() -> None:
    layer = layer_with_centers(0.5)
    step = tf.function(lambda x, y: layer(x, y, training=True))
    step(X, LABELS)
    np.testing.assert_allclose(layer.centers, moved_centers(0.5), rtol=1e-6)


def test_half_precision_is_left_at_the_door() -> None:
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_float16")
    try:
        layer = CenterLoss(3)
    finally:
        keras.config.set_dtype_policy(before)
    loss = layer(tf.constant(300 * X, tf.float16), LABELS, training=True)  # its squares exceed float16
    assert loss.dtype == tf.float32 and np.all(np.isfinite(loss))
    assert layer.centers.dtype == "float32"


def test_a_saved_model_keeps_its_centers(tmp_path: Path) -> None:
    inputs = [keras.Input((2,)), keras.Input((), dtype="int32")]
    model = keras.Model(inputs, CenterLoss(3, 0.7)(*inputs))
    model([X, LABELS], training=True)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded([X, LABELS]), model([X, LABELS]))
    assert loaded.layers[-1].alpha == 0.7


TWO_DEVICES = """
import keras, numpy as np, tensorflow as tf
from scena.model.metric_learning import CenterLoss
from scena.backends.tensorflow.replica import ReplicaStep
from scena.model.metric_learning.replicas import replica_step
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
x = np.array([[1, 2], [3, 4], [5, 6], [0, 1]], "float32")
labels = np.array([0, 2, 2, 0], "int32")

def place():
    return tf.distribute.get_replica_context().replica_id_in_sync_group

alone = CenterLoss(3, 0.9)
alone(x, labels, training=True)
expected = alone.centers.numpy()
assert np.any(expected)
"""

KERAS_SCOPE = """
with strategy.scope():
    layer = CenterLoss(3, 0.9)
    layer.build(x.shape)

def step():
    rows = [2 * place(), 2 * place() + 1]
    layer(tf.gather(x, rows), tf.gather(labels, rows), training=True)

tf.function(lambda: strategy.run(step))()
np.testing.assert_allclose(layer.centers.numpy(), expected, rtol=1e-6)
"""

UNEVEN_PARTS = """
def create_model():
    inputs = [keras.Input((2,)), keras.Input((), dtype="int32")]
    return keras.Model(inputs, CenterLoss(3, 0.9)(*inputs))

models, parts = [create_model(), create_model()], [slice(0, 3), slice(3, 4)]

def uneven_step():
    number = int(tf.get_static_value(tf.convert_to_tensor(place())))
    part = parts[number]
    share = tf.constant(len(x[part]) / len(x), tf.float32)
    replica = ReplicaStep(models[number], share, tf.constant(0.0))
    with replica_step(replica):
        models[number]([x[part], labels[part]], training=True)
        replica.exchange([])

tf.function(lambda: strategy.run(uneven_step))()
for model in models:
    np.testing.assert_allclose(model.layers[-1].centers.numpy(), expected, rtol=1e-5)
"""


def test_two_replicas_move_the_centers_as_one_with_the_whole_batch() -> None:
    """In a scope of Keras, and in Scena's step with parts of different size."""
    script = TWO_DEVICES + KERAS_SCOPE + UNEVEN_PARTS
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
