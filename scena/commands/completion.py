"""`scena completion bash|zsh`: what a shell loads to complete Scena's commands and flags."""

from scena.commands.scenario_argument import import_modules, root_of
from scena.commands.usage import print_usage
from scena.params import flag_completions, parse_options
from scena.params.cli.completion import FILES, complete, shell_code
from scena.params.errors import ParamsError
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
    from scena.commands.run.train import TrainOptions

    options, rest = parse_options(TrainOptions, before[1:])
    import_modules(options.modules)
    root = root_of(trainer=find_scenario(before[0]).default_trainer_params())
    rest = with_project_file(rest, announce=False)
    return flag_completions(root, rest, beginning, options=TrainOptions)


SHELLS = ("bash", "zsh")
USAGE = """usage: scena completion bash|zsh

Prints the shell code that completes commands, scenarios and the flags of the current selection. Load it in your shell's start-up file:
  eval "$(scena completion bash)"      # ~/.bashrc
  eval "$(scena completion zsh)"       # ~/.zshrc"""


def run(arguments: list[str]) -> int:
    """Prints the shell code."""
    if arguments[:1] in (["-h"], ["--help"]):
        print_usage(USAGE)
        return 0
    if len(arguments) != 1 or arguments[0] not in SHELLS:
        raise ParamsError(
            f"name the shell: scena completion {'|'.join(SHELLS)}. Received: {' '.join(arguments) or 'nothing'}"
        )
    print(shell_code(arguments[0]))
    return 0
