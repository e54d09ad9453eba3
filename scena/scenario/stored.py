"""Runs and exports on disk: the JSON file that both have, and loading exported models. Nothing in an export is executed."""

import functools
import json
import logging
import platform
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from scena.data.params import RULES, DataPipelineParams
from scena.data.resource import resolve_resources
from scena.display import visible
from scena.errors import ScenarioError
from scena.params import Params, ParamsError, build, short_name, subclasses, to_raw
from scena.params.tree import values_in
from scena.scenario.finding import AnyScenario, scenario_of
from scena.scenario.scenario import ScenarioBase
from scena.storage.checksums import DamagedFileError, tree_checksums, verify_tree, warn_if_changed, write_checked
from scena.storage.code_fingerprints import (
    CodeChange,
    Fingerprints,
    changed_code,
    noted_imports,
    stored_fingerprints,
)
from scena.storage.json_text import json_text
from scena.storage.run_layout import BEST, EXPORT, EXPORT_FILE, LAYERS_FILE, RESOURCES, model_file

if TYPE_CHECKING:
    from scena.evaluation.params import LAVParams
    from scena.model.built import BuiltModel
    from scena.prediction.params import PredictorParams, RuntimeParams
    from scena.prediction.runtimes.base import UnbuiltModel

logger = logging.getLogger(__name__)

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

    def raw(self, scenario: AnyScenario) -> dict[str, Any]:
        """As they are stored."""
        whole = to_raw(scenario.trainer_params_cls()(scenario=self.scenario, gen=self.pipelines))
        return {"params": whole["scenario"], "pipelines": whole["gen"], "trainer": self.trainer}


_BUILT = ("scenario", "gen")


def describe(scenario: AnyScenario, params: "Params | ExportParams", **more: Any) -> dict[str, Any]:
    """What is stored about a run, or about an export: the scenario's name, all parameters, and the versions that made it."""
    if isinstance(params, ExportParams):
        number, stored = EXPORT_FORMAT, params.raw(scenario)
    else:
        number, stored = FORMAT, {"trainer": to_raw(params)}
    return {
        "format": number,
        "rules": RULES,
        "scenario": scenario.name(),
        **stored,
        "imports": noted_imports(),
        "versions": versions(),
        **more,
    }


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
    write_checked(path, json_text(description) + "\n")


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
        raise ScenarioError(f"{path} does not describe a run: it has no 'scenario' or no 'trainer' entry.")
    if "params" not in description:
        return description
    parts = {"scenario": description["params"], "gen": description.get("pipelines")}
    return {**description, "trainer": {**description["trainer"], **parts}}


def read_training(path: Path, explicit: str | None = None) -> tuple[AnyScenario, dict[str, Any], Any]:
    """The scenario (`explicit`, if a user named it), the description and the trainer parameters in the file of a run or an export."""
    description = read_description(path)
    scenario = scenario_of(description["scenario"], path.parent, explicit)
    return scenario, description, stored_params(description, scenario, path)


def stored_params(description: dict[str, Any], scenario: AnyScenario, path: Path) -> Any:
    """The trainer parameters of a stored run, as an object."""
    try:
        return build(_without_former_class(description["trainer"], scenario), scenario.trainer_params_cls())
    except ParamsError as error:
        raise ScenarioError(f"{path}: {error}{_imports_hint(description)}") from error
    except RecursionError:
        raise ScenarioError(f"{path}: its parameters are nested too deeply.") from None


def stored_export(description: dict[str, Any], scenario: AnyScenario, path: Path) -> ExportParams:
    """The parameters of an export; only those that a prediction needs become objects."""
    trainer = description["trainer"]
    needed = {name: trainer[name] for name in _BUILT if name in trainer}
    built = stored_params({**description, "trainer": needed}, scenario, path)
    return ExportParams(built.scenario, built.gen, {name: trainer[name] for name in trainer if name not in _BUILT})


def _without_former_class(trainer: dict[str, Any], scenario: AnyScenario) -> dict[str, Any]:
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


_SOURCE_ONLY = ("split", "engine", "data_service")
"""Parameters of image pipelines about where samples come from and who makes the batches, not about what is done to them."""
TProcessing = TypeVar("TProcessing", "PredictorParams", "LAVParams")


def _processing(pipeline: DataPipelineParams) -> dict[str, Any]:
    names = pipeline.__params__.keys() - DataPipelineParams.__params__.keys() - {*_SOURCE_ONLY}
    return {name: getattr(pipeline, name) for name in sorted(names)}


@dataclass
class LoadedExport:
    """An export whose parameters have been read; `build()` creates the model and reads its weights."""

    directory: Path
    scenario: ScenarioBase[Any, Any]
    params: ExportParams
    """Its parameters; the scenario has those of data and model."""
    code: Fingerprints | None = None
    """The code that it was made with; None if it does not say."""
    code_compared: bool = False
    """Whether a difference between that code and today's has been reported, or does not matter."""
    rules: Any = None
    """The version of the rules by which the run chose its samples."""
    _chosen: "tuple[Any, RuntimeParams] | None" = None

    def build(self) -> "BuiltModel":
        """Creates the model and loads its weights; warns if the code has changed."""
        compare_code([self])
        built = self.scenario.build()
        built.load(self.directory)
        return built

    def runtime(self, params: "PredictorParams | LAVParams") -> "RuntimeParams":
        """What will run this model: the runtime of these parameters, or what its `auto` stands for."""
        asked = (params.runtime, params.device, params.run_eagerly)
        if self._chosen is None or self._chosen[0] != asked:
            from scena.prediction.runtimes.converted import chosen

            self._chosen = asked, chosen(params.runtime, self.directory, params.device, eager=params.run_eagerly)
        return self._chosen[1]

    def with_processing(self, params: TProcessing) -> TProcessing:
        """These parameters, with what the run's validation does to samples on their way to a batch, such as the normalization of
        images, if their pipeline has no parameters for it.
        """
        val = self.params.pipelines.val
        if not isinstance(params.pipeline, type(val)):
            source = {name: val.default_of(val.__params__[name]) for name in _SOURCE_ONLY if name in val.__params__}
            given = {
                name: getattr(params.pipeline, name) for name in val.__params__ if name in params.pipeline.__params__
            }
            params = params.replace(pipeline=val.replace(**{**source, **given}))
        own, asked = self.processing(), _processing(params.pipeline)
        for name in own:
            if asked[name] != own[name]:
                logger.warning(
                    "%s: samples are processed in another way than the run's validation did: %s is %r, and it was %r.",
                    self.directory, name, asked[name], own[name],
                )  # fmt: skip
        return params

    def processing(self) -> dict[str, Any]:
        """What the run's validation does to samples on their way to a batch, by the names of its pipeline's parameters."""
        return _processing(self.params.pipelines.val)

    def with_own_processing(self, params: TProcessing, first: "LoadedExport") -> TProcessing:
        """These parameters, which were made for `first`, with what this run's validation does to samples; those of a user, who changed
        what `first` does, stay.
        """
        if _processing(params.pipeline) != first.processing():
            return params
        return params.replace(pipeline=params.pipeline.replace(**self.processing()))

    def needs_keras(self, params: "PredictorParams | LAVParams") -> bool:
        """Whether Keras runs this model, or computes its losses and metrics."""
        return self.runtime(params).needs_keras or bool(getattr(params, "metrics", False))

    def open(self, params: "PredictorParams | LAVParams") -> "BuiltModel | UnbuiltModel":
        """The model in the runtime of these parameters; warns if the code has changed.

        Raises:
            ScenarioError: the runtime has no model here, or it takes inputs that the scenario's data does not have.
        """
        from scena.prediction.runtimes.base import Runtime, UnbuiltModel

        compare_code([self])
        runtime: Runtime = self.runtime(params).create(self)
        built = runtime.build()
        if built is not None:
            return built
        data = self.scenario.create_data()
        there = data.input_layer_specs()
        if missing := [name for name in runtime.inputs() if name not in there]:
            raise ScenarioError(
                f"The model that {type(runtime).__name__} opened in {self.directory} takes the input {missing[0]!r}, and the data has "
                f"{', '.join(there)}."
            )
        return UnbuiltModel(data, runtime, lambda: self.scenario.create_model(data))


def opened(export: Any, scenario: AnyScenario) -> LoadedExport:
    """An export by its directory, or one that was opened already, as it is."""
    return export if isinstance(export, LoadedExport) else load_export(Path(export), scenario)


class ModelContent(NamedTuple):
    """All that the outputs of an export depend on: two exports are equal, whenever they were written, if this is."""

    params: tuple[Any, dict[str, str]]
    """The scenario's parameters, and the checksums of their resources."""
    weights: tuple[dict[str, Any], dict[str, str]]
    """The checksums of what the Keras files consist of, and of what layers keep beside their weights."""


def model_content(directory: Path) -> ModelContent | None:
    """What the outputs of the export in this directory depend on; None if it cannot be read, which loading it explains."""

    def checksums(name: str) -> dict[str, str]:
        return tree_checksums(directory / name, directory) if (directory / name).exists() else {}

    files: dict[str, Any] = {}
    try:
        for path in sorted(directory.glob("model*.keras")):
            with zipfile.ZipFile(path) as archive:
                members = [entry for entry in archive.infolist() if entry.filename != "metadata.json"]  # has the date
            files[path.name] = [(entry.filename, entry.file_size, entry.CRC) for entry in members]
        params = read_description(export_file(directory))["trainer"].get("scenario")
    except (zipfile.BadZipFile, ScenarioError):
        return None
    return ModelContent((params, checksums(RESOURCES)), (files, checksums(LAYERS_FILE)))


def load_export(directory: Path, scenario: AnyScenario) -> LoadedExport:
    """Reads an export directory (`best` or `export` of a run)."""
    description = read_description(export_file(directory))
    try:
        verify_tree(directory, RESOURCES)
    except (DamagedFileError, OSError) as error:
        raise ScenarioError(f"{error}.") from error
    params = stored_export(description, scenario, directory / EXPORT_FILE)
    params.scenario = resolve_resources(params.scenario, directory)
    params.pipelines = resolve_resources(params.pipelines, directory)
    for name in type(params.pipelines).__params__:
        if getattr(getattr(params.pipelines, name), "cache_dir", None) is not None:
            getattr(params.pipelines, name).cache_dir = None  # an export does not say where to write
    return LoadedExport(
        directory,
        scenario(params.scenario),
        params,
        stored_fingerprints(description.get("code")),
        rules=description.get("rules"),
    )


def refuse_existing(directory: Path) -> None:
    """Raises ScenarioError if there is something where an export is to be written."""
    if directory.exists():
        raise ScenarioError(f"{directory} exists already. Choose another --out, or delete it.")


def compare_code(exports: Sequence[LoadedExport], *, strict: bool = False) -> None:
    """Warns, once for each source file, if exports were made with other code than today's; with `strict` that is an error. Exports
    that were compared before are skipped.
    """
    changes: dict[CodeChange, list[str]] = {}
    for export in exports:
        if not export.code_compared:
            for change in _changes(export, strict=strict):
                changes.setdefault(change, []).append(str(export.directory))
            export.code_compared = not strict
    if strict and changes:
        raise ScenarioError(
            f"The code has changed since {next(iter(changes.values()))[0]} was written: {'; '.join(map(str, changes))}. "
            "Check out the code of that time, or remove --strict."
        )
    for change, directories in changes.items():
        were = "was" if len(directories) == 1 else "were"
        logger.warning(
            "The code has changed since %s %s written, so results may differ: %s",
            " and ".join(directories),
            were,
            change,
        )


def _changes(export: LoadedExport, *, strict: bool) -> list[CodeChange]:
    if export.code is not None:
        return changed_code(export.code, type(export.scenario).__module__)
    if strict:
        raise ScenarioError(f"{export.directory} does not record the code it was made with, which --strict compares.")
    logger.info("%s does not record the code it was made with, so changes of it go unnoticed.", export.directory)
    return []


def export_file(directory: Path) -> Path:
    """The description inside an export directory, or an error that names what is wrong with the directory."""
    if not directory.is_dir():
        raise ScenarioError(
            f"There is no export directory '{directory}'. Give the 'best' or 'export' directory of a run."
        )
    path = directory / EXPORT_FILE
    if not path.is_file():
        inside = [name for name in (BEST, EXPORT) if (directory / name / EXPORT_FILE).is_file()]
        hint = f" Did you mean {directory / inside[0]}?" if inside else ""
        raise ScenarioError(f"{directory} is not an export directory: it has no {EXPORT_FILE}.{hint}")
    if not (directory / model_file()).is_file():
        raise ScenarioError(f"{directory} has no {model_file()}; the export is not complete.")
    return path


@functools.cache
def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
