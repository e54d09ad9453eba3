"""The named sets of a file: what there is, and adding one without touching the rest of the file."""

import re
from pathlib import Path
from typing import NamedTuple

from scena.errors import ParamsError
from scena.params.files.files import EXTENDS, document_of, parents_of
from scena.params.files.overlay import Section
from scena.params.files.yaml_reader import read


class SetInfo(NamedTuple):
    """One set of a file."""

    name: str
    place: str
    """`FILE:LINE`."""
    parents: list[str]
    keys: list[str]
    """What it sets at its top level, `<<` included."""


def list_sets(path: str) -> list[SetInfo]:
    """The sets of a file, in their order.

    Raises:
        ParamsError: a top-level key of the file holds a plain value, so it is no file of sets.
    """
    document = document_of(path)
    found = []
    for name, content in document.items():
        if content is not None and not isinstance(content, Section):
            raise ParamsError(
                f"{document.origins[name]}: {name!r} holds a plain value, so this file holds parameters and no sets"
            )
        section = content if content is not None else Section()
        keys = [key for key in section if key != EXTENDS]
        found.append(SetInfo(name, document.origins[name], parents_of(section, name), keys))
    return found


def add_set(path: Path, name: str, values: str, comment: str = "") -> None:
    """Appends a set to a file, or starts a new file with it; everything that stands in the file stays as it is.

    Args:
        path: the file.
        name: the name of the new set.
        values: its content as YAML, as `dump_yaml` writes it.
        comment: a line to put before it.
    """
    if not re.fullmatch(r"[A-Za-z_][\w.-]*", name):
        raise ParamsError(
            f"the name of a set begins with a letter and has letters, digits, `_`, `-`, `.`: received {name!r}"
        )
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    sets = list_sets(str(path)) if path.exists() else []
    if same := [info for info in sets if info.name == name]:
        raise ParamsError(
            f"{same[0].place}: the file has a set {name!r} already; choose another name, or remove it first"
        )
    text = before + ("\n" if before.strip() else "") if before.endswith("\n") or not before else f"{before}\n\n"
    text += f"# {comment}\n" if comment else ""
    body = values.rstrip()
    text += f"{name}:\n" + ("" if body in ("", "{}") else "\n".join(f"  {line}" for line in body.splitlines()) + "\n")
    aside = path.with_name(f".{path.name}.new{path.suffix}")
    aside.write_text(text, encoding="utf-8")
    try:
        content = read(str(aside))
        if not isinstance(content, Section) or list(content) != [*(info.name for info in sets), name]:
            raise ParamsError(f"{path}: a set cannot be appended to a file that is written in braces; add it by hand")
    except ParamsError as error:
        aside.unlink()
        raise ParamsError(str(error).replace(str(aside), str(path))) from None
    aside.replace(path)
