"""Follows the checklist of a release: `make release`.

Checks the versions, the changelog and the working tree, builds the wheel and the source archive, and lets twine look at them. It
changes nothing outside `dist`; with --tag, and only if every check passes, it creates the tag. Publishing stays with a person: the
last lines say how.
"""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]


class NotReadyError(Exception):
    """A check that failed, and what to do."""


def version() -> str:
    """The version that is about to be released; `scena/__init__.py` is the only place where it is set."""
    found = re.search(r'^__version__ = "(.+)"$', (ROOT / "scena/__init__.py").read_text(), re.MULTILINE)
    if not found or not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", found[1]):
        raise NotReadyError("scena/__init__.py sets no __version__ of the form 1.2.3")
    return found[1]


def check_changelog() -> str:
    """The section of the version comes first, has a date, and nothing is left under Unreleased."""
    text = (ROOT / "CHANGELOG.md").read_text()
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    unreleased = next((part for part in sections if part.startswith("Unreleased")), "")
    if unreleased.partition("\n")[2].strip():
        raise NotReadyError(f"CHANGELOG.md has changes under Unreleased: move them to `## {version()} - YYYY-MM-DD`")
    released = [part.partition("\n")[0] for part in sections if part != unreleased]
    if not released or not re.fullmatch(re.escape(version()) + r" - \d{4}-\d\d-\d\d", released[0]):
        raise NotReadyError(f"the first section of CHANGELOG.md is not `## {version()} - YYYY-MM-DD`")
    return released[0]


def check_citation() -> str:
    """CITATION.cff names the same version."""
    if f"\nversion: {version()}\n" not in (ROOT / "CITATION.cff").read_text():
        raise NotReadyError(f"CITATION.cff: set `version: {version()}`")
    return version()


def check_tree() -> str:
    """Everything is committed, and the tag is free."""
    if changed := run("git", "status", "--porcelain").splitlines():
        raise NotReadyError(f"{len(changed)} files are not committed, such as {changed[0][3:]}")
    if run("git", "tag", "--list", f"v{version()}"):
        raise NotReadyError(f"the tag v{version()} exists already: set a new version in scena/__init__.py")
    return run("git", "rev-parse", "--short", "HEAD")


def check_pins() -> str:
    """Every dependency of the package is pinned, so what is released is what was tested."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = [re.split(r"[\[<>=~! ]", each)[0].lower().replace("_", "-") for each in project["dependencies"]]
    pinned = {line.partition("==")[0] for line in (ROOT / "requirements/core.txt").read_text().splitlines()}
    if missing := sorted(set(names) - pinned):
        raise NotReadyError(f"requirements/core.txt does not pin {', '.join(missing)}: run `make lock`")
    return f"{len(names)} dependencies"


def build() -> str:
    """Wheel and source archive, which twine finds fit to be uploaded."""
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    run(sys.executable, "-m", "hatchling", "build", "-d", "dist")
    files = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "dist").iterdir())
    run(sys.executable, "-m", "twine", "check", "--strict", *files)
    return ", ".join(files)


def run(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotReadyError(f"`{' '.join(command)}` failed:\n{done.stdout}{done.stderr}".rstrip())
    return done.stdout.rstrip()


CHECKS: dict[str, Callable[[], str]] = {
    "version": version,
    "changelog": check_changelog,
    "citation": check_citation,
    "working tree": check_tree,
    "pins": check_pins,
    "build": build,
}


def main(arguments: list[str]) -> int:
    """Runs every check, also after one that failed; the status is the number of those."""
    if unknown := [argument for argument in arguments if argument != "--tag"]:
        print(f"usage: python scripts/release.py [--tag]. Received: {' '.join(unknown)}", file=sys.stderr)
        return 2
    failed = 0
    for name, check in CHECKS.items():
        try:
            print(f"ok      {name}: {check()}", flush=True)
        except NotReadyError as error:
            failed += 1
            print(f"FAILED  {name}: {error}", flush=True)
    if failed:
        print(f"\n{failed} of {len(CHECKS)} checks failed; nothing was tagged.")
        return 1
    tag = f"v{version()}"
    if "--tag" in arguments:
        run("git", "tag", "--annotate", tag, "--message", f"Scena {version()}")
    print(f"""
Ready. What is left to a person:
  make test-all                               # on every supported Python; CI does it each night
  {"" if "--tag" in arguments else "make release TAG=1 && "}git push origin {tag}
  .venv/bin/python -m twine upload dist/*""")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
