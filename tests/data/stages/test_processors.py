"""Processor pipelines: modes, stand-alone use, finding and replacing, post-processing, the data class."""

import numpy as np
import pytest

from scena.data import (
    Batch,
    ComposedProcessorPipelineParams,
    DataBaseParams,
    DataPipelineParams,
    PipelineMode,
    Sample,
)
from scena.params import ParamsError
from tests.data.toys import (
    FaultParams,
    NoiseParams,
    NumbersParams,
    SlowParams,
    SplitParams,
    ToyData,
    ToyDataParams,
    facts,
    sequence,
    toy_pipeline,
    toy_sample,
)


def test_modes() -> None:
    processors = sequence(NoiseParams(modes={PipelineMode.TRAINING}))

    def values(mode: PipelineMode) -> list[float]:
        with toy_pipeline(NumbersParams(), processors, mode, num_processes=0, shuffle_buffer_size=0).stream() as stream:
            return next(stream).inputs["x"][:, 0].tolist()

    assert values(PipelineMode.EVALUATION) == [0, 1, 2, 3]
    assert values(PipelineMode.TRAINING) != [0, 1, 2, 3]


def test_what_a_batch_holds_in_each_mode() -> None:
    def batch(mode: PipelineMode) -> Batch:
        with toy_pipeline(NumbersParams(), mode=mode).stream() as stream:
            return next(stream)

    assert batch(PipelineMode.PREDICTION).targets == {}
    assert batch(PipelineMode.TARGETS).inputs == {}
    both = batch(PipelineMode.EVALUATION)
    assert set(both.inputs) == {"x"}
    assert set(both.targets) == {"y"}
    samples = list(both.samples())
    assert [sample.meta for sample in samples] == both.meta
    assert samples[1].inputs["x"].tolist() == [1, 1, 1, -1, -1], "padded as in the batch"


def test_a_batch_in_smaller_parts() -> None:
    with toy_pipeline(NumbersParams(), mode=PipelineMode.EVALUATION, batch_size=5).stream() as stream:
        batch = next(stream)
    parts = batch.parts(2)
    assert [(part.size, part.meta) for part in parts] == [
        (2, batch.meta[:2]),
        (2, batch.meta[2:4]),
        (1, batch.meta[4:]),
    ]
    assert all(part.cursor == batch.cursor for part in parts)
    for number, arrays in enumerate(batch):
        for name, whole in arrays.items():
            np.testing.assert_array_equal(np.concatenate([[*part][number][name] for part in parts]), whole)
    assert batch.parts(5) == [batch]


def test_the_only_sample_of_a_batch_of_one() -> None:
    with toy_pipeline(NumbersParams(), mode=PipelineMode.EVALUATION, batch_size=1).stream() as stream:
        batch = next(stream)
    outputs = {"p": np.array([[0.25, 0.75]])}
    alone, (same,) = batch.only_sample(outputs), batch.samples(outputs)
    for part in ("inputs", "targets", "outputs", "meta"):
        np.testing.assert_equal(getattr(alone, part), getattr(same, part))
    assert alone.outputs["p"].tolist() == [0.25, 0.75] and alone.meta == {"id": 0}


@pytest.mark.parametrize("processes", [None, 0, 2])
def test_stand_alone(processes: int | None) -> None:
    data = DataBaseParams(pre_proc=sequence(NoiseParams(), SplitParams(chunk_size=3)))
    params = DataPipelineParams(num_processes=processes, limit=10)
    made = list(data.pre_proc.create(params, data).apply([toy_sample(index) for index in range(50)]))
    assert [sample.meta["id"] for sample in made] == [0, 0, 1, 2, 4, 4, 5, 6, 8, 8, 9]
    from_params = list(data.pre_proc.create(params, data).apply(NumbersParams()))
    for one, other in zip(made, from_params, strict=True):
        np.testing.assert_array_equal(one.inputs["x"], other.inputs["x"])
    assert list(data.pre_proc.create(params, data).apply([])) == []


def test_stand_alone_is_lazy_in_this_process() -> None:
    taken = []

    def source():
        for index in range(100):
            taken.append(index)
            yield toy_sample(index)

    data = DataBaseParams(pre_proc=sequence(NoiseParams()))
    made = data.pre_proc.create(DataPipelineParams(), data).apply(source())
    next(made)
    assert len(taken) <= 2


def test_find_replace_erase() -> None:
    pipeline = ComposedProcessorPipelineParams(
        groups=[sequence(NoiseParams(scale=1.0), FaultParams()), sequence(NoiseParams(scale=2.0))]
    )
    assert [noise.scale for noise in pipeline.find(NoiseParams)] == [1.0, 2.0]
    assert pipeline.replace_all(FaultParams, SlowParams(seconds=0.0)) == 1
    assert pipeline.erase_all(NoiseParams) == 2
    assert [type(processor) for processor in pipeline] == [SlowParams]


def test_post_proc() -> None:
    data = ToyData(ToyDataParams(post_proc=sequence(SplitParams())))
    made = list(data.create_post_proc(PipelineMode.PREDICTION).apply([toy_sample(3), toy_sample(1)]))
    assert [sample.meta["id"] for sample in made] == [1]


def test_samples_and_batches_for_debugging() -> None:
    pipeline = toy_pipeline(NumbersParams(), sequence(NoiseParams()), num_processes=0)
    with pipeline.generate_input_samples(auto_repeat=False) as samples:
        singles = list(samples)
    assert len(singles) == 23
    assert all(isinstance(sample, Sample) for sample in singles)
    with pipeline.generate_input_batches(auto_repeat=False) as batches:
        assert sum(batch.size for batch in batches) == 23
    with pipeline.generate_input_batches(auto_repeat=False) as batches:
        for inputs, targets in batches:
            assert (inputs.keys(), targets.keys()) == ({"x"}, {"y"})


def test_get_or_create() -> None:
    data = ToyData(ToyDataParams())
    params = DataPipelineParams()
    one = data.get_or_create_pipeline(PipelineMode.TRAINING, params, NumbersParams())
    assert data.get_or_create_pipeline(PipelineMode.TRAINING, params, NumbersParams()) is one
    assert data.get_or_create_pipeline(PipelineMode.EVALUATION, params, NumbersParams()) is not one


def test_counts() -> None:
    assert toy_pipeline(NumbersParams()).samples_per_epoch() == 23
    assert toy_pipeline(NumbersParams()).batches_per_epoch() == 6
    assert toy_pipeline(NumbersParams(), batch_drop_remainder=True).batches_per_epoch() == 5
    assert toy_pipeline(NumbersParams(), limit=8).batches_per_epoch() == 2
    assert toy_pipeline(NumbersParams(), sequence(SplitParams())).batches_per_epoch() is None
    assert toy_pipeline(iter([])).samples_per_epoch() is None


def test_buckets_have_their_own_sizes() -> None:
    """Short samples go together in large batches, long ones in small batches."""
    pipeline = toy_pipeline(
        NumbersParams(count=60),
        bucket_boundaries=[2, 4],
        bucket_batch_sizes=[5, 3, 2],
        mode=PipelineMode.EVALUATION,
        num_processes=0,
    )
    with pipeline.stream() as stream:
        full = [(batch.size, batch.inputs["x"].shape[1]) for batch in stream]
    assert {size for size, length in full if length == 1} == {5, 2}, "full ones and the rest"
    assert {size for size, length in full if length in (2, 3)} == {3}
    assert {size for size, length in full if length > 3} == {2}


def test_bucket_settings_are_checked() -> None:
    with pytest.raises(ParamsError, match="one size more"):
        DataPipelineParams(bucket_boundaries=[5], bucket_batch_sizes=[1])
    with pytest.raises(ParamsError, match="must increase"):
        DataPipelineParams(bucket_boundaries=[5, 5])


def test_a_limit_of_skipped_samples_without_skipping_is_refused() -> None:
    with pytest.raises(ParamsError, match="max_skipped=3 has no effect while on_error is 'raise'"):
        DataPipelineParams(max_skipped=3)
    assert DataPipelineParams(max_skipped=3, on_error="skip").max_skipped == 3


def test_the_default_goes_parallel_when_that_pays(caplog) -> None:
    """The same batches, first from this process and then from workers; light work stays here."""
    import logging

    def batches(count: int, seconds: float, **settings):
        pipeline = toy_pipeline(
            NumbersParams(count=500), sequence(SlowParams(seconds=seconds), NoiseParams()), **settings
        )
        with pipeline.stream() as stream:
            made = [facts(next(stream)) for _ in range(count)]
        parallel = pipeline._idle[0]._parallel if not settings else None
        pipeline.close()
        return made, parallel

    with caplog.at_level(logging.INFO):
        made, parallel = batches(120, 0.004)
    assert parallel is not None
    assert "continuing with" in caplog.text
    assert made == batches(120, 0.0, num_processes=0)[0]
    pipeline = toy_pipeline(NumbersParams(count=500), sequence(SlowParams(seconds=0.004), NoiseParams()))
    for _ in range(2):  # workers that were started are used by the next stream at once
        with pipeline.stream() as stream:
            assert [facts(next(stream)) for _ in range(60)] == made[:60]
    pipeline.close()
    _, parallel = batches(200, 0.0)
    assert parallel is None
