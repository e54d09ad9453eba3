"""A pipeline restored from a cursor yields exactly the remaining batches: at every batch, for every operator."""

import json
from pathlib import Path
from typing import Any

import pytest

from scena.data import Cursor, PipelineMode
from tests.data.toys import (
    PIPELINES,
    CountParams,
    DrawnStreamParams,
    NoiseParams,
    NumbersParams,
    SumParams,
    WalkParams,
    facts,
    first_batches,
    list_files,
    sequence,
    toy_pipeline,
)


@pytest.mark.parametrize("name", PIPELINES)
def test_restored_at_every_batch(name: str) -> None:
    expected = first_batches(PIPELINES[name](), 20)
    assert {batch[0] for batch in expected} >= {0, 1}, "the test must cross the end of an epoch"
    for position in range(15):
        stored = json.loads(json.dumps(expected[position][-1]))
        assert len(json.dumps(stored)) < 1000
        rest = first_batches(PIPELINES[name](), 20 - position - 1, Cursor.from_json(stored))
        assert rest == expected[position + 1 :], f"restored after batch {position}"


def test_list_mixing_restored(tmp_path) -> None:
    from tests.data.toys import LinesParams

    def pipeline():
        return toy_pipeline(list_files(tmp_path), sequence(LinesParams(), NoiseParams()))

    expected = first_batches(pipeline(), 12)
    for position in range(10):
        rest = first_batches(pipeline(), 12 - position - 1, Cursor.from_json(expected[position][-1]))
        assert rest == expected[position + 1 :]


@pytest.mark.parametrize(
    "pipeline",
    [
        lambda **s: toy_pipeline(NumbersParams(), sequence(WalkParams(), NoiseParams()), **s),
        lambda **s: toy_pipeline(DrawnStreamParams(), **s),
    ],
    ids=["processor", "source"],
)
def test_what_is_drawn_at_random_is_restored(pipeline: Any) -> None:
    """By a processor that sees the whole stream, and by a source; other numbers in each epoch and for each seed."""
    expected = first_batches(pipeline(num_processes=0), 12)
    for position in (0, 3, 5, 7):
        rest = first_batches(pipeline(num_processes=0), 12 - position - 1, Cursor.from_json(expected[position][-1]))
        assert rest == expected[position + 1 :], f"restored after batch {position}"
    inputs = [batch[3]["x"] for batch in expected]
    assert inputs[:6] != inputs[6:]
    assert inputs != [batch[3]["x"] for batch in first_batches(pipeline(num_processes=0, seed=2), 12)]


@pytest.mark.parametrize("others", [(), (SumParams(),)], ids=["batches", "the whole stream"])
def test_consumed_samples_are_not_processed_again(tmp_path: Path, others: tuple[Any, ...]) -> None:
    """Also before a processor that sees the whole stream, if its state can be restored."""
    counted = tmp_path / "count"
    pipeline = toy_pipeline(NumbersParams(count=40), sequence(CountParams(file=str(counted)), *others))
    with pipeline.stream() as stream:
        for _ in range(9):
            next(stream)
        cursor = stream.cursor
    counted.unlink()
    with pipeline.stream(cursor, repeat=False) as stream:
        assert [batch.size for batch in stream] == [4]
    assert len(counted.read_bytes()) == 4


def test_stream_cursor_is_that_of_the_last_batch() -> None:
    with toy_pipeline(NumbersParams()).stream() as stream:
        assert stream.cursor == Cursor()
        batch = next(stream)
        assert stream.cursor == batch.cursor == Cursor(epoch=0, batch=1, samples=4)


def test_at_the_end_of_an_epoch_nothing_is_left() -> None:
    pipeline = toy_pipeline(NumbersParams(), mode=PipelineMode.EVALUATION)
    with pipeline.stream() as stream:
        batches = [facts(batch) for batch in stream]
        end = stream.cursor
    assert len(batches) == 6
    with pipeline.stream(end) as stream:
        assert list(stream) == []
