"""`scena sets FILE…`: lists the sets of configuration files, and saves the parameters of a run as a set."""

from pathlib import Path

from scena.commands.places import check_file
from scena.commands.scenario_argument import ImportOptions, import_modules, root_of
from scena.commands.usage import print_usage
from scena.params import ParamsError, dump_yaml, param, parse_options
from scena.storage.run_layout import EXPORT_FILE, PARAMS_FILE

USAGE = """usage: scena sets FILE…
       scena sets FILE:NAME --from RUN_DIR

Lists the sets of configuration files; or appends the parameters of a run to FILE, as the set NAME.
A set is used with `scena train SCENARIO --config FILE --config_set NAME`, or `--config FILE:NAME`.
  --from RUN_DIR       the run (or an exported model) whose parameters to save; its directory is not part of them
  --import MODULE…     modules to import first
  --scenario SCENARIO  the scenario of the run, if its module is not where it was"""


class SetOptions(ImportOptions):
    """What to save."""

    run: Path | None = param(None, flat="from", help="the run whose parameters to save as a set")
    scenario: str | None = param(None, help="the scenario of the run, if its module is not where it was")


def run(arguments: list[str]) -> int:
    """Lists sets, or saves one."""
    if not arguments or any(argument in ("-h", "--help") for argument in arguments):
        print_usage(USAGE)
        return 0 if arguments else 2
    options, files = parse_options(SetOptions, arguments)
    if not files or any(name.startswith("-") for name in files):
        wrong = next((name for name in files if name.startswith("-")), "")
        raise ParamsError(f"unknown flag {wrong}" if wrong else "name a file first: scena sets FILE…")
    if options.run is None:
        _list(files)
        return 0
    path, colon, name = files[0].rpartition(":")
    if len(files) != 1 or not colon or not path or not name:
        raise ParamsError(f"--from {options.run} needs one place to save to: scena sets FILE:NAME --from RUN_DIR")
    check_file("the set", Path(path))
    import_modules(options.modules)
    _save(Path(path), name, options.run, options.scenario)
    print(f"{path}: added the set {name}")
    return 0


def _list(files: list[str]) -> None:
    from scena.params.files.sets import list_sets

    for path in files:
        sets = list_sets(path)
        width = max((len(info.name) for info in sets), default=0)
        print(f"{path}:" + ("" if sets else " no sets"))
        for info in sets:
            parents = f"extends {', '.join(info.parents)}" if info.parents else ""
            keys = ", ".join(info.keys) or "nothing of its own"
            print(
                f"  {info.name:<{width}}  line {info.place.rpartition(':')[2]}: {'; '.join(filter(None, [parents, keys]))}"
            )


def _save(path: Path, name: str, directory: Path, explicit: str | None) -> None:
    from scena.params.files.sets import add_set
    from scena.scenario.errors import ScenarioError
    from scena.scenario.finding import scenario_of
    from scena.scenario.stored import read_description, stored_params

    stored = next((directory / file for file in (PARAMS_FILE, EXPORT_FILE) if (directory / file).is_file()), None)
    if stored is None:
        raise ScenarioError(
            f"{directory} is not the directory of a run: it has neither {PARAMS_FILE} nor {EXPORT_FILE}."
        )
    description = read_description(stored)
    scenario = scenario_of(description["scenario"], directory, explicit)
    params = stored_params(description, scenario, stored)
    params.output_dir = None
    text = dump_yaml(root_of(trainer=params), root_of(trainer=scenario.default_trainer_params()))
    add_set(path, name, text, f"from {directory}: scena train {description['scenario']} --config {path}:{name}")
