"""Runtimes of converted models, which need no Keras: what they share, and the choice of one (`auto`)."""

import importlib
import logging
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from scena.backends.params import ComputeParams
from scena.backends.selection import visible_gpus
from scena.data.spec import ArraySpec
from scena.errors import ScenarioError, first_line
from scena.params import short_name
from scena.prediction.converted import NotVerifiedError, find_verified
from scena.prediction.params import (
    AutoRuntimeParams,
    ConvertedRuntimeParams,
    KerasRuntimeParams,
    LiteRTRuntimeParams,
    OnnxRuntimeParams,
    OpenVINORuntimeParams,
    RuntimeParams,
)
from scena.prediction.runtimes.base import Arrays, Export, Runtime

logger = logging.getLogger(__name__)

PREFERRED: tuple[type[ConvertedRuntimeParams], ...] = (OnnxRuntimeParams, OpenVINORuntimeParams, LiteRTRuntimeParams)
"""What `auto` looks for, in this order."""


class ConvertedRuntime(Runtime):
    """Runs a converted model that was verified.

    Raises:
        ScenarioError: the export has none, or it cannot be opened; the message says how to add it.
    """

    package: ClassVar[str]
    """What it needs; the extra has the name of the runtime."""

    def __init__(self, params: ConvertedRuntimeParams, export: Export) -> None:
        super().__init__(params, export)
        name = short_name(type(params))
        try:
            path, self.converted = find_verified(export.directory, params.format())
        except NotVerifiedError as error:
            raise ScenarioError(f"The runtime {name} cannot be used: {error}") from None
        self.model_prints = self.converted.model_prints
        try:
            importlib.import_module(self.package)
        except ImportError as error:
            raise ScenarioError(f"The runtime {name} needs {self.package}: pip install 'scena[{name}]'.") from error
        try:
            self.open(path, params.threads)
        except Exception as error:  # each library has its own
            raise ScenarioError(f"The runtime {name} cannot open {path}: {first_line(error)[:300]}") from error

    def open(self, path: Path, threads: int | None) -> None:
        """Opens the file or folder."""
        raise NotImplementedError(f"{type(self).__name__} must open the model: override open(path, threads).")

    def inputs(self) -> list[str]:
        return list(self.converted.inputs)

    def outputs(self) -> dict[str, ArraySpec]:
        return {name: described.spec() for name, described in self.converted.outputs.items()}

    def predict(self, inputs: Arrays) -> Arrays:
        raise NotImplementedError(f"{type(self).__name__} must run the model: override predict(inputs).")


def chosen(params: RuntimeParams, directory: Path, device: ComputeParams, *, eager: bool = False) -> RuntimeParams:
    """The runtime for an export: what `auto` stands for, or `params` itself.

    Raises:
        ScenarioError: a converted model cannot run on this device, or op by op.
    """
    name = short_name(type(params))
    if isinstance(params, ConvertedRuntimeParams):
        if eager:
            raise ScenarioError(f"The runtime {name} cannot run op by op (run_eagerly); the runtime keras can.")
        if device.gpu_indices():
            raise ScenarioError(
                f"The runtime {name} runs on the CPU, and GPUs were asked for; the runtime keras uses them."
            )
    if not isinstance(params, AutoRuntimeParams):
        return params
    if eager or device.gpu_indices() or (device.gpus == ["auto"] and visible_gpus()):
        return KerasRuntimeParams()
    for candidate in PREFERRED:
        try:
            _, model = find_verified(directory, candidate().format())
        except NotVerifiedError as error:
            logger.debug("%s", error)
            continue
        if find_spec(candidate.implementation().package) is not None:
            worst = max(model.differences.values(), default=0.0)
            logger.info(
                "%s runs with %s (verified on %d samples: it differs by %.2g, tolerance %g).",
                directory,
                short_name(candidate),
                model.samples,
                worst,
                model.tolerance,
            )
            return candidate()
    return KerasRuntimeParams()
