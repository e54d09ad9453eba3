"""The data of image classification, image files to classify, and progressive resizing: small images in the first, fast epochs."""

from functools import cache
from typing import Any

import numpy as np

from scena.data.generator import RandomAccessGenerator
from scena.data.image.database import ImageData
from scena.data.params import DataPipelineParams, PipelineMode
from scena.data.pipeline import DataPipeline
from scena.data.sample import Batch, Sample
from scena.data.spec import ArraySpec
from scena.errors import DataError
from scena.scenario.classification.params import ClassificationDataParams, ImagePathsParams

Array = np.ndarray[Any, Any]


class ClassificationData(ImageData[ClassificationDataParams]):
    """Images of the model's input size, with names for their classes."""

    def input_specs(self) -> dict[str, Any]:
        height, width, channels = self.params.image_shape
        size = (None, None) if self.params.any_size else (height, width)
        return {"image": ArraySpec((*size, channels), "float32")}

    def create_pipeline(
        self, mode: PipelineMode, pipeline_params: DataPipelineParams, source: Any, *, seed: int = 0
    ) -> DataPipeline:
        """A pipeline that makes images of the full size; where they are smaller, `GrowingImages` scales whole batches."""
        if self.params.any_size:
            full = type(self)(self.params.replace(any_size=False), **self.static)
            return full.create_pipeline(mode, pipeline_params, source, seed=seed)
        return super().create_pipeline(mode, pipeline_params, source, seed=seed)

    def name_of(self, label: int) -> str:
        """The name of a class, or its number where the data set has no names."""
        names = self.params.class_names
        return names[label] if label < len(names) else str(label)

    def describe(self, sample: Sample) -> str:
        """The most likely classes with their probabilities, and the right one where it is known."""
        probabilities = sample.outputs["pred"]
        best = probabilities.argsort()[::-1][:3]
        text = ", ".join(f"{self.name_of(int(label))} {probabilities[label]:.1%}" for label in best)
        name = sample.meta.get("name") if isinstance(sample.meta, dict) else None
        target = f", target {self.name_of(int(sample.targets['label']))}" if sample.targets else ""
        return f"{name}: {text}{target}" if name else f"{text}{target}"


class ImagePaths(RandomAccessGenerator[ImagePathsParams]):
    """Reads image files; a processor decodes them."""

    def __len__(self) -> int:
        return len(self.params.image_files)

    def __getitem__(self, index: int) -> Sample:
        path = self.params.image_files[index]
        try:
            return Sample(inputs={"image": path.read_bytes()}, meta={"name": str(path)})
        except OSError as error:
            raise DataError(f"Cannot read the image {path}: {error.strerror}.") from error


class GrowingImages:
    """Scales the images of whole batches: in stage after stage of `stage_epochs` passes their longer side is that of `sizes`, then
    they stay as they are.

    The size depends on nothing but the epoch of the batch, so a run that is resumed sees the same images.
    """

    def __init__(self, sizes: list[int], stage_epochs: int) -> None:
        self._sizes = sizes
        self._stage_epochs = stage_epochs

    def __call__(self, batch: Batch) -> Batch:
        """The batch with images of its epoch's size."""
        stage = batch.epoch // self._stage_epochs
        if stage >= len(self._sizes):
            return batch
        image = batch.inputs["image"]
        inputs = {**batch.inputs, "image": scaled_down(image, *stage_size(self._sizes[stage], image.shape[1:3]))}
        return Batch(inputs, batch.targets, batch.meta, batch.size, batch.cursor)


def stage_size(size: int, full: Any) -> tuple[int, int]:
    """Height and width of a stage whose longer side has `size` pixels; the ratio of the full size stays."""
    height, width = full
    return max(1, round(size * height / max(full))), max(1, round(size * width / max(full)))


def scaled_down(images: Array, height: int, width: int) -> Array:
    """A batch (count, height, width, channels) at a smaller size; every old pixel counts, so nothing flickers."""
    count, rows, columns, channels = images.shape
    lines = weights(rows, height) @ images.reshape(count, rows, columns * channels)
    # one large product instead of one for each line: 5 times as fast
    turned = (
        lines.reshape(count, height, columns, channels).swapaxes(2, 3).reshape(-1, columns) @ weights(columns, width).T
    )
    return np.ascontiguousarray(turned.reshape(count, height, channels, width).swapaxes(2, 3))


@cache
def weights(given: int, wanted: int) -> Array:
    """How much each of the given pixels counts in each of the wanted ones: a triangle as wide as two new pixels."""
    scale = given / wanted
    centres = (np.arange(wanted) + 0.5) * scale - 0.5
    distance = np.abs(np.arange(given)[None, :] - centres[:, None]) / max(scale, 1.0)
    share = np.maximum(0.0, 1.0 - distance)
    return (share / share.sum(axis=1, keepdims=True)).astype(np.float32)
