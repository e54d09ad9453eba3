"""Self-contained pages, and the parts they are made of: facts, tables, plots, code to copy.

Nothing is fetched from elsewhere: style and script are in the page. Every function that takes text escapes it; those that take HTML say so.
"""

import html
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from scena.display import visible

MANY_ROWS = 20
"""A table with more rows scrolls in a box of its own, below its head."""

_THEME_ICON = (
    '<svg viewBox="0 0 20 20" width="18" height="18" aria-hidden="true"><circle cx="10" cy="10" r="7.2" fill="none" '
    'stroke="currentColor" stroke-width="1.6"/><path d="M10 2.8a7.2 7.2 0 0 1 0 14.4z" fill="currentColor"/></svg>'
)


class Cell(NamedTuple):
    """A cell of a table.

    Args:
        text: what it shows.
        value: what it is sorted by, if not by its text.
        share: from 0 to 1, drawn as a bar behind the text.
    """

    text: str
    value: float | None = None
    share: float | None = None


def escaped(value: Any) -> str:
    """A value as text of a page; control characters become visible."""
    return html.escape(visible(str(value)))


def render_page(
    title: str,
    body: str,
    *,
    kind: str,
    lead: str = "",
    facts: Mapping[str, Any] | None = None,
    links: Mapping[str, str] | None = None,
    contents: Mapping[str, str] | None = None,
    script: str = "",
) -> str:
    """A whole page.

    Args:
        title: the heading.
        body: HTML below the head of the page.
        kind: what the page is, in a word or two above the heading.
        lead: a sentence below the heading.
        facts: what to know first: date, names, versions.
        links: other pages by their address, shown at the top.
        contents: the headings of the page by their id; shown beside a wide page.
        script: more JavaScript, run after the shared script.
    """
    heading = escaped(title)
    bar = "".join(f'<a href="{escaped(address)}">{escaped(name)}</a>' for address, name in (links or {}).items())
    aside = "".join(f'<a href="#{escaped(key)}">{escaped(name)}</a>' for key, name in (contents or {}).items())
    navigation = f'<nav class="contents" aria-label="Contents">{aside}</nav>' if len(contents or {}) > 1 else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{heading}</title>\n'
        f"<style>{_asset('style.css')}</style><script>{_asset('theme.js')}</script></head>\n"
        f'<body><header class="top"><div class="line"><span class="kind">{escaped(kind)}</span><nav>{bar}</nav>'
        '<button class="icon" data-theme-switch type="button" title="Light or dark" aria-label="Switch between light and dark">'
        f"{_THEME_ICON}</button></div><h1>{heading}</h1>"
        + (f'<p class="lead">{_with_code(lead)}</p>' if lead else "")
        + (fact_list(facts) if facts else "")
        + f'</header>\n<div class="page{" with-contents" if navigation else ""}">{navigation}<main>\n{body}\n</main></div>\n'
        f"<script>{_asset('script.js')}{script}</script></body></html>\n"
    )


def fact_list(facts: Mapping[str, Any]) -> str:
    """Names and values, side by side."""
    items = "".join(
        f"<div><dt>{escaped(name)}</dt><dd>{escaped(value)}</dd></div>" for name, value in facts.items() if value
    )
    return f'<dl class="facts">{items}</dl>'


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[Cell | str]],
    *,
    sortable: bool = False,
    footer: Sequence[Cell | str] = (),
    marked: Collection[int] = (),
    label: str = "",
) -> str:
    """A table; the first cell of each row is its heading.

    Args:
        head: the names of the columns.
        rows: the cells of each row.
        sortable: a click on the name of a column sorts the rows.
        footer: a last row that stays where it is.
        marked: the rows whose values differ from each other.
        label: what the table shows, for screen readers.
    """
    rows = list(rows)
    numbers = {
        index
        for row in rows
        for index, cell in enumerate(row)
        if index and isinstance(cell, Cell) and cell.value is not None
    }
    names = [
        f'<th scope="col"{" class=number" if index in numbers else ""}>'
        + (f'<button type="button" class="sort">{escaped(name)}</button></th>' if sortable else f"{escaped(name)}</th>")
        for index, name in enumerate(head)
    ]
    body = "".join(
        f"<tr{' class=differs' if index in marked else ''}>{_cells(row, numbers)}</tr>"
        for index, row in enumerate(rows)
    )
    foot = f"<tfoot><tr>{_cells(footer, numbers)}</tr></tfoot>" if footer else ""
    box = "scroll tall" if len(rows) > MANY_ROWS else "scroll"
    return (
        f'<div class="{box}" tabindex="0" role="region" aria-label="{escaped(label or "Table")}"><table>'
        f"<thead><tr>{''.join(names)}</tr></thead><tbody>{body}</tbody>{foot}</table></div>"
    )


def _cells(row: Sequence[Cell | str], numbers: Collection[int]) -> str:
    cells = [cell if isinstance(cell, Cell) else Cell(cell) for cell in row]
    return "".join(
        f'<th scope="row"{_value(cell)}>{escaped(cell.text)}</th>'
        if not index
        else f"<td{' class=number' if index in numbers else ''}{_value(cell)}>{escaped(cell.text)}</td>"
        for index, cell in enumerate(cells)
    )


def _value(cell: Cell) -> str:
    sorted_by = f' data-value="{cell.value:.9g}"' if cell.value is not None else ""
    return sorted_by + (f' style="--share:{cell.share:.3f}"' if cell.share is not None else "")


def section(key: str, title: str, body: str) -> str:
    """A part of a page with its heading; `body` is HTML."""
    return f'<section id="{escaped(key)}"><h2>{escaped(title)}</h2>{body}</section>'


def card(title: str, body: str, *, wide: bool = False) -> str:
    """A box with a heading; `body` is HTML."""
    heading = f"<h3>{escaped(title)}</h3>" if title else ""
    return f'<div class="card{" wide" if wide else ""}">{heading}{body}</div>'


def plot(title: str, svg: str, *, wide: bool = False) -> str:
    """A figure with its title above it; `svg` is HTML."""
    return f'<figure class="card plot{" wide" if wide else ""}"><figcaption>{escaped(title)}</figcaption>{svg}</figure>'


def grid(parts: Iterable[str]) -> str:
    """Boxes side by side, as many as the width has room for; the parts are HTML."""
    return f'<div class="grid">{"".join(parts)}</div>'


def details(title: str, body: str, *, open: bool = False) -> str:
    """A part that opens with a click; `body` is HTML."""
    return f'<details class="card"{" open" if open else ""}><summary>{escaped(title)}</summary>{body}</details>'


def code(text: str) -> str:
    """A block of code with a button that copies it."""
    return (
        f'<div class="code"><button type="button" class="copy" data-copy>Copy</button>'
        f'<pre tabindex="0"><code>{html.escape(text)}</code></pre></div>'
    )


def tabs(key: str, panels: Mapping[str, str]) -> str:
    """Panels of which one is shown; they are HTML, by the text of their tab. `key` makes their ids."""
    if len(panels) == 1:
        return next(iter(panels.values()))
    buttons = "".join(
        f'<button type="button" role="tab" id="{key}-tab-{index}" aria-controls="{key}-{index}" '
        f'aria-selected="{"false" if index else "true"}"{" tabindex=-1" if index else ""}>{escaped(name)}</button>'
        for index, name in enumerate(panels)
    )
    shown = "".join(
        f'<div role="tabpanel" id="{key}-{index}" aria-labelledby="{key}-tab-{index}"{" hidden" if index else ""}>{panel}</div>'
        for index, panel in enumerate(panels.values())
    )
    return f'<div class="tabs"><div role="tablist">{buttons}</div>{shown}</div>'


@cache
def _asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _with_code(text: str) -> str:
    """Escaped text, with what stands between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped(text))
