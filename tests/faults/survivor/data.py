"""Data of the scenario that is killed."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from scena import ArraySpec, DataBase, DataGenerator, MappingDataProcessor, PipelineMode, Sample

from .params import JitterParams, SurvivorDataParams, WavesParams


class Waves(DataGenerator[WavesParams]):
    def __init__(self, params: WavesParams, mode: PipelineMode) -> None:
        super().__init__(params, mode)
        rng = np.random.default_rng(3 if mode == PipelineMode.TRAINING else 4)
        self.phases = rng.uniform(0, 6, params.count)

    def generate(self) -> Iterator[Sample]:
        for index in range(self.params.count):
            yield self[index]

    def __len__(self) -> int:
        return self.params.count

    def __getitem__(self, index: int) -> Sample:
        wave = np.sin(np.arange(8) + self.phases[index]).astype("float32")
        return Sample(inputs={"x": wave}, targets={"y": np.int32(wave[:4].sum() > 0)})


class StreamedWaves(DataGenerator[WavesParams]):
    """The same without a length, one after the other."""

    def generate(self) -> Iterator[Sample]:
        yield from Waves(self.params, self.mode).generate()


def waves(params: WavesParams, mode: PipelineMode) -> DataGenerator[WavesParams]:
    return Waves(params, mode) if params.counted else StreamedWaves(params, mode)


class Jitter(MappingDataProcessor[JitterParams]):
    def apply(self, sample: Sample, rng: np.random.Generator) -> Sample:
        time.sleep(self.params.seconds)
        noise = rng.normal(size=8).astype("float32") * np.float32(self.params.strength)
        return sample.new_inputs({"x": sample.inputs["x"] + noise})


class SurvivorData(DataBase[SurvivorDataParams]):
    def _input_layer_specs(self) -> dict[str, ArraySpec]:
        return {"x": ArraySpec((8,), "float32")}

    def _target_layer_specs(self) -> dict[str, Any]:
        return {"y": ArraySpec((), "int32")}
