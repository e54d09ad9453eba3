"""The documentation site builds without a warning, has every chapter, and can be searched."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages.browser import browser, needs_chromium

ROOT = Path(__file__).parents[2]
CHAPTERS = """quickstart tutorial recipes/index
installation parameters scenario data pipeline model graph training evaluation prediction devices
debugging development changelog""".split()


def build(config: Path, site: Path) -> subprocess.CompletedProcess[str]:
    # without --quiet, which would hide the warnings that --strict counts
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--config-file",
        str(config),
        "--site-dir",
        str(site),
    ]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT / "mkdocs.yml", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_each_broken_link_is_a_warning_that_fails_the_build(tmp_path: Path) -> None:
    links = ["nowhere.md", "#no-such-heading", "index.md#neither"]
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text("# Page\n\n" + "".join(f"[a link]({link})\n" for link in links))
    config = tmp_path / "mkdocs.yml"
    config.write_text(f"INHERIT: {ROOT / 'mkdocs.yml'}\ndocs_dir: docs\nnav: [index.md]\nnot_in_nav: ''\nhooks: []\n")
    done = build(config, tmp_path / "site")
    assert done.returncode != 0
    warnings = [line for line in done.stderr.splitlines() if line.startswith("WARNING")]
    assert [line for link in links for line in warnings if f"'{link}'" in line] == warnings and len(warnings) == 3


def test_every_chapter_is_there_and_can_be_searched(site: Path) -> None:
    found = {
        entry["location"].split("#")[0] for entry in json.loads((site / "search/search_index.json").read_text())["docs"]
    }
    assert {f"{chapter}.html" for chapter in CHAPTERS} <= found


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        assert not re.search(r'(src|rel="stylesheet" href)="(https?:)?//', page), path
        assert "fonts.googleapis" not in page


@needs_chromium
def test_the_search_works_in_pages_opened_from_disk(site: Path, tmp_path: Path) -> None:
    """Without a server a browser neither fetches the index nor starts a worker."""
    with browser(tmp_path) as page:
        page.resize(1280)
        page.open((site / "howto/gpus.html").as_uri())
        page.click(".md-search__input")
        page.write(".md-search__input", "gradient accumulation")
        assert "matching documents" in page.text(".md-search-result__meta", "matching")
        assert "accumulation" in page.text(".md-search-result__list", "accumulation")
        page.click(".md-search-result__link")
        assert page.run("return location.href").startswith(site.as_uri())
        assert "accumulat" in page.text("article", "accumulat")


@pytest.mark.long
@needs_chromium
def test_no_page_scrolls_sideways_at_1280_px(site: Path, tmp_path: Path) -> None:
    wide = {}
    with browser(tmp_path) as page:
        page.resize(1280)
        for path in sorted(site.rglob("*.html")):
            page.open(path.as_uri())
            scrolling = (
                "[...document.querySelectorAll('html, pre, pre > code')].filter(e => e.scrollWidth > e.clientWidth)"
            )
            if found := page.run(f"return {scrolling}.map(e => e.innerText.slice(0, 80))"):
                wide[path.name] = found
    assert not wide


def home(package: str, name: str, stubs: dict[str, dict[str, str]]) -> str:
    """Where a public name is defined, through stubs that take it from each other."""
    module = stubs[package][name]
    return home(module, name, stubs) if name in stubs.get(module, {}) else f"{module}.{name}"


def test_every_public_name_is_in_the_reference_once() -> None:
    stubs = {
        path.parent.relative_to(ROOT).as_posix().replace("/", "."): {
            name: module
            for module, name in re.findall(r"^from ([\w.]+) import (\w+) as ", path.read_text(), re.MULTILINE)
        }
        for path in (ROOT / "scena").rglob("__init__.pyi")
    }
    public = {home(package, name, stubs) for package, names in stubs.items() for name in names}
    pages = (ROOT / "docs/reference").glob("*.md")
    shown = [name for page in pages for name in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE)]
    assert len(public) > 200
    assert len(shown) == len(set(shown)), sorted(name for name in shown if shown.count(name) > 1)
    missing, unknown = (
        public - set(shown),
        set(shown) - public - {"scena.testing.run_scenario_test", "scena.plugins.register"},
    )
    assert not missing | unknown, f"write `::: NAME` on a page of docs/reference: {missing}; not public: {unknown}"


def test_every_decision_is_in_the_index() -> None:
    folder = ROOT / "docs/decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    assert not [path.name for path in folder.glob("*.md") if path.name != "README.md" and f"({path.name})" not in index]
