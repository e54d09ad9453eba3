"""The `--help` text of a tree: the flags of its current selection, grouped by component.

Plain text by argparse into a pipe; on a terminal the same through rich-argparse.
"""

import argparse
import enum
import operator
import os
import re
import sys
import textwrap
import typing
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from scena.params.convert import leaf_to_raw
from scena.params.declare import UNSET, Params
from scena.params.kinds import CLASS, candidates, class_of, listed, named_choices, peel
from scena.params.settable import COMMAND_LINE, DEFAULT, Index, Node, Origins, walk
from scena.params.tree import default_raw

SCREEN = 40  # flags that can be read at a glance
WIDEST_CHOICES = 44  # longer lists of choices go into the text of the flag
LARGEST_BOUND = 10**9
"""Larger ones only catch typos, and are not shown."""
_SIGNS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


def help_text(tree: Origins | None, *, usage: str, description: str = "", options: type[Params] | None = None,
              width: int | None = None, search: Sequence[str] = ()) -> str:  # fmt: skip
    """The help text, in colours if standard output is a terminal; with words to search for, the flags that match all of them."""
    formatter: Any = argparse.HelpFormatter
    if sys.stdout.isatty():
        formatter = _rich_formatter()
    columns = width or help_width()

    def sized(prog: str) -> Any:
        return formatter(prog, max_help_position=min(36, columns // 3), width=columns - 2)

    parser = _parser(tree, options, sized, search)
    if search:
        found = [parser.format_help().rstrip("\n"), _other_choices(tree, search) if tree is not None else ""]
        nothing = f"No flag matches {' '.join(search)!r}. `--help` alone lists all flags."
        return ("\n\n".join(filter(None, found)) or nothing) + "\n"
    top = [f"usage: {usage}", *folded(description, columns - 2)]
    first = _common(tree, sized).format_help() if tree is not None else ""
    return "\n".join([*top, "", *([first] if first else []), parser.format_help()])


def folded(text: str, width: int) -> list[str]:
    """The lines of a text with an empty one before it: paragraphs are folded, indented lines stay together with their indent."""
    lines: list[str] = []
    wrapper = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    for paragraph in text.strip().split("\n\n") if text.strip() else ():
        lines.append("")
        parts: list[str] = []
        for line in paragraph.split("\n"):
            if parts and not line.startswith(" ") and not parts[-1].startswith(" "):
                parts[-1] += f" {line.strip()}"
            else:
                parts.append(line.rstrip())
        for part in parts:
            hang = re.match(r" *(?:\S.*? {2,})?", part)
            wrapper.subsequent_indent = " " * (hang.end() if hang else 0)
            lines += wrapper.wrap(part)
    return lines


def help_width() -> int:
    """The columns of the terminal, or of COLUMNS; at most 120, and 100 where there is no terminal."""
    try:
        return max(40, min(int(os.environ.get("COLUMNS") or os.get_terminal_size(sys.stdout.fileno()).columns), 120))
    except (OSError, ValueError):
        return 100


def _rich_formatter() -> Any:
    from rich_argparse import RichHelpFormatter

    class Formatter(RichHelpFormatter):
        group_name_formatter = str
        highlights = [*RichHelpFormatter.highlights, r"\((?P<syntax>[^()]*(?:default|set|required)[^()]*)\)"]
        styles = {**RichHelpFormatter.styles, "argparse.groups": "bold dark_orange", "argparse.syntax": "dim"}

    return Formatter


def _parser(tree: Origins | None, options: type[Params] | None, formatter: Any, search: Sequence[str]) -> Any:
    """An argparse parser with the flags of the current selection. It only describes them: `parse` does the reading."""
    parser = _empty_parser(formatter)
    own = Index(default_raw(options), options).nodes if options is not None else []
    if search:
        matching = [node for node in own if not node.hidden and _matches(node, search)]
        _add_flags(parser.add_argument_group("options"), matching, None)
        for title, _, nodes in groups(tree) if tree is not None else ():
            _add_flags(parser.add_argument_group(_escaped(title)), [n for n in nodes if _matches(n, search)], tree)
        return parser
    if positional := [node for node in own if node.field.positional]:
        group = parser.add_argument_group("arguments")
        for node in positional:
            choices = value_choices(node)
            text = f"{node.field.help} ({', '.join(choices)})" if choices else node.field.help
            group.add_argument(node.name, metavar=node.field.positional, help=_escaped(text))
    first = parser.add_argument_group("options")
    text = "show this help; `--help WORD` shows the flags that match"
    first.add_argument("-h", "--help", action="store_true", help=text)
    flags = [node for node in own if not node.hidden]
    classes = options.__mro__ if options is not None else ()
    # what the command itself declares stands before what it shares with others
    _add_flags(first, sorted(flags, key=lambda node: classes.index(node.field.owner)), None)
    if tree is None:
        return parser
    first.add_argument("--config", nargs="+", metavar="FILE", help="YAML or JSON files with parameters; later ones win")
    first.add_argument("--config_set", metavar="NAME", help="the set to take from them, if they hold named sets")
    for title, text, nodes in groups(tree):
        _add_flags(parser.add_argument_group(_escaped(title), _escaped(text) or None), nodes, tree)
    return parser


def _empty_parser(formatter: Any) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        usage=argparse.SUPPRESS, formatter_class=formatter, allow_abbrev=False, add_help=False
    )


def _common(tree: Origins, formatter: Any) -> argparse.ArgumentParser:
    """The flags that many users set, where there are too many to see at a glance; of equal ones (train, val) the first."""
    parser = _empty_parser(formatter)
    nodes = [node for _, _, nodes in groups(tree) for node in nodes]
    chosen = {(node.field.owner, node.field.name): node for node in reversed(nodes) if node.field.common}
    if len(nodes) > SCREEN:
        group = parser.add_argument_group("most used", "`--help WORD` searches all flags.")
        _add_flags(group, [node for node in nodes if node in chosen.values()], tree)
    return parser


def _matches(node: Node, search: Sequence[str]) -> bool:
    """Whether each word is part of the flag's name, its name elsewhere, or begins a word of its help or its choices."""
    text = " ".join([node.field.help, *(value_choices(node) or ())])
    words = [word.lower().replace("-", "_") for word in search]
    named = [word in node.name.lower() or word in node.field.known_as for word in words]
    told = [re.search(rf"(?<![^\W_]){re.escape(word)}", text, re.IGNORECASE) is not None for word in search]
    return all(map(operator.or_, named, told))


def _other_choices(tree: Origins, search: Sequence[str]) -> str:
    """A paragraph about flags whose names match, and which exist if other classes are chosen."""
    index = Index(tree.raw, tree.cls)
    owners: dict[tuple[str, str], list[str]] = {}
    for choice in index.nodes:
        if choice.kind.form != "params" or choice.hidden:
            continue
        for option, cls in candidates(*choice.choice).items():
            for node in walk(default_raw(cls, *choice.choice), cls, choice.names, choice.kind):
                own = node.name.removeprefix(choice.name)
                named = all(word.lower().replace("-", "_") in own for word in search)
                if named and not node.hidden and not index.get(node.name):
                    owners.setdefault((node.name, choice.name), []).append(option)
    lines = [f"  --{name}: with --{choice} {' or '.join(options)}" for (name, choice), options in owners.items()]
    return "\n".join(["with another choice:", *lines]) if lines else ""


def groups(tree: Origins) -> list[tuple[str, str, list[Node]]]:
    """(title, description, flags) of each component. The flag that chooses a component's class stands first in its group."""
    found: dict[str, list[Node]] = {}
    owners: dict[str, list[Node]] = {}
    for node in Index(tree.raw, tree.cls).nodes:
        if node.hidden or not offers_choice(node):
            continue
        if node.kind.form == "params" and node.value is not None:
            group = found.setdefault(node.name, [])
            owners.setdefault(node.name, []).append(node)
            if is_choice(node):
                group.append(node)
        else:
            found.setdefault(node.title, []).append(node)
    return [(*_heading(name, owners.get(name, []), tree), nodes) for name, nodes in found.items() if nodes]


def offers_choice(node: Node) -> bool:
    """False for a name of which there is only one, because no plugin adds another."""
    return not node.field.plugin or len(named_choices(node.field) or ()) > 1


def is_choice(node: Node) -> bool:
    """Whether there is anything to choose: another class, or None. An item's class is chosen by the flag of its list."""
    choices = node.kind.form != "params" or node.kind.optional or len(listed(*node.choice)) > 1
    return choices and node.cls is not None


def _heading(name: str, owners: list[Node], tree: Origins) -> tuple[str, str]:
    if not name:
        return "parameters", _first_paragraph(tree.cls)
    classes = [cls for node in owners if (cls := class_of(node.value, *node.choice)) is not None]
    chosen = [node.value[CLASS] for node in owners if is_choice(node)]
    title = f"{name} ({', '.join(chosen)})" if chosen else name
    return title, " ".join(dict.fromkeys(text for cls in classes if (text := _first_paragraph(cls))))


def _first_paragraph(cls: type[Params]) -> str:
    for parent in cls.__mro__:
        if parent is Params:
            break
        if parent.__doc__:
            return " ".join(parent.__doc__.strip().partition("\n\n")[0].split())
    return ""


def _add_flags(group: Any, nodes: Iterable[Node], tree: Origins | None) -> None:
    added: dict[str, Any] = {}
    for node in nodes:
        metavar, nargs = _values(node)
        text = _escaped(_explained(node, tree))
        if node.name in added:  # objects that share a name at the root: one flag chooses the class of either
            action = added[node.name]
            both = ((action.metavar, action.help), (metavar, text))
            action.help = "; or ".join(f"{told} {values}" if "{" in str(values) else told for values, told in both)
            action.metavar = "CLASS"
        else:
            added[node.name] = group.add_argument(f"--{node.name}", metavar=metavar, help=text, nargs=nargs)


def value_choices(node: Node) -> list[str] | None:
    """The words that can follow a flag, where they can be listed."""
    if node.kind.form != "leaf":
        names = listed(*node.choice)
        return [*names, "None"] if node.kind.optional else names
    choices = named_choices(node.field)
    words = _choices_of_type(node.hint) if choices is None else [str(leaf_to_raw(choice)) for choice in choices]
    if words and node.kind.optional and "none" not in words:  # None is read from old runs, but no second word for none
        return [*words, "None"]
    return words or None


def _choices_of_type(hint: Any) -> list[str]:
    words: list[str] = []
    for one in peel(hint)[0]:
        kind = typing.get_origin(one) or one
        if kind is Literal:
            words += [str(value) for value in typing.get_args(one)]
        elif kind is bool:
            words += ["True", "False"]
        elif isinstance(kind, type) and issubclass(kind, enum.Enum):
            words += [str(leaf_to_raw(member)) for member in kind]
        elif kind in (list, set, frozenset, tuple) and typing.get_args(one):
            words += _choices_of_type(typing.get_args(one)[0])
    return words


def _values(node: Node) -> tuple[Any, Any]:
    """(metavar, nargs) as argparse wants them."""
    if node.kind.form != "leaf":
        names = listed(*node.choice) + ["None"] * (node.kind.form == "params" and node.kind.optional)
        metavar = _in_braces(names) or "CLASS"
        if node.kind.form == "params":
            return metavar, None
        return (metavar if node.kind.form == "list" else f"NAME={metavar}"), "*"
    alternatives = peel(node.hint)[0]
    one = alternatives[0] if len(alternatives) == 1 else None
    origin, arguments = typing.get_origin(one) or one, typing.get_args(one)
    if one is bool:
        return "BOOL", "?"
    shown = _in_braces(value_choices(node) or [])
    if origin is tuple and arguments and arguments[-1] is not ...:
        return tuple(_word(argument) for argument in arguments), len(arguments)
    if origin in (list, set, frozenset, tuple):
        others = [one for one in peel(arguments[0] if arguments else Any)[0] if not _choices_of_type(one)]
        return "|".join(filter(None, [shown, *map(_word, others)])), "*"
    if origin is dict:
        return f"NAME={_word(arguments[1] if arguments else Any)}", "*"
    return shown or _word(node.hint), None


def _in_braces(names: list[str]) -> str:
    """{A,B}, or nothing if that is too wide."""
    text = "{" + ",".join(names) + "}"
    return text if names and len(text) <= WIDEST_CHOICES else ""


_WORDS: dict[Any, str] = {bool: "BOOL", int: "INT", float: "FLOAT", str: "TEXT", Any: "VALUE"}


def _word(hint: Any) -> str:
    """A type as the placeholder of a value."""
    words = []
    for one in peel(hint)[0]:
        kind = typing.get_origin(one) or one
        if kind in _WORDS:
            words.append(_WORDS[kind])
        elif kind in (list, set, frozenset, tuple):
            words.append(f"{_word((typing.get_args(one) or (Any,))[0])},…")
        elif isinstance(kind, type) and issubclass(kind, os.PathLike):
            words.append("PATH")
        else:
            words.append(getattr(kind, "__name__", "VALUE").upper())
    return "|".join(words)


def _explained(node: Node, tree: Origins | None) -> str:
    field, notes = node.field, []
    choices = value_choices(node)
    if choices and "{" not in str(_values(node)[0]) and bool not in peel(node.hint)[0]:
        notes.append(f"one of {', '.join(choices)}")
    bounds = {name: bound for name, bound in field.bounds.items() if bound < LARGEST_BOUND}
    notes += [", ".join(f"{_SIGNS[name]} {bound}" for name, bound in bounds.items())] if bounds else []
    notes += [f"{' and '.join(field.backends)} only"] if field.backends else []
    notes += ["one device only"] if field.one_device else []
    origin = tree.get(node.path) if tree is not None else DEFAULT
    if node.value is None and (field.required or (not node.kind.optional and field.default is UNSET)):
        notes.append("required")
    elif origin != DEFAULT:
        where = f"by the {origin}" if origin == COMMAND_LINE else f"in {origin}"
        notes.append(f"set: {_shown_value(node)}, {where}")
    elif node.value not in (None, [], {}) or "default: " not in field.help:  # else the text says what happens then
        notes.append(f"default: {_shown_value(node)}")
    return f"{field.help} ({'; '.join(notes)})".strip() if notes else field.help


def _shown_value(node: Node) -> str:
    value = node.value
    if value is None:
        return "None"
    if node.kind.form == "params":
        return str(value[CLASS])
    if node.kind.form == "list":
        return " ".join(item[CLASS] for item in value) or "empty"
    if node.kind.form != "leaf":
        return " ".join(f"{name}={item[CLASS]}" for name, item in value.items()) or "empty"
    return " ".join(_plain(value)) or "empty"


def _plain(value: Any) -> list[str]:
    if isinstance(value, list):
        return [",".join(_plain(item)) if isinstance(item, list) else str(item) for item in value]
    return [f"{name}={item}" for name, item in value.items()] if isinstance(value, dict) else [str(value)]


def _escaped(text: str) -> str:
    return text.replace("%", "%%")
