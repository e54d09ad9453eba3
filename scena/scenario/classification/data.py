"""The data of image classification."""

from typing import Any

from scena.data.image.database import ImageData
from scena.data.params import DataPipelineParams, PipelineMode
from scena.data.pipeline import DataPipeline
from scena.data.spec import ArraySpec
from scena.scenario.classification.params import ClassificationDataParams


class ClassificationData(ImageData[ClassificationDataParams]):
    """Pictures of the model's input size, with names for their classes."""

    def _input_layer_specs(self) -> dict[str, Any]:
        height, width, channels = self.params.image_shape
        size = (None, None) if self.params.any_size else (height, width)
        return {"image": ArraySpec((*size, channels), "float32")}

    def create_pipeline(
        self, mode: PipelineMode, pipeline_params: DataPipelineParams, source: Any, *, seed: int = 0
    ) -> DataPipeline:
        """A pipeline that makes pictures of the full size; where they are smaller, `GrowingPictures` scales whole batches."""
        if self.params.any_size:
            full = type(self)(self.params.replace(any_size=False), **self.static)
            return full.create_pipeline(mode, pipeline_params, source, seed=seed)
        return super().create_pipeline(mode, pipeline_params, source, seed=seed)

    def name_of(self, label: int) -> str:
        """The name of a class, or its number where the data set has no names."""
        names = self.params.class_names
        return names[label] if label < len(names) else str(label)
