"""Help texts that commands bring themselves fit into the terminal, and lose no word."""

import importlib

import pytest

from scena.commands.main import COMMANDS, main
from scena.commands.usage import print_usage

TEXT = """usage: scena try NAME [--first VALUE] [--second VALUE]
       scena try --all

Tries something that takes some words to explain,
and then some more.
  --first VALUE   what the first one does, in more words than fit
                  into a line
  --second VALUE  short
  a plain line

The end."""
FOLDED = """usage: scena try NAME [--first VALUE]
           [--second VALUE]
       scena try --all

Tries something that takes some words
to explain, and then some more.
  --first VALUE   what the first one
                  does, in more words
                  than fit into a line
  --second VALUE  short
  a plain line

The end.
"""


def test_lines_are_folded_below_what_they_say(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    print_usage(TEXT)
    assert capsys.readouterr().out == FOLDED


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_fits_into_eighty_columns(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    try:
        assert main([*name.split(), "--help"]) == 0
    except SystemExit as left:
        assert left.code == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    if name:
        usage = getattr(importlib.import_module(f"scena.commands.{COMMANDS[name].module}"), "USAGE", "")
        assert usage.split() == shown.split() or not usage
