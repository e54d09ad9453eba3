"""The code in the documentation and in the README runs; what it shows is what happens."""

import ast
import re
from pathlib import Path

import pytest

from tests.docs.blocks import PAGES, ROOT, Block, read_blocks, read_commands, repository_text
from tests.zygote import Zygote

MOST_UNTESTED = 6
BLOCKS = {page: read_blocks(page) for page in PAGES}


def is_run(block: Block) -> bool:
    return block.language in ("python", "console") or block.title is not None


LONG = {f"docs/howto/{name}.md" for name in ("cats-and-dogs", "checkpoints", "gpus", "mixed-precision", "multi-worker")}
"""Pages that train several times."""
LONG.add("docs/jax.md")  # compiles for half a minute; tests/backends/jax runs the same commands


def parameter(page: Path) -> object:
    name = str(page.relative_to(ROOT))
    return pytest.param(page, id=name, marks=[pytest.mark.long] if name in LONG else [])


@pytest.mark.parametrize("page", [parameter(page) for page in PAGES if any(map(is_run, BLOCKS[page]))])
def test_code_of_the_page_runs(page: Path, tmp_path: Path, zygote: Zygote) -> None:
    folder, log = tmp_path / "folder", tmp_path / "log"
    folder.mkdir()
    status = zygote.run(page, function="tests.docs.run_page:run_page", folder=folder, log=log)
    assert status == 0, log.read_text()


def test_few_blocks_are_not_tested_and_each_says_why() -> None:
    untested = [block for blocks in BLOCKS.values() for block in blocks if block.no_test is not None]
    assert all(block.no_test for block in untested)
    assert len(untested) <= MOST_UNTESTED, [block.place for block in untested]


def test_pages_show_real_code_when_read_as_markdown() -> None:
    """An include is resolved only where the site is built."""
    assert not [page for page in PAGES if "--8<--" in page.read_text(encoding="utf-8")]


def test_every_block_names_its_language() -> None:
    assert not [block.place for blocks in BLOCKS.values() for block in blocks if not block.language]


WIDEST = 100
"""Characters of code that fit beside both sidebars of a window of 1280 px."""


def test_code_fits_into_a_window_of_1280_px() -> None:
    """Longer lines wrap. Copied files may, as their formatter allows more, and so may output."""
    wide = []
    for block in (block for blocks in BLOCKS.values() for block in blocks):
        if not (block.title and repository_text(block.title)):
            lines = [
                line for line in block.code.splitlines() if block.language != "console" or line[:2] in ("$ ", "  ")
            ]
            wide += [f"{block.place}: {line}" for line in lines if len(line) > WIDEST]
    assert not wide, "\n".join(wide)


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        named = set(re.findall(r"(?:^|`|&& )make ([a-z-]+)", text, re.MULTILINE))
        groups = {f"setup-{file.stem}" for file in (ROOT / "requirements").glob("*.txt")}
        assert named <= targets | groups, f"{page.relative_to(ROOT)}: {named - targets}"


OUTSIDE = [*ROOT.glob("*.md"), *ROOT.glob("examples/*/README.md")]


@pytest.mark.parametrize("page", OUTSIDE, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_pages_outside_the_site_lead_somewhere(page: Path) -> None:
    """MkDocs checks the links of docs/; these pages are read where they are."""
    for link in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        if "://" not in link:
            target = page.parent / path if path else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


def anchors(page: Path) -> set[str]:
    """Those that a forge gives to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_readme_counts_its_lines_of_code() -> None:
    """Blank lines and docstrings are no code."""
    shown = next(block for block in BLOCKS[ROOT / "README.md"] if block.title == "churn.py")
    tree = ast.parse(shown.code)
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
    code = {number for number, line in enumerate(shown.code.splitlines(), 1) if line.strip()}
    code -= {number for node in texts for number in range(node.lineno, (node.end_lineno or 0) + 1)}
    assert f"## A scenario in {len(code)} lines\n" in (ROOT / "README.md").read_text(encoding="utf-8")


PAGE = """One
<!-- test: run, exit 2 -->
```console
$ scena a \\
    b
shown
$ scena c
```
```python title="x.py"
1
```
"""


def test_reading_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    console, titled = read_blocks(page)
    assert (console.language, console.test, console.line) == ("console", "run, exit 2", 4)
    assert [(command.text.split(), command.shown) for command in read_commands(console)] == [
        (["scena", "a", "b"], ["shown"]),
        (["scena", "c"], []),
    ]
    assert (titled.title, titled.test, titled.padded().splitlines()[9]) == ("x.py", "", "1")


def test_a_title_names_a_file_or_parts_of_it() -> None:
    path = "examples/faces/model.py"
    whole = repository_text(path)
    assert whole == (ROOT / path).read_text(encoding="utf-8")
    parts = repository_text(f"{path}:HeldOutModel,FaceGraph")
    assert parts is not None
    assert re.findall(r"^(?:class|def) (\w+)", parts, re.MULTILINE) == ["HeldOutModel", "FaceGraph"]
    assert all(part in whole for part in parts.strip().split("\n\n\n"))
    assert repository_text("my/params.py") is None
