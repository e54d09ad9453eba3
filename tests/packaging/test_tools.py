"""Linters look at the files that nothing here can run: containers, workflows, the citation; type checkers at a user's scenario."""

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.packaging.project import ROOT

pytestmark = pytest.mark.long  # `make test-all` installs the tools
SCRIPTS = Path(sysconfig.get_path("scripts"))


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_dockerfile_is_clean() -> None:
    run(SCRIPTS / "hadolint", "Dockerfile")


@pytest.mark.parametrize(
    ("schema", "pattern"),
    [
        ("citation-file-format", "CITATION.cff"),
        ("dependabot", ".github/dependabot.yml"),
        ("github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
        ("github-issue-forms", ".github/ISSUE_TEMPLATE/[!c]*.yml"),
        ("github-workflows", ".github/workflows/*.yml"),
    ],
)
def test_files_of_the_forge_follow_their_schema(schema: str, pattern: str) -> None:
    files = sorted(ROOT.glob(pattern))
    assert files
    run(SCRIPTS / "check-jsonschema", "--default-filetype", "yaml", "--builtin-schema", f"vendor.{schema}", *files)


def test_twine_accepts_what_is_built(tmp_path: Path) -> None:
    run(sys.executable, "-m", "hatchling", "build", "-d", tmp_path)
    files = sorted(tmp_path.iterdir())
    assert [path.suffix for path in files] == [".whl", ".gz"]
    run(sys.executable, "-m", "twine", "check", "--strict", *files)


def test_tutorials_and_templates_are_clean_for_pyright(tmp_path: Path) -> None:
    """mypy reads them in `make check`."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    check = {"include": ["examples/tutorial", "examples/template"], "typeCheckingMode": "standard"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(check))
    said = run(sys.executable, "-m", "pyright", "--stats", "--pythonpath", sys.executable, cwd=tmp_path)
    assert "0 errors" in said and "No source files found" not in said


@pytest.mark.parametrize("template", ["general", "listfile", "table"])
def test_a_new_scenario_is_clean_for_type_checkers(template: str, tmp_path: Path) -> None:
    run(SCRIPTS / "scena", "new", "words", "--template", template, cwd=tmp_path)
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"include": ["words"], "typeCheckingMode": "standard"}))
    assert "0 errors" in run(sys.executable, "-m", "pyright", "--pythonpath", sys.executable, cwd=tmp_path)
    untyped = "[mypy]\nstrict = true\n[mypy-keras.*]\nignore_missing_imports = true\nfollow_imports = skip\n"
    (tmp_path / "mypy.ini").write_text(
        untyped + "[mypy-tensorflow.*]\nignore_missing_imports = true\nfollow_imports = skip\n"
    )
    run(sys.executable, "-m", "mypy", "words", cwd=tmp_path)
