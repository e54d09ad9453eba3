"""Samples of given sizes."""

from typing import Any

import numpy as np

from scena.data import (
    ArraySpec,
    DataBase,
    DataBaseParams,
    DataGeneratorParams,
    DataPipeline,
    DataPipelineParams,
    PipelineMode,
    RandomAccessGenerator,
    Sample,
)


class BigParams(DataGeneratorParams, builds=":Big"):
    sizes: list[int] = []


class Big(RandomAccessGenerator[BigParams]):
    def __len__(self) -> int:
        return len(self.params.sizes)

    def __getitem__(self, index: int) -> Sample:
        return Sample(inputs={"x": np.full(self.params.sizes[index], index, np.uint8)})


class BigDataParams(DataBaseParams, builds=":BigData"):
    pass


class BigData(DataBase[BigDataParams]):
    def _input_layer_specs(self) -> dict[str, Any]:
        return {"x": ArraySpec((None,), "uint8")}


def big_pipeline(source: BigParams, **settings: Any) -> DataPipeline:
    params = DataPipelineParams(**{"batch_size": 1, **settings})
    return BigData(BigDataParams()).create_pipeline(PipelineMode.EVALUATION, params, source)
