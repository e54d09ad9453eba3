"""A command that draws stripes."""

from scena import Params, param
from scena.commands import Command


class StripesOptions(Params):
    """How many."""

    count: int = param(3, ge=1, help="number of stripes")


class StripesCommand(Command):
    """Draws stripes."""

    name = "stripes"
    options: StripesOptions

    def run(self):
        print("=" * self.options.count)
