"""Preloading and caching change the time it takes, not the batches."""

import logging
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from scena.data import DataError, PipelineMode, Sample
from scena.data.stages.sample_cache import SampleWriter
from tests.data.toys import (
    CountParams,
    LinesParams,
    NoiseParams,
    NumbersParams,
    NumberStreamParams,
    SlowParams,
    SplitParams,
    first_batches,
    list_files,
    sequence,
    toy_pipeline,
)
from tests.zygote import ROOT


@pytest.mark.parametrize("processes", [0, 2])
@pytest.mark.parametrize("where", ["preload", "cache"])
def test_same_batches_processed_once(tmp_path: Path, where: str, processes: int) -> None:
    def pipeline(name: str, **settings):
        processors = sequence(CountParams(file=str(tmp_path / name)), NoiseParams())
        return toy_pipeline(NumbersParams(), processors, **settings)

    expected = first_batches(pipeline("plain", num_processes=0), 20)
    setting = {"preload": True} if where == "preload" else {"cache_dir": str(tmp_path / "cache")}
    again = pipeline("once", num_processes=processes, **setting)
    assert first_batches(again, 20) == expected
    assert first_batches(again, 20) == expected
    assert len((tmp_path / "once").read_bytes()) == 23, "each sample once, whatever the number of epochs"
    again.close()


def test_the_cache_is_used_by_the_next_run_and_dropped_when_parameters_change(tmp_path: Path, caplog) -> None:
    cache = str(tmp_path / "cache")

    def run(scale: float, file: str = "count", count: int = 23) -> int:
        counted = tmp_path / file
        before = len(counted.read_bytes()) if counted.exists() else 0
        processors = sequence(CountParams(file=str(counted)), NoiseParams(scale=scale))
        with toy_pipeline(NumbersParams(count=count), processors, cache_dir=cache, num_processes=0).stream() as stream:
            next(stream)
        return (len(counted.read_bytes()) if counted.exists() else 0) - before

    assert run(1.0) == 23
    assert run(1.0) == 0
    assert run(2.0) == 0, "what comes after the random processor does not matter"
    with caplog.at_level(logging.INFO):
        assert run(1.0, count=12) == 12
    assert "is out of date: removed" in caplog.text
    assert len(list(Path(cache).iterdir())) == 1


def test_the_cache_is_dropped_when_code_changes(tmp_path: Path, monkeypatch) -> None:
    import importlib
    import sys

    module = tmp_path / "changing_code.py"
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.dont_write_bytecode, kept = True, sys.dont_write_bytecode

    def run(addend: int) -> float:
        module.write_text(
            "from scena.data import DataProcessorParams, MappingDataProcessor\n"
            "class AddParams(DataProcessorParams, builds=':Add'): pass\n"
            "class Add(MappingDataProcessor):\n"
            "    def apply(self, sample):\n"
            f"        return sample.new_inputs({{'x': sample.inputs['x'] + {addend}}})\n"
        )
        sys.modules.pop("changing_code", None)
        importlib.invalidate_caches()
        code = importlib.import_module("changing_code")
        pipeline = toy_pipeline(
            NumbersParams(),
            sequence(code.AddParams()),
            mode=PipelineMode.EVALUATION,
            cache_dir=str(tmp_path / "cache"),
            num_processes=0,
        )
        with pipeline.stream() as stream:
            return float(next(stream).inputs["x"][0, 0])

    try:
        assert run(10) == 10
        assert run(10) == 10
        assert run(500) == 500
    finally:
        sys.dont_write_bytecode = kept


def test_a_damaged_cache_is_made_again(tmp_path: Path) -> None:
    def batches():
        return first_batches(toy_pipeline(NumbersParams(), cache_dir=str(tmp_path), num_processes=0), 6)

    expected = batches()
    (file,) = tmp_path.glob("*.samples")
    file.write_bytes(file.read_bytes()[:-9])
    assert batches() == expected


def test_lists_generating_processors_and_streams(tmp_path: Path) -> None:
    lists = list_files(tmp_path)
    for limit in (None, 7):
        expected = first_batches(toy_pipeline(lists, sequence(LinesParams(), NoiseParams()), limit=limit), 10)
        preloaded = toy_pipeline(lists, sequence(LinesParams(), NoiseParams()), limit=limit, preload=True)
        assert first_batches(preloaded, 10) == expected
    evaluation = {"mode": PipelineMode.EVALUATION, "limit": 15}
    for source in (NumbersParams(), NumberStreamParams()):
        expected = [
            b[1:4] for b in first_batches(toy_pipeline(source, sequence(SplitParams(chunk_size=4)), **evaluation), 8)
        ]
        preloaded = toy_pipeline(source, sequence(SplitParams(chunk_size=4)), preload=True, **evaluation)
        assert [b[1:4] for b in first_batches(preloaded, 8)] == expected


def test_progress_is_reported() -> None:
    seen: list[tuple[int, int | None]] = []
    pipeline = toy_pipeline(NumbersParams(), preload=True)
    pipeline.prepare(lambda done, total: seen.append((done, total)))
    assert seen[-1] == (23, 23)


def test_what_cannot_be_cached_says_so(tmp_path: Path) -> None:
    samples = [Sample({"x": [1.0]}, {"y": 1}, meta=PipelineMode.TRAINING)]
    with pytest.raises(
        DataError, match=r"sample 0 .* cannot be cached on disk: it holds a scena.data.params.PipelineMode"
    ):
        toy_pipeline(samples, cache_dir=str(tmp_path)).stream()
    with toy_pipeline(samples, preload=True).stream() as stream:
        assert next(stream).meta == [PipelineMode.TRAINING], "in memory, records will do"


def test_slow_samples_are_preloaded_by_workers_without_being_asked(tmp_path: Path, caplog) -> None:
    """23 samples of 0.1 s are worth it; the first few are tried here, so they run twice."""
    counted = tmp_path / "count"
    processors = sequence(SlowParams(seconds=0.1), CountParams(file=str(counted)), NoiseParams())
    pipeline = toy_pipeline(NumbersParams(), processors, preload=True)
    reports: list[tuple[int, int | None]] = []
    pipeline.prepare(lambda done, total: reports.append((done, total)))
    assert 23 < len(counted.read_bytes()) < 23 + 8
    assert reports[-1] == (23, 23) and len(reports) > 1
    quick = sequence(SlowParams(seconds=0.0), CountParams(file=str(tmp_path / "other")), NoiseParams())
    assert first_batches(pipeline, 20) == first_batches(toy_pipeline(NumbersParams(), quick, num_processes=0), 20)
    pipeline.close()


def test_a_folder_that_cannot_be_written_and_a_full_disk_are_errors_of_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    pipeline = toy_pipeline(NumbersParams(), sequence(), cache_dir=str(tmp_path / "file"), num_processes=0)
    with pytest.raises(
        DataError, match=r"Cannot write into the folder of the cache, .*/file: (File exists|Not a directory)"
    ):
        pipeline.prepare()
    writer = SampleWriter(os.open("/dev/full", os.O_WRONLY), "name")
    writer.add(Sample(inputs={"x": np.zeros(3)}))
    with pytest.raises(DataError, match="The processed samples cannot be stored: No space left on device"):
        writer.finish()
    writer.abandon()


CELL = """
from scena.data import ArraySpec, DataBase, DataBaseParams, DataPipelineParams, DataGeneratorParams, MappingDataProcessor
from scena.data import DataProcessorParams, PipelineMode, RandomAccessGenerator, Sample
from scena.data import SequentialProcessorPipelineParams

class CountParams(DataGeneratorParams, builds=":Count"):
    pass

class Count(RandomAccessGenerator):
    def __len__(self):
        return 4
    def __getitem__(self, index):
        return Sample(inputs={"x": index})

class AddParams(DataProcessorParams, builds=":Add"):
    pass

def more(x):
    return x + MORE

class Add(MappingDataProcessor):
    def apply(self, sample):
        return sample.new_inputs({"x": more(sample.inputs["x"])})

class Numbers(DataBase[DataBaseParams]):
    def _input_layer_specs(self):
        return {"x": ArraySpec((), "int32")}

def batch(folder):
    params = DataBaseParams(pre_proc=SequentialProcessorPipelineParams(processors=[AddParams()]))
    settings = DataPipelineParams(batch_size=4, cache_dir=folder, num_processes=0)
    with Numbers(params).create_pipeline(PipelineMode.EVALUATION, settings, CountParams()).stream(repeat=False) as stream:
        return next(stream).inputs["x"].tolist()
"""
NOTEBOOK = f"""
import linecache, os, sys
def run(text, number):
    name = f"<cell {{number}}>"
    if len(sys.argv) < 3:
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), vars(sys.modules["__main__"]))
del sys.modules["__main__"].__file__
run({CELL!r}, 1)
for number, text in enumerate(["MORE = 1", "MORE = 2", "def more(x):\\n    return 10 * x", "other = 1"], 2):
    run(text, number)
    print(batch(sys.argv[1]), len(os.listdir(sys.argv[1])), os.listdir(sys.argv[1]))
"""


def run_notebook(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "notebook.py").write_text(NOTEBOOK)
    command = [sys.executable, str(tmp_path / "notebook.py"), str(tmp_path / "cache"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(ROOT)})


def test_classes_of_a_notebook_can_be_cached_and_a_changed_cell_counts(tmp_path: Path) -> None:
    done = run_notebook(tmp_path)
    assert done.returncode == 0, done.stderr
    first, second, third, fourth = done.stdout.splitlines()
    assert first.startswith("[1, 2, 3, 4] 1 ")
    assert second.startswith("[2, 3, 4, 5] 1 ")
    assert third.startswith("[0, 10, 20, 30] 1 ")
    assert third == fourth  # a cell that the classes do not use does not matter
    assert run_notebook(tmp_path).stdout == done.stdout


def test_classes_without_any_source_are_not_cached(tmp_path: Path) -> None:
    done = run_notebook(tmp_path, "without")
    assert "The source of Count is not known, so a cache could not detect changes of its code." in done.stderr
