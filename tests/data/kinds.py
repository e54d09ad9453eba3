"""Arrays of every kind a spec can ask for."""

import dataclasses
import datetime
from pathlib import Path
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


@dataclasses.dataclass
class Record:
    """A record of a user."""

    name: str
    values: list[Any]


class KindsParams(DataGeneratorParams, builds=":Kinds"):
    pass


class Kinds(RandomAccessGenerator[KindsParams]):
    def __len__(self) -> int:
        return 7

    def __getitem__(self, i: int) -> Sample:
        inputs = {
            "scalar": i,
            "flag": i % 2 == 0,
            "half": np.float16(i),
            "brain": i / 3,
            "text": "word" * i,
            "picture": np.arange(i * 6, dtype=np.uint8).reshape(i, 3, 2),
            "transposed": np.arange(6.0).reshape(2, 3).T,
            "nothing": np.zeros((0, 4), np.float32),
            "complex": 1j * i,
        }
        meta = {
            "path": Path("a") / str(i),
            "tuple": (1, {2}, frozenset({"a"})),
            "list": [i, None, 1 << 70, 2 + 1j],
            3: datetime.date(2026, 1, i + 1),
            "record": Record("name", [np.float32(i)]),
            "mode": PipelineMode.TRAINING,
        }
        return Sample(inputs=inputs, meta=meta)


class KindsDataParams(DataBaseParams, builds=":KindsData"):
    pass


class KindsData(DataBase[KindsDataParams]):
    def _input_layer_specs(self) -> dict[str, Any]:
        return {
            "scalar": ArraySpec((), "int64"),
            "flag": ArraySpec((), "bool"),
            "half": ArraySpec((), "float16"),
            "brain": ArraySpec((), "bfloat16"),
            "text": ArraySpec((), "string"),
            "picture": ArraySpec((None, 3, None), "uint8"),
            "transposed": ArraySpec((3, 2), "float32"),
            "nothing": ArraySpec((None, 4), "float32"),
            "complex": ArraySpec((), "complex64"),
        }

    def _padding_values(self) -> dict[str, Any]:
        return {"picture": np.uint8(255)}


def kinds_pipeline(source: KindsParams, **settings: Any) -> DataPipeline:
    params = DataPipelineParams(**{"batch_size": 3, **settings})
    return KindsData(KindsDataParams()).create_pipeline(PipelineMode.EVALUATION, params, source)
