"""The data of image classification, and image files to classify."""

from typing import Any

from scena.data.generator import RandomAccessGenerator
from scena.data.image.database import ImageData
from scena.data.params import DataPipelineParams, PipelineMode
from scena.data.pipeline import DataPipeline
from scena.data.sample import Sample
from scena.data.spec import ArraySpec
from scena.errors import DataError
from scena.scenario.classification.params import ClassificationDataParams, PictureFilesParams


class ClassificationData(ImageData[ClassificationDataParams]):
    """Images of the model's input size, with names for their classes."""

    def input_specs(self) -> dict[str, Any]:
        height, width, channels = self.params.image_shape
        size = (None, None) if self.params.any_size else (height, width)
        return {"image": ArraySpec((*size, channels), "float32")}

    def create_pipeline(
        self, mode: PipelineMode, pipeline_params: DataPipelineParams, source: Any, *, seed: int = 0
    ) -> DataPipeline:
        """A pipeline that makes images of the full size; where they are smaller, `GrowingPictures` scales whole batches."""
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


class PictureFiles(RandomAccessGenerator[PictureFilesParams]):
    """Reads image files; a processor decodes them."""

    def __len__(self) -> int:
        return len(self.params.image_files)

    def __getitem__(self, index: int) -> Sample:
        path = self.params.image_files[index]
        try:
            return Sample(inputs={"image": path.read_bytes()}, meta={"name": str(path)})
        except OSError as error:
            raise DataError(f"Cannot read the image {path}: {error.strerror}.") from error
