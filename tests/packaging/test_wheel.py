"""The wheel works without the clone: the command line starts, and a shipped scenario trains."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import scena
from tests.packaging.project import LOCKS, PROJECT, PYTHONS, ROOT


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, *"-m pip wheel --quiet --no-deps --no-build-isolation -w".split(), folder, ROOT, cwd=folder)
    return next(folder.glob("scena-*.whl"))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that holds the wheel, and sees the packages of this one, but not the clone."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    # A path named in a .pth file is searched for packages, but its own .pth files (the editable scena) are not read.
    site_packages = next(folder.glob("lib/python*/site-packages"))
    (site_packages / "outer.pth").write_text(sysconfig.get_path("purelib"))
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin/python"]
    run(*pip, "install", "--quiet", "--no-deps", "--ignore-installed", wheel, cwd=folder)
    return folder


def train(environment: Path, folder: Path) -> None:
    run(
        environment / "bin/scena",
        *"train examples.tutorial.min --trainer.epochs 1 --train.limit 64 --val.limit 32 --trainer.output_dir out".split(),
        cwd=folder,
    )
    assert (folder / "out/export").is_dir()


def test_the_wheel_holds_the_package_with_its_examples_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"scena"}
    assert {"scena/py.typed", "scena/commands/main.py", "scena/examples/tutorial/min/scenario.py"} <= set(names)
    assert not [name for name in names if "tests" in Path(name).parts or "__pycache__" in name]


def test_the_description_on_pypi_is_the_readme_with_links_to_this_release(wheel: Path) -> None:
    """PyPI resolves no relative links; tests/docs/test_pages.py checks that their targets exist."""
    archive = zipfile.ZipFile(wheel)
    metadata = archive.read(next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))).decode()
    expected = (ROOT / "README.md").read_text(encoding="utf-8")
    forge = PROJECT["urls"]["Source"]
    images = forge.replace("github.com", "raw.githubusercontent.com") + f"/v{scena.__version__}/"
    for bang, text, link in re.findall(r"(!?)\[([^\]]*)\]\((?!https:)([^)]+)\)", expected):
        target = f"{images if bang else f'{forge}/blob/v{scena.__version__}/'}{link}"
        expected = expected.replace(f"{bang}[{text}]({link})", f"{bang}[{text}]({target})")
    assert expected.count(images) == 1 and expected.count(f"{forge}/blob/") > 10
    assert metadata.strip().endswith(expected.strip())
    assert "Description-Content-Type: text/markdown" in metadata


def test_an_installed_wheel_shows_its_help_outside_the_clone(environment: Path, tmp_path: Path) -> None:
    assert "train" in run(environment / "bin/scena", "--help", cwd=tmp_path)
    where = run(environment / "bin/python", "-c", "import scena; print(scena.__file__)", cwd=tmp_path)
    assert where.startswith(str(environment))


def test_an_installed_wheel_trains_a_shipped_scenario(environment: Path, tmp_path: Path) -> None:
    train(environment, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("version", PYTHONS)
def test_the_wheel_alone_trains_in_an_empty_environment(version: str, wheel: Path, tmp_path: Path) -> None:
    """On each supported Python that is here: on the path, or installed by pyenv."""
    python = find_python(version) or pytest.skip(f"no Python {version} here")
    environment = tmp_path / "environment"
    uv = [sys.executable, "-m", "uv"]
    run(*uv, "venv", "--quiet", "--python", python, environment, cwd=tmp_path)
    lock = ROOT / "requirements/core.txt"
    run(
        *uv,
        *"pip install --quiet --python".split(),
        environment / "bin/python",
        "--constraints",
        lock,
        wheel,
        cwd=tmp_path,
    )
    assert version in run(environment / "bin/python", "--version", cwd=tmp_path)
    assert "train" in run(environment / "bin/scena", "--help", cwd=tmp_path)
    train(environment, tmp_path)


def find_python(version: str) -> Path | None:
    """An interpreter that starts; the shims of pyenv are on the path whether or not theirs is selected."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    on_path = shutil.which(f"python{version}")
    for candidate in [*([Path(on_path)] if on_path else []), *sorted(pyenv.glob(f"versions/{version}.*/bin/python"))]:
        if subprocess.run([candidate, "--version"], capture_output=True, check=False).returncode == 0:
            return candidate
    return None


@pytest.mark.long
@pytest.mark.parametrize("version", PYTHONS)
@pytest.mark.parametrize("group", LOCKS)
def test_every_pinned_package_has_a_wheel(group: str, version: str, tmp_path: Path) -> None:
    """Nothing has to be compiled; one package, needed by TensorFlow Datasets, has no wheel but no compiled code either."""
    wanted = [f"--python-version={version}", "--python-platform=linux", "--only-binary=:all:", "--no-binary=promise"]
    lock = ROOT / f"requirements/{group}.txt"
    run(
        sys.executable,
        *"-m uv pip install --quiet --no-deps --dry-run --target".split(),
        tmp_path,
        *wanted,
        "-r",
        lock,
        cwd=tmp_path,
    )
