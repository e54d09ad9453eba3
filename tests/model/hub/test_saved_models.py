"""SavedModels: what is found in their graphs, what is refused, and how they behave as a layer."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from scena.errors import ModelError
from scena.model.hub.inspect import check_saved_model, resolve_handle, suspicious_operations, trust_saved_models
from scena.model.hub.layer import FeatureClassifier, SavedModelFeatures

SIZE = (4, 4, 3)
PICTURES = tf.TensorSpec([None, *SIZE], tf.float32)


class Harmless(tf.Module):
    """As TensorFlow Hub's models: called as an object, with `training`; one variable is trained and one counts."""

    def __init__(self) -> None:
        super().__init__()
        self.kernel = tf.Variable(tf.random.normal([48, 5]), name="kernel")
        self.calls = tf.Variable(0.0, trainable=False, name="calls")
        self.variables_of_it = [self.kernel, self.calls]

    @tf.function
    def __call__(self, image: Any, training: bool = False) -> Any:
        if training:
            self.calls.assign_add(1.0)
        noise = tf.random.normal([5]) if training else 0.0
        return tf.matmul(tf.reshape(image, [-1, 48]), self.kernel) + 0.0 * noise


class WithFunction(tf.Module):
    """A model whose call goes through a function of ours."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.kernel = tf.Variable(tf.ones([48, 5]))
        self.function = function

    @tf.function(input_signature=[PICTURES])
    def __call__(self, image: Any) -> Any:
        features = tf.matmul(tf.reshape(image, [-1, 48]), self.kernel)
        # inside a loop: operations may be hidden in functions of functions
        return tf.while_loop(lambda i, x: i < 1, lambda i, x: (i + 1, self.function(x)), [0, features])[1]


class WithTable(tf.Module):
    """A model that reads a file when it is loaded."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        file.write_text("a\nb\n")
        index = tf.lookup.TextFileIndex
        lines = tf.lookup.TextFileInitializer(str(file), tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER)
        self.table = tf.lookup.StaticHashTable(lines, -1)

    @tf.function(input_signature=[PICTURES])
    def __call__(self, image: Any) -> Any:
        return image[:, 0, 0] + tf.cast(self.table.lookup(tf.constant("a")), tf.float32)


def written(value: Any) -> Any:
    tf.io.write_file("written-by-a-model", "here")
    return value


def through_python(value: Any) -> Any:
    return tf.ensure_shape(tf.numpy_function(lambda array: array, [value], tf.float32), value.shape)


def printed(value: Any) -> Any:
    tf.print("a message", output_stream="file://a-file")
    return value


@pytest.fixture
def extractor(tmp_path: Path) -> Path:
    """The SavedModel of `Harmless`."""
    module = Harmless()
    for training in (False, True):
        module.__call__.get_concrete_function(PICTURES, training=training)
    tf.saved_model.save(module, str(tmp_path / "extractor"))
    return tmp_path / "extractor"


@pytest.mark.parametrize(
    ("make", "operation"),
    [
        (lambda folder: WithFunction(written), "WriteFile"),
        (lambda folder: WithFunction(through_python), "PyFunc"),
        (lambda folder: WithFunction(printed), "PrintV2"),
        (lambda folder: WithTable(folder / "words.txt"), "InitializeTableFromTextFileV2"),
    ],
)
def test_models_that_reach_out_are_refused_unless_trusted(tmp_path: Path, make: Any, operation: str) -> None:
    tf.saved_model.save(make(tmp_path), str(tmp_path / "model"))
    with pytest.raises(ModelError, match=f"its graph has .*{operation}.* It is loaded only with --trust"):
        SavedModelFeatures(tmp_path / "model", SIZE)
    trust_saved_models()
    try:
        check_saved_model(tmp_path / "model")
    finally:
        trust_saved_models(False)
    with pytest.raises(ModelError):
        check_saved_model(tmp_path / "model")


def test_ordinary_models_are_found_harmless(extractor: Path, tmp_path: Path) -> None:
    assert not list(suspicious_operations(extractor))
    network = keras.Sequential(
        [keras.Input(SIZE), keras.layers.Conv2D(3, 2), keras.layers.BatchNormalization(), keras.layers.Dropout(0.5)]
    )
    network.export(tmp_path / "keras", verbose=False)
    assert not list(suspicious_operations(tmp_path / "keras"))


def test_the_old_format_is_refused(tmp_path: Path) -> None:
    graph = tf.Graph()
    with graph.as_default(), tf.compat.v1.Session() as session:
        image = tf.compat.v1.placeholder(tf.float32, [None, *SIZE])
        kernel = tf.compat.v1.get_variable("kernel", [3, 2], use_resource=True)
        features = tf.matmul(image[:, 0, 0], kernel)
        session.run(tf.compat.v1.global_variables_initializer())
        builder = tf.compat.v1.saved_model.Builder(str(tmp_path / "old"))
        signature = tf.compat.v1.saved_model.predict_signature_def({"image": image}, {"features": features})
        builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature})
        builder.save()
    with pytest.raises(ModelError, match="RestoreV2"):
        check_saved_model(tmp_path / "old")


def test_its_variables_are_weights_that_can_be_trained_and_frozen(extractor: Path) -> None:
    layer = SavedModelFeatures(extractor, SIZE)
    images = np.random.default_rng(0).normal(size=(3, *SIZE)).astype("float32")
    layer(images)
    assert [tuple(weight.shape) for weight in layer.trainable_weights] == [(48, 5)]
    assert [tuple(weight.shape) for weight in layer.non_trainable_weights] == [()]
    expected = images.reshape(3, 48) @ layer.trainable_weights[0].numpy()
    np.testing.assert_allclose(layer(images), expected, rtol=1e-5)
    counter = layer.non_trainable_weights[0]
    layer(images, training=True)
    assert float(counter.numpy()) == 1
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(images, training=True))
    gradient = tape.gradient(loss, layer.trainable_weights[0].value)
    np.testing.assert_allclose(gradient, np.repeat(images.reshape(3, 48).sum(0)[:, None], 5, axis=1), rtol=1e-4)
    layer.trainable = False
    layer(images, training=True)
    assert float(counter.numpy()) == 2 and not layer.trainable_weights


@pytest.mark.parametrize("kind", ["keras", "signature"])
def test_other_kinds_of_saved_models(tmp_path: Path, kind: str) -> None:
    network = keras.Sequential([keras.Input(SIZE), keras.layers.Conv2D(6, 2, name="conv")])
    images = np.random.default_rng(0).normal(size=(2, *SIZE)).astype("float32")
    if kind == "keras":
        network.export(tmp_path / "model", verbose=False)
    else:
        module = tf.Module()
        module.kept = [weight.value for weight in network.weights]
        serve = tf.function(lambda image: {"features": network(image)}, input_signature=[PICTURES])
        tf.saved_model.save(module, str(tmp_path / "model"), signatures=serve.get_concrete_function())
    classifier = FeatureClassifier(tmp_path / "model", SIZE, 3, dropout=0.2, l2=0.1)
    assert classifier(images).shape == (2, 3)
    np.testing.assert_allclose(classifier.extractor(images), network(images), rtol=1e-4, atol=1e-5)
    assert len(classifier.trainable_weights) == 4 and len(classifier.losses) == 1


def test_what_does_not_fit_is_explained(extractor: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"does not take images of shape \(8, 8, 3\).*Give that as --model.input_size"):
        SavedModelFeatures(extractor, (8, 8, 3))
    with pytest.raises(ModelError, match="is not a SavedModel: there is no such folder"):
        resolve_handle(str(tmp_path / "nothing"))
    with pytest.raises(ModelError, match="is not a SavedModel: it has no saved_model.pb"):
        resolve_handle(str(tmp_path))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "saved_model.pb").write_bytes(b"\xff\xff")
    with pytest.raises(ModelError, match="cannot be read"):
        check_saved_model(tmp_path / "broken")


def test_an_address_needs_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tensorflow_hub", None)
    with pytest.raises(ModelError, match=r"needs TensorFlow Hub: pip install 'scena\[hub\]'"):
        resolve_handle("https://example.org/a-model/1")
