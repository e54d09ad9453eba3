"""A scenario with two pictures as inputs and names of classes that need escaping, for the tests of the service."""

from typing import Any

import numpy as np
from keras import ops

from scena import (
    ArraySpec,
    DataBase,
    DataBaseParams,
    DataGeneratorParams,
    DataProcessorParams,
    Evaluator,
    GraphBase,
    MappingDataProcessor,
    ModelBase,
    ModelBaseParams,
    RandomAccessGenerator,
    Sample,
    ScenarioBase,
    ScenarioBaseParams,
    SequentialProcessorPipelineParams,
    TrainValParams,
    param,
)
from scena.data.params import DataProcessorPipelineParams
from scena.errors import DataError

Tensors = dict[str, Any]
NAMES = ["<b id='evil'>left</b>", "right\x1b[31m"]


class NoPairsParams(DataGeneratorParams, builds=".pairs:NoPairs"):
    """Nothing to train on."""


class NoPairs(RandomAccessGenerator[NoPairsParams]):
    """Empty."""

    def __len__(self) -> int:
        return 0

    def __getitem__(self, index: int) -> Sample:
        raise IndexError(index)


class ReadPicturesParams(DataProcessorParams, builds=".pairs:ReadPictures"):
    """Reads pictures from files."""


class ReadPictures(MappingDataProcessor[ReadPicturesParams]):
    """Gets paths, or open files from the service. It changes the sample, whose dicts are its own."""

    def apply(self, sample: Sample) -> Sample:
        from PIL import Image

        for name, file in sample.inputs.items():
            try:
                with Image.open(file) as picture:
                    sample.inputs[name] = np.asarray(picture.convert("L").resize((4, 4)), "float32")
            except OSError as error:
                raise DataError(f"{file!r} is broken") from error
        return sample


class PairDataParams(DataBaseParams, builds=".pairs:PairData"):
    """Two pictures."""


class ReadingDataParams(PairDataParams, builds=".pairs:PairData"):
    """Two pictures in files."""

    pre_proc: DataProcessorPipelineParams = param(
        SequentialProcessorPipelineParams(processors=[ReadPicturesParams()]), help="processors before the model"
    )


class PairData(DataBase[PairDataParams]):
    """Two pictures of 4 × 4."""

    def _input_layer_specs(self) -> dict[str, ArraySpec]:
        return {"left": ArraySpec((4, 4), "float32"), "right": ArraySpec((4, 4), "float32")}

    def _target_layer_specs(self) -> dict[str, ArraySpec]:
        return {"class": ArraySpec((), "int32")}


class PairModelParams(ModelBaseParams, builds=".pairs:PairModel"):
    """Which one is brighter."""

    numbered: bool = param(True, help="put out the number of the class")


class PairGraph(GraphBase[PairModelParams]):
    """Compares the means."""

    def build_graph(self, inputs: Tensors, training: bool | None = None) -> Tensors:
        means = ops.stack([ops.mean(inputs[name], axis=(1, 2)) for name in ("left", "right")], axis=-1)
        pred = means / ops.maximum(ops.sum(means, axis=-1, keepdims=True), 1e-6)
        return {"pred": pred, "class": ops.argmax(pred, axis=-1)} if self.params.numbered else {"pred": pred}


class PairModel(ModelBase[PairModelParams]):
    """Needs no training."""

    def create_graph(self) -> PairGraph:
        return PairGraph(self.params)

    def _loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {"loss": outputs["pred"]}


class Named(Evaluator[Any]):
    """Knows the names of the classes."""

    def class_names(self) -> list[str]:
        return NAMES


class PairScenarioParams(ScenarioBaseParams[PairDataParams, PairModelParams]):
    """Which picture is brighter."""


class PairScenario(ScenarioBase[PairScenarioParams, TrainValParams[NoPairsParams]]):
    """Says which of two pictures is brighter."""

    @classmethod
    def evaluator_cls(cls) -> type[Named]:
        return Named
