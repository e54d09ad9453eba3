"""Writes the lock files of `requirements`: one for each group, with the same versions in all that share an environment.

    make lock                  # pins stay; only what pyproject.toml adds or forbids changes
    make lock UPGRADE=all      # the newest allowed versions
    make lock UPGRADE=keras    # the newest allowed version of some packages

Everything is resolved together first, for all supported versions of Python, and the groups are taken from that. No index
is named in the files.
"""

import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
REQUIREMENTS = ROOT / "requirements"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
TRACKERS = ("mlflow", "wandb")
LEFT_OUT = ("gpu", "trackio", *TRACKERS)  # gigabytes of CUDA; locked on their own
EXTRAS = [f"--extra={name}" for name in PROJECT["project"]["optional-dependencies"] if name not in LEFT_OUT]
EVERYWHERE = {"sys_platform == 'linux'", "platform_python_implementation == 'CPython'", "python_full_version < '3.14'"}

GROUPS = {
    "installer": (["--group=installer"], "What installs the rest."),
    "core": (["pyproject.toml"], "What Scena itself needs: `make demo` installs it."),
    "test": (
        ["pyproject.toml", *EXTRAS, "--group=test", "--group=docs"],
        "All extras but trackers, tests, format, lint, types: `make test`.",
    ),
    "trackers": (
        ["pyproject.toml", *(f"--extra={name}" for name in TRACKERS)],
        "The extras of trackers: `make test` installs them, too.",
    ),
    "docs": (["--group=docs"], "What builds the documentation: `make docs`. No TensorFlow."),
    "tools": (["--group=tools"], "Checks that only `make test-all` and `make release` run."),
    "bench": (["pyproject.toml", "--group=bench"], "What the benchmarks compare with: `make setup-bench`."),
}
ALONE = {
    "trackio": (
        ["pyproject.toml", "--extra=trackio"],
        "trackio with older packages than the rest, for a long test in an environment of its own.",
    ),
    "mlflow-server": (["--group=mlflow-server"], "An MLflow server for a long test, in an environment of its own."),
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        everything = Path(folder) / "everything.txt"
        pins = {line for name in GROUPS for line in pinned(REQUIREMENTS / f"{name}.txt")}
        everything.write_text("\n".join(sorted(pins)))  # uv keeps the versions that its output file holds
        upgrade = os.environ.get("UPGRADE", "").split()
        wanted = ["--upgrade"] if upgrade == ["all"] else [f"--upgrade-package={name}" for name in upgrade]
        sources = {source: None for arguments, _ in GROUPS.values() for source in arguments}  # in order, each once
        resolve([*sources, *wanted], everything)
        everything.write_text("\n".join(pinned(everything)))
        for name, (arguments, purpose) in GROUPS.items():
            path = Path(folder) / f"{name}.txt"
            resolve([*arguments, f"--constraints={everything}"], path)
            write(name, purpose, pinned(path))
        for name, (arguments, purpose) in ALONE.items():
            path = Path(folder) / f"{name}.txt"
            path.write_text("\n".join(pinned(REQUIREMENTS / f"{name}.txt")))
            resolve([*arguments, *wanted], path)
            write(name, purpose, pinned(path))


def write(name: str, purpose: str, pins: list[str]) -> None:
    (REQUIREMENTS / f"{name}.txt").write_text("\n".join([f"# {purpose} Written by `make lock`.", *pins]) + "\n")
    print(f"requirements/{name}.txt: {len(pins)} packages")


def resolve(arguments: list[str], output: Path) -> None:
    command = [
        "-m",
        "uv",
        "pip",
        "compile",
        "--quiet",
        "--universal",
        "--python-version=3.11",
        "--fork-strategy=fewest",
    ]
    shape = ["--no-header", "--no-annotate", f"--output-file={output}"]
    done = subprocess.run([sys.executable, *command, *shape, *arguments], cwd=ROOT, check=False)
    if done.returncode:
        sys.exit("The packages of pyproject.toml cannot be resolved together; nothing was written.")


def pinned(path: Path) -> list[str]:
    """Its lines, without the markers that hold wherever Scena runs."""
    lines = []
    for line in path.read_text().splitlines() if path.exists() else []:
        if "==" in line:
            pin, _, marker = line.partition(" ; ")
            left = [part for part in marker.split(" and ") if part and part not in EVERYWHERE]
            lines.append(f"{pin} ; {' and '.join(left)}" if left else pin)
    return lines


if __name__ == "__main__":
    main()
