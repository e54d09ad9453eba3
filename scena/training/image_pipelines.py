"""Where images come from in training: one data set for training and validation, with splits and augmentations for each."""

from scena.data.datasets.params import (
    ImageArraysParams,
    ImageFilesParams,
    ImageRecordsParams,
    NamedDataSetParams,
    SplitSourceParams,
)
from scena.data.image.augment.params import ImagePipelineParams
from scena.data.modes import PipelineMode
from scena.data.params import DataGeneratorParams
from scena.params import param
from scena.training.pipeline_params import TrainerPipelineParamsBase

__all__ = ["ImageArraysParams", "ImageFilesParams", "ImagePipelines", "ImageRecordsParams", "NamedDataSetParams"]


class ImagePipelines(TrainerPipelineParamsBase):
    """Images by the name of a data set, from record files, a folder, or arrays; `--train` and `--val` say what differs."""

    train: ImagePipelineParams = param(flat=True, help="how training batches are made")
    val: ImagePipelineParams = param(flat=True, help="how validation batches are made")
    source: SplitSourceParams = param(
        NamedDataSetParams(dataset="digits"), flat="data", help="NamedDataSet, ImageRecords, ImageFiles or ImageArrays"
    )

    def train_gen(self) -> DataGeneratorParams:
        """The data set, with the split of the training."""
        return self.source.shared(PipelineMode.TRAINING, self.train.split or self.source.split, self.val.split)

    def val_gen(self) -> DataGeneratorParams | None:
        """The data set, with the split of the validation: never, unless named, what is trained on."""
        return self.source.shared(PipelineMode.EVALUATION, self.train.split or self.source.split, self.val.split)
