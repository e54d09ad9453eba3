"""The error of everything that can be set wrongly."""

from typing import ClassVar

from scena.errors import ScenaError


class ParamsError(ScenaError, ValueError):
    """A parameter, file or flag is wrong. The message names it, says what was received and how to fix it; no traceback
    is needed.
    """

    exit_status: ClassVar[int] = 2
