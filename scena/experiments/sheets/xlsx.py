"""Adds a sheet to an xlsx file and keeps every other part unchanged.

An xlsx file is a zip of XML parts. openpyxl drops parts that it does not know (shapes, controls, custom XML), so this module adds
the new sheet beside the others, and a line to the three lists of parts.
"""

import math
import os
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from scena.errors import ExperimentError
from scena.experiments.sheets.sheet import column_letters

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


def add_sheet(path: Path, name: str, rows: Sequence[Sequence[str | int | float | None]]) -> str:
    """Adds a sheet and returns its name: `name`, or `name 2` and so on if there is one already."""
    try:
        with zipfile.ZipFile(path) as old:
            parts = {entry.filename: old.read(entry) for entry in old.infolist()}
            entries = old.infolist()
        book = _workbook(parts)
        changed, name = _with_sheet(parts, book, name, rows)
    except (OSError, zipfile.BadZipFile, KeyError, UnicodeDecodeError, ValueError) as error:
        raise ExperimentError(f"Cannot add a sheet to {path}: {error}.") from error
    aside = path.with_name(f".{path.name}.new")
    try:
        with zipfile.ZipFile(aside, "w", zipfile.ZIP_DEFLATED) as new:
            for entry in entries:
                new.writestr(entry, changed.pop(entry.filename, parts[entry.filename]), entry.compress_type)
            for part, content in changed.items():
                new.writestr(part, content)
        os.chmod(aside, path.stat().st_mode & 0o777)
        aside.replace(path)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise ExperimentError(f"Cannot write {path}: {error.strerror or error}.") from error
    return name


def _workbook(parts: dict[str, bytes]) -> str:
    """The name of the part that lists the sheets."""
    for relation in re.findall(r"<(?:\w+:)?Relationship\b[^>]*>", parts["_rels/.rels"].decode()):
        if re.search(r'Type="[^"]*/officeDocument"', relation):
            target = re.search(r'Target="([^"]*)"', relation)
            if target:
                return target[1].lstrip("/")
    raise ValueError("it has no workbook")


def _with_sheet(
    parts: dict[str, bytes], book: str, name: str, rows: Sequence[Sequence[str | int | float | None]]
) -> tuple[dict[str, bytes], str]:
    folder, _, file = book.rpartition("/")
    prefix = f"{folder}/" if folder else ""
    relations = f"{prefix}_rels/{file}.rels"
    number = next(n for n in range(1, 100000) if f"{prefix}worksheets/scena{n}.xml" not in parts)
    target = f"worksheets/scena{number}.xml"
    listing, relation_list, types = (parts[key].decode() for key in (book, relations, "[Content_Types].xml"))
    name = _free_name(name, listing)
    sheet_id = 1 + max(int(found) for found in re.findall(r'\bsheetId="(\d+)"', listing))
    relation_id = f"rIdScena{number}"
    kind = re.search(r'Type="([^"]*/worksheet)"', relation_list)
    if kind is None:
        raise ValueError("it has no worksheets")
    # a file in "strict" form has other namespaces: those of its own relations are taken
    namespace = kind[1].removesuffix("/worksheet")
    listing = _before_end(
        listing,
        "sheets",
        f'sheet xmlns:scena="{namespace}" name={quoteattr(name)} sheetId="{sheet_id}" scena:id="{relation_id}"',
    )
    relation_list = _before_end(
        relation_list, "Relationships", f'Relationship Id="{relation_id}" Type="{kind[1]}" Target="{target}"'
    )
    types = _before_end(types, "Types", f'Override PartName="/{prefix}{target}" ContentType="{_TYPE}"')
    main = _MAIN if namespace == _RELATIONS else "http://purl.oclc.org/ooxml/spreadsheetml/main"
    return {
        book: listing.encode(),
        relations: relation_list.encode(),
        "[Content_Types].xml": types.encode(),
        f"{prefix}{target}": _sheet_xml(rows, main).encode(),
    }, name


def _free_name(name: str, listing: str) -> str:
    taken = {found.lower() for found in re.findall(r'<(?:\w+:)?sheet\b[^>]*?\bname="([^"]*)"', listing)}
    return next(
        candidate
        for number in range(1, 100000)
        if (candidate := name if number == 1 else f"{name} {number}").lower() not in taken
    )


def _before_end(xml: str, element: str, new: str) -> str:
    """The XML with an empty element `new` as the last child of `element`, in the namespace prefix of that element."""
    ends = list(re.finditer(rf"</(\w+:)?{element}\s*>", xml))
    if not ends:
        raise ValueError(f"<{element}> is not where it is expected")
    match = ends[-1]
    return f"{xml[: match.start()]}<{match[1] or ''}{new}/>{xml[match.start() :]}"


def _sheet_xml(rows: Sequence[Sequence[str | int | float | None]], namespace: str) -> str:
    lines = []
    for number, row in enumerate(rows, 1):
        cells = "".join(_cell(f"{column_letters(index)}{number}", value) for index, value in enumerate(row))
        lines.append(f'<row r="{number}">{cells}</row>')
    return (
        f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<worksheet xmlns="{namespace}">'
        f"<sheetData>{''.join(lines)}</sheetData></worksheet>"
    )


def _cell(reference: str, value: str | int | float | None) -> str:
    if value is None:
        return ""
    if isinstance(value, int | float) and math.isfinite(value):
        return f'<c r="{reference}"><v>{value!r}</v></c>'
    text = escape(_CONTROL.sub("", str(value)))
    return f'<c r="{reference}" t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'
