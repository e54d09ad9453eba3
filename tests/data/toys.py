"""Small sources, processors and data classes; a module of its own because worker processes import it by name."""

import os
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from scena.data import (
    ArraySpec,
    ComposedProcessorPipelineParams,
    DataBase,
    DataBaseParams,
    DataGenerator,
    DataGeneratorParams,
    DataPipeline,
    DataPipelineParams,
    DataProcessorParams,
    GeneratingDataProcessor,
    MappingDataProcessor,
    PipelineMode,
    RandomAccessGenerator,
    Sample,
    SequentialProcessorPipelineParams,
)
from scena.data.sources.params import ListFileGeneratorParams
from scena.params import param


def toy_sample(index: int) -> Sample:
    length = (index * 7) % 5 + 1
    return Sample(inputs={"x": np.full(length, index, np.float32)}, targets={"y": index}, meta={"id": index})


class NumbersParams(DataGeneratorParams, builds=":Numbers"):
    count: int = 23


class Numbers(RandomAccessGenerator[NumbersParams]):
    def __len__(self) -> int:
        return self.params.count

    def __getitem__(self, index: int) -> Sample:
        return toy_sample(index)


class NumberStreamParams(DataGeneratorParams, builds=":NumberStream"):
    count: int = 23
    fail_at: int = -1


class NumberStream(DataGenerator[NumberStreamParams]):
    def generate(self) -> Iterator[Sample]:
        for index in range(self.params.count):
            if index == self.params.fail_at:
                raise OSError("the disk is gone")
            yield toy_sample(index)


class DrawnStreamParams(DataGeneratorParams, builds=":DrawnStream"):
    """A stream that draws its samples at random."""


class DrawnStream(DataGenerator[DrawnStreamParams]):
    def generate(self, rng: np.random.Generator) -> Iterator[Sample]:
        for _ in range(23):
            yield toy_sample(int(rng.integers(1000)))


class LinesParams(DataProcessorParams, builds=":Lines"):
    """Turns the line of a list file into a sample."""


class Lines(MappingDataProcessor[LinesParams]):
    def apply(self, sample: Sample) -> Sample:
        made = toy_sample(int(sample.inputs))
        return sample.new_inputs(made.inputs).new_targets(made.targets)


class NoiseParams(DataProcessorParams, builds=":Noise"):
    scale: float = 1.0


class Noise(MappingDataProcessor[NoiseParams]):
    def apply(self, sample: Sample, rng: np.random.Generator) -> Sample:
        return sample.new_inputs({"x": sample.inputs["x"] + self.params.scale * rng.random(dtype=np.float32)})


class SplitParams(DataProcessorParams, builds=":Split"):
    """Drops samples whose index is 3 modulo 4, doubles those with 0."""

    chunk_size: int = 0


class Split(GeneratingDataProcessor[SplitParams]):
    def generate(self, samples: Iterable[Sample], rng: np.random.Generator) -> Iterator[Sample]:
        for sample in samples:
            kind = sample.targets["y"] % 4
            if kind == 3:
                continue
            yield sample
            if kind == 0:
                yield sample.new_inputs({"x": -sample.inputs["x"] - rng.random(dtype=np.float32)})


class SumParams(DataProcessorParams, builds=":Sum"):
    """Adds what it saw before; its state can be restored."""


class Sum(GeneratingDataProcessor[SumParams]):
    total = 0.0

    def generate(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        for sample in samples:
            self.total += float(sample.targets["y"])
            yield sample.new_inputs({"x": sample.inputs["x"] + np.float32(self.total)})

    def state(self) -> float:
        return self.total

    def restore(self, state: float) -> None:
        self.total = state


class WalkParams(DataProcessorParams, builds=":Walk"):
    """Adds the sum of the steps it took at random; its state can be restored."""


class Walk(GeneratingDataProcessor[WalkParams]):
    place = 0.0

    def generate(self, samples: Iterable[Sample], rng: np.random.Generator) -> Iterator[Sample]:
        for sample in samples:
            self.place += float(rng.random())
            yield sample.new_inputs({"x": sample.inputs["x"] + np.float32(self.place)})

    def state(self) -> float:
        return self.place

    def restore(self, state: float) -> None:
        self.place = state


class FaultParams(DataProcessorParams, builds=":Fault"):
    """Misbehaves at one sample."""

    at: int = 5
    kind: str = param("raise", choices=["raise", "kill", "exit", "sleep", "spec"])


class Fault(MappingDataProcessor[FaultParams]):
    def apply(self, sample: Sample) -> Sample:
        if sample.targets["y"] == self.params.at:
            if self.params.kind == "raise":
                raise ValueError("this picture is broken")
            if self.params.kind == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.params.kind == "exit":
                os._exit(3)
            if self.params.kind == "sleep":
                time.sleep(3600)
            return sample.new_inputs({"x": np.zeros((2, 2))})
        return sample


class KillOnceParams(DataProcessorParams, builds=":KillOnce"):
    """Kills its process at one sample unless a file says that it did so before."""

    at: int = 5
    flag: str = ""


class KillOnce(MappingDataProcessor[KillOnceParams]):
    def apply(self, sample: Sample) -> Sample:
        flag = Path(self.params.flag)
        if sample.targets["y"] == self.params.at and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return sample


class FailWhileParams(DataProcessorParams, builds=":FailWhile"):
    """Fails while a file exists."""

    file: str = ""


class FailWhile(MappingDataProcessor[FailWhileParams]):
    def apply(self, sample: Sample) -> Sample:
        if self.params.file and Path(self.params.file).exists():
            raise ValueError("told to fail")
        return sample


class SlowParams(DataProcessorParams, builds=":Slow"):
    seconds: float = 0.01


class Slow(MappingDataProcessor[SlowParams]):
    def apply(self, sample: Sample) -> Sample:
        time.sleep(self.params.seconds)
        return sample


class WhoParams(DataProcessorParams, builds=":Who"):
    """Takes its time, and notes in the meta which process it is."""

    seconds: float = 0.003


class Who(MappingDataProcessor[WhoParams]):
    def apply(self, sample: Sample) -> Sample:
        time.sleep(self.params.seconds)
        return sample.new_meta({"process": os.getpid()})


class CountParams(DataProcessorParams, builds=":Count"):
    """Writes a byte per processed sample to a file."""

    file: str = ""


class Count(MappingDataProcessor[CountParams]):
    def apply(self, sample: Sample) -> Sample:
        with Path(self.params.file).open("ab") as file:
            file.write(b".")
        return sample


class ToyDataParams(DataBaseParams, builds=":ToyData"):
    pass


class ToyData(DataBase[ToyDataParams]):
    def _input_layer_specs(self) -> dict[str, Any]:
        return {"x": ArraySpec((None,), "float32")}

    def _target_layer_specs(self) -> dict[str, Any]:
        return {"y": ArraySpec((), "int32")}

    def _padding_values(self) -> dict[str, Any]:
        return {"x": -1}


def sequence(*processors: DataProcessorParams, parallel: bool = True) -> SequentialProcessorPipelineParams:
    return SequentialProcessorPipelineParams(processors=list(processors), run_parallel=parallel)


def toy_pipeline(
    source: Any,
    pre_proc: Any = None,
    mode: PipelineMode = PipelineMode.TRAINING,
    seed: int = 1,
    **settings: Any,
) -> DataPipeline:
    data = ToyData(ToyDataParams(pre_proc=pre_proc or sequence()))
    return data.create_pipeline(mode, DataPipelineParams(**{"batch_size": 4, **settings}), source, seed=seed)


def list_files(folder: Path) -> ListFileGeneratorParams:
    for name, numbers in {"a": range(12), "b": range(12, 18)}.items():
        (folder / f"{name}.lst").write_text("# a comment\n" + "\n".join(map(str, numbers)) + "\n")
    return ListFileGeneratorParams(lists=[str(folder / "a.lst"), str(folder / "b.lst")], list_ratios=[1, 3])


BUCKETS = {"bucket_boundaries": [2, 4], "bucket_batch_sizes": [5, 3, 2]}
PIPELINES: dict[str, Any] = {
    "plain": lambda **s: toy_pipeline(NumbersParams(), **s),
    "augmented": lambda **s: toy_pipeline(NumbersParams(), sequence(NoiseParams(), NoiseParams(scale=3.0)), **s),
    "limited": lambda **s: toy_pipeline(NumbersParams(), sequence(NoiseParams()), limit=10, **s),
    "dropped": lambda **s: toy_pipeline(NumbersParams(), sequence(NoiseParams()), batch_drop_remainder=True, **s),
    "buckets": lambda **s: toy_pipeline(NumbersParams(), sequence(NoiseParams()), **BUCKETS, **s),
    "stream": lambda **s: toy_pipeline(NumberStreamParams(), sequence(NoiseParams()), **s),
    "bare stream": lambda **s: toy_pipeline(NumberStreamParams(), **s),
    "shuffled": lambda **s: toy_pipeline(NumberStreamParams(), sequence(NoiseParams()), shuffle_buffer_size=7, **s),
    "stream buckets": lambda **s: toy_pipeline(
        NumberStreamParams(), sequence(NoiseParams()), shuffle_buffer_size=7, **BUCKETS, **s
    ),
    "chunks": lambda **s: toy_pipeline(
        NumbersParams(), sequence(NoiseParams(), SplitParams(chunk_size=3), NoiseParams()), **s
    ),
    "chunks twice": lambda **s: toy_pipeline(
        NumbersParams(), sequence(SplitParams(chunk_size=3), SplitParams(chunk_size=5), NoiseParams()), **s
    ),
    "chunks buckets": lambda **s: toy_pipeline(NumbersParams(), sequence(SplitParams(chunk_size=3)), **BUCKETS, **s),
    "generating": lambda **s: toy_pipeline(NumbersParams(), sequence(NoiseParams(), SplitParams(), NoiseParams()), **s),
    "stateful": lambda **s: toy_pipeline(NumbersParams(), sequence(NoiseParams(), SumParams(), NoiseParams()), **s),
    "stateful end": lambda **s: toy_pipeline(NumbersParams(), sequence(NoiseParams(), SumParams()), **s),
    "stateful chunks": lambda **s: toy_pipeline(
        NumbersParams(), sequence(SplitParams(chunk_size=3), SumParams(), SplitParams(chunk_size=2)), **s
    ),
    "stateful buckets": lambda **s: toy_pipeline(NumbersParams(), sequence(SumParams()), **BUCKETS, **s),
    "stream generating": lambda **s: toy_pipeline(NumberStreamParams(), sequence(SplitParams(), NoiseParams()), **s),
    "not parallel": lambda **s: toy_pipeline(
        NumbersParams(),
        ComposedProcessorPipelineParams(
            groups=[sequence(NoiseParams()), sequence(NoiseParams(), parallel=False), sequence(NoiseParams())]
        ),
        **s,
    ),
    "serial first": lambda **s: toy_pipeline(NumbersParams(), sequence(NoiseParams(), parallel=False), **s),
    "a list": lambda **s: toy_pipeline([toy_sample(i) for i in range(23)], sequence(NoiseParams()), **s),
}


def facts(batch: Any) -> tuple[Any, ...]:
    """A batch as comparable values."""
    arrays = {**batch.inputs, **batch.targets}
    return (
        batch.epoch,
        batch.size,
        batch.meta,
        {key: (array.dtype.name, array.shape, array.tobytes()) for key, array in arrays.items()},
        batch.cursor.to_json(),
    )


def first_batches(pipeline: DataPipeline, count: int, cursor: Any = None) -> list[tuple[Any, ...]]:
    with pipeline.stream(cursor, repeat=True) as stream:
        return [facts(next(stream)) for _ in range(count)]
