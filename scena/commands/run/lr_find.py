"""`scena lr-find SCENARIO [--flags]`: tries learning rates in one short training and suggests one."""

from scena.commands.project_file import with_project_file
from scena.commands.scenario_argument import (
    WorkOptions,
    check_training,
    import_modules,
    root_of,
    start_work,
    take_scenario,
)
from scena.params import parse, parse_options
from scena.training.schedules.params import RateFinderParams

DESCRIPTION = """Trains for some batches with a learning rate that grows from --lowest to --highest, draws the loss into a
plot, and suggests the rate at which three quarters of its first fall are done. It suggests nothing if the fall does not stand out from
the noise, or reaches beyond the rates that are tried. Nothing else is written."""


class FinderOptions(RateFinderParams, WorkOptions):
    """What to try, and where the picture goes."""


def run(arguments: list[str]) -> int:
    """Finds a learning rate."""
    scenario, rest = take_scenario("lr-find", arguments)
    options, rest = parse_options(FinderOptions, rest)
    import_modules(options.modules)
    parsed = parse(
        root_of(trainer=scenario.default_trainer_params()),
        with_project_file(rest),
        prog=f"scena lr-find {arguments[0]}",
        description=DESCRIPTION,
        options=options,
    )
    check_training(parsed.params.trainer)
    start_work(options)
    from scena.backends.devices import select_devices
    from scena.terminal import counting
    from scena.training.errors import TrainingError
    from scena.training.schedules.rate_finder import find_rate

    params = parsed.params.trainer
    select_devices(params.device)
    with counting("Batches", options.steps) as progress:
        trainer = scenario.create_trainer(
            params
        )  # it may complete the parameters, for example with the names of classes
        found = find_rate(options, trainer.params, trainer.scenario, progress)
    found.draw(options.picture)
    if found.suggestion is None:
        raise TrainingError(f"{found.refusal} The losses are in {options.picture}.")
    print(f"--learning_rate.lr {found.suggestion:.2g}")
    print(f"# three quarters of the first fall of the loss ({len(found.rates)} batches tried; plot: {options.picture})")
    return 0
