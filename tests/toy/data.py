"""Data of the toy scenario."""

from pathlib import Path
from typing import Any

import numpy as np

from scena import ArraySpec, DataBase, PipelineMode, RandomAccessGenerator, Sample

from .params import HalvesParams, ToyDataParams


class Halves(RandomAccessGenerator[HalvesParams]):
    def __init__(self, params: HalvesParams, mode: PipelineMode) -> None:
        super().__init__(params, mode)
        rng = np.random.default_rng(1 if mode == PipelineMode.TRAINING else 2)
        self.numbers = rng.normal(size=(params.count, 8)).astype("float32")

    def __len__(self) -> int:
        return self.params.count

    def __getitem__(self, index: int) -> Sample:
        numbers: Any = self.numbers[index]
        if self.params.bad == "shape" and index == 5:
            numbers = numbers[:7]
        if self.params.bad == "dtype" and index == 5:
            numbers = np.array(["a"] * 8)
        if self.params.bad == "nan" and self.mode == PipelineMode.TRAINING:
            numbers = numbers * np.nan
        target = np.int32(self.numbers[index, :4].sum() > self.numbers[index, 4:].sum())
        return Sample(inputs={"x": numbers}, targets={"y": target}, meta={"index": index})


class ToyData(DataBase[ToyDataParams]):
    def _input_layer_specs(self) -> dict[str, ArraySpec]:
        return {"x": ArraySpec((8,), "float32")}

    def _target_layer_specs(self) -> dict[str, ArraySpec]:
        return {"y": ArraySpec((), "int32")}

    def names(self) -> list[str]:
        """The names of the classes, from the resource."""
        return Path(self.params.names).read_text().split() if self.params.names is not None else ["first", "second"]
