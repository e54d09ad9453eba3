"""The batches of worker processes are those of this process: order, content, cursors."""

import subprocess
import sys
import time
from collections import Counter
from contextlib import closing

import numpy as np
import pytest

from scena.data import Cursor, PipelineMode
from scena.data.engines.parallel import ParallelEngine, python_engine
from tests.data.toys import (
    PIPELINES,
    LinesParams,
    NoiseParams,
    NumbersParams,
    NumberStreamParams,
    SlowParams,
    SplitParams,
    WhoParams,
    facts,
    first_batches,
    list_files,
    sequence,
    toy_pipeline,
)


@pytest.mark.parametrize("name", PIPELINES)
def test_same_batches_with_two_workers(name: str) -> None:
    expected = first_batches(PIPELINES[name](num_processes=0), 24)
    pipeline = PIPELINES[name](num_processes=2)
    assert first_batches(pipeline, 24) == expected
    position = 7  # the same processes, from a cursor of the other engine
    rest = first_batches(pipeline, 24 - position - 1, Cursor.from_json(expected[position][-1]))
    assert rest == expected[position + 1 :]
    pipeline.close()


@pytest.mark.parametrize(("name", "processes"), [("augmented", 1), ("chunks", 1), ("chunks twice", 5)])
def test_same_batches_with_any_number_of_workers(name: str, processes: int) -> None:
    expected = first_batches(PIPELINES[name](num_processes=0), 24)
    assert first_batches(PIPELINES[name](num_processes=processes), 24) == expected


def test_list_mixing(tmp_path) -> None:
    def pipeline(processes: int):
        return toy_pipeline(
            list_files(tmp_path), sequence(LinesParams(), NoiseParams()), limit=15, num_processes=processes
        )

    assert first_batches(pipeline(2), 12) == first_batches(pipeline(0), 12)


def test_the_workers_end_an_epoch_together() -> None:
    """Tasks of several batches get smaller towards its end; else one worker waits while the other one has a large task left."""
    pipeline = toy_pipeline(NumbersParams(count=56), sequence(WhoParams()), PipelineMode.EVALUATION, num_processes=2)
    with closing(pipeline):
        for _ in range(2):  # what counts is the second epoch: in the first one, a worker may start late
            with pipeline.stream() as stream:
                made = Counter(batch.meta[0]["process"] for batch in stream)
    assert made.total() == 14
    assert max(made.values()) <= 9, made


@pytest.mark.parametrize("source", [NumbersParams(), NumberStreamParams()])
def test_one_epoch_in_evaluation(source) -> None:
    def batches(processes: int):
        pipeline = toy_pipeline(source, sequence(NoiseParams()), mode=PipelineMode.EVALUATION, num_processes=processes)
        with pipeline.stream() as stream:
            first = [facts(batch) for batch in stream]
        with pipeline.stream() as stream:  # the workers are kept for the second stream
            assert [facts(batch) for batch in stream] == first
        return first

    assert batches(2) == batches(0)
    assert [size for _, size, *_ in batches(0)] == [4, 4, 4, 4, 4, 3]


def test_restored_at_every_batch_with_workers() -> None:
    for name in ("buckets", "stateful chunks"):
        expected = first_batches(PIPELINES[name](num_processes=0), 16)
        pipeline = PIPELINES[name](num_processes=2)
        for position in range(14):
            rest = first_batches(pipeline, 16 - position - 1, Cursor.from_json(expected[position][-1]))
            assert rest == expected[position + 1 :], f"{name} restored after batch {position}"
        pipeline.close()


def test_batches_that_are_kept_stay_intact() -> None:
    """Arrays look into shared memory: a slot is not used again while one of them is alive."""
    pipeline = toy_pipeline(NumbersParams(count=200), num_processes=1, prefetch=2)
    with pipeline.stream(repeat=False) as stream:
        kept = list(stream)
    pipeline.close()
    with toy_pipeline(NumbersParams(count=200), num_processes=0).stream(repeat=False) as stream:
        assert [facts(batch) for batch in kept] == [facts(batch) for batch in stream]


def test_batches_larger_than_any_before() -> None:
    from tests.data.big import BigParams, big_pipeline

    with big_pipeline(BigParams(sizes=[10, 1_000_000, 10, 3_000_000, 5]), num_processes=1).stream(repeat=False) as s:
        sizes = [batch.inputs["x"].shape for batch in s]
        assert sizes == [(1, 10), (1, 1_000_000), (1, 10), (1, 3_000_000), (1, 5)]


def test_workers_and_memory_are_kept_from_epoch_to_epoch() -> None:
    pipeline = toy_pipeline(NumbersParams(), sequence(SplitParams(), NoiseParams()), num_processes=2, prefetch=4)
    engine = python_engine(pipeline._context)
    assert isinstance(engine, ParallelEngine)
    seen = set()
    for batch in engine.batches(Cursor(), True):
        seen |= {member.process.pid for member in engine.pool.members if member.process}
        if batch.epoch == 1:
            early = engine.pool.slots.count
        if batch.epoch == 20:
            break
    late = engine.pool.slots.count
    engine.close()
    assert len(seen) == 3, "two workers and the one that sees the whole stream"
    assert late <= early + 4, "slots are used again"


def test_workers_wait_for_a_slow_consumer_of_buckets() -> None:
    """Each batch that is taken wakes the router: it must not start work that nobody has room for."""
    pipeline = toy_pipeline(
        NumbersParams(count=2000), sequence(NoiseParams()), num_processes=2, prefetch=4, bucket_boundaries=[2, 4]
    )
    engine = python_engine(pipeline._context)
    assert isinstance(engine, ParallelEngine)
    slots = []
    for number, _ in enumerate(engine.batches(Cursor(), True)):
        time.sleep(0.01)
        slots.append(engine.pool.slots.count)
        if number == 150:
            break
    engine.close()
    assert slots[-1] <= slots[75] + 8, "what waits for the buckets does not grow"


def test_a_slow_consumer_finds_batches_ready() -> None:
    pipeline = toy_pipeline(NumbersParams(count=64), sequence(SlowParams(seconds=0.005)), num_processes=2)
    with pipeline.stream() as stream:
        next(stream)
        time.sleep(0.6)
        start = time.perf_counter()
        for _ in range(8):
            next(stream)
        waited = time.perf_counter() - start
    print(f"eight batches of 20 ms each taken in {waited * 1000:.1f} ms")
    assert waited < 8 * 4 * 0.005


def test_blocks_hold_batches_of_equal_shape_within_an_epoch() -> None:
    pipeline = toy_pipeline(NumbersParams(count=22), num_processes=1)
    with pipeline.stream() as stream:
        blocks = [stream.take_block(4) for _ in range(12)]
        assert all(1 <= len(block) <= 4 for block in blocks)
        for block in blocks:
            assert len({(batch.shapes(), batch.epoch) for batch in block}) == 1
        taken = [facts(batch) for block in blocks for batch in block]
        assert stream.cursor == blocks[-1][-1].cursor
    assert taken == first_batches(toy_pipeline(NumbersParams(count=22), num_processes=0), len(taken))


def test_take_block_at_the_end() -> None:
    with toy_pipeline(NumbersParams(count=6), num_processes=0, shuffle_buffer_size=0).stream(repeat=False) as stream:
        assert sum(len(stream.take_block(10)) for _ in range(2)) == 2
        assert stream.take_block(10) == []


def test_workers_do_without_tensorflow_and_the_main_script(tmp_path) -> None:
    """A script without `if __name__ == "__main__"` works: workers do not run it."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys\n"
        "print('main runs', flush=True)\n"
        "import tensorflow as tf\n"
        "tf.constant(1) + 1\n"
        "from tests.data.toys import NumbersParams, toy_pipeline, sequence\n"
        "from tests.data.modules import ModulesParams\n"
        "pipeline = toy_pipeline(NumbersParams(), sequence(ModulesParams()), num_processes=2)\n"
        "with pipeline.stream(repeat=False) as stream:\n"
        "    metas = [meta for batch in stream for meta in batch.meta]\n"
        "assert {m['pid'] for m in metas} - {os.getpid()}, 'it must run elsewhere'\n"
        "print('heavy modules:', sorted({name for m in metas for name in m['heavy']}))\n"
        "print('rss:', max(m['rss'] for m in metas) // 2**20, 'MB')\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        env={**__import__("os").environ, "PYTHONPATH": "."},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("main runs") == 1
    assert "heavy modules: []" in done.stdout
    print(done.stdout)
    assert int(done.stdout.split("rss:")[1].split()[0]) <= 60


def test_values_of_every_kind_of_array() -> None:
    from tests.data.kinds import KindsParams, kinds_pipeline

    def arrays(processes: int):
        with kinds_pipeline(KindsParams(), num_processes=processes).stream(repeat=False) as stream:
            return [(batch.inputs, batch.meta) for batch in stream]

    for (here, meta), (there, other) in zip(arrays(0), arrays(1), strict=True):
        assert meta == other
        assert here.keys() == there.keys()
        for key in here:
            assert here[key].dtype == there[key].dtype
            np.testing.assert_array_equal(here[key], there[key])
