"""Steps between source and network. They are plain Python and numpy, and run in the data workers."""

import numpy as np
from PIL import Image

from scena import DataError, MappingDataProcessor, Sample

from .params import LoadImageParams, ShiftParams


class LoadImage(MappingDataProcessor[LoadImageParams]):
    """Reads the image that a file name stands for."""

    def apply(self, sample: Sample) -> Sample:
        try:
            with Image.open(sample.inputs) as file:
                image = np.asarray(file.convert("L").resize((28, 28)), dtype=np.uint8)
        except OSError as error:
            raise DataError(f"Cannot read the image {sample.inputs}: {error}") from error
        return sample.new_inputs({"img": 255 - image if self.params.invert else image})


class Shift(MappingDataProcessor[ShiftParams]):
    """Moves the image; pixels that leave it are lost, and the gap is black."""

    def apply(self, sample: Sample, rng: np.random.Generator) -> Sample:
        pixels = self.params.pixels
        y, x = rng.integers(-pixels, pixels + 1, size=2)
        padded = np.pad(sample.inputs["img"], pixels)
        height, width = sample.inputs["img"].shape
        moved = padded[pixels + y : pixels + y + height, pixels + x : pixels + x + width]
        return sample.new_inputs({"img": moved})
