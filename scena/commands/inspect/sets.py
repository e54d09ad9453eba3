"""`scena sets FILE…`: lists the sets of configuration files, and saves the parameters of a run as a set."""

from pathlib import Path

from scena.commands.command import Command, ImportOptions
from scena.commands.output import check_file
from scena.params import ParamsError, dump_yaml, param, root_of
from scena.storage.run_layout import EXPORT_FILE, PARAMS_FILE


class SetOptions(ImportOptions):
    """What to list or save."""

    files: list[str] = param(required=True, positional="FILE", help="a configuration file; with --from: FILE:NAME")
    run: Path | None = param(
        None,
        flat="from",
        help="save the parameters of this run (or model), without its directory, as the set NAME of FILE",
    )
    scenario: str | None = param(None, help="the scenario of the run, if its module is not where it was")


class Sets(Command):
    """Lists the sets of configuration files; or appends the parameters of a run to FILE, as the set NAME:
    scena sets FILE:NAME --from RUN

    A set is used with `scena train SCENARIO --config FILE --config_set NAME`, or `--config FILE:NAME`.
    """

    name = "sets"
    options: SetOptions

    def run(self) -> None:
        files, directory = self.options.files, self.options.run
        if directory is None:
            _list(files)
            return
        path, colon, name = files[0].rpartition(":")
        if len(files) != 1 or not colon or not path or not name:
            raise ParamsError(f"--from {directory} needs one set to save to: scena sets FILE:NAME --from RUN")
        check_file("the set", Path(path))
        _save(Path(path), name, directory, self.options.scenario)
        print(f"{path}: added the set {name}")


def _list(files: list[str]) -> None:
    from scena.params.files.files import list_sets

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
    from scena.errors import ScenarioError
    from scena.params.files.files import add_set
    from scena.scenario.stored import read_training

    stored = next((directory / file for file in (PARAMS_FILE, EXPORT_FILE) if (directory / file).is_file()), None)
    if stored is None:
        raise ScenarioError(
            f"{directory} is not the directory of a run: it has neither {PARAMS_FILE} nor {EXPORT_FILE}."
        )
    scenario, description, params = read_training(stored, explicit)
    params.output_dir = None
    text = dump_yaml(root_of(trainer=params), root_of(trainer=scenario.default_trainer_params()))
    add_set(path, name, text, f"from {directory}: scena train {description['scenario']} --config {path}:{name}")
