"""The data class of images with a class: decodes, augments and scales them, in Python or in tf.data."""

from typing import TYPE_CHECKING, Any, TypeVar

from scena.data.database import DataBase
from scena.data.image.params import (
    AugmentParams,
    DecodeImageParams,
    ImageDataParams,
    ImagePipelineParams,
    ResizeParams,
)
from scena.data.params import (
    ComposedProcessorPipelineParams,
    DataPipelineParams,
    DataProcessorPipelineParams,
    PipelineMode,
    SequentialProcessorPipelineParams,
)
from scena.data.pipeline import DataPipeline
from scena.data.sources.params import SplitSourceParams
from scena.data.spec import ArraySpec
from scena.data.stages.context import PipelineContext

if TYPE_CHECKING:
    from scena.data.tensorflow.transform import Transformation

P = TypeVar("P", bound=ImageDataParams)


class ImageData(DataBase[P]):
    """Inputs "image" (float32) and targets "label". Sources give encoded images or arrays of values from 0 to 255."""

    def input_specs(self) -> dict[str, Any]:
        return {"image": ArraySpec(self.params.image_shape, "float32")}

    def target_specs(self) -> dict[str, Any]:
        return {"label": ArraySpec((), "int64")}

    def processors(self, pipeline_params: DataPipelineParams) -> DataProcessorPipelineParams:
        """The data's own processors, then decoding and augmentation."""
        own = [sequence.replace() for sequence in self.params.pre_proc.sequences()]
        return ComposedProcessorPipelineParams(groups=[*own, self.image_processors(pipeline_params)])

    def image_processors(self, pipeline_params: DataPipelineParams) -> SequentialProcessorPipelineParams:
        """Decoding, the operations of the pipeline, and the size that the model takes."""
        height, width, channels = self.params.image_shape
        operations = pipeline_params.augment if isinstance(pipeline_params, ImagePipelineParams) else []
        augment = AugmentParams(modes=set(PipelineMode), operations=[*operations, ResizeParams(size=[height, width])])
        return SequentialProcessorPipelineParams(processors=[DecodeImageParams(channels=channels), augment])

    def create_pipeline(self, mode: PipelineMode, pipeline_params: DataPipelineParams, source: Any, *,
                        seed: int = 0) -> DataPipeline:  # fmt: skip
        """As `DataBase` makes it; the `split` of the pipeline takes precedence over that of the source, and labels go by the names of the
        classes if the parameters have `class_names`.
        """
        names = list(getattr(self.params, "class_names", []))
        if names and mode.has_targets and isinstance(source, SplitSourceParams):
            source = source.replace(model_classes=names)
        split = getattr(pipeline_params, "split", None)
        if split is not None and "split" in getattr(type(source), "__params__", {}):
            source = source.replace(split=split)
        return super().create_pipeline(mode, pipeline_params, source, seed=seed)

    def _pipeline(self, context: PipelineContext, transformation: "Transformation | None") -> DataPipeline:
        if context.pipeline.engine.startswith("tf.data"):
            from scena.data.tensorflow.image_pipeline import check_tensor_pipeline

            check_tensor_pipeline(context)
        return super()._pipeline(context, transformation)
