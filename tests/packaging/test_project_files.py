"""Files that only a forge, a builder or a librarian reads: they parse, and agree with pyproject.toml."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

import scena
from tests.packaging.project import EXTRAS, PROJECT, PYTHONS, ROOT

GITHUB = ROOT / ".github"


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def test_every_extra_is_documented() -> None:
    page = (ROOT / "docs/installation.md").read_text()
    documented = re.findall(r"^\| `([a-z]+)` \| ", page.partition("| extra |")[2].partition("\n\n")[0], re.MULTILINE)
    assert sorted(documented) == sorted(EXTRAS)


@pytest.mark.parametrize("path", sorted(GITHUB.rglob("*.yml")), ids=lambda path: path.name)
def test_files_of_the_forge_parse(path: Path) -> None:
    assert isinstance(read(path), dict)


@pytest.mark.parametrize(
    ("name", "job", "command"), [("test", "test", ".ci/run"), ("nightly", "test-all", "make test-all")]
)
def test_workflows_run_our_commands_on_every_supported_python(name: str, job: str, command: str) -> None:
    described = read(GITHUB / f"workflows/{name}.yml")["jobs"][job]
    assert described["strategy"]["matrix"]["python"] == PYTHONS
    assert command in [step.get("run") for step in described["steps"]]


def test_the_oldest_python_is_the_same_everywhere() -> None:
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"
    assert f"Python {PYTHONS[0]} to {PYTHONS[-1]}" in (ROOT / "docs/installation.md").read_text()


def test_the_citation_names_this_version() -> None:
    citation = read(ROOT / "CITATION.cff")
    assert citation["version"] == scena.__version__
    assert citation["repository-code"] == PROJECT["urls"]["Source"]


def test_every_address_of_the_project_is_that_of_its_urls() -> None:
    """The one in [project.urls] is meant; wherever a format wants it spelled out again, it is the same."""
    source = PROJECT["urls"]["Source"]
    owner, name = source.removeprefix("https://github.com/").split("/")
    listed = subprocess.run(["git", "grep", "-hoIE", rf"(github|githubusercontent)\.com/[A-Za-z0-9_.-]+/{name}\b"],
                            cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()  # fmt: skip
    assert all(address.split("/")[1] == owner for address in listed), listed
    assert len(listed) == 9  # [project.urls] 4, links on PyPI 2, citation, issue form, `git clone`
    assert all(address.startswith(source) for address in PROJECT["urls"].values())


def test_the_dockerfile_copies_what_exists_and_is_not_ignored() -> None:
    """No builder here: at least every COPY from the clone has its source, and `.dockerignore` lets it through."""
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    sources = [source for line in copied for source in line.split()]
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert len(sources) > 5
    assert not [source for source in sources if not (ROOT / source).exists() or source.split("/")[0] not in kept]


def test_the_dockerfile_serves_and_trains() -> None:
    stages = dict(
        re.findall(
            r"^FROM \S+ AS (\w+)\n(.*?)(?=^FROM|\Z)", (ROOT / "Dockerfile").read_text(), re.MULTILINE | re.DOTALL
        )
    )
    assert 'ENTRYPOINT ["scena", "serve"]' in stages["serve"] and 'ENTRYPOINT ["scena"]' in stages["train"]
    assert "USER 1000" in stages["base"]
