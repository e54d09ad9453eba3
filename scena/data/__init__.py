"""Samples, specs, generators, processors and the pipelines that turn them into batches.

Names are imported when they are first used.
"""

import importlib
from typing import Any

_NAMES = {
    "ArraySpec": "spec",
    "Batch": "batch",
    "ComposedProcessorPipelineParams": "params",
    "Cursor": "cursor",
    "DataBase": "database",
    "DataBaseParams": "params",
    "DataError": "errors",
    "DataGenerator": "generator",
    "DataGeneratorParams": "params",
    "DataPipeline": "pipeline",
    "DataPipelineParams": "params",
    "DataProcessorParams": "params",
    "EmptyDataError": "errors",
    "GeneratingDataProcessor": "processor",
    "MappingDataProcessor": "processor",
    "PipelineMode": "modes",
    "RandomAccessGenerator": "generator",
    "Resource": "resource",
    "Sample": "sample",
    "SequentialProcessorPipelineParams": "params",
    "WorkerError": "errors",
}
__all__ = sorted(_NAMES)


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)
