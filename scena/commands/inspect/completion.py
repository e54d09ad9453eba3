"""`scena completion bash|zsh`, and what Tab offers: commands, arguments, and the flags of the current selection."""

from glob import escape, glob
from pathlib import Path
from typing import Literal

from scena.commands.command import Command
from scena.errors import ScenaError
from scena.params import Params, ParamsError, flag_completions, param, parse_options
from scena.params.cli.command_line import is_flag, takes_many
from scena.params.cli.completion import FILES, complete, shell_code
from scena.params.cli.help import value_choices
from scena.params.declare import Field
from scena.params.settable import Index
from scena.params.tree import default_raw
from scena.storage.run_layout import EXPORT_FILE, PARAMS_FILE


class CompletionOptions(Params):
    """The shell."""

    shell: Literal["bash", "zsh"] = param(required=True, positional="SHELL", help="the shell to complete in")


class Completion(Command):
    """Prints the shell code that completes commands, arguments and the flags of the current selection.

    Load it in your shell's start-up file:
      eval "$(scena completion bash)"      # ~/.bashrc
      eval "$(scena completion zsh)"       # ~/.zshrc
    """

    name = "completion"
    options: CompletionOptions

    def run(self) -> None:
        print(shell_code(self.options.shell))


def answer_shell() -> int:
    """Prints the completions the shell asks for and ends the process."""
    complete(suggest)
    return 0


def suggest(before: list[str], beginning: str) -> list[str]:
    """What could stand at the cursor; nothing if the words before it make no sense."""
    from scena.commands.main import command_name, command_names, find_command

    if not before:
        return [*dict.fromkeys(name.partition(" ")[0] for name in command_names()), "--help", "--version"]
    name, words = command_name(before)
    if name not in command_names():
        second = [known.removeprefix(f"{name} ") for known in command_names() if known.startswith(f"{name} ")]
        return second if not words else []
    try:
        return _arguments(find_command(name), words, beginning)
    except ScenaError:  # a half-typed line may be wrong in any way; Tab must stay silent
        return []


def _arguments(command: type[Command], before: list[str], beginning: str) -> list[str]:
    own, forwarded = command.split(before)
    if forwarded:
        return suggest(forwarded, beginning)
    cls = command.options_class()
    first = next((index for index, word in enumerate(own) if is_flag(word)), len(own))
    last = next((index for index in range(len(own) - 1, -1, -1) if is_flag(own[index])), len(own))
    try:
        options, _ = parse_options(cls, own, partial=True)
    except ParamsError:  # the last flag has no value yet
        options, _ = parse_options(cls, own[:last], partial=True)
    found: list[str] = [] if beginning.startswith("-") else list(command.forwards)
    for field in command.positional():
        many = takes_many(cls.hints()[field.name])
        if (many and first == len(own)) or not getattr(options, field.name):
            found += [] if beginning.startswith("-") or first < len(own) else _values(cls, field, beginning)
            if field is command.missing(options):
                return found or flag_completions(None, own, beginning, options=cls)
            break
    try:
        made = command.opened(options, own)
        root, flags = made.root(), made.with_project_file(own[first:], announce=False)
    except (Exception, SystemExit):  # a model or scenario that cannot be read still leaves the options
        root, flags = None, own[first:]
    return found + flag_completions(root, flags, beginning, options=cls)


def _values(cls: type[Params], field: Field, beginning: str) -> list[str]:
    """What an argument could be: by its placeholder, or by its type."""
    if field.positional == "SCENARIO":
        from scena.scenario.finding import list_scenarios

        return [*list_scenarios(), FILES]
    marks = {"RUN": PARAMS_FILE, "MODEL": EXPORT_FILE}
    if field.positional in marks:
        below = ("*", "*/*", "*/*/*")
        found = [path for depth in below for path in glob(f"{escape(beginning)}{depth}/{marks[field.positional]}")]
        return [*sorted(str(Path(path).parent) for path in found), FILES]
    node = next(node for node in Index(default_raw(cls), cls).nodes if node.field is field)
    return value_choices(node) or [FILES]
