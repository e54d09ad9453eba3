"""A network of the zoo as a model: its first weights, mixed images, loss with smoothing and weights, accuracy and top-k."""

import logging
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops

from scena.data.image.params import NormalizeParams
from scena.errors import ModelError
from scena.model.graph import GenericGraphBase, Tensors
from scena.model.layers.normalization import WhiteningBatchNormalization
from scena.model.model import ModelBase
from scena.model.zoo.catalogue import MODELS
from scena.model.zoo.network import network_from_params
from scena.model.zoo.pretrained import ImageNormalization, load_pretrained, normalization_of
from scena.scenario.classification.data import stage_size
from scena.scenario.classification.params import (
    HUB,
    ClassificationModelParams,
    ClassificationNetworkParams,
    ClassificationPipelines,
    MixParams,
)

logger = logging.getLogger(__name__)


class ClassificationGraph(GenericGraphBase[ClassificationModelParams]):
    """The network; in training images may be mixed before it."""

    def __init__(self, params: ClassificationModelParams, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        self.network = create_network(params.network)
        self.mixing = Mixing(params.mix, name="mixing") if params.mix.mixup or params.mix.cutmix else None

    def build_train_graph(self, inputs: Tensors, targets: Tensors, training: bool | None = None) -> Tensors:
        """The network, on mixed images if that is asked for; also returns what was mixed with what."""
        if self.mixing is None or not training:
            return self._outputs(self.network(inputs["image"], training=training))
        image, other, share = self.mixing(inputs["image"], targets["label"])
        return {**self._outputs(self.network(image, training=training)), "other_label": other, "share": share}

    def build_prediction_graph(self, inputs: Tensors) -> Tensors:
        return self._outputs(self.network(inputs["image"], training=False))

    def _outputs(self, logits: Any) -> Tensors:
        if isinstance(logits, dict):  # DeepPixBiS has a map beside them
            logits = logits["logits"]
        return {"logits": logits, "pred": ops.softmax(logits), "class": ops.argmax(logits, axis=-1)}


def create_network(params: ClassificationNetworkParams) -> Any:
    """The network of the zoo, or the classifier on a SavedModel's features."""
    if params.name != HUB:
        network = network_from_params(params)
        for layer in network.layers:
            if isinstance(layer, keras.layers.BatchNormalization | WhiteningBatchNormalization):
                layer.momentum = min(layer.momentum, params.max_momentum or 1.0)
        return network
    from scena.model.hub.inspect import resolve_handle
    from scena.model.hub.layer import FeatureClassifier

    path = Path(params.files) if params.files is not None else resolve_handle(str(params.handle))
    size = (params.input_size[0], params.input_size[1], params.input_size[2])
    return FeatureClassifier(path, size, params.num_classes, params.dropout or 0.0, params.l2, name=HUB)


class ClassificationModel(ModelBase[ClassificationModelParams]):
    """Classifies images."""

    best = ("max", "acc")

    def create_graph(self) -> ClassificationGraph:
        weights, classes = self.params.class_weights, self.params.network.num_classes
        if weights and len(weights) != classes:
            raise ModelError(
                f"--model.class_weights needs one number for each of {classes} classes. Received: {len(weights)}."
            )
        return ClassificationGraph(self.params, name="graph")

    def loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        loss = self._cross_entropy(targets["label"], outputs["logits"])
        if "share" in outputs:
            share = outputs["share"]
            loss = share * loss + (1 - share) * self._cross_entropy(outputs["other_label"], outputs["logits"])
        return {"loss": loss}

    def _cross_entropy(self, label: Any, logits: Any) -> Any:
        classes = logits.shape[-1]
        wanted = ops.one_hot(label, classes, dtype="float32")
        smoothing = self.params.label_smoothing
        wanted = wanted * (1 - smoothing) + smoothing / classes
        loss = -ops.sum(wanted * ops.log_softmax(logits, axis=-1), axis=-1)
        if self.params.class_weights:
            loss = loss * ops.take(ops.convert_to_tensor(self.params.class_weights, "float32"), label)
        return loss

    def metrics(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        label, pred = targets["label"], outputs["pred"]
        measured = {"acc": keras.metrics.sparse_categorical_accuracy(label, pred)}
        for k in self.params.top_k:
            if 1 < k < pred.shape[-1]:
                measured[f"top{k}"] = keras.metrics.sparse_top_k_categorical_accuracy(label, pred, k=k)
        return measured


class Mixing(keras.layers.Layer):
    """Mixup and cutmix: mixes each image of a batch with another one of it; the loss is mixed in the same shares."""

    def __init__(self, params: MixParams, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.mixup = params.mixup
        self.cutmix = params.cutmix
        self.seed_generator = keras.random.SeedGenerator()

    def call(self, image: Any, label: Any) -> tuple[Any, Any, Any]:
        """The mixed images, the class of each one's partner, and the share of its own class."""
        count = ops.shape(image)[0]
        # partners by a random rotation of the batch: every image has one, and any batch size works
        step = keras.random.randint((), 1, ops.maximum(count, 2), seed=self.seed_generator)
        partner = ops.mod(ops.arange(count) + step, count)
        other = ops.take(image, partner, axis=0)
        alpha = self.mixup or self.cutmix
        share = keras.random.beta((count,), alpha, alpha, seed=self.seed_generator)
        if self.mixup:
            weight = ops.reshape(share, (-1, 1, 1, 1))
            mixed = weight * image + (1 - weight) * other
        else:
            inside = self._boxes(image, share)
            mixed = ops.where(inside, other, image)
            share = 1 - ops.mean(ops.cast(inside, "float32"), axis=(1, 2, 3))
        return ops.cast(mixed, image.dtype), ops.take(label, partner, axis=0), share

    def _boxes(self, image: Any, share: Any) -> Any:
        """A rectangle at a random position for each image, whose area is about 1 - share."""
        count, height, width, _ = ops.shape(image)  # the height and width of early epochs may be smaller
        side = ops.sqrt(1 - share)
        rows = self._inside(count, height, side)
        columns = self._inside(count, width, side)
        return ops.logical_and(ops.reshape(rows, (count, height, 1, 1)), ops.reshape(columns, (count, 1, width, 1)))

    def _inside(self, count: Any, length: Any, side: Any) -> Any:
        size = ops.cast(length, "float32")
        middle = keras.random.uniform((count, 1), seed=self.seed_generator) * size
        half = ops.expand_dims(side, 1) * size / 2
        centers = ops.expand_dims(ops.arange(length, dtype="float32"), 0) + 0.5
        return ops.abs(centers - middle) < half

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "params": {"mixup": self.mixup, "cutmix": self.cutmix}}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Mixing":
        return cls(MixParams(**config["params"]), **{key: value for key, value in config.items() if key != "params"})


def check_sizes(network: Any, params: ClassificationNetworkParams, sizes: list[int]) -> None:
    """Tries a network on the smaller images of progressive resizing, without computing anything.

    Raises:
        ModelError: it cannot take them.
    """
    full = params.input_size[:2]
    least = MODELS[params.name].smallest if params.name != HUB else 1
    for size in sizes:
        height, width = stage_size(size, full)
        if min(height, width) < least or size > max(full):
            raise ModelError(
                f"--train.sizes {size}: {params.name} takes images from {least} × {least} up to its input size, "
                f"{full[0]} × {full[1]}; that would be {height} × {width}."
            )
        try:
            network.call(keras.KerasTensor((None, height, width, params.input_size[2])))
        except (ValueError, TypeError) as error:
            reason = " ".join(str(error).split())
            raise ModelError(
                f"--train.sizes {size}: {params.name} cannot take images of {height} × {width} beside those of "
                f"{full[0]} × {full[1]}. Choose other sizes, or a network that pools its last features. ({reason})"
            ) from error


def load_weights(network: keras.Model, params: ClassificationNetworkParams, pipelines: ClassificationPipelines) -> None:
    """Sets the initial weights, logs what was set, and warns of images that are normalized in another way than theirs."""
    weights = str(params.weights)
    classifier = load_pretrained(network, weights)
    logger.info(
        "%s starts with the weights %s%s", params.name, weights, "" if classifier else "; its classifier is new"
    )
    application = MODELS[params.name].application
    theirs = weights == "imagenet" or (weights.endswith(".h5") and not weights.endswith(".weights.h5"))
    if application is not None and theirs:
        _check_normalization(normalization_of(application), pipelines)


def _check_normalization(expected: ImageNormalization, pipelines: ClassificationPipelines) -> None:
    for name, pipeline in (("train", pipelines.train), ("val", pipelines.val)):
        found = [operation for operation in pipeline.augment if isinstance(operation, NormalizeParams)]
        if found and _near(found[0].mean, expected.mean) and _near(found[0].std, expected.std):
            continue
        flags = " ".join(
            f"--{name}.augment.Normalize.{field} {' '.join(f'{value:.4g}' for value in values)}"
            for field, values in (("mean", expected.mean), ("std", expected.std))
        )
        logger.warning("These weights were trained on images that are normalized in another way: %s", flags)


def _near(values: list[float], expected: tuple[float, ...]) -> bool:
    return len(values) == len(expected) and np.allclose(values, expected, rtol=0.01, atol=0)
