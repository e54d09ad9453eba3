"""`scena verify PATH…`: whether files that Scena has written are still what it wrote."""

from pathlib import Path
from typing import TYPE_CHECKING

from scena.commands.command import Command
from scena.commands.output import print_table
from scena.display import visible
from scena.params import Params, param

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scena.experiments.verification import Checked


class VerifyOptions(Params):
    """What to check."""

    paths: list[Path] = param(
        required=True,
        positional="PATH",
        help="runs, checkpoints, exports, record sets, caches, dumps, or folders that hold some",
    )


class Verify(Command):
    """Reads every file below the paths and compares it with its checksum; exit status 1 if something is damaged.

    Nothing is changed. A file without a checksum, for example one of yours, is counted and otherwise ignored.
    """

    name = "verify"
    options: VerifyOptions

    def run(self) -> int:
        from scena.experiments.verification import verify_path

        return report(checked for path in self.options.paths for checked in verify_path(path))


def report(files: "Iterable[Checked]") -> int:
    """Prints what is damaged, and counts; returns the exit status."""
    found = list(files)
    damaged = [checked for checked in found if checked.problem is not None]
    if damaged:
        print_table(["damaged", "problem"], [[str(checked.path), str(checked.problem)] for checked in damaged])
    paths = {str(checked.path) for checked in found if checked.known}
    wrong = {str(checked.path) for checked in damaged}
    unknown = {str(checked.path) for checked in found if not checked.known} - wrong
    whole = sum(checked.records for checked in found)
    records = f", {whole:,} whole records" if whole else ""
    without = f"; {len(unknown)} without a checksum, such as {sorted(unknown)[0]}" if unknown else ""
    print(visible(f"{len(paths - wrong)} of {len(paths | wrong)} files are sound{records}{without}"))
    return 1 if damaged else 0
