"""`scena params SCENARIO | RUN [--flags]`: shows what would be set, where it comes from, and how to write it down."""

import os
from pathlib import Path
from typing import Any, Literal

from scena.commands.project_file import with_project_file
from scena.commands.scenario_argument import ImportOptions, import_modules, root_of, take_scenario
from scena.commands.usage import print_usage
from scena.params import Parsed, dump_command, dump_yaml, param, parse, parse_options
from scena.params.errors import ParamsError
from scena.storage.run_layout import EXPORT_FILE, PARAMS_FILE

USAGE = """usage: scena params SCENARIO [--flags]
       scena params RUN_OR_EXPORT_DIR [--flags]

Shows the parameters of a scenario with these flags, or those of a run:
  --as yaml       as a YAML file for --config (what differs from the default; --all for everything)
  --as command    as a command line that reproduces them
  --as json       as they are stored with a run
  --as origins    each value and where it came from
  --plot_lr FILE  writes a picture of the learning rate over the training instead"""


class ShowOptions(ImportOptions):
    """How to show the parameters."""

    form: Literal["yaml", "command", "json", "origins"] = param("yaml", flat="as", help="how to show them")
    everything: bool = param(False, flat="all", help="show defaults too, with their help (yaml)")
    plot_lr: Path | None = param(None, help="write a picture of the learning rate over the training to this file")
    scenario: str | None = param(None, help="the scenario of a run, if its module is not where it was")


def run(arguments: list[str]) -> int:
    """Prints parameters."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print_usage(USAGE)
        return 0 if arguments else 2
    if arguments[0].startswith("-"):
        raise ParamsError("name a scenario or the directory of a run first: scena params SCENARIO [--flags].")
    options, rest = parse_options(ShowOptions, arguments[1:])
    import_modules(options.modules)
    scenario, name, plain, present = _subject(arguments[0], options.scenario)
    if _stored(arguments[0]) is None:
        rest = with_project_file(rest)
    parsed = parse(root_of(trainer=present), rest, prog=f"scena params {arguments[0]}", options=options)
    if options.plot_lr is not None:
        print(_draw_rates(scenario, parsed.params.trainer, options.plot_lr))
        return 0
    print(_shown(parsed, root_of(trainer=plain), options, name))
    return 0


def _subject(argument: str, explicit: str | None) -> tuple[Any, str, Any, Any]:
    """A scenario, its name, its default parameters, and the parameters to show: its own, or those of a run."""
    stored = _stored(argument)
    if stored is None:
        scenario, _ = take_scenario("params", [argument])
        return scenario, argument, scenario.default_trainer_params(), scenario.default_trainer_params()
    from scena.scenario.finding import scenario_of
    from scena.scenario.stored import read_description, stored_params

    description = read_description(stored)
    scenario = scenario_of(description["scenario"], stored.parent, explicit)
    present = stored_params(description, scenario, stored)
    return scenario, description["scenario"], scenario.default_trainer_params(), present


def _stored(argument: str) -> Path | None:
    """The file with the parameters of a run, if a run is meant."""
    return next((path for path in _stored_files(Path(argument)) if os.path.isfile(path)), None)


def _draw_rates(scenario: Any, trainer_params: Any, path: Path) -> str:
    from scena.commands.scenario_argument import start_work

    start_work()
    from scena.training.schedules.plots import draw_schedule

    return draw_schedule(trainer_params, scenario(trainer_params.scenario).create_data(), path)


def _stored_files(path: Path) -> list[Path]:
    return [path / PARAMS_FILE, path / EXPORT_FILE, *([path] if path.suffix == ".json" else [])]


def _shown(parsed: Parsed[Any], default: Any, options: ShowOptions, name: str) -> str:
    if options.form == "command":
        return f"scena train {name} {dump_command(parsed.params, default)}".rstrip()
    if options.form == "json":
        import json

        return json.dumps(parsed.raw, indent=1)
    if options.form == "origins":
        return _origins(parsed)
    text = dump_yaml(parsed.params, default, full=options.everything, comments=options.everything).rstrip()
    return text if text not in ("", "{}") else "# all parameters have their default values"


def _origins(parsed: Parsed[Any]) -> str:
    """A line for each value: its flag, what it is, who set it."""
    from scena.params.cli.settable import Index
    from scena.params.cli.words import to_words
    from scena.params.files.dump import has_choice
    from scena.params.type_kinds import LEAF, PARAMS

    rows: list[tuple[str, str, str]] = []
    for node in Index(parsed.raw, type(parsed.params)).nodes:
        if node.hidden:
            continue
        if node.kind.form == LEAF:
            rows.append((f"--{node.name}", " ".join(to_words(node.value, node.hint)), parsed.origins[node.name]))
        elif node.kind.form == PARAMS and node.value and node.field and has_choice(node.kind, node.field):
            rows.append((f"--{node.name}", node.value["class"], parsed.origins[node.name]))
    widths = [max(len(row[place]) for row in rows) for place in range(2)]
    return "\n".join(f"{flag:<{widths[0]}}  {value:<{widths[1]}}  {origin}" for flag, value, origin in rows)
