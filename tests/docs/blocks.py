"""Reading the code blocks of a Markdown page. What each kind of block means is described in docs/development.md."""

import ast
import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
NOTEBOOKS = ROOT / "docs" / "notebooks"  # test_notebooks.py runs them
_DOCS = sorted(page for page in (ROOT / "docs").rglob("*.md") if page.parent != NOTEBOOKS)
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *_DOCS]

FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<code>.*?)^(?P=indent)``` *$", re.MULTILINE | re.DOTALL)
REMARK = re.compile(r"<!--\s*(?P<kind>no-test|test):\s*(?P<text>(?:(?!-->).)*?)\s*-->\s*\Z", re.DOTALL)
TITLE = re.compile(r'title="([^"]+)"')


@dataclass
class Block:
    """One fenced block: its language, the file it stands for, and what a remark above it says about testing."""

    page: Path
    line: int  # of its first line of code, counted from 1
    language: str
    title: str | None
    code: str
    test: str = ""  # from <!-- test: … -->
    no_test: str | None = None  # from <!-- no-test: reason -->

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    def padded(self) -> str:
        """The code behind as many empty lines as stand above it, so that a traceback points into the page."""
        return "\n" * (self.line - 1) + self.code


@dataclass
class Command:
    """One `$ …` of a console block, and the output shown below it."""

    text: str
    shown: list[str]


def repository_text(title: str) -> str | None:
    """The text that a block of this title shows, or None if the title names no file of the repository.

    `path.py` is the whole file, `path.py:First,second` the classes and functions of these names.
    """
    path, _, names = title.partition(":")
    if not (ROOT / path).is_file():
        return None
    text = (ROOT / path).read_text(encoding="utf-8")
    if names:
        parts = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
        text = "\n\n\n".join(str(ast.get_source_segment(text, parts[name])) for name in names.split(","))
    return text.strip() + "\n"


def read_blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    blocks = []
    for fence in FENCE.finditer(text):
        language, _, options = fence["info"].strip().partition(" ")
        title = TITLE.search(options)
        line = text.count("\n", 0, fence.start("code")) + 1
        block = Block(page, line, language, title[1] if title else None, textwrap.dedent(fence["code"]))
        if remark := REMARK.search(text, 0, fence.start()):
            if remark["kind"] == "test":
                block.test = remark["text"]
            else:
                block.no_test = remark["text"]
        blocks.append(block)
    return blocks


def read_commands(block: Block) -> list[Command]:
    """The commands of a console block; a backslash at the end of a line joins the next one."""
    commands: list[Command] = []
    for line in block.code.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            commands.append(Command(line[2:], []))
        elif commands:
            commands[-1].shown.append(line)
    return commands
