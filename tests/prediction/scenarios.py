"""A scenario with variable lengths and with processors that can be watched, for the tests of prediction."""

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import keras
import numpy as np
from keras import layers, ops

from scena import (
    ArraySpec,
    DataBase,
    DataBaseParams,
    DataGenerator,
    DataGeneratorParams,
    DataProcessorParams,
    GeneratingDataProcessor,
    GraphBase,
    MappingDataProcessor,
    ModelBase,
    ModelBaseParams,
    Sample,
    ScenarioBase,
    ScenarioBaseParams,
    SequentialProcessorPipelineParams,
    TrainValParams,
    param,
)
from scena.data.params import DataProcessorPipelineParams

Tensors = dict[str, Any]


class TextsParams(DataGeneratorParams, builds=".scenarios:Texts"):
    """Numbers of different counts, one after the other."""

    count: int = param(10, help="number of samples")


class Texts(DataGenerator[TextsParams]):
    """Counts how many samples were asked for."""

    given: ClassVar[int] = 0

    def generate(self) -> Iterator[Sample]:
        for index in range(self.params.count):
            Texts.given += 1
            yield sequence(index)


def sequence(index: int) -> Sample:
    """A sample of index % 5 + 1 numbers."""
    length = index % 5 + 1
    return Sample(inputs=[float(index)] * length, targets={"sum": np.float32(index * length)}, meta={"index": index})


class ToArrayParams(DataProcessorParams, builds=".scenarios:ToArray"):
    """Makes an array of the numbers."""


class ToArray(MappingDataProcessor[ToArrayParams]):
    """Counts how often it is created."""

    created: ClassVar[int] = 0

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        ToArray.created += 1

    def apply(self, sample: Sample) -> Sample:
        return sample.new_inputs({"x": np.array(sample.inputs, dtype="float32")})


class RoundParams(DataProcessorParams, builds=".scenarios:Round"):
    """Rounds the sum."""


class Round(MappingDataProcessor[RoundParams]):
    """Post-processing, one to one."""

    def apply(self, sample: Sample) -> Sample:
        return sample.new_outputs({**sample.outputs, "rounded": round(float(sample.outputs["sum"]))})


class PairsParams(DataProcessorParams, builds=".scenarios:Pairs"):
    """Keeps every other sample."""


class Pairs(GeneratingDataProcessor[PairsParams]):
    """Post-processing that changes the number of samples."""

    def generate(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        for number, sample in enumerate(samples):
            if number % 2 == 0:
                yield sample


class TextDataParams(DataBaseParams, builds=".scenarios:TextData"):
    """Numbers of variable count."""

    pre_proc: DataProcessorPipelineParams = param(
        SequentialProcessorPipelineParams(processors=[ToArrayParams()]), help="processors before the model"
    )
    post_proc: DataProcessorPipelineParams = param(
        SequentialProcessorPipelineParams(processors=[RoundParams()]), help="processors after the model"
    )


class TextData(DataBase[TextDataParams]):
    """Variable length, padded with zeros."""

    def _input_layer_specs(self) -> dict[str, ArraySpec]:
        return {"x": ArraySpec((None,), "float32")}

    def _target_layer_specs(self) -> dict[str, ArraySpec]:
        return {"sum": ArraySpec((), "float32")}


class TextModelParams(ModelBaseParams, builds=".scenarios:TextModel"):
    """Adds the numbers."""

    recurrent: bool = param(False, help="put an LSTM beside the sum")


class TextGraph(GraphBase[TextModelParams]):
    """The sum of the numbers, times a weight."""

    def __init__(self, params: TextModelParams, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        self.scale = layers.Dense(1, use_bias=False, kernel_initializer="ones")
        self.recurrent = layers.LSTM(3) if params.recurrent else None

    def build_graph(self, inputs: Tensors, training: bool | None = None) -> Tensors:
        total = self.scale(ops.sum(inputs["x"], axis=-1, keepdims=True))[:, 0]
        outputs = {"sum": total}
        if self.recurrent is not None:
            outputs["state"] = self.recurrent(inputs["x"][..., None])
        return outputs


class TextModel(ModelBase[TextModelParams]):
    """Squared error; its encoder is exported as well."""

    def create_graph(self) -> TextGraph:
        return TextGraph(self.params)

    def _loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {"loss": ops.square(targets["sum"] - outputs["sum"])}

    def _export_graphs(self, inputs: Tensors, outputs: Tensors, targets: Tensors) -> dict[str, keras.Model]:
        graphs = super()._export_graphs(inputs, outputs, targets)
        return {**graphs, "sums": keras.Model(inputs, {"total": outputs["sum"]})}


class TextScenarioParams(ScenarioBaseParams[TextDataParams, TextModelParams]):
    """Adding numbers."""


class TextScenario(ScenarioBase[TextScenarioParams, TrainValParams[TextsParams]]):
    """Adds numbers."""
