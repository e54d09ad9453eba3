"""The same weights under changed scenario parameters, as a new export."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from scena.scenario.errors import ScenarioError
from scena.scenario.loading import LoadedExport
from scena.scenario.stored import read_description
from scena.storage.run_layout import EXPORT_FILE


def adapt(export: LoadedExport, scenario_params: Any, directory: Path) -> None:
    """Writes an export of the model with other parameters to a new directory.

    Args:
        export: the model.
        scenario_params: the parameters of its scenario, changed.
        directory: the export directory to write.

    Raises:
        ScenarioError: the changed model has other weights, or the directory exists.
    """
    if directory.exists():
        raise ScenarioError(f"{directory} exists already. Choose another --out, or delete it.")
    scenario = type(export.scenario)(scenario_params)
    old, new = export.build(), scenario.build()
    states = old.layers().read()
    new.layers().quantize(states)
    before, after = old.root.weights, new.root.weights
    _check_shapes([tuple(weight.shape) for weight in before], [tuple(weight.shape) for weight in after], after)
    for source, target in zip(before, after, strict=True):
        target.assign(source.value)
    new.layers().set(states)
    stored = read_description(export.directory / EXPORT_FILE)
    more = {"result": stored["result"]} if "result" in stored else {}
    params = replace(export.params, scenario=scenario_params)
    scenario.export(new, directory, params, adapted_from=str(export.directory), **more)


def _check_shapes(before: list[tuple[int, ...]], after: list[tuple[int, ...]], weights: list[Any]) -> None:
    for place, (old, new) in enumerate(zip(before, after, strict=False)):
        if old != new:
            raise ScenarioError(
                f"The weights do not fit the changed parameters: {weights[place].path} would have the shape {new}, but the stored one has "
                f"{old}. Only parameters that keep the shapes of all weights can be changed."
            )
    if len(before) != len(after):
        raise ScenarioError(
            f"The weights do not fit the changed parameters: the changed model has {len(after)} weights, the stored one {len(before)}. "
            "Only parameters that keep the shapes of all weights can be changed."
        )
