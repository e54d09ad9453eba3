"""The source of samples, their specs, and a processor."""

import numpy as np

from scena import ArraySpec, DataBase, MappingDataProcessor, PipelineMode, RandomAccessGenerator, Sample

from .params import JitterParams, TemplateDataParams, TemplateSourceParams


class TemplateSource(RandomAccessGenerator[TemplateSourceParams]):
    """Points on two rings. [Open your files here; `mode` says whether to train or to validate.]"""

    def __init__(self, params: TemplateSourceParams, mode: PipelineMode) -> None:
        super().__init__(params, mode)
        rng = np.random.default_rng(0 if mode == PipelineMode.TRAINING else 1)
        self.labels = rng.integers(0, 2, params.count).astype("int32")
        angles = rng.uniform(0, 2 * np.pi, params.count)
        radius = 0.5 + 0.5 * self.labels + rng.normal(0, params.spread, params.count)
        self.points = np.stack([radius * np.cos(angles), radius * np.sin(angles)], axis=1).astype("float32")

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> Sample:
        return Sample(inputs={"point": self.points[index]}, targets={"label": self.labels[index]}, meta=index)


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
        return f"sample {sample.meta}: predicted {sample.outputs['class']}{target}"
