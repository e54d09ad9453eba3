"""With the weights of keras.applications our networks compute the same; and so do NCHW and upstride_real."""

from pathlib import Path
from typing import Any

import h5py
import keras
import numpy as np
import pytest

from scena.errors import ModelError
from scena.model.zoo import copy_weights, create_network, load_pretrained
from scena.model.zoo.catalogue import MODELS

QUICK = ["VGG16", "MobileNetV2", "MobileNetV3Small", "ResNet50", "ResNet50V2", "EfficientNetB0"]
SLOW = [name for name, entry in MODELS.items() if entry.application and not name.endswith("NCHW") and name not in QUICK]
SMALLEST = {"InceptionResNetV2": 96, "VGG16": 32}
RNG = np.random.default_rng(0)


def shaken(model: keras.Model) -> keras.Model:
    """Statistics and offsets that are not zero or one, so that nothing is equal by chance."""
    for weight in model.weights:
        values = weight.numpy()
        if weight.name in ("moving_variance", "gamma"):
            weight.assign(RNG.uniform(0.5, 1.5, values.shape))
        elif weight.name in ("moving_mean", "beta", "bias"):
            weight.assign(RNG.normal(scale=0.1, size=values.shape))
    return model


def application(name: str, size: int) -> keras.Model:
    keywords: dict[str, Any] = {"include_preprocessing": False} if name.startswith("MobileNetV3") else {}
    make = getattr(keras.applications, name)
    shape = (size, size, 3)
    return shaken(make(weights=None, input_shape=shape, classes=10, classifier_activation=None, **keywords))


def assert_equal(name: str) -> None:
    size = SMALLEST.get(name, 64)
    theirs = application(name, size)
    ours = create_network(name, (size, size, 3), 10)
    copy_weights(theirs, ours)
    pictures = RNG.normal(size=(2, size, size, 3)).astype("float32")
    # EfficientNet of Keras divides by 255 inside
    expected = np.asarray(theirs(pictures * 255 if name.startswith("Efficient") else pictures, training=False))
    np.testing.assert_allclose(ours(pictures, training=False), expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("name", QUICK)
def test_equal_to_keras_applications(name: str) -> None:
    assert_equal(name)


@pytest.mark.long
@pytest.mark.parametrize("name", SLOW)
def test_all_others_are_equal_to_keras_applications(name: str) -> None:
    assert_equal(name)


def assert_nchw_is_equal(name: str, framework: str, **keywords: Any) -> None:
    size = (MODELS[name].smallest + 1, MODELS[name].smallest, 3)
    last = shaken(create_network(name, size, 4, 8, framework, **keywords))
    first = create_network(name, size, 4, 8, framework, "NCHW", **keywords)
    copy_weights(last, first)
    pictures = RNG.normal(size=(2, *size)).astype("float32")
    outputs = [keras.tree.flatten(model(pictures, training=False)) for model in (first, last)]
    for ours, expected in zip(*outputs, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("framework", ["tensorflow", "upstride_type2"])
@pytest.mark.parametrize("name", ["ResNet50", "MobileNetV2"])
def test_nchw_is_equal(name: str, framework: str) -> None:
    assert_nchw_is_equal(name, framework, depth=0.1)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in MODELS if not name.endswith("NCHW")])
def test_nchw_is_equal_for_all(name: str) -> None:
    assert_nchw_is_equal(name, "upstride_type1")


@pytest.mark.parametrize("name", ["SqueezeNet", "MobileNetV2CIFAR"])
def test_upstride_real_is_tensorflow(name: str) -> None:
    keywords = {"depth": 0.1} if "depth" in MODELS[name].options else {}
    plain = shaken(create_network(name, (32, 32, 3), 4, 4, **keywords))
    real = create_network(name, (32, 32, 3), 4, 4, "upstride_real", **keywords)
    copy_weights(plain, real)
    pictures = RNG.normal(size=(2, 32, 32, 3)).astype("float32")
    np.testing.assert_allclose(real(pictures), plain(pictures), atol=1e-5)
    assert real.count_params() == plain.count_params()


def test_weights_from_files(tmp_path: Path) -> None:
    trained = shaken(create_network("ResNet20CIFAR", factor=4, depth=0.1))
    trained.save(tmp_path / "model.keras")
    trained.save_weights(tmp_path / "model.weights.h5")
    pictures = RNG.normal(size=(2, 32, 32, 3)).astype("float32")
    for file in ("model.keras", "model.weights.h5"):
        network = create_network("ResNet20CIFAR", factor=4, depth=0.1)
        load_pretrained(network, str(tmp_path / file))
        np.testing.assert_array_equal(network(pictures), trained(pictures))
    other = create_network("ResNet20CIFAR", num_classes=7, factor=4, depth=0.1)
    assert not load_pretrained(other, str(tmp_path / "model.keras"))
    np.testing.assert_array_equal(other.layers[1].kernel, trained.layers[1].kernel)


@pytest.mark.parametrize("name", ["MobileNetV2", pytest.param("ResNet50", marks=pytest.mark.long)])
def test_files_of_keras_applications(tmp_path: Path, name: str) -> None:
    theirs = shaken(getattr(keras.applications, name)(weights=None, include_top=False))
    theirs.save(tmp_path / "notop.h5")
    ours = create_network(name, (64, 64, 3), 7)
    assert not load_pretrained(ours, str(tmp_path / "notop.h5"))
    features = keras.Model(ours.input, ours.get_layer("classifier").input)
    pictures = RNG.normal(size=(2, 64, 64, 3)).astype("float32")
    # the weights of ResNet want blue first; in our network that is put right
    expected = keras.ops.mean(theirs(pictures[..., ::-1] if name == "ResNet50" else pictures), axis=(1, 2))
    np.testing.assert_allclose(features(pictures), expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_a_file_whose_values_are_elsewhere_is_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "linked.weights.h5", "w") as file:
        file["layers"] = h5py.ExternalLink("/etc/hostname", "/x")
    network = create_network("ResNet20CIFAR", factor=4, depth=0.1)
    with pytest.raises(ModelError, match="layers is a link to /etc/hostname"):
        load_pretrained(network, str(tmp_path / "linked.weights.h5"))


def test_weights_that_do_not_fit() -> None:
    network = create_network("ResNet20CIFAR", factor=4, depth=0.1)
    with pytest.raises(ModelError, match=r"do not fit classifier, which has \[\(16, 7\), \(7,\)\]"):
        copy_weights(network, create_network("ResNet20CIFAR", num_classes=7, factor=4, depth=0.1))
    with pytest.raises(ModelError, match="ResNet20CIFAR has 15 layers with weights and ResNet20CIFAR has"):
        copy_weights(network, create_network("ResNet20CIFAR", factor=4, depth=0.7))
    with pytest.raises(ModelError, match="has no weights for ResNet20CIFAR; it has them for VGG16, ResNet50"):
        load_pretrained(network, "imagenet")
    with pytest.raises(ModelError, match="an existing file. Received: 'none.keras'"):
        load_pretrained(network, "none.keras")
