"""A run's parameters on disk: the same JSON file in a run's directory and in an export."""

import functools
import json
import platform
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scena.data.params import RULES
from scena.errors import ScenarioError
from scena.params import Params, ParamsError, build, short_name, subclasses, to_raw
from scena.params.tree import values_in
from scena.scenario.scenario import ScenarioBase
from scena.storage.checksums import warn_if_changed, write_checked
from scena.storage.code_fingerprints import noted_imports
from scena.terminal import visible

FORMAT = 1
EXPORT_FORMAT = 2


@dataclass
class ExportParams:
    """The parameters of an export: what a prediction needs, and a record of the training that is shown but never built.

    So a trainer flag that was renamed, or an optimizer that is no longer installed, cannot make a model unreadable.
    """

    scenario: Any
    pipelines: Any
    """Where training and validation data came from."""
    trainer: dict[str, Any]
    """The other parameters of the training, raw."""

    @classmethod
    def of(cls, trainer_params: Any) -> "ExportParams":
        """Of all parameters of a training."""
        record = {name: value for name, value in to_raw(trainer_params).items() if name not in _BUILT}
        return cls(trainer_params.scenario, trainer_params.gen, record)

    def raw(self, scenario: type[ScenarioBase[Any, Any]]) -> dict[str, Any]:
        """As they are stored."""
        whole = to_raw(scenario.trainer_params_cls()(scenario=self.scenario, gen=self.pipelines))
        return {"params": whole["scenario"], "pipelines": whole["gen"], "trainer": self.trainer}


_BUILT = ("scenario", "gen")


def describe(scenario: type[ScenarioBase[Any, Any]], params: Params, **more: Any) -> dict[str, Any]:
    """What is stored about a run: the scenario's name, all parameters, and the versions that made it."""
    return {
        "format": FORMAT,
        "rules": RULES,
        "scenario": scenario.name(),
        "trainer": to_raw(params),
        **_made_with(),
        **more,
    }


def describe_export(scenario: type[ScenarioBase[Any, Any]], params: ExportParams, **more: Any) -> dict[str, Any]:
    """What is stored about an exported model."""
    made = {**params.raw(scenario), **_made_with()}
    return {"format": EXPORT_FORMAT, "rules": RULES, "scenario": scenario.name(), **made, **more}


def _made_with() -> dict[str, Any]:
    return {"imports": noted_imports(), "versions": versions()}


def versions() -> dict[str, str]:
    """The versions of what computes here."""
    return {
        "python": platform.python_version(),
        **{name: _version(name) for name in ("scena", "keras", "tensorflow", "numpy")},
    }


def version_line() -> str:
    """The versions of Scena, Keras and its backend if they are loaded, and Python, for people."""
    there = versions()
    computes = ""
    if keras := sys.modules.get("keras"):  # another runtime does without
        backend = keras.config.backend()
        name = {"tensorflow": "TensorFlow", "jax": "JAX"}.get(backend, backend)
        computes = f"Keras {there['keras']} on {name} {_version(backend)}, "
    return f"Scena {there['scena']}, {computes}Python {there['python']}"


def modules_of(params: Any) -> set[str]:
    """The modules of all params classes in a tree, and of what they build."""
    classes = {type(value) for _, value in values_in(params) if isinstance(value, Params)}
    return {cls.__module__ for cls in classes} | {cls.__builds__.partition(":")[0] for cls in classes if cls.__builds__}


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
    number = description.get("format") if isinstance(description, dict) else None
    if isinstance(number, int) and number > EXPORT_FORMAT:
        raise ScenarioError(
            f"{path} has format {number!r}; this version of Scena reads up to {EXPORT_FORMAT}. Update Scena."
        )
    return joined(description, path)


def joined(description: Any, path: Path) -> dict[str, Any]:
    """A description of any format in the form of the first one: all parameters in one tree, below `trainer`."""
    if (
        not isinstance(description, dict)
        or not isinstance(description.get("scenario"), str)
        or not isinstance(description.get("trainer"), dict)
    ):
        raise ScenarioError(f"{path} is not a description of a run: it has no 'scenario' or no 'trainer' entry.")
    if "params" not in description:
        return description
    parts = {"scenario": description["params"], "gen": description.get("pipelines")}
    return {**description, "trainer": {**description["trainer"], **parts}}


def stored_export(description: dict[str, Any], scenario: type[ScenarioBase[Any, Any]], path: Path) -> ExportParams:
    """The parameters of an export; only those that a prediction needs become objects."""
    trainer = _without_former_class(description["trainer"], scenario)
    record = {name: value for name, value in trainer.items() if name not in _BUILT}
    try:
        needed = build({name: trainer[name] for name in _BUILT if name in trainer}, scenario.trainer_params_cls())
    except ParamsError as error:
        raise ScenarioError(f"{path}: {error}{_imports_hint(description)}") from error
    return ExportParams(needed.scenario, needed.gen, record)


def _without_former_class(trainer: dict[str, Any], scenario: type[ScenarioBase[Any, Any]]) -> dict[str, Any]:
    """The parameters without the name of the scenario's params class if that was renamed, or replaced by `Scenario[Data, Model, …]`.

    The scenario decides about the class; its fields are checked as always.
    """
    own = trainer.get("scenario")
    if not isinstance(own, dict):
        return trainer
    name = own.get("class")
    if not isinstance(name, str) or name in map(short_name, subclasses(type(scenario.default_params()))) or ":" in name:
        return trainer
    return {**trainer, "scenario": {key: value for key, value in own.items() if key != "class"}}


def _imports_hint(description: dict[str, Any]) -> str:
    """Which modules the run had imported: a name that is unknown now may be defined in one of them."""
    names = description.get("imports")
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        return ""
    return f" The run was made with --import {visible(' '.join(names))}; give that here, too."


def stored_params(description: dict[str, Any], scenario: type[ScenarioBase[Any, Any]], path: Path) -> Any:
    """The trainer parameters of a stored run, as an object."""
    try:
        if not isinstance(description.get("trainer"), dict):
            raise ScenarioError(f"{path} holds no parameters of a training.")
        return build(_without_former_class(description["trainer"], scenario), scenario.trainer_params_cls())
    except ParamsError as error:
        raise ScenarioError(f"{path}: {error}{_imports_hint(description)}") from error
    except RecursionError:
        raise ScenarioError(f"{path}: its parameters are nested too deeply.") from None


@functools.cache
def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
