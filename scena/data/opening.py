"""Opening sources for a look, before anything heavy is loaded: wrong splits and missing files are found at once."""

import logging
from typing import Any

from scena.data.params import DataGeneratorParams, PipelineMode

EMBEDDED = ("digits",)
"""Named data sets that need no TensorFlow."""


def try_source(source: Any, mode: PipelineMode) -> None:
    """Opens one of Scena's own sources and forgets it again; of a source of the user's, only list files are looked at.

    What is read from elsewhere is left alone, because that may take long, and so is what needs TensorFlow.

    Raises:
        DataError: what opening it in earnest would raise.
    """
    from scena.data.sources.params import ListFileGeneratorParams, NamedDataSetParams, SplitSourceParams
    from scena.storage.location import protocol_of

    if not isinstance(source, DataGeneratorParams) or any(protocol_of(text) for text in _texts(source)):
        return
    if isinstance(source, NamedDataSetParams) and source.dataset not in EMBEDDED:
        return
    own = (type(source).__builds__ or "").startswith("scena.data.")
    if isinstance(source, ListFileGeneratorParams):
        from scena.data.sources.lists import ListFileGenerator

        ListFileGenerator(source, mode)
    elif own and isinstance(source, SplitSourceParams):
        log = logging.getLogger("scena.data")
        before = log.disabled
        log.disabled = True  # it is opened again for the training, whose log file shall have these lines
        try:
            source.create(mode)
        finally:
            log.disabled = before


def _texts(source: DataGeneratorParams) -> list[str]:
    values = [getattr(source, name) for name in type(source).__params__]
    items = [item for value in values for item in (value if isinstance(value, list) else [value])]
    return [str(item) for item in items if isinstance(item, str) or hasattr(item, "__fspath__")]
