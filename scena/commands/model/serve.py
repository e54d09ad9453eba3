"""`scena serve MODEL…`: an exported model as an HTTP service."""

import re
import sys
from typing import Any

from scena.backends.params import DeviceParams
from scena.commands.model_command import ModelCommand, ModelsOptions, model_facts, task_of
from scena.data.params import DataPipelineParams
from scena.errors import ScenaError
from scena.params import Params, ParamsError, param
from scena.prediction.params import AutoRuntimeParams, RuntimeParams, ServeParams
from scena.prediction.serving.access import check_certificate, read_tokens
from scena.scenario.stored import load_export


class ServeRoot(Params):
    """The service."""

    serve: ServeParams = param(inline=True, help="where the service listens, and what it accepts")
    device: DeviceParams = param(help="what to compute on")
    runtime: RuntimeParams = param(AutoRuntimeParams(), help="what runs the model")


class Serve(ModelCommand):
    """Serves a model (several vote) over HTTP with the scenario's whole pipeline: POST JSON, a file or a form to
    /v1/models/NAME:predict. `/` is a page to try it, `/docs` describes everything.
    """

    name = "serve"
    options: ModelsOptions

    def root(self) -> ServeRoot:
        self.exports  # noqa: B018  (a wrong directory is reported before a wrong flag)
        return ServeRoot()

    def run(self) -> None:
        params: ServeParams = self.params.serve
        name = params.name or self.scenario.__name__.removesuffix("Scenario").lower() or "model"
        if not re.fullmatch(r"[\w.-]+", name):
            raise ParamsError(f"--name may hold letters, digits, '.', '-' and '_'. Received: {name!r}")
        check_certificate(params.tls_cert, params.tls_key)
        read_tokens(params)
        pipeline = DataPipelineParams(batch_size=params.max_batch, num_processes=0)
        predicting = self.scenario.predictor_params(
            pipeline=pipeline, device=self.params.device, runtime=self.params.runtime
        )
        print(f"Loading {', '.join(str(export.directory) for export in self.exports)} …", file=sys.stderr, flush=True)
        self.start_for(predicting)
        try:
            from scena.prediction.serving.server import serve
            from scena.prediction.serving.signature import ServedModel
        except ImportError as error:
            raise ScenaError(f"Serving needs more packages ({error.name}): pip install 'scena[serve]'.") from error

        directories = [export.directory for export in self.exports]
        exports = self.exports

        def load() -> tuple[Any, ServedModel]:
            nonlocal exports
            opened, exports = exports, []
            opened = opened or [load_export(directory, self.scenario) for directory in directories]
            predictor = self.scenario.create_predictor(opened if len(opened) > 1 else opened[0], predicting)
            # the evaluator knows the names of the classes, for reports
            evaluator = opened[0].scenario.create_evaluator(predictor.data)
            return predictor, ServedModel(name, evaluator.class_names(), task_of(self.scenario), model_facts(opened))

        serve(load, params, directories)
