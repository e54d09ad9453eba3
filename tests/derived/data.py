"""Data of the scenario with derived state: nothing is near zero, so that a lost mean, vocabulary or boundary is seen."""

import time
from typing import Any

import numpy as np

from scena import ArraySpec, DataBase, PipelineMode, RandomAccessGenerator, Sample

from .params import DerivedDataParams, RowsParams

COLOURS = ("red", "green", "blue", "dark\u2028blue", "grün")


class Rows(RandomAccessGenerator[RowsParams]):
    def __init__(self, params: RowsParams, mode: PipelineMode) -> None:
        super().__init__(params, mode)
        rng = np.random.default_rng(1 if mode == PipelineMode.TRAINING else 2)
        self.numbers = rng.normal(50, 10, size=(params.count, 4)).astype("float32")
        self.colours = rng.integers(len(COLOURS), size=params.count)

    def __len__(self) -> int:
        return self.params.count

    def __getitem__(self, index: int) -> Sample:
        time.sleep(self.params.seconds)
        colour = int(self.colours[index])
        inputs: dict[str, Any] = {"x": self.numbers[index], "code": np.array([7000 + colour], "int64")}
        inputs["word"] = np.array([COLOURS[colour]])
        inputs["sentence"] = np.array(f"a {COLOURS[colour]} thing number {index % 7}")
        target = np.int32(self.numbers[index].sum() + 10 * colour > 220)
        return Sample(inputs=inputs, targets={"y": target}, meta={"index": index})


class DerivedData(DataBase[DerivedDataParams]):
    def _input_layer_specs(self) -> dict[str, ArraySpec]:
        specs = {"x": ArraySpec((4,), "float32"), "code": ArraySpec((1,), "int64")}
        if self.params.words:
            specs |= {"word": ArraySpec((1,), "string"), "sentence": ArraySpec((), "string")}
        return specs

    def _target_layer_specs(self) -> dict[str, ArraySpec]:
        return {"y": ArraySpec((), "int32")}
