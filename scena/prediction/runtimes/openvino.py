"""Predicts with OpenVINO, on the CPU."""

from pathlib import Path

from scena.prediction.formats.openvino import open_model
from scena.prediction.runtimes.base import Arrays
from scena.prediction.runtimes.parallel import Call, ParallelRuntime, exclusive
from scena.signals import own_signal_stack


class OpenVINORuntime(ParallelRuntime):
    """Runs what the format openvino wrote."""

    package = "openvino"
    copies_weights = True

    def load(self, path: Path, threads: int | None, calls: int) -> Call:
        def create() -> Call:
            # calls of one model with several streams are handed over to its own threads, and those of one stream wait for each other
            with own_signal_stack():
                model = open_model(path, threads)
                request = model.create_infer_request()
            inputs = [port.any_name for port in model.inputs]
            outputs = {name: model.output(name) for name in self.converted.outputs}

            def call(values: Arrays) -> Arrays:
                with own_signal_stack():
                    found = request.infer({name: values[name] for name in inputs}, share_inputs=True)
                return {name: found[port] for name, port in outputs.items()}

            return call

        return exclusive(create, calls, create())
