"""Copies files of the repository into the blocks that show them: `python -m tests.docs.copy_files` (in `make format`)."""

import textwrap
from pathlib import Path

from tests.docs.blocks import FENCE, PAGES, TITLE, repository_text


def copy_files(page: Path) -> None:
    """Brings each block whose title names a file of the repository up to date with that file."""
    text = page.read_text(encoding="utf-8")
    for fence in reversed(list(FENCE.finditer(text))):
        title = TITLE.search(fence["info"])
        original = repository_text(title[1]) if title else None
        if original is not None:
            code = textwrap.indent(original, fence["indent"])
            text = text[: fence.start("code")] + code + text[fence.end("code") :]
    if text != page.read_text(encoding="utf-8"):
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for page in PAGES:
        copy_files(page)
