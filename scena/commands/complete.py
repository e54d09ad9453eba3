"""What the shell gets when a user presses Tab: commands, scenarios, then the flags of the current selection."""

from scena.commands.scenario_argument import import_modules, root_of
from scena.params import flag_completions, parse_options
from scena.params.completion import FILES, complete
from scena.scenario.finding import find_scenario, list_scenarios

WITH_SCENARIO = ("train", "params", "schema", "benchmark-input", "lr-find", "tune")
"""Commands whose first argument is a scenario; all take the flags of its trainer."""


def answer_shell() -> int:
    """Prints the completions the shell asks for and ends the process."""
    complete(suggest)
    return 0


def suggest(before: list[str], beginning: str) -> list[str]:
    """What could stand at the cursor; nothing if the words before it make no sense."""
    from scena.commands.main import ALIASES, COMMANDS

    if not before:
        return [*COMMANDS, *ALIASES, "--help", "--version"]
    try:
        return _arguments(before[0], before[1:], beginning)
    except (Exception, SystemExit):  # a half-typed line may be wrong in any way; Tab must stay silent
        return []


def _arguments(command: str, before: list[str], beginning: str) -> list[str]:
    if command not in WITH_SCENARIO:
        return [FILES]
    if not before:
        return [*list_scenarios(), FILES]
    from scena.commands.project_file import with_project_file
    from scena.commands.train import TrainOptions

    options, rest = parse_options(TrainOptions, before[1:])
    import_modules(options.modules)
    root = root_of(trainer=find_scenario(before[0]).default_trainer_params())
    rest = with_project_file(rest, announce=False)
    return flag_completions(root, rest, beginning, options=TrainOptions)
