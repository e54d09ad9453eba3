"""Errors of sheets, searches and tables that a user can put right."""

from scena.errors import ScenaError


class ExperimentError(ScenaError, RuntimeError):
    """A sheet, a search or a table of runs cannot be read or carried out."""


class Interrupted(ExperimentError):  # noqa: N818  (nothing went wrong)
    """Ctrl-C or SIGTERM ended the scheduling; runs were stopped and can be gone on with."""

    exit_status = 130
    label = ""
