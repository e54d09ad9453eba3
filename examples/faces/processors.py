"""From images of any size to the network's, and small changes in training."""

import numpy as np
from PIL import Image

from scena import DataBaseParams, DataError, MappingDataProcessor, PipelineMode, Sample

from .params import FaceDataParams, LoadFaceParams, VaryParams


class LoadFace(MappingDataProcessor[LoadFaceParams]):
    """An image of the right size, from a file, which `scena serve` gives as an open one, or an array."""

    def __init__(self, params: LoadFaceParams, data_params: DataBaseParams, mode: PipelineMode) -> None:
        super().__init__(params, data_params, mode)
        assert isinstance(data_params, FaceDataParams)
        self.size = (data_params.size, data_params.size)

    def apply(self, sample: Sample) -> Sample:
        if not isinstance(sample.inputs, np.ndarray):
            try:
                with Image.open(sample.inputs) as file:
                    image = file.convert("RGB")
            except OSError as error:
                raise DataError(f"Cannot read the image {sample.inputs}: {error}") from error
        else:
            image = Image.fromarray(sample.inputs.astype("uint8")).convert("RGB")
        if image.size != self.size:
            image = image.resize(self.size, Image.Resampling.BILINEAR)
        return sample.new_inputs({"image": np.asarray(image)})


class Vary(MappingDataProcessor[VaryParams]):
    """Mirrors every other face, moves it, and changes its light."""

    def apply(self, sample: Sample, rng: np.random.Generator) -> Sample:
        image, pixels = sample.inputs["image"], self.params.pixels
        if rng.random() < 0.5:
            image = image[:, ::-1]
        y, x = rng.integers(0, 2 * pixels + 1, size=2)
        padded = np.pad(image, ((pixels, pixels), (pixels, pixels), (0, 0)), mode="edge")
        moved = padded[y : y + len(image), x : x + len(image)].astype("float32")
        lit = moved * rng.uniform(1 - self.params.light, 1 + self.params.light, 3)
        return sample.new_inputs({"image": np.clip(lit, 0, 255).astype("uint8")})
