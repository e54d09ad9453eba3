"""Files a model needs wherever it goes: copied into the export, and found again after the export was moved."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from scena.errors import ParamsError
from scena.params.declare import Params
from scena.params.tree import values_in
from scena.storage.run_layout import RESOURCES


class Resource:
    """A file (or folder) named by a parameter: `charmap: Resource = param(required=True, help="…")`.

    Use it as a path: `open(params.charmap)`. In an export it is a path relative to the export directory.
    """

    __slots__ = ("_path",)

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)

    @classmethod
    def from_param(cls, raw: Any) -> Self:
        """From a command line or a file."""
        if isinstance(raw, cls):
            return raw
        if not isinstance(raw, str | Path) or not str(raw):
            raise ValueError("the path of a file")
        return cls(raw)

    def to_param(self) -> str:
        return self._path.as_posix()

    @property
    def path(self) -> Path:
        """Where the file is; raises if it is not there."""
        if not self._path.exists():
            raise ParamsError(f"The resource {str(self._path)!r} does not exist (working directory: {Path.cwd()}).")
        return self._path

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self._path)

    def __repr__(self) -> str:
        return f"Resource({str(self._path)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Resource) and self._path == other._path

    def __hash__(self) -> int:
        return hash(self._path)

    def __deepcopy__(self, memo: object) -> Self:
        return self  # immutable


def find_resources(tree: Any) -> Iterator[tuple[str, Resource]]:
    """All resources in a tree of parameters, each with its path in the tree."""
    return ((".".join(map(str, path)), value) for path, value in values_in(tree) if isinstance(value, Resource))


def export_resources(trees: Sequence[Params], directory: str | Path) -> list[Any]:
    """Copies all resources of some trees into `directory`/resources; returns copies of the trees with relative paths.

    Two files of the same name get different names; a file that is used twice is copied once.
    """
    target = Path(directory) / RESOURCES
    names: dict[Path, str] = {}
    taken: set[str] = set()
    for where, resource in (found for tree in trees for found in find_resources(tree)):
        try:
            source = resource.path.resolve()
        except ParamsError as error:
            raise ParamsError(f"{where}: {error}") from None
        if source in names:
            continue
        names[source] = _free_name(source, taken)
        taken.add(names[source])
        target.mkdir(parents=True, exist_ok=True)
        _copy(source, target / names[source])

    def relative(known: Resource) -> Resource:
        return Resource(f"{RESOURCES}/{names[known.path.resolve()]}")

    return [_replaced(tree.replace(), relative) for tree in trees]


def resolve_resources(tree: Params, export_dir: str | Path) -> Any:
    """A copy of the parameters of an export whose resources point into `export_dir`, wherever that is now."""
    root = Path(export_dir).resolve()

    def located(resource: Resource) -> Resource:
        relative = Path(str(resource))
        if relative.is_absolute() or relative.parts[:1] != (RESOURCES,):
            return resource
        linked = not (root / relative).resolve().is_relative_to(root)
        if ".." in relative.parts or linked:
            how = "points" if ".." in relative.parts else "is a link that points"
            raise ParamsError(f"The resource {str(resource)!r} of the export {str(root)!r} {how} out of it: not used.")
        return Resource(root / relative)

    return _replaced(tree.replace(), located)


def _replaced(tree: Any, change: Any) -> Any:
    if isinstance(tree, Resource):
        return change(tree)
    if isinstance(tree, Params):
        for name in type(tree).__params__:
            object.__setattr__(tree, name, _replaced(getattr(tree, name), change))
        return tree
    if isinstance(tree, dict):
        return {key: _replaced(value, change) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(_replaced(value, change) for value in tree)
    return tree


def _free_name(source: Path, taken: set[str]) -> str:
    name, number = source.name, 1
    while name in taken:
        name = f"{source.stem}_{number}{source.suffix}"
        number += 1
    return name


def _copy(source: Path, target: Path) -> None:
    import shutil

    if source == target.resolve():
        return
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copy2(source, target)
