"""What can be set. Pure Python: `--help` imports it when one of its names is chosen."""

from pathlib import Path

from scena import (
    CallbackParams,
    ExportFormatParams,
    GradientOptimizerParams,
    RuntimeParams,
    SchedulerParams,
    SplitSourceParams,
    TrackerParams,
    TrackerServiceParams,
    param,
)
from scena.data.image import OperationParams


class SignSGDParams(GradientOptimizerParams, builds=".training:SignSGD"):
    """Steps by the sign of the gradient."""

    share: float = param(1.0, gt=0, le=1, help="share of the learning rate that is used")


class StripesParams(SplitSourceParams, builds=".data:Stripes"):
    """Pictures of stripes, horizontal or vertical."""

    count: int = param(64, ge=1, help="pictures of each split")


class InvertParams(OperationParams, builds=".data:Invert"):
    """Makes dark what is bright, half of the time."""


class LinesParams(TrackerParams, builds=".training:Lines"):
    """Writes values as lines of a text file."""

    file: Path = param(required=True, help="the file to write")


class TableParams(TrackerServiceParams, name="table", builds=".tracker:Table"):
    """Keeps values in a table."""

    file: Path = param(required=True, help="the CSV file")


class CheckpointAtParams(CallbackParams, builds=".training:CheckpointAt"):
    """Asks for a checkpoint at some steps."""

    steps: list[int] = param([5], ge=1, help="the steps")


class ZippedParams(ExportFormatParams, name="zipped", builds=".formats:Zipped"):
    """A SavedModel in a zip file."""

    level: int = param(6, ge=0, le=9, help="how much to compress")


class ZippedRuntimeParams(RuntimeParams, name="zipped", builds=".formats:ZippedRuntime"):
    """Predicts with a SavedModel in a zip file."""


class OneByOneParams(SchedulerParams, name="one_by_one", builds=".scheduler:OneByOne"):
    """One run after the other."""

    pause: float = param(0.0, ge=0, help="seconds between two runs")
