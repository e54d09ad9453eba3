"""`scena resume OUTPUT_DIR [--flags]`."""

from pathlib import Path
from typing import Literal

from scena.commands.scenario_argument import WorkOptions, check_training, import_modules, root_of, start_work
from scena.commands.usage import print_usage
from scena.params import ParamsError, param, parse, parse_options
from scena.scenario.errors import ScenarioError
from scena.scenario.finding import scenario_of
from scena.scenario.stored import read_description, stored_params
from scena.storage.run_layout import PARAMS_FILE
from scena.training.ownership import check_repeated, forget_paths, paths_outside

USAGE = """usage: scena resume OUTPUT_DIR [--from latest|best|STEP] [--flags]

Goes on with a run from its last checkpoint, exactly where it was. Flags change its parameters, for example --trainer.epochs 50;
what changes is shown and recorded. `scena resume OUTPUT_DIR --help` lists them."""


class ResumeOptions(WorkOptions):
    """How to find the run's code."""

    scenario: str | None = param(None, help="the scenario, if its module is not where it was")
    start: str = param("latest", flat="from", help="the checkpoint to go on from: latest, best, or a step")
    strict: bool = param(False, help="an error instead of a warning if the code has changed since the checkpoint")


def run(arguments: list[str]) -> int:
    """Goes on with a run."""
    if not arguments or arguments[0].startswith("-"):
        if any(argument in ("-h", "--help") for argument in arguments):
            print_usage(USAGE)
            return 0
        raise ParamsError("name the run's directory first: scena resume OUTPUT_DIR [--flags].")
    directory = Path(arguments[0])
    path = directory / PARAMS_FILE
    if not path.is_file():
        raise ScenarioError(f"{directory} is not the directory of a run: it has no {PARAMS_FILE}.")
    options, rest = parse_options(ResumeOptions, arguments[1:])
    start = _start(options.start)
    description = read_description(path)
    scenario = scenario_of(description["scenario"], directory, options.scenario)
    import_modules(options.modules)
    params = stored_params(description, scenario, path)
    params.output_dir = directory  # the run may have been moved
    places = paths_outside(directory, params)
    forget_paths(params, places)
    parsed = parse(root_of(trainer=params), rest, prog=f"scena resume {directory}", options=options)
    if parsed.params.trainer.output_dir != directory:
        raise ParamsError(
            f"--trainer.output_dir cannot be changed: a run is resumed where it is, in {directory}. "
            "To keep it as it is, copy its directory and resume the copy."
        )
    check_repeated(directory, parsed.params.trainer, places, arguments)
    check_training(parsed.params.trainer, fresh=False)
    if options.strict:
        from scena.training.checks.before_start import check_code

        check_code(directory, parsed.params.trainer, start, scenario.__module__)
    start_work(options)
    from scena.experiments.search.trial import trial_callbacks

    scenario.create_trainer(parsed.params.trainer).train(
        trial_callbacks(), resume=True, start=start, strict=options.strict
    )
    return 0


def _start(given: str) -> int | Literal["latest", "best"]:
    if given == "latest":
        return "latest"
    if given == "best":
        return "best"
    if given.isascii() and given.isdecimal():
        return int(given)
    raise ParamsError(f"--from must be latest, best or the step of a checkpoint. Received: {given!r}.")
