"""Completion for bash and zsh, by argcomplete: the flags of the current selection, and the values that can be listed.

The `scena` program calls `complete()` first thing when the shell asks; `shell_code()` is what a user's shell has to load.
"""

import os
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from scena.params.cli.command_line import current_tree, is_flag, takes_many
from scena.params.cli.help import groups, value_choices
from scena.params.declare import Params
from scena.params.kinds import peel
from scena.params.settable import Index, Node
from scena.params.tree import default_raw

FILES = "<files>"  # stands for the names of files


def shell_code(shell: str, programs: Sequence[str] = ("scena",)) -> str:
    """What to load in a shell: `eval "$(scena completion bash)"`."""
    import argcomplete

    return str(argcomplete.shellcode(list(programs), shell=shell))


def complete(suggest: Callable[[list[str], str], Iterable[str]]) -> None:
    """Answers the shell and ends the process.

    Args:
        suggest: called with the complete words before the cursor (without the program's name) and the beginning of the word at
            the cursor; returns what could stand there (FILES for names of files). `flag_completions` does it for a tree.
    """
    import argparse

    import argcomplete

    finder = argcomplete.CompletionFinder()

    def answer(words: list[str], beginning: str, quote: str, last_wordbreak: int) -> Any:
        flag, equals, value = beginning.partition("=")
        inline = bool(equals) and is_flag(flag)  # --flag=value: the value is what is completed
        before = [*words[1:], flag] if inline and words[-1:] != [flag] else words[1:]
        typed = value if inline else beginning
        found: list[str] = []
        for word in suggest(before, typed):
            found += argcomplete.completers.FilesCompleter()(prefix=typed) if word == FILES else [word]
        whole = [f"{flag}={word}" if inline else word for word in found]
        matching = list(dict.fromkeys(word for word in whole if word.startswith(beginning)))
        finder._display_completions = dict.fromkeys(matching, "")
        return finder.quote_completions(matching, quote, last_wordbreak)

    finder._get_completions = answer  # argcomplete would ask an argparse parser; the flags here depend on one another
    # the finder resets itself when it is called, but keeps what is set on it
    finder(argparse.ArgumentParser(add_help=False))


def flag_completions(
    default: Params | None, before: list[str], beginning: str, *, options: type[Params] | None = None
) -> list[str]:
    """What could stand at the cursor of a command line for the tree of `default`.

    Args:
        default: as for `parse`; None for a command that takes its options only.
        before: the words of the command line after the command and its positional arguments, up to the cursor.
        beginning: what is typed of the word at the cursor.
        options: the command's own options, as for `parse_options`.
    """
    tree = current_tree(default, before) if default is not None else None
    index = Index(tree.raw, tree.cls) if tree is not None else None
    own = Index(default_raw(options), options) if options is not None else None
    last = next((word for word in reversed(before) if is_flag(word)), None)
    values: list[str] = []
    if last is not None and not beginning.startswith("--"):
        count = len(before) - 1 - max(position for position, word in enumerate(before) if word == last)
        name = last[2:].partition("=")[0].replace("-", "_")
        nodes = [node for known in (index, own) if known is not None for node in known.get(name)]
        values, must = _value_words(name, nodes, count)
        if must:
            return values
    given = {word.partition("=")[0][2:].replace("-", "_") for word in before if is_flag(word)}
    flags = [node.name for node in own.nodes if not node.hidden] if own is not None else []
    if tree is not None:
        flags += ["config", "config_set", *(node.name for _, _, nodes in groups(tree) for node in nodes)]
    flags.append("help")
    return values + [f"--{flag}" for flag in flags if flag not in given]


def _value_words(name: str, nodes: list[Node], count: int) -> tuple[list[str], bool]:
    """The values a flag takes, and whether it still needs one; `count` of them are there already."""
    if name == "config":
        return [FILES], count == 0
    words: list[str] = []
    must = False
    for node in nodes:
        many = takes_many(node.hint) if node.kind.form == "leaf" else node.kind.form != "params"
        if count == 0 or many:
            words += value_choices(node) or ([FILES] if _is_path(node) else [])
            is_bool = node.kind.form == "leaf" and bool in peel(node.hint)[0]
            must = must or not (many or is_bool)
    return words, must and bool(nodes)


def _is_path(node: Node) -> bool:
    inner = [(typing.get_args(one) or (one,))[0] for one in peel(node.hint)[0]]
    return any(isinstance(one, type) and issubclass(one, os.PathLike) for one in inner)
