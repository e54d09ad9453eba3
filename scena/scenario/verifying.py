"""Is an export what was trained? It is read back as a prediction reads it, and its outputs are compared with the model's in memory."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from scena.backends.base import backend
from scena.errors import ScenaError
from scena.model.building import precision_policy
from scena.model.isolation import unnoticed
from scena.params import to_raw
from scena.prediction.formats.difference import Arrays, difference
from scena.scenario.errors import ScenarioError
from scena.scenario.loading import load_export
from scena.storage.run_layout import saved_model

if TYPE_CHECKING:
    from scena.model.built import BuiltModel
    from scena.scenario.scenario import ScenarioBase

logger = logging.getLogger(__name__)

TOLERANCE = 1e-5
"""How far the outputs of a model that was read back may be apart: the same operations in the same order."""
SAVED_MODEL_TOLERANCES = {"float32": 1e-4, "mixed_float16": 1e-2, "mixed_bfloat16": 5e-2}
"""The same for a SavedModel, whose compiler may reorder operations."""
WHOLE_NUMBERS = 0.25
"""The share of whole numbers that may differ in a SavedModel: two classes may be equally likely."""
SMALL = 16_000_000
"""A model with fewer parameters is kept when it was read back, so that the next export with the same parameters needs not build it."""
REMEDY = (
    "A layer keeps something that is neither in its variables nor given back by its hooks, or the model depends on more than "
    "its parameters; see 'Layers with state of their own' in docs/graph.md. (--trainer.verify_export False trains without this check.)"
)


@dataclass
class Expected:
    """What a model in memory puts out for some samples."""

    inputs: Arrays
    outputs: dict[str, Arrays]
    """By graph and output."""
    seeds: list[np.ndarray]
    """The state of the model's random generators before that."""


class ExportCheck:
    """Compares exports with the model in memory. Leaves no trace in it, nor in what is random afterwards.

    Args:
        scenario: the class that reads exports.
        built: the model in memory.
        precision: what its layers compute in.
    """

    def __init__(self, scenario: "type[ScenarioBase[Any, Any]]", built: "BuiltModel", precision: str) -> None:
        self._scenario = scenario
        self._built = built
        self._precision = precision
        self._runs: dict[str, Callable[[Arrays], Arrays]] = {}
        self._random: set[tuple[str, str]] | None = None
        self._kept: tuple[Any, BuiltModel] | None = None
        self.keep = False
        """Whether a large model that was read back is kept for the next export, too; it takes memory until then."""

    def retrace(self) -> None:
        """Compiles anew: a layer of the model in memory has other tensors than before."""
        self._runs = {}

    def expect(self, inputs: Arrays) -> Expected | None:
        """Runs the model in memory; None, with a warning, if that is not possible in this way."""
        with unnoticed():
            seeds = [keras.ops.convert_to_numpy(seed.value) for seed in _seeds(self._built)]
            try:
                found = _outputs(self._built, inputs, self._runs)
                if self._random is None:
                    self._random = _differing(found, _outputs(self._built, inputs, self._runs))
            except Exception as error:  # a user's graph may need to be compiled
                reason = (str(error).strip() or type(error).__name__).splitlines()[0]
                logger.warning("Exports are not verified, because the model cannot be run on a few samples: %s", reason)
                return None
        outputs = {
            graph: {name: value for name, value in values.items() if (graph, name) not in self._random}
            for graph, values in found.items()
        }
        return Expected(inputs, outputs, seeds)

    def verify_model(self, directory: Path, name: Path, expected: Expected) -> None:
        """Builds the model of an export from what is written there, and compares it.

        Args:
            directory: where it is now.
            name: where it is going to be, for messages.
            expected: what it should put out.

        Raises:
            ScenarioError: it cannot be read, or puts out something else.
        """
        with unnoticed():
            try:
                built = self._read(directory)
                for variable, value in zip(_seeds(built), expected.seeds, strict=False):
                    variable.assign(value)
                outputs = _outputs(built, expected.inputs, {})
            except Exception as error:
                if isinstance(error, OSError):
                    raise
                reason = str(error) if isinstance(error, ScenaError) else f"{type(error).__name__}: {error}"
                raise ScenarioError(
                    f"{name} cannot be read back: {reason.replace(str(directory), str(name))}"
                ) from error
        self._compare(str(name), expected, outputs, TOLERANCE, 0.0)

    def verify_saved_models(self, directory: Path, name: Path, expected: Expected) -> None:
        """Compares the SavedModels in a directory; those that are not there are skipped.

        Raises:
            ScenarioError: one puts out something else.
        """
        for graph, outputs in expected.outputs.items():
            folder = saved_model(graph)
            if not (directory / folder).is_dir():
                continue
            import tensorflow as tf

            with unnoticed():
                serve = tf.saved_model.load(str(directory / folder)).signatures["serving_default"]
                tensors = {
                    key: tf.convert_to_tensor(expected.inputs[key]) for key in serve.structured_input_signature[1]
                }
                received = {key: np.asarray(value) for key, value in serve(**tensors).items()}
            wanted = Expected(expected.inputs, {graph: outputs}, [])
            tolerance = SAVED_MODEL_TOLERANCES[self._precision]
            self._compare(str(name / folder), wanted, {graph: received}, tolerance, WHOLE_NUMBERS)

    def _read(self, directory: Path) -> "BuiltModel":
        export = load_export(directory, self._scenario)
        export.code_compared = True
        params = to_raw(export.params.scenario)
        if self._kept is not None and self._kept[0] == params:
            self._kept[1].load(directory)
            return self._kept[1]
        with precision_policy(self._precision):
            built = export.build()
        self._kept = (params, built) if self.keep or built.root.count_params() <= SMALL else None
        return built

    def _compare(
        self, name: str, expected: Expected, received: dict[str, Arrays], tolerance: float, whole_numbers: float
    ) -> None:
        for graph, outputs in expected.outputs.items():
            where = "" if graph == "default" else f" of the graph {graph!r}"
            for output, wanted in outputs.items():
                if output not in received.get(graph, {}):
                    raise ScenarioError(
                        f"{name} has no output {output!r}{where}, which the model in memory has. {REMEDY}"
                    )
                value = difference(wanted, received[graph][output])
                allowed = tolerance if np.issubdtype(wanted.dtype, np.floating) else whole_numbers
                if not value <= allowed:
                    raise ScenarioError(
                        f"{name} does not give what the model in memory gives: its output {output!r}{where} differs by {value:.3g} on "
                        f"the same samples (tolerance: {allowed:g}). {REMEDY}"
                    )


def _differing(one: dict[str, Arrays], other: dict[str, Arrays]) -> set[tuple[str, str]]:
    """The outputs that are not the same in two runs of one model, which are named in the log."""
    found = {
        (graph, name)
        for graph, outputs in one.items()
        for name, value in outputs.items()
        if not difference(value, other[graph][name]) <= TOLERANCE
    }
    for _, name in sorted(found):
        logger.warning("The output %r is random, so it is not verified in exports.", name)
    return found


def _outputs(built: "BuiltModel", inputs: Arrays, runs: dict[str, Callable[[Arrays], Arrays]]) -> dict[str, Arrays]:
    """What each graph puts out; graphs that need other inputs are skipped."""
    found = {}
    for name, graph in built.graphs.items():
        wanted = list(graph.input) if isinstance(graph.input, dict) else [tensor.name for tensor in graph.inputs]
        if set(wanted) <= set(inputs):
            run = runs.get(name) or runs.setdefault(name, backend().run_unchanged(graph))
            found[name] = run({key: inputs[key] for key in wanted})
    return found


def _seeds(built: "BuiltModel") -> list[Any]:
    return [variable for variable in built.prediction_model.variables if variable.path.endswith("seed_generator_state")]
