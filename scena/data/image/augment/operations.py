"""The operations, written once for numpy and TensorFlow.

Each has `draws` (how many random numbers it takes) and `apply(b, image, u)`: `b` are the functions of `arrays.py` or of
`data/tensorflow/augment_ops.py`, `u` its random numbers. Geometry is computed in 64 bits, so that both round to the same pixel. In
TensorFlow, some work on a batch of images of one size as well; `whole_batch` is the size up to which that is faster.
"""

import math
from collections.abc import Iterator
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from scena.data.image import params as p
from scena.errors import DataError

P = TypeVar("P", bound=p.OperationParams)
_SMALL = 64 * 64  # a batch of larger images does not fit into the caches (docs/datasets.md)


class Operation(Generic[P]):
    """Base of all operations."""

    draws: ClassVar[int] = 0
    whole_batch: ClassVar[float] = 0
    """The largest image, in pixels, of which tf.data runs it on whole batches."""

    def __init__(self, params: P) -> None:
        self.params = params

    def apply(self, b: Any, image: Any, u: Any) -> Any:
        """The changed image."""
        raise NotImplementedError(f"{type(self).__name__} must define apply(self, b, image, u).")


class Cropping(Operation[P]):
    """An operation that starts with a crop: a reader may decode just that part of a JPEG."""

    def box(self, b: Any, height: Any, width: Any, u: Any) -> tuple[Any, Any, Any, Any]:
        """Top, left, height and width of the crop."""
        raise NotImplementedError(f"{type(self).__name__} must define box(self, b, height, width, u).")

    def after(self, b: Any, image: Any) -> Any:
        """What follows the crop."""
        return image

    def apply(self, b: Any, image: Any, u: Any) -> Any:
        height, width = b.size(image)
        return self.after(b, b.crop(image, *self.box(b, height, width, u)))


def _place(b: Any, u: Any, free: Any) -> Any:
    """A whole number from 0 to `free`."""
    return b.minimum(b.integer(u * b.real(free + 1)), free)


class Normalize(Operation[p.NormalizeParams]):
    """See NormalizeParams."""

    whole_batch = math.inf

    def __init__(self, params: p.NormalizeParams) -> None:
        super().__init__(params)
        mean, std = params.mean, params.std
        if params.info is not None:
            from scena.data.image.statistics import read_statistics

            mean, std = read_statistics(params.info)
        if len(mean) != len(std):
            raise DataError(f"Normalize needs as many means as deviations. Received: mean={mean}, std={std}.")
        self._factor = (1 / (255 * np.asarray(std))).astype(np.float32)
        self._offset = (-np.asarray(mean) / np.asarray(std)).astype(np.float32)

    def apply(self, b: Any, image: Any, u: Any) -> Any:
        return b.scale_channels(image, self._factor, self._offset)


# YIQ: brightness and two axes of colour; rotating those two changes the hue, stretching them the saturation
_TO_YIQ = np.array([[0.299, 0.587, 0.114], [0.5959, -0.2746, -0.3213], [0.2115, -0.5227, 0.3112]])
_FROM_YIQ = np.linalg.inv(_TO_YIQ)
_GREY = _FROM_YIQ @ np.diag([1.0, 0.0, 0.0]) @ _TO_YIQ
_COSINE = _FROM_YIQ @ np.diag([0.0, 1.0, 1.0]) @ _TO_YIQ
_SINE = _FROM_YIQ @ np.array([[0.0, 0, 0], [0, 0, -1], [0, 1, 0]]) @ _TO_YIQ


class ColorJitter(Operation[p.ColorJitterParams]):
    """See ColorJitterParams. All four changes together are one 3 × 3 matrix and an offset."""

    draws = 4
    whole_batch = _SMALL

    def apply(self, b: Any, image: Any, u: Any) -> Any:
        params = self.params
        image = b.to_float(image)
        brightness = (u[0] * 2.0 - 1.0) * (params.brightness * 255)
        contrast = params.contrast[0] + u[1] * (params.contrast[1] - params.contrast[0])
        offset = b.channel_means(image) * b.single(1.0 - contrast) + b.single(brightness)
        if b.channels(image) == 3:
            saturation = params.saturation[0] + u[2] * (params.saturation[1] - params.saturation[0])
            angle = (u[3] * 2.0 - 1.0) * (params.hue * 2 * math.pi)
            matrix = b.single(_GREY + (saturation * b.cos(angle)) * _COSINE + (saturation * b.sin(angle)) * _SINE)
            image = b.mix_channels(image, matrix * b.single(contrast), b.mix_vector(offset, matrix))
        else:
            image = image * b.single(contrast) + offset
        return b.clip(image, 0.0, 255.0) if params.clip else image


class RandomHorizontalFlip(Operation[p.RandomHorizontalFlipParams]):
    """See RandomHorizontalFlipParams."""

    draws = 1

    def apply(self, b: Any, image: Any, u: Any) -> Any:
        return b.choose(u[0] < self.params.probability, lambda: b.flip_columns(image), lambda: image)


class RandomVerticalFlip(Operation[p.RandomVerticalFlipParams]):
    """See RandomVerticalFlipParams."""

    draws = 1

    def apply(self, b: Any, image: Any, u: Any) -> Any:
        return b.choose(u[0] < self.params.probability, lambda: b.flip_rows(image), lambda: image)


class RandomRotate(Operation[p.RandomRotateParams]):
    """See RandomRotateParams."""

    draws = 1
    whole_batch = _SMALL

    def apply(self, b: Any, image: Any, u: Any) -> Any:
        angle = (u[0] * 2.0 - 1.0) * math.radians(self.params.angle)
        cosine, sine = b.cos(angle), b.sin(angle)
        height, width = b.size(image)
        y, x = (b.real(height) - 1.0) / 2.0, (b.real(width) - 1.0) / 2.0
        left = x - (cosine * x - sine * y)
        top = y - (sine * x + cosine * y)
        matrix = [cosine, -sine, left, sine, cosine, top]
        return b.affine(b.to_float(image), matrix, self.params.interpolation, self.params.fill)


class RandomRotate90(Operation[p.RandomRotate90Params]):
    """See RandomRotate90Params."""

    draws = 1

    def apply(self, b: Any, image: Any, u: Any) -> Any:
        return b.quarter_turns(image, b.integer(u[0] * 4.0))


class RandomCrop(Cropping[p.RandomCropParams]):
    """See RandomCropParams."""

    draws = 2

    def box(self, b: Any, height: Any, width: Any, u: Any) -> tuple[Any, Any, Any, Any]:
        rows, columns = self.params.size
        b.check_fits(height, width, rows, columns)
        return _place(b, u[0], height - rows), _place(b, u[1], width - columns), rows, columns


class CentralCrop(Cropping[p.CentralCropParams]):
    """See CentralCropParams."""

    def box(self, b: Any, height: Any, width: Any, u: Any) -> tuple[Any, Any, Any, Any]:
        rows = b.maximum(b.integer(b.real(height) * self.params.proportion + 1e-6), 1)
        columns = b.maximum(b.integer(b.real(width) * self.params.proportion + 1e-6), 1)
        return (height - rows) // 2, (width - columns) // 2, rows, columns

    def after(self, b: Any, image: Any) -> Any:
        return b.resize(image, self.params.size, self.params.interpolation) if self.params.size else image


class RandomCropThenResize(Cropping[p.RandomCropThenResizeParams]):
    """See RandomCropThenResizeParams. A crop is never larger than the image."""

    draws = 4

    def box(self, b: Any, height: Any, width: Any, u: Any) -> tuple[Any, Any, Any, Any]:
        (small, large), (narrow, wide) = self.params.scale, self.params.ratio
        area = b.real(height) * b.real(width) * (small + u[0] * (large - small))
        ratio = b.exp(math.log(narrow) + u[1] * (math.log(wide) - math.log(narrow)))
        rows = b.minimum(b.maximum(b.integer(b.sqrt(area / ratio) + 0.5), 1), height)
        columns = b.minimum(b.maximum(b.integer(b.sqrt(area * ratio) + 0.5), 1), width)
        return _place(b, u[2], height - rows), _place(b, u[3], width - columns), rows, columns

    def after(self, b: Any, image: Any) -> Any:
        return b.resize(image, self.params.size, self.params.interpolation)


class Resize(Operation[p.ResizeParams]):
    """See ResizeParams."""

    whole_batch = _SMALL

    def apply(self, b: Any, image: Any, u: Any) -> Any:
        return b.resize(image, self.params.size, self.params.interpolation)


class ResizeThenRandomCrop(Operation[p.ResizeThenRandomCropParams]):
    """See ResizeThenRandomCropParams."""

    draws = 2

    def apply(self, b: Any, image: Any, u: Any) -> Any:
        (height, width), (rows, columns) = self.params.size, self.params.crop_size
        image = b.resize(image, self.params.size, self.params.interpolation)
        return b.crop(image, _place(b, u[0], height - rows), _place(b, u[1], width - columns), rows, columns)


class Translate(Operation[p.TranslateParams]):
    """See TranslateParams."""

    draws = 2

    def apply(self, b: Any, image: Any, u: Any) -> Any:
        height, width = b.size(image)
        rows = b.integer(b.real(height) * self.params.height)
        columns = b.integer(b.real(width) * self.params.width)
        padded = b.pad(image, rows, columns, self.params.padding, self.params.fill)
        return b.crop(padded, _place(b, u[0], rows * 2), _place(b, u[1], columns * 2), height, width)


class Cutout(Operation[p.CutoutParams]):
    """See CutoutParams."""

    draws = 2
    whole_batch = _SMALL

    def apply(self, b: Any, image: Any, u: Any) -> Any:
        height, width = b.size(image)
        rows, columns = b.minimum(self.params.length, height), b.minimum(self.params.length, width)
        top, left = _place(b, u[0], height - rows), _place(b, u[1], width - columns)
        return b.paint(image, top, left, rows, columns, self.params.fill)


class Pad(Operation[p.PadParams]):
    """See PadParams."""

    def apply(self, b: Any, image: Any, u: Any) -> Any:
        return b.pad(image, self.params.pixels, self.params.pixels, self.params.padding, self.params.fill)


class OperationList:
    """Operations in order, each with its share of the random numbers of an image."""

    def __init__(self, operations: list[p.OperationParams]) -> None:
        self.operations: list[Operation[Any]] = [params.create() for params in operations]
        self.draws = sum(operation.draws for operation in self.operations)

    def apply(self, b: Any, image: Any, u: Any, first: int = 0, last: int | None = None) -> Any:
        """The image after the operations from `first` up to, but not including, `last`; `u` are the random numbers of all."""
        for operation, drawn in self.steps(u, first, last):
            image = operation.apply(b, image, drawn)
        return image

    def steps(self, u: Any, first: int = 0, last: int | None = None) -> Iterator[tuple[Operation[Any], Any]]:
        """Operations, each with its random numbers."""
        start = 0
        for number, operation in enumerate(self.operations[:last]):
            if number >= first:
                yield operation, u[start : start + operation.draws]
            start += operation.draws
