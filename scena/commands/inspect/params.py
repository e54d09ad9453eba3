"""`scena params SCENARIO|RUN`: shows what would be set, where it comes from, and how to write it down."""

import os
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from scena.commands.command import Command, ImportOptions
from scena.commands.output import text_table
from scena.params import Params, ParamsError, Parsed, dump_command, dump_yaml, param, root_of
from scena.plots import check_suffix
from scena.scenario.finding import AnyScenario, find_scenario
from scena.storage.run_layout import EXPORT_FILE, PARAMS_FILE


class ShowOptions(ImportOptions):
    """How to show the parameters."""

    subject: str = param(
        required=True, positional="SCENARIO|RUN", help="a scenario, or the directory of a run or of a model"
    )
    form: Literal["yaml", "command", "json", "origins"] = param(
        "yaml",
        flat="as",
        help="yaml: a file for --config with what differs from the default; command: a command line that reproduces them; "
        "json: as they are stored with a run; origins: each value and where it came from",
    )
    everything: bool = param(False, flat="all", help="show defaults too, with their help (yaml)")
    plot: Path | None = param(
        None, aliases=["plot_lr"], help="plot the learning rate over the training into this file instead"
    )
    scenario: str | None = param(None, help="the scenario of a run, if its module is not where it was")


class ShowParams(Command):
    """Shows the parameters of a scenario with these flags, or those of a run."""

    name = "params"
    options: ShowOptions

    @cached_property
    def stored(self) -> Path | None:
        """The file with the parameters of a run, if a run is meant."""
        path = Path(self.options.subject)
        files = [path / PARAMS_FILE, path / EXPORT_FILE, *([path] if path.suffix == ".json" else [])]
        return next((file for file in files if os.path.isfile(file)), None)

    @cached_property
    def found(self) -> tuple[AnyScenario, str, Any]:
        """The scenario, its name, and the parameters to show: its own, or those of a run."""
        if self.stored is None:
            if self.options.scenario is not None:
                raise ParamsError(
                    f"--scenario {self.options.scenario} names the scenario of a run, and {self.options.subject} is not one"
                )
            scenario = find_scenario(self.options.subject)
            return scenario, self.options.subject, scenario.default_trainer_params()
        from scena.scenario.stored import read_training

        scenario, description, params = read_training(self.stored, self.options.scenario)
        return scenario, description["scenario"], params

    def root(self) -> Params:
        return root_of(trainer=self.found[2])

    def uses_project_file(self) -> bool:
        return self.stored is None

    def run(self) -> None:
        scenario, name, _ = self.found
        if self.options.plot is not None:
            check_suffix(self.options.plot)
            self.start()
            from scena.training.schedules.plots import draw_schedule

            trainer = self.params.trainer
            print(draw_schedule(trainer, scenario(trainer.scenario).create_data(), self.options.plot))
            return
        print(_shown(self.parsed, root_of(trainer=scenario.default_trainer_params()), self.options, name))


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
    from scena.params.cli.words import to_words
    from scena.params.files.dump import has_choice
    from scena.params.settable import Index

    rows: list[tuple[str, str, str]] = []
    for node in Index(parsed.raw, type(parsed.params)).nodes:
        if node.hidden:
            continue
        if node.kind.form == "leaf":
            rows.append((f"--{node.name}", " ".join(to_words(node.value, node.hint)), parsed.origins[node.name]))
        elif node.kind.form == "params" and node.value and has_choice(*node.choice):
            rows.append((f"--{node.name}", node.value["class"], parsed.origins[node.name]))
    return text_table(rows)
