"""What the files and folders of a run are called, and where they are.

Every name is spelled here and nowhere else. Data sets (`data/records`, `data/image`) name their files themselves.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

# In the directory of a run
PARAMS_FILE = "trainer_params.json"
"""Scenario, parameters and identity of the run. It marks a directory as a run's."""
HISTORY_FILE = "history.csv"
LOG_FILE = "train.log"
RESUMES_FILE = "resumed.json"
"""What was changed each time the run was resumed."""
LOCK_FILE = ".lock"
OWNER_FILE = ".scena-run.json"
"""Names the run that uses a directory outside its own."""
CHECKPOINTS = "checkpoint"
BEST = "best"
"""The export of the best model. Each checkpoint has a copy, made of links."""
EXPORT = "export"
"""The export of the last model."""
TENSORBOARD = "tensorboard"
TRACKING = "tracking"
"""What trackers get, and the files of each of them."""
JOURNAL_FILE = "journal"
"""Everything that trackers get, in order."""
MEDIA = "media"
"""The images and curves of the journal."""

# In a checkpoint
STATE_FILE = "state.json"
TENSORS_FILE = "tensors.safetensors"
KEEP_FILE = "keep"
"""An empty file that protects a checkpoint from being removed."""
DISCARDED = ".discarded"
"""Where a checkpoint is moved before it is removed."""

# In an export
EXPORT_FILE = "scenario.json"
"""Scenario and parameters. It marks a directory as an export."""
LAYERS_FILE = "layers.safetensors"
"""What layers keep beside their weights."""
RESOURCES = "resources"
CONVERTED_FILE = "converted.json"
"""Which models of other formats are there, and how they were verified."""

# In each of them
MANIFEST = "checksums.json"

# In the output directory of a search or of an experiment sheet
STUDY_FILE = "study.db"
BEST_PARAMS_FILE = "best.yaml"
PLOTS = "plots"
TRIALS = "trials"
LOGS = "logs"
RUNS = "runs"
"""The runs of a sheet. In the current directory: the runs of all trainings that name no directory."""

# In the output directory of a cross-validation
FOLDS_FILE = "folds.json"
"""The fold of each sample."""
PARAMS = "params"
"""The parameters that each of its runs starts from."""
OUT_OF_FOLD_FILE = "out_of_fold.jsonl"
"""A dump: the predictions of each sample by the model that was not trained on it."""
RESULTS_FILE = "results.json"
REPORT = "report"
ENSEMBLE = "ensemble"

# In an ensemble
ENSEMBLE_FILE = "ensemble.json"
"""Its members and how they vote. It marks a directory as an ensemble."""

DIRECTORIES = ("checkpoint_dir", "log_dir", "export_dir", "best_dir")
"""The parameters that put a part of a run elsewhere, in the order of `RunPaths`."""


class RunPaths(NamedTuple):
    """Where the parts of a run are: inside its directory unless its parameters name another place."""

    directory: Path
    checkpoint: Path
    logs: Path
    exports: Path
    bests: Path

    @property
    def best(self) -> Path:
        return self.bests / BEST

    @property
    def export(self) -> Path:
        return self.exports / EXPORT

    @property
    def tensorboard(self) -> Path:
        return self.logs / TENSORBOARD


def run_paths(directory: Path, params: Any) -> RunPaths:
    """The paths of a run. Relative ones in its parameters (built or stored) are inside its directory, and move with it."""
    get = params.get if isinstance(params, Mapping) else params.__getattribute__
    checkpoint, logs, exports, bests = map(get, DIRECTORIES)
    return RunPaths(
        directory,
        directory / (checkpoint or CHECKPOINTS),
        directory / (logs or "."),
        directory / (exports or "."),
        directory / (bests or exports or "."),
    )


def step_of(name: str) -> int | None:
    """The step in the name of a checkpoint, STEP or NAME-STEP; None if it has another name."""
    step = name.rpartition("-")[2]
    return int(step) if step.isascii() and step.isdecimal() and not name.startswith((".", "-")) else None


def model_file(graph: str = "default") -> str:
    """The Keras file of one graph in an export."""
    return "model.keras" if graph == "default" else f"model_{graph}.keras"


def saved_model(graph: str = "default") -> str:
    """The folder of one graph's SavedModel in an export."""
    return "saved_model" if graph == "default" else f"saved_model_{graph}"
