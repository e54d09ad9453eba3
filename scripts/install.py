"""Installs a group of pinned packages into an environment; `make` calls it.

    python scripts/install.py .venv requirements/core.txt

uv installs, because it is several times faster than pip; pip fetches uv, and takes over where
uv cannot be had. Runs on the interpreter that the environment is made for, so it needs nothing but the standard library.
"""

from __future__ import annotations  # so that an older Python gets as far as the message about it

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
REQUIREMENTS = ROOT / "requirements"
OLDEST = (3, 11)


def main(venv: Path, lock: Path) -> None:
    """Installs what `lock` pins, and what belongs to a group beside its lock."""
    start = time.monotonic()
    python = create_environment(venv)
    arguments = ["--no-deps", "-r", str(lock)]
    if lock.stem == "core":
        arguments += ["--editable", str(ROOT)]
    if lock.stem == "test":
        arguments += ["-r", str(REQUIREMENTS / "no-deps.txt")]
    uv = find_uv(venv, python)
    count = sum("==" in line for line in lock.read_text().splitlines())
    say(f"Installing {count} packages of {lock} with {'uv' if uv else 'pip'}")
    # Many processes of the tests import the same packages; a demo is quicker if it compiles only what it imports.
    if not (
        uv
        and install_with_uv(
            uv, python, [*arguments, *(["--compile-bytecode"] if lock.stem in ("test", "trackers") else [])]
        )
    ):
        run(*pip(python), "install", "--no-compile", *arguments)
    say(f"{lock.stem} is ready in {venv} in {time.monotonic() - start:.0f} s")


def create_environment(venv: Path) -> Path:
    """The interpreter of the environment, which is created if it is not there."""
    if sys.version_info < OLDEST:
        sys.exit(
            f"Scena needs Python 3.11 or newer; this is {sys.version.split()[0]}. Name another: make PYTHON=python3.11"
        )
    python = venv / "bin" / "python"
    if not python.exists():
        say(f"Creating {venv} with Python {sys.version.split()[0]}")
        run(sys.executable, "-m", "venv", "--without-pip", str(venv))
    return python


def find_uv(venv: Path, python: Path) -> str | None:
    """uv of the environment or of the path; otherwise it is installed, together with pip. None if that fails."""
    own = venv / "bin" / "uv"
    if uv := str(own) if own.exists() else shutil.which("uv"):
        return uv
    say("Fetching uv")
    wanted = ["--no-deps", "--no-compile", "--only-binary", ":all:", "-r", str(REQUIREMENTS / "installer.txt")]
    if importlib.util.find_spec("pip"):  # saves the seconds that `ensurepip` takes
        done = call(sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", *wanted)
    else:
        done = call(*pip(python), "install", "--quiet", *wanted)
    if not (done and own.exists()):
        say("uv cannot be had here; pip takes longer")
        return None
    return str(own)


def install_with_uv(uv: str, python: Path, arguments: list[str]) -> bool:
    if "PIP_INDEX_URL" in os.environ:  # uv reads no settings of pip
        os.environ.setdefault("UV_DEFAULT_INDEX", os.environ["PIP_INDEX_URL"])
    if call(uv, "pip", "install", "--python", str(python), *arguments, "-r", str(REQUIREMENTS / "installer.txt")):
        return True
    say("uv failed; trying pip, which takes longer but reads pip's settings")
    return False


def pip(python: Path) -> list[str]:
    """The command that starts pip of the environment, which gets one if it has none."""
    missing = subprocess.run([python, "-c", "import pip"], capture_output=True, check=False).returncode != 0
    if missing and not call(str(python), "-m", "ensurepip"):
        sys.exit("This Python has neither pip nor ensurepip. On Debian and Ubuntu: apt install python3-venv")
    return [str(python), "-m", "pip"]


def say(text: str) -> None:
    print(f"==> {text}", flush=True)


def call(*command: str) -> bool:
    return subprocess.run(command, check=False).returncode == 0


def run(*command: str) -> None:
    if not call(*command):
        sys.exit(f"Failed: {' '.join(command)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
