"""The benchmark of an input pipeline says how fast it is and which processor takes the time."""

from scena.data import PipelineMode
from scena.data.benchmark import benchmark_input
from tests.data.toys import (
    NoiseParams,
    NumbersParams,
    NumberStreamParams,
    SlowParams,
    SplitParams,
    sequence,
    toy_pipeline,
)


def test_it_finds_the_slow_processor() -> None:
    for source in (NumbersParams(), NumberStreamParams()):
        processors = sequence(NoiseParams(), SlowParams(seconds=0.002), SplitParams(), NoiseParams())
        pipeline = toy_pipeline(source, processors, mode=PipelineMode.EVALUATION, num_processes=0)
        result = benchmark_input(pipeline, 0.6)
        assert next(iter(result.shares)) == "Slow"
        assert set(result.shares) >= {"Noise", "Split", "batching"}
        assert all(0 <= share <= 1 for share in result.shares.values())
        assert result.bottleneck.startswith("Slow takes")
        assert result.samples_per_second > 0
        assert result.batches_per_second > 0
        text = "\n".join(result.lines())
        assert "samples/s" in text
        assert "first batch after" in text


def test_it_measures_workers() -> None:
    pipeline = toy_pipeline(NumbersParams(), sequence(SlowParams(seconds=0.001)), num_processes=1)
    result = benchmark_input(pipeline, 0.8)
    assert result.batches > 1
    assert result.first_batch_seconds > 0
    pipeline.close()
