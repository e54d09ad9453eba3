"""What the tests of packaging read: the project's settings and its lock files."""

import re
import tomllib
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
SETTINGS: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT: dict[str, Any] = SETTINGS["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
PYTHONS = [found[1] for each in PROJECT["classifiers"] if (found := re.search(r"Python :: (3\.\d+)$", each))]
LOCKS = sorted(path.stem for path in (ROOT / "requirements").glob("*.txt") if path.stem != "no-deps")


def pins(group: str) -> dict[str, Requirement]:
    """The packages of a lock, by their normalized names."""
    lines = (ROOT / "requirements" / f"{group}.txt").read_text().splitlines()
    found = [Requirement(line) for line in lines if not line.startswith("#")]
    return {normalized(each.name): each for each in found}


def normalized(name: str) -> str:
    """`PyYAML_env.tag` -> `pyyaml-env-tag`, as an index compares names."""
    return re.sub(r"[-_.]+", "-", name).lower()
