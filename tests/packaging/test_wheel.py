"""The wheel works without the clone: the command line starts, and a shipped scenario trains."""

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


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
    scena = environment / "bin/scena"
    run(
        scena,
        *"train examples.tutorial.min --trainer.epochs 1 --train.limit 64 --val.limit 32 --trainer.output_dir out".split(),
        cwd=folder,
    )
    assert (folder / "out/export").is_dir()


def test_the_wheel_holds_the_package_with_its_examples_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"scena"}
    assert {"scena/py.typed", "scena/commands/main.py", "scena/examples/tutorial/min/scenario.py"} <= set(names)
    assert not [name for name in names if "tests" in Path(name).parts or "__pycache__" in name]


def test_an_installed_wheel_shows_its_help_outside_the_clone(environment: Path, tmp_path: Path) -> None:
    assert "train" in run(environment / "bin/scena", "--help", cwd=tmp_path)
    where = run(environment / "bin/python", "-c", "import scena; print(scena.__file__)", cwd=tmp_path)
    assert where.startswith(str(environment))


def test_an_installed_wheel_trains_a_shipped_scenario(environment: Path, tmp_path: Path) -> None:
    train(environment, tmp_path)


@pytest.mark.long
def test_the_wheel_alone_brings_everything_into_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    run(sys.executable, "-m", "venv", environment, cwd=tmp_path)
    lock = ROOT / "requirements/core.txt"
    run(environment / "bin/python", *"-m pip install --quiet -c".split(), lock, f"{wheel}[examples]", cwd=tmp_path)
    assert "train" in run(environment / "bin/scena", "--help", cwd=tmp_path)
    train(environment, tmp_path)
