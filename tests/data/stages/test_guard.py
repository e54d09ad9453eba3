"""Sources and processors that would change data without a word are noticed with their first samples."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from scena.data import (
    ArraySpec,
    DataBase,
    DataBaseParams,
    DataGenerator,
    DataGeneratorParams,
    DataPipelineParams,
    DataProcessorParams,
    MappingDataProcessor,
    PipelineMode,
    RandomAccessGenerator,
    Sample,
    SequentialProcessorPipelineParams,
)
from scena.errors import DataError

SERIES = np.arange(40, dtype="float32")


class WindowsParams(DataGeneratorParams, builds=":Windows"):
    """Windows of a series."""


class Windows(RandomAccessGenerator[WindowsParams]):
    def __init__(self, params: WindowsParams, mode: PipelineMode) -> None:
        super().__init__(params, mode)
        self.series = SERIES.copy()

    def __len__(self) -> int:
        return 20

    def __getitem__(self, index: int) -> Sample:
        return Sample({"past": self.series[index : index + 4]}, meta={"at": index})


class Reused(Windows):
    def __getitem__(self, index: int) -> Sample:
        self.buffer = getattr(self, "buffer", np.zeros(4, "float32"))
        self.buffer[:] = self.series[index : index + 4]
        return Sample({"past": self.buffer})


class ReusedStream(DataGenerator[WindowsParams]):
    def generate(self) -> Iterator[Sample]:
        buffer = np.zeros(4, "float32")
        for index in range(20):
            buffer[:] = SERIES[index : index + 4]
            yield Sample({"past": buffer})


class Tuples(Windows):
    def __getitem__(self, index: int) -> Any:
        return {"past": SERIES[index : index + 4]}, {}


class FirstParams(DataProcessorParams, builds=":First"):
    """Does what a test asks for."""


class First(MappingDataProcessor[FirstParams]):
    change: Callable[[Sample], Any] = staticmethod(lambda sample: sample)

    def apply(self, sample: Sample) -> Sample:
        made: Sample = type(self).change(sample)
        return made


class SecondParams(DataProcessorParams, builds=":Second"):
    """Comes after it."""


class Second(MappingDataProcessor[SecondParams]):
    def apply(self, sample: Sample) -> Sample:
        return sample.new_inputs({"past": sample.inputs["past"] + 0})


class WindowsData(DataBase[DataBaseParams]):
    def _input_layer_specs(self) -> dict[str, ArraySpec]:
        return {"past": ArraySpec((4,), "float32")}


def batches(source: Any, epochs: int = 1, processors: bool = True, batch_size: int = 5) -> list[np.ndarray]:
    both = [FirstParams(), SecondParams()] if processors else []
    data = WindowsData(DataBaseParams(pre_proc=SequentialProcessorPipelineParams(processors=both)))
    params = DataPipelineParams(batch_size=batch_size, num_processes=0)
    pipeline = data.create_pipeline(PipelineMode.EVALUATION, params, source)
    made = []
    for _ in range(epochs):
        with pipeline.stream() as stream:
            made = [batch.inputs["past"].copy() for batch in stream]
    return made


def expected(count: int = 20) -> np.ndarray:
    return np.stack([SERIES[index : index + 4] for index in range(count)])


@pytest.fixture(autouse=True)
def _first_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(First, "change", staticmethod(lambda sample: sample))


@pytest.mark.parametrize("source", [Reused, ReusedStream])
@pytest.mark.parametrize("processors", [True, False])
def test_a_source_that_fills_one_array_again_and_again_is_refused(source: Any, processors: bool) -> None:
    with pytest.raises(DataError) as failure:
        batches(source(WindowsParams(), PipelineMode.EVALUATION), processors=processors)
    assert str(failure.value) == (
        f"{source.__name__} reuses the array of inputs['past']: that of sample 0 changed when sample 1 was made, so samples of a "
        "batch would be mixed up. Return a new array for each sample."
    )


def test_with_batches_of_one_sample_an_array_may_be_used_again() -> None:
    made = batches(Reused(WindowsParams(), PipelineMode.EVALUATION), batch_size=1)
    assert np.array_equal(np.concatenate(made), expected())


def test_a_processor_that_fills_one_array_again_and_again_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = np.zeros(4, "float32")

    def fill(self: Second, sample: Sample) -> Sample:
        np.multiply(sample.inputs["past"], 2, out=buffer)
        return sample.new_inputs({"past": buffer})

    monkeypatch.setattr(Second, "apply", fill)
    for source in (WindowsParams(), Windows(WindowsParams(), PipelineMode.EVALUATION)):
        with pytest.raises(DataError, match="First or Second reuses the array of inputs"):
            batches(source)


def test_a_processor_cannot_change_the_arrays_of_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    def center(sample: Sample) -> Sample:
        past = sample.inputs["past"]
        past -= past.mean()
        return sample

    monkeypatch.setattr(First, "change", staticmethod(center))
    with pytest.raises(DataError) as failure:
        batches(WindowsParams())
    assert re.sub(r" \(test_guard.py:\d+\)", "", str(failure.value)) == (
        "First failed on sample 0 (meta: {'at': 0}): ValueError: output array is read-only. The array is the source's own: a change "
        "would still be there in the next epoch. Copy it first, array.copy()."
    )


def test_changing_the_dict_of_a_sample_does_not_change_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    def double(sample: Sample) -> Sample:
        sample.inputs["past"] = sample.inputs["past"] * 2
        sample.meta["doubled"] = True
        return sample

    monkeypatch.setattr(First, "change", staticmethod(double))
    samples = [Sample({"past": row}, meta={}) for row in expected(10)]
    assert np.array_equal(np.concatenate(batches(samples, epochs=3)), 2 * expected(10))
    assert samples[0].meta == {}


def test_what_is_no_sample_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError) as failure:
        batches(Tuples(WindowsParams(), PipelineMode.EVALUATION))
    assert str(failure.value) == "Tuples must give a Sample(inputs, targets). Received: tuple for sample 0."
    with pytest.raises(DataError) as failure:
        batches(sample.inputs for sample in [Sample({})])
    assert str(failure.value) == "IterableGenerator must give a Sample(inputs, targets). Received: dict for sample 0."
    monkeypatch.setattr(First, "change", staticmethod(lambda sample: None))
    with pytest.raises(DataError) as failure:
        batches(WindowsParams())
    assert str(failure.value) == "First must return a Sample. Received: NoneType for sample 0 (meta: {'at': 0})."
