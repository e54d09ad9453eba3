"""Predicts with OpenVINO, on the CPU."""

import threading
from pathlib import Path
from typing import Any

from scena.prediction.formats.openvino import open_model
from scena.prediction.runtimes.base import Arrays
from scena.prediction.runtimes.converted import ConvertedRuntime


class OpenVINORuntime(ConvertedRuntime):
    """Runs what the format openvino wrote."""

    package = "openvino"

    def open(self, path: Path, threads: int | None) -> None:
        self._model = open_model(path, threads)
        self._inputs = [port.any_name for port in self._model.inputs]
        self._outputs = {name: self._model.output(name) for name in self.converted.outputs}
        self._local = threading.local()

    def predict(self, inputs: Arrays) -> Arrays:
        request: Any = getattr(self._local, "request", None)
        if request is None:  # a request serves one call at a time
            request = self._local.request = self._model.create_infer_request()
        values = request.infer({name: inputs[name] for name in self._inputs}, share_inputs=True)
        return {name: values[port] for name, port in self._outputs.items()}
