"""Building networks: a step of training for each, their options, saving, and what they refuse."""

from pathlib import Path

import keras
import numpy as np
import pytest

from scena.errors import ModelError
from scena.model.zoo import create_network
from scena.model.zoo.catalogue import MODELS
from scena.model.zoo.network import network_from_params
from scena.model.zoo.params import AlgebraParams, Framework, NetworkParams
from scena.params import build

QUICK = ["AlexNet", "VGG16", "SqueezeNet", "TinyDarknet", "ResNet18", "ResNet18NCHW", "ResNet20CIFAR", "WideResNet40_2",
         "MobileNetV2", "MobileNetV3Small", "IResNet18"]  # fmt: skip


def assert_trains(name: str, framework: str = "tensorflow", factor: int = 4, **keywords: object) -> None:
    """One step of training gives finite numbers; Keras warns of a weight without a gradient, and warnings are errors."""
    entry = MODELS[name]
    size = (entry.smallest, entry.smallest, 3)
    model = create_network(name, size, 3, factor, framework, **keywords)  # type: ignore[arg-type]
    pictures = np.random.default_rng(0).normal(size=(2, *size)).astype("float32")
    loss: object = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    labels: object = np.array([0, 2])
    if isinstance(model.output, dict):
        loss = {"logits": loss, "map": keras.losses.BinaryCrossentropy(from_logits=True)}
        labels = {"logits": labels, "map": np.ones((2, *model.output["map"].shape[1:]))}
    # clipped: where the picture shrinks to one pixel, batch normalisation of two samples has huge gradients in any framework
    model.compile(keras.optimizers.SGD(0.01, global_clipnorm=1.0), loss, run_eagerly=True)
    value = model.train_on_batch(pictures, labels)
    assert np.all(np.isfinite(value))
    for output in keras.tree.flatten(model(pictures)):
        assert np.all(np.isfinite(output))


@pytest.mark.parametrize("name", QUICK)
def test_one_step(name: str) -> None:
    assert_trains(name, factor=8)


@pytest.mark.parametrize("framework", [framework for framework in Framework if framework != Framework.TENSORFLOW])
def test_one_step_in_every_algebra(framework: str) -> None:
    assert_trains("MobileNetV2", framework, 8, depth=0.1)


@pytest.mark.long
@pytest.mark.parametrize("framework", Framework)
@pytest.mark.parametrize("name", MODELS)
def test_one_step_for_all(name: str, framework: str) -> None:
    assert_trains(name, framework, 4)


@pytest.mark.parametrize("leave", ["before_last", "after_last"])
@pytest.mark.parametrize("way_in", ["basic", "learned", "joint", "grayscale"])
def test_ways_through_an_algebra(way_in: str, leave: str, tmp_path: Path) -> None:
    way_out = "concat" if leave == "before_last" else "norm"
    raw = {"way_in": way_in, "way_out": way_out, "leave": leave, "batch_norm": "whitening", "shared_dropout": True}
    algebra = build(raw, AlgebraParams)
    model = create_network("WideResNet40_2", (8, 8, 3), 5, 8, "upstride_type2", depth=0.1, dropout=0.2, algebra=algebra)
    pictures = np.random.default_rng(0).normal(size=(2, 8, 8, 3)).astype("float32")
    assert model(pictures, training=True).shape == (2, 5)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(pictures), model(pictures))


def test_depth() -> None:
    def convolutions(**keywords: object) -> int:
        model = create_network("ResNet18", (32, 32, 3), 2, 16, **keywords)  # type: ignore[arg-type]
        return sum(isinstance(layer, keras.layers.Conv2D) for layer in model.layers)

    shortcuts = 3
    assert convolutions() == 1 + 2 * 8 + shortcuts
    assert convolutions(depth=2) == 1 + 2 * 16 + shortcuts
    assert convolutions(depth=[1, 2, 1, 3]) == 1 + 2 * 7 + shortcuts
    with pytest.raises(ModelError, match=r"each of the 4 stages \(default: 2 2 2 2\)\. Received: \[1, 2\]"):
        convolutions(depth=[1, 2])


def test_features_instead_of_classes() -> None:
    assert create_network("ResNet18", (32, 32, 3), 0, 4).output_shape == (None, 128)
    assert create_network("ResNet18", (32, 32, 3), 0, 4, "upstride_type1").output_shape == (None, 256)
    assert create_network("IResNet18", (16, 16, 3), factor=8).output_shape == (None, 512)
    assert create_network("IResNet18", (16, 16, 3), 7, factor=8, embedding=64).output_shape == (None, 7)


def test_dropout_and_penalty() -> None:
    model = create_network("SqueezeNet", (32, 32, 3), 2, 8, "upstride_type1", dropout=0.3, l2=0.01)
    assert [layer.rate for layer in model.layers if isinstance(layer, keras.layers.Dropout)] == [0.3]
    kernels = [weight for weight in model.weights if weight.name == "kernel"]
    expected = 0.01 * sum(float((kernel.numpy() ** 2).sum()) for kernel in kernels)
    assert float(sum(model.losses)) == pytest.approx(expected, rel=1e-4)


def test_mixed_precision_gives_logits_in_single_precision() -> None:
    keras.config.set_dtype_policy("mixed_float16")
    try:
        model = create_network("ResNet20CIFAR", (8, 8, 3), 3, 8, "upstride_type2", depth=0.1, activation="softmax")
    finally:
        keras.config.set_dtype_policy("float32")
    assert model.layers[3].compute_dtype == "float16"
    assert {weight.dtype for weight in model.trainable_weights} == {"float32"}
    outputs = model(np.zeros((2, 8, 8, 3), "float32"))
    assert keras.backend.standardize_dtype(outputs.dtype) == "float32"
    np.testing.assert_allclose(np.sum(outputs, axis=-1), 1, atol=1e-5)


def test_from_params() -> None:
    params = NetworkParams(name="ResNet20CIFAR", input_size=[16, 16, 1], num_classes=4, factor=4, depth=[0.3])
    model = network_from_params(params)
    assert (model.name, model.input_shape, model.output_shape) == ("ResNet20CIFAR", (None, 16, 16, 1), (None, 4))
    nchw = network_from_params(NetworkParams(name="ResNet18NCHW", input_size=[32, 32, 3], factor=32))
    assert nchw.layers[1].to == "channels_first"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "ResNet51"}, "There is no network 'ResNet51'.*ResNet5.*`scena zoo` lists them."),
        ({"name": "VGG16", "depth": 2}, "VGG16 has no depth. Received: depth=2. Networks that have it: ResNet18, ResNet34"),
        ({"name": "VGG16", "input_size": (16, 32, 3)}, r"VGG16 takes images .* at least 32 × 32. Received: \(16, 32, 3\)"),
        ({"name": "VGG16", "framework": "type2"}, "framework must be one of tensorflow, upstride_real, .* Received: 'type2'"),
        ({"name": "VGG16", "data_format": "NWHC"}, "data_format must be one of NHWC, NCHW. Received: 'NWHC'"),
        ({"name": "VGG16", "factor": 0}, "factor divides the channels and must be at least 0.01. Received: 0"),
        ({"name": "VGG16", "variant": "wide"}, "VGG16 has no variant. Received: variant='wide'. Networks that have it: AlexNet, ResNet20"),
        ({"name": "AlexNet", "variant": "two_tower"}, r"no variant 'two_tower' \(did you mean two_towers\?\); it has two_towers"),
    ],
)  # fmt: skip
def test_what_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        create_network(**arguments)  # type: ignore[arg-type]


def test_concat_after_the_classifier_is_refused() -> None:
    algebra = build({"leave": "after_last"}, AlgebraParams)
    with pytest.raises(ModelError, match="way_out cannot be concat"):
        create_network("ResNet18", framework="upstride_type1", algebra=algebra)


@pytest.mark.parametrize("framework", ["tensorflow", "upstride_real"])
def test_an_algebra_without_components_is_refused(framework: str) -> None:
    algebra = build({"way_out": "norm"}, AlgebraParams)
    with pytest.raises(ModelError, match=f"{framework} has real numbers only, so algebra.way_out would have no effect"):
        create_network("ResNet18", framework=framework, algebra=algebra)
