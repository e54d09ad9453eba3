"""`scena completion bash|zsh`: what a shell loads to complete Scena's commands and flags."""

from scena.commands.usage import print_usage
from scena.params.completion import shell_code
from scena.params.errors import ParamsError

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
