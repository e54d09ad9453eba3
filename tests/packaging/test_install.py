"""`make` installs each group once, and pip takes over where uv cannot be had."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.packaging.project import ROOT


def planned(target: str, venv: Path) -> list[str]:
    """The scripts that `make target` would start, with their last argument."""
    command = ["make", "--no-print-directory", "-n", target, f"VENV={venv}", f"PYTHON={sys.executable}"]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [line.split()[-1] for line in lines if "scripts/install.py" in line]


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """An environment in which `make demo` was run."""
    (tmp_path / f".core{str(ROOT).replace('/', '-')}").touch()
    return tmp_path


def test_each_command_installs_what_it_needs(tmp_path: Path) -> None:
    core, trackers, test, docs, tools = (
        f"requirements/{group}.txt" for group in ("core", "trackers", "test", "docs", "tools")
    )
    assert planned("demo", tmp_path) == [core]
    assert planned("test", tmp_path) == [core, trackers, test]
    assert planned("docs", tmp_path) == [docs]
    assert sorted(planned("test-all", tmp_path)) == [core, test, tools, trackers]


def test_nothing_is_installed_twice(venv: Path) -> None:
    assert planned("demo", venv) == []
    assert planned("test", venv) == ["requirements/trackers.txt", "requirements/test.txt"]
    for group in ("trackers", "test"):
        (venv / f".{group}{str(ROOT).replace('/', '-')}").touch()
    assert planned("test", venv) == planned("demo", venv) == []


def test_an_environment_of_another_clone_is_linked_anew(tmp_path: Path) -> None:
    (tmp_path / ".core-elsewhere").touch()
    assert planned("demo", tmp_path) == ["requirements/core.txt"]


def test_pip_takes_over_where_uv_cannot_be_had(tmp_path: Path) -> None:
    """No index can be reached: uv cannot be fetched, but pip installs what lies on the disk."""
    package = tmp_path / "wheels/small-1.0-py3-none-any.whl"
    package.parent.mkdir()
    with zipfile.ZipFile(package, "w") as wheel:
        wheel.writestr("small.py", "answer = 42\n")
        wheel.writestr("small-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: small\nVersion: 1.0\n")
        wheel.writestr(
            "small-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr("small-1.0.dist-info/RECORD", "")
    lock = tmp_path / "small.txt"
    lock.write_text("small==1.0\n")
    nothing = os.environ | {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(package.parent), "PATH": "/usr/bin:/bin"}
    if shutil.which("uv", path=nothing["PATH"]):
        pytest.skip("uv is part of this system")
    command = [sys.executable, str(ROOT / "scripts/install.py"), str(tmp_path / "venv"), str(lock)]
    done = subprocess.run(command, cwd=tmp_path, env=nothing, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "uv cannot be had here; pip takes longer" in done.stdout
    answer = [tmp_path / "venv/bin/python", "-c", "import small; print(small.answer)"]
    assert subprocess.check_output(answer, text=True) == "42\n"


def test_system_packages_that_are_missing_are_named(tmp_path: Path) -> None:
    """With neither dpkg nor apt on the path, everything is missing; the tests go on without."""
    script = ROOT / "scripts/system_packages.py"
    done = subprocess.run(
        [sys.executable, script], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=True
    )
    assert "Not installed: zsh (installing takes root and apt). Skipped tests: completion in zsh." in done.stdout
    assert len(done.stdout.splitlines()) == 5
