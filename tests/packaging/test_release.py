"""`scripts/release.py` finds what is not ready, and publishes nothing."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.project import ROOT

FILES = (
    "scripts/release.py",
    "scena/__init__.py",
    "CHANGELOG.md",
    "CITATION.cff",
    "pyproject.toml",
    "requirements/core.txt",
)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with the files that a release is about, ready for it."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n## 1.2.3 - 2026-11-17\n\n- All of it.\n")
    change(tmp_path / "scena/__init__.py", r'__version__ = ".+"', '__version__ = "1.2.3"')
    change(tmp_path / "CITATION.cff", r"\nversion: .+", "\nversion: 1.2.3")
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    return tmp_path


def change(path: Path, pattern: str, text: str) -> None:
    path.write_text(re.sub(pattern, text, path.read_text()))


def git(clone: Path, *arguments: str) -> str:
    author = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.org"]
    return subprocess.run(["git", *author, *arguments], cwd=clone, capture_output=True, text=True, check=True).stdout


def commit(clone: Path) -> None:
    git(clone, "add", "--all")
    git(clone, "commit", "-qm", "changed")


def checked(clone: Path) -> dict[str, str]:
    """What the script says to each check."""
    command = [sys.executable, "scripts/release.py", "--tag"]
    done = subprocess.run(command, cwd=clone, capture_output=True, text=True, check=False)
    assert done.returncode == 1, "the build cannot work: most files are missing"
    return {
        line[8:].partition(": ")[0]: line[:6].strip() + " " + line.partition(": ")[2]
        for line in done.stdout.splitlines()
        if line[:2] in ("ok", "FA")
    }


def test_what_is_ready_passes_and_a_failed_build_creates_no_tag(clone: Path) -> None:
    found = checked(clone)
    assert [name for name, text in found.items() if text.startswith("ok")] == [
        "version",
        "changelog",
        "citation",
        "working tree",
        "pins",
    ]
    assert found["build"].startswith("FAILED")
    assert git(clone, "tag") == ""


def test_everything_that_is_not_ready_is_named(clone: Path) -> None:
    change(clone / "CHANGELOG.md", "## Unreleased\n", "## Unreleased\n\n- One more.\n")
    change(clone / "CITATION.cff", "version: 1.2.3", "version: 1.2.2")
    change(clone / "requirements/core.txt", "keras==.*\n", "")
    found = checked(clone)
    assert (
        found["changelog"] == "FAILED CHANGELOG.md has changes under Unreleased: move them to `## 1.2.3 - YYYY-MM-DD`"
    )
    assert found["citation"] == "FAILED CITATION.cff: set `version: 1.2.3`"
    assert found["working tree"] == "FAILED 3 files are not committed, such as CHANGELOG.md"
    assert found["pins"] == "FAILED requirements/core.txt does not pin keras: run `make lock`"


def test_a_released_version_is_not_released_again(clone: Path) -> None:
    git(clone, "tag", "v1.2.3")
    assert (
        checked(clone)["working tree"] == "FAILED the tag v1.2.3 exists already: set a new version in scena/__init__.py"
    )


def test_unknown_arguments_are_refused() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/release.py", "--publish"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and "usage: python scripts/release.py [--tag]. Received: --publish" in done.stderr
