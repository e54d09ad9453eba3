"""Loading exported models: parameters, resources, weights, and whether several can share their inputs. Nothing in an export is executed."""

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scena.data.params import PipelineMode
from scena.data.resource import Resource, resolve_resources
from scena.errors import ScenarioError
from scena.params import Params
from scena.scenario.scenario import ScenarioBase
from scena.scenario.stored import ExportParams, read_description, stored_export
from scena.storage.checksums import DamagedFileError, verify_tree
from scena.storage.code_fingerprints import CodeChange, Fingerprints, changed_code, stored_fingerprints
from scena.storage.run_layout import BEST, EXPORT, EXPORT_FILE, RESOURCES, model_file

if TYPE_CHECKING:
    from scena.model.built import BuiltModel
    from scena.prediction.params import PredictorParams
    from scena.prediction.predictor import Predictor

logger = logging.getLogger(__name__)


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

    def build(self) -> "BuiltModel":
        """Creates the model and loads its weights; warns if the code has changed."""
        compare_code([self])
        built = self.scenario.build()
        built.load(self.directory)
        return built

    def create_predictor(self, params: "PredictorParams") -> "Predictor":
        """The predictor of this model in the runtime of its parameters.

        Raises:
            ScenarioError: the runtime's model takes inputs that the scenario's data does not have.
        """
        from scena.prediction.runtimes.base import Runtime, UnbuiltModel

        runtime: Runtime = params.runtime.create(self)
        built = runtime.build()
        if built is not None:
            return self.scenario.create_predictor_for(built, params)
        data = self.scenario.create_data()
        there = data.input_layer_specs()
        if missing := [name for name in runtime.inputs() if name not in there]:
            raise ScenarioError(
                f"The model that {type(runtime).__name__} opened in {self.directory} takes the input {missing[0]!r}, and the data has "
                f"{', '.join(there)}."
            )
        unbuilt: Any = UnbuiltModel(data, self.scenario.create_model(data))
        predictor = self.scenario.create_predictor_for(unbuilt, params)
        predictor.engine = runtime
        return predictor


def opened(export: Any, scenario: type[ScenarioBase[Any, Any]]) -> LoadedExport:
    """An export by its directory, or one that was opened already, as it is."""
    return export if isinstance(export, LoadedExport) else load_export(Path(export), scenario)


def load_export(directory: Path, scenario: type[ScenarioBase[Any, Any]]) -> LoadedExport:
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
    """The description inside an export directory, or an error that says what is wrong with the directory."""
    if not directory.is_dir():
        raise ScenarioError(
            f"There is no export directory {directory}. Give the 'best' or 'export' directory of a run."
        )
    path = directory / EXPORT_FILE
    if not path.is_file():
        inside = [name for name in (BEST, EXPORT) if (directory / name / EXPORT_FILE).is_file()]
        hint = f" Did you mean {directory / inside[0]}?" if inside else ""
        raise ScenarioError(f"{directory} is not an export directory: it has no {EXPORT_FILE}.{hint}")
    if not (directory / model_file()).is_file():
        raise ScenarioError(f"{directory} has no {model_file()}; the export is not complete.")
    return path


def check_same_inputs(exports: Sequence[LoadedExport], mode: PipelineMode) -> None:
    """Raises if two exports would prepare the same sample differently. Only processors of this mode count: another augmentation in
    training does not matter.
    """
    first, *others = exports
    expected = _preparation(first.scenario.params.data, mode)
    for other in others:
        if _preparation(other.scenario.params.data, mode) != expected:
            raise ScenarioError(
                f"{first.directory} and {other.directory} prepare their inputs differently (--data of the two runs), so they cannot "
                "work on the same batches. `scena params MODEL` shows how each was trained."
            )


def _preparation(data: Any, mode: PipelineMode) -> Any:
    """Everything about the data's parameters that decides what the model gets; files count by their content."""
    steps = [processor for processor in data.pre_proc if mode in processor.modes]
    own = {name: getattr(data, name) for name in type(data).__params__ if name not in ("pre_proc", "post_proc")}
    return [_content(own), [[type(step).__name__, _content(step)] for step in steps]]


def _content(value: Any) -> Any:
    if isinstance(value, Resource):
        return _digest(value.path)
    if isinstance(value, Params):
        return {name: _content(getattr(value, name)) for name in type(value).__params__ if name != "modes"}
    if isinstance(value, dict):
        return {name: _content(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_content(item) for item in (sorted(value, key=str) if isinstance(value, set) else value)]
    return str(value)


def _digest(path: Path) -> str:
    if path.is_dir():
        return hashlib.sha256(
            "".join(_digest(file) for file in sorted(path.rglob("*")) if file.is_file()).encode()
        ).hexdigest()
    return hashlib.sha256(path.read_bytes()).hexdigest()
