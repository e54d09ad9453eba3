"""`scena train SCENARIO [--flags]`."""

from pathlib import Path
from typing import Any

from scena.commands.project_file import with_project_file
from scena.commands.scenario_argument import (
    WorkOptions,
    check_training,
    import_modules,
    root_of,
    start_work,
    take_scenario,
)
from scena.params import param, parse, parse_options
from scena.scenario.finding import AnyScenario


class TrainOptions(WorkOptions):
    """Where the parameters come from."""

    params: Path | None = param(None, help="start a fresh run from a stored trainer_params.json; flags change it")


def run(arguments: list[str]) -> int:
    """Trains a scenario."""
    scenario, rest = take_scenario("train", arguments)
    options, rest = parse_options(TrainOptions, rest)
    import_modules(options.modules)
    default = initial_params(scenario, options.params)
    rest = with_project_file(rest) if options.params is None else rest
    parsed = parse(
        root_of(trainer=default),
        rest,
        prog=f"scena train {arguments[0]}",
        description=scenario.__doc__ or "",
        options=options,
    )
    check_training(parsed.params.trainer)
    start_work(options)
    from scena.experiments.search.trial import trial_callbacks

    scenario.create_trainer(parsed.params.trainer).train(trial_callbacks())
    return 0


def initial_params(scenario: AnyScenario, stored: Path | None) -> Any:
    """The scenario's default parameters, or those of a stored run (without its directory)."""
    if stored is None:
        return scenario.default_trainer_params()
    from scena.scenario.stored import read_description, stored_params

    params = stored_params(read_description(stored), scenario, stored)
    params.output_dir = params.checkpoint_dir = params.log_dir = params.export_dir = None  # those of another run
    return params
