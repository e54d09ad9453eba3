"""Commands whose first argument is an exported model, or several: reading it, and what they share around it."""

import logging
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from scena.backends.params import ComputeParams
from scena.commands.command import Command, WorkOptions
from scena.data.params import DataGeneratorParams, PipelineMode
from scena.errors import ScenarioError
from scena.params import param
from scena.scenario.ensemble import is_ensemble, with_members
from scena.scenario.finding import AnyScenario, scenario_of
from scena.scenario.stored import LoadedExport, compare_code, export_file, load_export, read_description, version_line
from scena.storage.run_layout import BEST, EXPORT, EXPORT_FILE

logger = logging.getLogger(__name__)


class StoredOptions(WorkOptions):
    """How to find the code of what is stored."""

    scenario: str | None = param(None, help="the scenario, if its module is not where it was")
    strict: bool = param(
        False, help="an error instead of a warning if the code has changed since the model was written"
    )


class ModelOptions(StoredOptions):
    """The model."""

    model: Path = param(
        required=True, positional="MODEL", aliases=["export_dir"], help="a run, or its best or export directory"
    )


class ModelsOptions(StoredOptions):
    """The models."""

    models: list[Path] = param(
        required=True,
        positional="MODEL",
        aliases=["export_dir"],
        help="a run, its best or export directory, or an ensemble; several vote",
    )


class ModelCommand(Command):
    """A command for exported models."""

    options: StoredOptions

    @cached_property
    def exports(self) -> list[LoadedExport]:
        """The models with their stored parameters; all belong to one scenario."""
        return self.opened_exports(with_members(export_of(directory) for directory in self.given_models()))

    def given_models(self) -> list[Path]:
        """What the user named."""
        options = self.options
        if isinstance(options, ModelsOptions):
            return options.models
        assert isinstance(options, ModelOptions)
        return [options.model]

    def opened_exports(self, directories: list[Path]) -> list[LoadedExport]:
        """Exports by their directories, if all belong to one scenario."""
        names = {directory: read_description(export_file(directory))["scenario"] for directory in directories}
        if len(set(names.values())) > 1:
            listing = ", ".join(f"{directory}: {name}" for directory, name in names.items())
            raise ScenarioError(f"The models belong to different scenarios ({listing}).")
        scenario = scenario_of(names[directories[0]], directories[0], self.options.scenario)
        exports = [load_export(directory, scenario) for directory in directories]
        if self.options.strict:
            compare_code(exports, strict=True)
        return exports

    @property
    def scenario(self) -> AnyScenario:
        """The scenario of the models."""
        return type(self.exports[0].scenario)

    @property
    def pipelines(self) -> Any:
        """The pipelines of the first model's training."""
        return self.exports[0].params.pipelines

    def validation_batches(self, **changes: Any) -> Any:
        """How the run's validation made batches, with some changes; the source decides which split to read."""
        val = self.pipelines.val
        split = {"split": None} if "split" in type(val).__params__ else {}
        return val.replace(**split, **changes)

    def start_for(self, params: Any) -> None:
        """Starts the command; loads Keras only if one of the models needs it."""
        self.show_log()  # the choice of a runtime is logged
        self.start(keras=any(export.needs_keras(params) for export in self.exports))

    def warn_of_limit(self, flag: str, which: str, limit: int | None, *, own_data: bool) -> None:
        """Warns that the limit of the run's validation holds for other data too, unless it was asked for."""
        if limit is not None and not own_data and self.parsed.origins[flag] == "default":
            logger.warning("Only %s %d samples, as in the run's validation; all of them: --%s None", which, limit, flag)


def export_of(directory: Path) -> Path:
    """The directory itself, or the best (or last) model of the run that it is."""
    if (directory / EXPORT_FILE).is_file() or is_ensemble(directory):
        return directory
    for name in (BEST, EXPORT):
        if (directory / name / EXPORT_FILE).is_file():
            print(f"Using {directory / name}.", file=sys.stderr)
            return directory / name
    return directory


def try_data(source: DataGeneratorParams, mode: PipelineMode, device: ComputeParams) -> None:
    """Finds wrong splits, missing lists and missing devices before TensorFlow is loaded."""
    from scena.backends.selection import check_present
    from scena.data.sources.params import try_source

    check_present(device)
    for part in source.parts().values():
        try_source(part, mode)


def task_of(scenario: AnyScenario) -> str:
    """The first line of the scenario's own docstring."""
    return str(vars(scenario).get("__doc__") or "").strip().partition("\n")[0]


def model_facts(exports: Sequence[LoadedExport], **more: str) -> dict[str, str]:
    """The facts about models at the top of a page: names and scenario, more facts, date and versions."""
    return {
        "Model" if len(exports) == 1 else "Models": ", ".join(str(export.directory) for export in exports),
        "Scenario": type(exports[0].scenario).name(),
        **more,
        "Date": f"{datetime.now(UTC):%-d %B %Y, %H:%M} UTC",
        "Versions": version_line(),
    }
