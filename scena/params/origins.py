"""Where each value of a tree came from, so that errors and reports can say it."""

from typing import Any

from scena.params.cli.settable import Index, Path, Where, sentence
from scena.params.declare import Params

DEFAULT, COMMAND_LINE = "default", "command line"


class Origins(Where):
    """Path -> "default", "runs.yaml:12 (set big)" or "command line"."""

    def __init__(self, raw: dict[str, Any], cls: type[Params]) -> None:
        self.raw, self.cls = raw, cls
        self.known: dict[Path, str] = {}

    def set(self, path: Path, origin: str, *, replaced: bool = False) -> None:
        """Notes who set a path; `replaced`: and everything below it starts anew."""
        if replaced:
            self.known = {other: label for other, label in self.known.items() if other[: len(path)] != path}
        self.known[path] = origin

    def get(self, path: Path) -> str:
        """Who set the value at exactly this path."""
        return self.known.get(path, DEFAULT)

    def error(self, path: Path, message: str) -> str:
        """`--flag: message`, or `file:line: name: message` for a value that came from a file."""
        name = Index(self.raw, self.cls).name_of(path)
        origin = next(
            (self.known[path[:length]] for length in range(len(path), 0, -1) if path[:length] in self.known), DEFAULT
        )
        if origin in (DEFAULT, COMMAND_LINE) or message.startswith("is required"):
            return sentence(f"--{name}" if name else "", message)
        return f"{origin}: {sentence(name, message)}"

    def by_name(self) -> dict[str, str]:
        """The canonical name of every value of the tree -> who set it."""
        return {node.name: self.get(node.path) for node in Index(self.raw, self.cls).nodes}
