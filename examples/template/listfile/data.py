"""Samples in files: `point.txt` holds the numbers, `point.gt.txt` beside it the class."""

from pathlib import Path

import numpy as np

from scena import ArraySpec, DataBase, MappingDataProcessor, PipelineMode, Sample

from .params import JitterParams, LoadSampleParams, TemplateDataParams


class LoadSample(MappingDataProcessor[LoadSampleParams]):
    """Gets a line of a list file as `sample.inputs` and reads what it names."""

    def apply(self, sample: Sample) -> Sample:
        path = Path(sample.inputs)
        loaded = sample.new_inputs({"point": np.loadtxt(path, dtype="float32")}).new_meta(str(path))
        if self.mode == PipelineMode.PREDICTION:
            return loaded
        return loaded.new_targets({"label": np.int32(path.with_suffix(".gt.txt").read_text())})


class Jitter(MappingDataProcessor[JitterParams]):
    """Plain Python on one sample; take random numbers from `rng` only."""

    def apply(self, sample: Sample, rng: np.random.Generator) -> Sample:
        point = sample.inputs["point"]
        return sample.new_inputs({"point": point + rng.normal(0, self.params.size, 2).astype("float32")})


class TemplateData(DataBase[TemplateDataParams]):
    """Name, shape (without the batch) and type of inputs and targets; None is a variable length that is padded."""

    inputs = {"point": ArraySpec((2,), "float32")}
    targets = {"label": ArraySpec((), "int32")}

    def describe(self, sample: Sample) -> str:
        """What `scena lav` and `scena predict` print; there are targets in a validation only."""
        target = f", target {sample.targets['label']}" if sample.targets else ""
        return f"{sample.meta}: predicted {sample.outputs['class']}{target}"
