"""What `lav` and `predict` share: export directories, and the scenario they belong to."""

import logging
from pathlib import Path
from typing import Any

from scena.backends.params import ComputeParams
from scena.commands.scenario_argument import WorkOptions, import_modules
from scena.data.params import DataGeneratorParams, PipelineMode
from scena.params import ParamsError, Parsed, param
from scena.scenario.errors import ScenarioError
from scena.scenario.finding import AnyScenario, scenario_of
from scena.scenario.loading import LoadedExport, compare_code, export_file, load_export
from scena.scenario.stored import read_description

logger = logging.getLogger(__name__)


class ExportOptions(WorkOptions):
    """Which models."""

    export_dir: list[Path] = param([], help="the best or export directory of a run; several for several models")
    scenario: str | None = param(None, help="the scenario, if its module is not where it was")
    strict: bool = param(
        False, help="an error instead of a warning if the code has changed since the model was written"
    )


def open_exports(options: ExportOptions, command: str) -> tuple[AnyScenario, list[LoadedExport]]:
    """The scenario of the exports and their stored parameters; all must belong to one scenario."""
    if not options.export_dir:
        raise ParamsError(f"--export_dir is required: scena {command} --export_dir RUN/best")
    import_modules(options.modules)
    names = {directory: read_description(export_file(directory))["scenario"] for directory in options.export_dir}
    if len(set(names.values())) > 1:
        listing = ", ".join(f"{directory}: {name}" for directory, name in names.items())
        raise ScenarioError(f"The models belong to different scenarios ({listing}).")
    first = options.export_dir[0]
    scenario = scenario_of(names[first], first, options.scenario)
    exports = [load_export(directory, scenario) for directory in options.export_dir]
    if options.strict:
        compare_code(exports, strict=True)
    return scenario, exports


def validation_batches(pipelines: Any, **changes: Any) -> Any:
    """How the run's validation made batches, with some changes; which split to read is said by the source alone."""
    split = {"split": None} if "split" in type(pipelines.val).__params__ else {}
    return pipelines.val.replace(**split, **changes)


def tell_of_limit(parsed: Parsed[Any], flag: str, which: str, limit: int | None, *, own_data: bool) -> None:
    """Says that the limit of the run's validation holds for other data too, if nobody asked for it."""
    if limit is not None and not own_data and parsed.origins[flag] == "default":
        logger.warning("Only %s %d samples, as in the run's validation; all of them: --%s None", which, limit, flag)


def try_data(source: DataGeneratorParams, mode: PipelineMode, device: ComputeParams) -> None:
    """Finds wrong splits, missing lists and missing devices before TensorFlow is loaded."""
    from scena.backends.selection import check_present
    from scena.data.sources.params import try_source

    check_present(device)
    for part in source.parts().values():
        try_source(part, mode)


def asks_for_help(arguments: list[str]) -> bool:
    """Whether `--help` is among the arguments."""
    return any(argument in ("-h", "--help") for argument in arguments)
