"""Errors of finding and loading scenarios."""

from scena.errors import ScenaError


class ScenarioError(ScenaError, RuntimeError):
    """A scenario, a run or an export cannot be found or read; the message says what was looked for and where."""
