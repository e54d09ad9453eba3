"""What a value of a stored run is called on the command line, without importing the scenario that it belongs to."""

from typing import Any

from scena.scenario.params import ScenarioBaseParams
from scena.training.params import TrainerParams
from scena.training.pipelines import TrainerPipelineParams, TrainValParams

CLASS = "class"


def flat_values(trainer: dict[str, Any]) -> dict[str, Any]:
    """The stored parameters of a run as flag name -> value; the choice of a class stands under the name of its place."""
    values: dict[str, Any] = {}
    _collect(trainer, (), values)
    return values


def _collect(value: Any, path: tuple[str, ...], values: dict[str, Any]) -> None:
    if isinstance(value, dict) and (CLASS in value or not path):
        if path:
            values[flag_name(path)] = value[CLASS]
        for key, item in value.items():
            if key != CLASS:
                _collect(item, (*path, key), values)
    elif isinstance(value, list) and value and all(isinstance(item, dict) and CLASS in item for item in value):
        values[flag_name(path)] = [item[CLASS] for item in value]
        for index, item in enumerate(value):
            for key, inner in item.items():
                if key != CLASS:
                    _collect(inner, (*path, str(index), key), values)
    else:
        values[flag_name(path)] = value


def flag_name(path: tuple[str, ...]) -> str:
    """The name of a place of the tree: flat fields stand at the root, as their declarations say."""
    if path[0] in ("scenario", "gen") and len(path) > 1:
        flat = _FLAT[path[0]].get(path[1])
        return ".".join([flat, *path[2:]] if flat else path)
    field = TrainerParams.__params__.get(path[0])
    return ".".join(path if field is not None and field.flat else ("trainer", *path))


def _flat_names(*classes: Any) -> dict[str, str]:
    return {
        name: field.flat if isinstance(field.flat, str) else name
        for cls in classes
        for name, field in cls.__params__.items()
        if field.flat
    }


_FLAT = {"scenario": _flat_names(ScenarioBaseParams), "gen": _flat_names(TrainValParams, TrainerPipelineParams)}
