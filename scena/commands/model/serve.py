"""`scena serve DIR… [--port 8501]`: an exported model as an HTTP service."""

import re
from pathlib import Path

from scena.backends.params import DeviceParams
from scena.commands.model.exported import ExportOptions, asks_for_help, open_exports
from scena.commands.scenario_argument import start_work
from scena.commands.usage import print_usage
from scena.data.params import DataPipelineParams
from scena.params import Params, ParamsError, param, parse, parse_options
from scena.prediction.params import ServeParams

USAGE = """usage: scena serve DIR… [--port 8501] [--host 127.0.0.1] [--max_batch 32] …

Serves an exported model (several vote) over HTTP with the scenario's whole pipeline: POST JSON, a file or a form to
/v1/models/NAME:predict. `/` is a page to try it with a picture, `/docs` lists everything.
`scena serve DIR --help` lists everything that can be set."""


class ServeOptions(ExportOptions):
    """Which models."""

    export_dir: list[Path] = param([], hidden=True, help="the directories, named first")


class ServeRoot(Params):
    """The service."""

    serve: ServeParams = param(inline=True, help="where the service listens, and what it accepts")
    device: DeviceParams = param(help="what to compute on")


def run(arguments: list[str]) -> int:
    """Serves exported models."""
    count = next((place for place, argument in enumerate(arguments) if argument.startswith("-")), len(arguments))
    if not count:
        if asks_for_help(arguments):
            print_usage(USAGE)
            return 0
        raise ParamsError("name the model first: scena serve RUN/best")
    options, rest = parse_options(ServeOptions, arguments[count:])
    options.export_dir = [Path(argument) for argument in arguments[:count]]
    scenario, exports = open_exports(options, "serve")
    parsed = parse(ServeRoot(), rest, prog=f"scena serve {' '.join(arguments[:count])}", options=options)
    params: ServeParams = parsed.params.serve
    name = params.name or scenario.__name__.removesuffix("Scenario").lower() or "model"
    if not re.fullmatch(r"[\w.-]+", name):
        raise ParamsError(f"--name may hold letters, digits, '.', '-' and '_'. Received: {name!r}")
    start_work(options)
    from scena.prediction.serving.run import serve

    pipeline = DataPipelineParams(batch_size=params.max_batch, num_processes=0)
    predictor = scenario.create_predictor(
        exports if len(exports) > 1 else exports[0],
        scenario.predictor_params(pipeline=pipeline, device=parsed.params.device),
    )
    evaluator = exports[0].scenario.create_evaluator(predictor.data)  # it knows the names of the classes, for reports
    serve(predictor, params, name, evaluator.class_names())
    return 0
