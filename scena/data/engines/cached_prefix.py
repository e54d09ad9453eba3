"""The deterministic beginning of a pipeline, run once: its samples are kept in memory (preload) or on disk (cache)."""

import hashlib
import json
import logging
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scena.data.engines.in_process import InProcessEngine
from scena.data.engines.parallel import ParallelEngine, samples_of, usable_cores, workers_per_core
from scena.data.processor import Step, takes_rng
from scena.data.stages.context import PipelineContext
from scena.data.stages.sample_cache import SampleWriter, StoredSamples, is_complete
from scena.errors import DataError
from scena.params.declare import Params
from scena.params.tree import to_raw
from scena.storage.code_fingerprints import notebook_code

logger = logging.getLogger("scena.data")

Progress = Callable[[int, int | None], None]
"""Called now and then with the number of samples done, and of all samples if that is known."""
FORMAT = 2
TRIED_SAMPLES = 32
TRIED_SECONDS = 0.2
"""How many samples are tried, and how long at most, before the number of processes is chosen."""
WORTH_SECONDS = 2.0
"""Workers take 0.3 s to start; they pay if one process would need more than this."""


def deterministic_steps(steps: list[Step]) -> int:
    """The number of leading processors that are deterministic: they take no random numbers."""
    for count, step in enumerate(steps):
        implementation: Any = type(step.params).implementation()
        method = implementation.generate if step.generating else implementation.apply
        if takes_rng(method, 2) or not getattr(implementation, "deterministic", True):
            return count
    return len(steps)


def stored(context: PipelineContext, progress: Progress | None = None) -> PipelineContext:
    """The rest of the pipeline, which reads the cached samples of its deterministic beginning."""
    cache_dir, path = context.pipeline.cache_dir, None
    count = deterministic_steps(context.steps)
    if cache_dir is None:
        descriptor = os.memfd_create("scena-preloaded", os.MFD_CLOEXEC)
        _fill(context, count, descriptor, progress, None)
    else:
        path = _cache_file(context, count, Path(cache_dir))
        if not is_complete(path):
            _build(context, count, path, progress)
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    source = StoredSamples(descriptor, context.mode, path)
    same_indices = context.random_access and not any(step.generating for step in context.steps[:count])
    if same_indices and len(source) == _size(context.beginning(count)):
        source.original = context.generator
    return context.rest(count, source)


def _size(context: PipelineContext) -> int | None:
    return len(context.order(0)) if context.random_access else None


def _fill(context: PipelineContext, count: int, descriptor: int, progress: Progress | None, name: str | None) -> None:
    writer = SampleWriter(descriptor, name)
    prefix = context.beginning(count)
    total = _size(prefix)
    start = reported = time.monotonic()
    done = 0
    try:
        for sample in samples_of(_engine(prefix)):
            writer.add(sample)
            done += 1
            now = time.monotonic()
            if now - reported > 0.2 and progress is not None:
                reported = now
                progress(done, total)
        writer.finish()
    finally:
        writer.abandon()
    if progress is not None:
        progress(done, total)
    what = "into memory" if name is None else "into the cache"
    logger.info("Processed %d %s samples %s in %.1f s.", done, context.mode.value, what, time.monotonic() - start)


def _engine(prefix: PipelineContext) -> ParallelEngine | InProcessEngine:
    """Workers as `num_processes` asks for; by default one per core where that pays and is possible."""
    processes = prefix.pipeline.num_processes
    if processes:
        return ParallelEngine(prefix, processes)
    workers = workers_per_core(prefix) if processes is None and _worth_processes(prefix) else None
    return workers or InProcessEngine(prefix)


def _worth_processes(prefix: PipelineContext) -> bool:
    """Whether workers would save time, judged by the first samples."""
    total = _size(prefix)
    if prefix.main_source or total is None or usable_cores() < 2:
        return False
    start, count = time.perf_counter(), 0
    for samples in InProcessEngine(prefix).groups():
        count += len(samples)
        if count >= TRIED_SAMPLES or time.perf_counter() - start > TRIED_SECONDS:
            break
    return (time.perf_counter() - start) / max(1, count) * total > WORTH_SECONDS


def _build(context: PipelineContext, count: int, path: Path, progress: Progress | None) -> None:
    identity = path.name.partition("-")[0]
    partial = path.with_suffix(f".{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise DataError(f"Cannot write into the folder of the cache, {path.parent}: {error.strerror}.") from error
    try:
        try:
            _fill(context, count, descriptor, progress, path.name)
        finally:
            os.close(descriptor)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    for old in path.parent.glob(f"{identity}-*.samples"):
        if old != path:
            logger.info("The cache %s is out of date: removed.", old.name)
            old.unlink(missing_ok=True)


def _cache_file(context: PipelineContext, count: int, folder: Path) -> Path:
    """The name contains a hash of what the samples depend on: parameters, code, and the fingerprint of the source's files."""
    steps = context.steps[:count]
    source: Any = context.generator
    params = [step.params for step in steps]
    identity = [type(source).__qualname__, context.mode.value, [step.name for step in steps]]
    depends = {
        "format": FORMAT,
        "source": _tree(context.source) if isinstance(context.source, Params) else None,
        "files": source.fingerprint(),
        "processors": [_tree(one) for one in params],
        "data": _tree(context.data),
        # the seed chooses the samples of a limit
        "limit": [context.pipeline.limit, context.seed] if context.pipeline.limit else None,
        "code": [_code(type(source)), *(_code(type(one).implementation()) for one in params)],
    }
    depends["data"].pop("pre_proc", None)
    depends["data"].pop("post_proc", None)
    return folder / f"{_hash(identity)[:12]}-{_hash([identity, depends])[:24]}.samples"


def _tree(params: Params) -> dict[str, Any]:
    raw = to_raw(params)
    raw.pop("class", None)  # it is named by what it builds
    return raw


def _code(cls: type) -> list[str]:
    """A hash of each source file that a class and its bases come from, without those of Scena.

    Of a class of a notebook, which has no file, its cell and those of what it uses count.
    """
    files = []
    for base in cls.__mro__:
        module = base.__module__
        if module.split(".")[0] in ("scena", "builtins", "abc", "typing"):
            continue
        file = getattr(sys.modules.get(module), "__file__", None)
        if file and Path(file).is_file():
            files.append(hashlib.sha256(Path(file).read_bytes()).hexdigest())
        elif (cells := notebook_code(base)) is not None:
            files += [f"{name} {own}" for name, own in cells.items()]
        else:
            problem = f"The source of {base.__name__} is not known, so a cache could not detect changes of its code"
            raise DataError(f"{problem}. Put it into a module, or remove cache_dir.")
    return files


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
