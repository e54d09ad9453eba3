"""A run's parameters on disk: the same JSON file in a run's directory and in an export."""

import functools
import json
import platform
from pathlib import Path
from typing import Any

from scena.data.rules import RULES
from scena.params import Params, ParamsError, build, to_raw
from scena.scenario.errors import ScenarioError
from scena.scenario.scenario import ScenarioBase
from scena.storage.checksums import warn_if_changed, write_checked

FORMAT = 1
RUN_FILE = "trainer_params.json"
EXPORT_FILE = "scenario.json"


def describe(scenario: type[ScenarioBase[Any, Any]], params: Params, **more: Any) -> dict[str, Any]:
    """What is stored about a run: the scenario's name, all parameters, and the versions that made it."""
    return {
        "format": FORMAT,
        "rules": RULES,
        "scenario": scenario.name(),
        "trainer": to_raw(params),
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in ("scena", "keras", "tensorflow", "numpy")}},
        **more,
    }  # fmt: skip


def modules_of(params: Any) -> set[str]:
    """The modules of all params classes in a tree, and of what they build."""
    if isinstance(params, Params):
        cls = type(params)
        built = [cls.__builds__.partition(":")[0]] if cls.__builds__ is not None else []
        return {cls.__module__, *built, *modules_of([getattr(params, name) for name in cls.__params__])}
    items = params.values() if isinstance(params, dict) else params if isinstance(params, list | tuple) else ()
    return {module for item in items for module in modules_of(item)}


def write_description(path: Path, description: dict[str, Any]) -> None:
    """Writes the file aside and puts it in place at once."""
    write_checked(path, json.dumps(description, indent=1, ensure_ascii=False) + "\n")


def read_description(path: Path) -> dict[str, Any]:
    """Reads and checks such a file."""
    try:
        data = path.read_bytes()
        description = json.loads(data)
    except (OSError, ValueError) as error:
        raise ScenarioError(f"Cannot read {path}: {error}") from error
    except RecursionError:
        raise ScenarioError(f"Cannot read {path}: it is nested too deeply.") from None
    warn_if_changed(path, data)
    if (
        not isinstance(description, dict)
        or not isinstance(description.get("scenario"), str)
        or not isinstance(description.get("trainer"), dict)
    ):
        raise ScenarioError(f"{path} is not a description of a run: it has no 'scenario' or no 'trainer' entry.")
    if not isinstance(description.get("format"), int) or description["format"] > FORMAT:
        raise ScenarioError(
            f"{path} has format {description.get('format')!r}; this version of Scena reads up to {FORMAT}. Update Scena."
        )
    return description


def stored_params(description: dict[str, Any], scenario: type[ScenarioBase[Any, Any]], path: Path) -> Any:
    """The trainer parameters of a stored run, as an object."""
    try:
        if not isinstance(description.get("trainer"), dict):
            raise ScenarioError(f"{path} holds no parameters of a training.")
        return build(description["trainer"], scenario.trainer_params_cls())
    except ParamsError as error:
        raise ScenarioError(f"{path}: {error}") from error
    except RecursionError:
        raise ScenarioError(f"{path}: its parameters are nested too deeply.") from None


@functools.cache
def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
