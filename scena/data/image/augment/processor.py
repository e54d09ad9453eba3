"""Decoding and augmenting images in the Python pipeline."""

import io

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from scena.data.image.augment import arrays
from scena.data.image.augment.operations import OperationList
from scena.data.image.params import AugmentParams, DecodeImageParams
from scena.data.image.prepare import to_eight_bits
from scena.data.params import DataBaseParams, PipelineMode
from scena.data.processor import MappingDataProcessor
from scena.data.sample import Sample
from scena.data.stages.rng import key_of, uniforms
from scena.errors import DataError, SampleError


def decode_image(data: bytes, channels: int = 3) -> np.ndarray:
    """An encoded image as an array (height, width, channels) of 8-bit values, rotated by its EXIF orientation."""
    try:
        with Image.open(io.BytesIO(data)) as file:
            image: Image.Image = file
            if image.getexif().get(0x0112, 1) != 1:
                image = ImageOps.exif_transpose(image)
            if image.mode.startswith(("I", "F")):
                image = to_eight_bits(image)
            mode = "RGB" if channels == 3 else "L"
            array = np.asarray(image if image.mode == mode else image.convert(mode))
    except UnidentifiedImageError:
        raise DataError(f"An image of {len(data)} bytes cannot be decoded: its format is not known.") from None
    except (OSError, SyntaxError, ValueError) as error:
        raise DataError(f"An image of {len(data)} bytes cannot be decoded: {error}.") from None
    return array if channels == 3 else array[..., None]


class DecodeImage(MappingDataProcessor[DecodeImageParams]):
    """Decodes one of the inputs; an array is left as it is."""

    def apply(self, sample: Sample) -> Sample:
        """The sample with an array in place of the encoded image."""
        data = sample.inputs[self.params.image]
        if isinstance(data, bytes):
            try:
                image = decode_image(data, self.params.channels)
            except DataError as error:
                raise SampleError(f"{self.params.image!r} of {sample.identity()}: {error}") from None
        else:
            image = np.asarray(data)
            image = image[..., None] if image.ndim == 2 else image
            if self.params.channels == 3 and image.shape[-1] == 1:
                image = np.repeat(image, 3, axis=-1)
        return sample.new_inputs({**sample.inputs, self.params.image: image})


class Augment(MappingDataProcessor[AugmentParams]):
    """Applies a list of operations to one of the inputs."""

    def __init__(self, params: AugmentParams, data_params: DataBaseParams, mode: PipelineMode) -> None:
        super().__init__(params, data_params, mode)
        self._list = OperationList(params.operations)

    def apply(self, sample: Sample, rng: np.random.Generator) -> Sample:
        """The sample with a changed image."""
        image = np.asarray(sample.inputs[self.params.image])
        if image.ndim != 3:
            raise DataError(
                f"Augmentations need an image of shape (height, width, channels). Received: {image.shape} for "
                f"{sample.identity()}; decode it first, or add an axis."
            )
        image = self._list.apply(arrays, image, uniforms(key_of(rng), self._list.draws))
        return sample.new_inputs({**sample.inputs, self.params.image: image})
