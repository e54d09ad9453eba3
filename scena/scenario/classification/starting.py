"""What happens once before a training: first weights from elsewhere, and a try of the smaller images."""

import logging
from typing import Any

import keras

from scena.data.image.params import NormalizeParams
from scena.errors import ModelError
from scena.model.zoo.catalogue import MODELS
from scena.model.zoo.pretrained import ImageNormalization, load_pretrained, normalization_of
from scena.scenario.classification.growing import stage_size
from scena.scenario.classification.params import HUB, ClassificationNetworkParams, ClassificationPipelines

logger = logging.getLogger(__name__)


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
    """Sets the first weights, says what was set, and warns of images that are normalised in another way than theirs."""
    weights = str(params.weights)
    classifier = load_pretrained(network, weights)
    logger.info(
        "%s starts with the weights %s%s", params.name, weights, "" if classifier else "; its classifier is new"
    )
    application = MODELS[params.name].application
    theirs = weights == "imagenet" or (weights.endswith(".h5") and not weights.endswith(".weights.h5"))
    if application is not None and theirs:
        _check_pictures(normalization_of(application), pipelines)


def _check_pictures(expected: ImageNormalization, pipelines: ClassificationPipelines) -> None:
    for name, pipeline in (("train", pipelines.train), ("val", pipelines.val)):
        found = [operation for operation in pipeline.augment if isinstance(operation, NormalizeParams)]
        if found and _near(found[0].mean, expected.mean) and _near(found[0].std, expected.std):
            continue
        flags = " ".join(
            f"--{name}.augment.Normalize.{field} {' '.join(f'{value:.4g}' for value in values)}"
            for field, values in (("mean", expected.mean), ("std", expected.std))
        )
        logger.warning("These weights were trained on images that are normalised in another way: %s", flags)


def _near(values: list[float], expected: tuple[float, ...]) -> bool:
    return len(values) == len(expected) and all(
        abs(one - other) < 0.01 * abs(other) for one, other in zip(values, expected, strict=True)
    )
