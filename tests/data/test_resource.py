"""Resources are copied into an export and found again wherever it is."""

import shutil
from pathlib import Path

import pytest

from scena.data.resource import Resource, export_resources, find_resources, resolve_resources
from scena.params import Params, ParamsError, param
from scena.params.tree import build, to_raw


class Part(Params):
    table: Resource | None = param(None, help="a file")


class Whole(Params):
    charmap: Resource = param(required=True, help="a file")
    parts: list[Part] = param([], help="more")


def whole(tmp_path: Path) -> Whole:
    for folder, text in (("a", "one"), ("b", "two")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "map.txt").write_text(text)
    shared = Resource(tmp_path / "a" / "map.txt")
    return Whole(charmap=shared, parts=[Part(table=Resource(tmp_path / "b" / "map.txt")), Part(table=shared), Part()])


def test_export_move_and_resolve(tmp_path: Path) -> None:
    params = whole(tmp_path)
    assert [path for path, _ in find_resources(params)] == ["charmap", "parts.0.table", "parts.1.table"]
    (exported,) = export_resources([params], tmp_path / "export")
    assert [str(resource) for _, resource in find_resources(exported)] == [
        "resources/map.txt",
        "resources/map_1.txt",
        "resources/map.txt",
    ]
    assert str(params.charmap) == str(tmp_path / "a" / "map.txt"), "the original is untouched"
    raw = to_raw(exported)
    assert raw["charmap"] == "resources/map.txt"
    shutil.move(tmp_path / "export", tmp_path / "moved")
    shutil.rmtree(tmp_path / "a")
    loaded = resolve_resources(build(raw, Whole), tmp_path / "moved")
    assert isinstance(loaded, Whole)
    assert Path(loaded.charmap).read_text() == "one"
    assert loaded.parts[0].table is not None
    assert loaded.parts[0].table.path.read_text() == "two"


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    missing = Whole(charmap=Resource(tmp_path / "nothing.txt"))
    with pytest.raises(ParamsError, match=r"charmap: The resource '.*nothing.txt' does not exist"):
        export_resources([missing], tmp_path / "export")
    with pytest.raises(ParamsError, match="points out of it"):
        resolve_resources(Whole(charmap=Resource("resources/../../secret")), tmp_path)
    with pytest.raises(ParamsError, match="the path of a file"):
        build({"class": "Whole", "charmap": 5}, Whole)
