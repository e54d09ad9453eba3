"""What `lav` and `predict` share: export directories, and the scenario they belong to."""

from pathlib import Path

from scena.commands.scenario_argument import WorkOptions, import_modules
from scena.params import ParamsError, param
from scena.scenario.errors import ScenarioError
from scena.scenario.finding import AnyScenario
from scena.scenario.loading import LoadedExport, export_file, load_export
from scena.scenario.stored import read_description
from scena.scenario.trusted import scenario_of


class ExportOptions(WorkOptions):
    """Which models."""

    export_dir: list[Path] = param([], help="the best or export directory of a run; several for several models")
    scenario: str | None = param(None, help="the scenario, if its module is not where it was")


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
    return scenario, [load_export(directory, scenario) for directory in options.export_dir]


def asks_for_help(arguments: list[str]) -> bool:
    """Whether `--help` is among the arguments."""
    return any(argument in ("-h", "--help") for argument in arguments)
