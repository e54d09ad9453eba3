"""What an engine is: whatever turns the stages of a pipeline into batches. All engines give the same batches in the same order.

`--train.engine NAME` looks it up: Scena's own, or the entry point `Engine.NAME` of an installed package. It is called with the
`PipelineContext`.
"""

from collections.abc import Generator
from typing import Protocol

from scena.data.batch import Batch, Cursor


class Engine(Protocol):
    """Runs the stages of one pipeline. It is kept from stream to stream, with its processes if it has any."""

    def batches(self, cursor: Cursor, repeat: bool) -> Generator[Batch, None, None]:
        """The batches from `cursor` on; of one epoch only unless `repeat`."""

    def close(self) -> None:
        """Ends what the engine keeps between streams."""
