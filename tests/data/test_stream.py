"""Batches that are made in a thread while the training computes: the same ones, in the same order, with the same errors."""

import threading

import pytest

from scena.data import DataError, DataPipeline, PipelineMode
from tests.data.toys import FaultParams, NoiseParams, NumbersParams, sequence, toy_pipeline


def automatic(*processors, count: int = 50, **params) -> DataPipeline:
    return toy_pipeline(NumbersParams(count=count), sequence(*processors), mode=PipelineMode.TRAINING, **params)


def values(batches) -> list:
    return [(batch.cursor.to_json(), batch.inputs["x"].tolist()) for batch in batches]


def test_batches_and_cursors_are_the_same() -> None:
    pipeline = automatic(NoiseParams())
    with pipeline.stream() as stream:
        expected = [next(stream) for _ in range(30)]
    with pipeline.stream() as stream:
        made = []
        while len(made) < 30:
            made += stream.take_block(4)
            assert stream.cursor == made[-1].cursor  # what was made ahead does not count yet
            stream.make_ahead(4)
    assert values(made[:30]) == values(expected)
    with pipeline.stream(made[9].cursor) as stream:
        stream.make_ahead(3)
        assert values([next(stream)]) == values(expected[10:11])


def test_an_error_comes_after_the_batches_before_it() -> None:
    with automatic(FaultParams(at=9)).stream() as stream:
        seen = 0
        with pytest.raises(DataError, match="sample 9"):
            while True:
                stream.make_ahead(50)
                seen += sum(batch.size for batch in stream.take_block(50))
        with pytest.raises(DataError, match="sample 9"):
            next(stream)
    with automatic(FaultParams(at=9)).stream() as stream:
        alone = 0
        with pytest.raises(DataError):
            for batch in stream:
                alone += batch.size
    assert seen == alone


def test_a_stream_is_closed_while_batches_are_made() -> None:
    pipeline = automatic(NoiseParams(), count=100_000)
    for _ in range(20):
        with pipeline.stream() as stream:
            next(stream)
            stream.make_ahead(100_000)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("scena-batches")]


@pytest.mark.parametrize(("processes", "threads"), [(0, 0), (None, 1)])
def test_a_debugger_finds_everything_in_one_thread(processes: int | None, threads: int) -> None:
    with automatic(NoiseParams(), num_processes=processes).stream() as stream:
        stream.make_ahead(2)
        assert sum(thread.name.startswith("scena-batches") for thread in threading.enumerate()) == threads
        next(stream)
