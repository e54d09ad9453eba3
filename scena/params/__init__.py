"""What can be set: declaring parameters, reading them from files and from the command line, and storing them.

The names below are loaded when they are first used, so that a params module costs no more than `Params` and `param`.
"""

from typing import TYPE_CHECKING, Any

from scena.params.declare import UNSET, Field, Params, param, short_name, subclasses
from scena.params.errors import ParamsError

if TYPE_CHECKING:
    from scena.params.cli.command_line import Parsed, parse, parse_options
    from scena.params.cli.completion import flag_completions
    from scena.params.files.dump import dump_command, dump_words, dump_yaml
    from scena.params.files.files import load
    from scena.params.files.overlay import merge
    from scena.params.files.schema import json_schema
    from scena.params.tree import build, check, default_raw, to_raw

_LAZY = {
    "Parsed": "command_line",
    "build": "tree",
    "check": "tree",
    "default_raw": "tree",
    "dump_command": "dump",
    "dump_words": "dump",
    "dump_yaml": "dump",
    "flag_completions": "completion",
    "json_schema": "schema",
    "load": "files",
    "merge": "layers",
    "parse": "command_line",
    "parse_options": "command_line",
    "to_raw": "tree",
}

__all__ = [
    "UNSET",
    "Field",
    "Params",
    "ParamsError",
    "Parsed",
    "build",
    "check",
    "default_raw",
    "dump_command",
    "dump_words",
    "dump_yaml",
    "flag_completions",
    "json_schema",
    "load",
    "merge",
    "param",
    "parse",
    "parse_options",
    "short_name",
    "subclasses",
    "to_raw",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
