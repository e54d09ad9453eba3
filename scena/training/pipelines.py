"""Where training and validation data come from: the `gen` part of the trainer's parameters."""

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from scena.data.image.params import ImagePipelineParams
from scena.data.params import DataGeneratorParams, DataPipelineParams, FoldParams, PipelineMode
from scena.data.sources.params import NamedDataSetParams, SplitSourceParams
from scena.params import Params, param

if TYPE_CHECKING:  # pipelines need numpy, which --help does not load
    from scena.data.database import DataBase
    from scena.data.pipeline import DataPipeline

TSource = TypeVar("TSource", bound=DataGeneratorParams)
TTrain = TypeVar("TTrain", bound=DataGeneratorParams)
TVal = TypeVar("TVal", bound=DataGeneratorParams)


class TrainerPipelineParamsBase(Params, abstract=True):
    """The data of a training. Subclass it and implement `train_gen` and `val_gen`."""

    train: DataPipelineParams = param(flat=True, help="how training batches are made")
    val: DataPipelineParams = param(flat=True, help="how validation batches are made")
    fold: FoldParams = param(flat=True, hidden=True, help="the fold of a cross-validation that is left out")

    def train_gen(self) -> DataGeneratorParams:
        """The source of training samples."""
        raise NotImplementedError(f"{type(self).__name__} must implement train_gen(self).")

    def val_gen(self) -> DataGeneratorParams | None:
        """The source of validation samples, or None to train without validation."""
        raise NotImplementedError(f"{type(self).__name__} must implement val_gen(self).")

    def lav_gen(self) -> dict[str, DataGeneratorParams]:
        """The sources of LAV during training, by name; each has its own results."""
        source = self.val_gen()
        return {} if source is None else source.parts()

    def train_data(self, data: "DataBase[Any]", seed: int = 0) -> "DataPipeline":
        """The pipeline of training batches."""
        return data.create_pipeline(PipelineMode.TRAINING, self.train, self.fold.of(self.train_gen()), seed=seed)

    def val_data(self, data: "DataBase[Any]") -> "DataPipeline | None":
        """The pipeline of validation batches, if there is validation data."""
        source = self.val_gen()
        return None if source is None else data.create_pipeline(PipelineMode.EVALUATION, self.val, source)


class TrainValParams(TrainerPipelineParamsBase, Generic[TSource]):
    """One source for training and validation; its generator selects samples by its mode."""

    train_val: TSource = param(flat="data", help="the data set")

    def train_gen(self) -> DataGeneratorParams:
        return self.train_val.for_training()

    def val_gen(self) -> DataGeneratorParams | None:
        return self.train_val.for_validation()


class TrainerPipelineParams(TrainerPipelineParamsBase, Generic[TTrain, TVal]):
    """Two sources, one for training (`--train.…`) and one for validation (`--val.…`)."""

    train_source: TTrain = param(flat="train", help="the training data")
    val_source: TVal = param(flat="val", help="the validation data")

    def train_gen(self) -> DataGeneratorParams:
        return self.train_source

    def val_gen(self) -> DataGeneratorParams | None:
        return self.val_source


class ImagePipelines(TrainerPipelineParamsBase):
    """Images by the name of a data set, from record files, a folder, or arrays; `--train` and `--val` set what differs."""

    train: ImagePipelineParams = param(flat=True, help="how training batches are made")
    val: ImagePipelineParams = param(flat=True, help="how validation batches are made")
    source: SplitSourceParams = param(
        NamedDataSetParams(dataset="digits"), flat="data", help="NamedDataSet, ImageRecords, ImageFiles or ImageArrays"
    )

    def train_gen(self) -> DataGeneratorParams:
        return self.source.shared(PipelineMode.TRAINING, self.train.split or self.source.split, self.val.split)

    def val_gen(self) -> DataGeneratorParams | None:
        """The data set with the validation split; never the training samples unless the split is named."""
        return self.source.shared(PipelineMode.EVALUATION, self.train.split or self.source.split, self.val.split)
