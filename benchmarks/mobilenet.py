"""A larger network to serve: MobileNetV2 with random weights."""

from typing import Any

import keras
import numpy as np

from scena import (
    ArraySpec,
    DataBase,
    DataBaseParams,
    DataGeneratorParams,
    GraphBase,
    ModelBase,
    ModelBaseParams,
    RandomAccessGenerator,
    Sample,
    ScenarioBase,
    ScenarioBaseParams,
    TrainValParams,
    param,
)

Tensors = dict[str, Any]
SIZE = 32
"""CIFAR's size. Batching pays where a single picture leaves the cores idle: at 96 pixels the network itself gains only 1.4 on two cores."""


class NoiseParams(DataGeneratorParams, builds="benchmarks.mobilenet:Noise"):
    """Random pictures."""

    count: int = param(32, help="number of pictures")


class Noise(RandomAccessGenerator[NoiseParams]):
    """Random pictures."""

    def __len__(self) -> int:
        return self.params.count

    def __getitem__(self, index: int) -> Sample:
        image = np.random.default_rng(index).integers(0, 256, (SIZE, SIZE, 3)).astype("uint8")
        return Sample(inputs={"image": image}, targets={"label": np.int32(index % 100)})


class PictureDataParams(DataBaseParams, builds="benchmarks.mobilenet:PictureData"):
    """Pictures as they are."""


class PictureData(DataBase[PictureDataParams]):
    """Small colour pictures."""

    def _input_layer_specs(self) -> dict[str, ArraySpec]:
        return {"image": ArraySpec((SIZE, SIZE, 3), "uint8")}

    def _target_layer_specs(self) -> dict[str, ArraySpec]:
        return {"label": ArraySpec((), "int32")}


class MobileNetParams(ModelBaseParams, builds="benchmarks.mobilenet:MobileNet"):
    """MobileNetV2."""


class MobileNetGraph(GraphBase[MobileNetParams]):
    """The network of keras.applications."""

    def __init__(self, params: MobileNetParams, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        self.network = keras.applications.MobileNetV2((SIZE, SIZE, 3), weights=None, classes=100)

    def calibrate(self) -> None:
        """Sets the statistics of batch normalization to those of noise.

        With the initial ones activations vanish, and every network answers 0.01 for every class of every image.
        """
        norms = [layer for layer in self.network.layers if isinstance(layer, keras.layers.BatchNormalization)]
        noise = np.random.default_rng(0).uniform(-1, 1, (32, SIZE, SIZE, 3)).astype("float32")
        momenta = [layer.momentum for layer in norms]
        for layer in norms:
            layer.momentum = 0.0
        self.network(noise, training=True)
        for layer, momentum in zip(norms, momenta, strict=True):
            layer.momentum = momentum

    def build_graph(self, inputs: Tensors, training: bool | None = None) -> Tensors:
        return {"pred": self.network(keras.ops.cast(inputs["image"], "float32") / 127.5 - 1, training=training)}


class MobileNet(ModelBase[MobileNetParams]):
    """Classifies pictures."""

    def create_graph(self) -> MobileNetGraph:
        return MobileNetGraph(self.params)

    def _loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {"loss": keras.losses.sparse_categorical_crossentropy(targets["label"], outputs["pred"])}


class MobileNetScenarioParams(ScenarioBaseParams[PictureDataParams, MobileNetParams]):
    """Pictures and MobileNetV2."""


class MobileNetScenario(ScenarioBase[MobileNetScenarioParams, TrainValParams[NoiseParams]]):
    """MobileNetV2 on small pictures."""
