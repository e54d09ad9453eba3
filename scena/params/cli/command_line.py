"""The command line of a params tree: its words laid over the defaults and the files, checked and built."""

import contextlib
import sys
import types
import typing
from typing import Any, Generic, TypeVar

from scena.errors import ParamsError, close_names
from scena.params.cli.words import from_words
from scena.params.convert import Mismatch
from scena.params.declare import Params, param
from scena.params.files.entries import Entry
from scena.params.files.overlay import merge_into
from scena.params.kinds import peel
from scena.params.settable import COMMAND_LINE, Index, Origins, Path, sentence
from scena.params.tree import build, default_raw, to_raw

P = TypeVar("P", bound=Params)
Q = TypeVar("Q", bound=Params)

HELP = ("-h", "--help")
FLAGS = "[--flag value …]"
CONFIG, CONFIG_SET = "config", "config_set"
FOREIGN_CONFIG = "yaml_config"  # as classification-api calls it


class Parsed(Generic[P]):
    """What a command line stands for."""

    def __init__(self, params: P, origins: dict[str, str], raw: dict[str, Any]) -> None:
        self.params = params
        self.origins = origins  # canonical name -> "default", "runs.yaml:12 (set big)" or "command line"
        self.raw = raw  # the tree of `params` as JSON-able data


def parse(
    default: P, argv: list[str], *, prog: str = "", description: str = "", options: type[Params] | None = None
) -> Parsed[P]:
    """Reads a command line. Raises ParamsError for whatever is wrong with it; prints and exits for `--help`.

    Args:
        default: the values that nothing else sets.
        argv: the words; `--config FILE… --config_set NAME` are taken from them as well. The command line wins over
            files, later files over earlier ones, wherever they stand.
        prog, description: for the help text.
        options: the command's own options (see `parse_options`), which help shows and errors suggest.
    """
    argv, search = take_help(argv)
    if search is not None:
        print_help(default, argv, usage=f"{prog} {FLAGS}", description=description, options=options, search=search)
        raise SystemExit(0)
    tree = Origins(to_raw(default), type(default))
    given = split(argv)
    apply_files(tree, given)
    try:
        merge_into(tree, [Entry(name, words, COMMAND_LINE) for name, words in given.items()])
    except ParamsError as error:
        raise ParamsError(_with_options(str(error), given, options, Index(tree.raw, tree.cls))) from None
    params = build(tree.raw, type(default), where=tree)
    return Parsed(params, tree.by_name(), to_raw(params))


def current_tree(default: Params, argv: list[str]) -> Origins:
    """The tree as far as a command line can be understood: for help and completion, which must work while it is being written."""
    tree = Origins(to_raw(default), type(default))
    given = split([word for word in argv if word not in HELP], lenient=True)
    with contextlib.suppress(ParamsError):
        apply_files(tree, given)
    merge_into(tree, [Entry(name, words, COMMAND_LINE) for name, words in given.items()], lenient=True)
    return tree


def take_help(argv: list[str]) -> tuple[list[str], list[str] | None]:
    """The words without `--help`, and what follows it up to the next flag: the words to search for. None without `--help`."""
    position = next((position for position, word in enumerate(argv) if word in HELP), None)
    if position is None:
        return argv, None
    after = [word for word in argv[position:] if word not in HELP]
    count = next((count for count, word in enumerate(after) if is_flag(word)), len(after))
    return [*argv[:position], *after[count:]], after[:count]


def print_help(default: Params | None, argv: list[str], *, usage: str, description: str = "",
               options: type[Params] | None = None, search: list[str] | None = None) -> None:  # fmt: skip
    """Writes the help of the current selection; without `default`, that of the options alone; with words, the flags that match them."""
    from scena.params.cli.help import help_text

    tree = current_tree(default, argv) if default is not None else None
    sys.stdout.write(help_text(tree, usage=usage, description=description, options=options, search=search or ()))


def root_of(*bases: type[Params], **parts: Params) -> Any:
    """A params object with these parts, beside those of its bases: the root of a command's flags."""

    def body(namespace: dict[str, Any]) -> None:
        namespace["__annotations__"] = {name: type(part) for name, part in parts.items()}
        namespace.update({name: param(part) for name, part in parts.items()})

    return types.new_class("Root", bases or (Params,), {}, body)()


def refuse_unknown(words: list[str], options: type[Params], usage: str) -> None:
    """Raises ParamsError if there are words although a command takes nothing but its options."""
    if words and not words[0].startswith("-"):
        raise ParamsError(f"unexpected {words[0]!r}: {usage}")
    for name in split(words):
        close = close_names(name, _spellings(options, shown=True), 1)
        raise ParamsError(f"--{name} does not exist; " + (f"did you mean --{close[0]}?" if close else "see --help"))


def _with_options(message: str, given: dict[str, list[str]], options: type[Params] | None, index: Index) -> str:
    """Completes the message about an unknown flag if it looks like one of the command's own options and no other framework has it."""
    known = _spellings(options, shown=True) if options is not None else {}
    for name in given:
        unknown = "." not in name and message.startswith(f"--{name} does not exist")
        if unknown and not index.known_elsewhere(name) and (close := close_names(name, known, 1)):
            return f"--{name} does not exist; did you mean --{close[0]}?"
    return message


def apply_files(tree: Origins, given: dict[str, list[str]]) -> None:
    """Takes `--config` and `--config_set` out of the words and lays the files over the tree."""
    files, sets = given.pop(CONFIG, None), given.pop(CONFIG_SET, None)
    if files is None or files == ["None"]:
        if sets is not None:
            given_set = f"--{CONFIG_SET} {' '.join(sets)}"
            raise ParamsError(f"{given_set} needs a file: --{CONFIG} FILE --{CONFIG_SET} NAME, or a project.yaml here")
        return
    if not files:
        raise ParamsError(f"--{CONFIG} expects at least one file")
    if sets is not None and len(sets) != 1:
        raise ParamsError(f"--{CONFIG_SET} expects one name, received {' '.join(sets) or 'nothing'}")
    from scena.params.files.files import lay_files

    lay_files(tree, files, sets[0] if sets else None)


def split(argv: list[str], *, lenient: bool = False) -> dict[str, list[str]]:
    """flag name -> the words after it. A word that begins with two dashes is a flag, anything else (`-1e-3`) a value."""
    given: dict[str, list[str]] = {}
    spelt: dict[str, str] = {}
    current: list[str] | None = None
    for word in argv:
        if is_flag(word):
            flag, equals, value = word.partition("=")
            name = flag[2:].replace("-", "_")
            if name in (CONFIG, FOREIGN_CONFIG):
                current = given.setdefault(CONFIG, [])
            elif name in given and not lenient:
                also = f", also as {flag}" if flag != spelt[name] else ""
                raise ParamsError(f"{spelt[name]} is given twice{also}")
            else:
                current = given[name] = []
                spelt[name] = flag
            if equals:
                current.append(value)
        elif current is not None:
            current.append(word)
        elif not lenient:
            hint = f"; flags begin with two dashes: -{word}" if word.startswith("-") and len(word) > 2 else ""
            raise ParamsError(f"unexpected {word!r}: a value needs its flag before it{hint}")
    return given


def take_part(name: str, argv: list[str]) -> tuple[list[str], list[str]]:
    """Divides a command line: the words of the flag `--name` and of those below it (`--name.…`), and all others."""
    own: list[str] = []
    rest: list[str] = []
    target = rest
    for word in argv:
        if is_flag(word):
            flag = word.partition("=")[0][2:].replace("-", "_")
            target = own if flag.split(".")[0] == name else rest
        elif word in HELP:
            target = rest
        target.append(word)
    return own, rest


def is_flag(word: str) -> bool:
    return word.startswith("--") and len(word) > 2


def parse_options(cls: type[Q], argv: list[str], *, partial: bool = False) -> tuple[Q, list[str]]:
    """Takes a command's own arguments and flags, declared as plain fields of `cls`, out of the words.

    Returns the options and the words that are left. Unlike the flags of a tree an option takes only the words it needs, so that a
    positional word may follow: none or one for a bool, one for a plain value; all words up to the next flag for a list. Positional
    words stand before the flags of a tree.

    Args:
        cls: the options. Its fields with `positional` take words without a flag, in the order of declaration.
        argv: the words.
        partial: required values may be missing, as where help is asked for.
    """
    raw = default_raw(cls)
    hints = cls.hints()
    spellings = _spellings(cls)
    first = next((position for position, word in enumerate(argv) if word.startswith("-")), len(argv))
    arguments = [field for field in cls.__params__.values() if field.positional]
    positional, words = (list(argv[:first]), list(argv[first:])) if arguments else ([], list(argv))
    rest: list[str] = []
    given: dict[str, str] = {}
    while words:
        word = words.pop(0)
        flag, equals, value = word.partition("=")
        name = spellings.get(flag[2:].replace("-", "_")) if is_flag(word) else None
        if name is None:
            rest.append(word)
            continue
        if name in given:
            raise ParamsError(f"{flag} is given twice")
        given[name] = flag
        own = [value] if equals else _take(words, hints[name])
        try:
            raw[name] = from_words(own, hints[name])
        except Mismatch as mismatch:
            raise ParamsError(sentence(flag, str(mismatch))) from None
    while arguments and rest and not rest[0].startswith("-"):
        positional.append(rest.pop(0))
    for field in arguments:
        count = len(positional) if takes_many(hints[field.name]) else 1
        own, positional = positional[:count], positional[count:]
        if own and field.name in given:
            raise ParamsError(f"{field.positional} is given twice, also as {given[field.name]}")
        if own:
            raw[field.name] = from_words(own, hints[field.name])
    return build(raw, cls, where=_Arguments(raw, cls), partial=partial), [*positional, *rest]


def _spellings(cls: type[Params], *, shown: bool = False) -> dict[str, str]:
    """What can follow two dashes, and the field that it sets; `shown`: without what help does not show."""
    found: dict[str, str] = {}
    for name, field in cls.__params__.items():
        own = () if field.positional else (field.root_name,)
        if not field.hidden:
            found.update(dict.fromkeys((*own, *(() if shown else field.aliases)), name))
    return found


class _Arguments(Origins):
    """Calls a positional argument by its placeholder."""

    def error(self, path: Path, message: str) -> str:
        field = self.cls.__params__[str(path[0])] if path else None
        return sentence(field.positional, message) if field and field.positional else super().error(path, message)


def takes_many(hint: Any) -> bool:
    """Whether a value of this type is written as several words."""
    return any((typing.get_origin(one) or one) in (list, tuple, set, frozenset, dict) for one in peel(hint)[0])


def _take(words: list[str], hint: Any) -> list[str]:
    """Removes the words that belong to an option from the front of `words`."""
    alternatives, many = peel(hint)[0], takes_many(hint)
    count = 0
    while count < len(words) and not is_flag(words[count]) and words[count] not in HELP and (many or count < 1):
        if bool in alternatives and words[count].lower() not in ("true", "false", "yes", "no", "on", "off", "1", "0"):
            break
        count += 1
    taken = words[:count]
    del words[:count]
    return taken
