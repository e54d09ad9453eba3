"""The error of everything that can be set wrongly."""


class ParamsError(ValueError):
    """A parameter, file or flag is wrong. The message names it, says what was received and how to fix it; no traceback is needed."""
