"""Is an export what was trained? It is read back as a prediction reads it, and its outputs are compared with the model's in memory."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from scena.backends.base import backend
from scena.errors import ScenaError, ScenarioError
from scena.model.building import precision_policy
from scena.model.state.randomness import unnoticed
from scena.prediction.formats.base import Arrays, difference
from scena.scenario.stored import ModelContent, load_export, model_content
from scena.storage.run_layout import saved_model

if TYPE_CHECKING:
    from scena.model.built import BuiltModel
    from scena.model.state.layer_state import Constants
    from scena.scenario.scenario import ScenarioBase

logger = logging.getLogger(__name__)

TOLERANCE = 1e-5
"""How far the outputs of a model that was read back may be apart: the same operations in the same order."""
SAVED_MODEL_TOLERANCES = {"float32": 1e-4, "mixed_float16": 1e-2, "mixed_bfloat16": 5e-2}
"""The same for a SavedModel, whose compiler may reorder operations."""
WHOLE_NUMBERS = 0.25
"""The share of whole numbers that may differ in a SavedModel: two classes may be equally likely."""
SMALL = 32_000_000
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

    def same_question(self, other: "Expected") -> bool:
        """Whether another model had to answer the same."""
        if self.inputs is not other.inputs or len(self.seeds) != len(other.seeds):
            return False
        return all(np.array_equal(*seeds) for seeds in zip(self.seeds, other.seeds, strict=True))


class ExportCheck:
    """Compares exports with the model in memory. Leaves no trace in it, nor in what is random afterwards.

    Args:
        scenario: the class that reads exports.
        built: the model in memory.
        precision: what its layers compute in.
    """

    def __init__(self, scenario: "type[ScenarioBase[Any, Any]]", built: "BuiltModel", precision: str) -> None:
        self._scenario = scenario
        self._precision = precision
        self._in_memory = RunningModel(built)
        self._random: set[tuple[str, str]] = set()
        self._kept: tuple[Any, RunningModel] | None = None
        self._answered: tuple[ModelContent, Expected] | None = None
        self._unable = False
        self.keep = False
        """Whether a large model that was read back is kept for the next export, too; it takes memory until then."""

    def expect(self, inputs: Arrays) -> Expected | None:
        """Runs the model in memory; None, with a warning, if that is not possible in this way."""
        if self._unable:
            return None
        with unnoticed():
            seeds = [keras.ops.convert_to_numpy(seed.value) for seed in self._in_memory.seeds()]
            try:
                outputs = self._in_memory.outputs(inputs)
            except Exception as error:  # a user's graph may need to be compiled
                reason = (str(error).strip() or type(error).__name__).splitlines()[0]
                logger.warning("Exports are not verified, because the model cannot be run on a few samples: %s", reason)
                self._unable = True
                return None
        return Expected(inputs, outputs, seeds)

    def verify_model(self, directory: Path, name: Path, expected: Expected) -> None:
        """Builds the model of an export from what is written there, and compares it.

        An export that is equal to the one before, in parameters and weights, would answer the same, so it is not read again.

        Args:
            directory: where it is now.
            name: where it is going to be, for messages.
            expected: what it should put out.

        Raises:
            ScenarioError: it cannot be read, or puts out something else.
        """
        content = model_content(directory)
        if self._answered is not None and self._answered[0] == content:
            before = self._answered[1]
            same = expected.same_question(before)
            if same and not any(self._differences(expected, before.outputs, TOLERANCE, 0.0)):
                return
        with unnoticed():
            try:
                model = self._read(directory, content)
                for variable, value in zip(model.seeds(), expected.seeds, strict=False):
                    variable.assign(value)
                outputs = model.outputs(expected.inputs)
            except Exception as error:
                if isinstance(error, OSError):
                    raise
                reason = str(error) if isinstance(error, ScenaError) else f"{type(error).__name__}: {error}"
                raise ScenarioError(
                    f"{name} cannot be read back: {reason.replace(str(directory), str(name))}"
                ) from error
        self._compare(str(name), expected, outputs, TOLERANCE, 0.0, lambda: model.outputs(expected.inputs))
        self._answered = None if content is None else (content, replace(expected, outputs=outputs))

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

            from scena.backends.tensorflow.op_by_op import unoptimized

            with unnoticed(), unoptimized():
                serve = tf.saved_model.load(str(directory / folder)).signatures["serving_default"]
                run = partial(_serve, serve, expected.inputs, graph)
                received = run()
            wanted = Expected(expected.inputs, {graph: outputs}, [])
            tolerance = SAVED_MODEL_TOLERANCES[self._precision]
            self._compare(str(name / folder), wanted, received, tolerance, WHOLE_NUMBERS, run)

    def _read(self, directory: Path, content: ModelContent | None) -> "RunningModel":
        export = load_export(directory, self._scenario)
        export.code_compared = True
        params = content.params if content is not None else None
        if self._kept is not None and params is not None and self._kept[0] == params:
            self._kept[1].built.load(directory)
            return self._kept[1]
        with precision_policy(self._precision):
            model = RunningModel(export.build())
        self._kept = (params, model) if self.keep or model.built.root.count_params() <= SMALL else None
        return model

    def _compare(
        self,
        name: str,
        expected: Expected,
        received: dict[str, Arrays],
        tolerance: float,
        whole_numbers: float,
        again: Callable[[], dict[str, Arrays]],
    ) -> None:
        """Raises an error that names the first output which differs, unless it also differs when the same model runs `again`."""
        for graph, output, value, allowed in self._differences(expected, received, tolerance, whole_numbers):
            where = "" if graph == "default" else f" of the graph {graph!r}"
            if value is None:
                raise ScenarioError(f"{name} has no output {output!r}{where}, which the model in memory has. {REMEDY}")
            with unnoticed():
                repeated = again()[graph][output]
            if not difference(received[graph][output], repeated) <= allowed:
                logger.warning("The output %r is random, so it is not verified in exports.", output)
                self._random.add((graph, output))
                continue
            raise ScenarioError(
                f"{name} does not give what the model in memory gives: its output {output!r}{where} differs by {value:.3g} on "
                f"the same samples (tolerance: {allowed:g}). {REMEDY}"
            )

    def _differences(
        self, expected: Expected, received: dict[str, Arrays], tolerance: float, whole_numbers: float
    ) -> Iterator[tuple[str, str, float | None, float]]:
        """The outputs that are too far apart: graph, output, how far (None if it is missing), and how far it may be."""
        for graph, outputs in expected.outputs.items():
            for output, wanted in outputs.items():
                if (graph, output) in self._random:
                    continue
                allowed = tolerance if np.issubdtype(wanted.dtype, np.floating) else whole_numbers
                there = received.get(graph, {}).get(output)
                value = None if there is None else difference(wanted, there)
                if value is None or not value <= allowed:
                    yield graph, output, value, allowed


def _serve(serve: Any, inputs: Arrays, graph: str) -> dict[str, Arrays]:
    """What the signature of a SavedModel puts out."""
    import tensorflow as tf

    tensors = {key: tf.convert_to_tensor(inputs[key]) for key in serve.structured_input_signature[1]}
    return {graph: {key: np.asarray(value) for key, value in serve(**tensors).items()}}


class RunningModel:
    """A model, and functions that run its graphs. They are compiled again when a layer keeps something else than before."""

    def __init__(self, built: "BuiltModel") -> None:
        self.built = built
        self._runs: dict[str, Callable[[Arrays], Arrays]] = {}
        self._constants: Constants | None = None

    def outputs(self, inputs: Arrays) -> dict[str, Arrays]:
        """What each graph puts out; graphs that need other inputs are skipped."""
        if self._constants is None or not self._constants.unchanged():
            self._runs = {name: backend().run_unchanged(graph) for name, graph in self.built.graphs.items()}
        found = {}
        for name, graph in self.built.graphs.items():
            wanted = list(graph.input) if isinstance(graph.input, dict) else [tensor.name for tensor in graph.inputs]
            if set(wanted) <= set(inputs):
                found[name] = self._runs[name]({key: inputs[key] for key in wanted})
        self._constants = self.built.layers().constants()
        return found

    def seeds(self) -> list[Any]:
        """The state of its random generators."""
        variables = self.built.prediction_model.variables
        return [variable for variable in variables if variable.path.endswith("seed_generator_state")]
