"""`scena new FOLDER`: writes a runnable scenario to start from."""

import importlib.util
import keyword
import re
import shutil
import sys
from pathlib import Path
from typing import Literal

from scena.commands.command import Command
from scena.errors import ScenarioError
from scena.params import Params, ParamsError, param


class NewOptions(Params):
    """Which template to copy, and where."""

    folder: Path = param(
        required=True, positional="FOLDER", help="the folder to write; the classes in it are named after it"
    )
    template: Literal["general", "table", "listfile"] = param(
        "general",
        help="general: a source of samples in Python; table: rows of a CSV file; "
        "listfile: samples named in text files, one per line",
    )


class New(Command):
    """Writes a runnable scenario with tests, to start from."""

    name = "new"
    options: NewOptions

    def run(self) -> None:
        folder, template = self.options.folder, self.options.template
        _check_name(folder)
        write_scenario(folder, template)
        what = "--trainer.epochs 5" if template == "general" else "--help"
        print(
            f"Wrote {folder}. Try:\n  scena train {_scenario_name(folder)} {what}\n  python -m pytest {folder}  # needs pytest"
        )


def _check_name(folder: Path) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", folder.name) or keyword.iskeyword(folder.name):
        raise ParamsError(
            f"{folder.name!r} cannot be the name of a Python package: use lower-case letters, digits and _."
        )
    if not folder.exists() and folder.parent == Path() and _is_module(folder.name):
        raise ParamsError(
            f"There is a Python module {folder.name!r} already; a scenario of that name would hide it. Choose another name."
        )


def _is_module(name: str) -> bool:
    try:
        return name in sys.stdlib_module_names or importlib.util.find_spec(name) is not None
    except ValueError:  # a module without a spec, such as __main__
        return True


def write_scenario(folder: Path, template: str) -> None:
    """Copies a template into a new folder and names its classes after it."""
    if folder.exists():
        raise ScenarioError(f"{folder} exists already. Choose another name, or delete it.")
    source = _templates() / template
    title = "".join(part.capitalize() for part in folder.name.split("_"))
    names = {
        f"examples.template.{template}": _scenario_name(folder),
        f"examples/template/{template}": str(folder),
        "template_run": f"{folder.name}_run",
        "# Template": f"# {title}",
        "Template": title.removesuffix("Scenario") or title,  # my_scenario: MyScenario, MyModel, …
    }
    try:
        folder.mkdir(parents=True)
        for file in sorted(source.iterdir()):
            if file.suffix in (".py", ".md"):
                text = file.read_text(encoding="utf-8")
                for old, new in names.items():
                    text = text.replace(old, new)
                (folder / file.name).write_text(text, encoding="utf-8")
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise ScenarioError(f"Cannot write {folder}: {error}") from error


def _scenario_name(folder: Path) -> str:
    """How `scena train` is told this scenario."""
    return str(folder) if folder.is_absolute() or ".." in folder.parts else ".".join(folder.parts)


def _templates() -> Path:
    """The templates of the clone, or those inside the installed package."""
    clone = Path(__file__).parents[3] / "examples" / "template"
    if clone.is_dir() and (clone.parents[1] / "pyproject.toml").is_file():
        return clone
    spec = importlib.util.find_spec("scena.examples.template")
    if spec is None or not spec.submodule_search_locations:
        raise ScenarioError("The templates are not part of this installation.")
    return Path(next(iter(spec.submodule_search_locations)))
