"""The command line of a benchmark: its options, its help, and an end for words it does not know."""

import sys
from typing import TypeVar

from scena.params import Params, ParamsError, parse_options

P = TypeVar("P", bound=Params)


def read_options(cls: type[P], about: str | None) -> P:
    """Reads the options of a benchmark from the command line; `--help` shows them and ends.

    Args:
        cls: declares the options.
        about: the text of the help, the benchmark's docstring.
    """
    words = sys.argv[1:]
    if {"-h", "--help"} & set(words):
        print((about or "").rstrip(), "\n")
        for name, field in cls.__params__.items():
            if not field.hidden:
                print(f"  --{name:<14} {field.help} (default: {cls.default_of(field)})")
        raise SystemExit(0)
    try:
        options, rest = parse_options(cls, words)
    except ParamsError as error:
        raise SystemExit(str(error)) from None
    if rest:
        raise SystemExit(f"This benchmark has no option {rest[0]!r}; --help lists what it has.")
    return options
