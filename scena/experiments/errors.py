"""Errors of sheets, searches and tables that a user can fix."""

from scena.errors import ScenaError


class ExperimentError(ScenaError, RuntimeError):
    """A sheet, a search or a table of runs cannot be read or run."""


class Interrupted(ExperimentError):  # noqa: N818  (nothing went wrong)
    """Ctrl-C or SIGTERM ended the scheduling; runs were stopped and can be resumed."""

    exit_status = 130
    label = ""
