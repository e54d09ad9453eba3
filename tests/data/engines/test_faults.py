"""What goes wrong in a worker arrives here: with its traceback, the processor and the sample, and soon."""

import logging
import os
import re
import signal
import threading
import time

import numpy as np
import pytest

from scena.data import Cursor, DataError, EmptyDataError, PipelineMode, WorkerError
from scena.data.engines.parallel import ParallelEngine, python_engine
from tests.data.toys import (
    FaultParams,
    KillOnceParams,
    NoiseParams,
    NumbersParams,
    NumberStreamParams,
    SequentialProcessorPipelineParams,
    SlowParams,
    SplitParams,
    SumParams,
    facts,
    first_batches,
    sequence,
    toy_pipeline,
)


def run(source, *processors, **settings):
    settings = {"mode": PipelineMode.EVALUATION, **settings}
    pre_proc = processors[0] if isinstance(processors[0], SequentialProcessorPipelineParams) else sequence(*processors)
    pipeline = toy_pipeline(source, pre_proc, **settings)
    try:
        with pipeline.stream() as stream:
            return [facts(batch) for batch in stream]
    finally:
        pipeline.close()


@pytest.mark.parametrize("processes", [0, 2])
def test_exception_of_a_processor(processes: int) -> None:
    with pytest.raises(DataError) as caught:
        run(NumbersParams(), FaultParams(at=9), num_processes=processes)
    text = str(caught.value)
    assert re.match(
        r"Fault failed on sample 9 \(meta: \{'id': 9\}\): ValueError: this picture is broken \(toys.py:\d+\)\. "
        r"Set on_error=skip to skip such samples\.",
        text,
    )
    if processes:
        assert isinstance(caught.value, WorkerError)
        lines = text.splitlines()
        assert lines[1].startswith("In worker ") and lines[2].startswith("  ") and len(lines) == 3, (
            "the user's lines only"
        )
        assert lines[2].endswith('toys.py:120 in apply: raise ValueError("this picture is broken")'.partition(" ")[2])
    else:
        assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize("processes", [0, 1])
def test_batches_before_the_failure_are_delivered(processes: int) -> None:
    pipeline = toy_pipeline(
        NumbersParams(), sequence(FaultParams(at=9)), mode=PipelineMode.EVALUATION, num_processes=processes
    )
    seen = []
    with pytest.raises(DataError), pipeline.stream() as stream:
        seen += [batch.size for batch in stream]
    pipeline.close()


@pytest.mark.parametrize("processes", [0, 1])
def test_exception_of_a_generator(processes: int) -> None:
    with pytest.raises(DataError, match="NumberStream failed after 6 samples: OSError: the disk is gone"):
        run(NumberStreamParams(fail_at=6), NoiseParams(), num_processes=processes)


@pytest.mark.parametrize("chunk", [0, 3])
@pytest.mark.parametrize("processes", [0, 1])
def test_exception_of_a_generating_processor(processes: int, chunk: int) -> None:
    """One that fails on what it gets: a sample without targets."""
    from tests.data.toys import toy_sample

    samples = [toy_sample(index) for index in range(8)]
    samples[4] = samples[4].new_targets(None)
    with pytest.raises(DataError, match=r"Split failed .*sample 4 .*TypeError") as caught:
        run(samples, SplitParams(chunk_size=chunk), num_processes=processes)
    assert "sample 4" in str(caught.value)


@pytest.mark.parametrize("processes", [0, 1])
def test_spec_mismatch_names_key_shapes_and_sample(processes: int) -> None:
    with pytest.raises(DataError) as caught:
        run(NumbersParams(), FaultParams(at=6, kind="spec"), num_processes=processes)
    first = str(caught.value).splitlines()[0]
    assert first == (
        "inputs['x'] of sample 6 (meta: {'id': 6}) does not match its spec: the shape does not match. "
        "Expected: shape=(None,), dtype=float32. Received: shape=(2, 2), dtype=float64."
    )


@pytest.mark.parametrize("processes", [0, 1])
@pytest.mark.parametrize("source", [NumbersParams(count=0), NumberStreamParams(count=0)])
def test_empty_data(processes: int, source) -> None:
    for mode in (PipelineMode.EVALUATION, PipelineMode.TRAINING):
        with pytest.raises(EmptyDataError, match=r"data is empty: Number.* gave no sample"):
            run(source, NoiseParams(), num_processes=processes, mode=mode)


@pytest.mark.parametrize(
    ("kind", "text"), [("kill", "was killed by SIGKILL .*memory"), ("exit", "ended with exit status 3")]
)
def test_a_dead_worker_is_reported(kind: str, text: str) -> None:
    with pytest.raises(WorkerError, match=text):
        run(NumbersParams(count=100), FaultParams(at=50, kind=kind), num_processes=2)


@pytest.mark.parametrize("place", ["worker", "serial"])
def test_a_killed_worker_is_noticed_while_we_wait(place: str) -> None:
    processors = (
        sequence(SlowParams(seconds=0.05), SumParams()) if place == "serial" else sequence(SlowParams(seconds=0.05))
    )
    pipeline = toy_pipeline(NumbersParams(count=1000), processors, num_processes=2)
    engine = python_engine(pipeline._context)
    assert isinstance(engine, ParallelEngine)
    batches = engine.batches(Cursor(), True)
    next(batches)
    processes = [member.process for member in engine.pool.members if member.process is not None]
    victim = engine.pool.streams[1] if place == "serial" else engine.pool.workers[0]
    assert victim.process is not None
    os.kill(victim.process.pid, signal.SIGKILL)
    start = time.perf_counter()
    with pytest.raises(WorkerError, match="was killed by SIGKILL") as caught:
        for _ in batches:
            pass
    waited = time.perf_counter() - start
    print(f"noticed after {waited:.3f} s")
    assert waited < 5
    again = engine.batches(Cursor(), True)
    next(again)
    assert all(process.poll() is not None for process in processes), "the other workers still run"
    assert caught.traceback, "although the error holds on to what they belong to"
    again.close()
    engine.close()


@pytest.mark.parametrize("serial", [False, True])
def test_restart_after_death_loses_and_repeats_nothing(tmp_path, serial: bool, caplog) -> None:
    def processors(flag: str):
        return sequence(NoiseParams(), KillOnceParams(at=50, flag=flag), *([SumParams()] if serial else []))

    (tmp_path / "done").touch()
    expected = run(NumbersParams(count=100), processors(str(tmp_path / "done")), num_processes=0)
    with caplog.at_level(logging.WARNING):
        made = run(
            NumbersParams(count=100),
            processors(str(tmp_path / "flag")),
            num_processes=2,
            on_worker_death="restart",
        )
    assert (tmp_path / "flag").exists()
    assert made == expected
    assert "was killed by SIGKILL" in caplog.text
    assert "Starting again after" in caplog.text


def test_restarting_ends_if_nothing_moves() -> None:
    with pytest.raises(WorkerError, match="was killed"):
        run(NumbersParams(count=8), FaultParams(at=0, kind="kill"), num_processes=1, on_worker_death="restart")


@pytest.mark.parametrize("kind", ["raise", "spec"])
def test_skip_leaves_samples_out(kind: str, caplog) -> None:
    def made(processes: int):
        return run(
            NumbersParams(), NoiseParams(), FaultParams(at=9, kind=kind), num_processes=processes, on_error="skip"
        )

    with caplog.at_level(logging.WARNING):
        expected = made(0)
    assert "skipped a sample" in caplog.text
    assert "sample 9 (meta: {'id': 9})" in caplog.text
    assert [size for _, size, *_ in expected] == [4, 4, 4, 4, 4, 2], "others take the place of the skipped one"
    assert 9 not in [meta["id"] for _, _, metas, *_ in expected for meta in metas]
    assert made(2) == expected


@pytest.mark.parametrize("processes", [0, 1])
def test_skip_has_a_limit_and_a_report(processes: int, caplog) -> None:
    with caplog.at_level(logging.WARNING), pytest.raises(DataError, match="1 samples failed, more than max_skipped=0"):
        run(NumbersParams(), FaultParams(at=9), num_processes=processes, on_error="skip", max_skipped=0)
    caplog.clear()
    pipeline = toy_pipeline(
        NumbersParams(),
        sequence(FaultParams(at=9)),
        mode=PipelineMode.EVALUATION,
        num_processes=processes,
        on_error="skip",
    )
    with caplog.at_level(logging.WARNING), pipeline.stream() as stream:
        assert len(list(stream)) == 6
        assert len(stream.skipped) == 1
        assert stream.skipped[0].startswith("Fault failed on sample 9")
    assert "Skipped 1 sample of the evaluation data because of errors" in caplog.text
    pipeline.close()


def test_restored_with_skipped_samples() -> None:
    from scena.data import Cursor

    def pipeline(processes: int):
        processors = sequence(FaultParams(at=9), NoiseParams())
        return toy_pipeline(NumbersParams(), processors, on_error="skip", num_processes=processes)

    expected = first_batches(pipeline(0), 14)
    for position in range(12):
        rest = first_batches(pipeline(0), 14 - position - 1, Cursor.from_json(expected[position][-1]))
        assert rest == expected[position + 1 :]
    assert first_batches(pipeline(2), 14) == expected


def test_a_pipeline_works_again_after_a_failure() -> None:
    pipeline = toy_pipeline(NumbersParams(), sequence(FaultParams(at=9)), num_processes=2, shuffle_buffer_size=0)
    for _ in range(3):
        with pytest.raises(WorkerError, match="sample 9"), pipeline.stream() as stream:
            for _batch in stream:
                pass
    pipeline.close()


def test_a_worker_that_cannot_start(tmp_path, monkeypatch) -> None:
    """The module can be imported here, but not there."""
    (tmp_path / "only_here.py").write_text(
        "import os\n"
        f"assert os.getpid() == {os.getpid()}, 'this module works in one process only'\n"
        "from scena.data import DataProcessorParams, MappingDataProcessor\n"
        "class OnlyHereParams(DataProcessorParams, builds=':OnlyHere'): pass\n"
        "class OnlyHere(MappingDataProcessor):\n"
        "    def apply(self, sample): return sample\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import only_here  # type: ignore[import-not-found]

    with pytest.raises(WorkerError, match="this module works in one process only"):
        run(NumbersParams(), only_here.OnlyHereParams(), num_processes=1)


def test_meta_that_cannot_travel() -> None:
    from scena.data import Sample

    samples = [Sample({"x": np.ones(1, np.float32)}, {"y": 1}, meta=threading.Lock())]
    assert run(samples, NoiseParams(), num_processes=0)
    with pytest.raises(DataError, match=r"sample 0 .*cannot travel between processes: it holds a _thread.lock"):
        run(samples, NoiseParams(), num_processes=1)


def test_waiting_long_says_what_the_workers_are_at(monkeypatch, caplog) -> None:
    monkeypatch.setattr("scena.data.engines.workers.router.PATIENCE_SECONDS", 0.5)
    pipeline = toy_pipeline(
        NumbersParams(count=8), sequence(SlowParams(seconds=0.5)), mode=PipelineMode.EVALUATION, num_processes=1
    )
    with caplog.at_level(logging.WARNING), pipeline.stream() as stream:
        next(stream)
    pipeline.close()
    assert "Waiting for a batch for more than" in caplog.text
    assert "is at samples 0 to 3 of its epoch" in caplog.text
