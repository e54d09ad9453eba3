"""Loading an exported model: its parameters, its resources, its weights. Nothing in the export is executed."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scena.data.resource import resolve_resources
from scena.scenario.errors import ScenarioError
from scena.scenario.scenario import ScenarioBase
from scena.scenario.stored import EXPORT_FILE, read_description, stored_params

if TYPE_CHECKING:
    from scena.model.built import BuiltModel


@dataclass
class LoadedExport:
    """An export whose parameters have been read; `build()` creates the model and reads its weights."""

    directory: Path
    scenario: ScenarioBase[Any, Any]
    trainer_params: Any

    def build(self) -> "BuiltModel":
        """Creates the model and loads its weights."""
        built = self.scenario.build()
        built.load_weights(self.directory / "model.keras")
        return built


def load_export(directory: Path, scenario: type[ScenarioBase[Any, Any]]) -> LoadedExport:
    """Reads an export directory (`best` or `export` of a run)."""
    description = read_description(export_file(directory))
    params: Any = resolve_resources(stored_params(description, scenario, directory / EXPORT_FILE), directory)
    return LoadedExport(directory, scenario(params.scenario), params)


def export_file(directory: Path) -> Path:
    """The description inside an export directory, or an error that says what is wrong with the directory."""
    if not directory.is_dir():
        raise ScenarioError(
            f"There is no export directory {directory}. Give the 'best' or 'export' directory of a run."
        )
    path = directory / EXPORT_FILE
    if not path.is_file():
        inside = [name for name in ("best", "export") if (directory / name / EXPORT_FILE).is_file()]
        hint = f" Did you mean {directory / inside[0]}?" if inside else ""
        raise ScenarioError(f"{directory} is not an export directory: it has no {EXPORT_FILE}.{hint}")
    if not (directory / "model.keras").is_file():
        raise ScenarioError(f"{directory} has no model.keras; the export is not complete.")
    return path
