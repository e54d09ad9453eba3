"""`scena predict --export_dir DIR… --data.…`: predict with one model, or let several vote."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scena.commands.model.exported import (
    ExportOptions,
    asks_for_help,
    open_exports,
    tell_of_limit,
    try_data,
    validation_batches,
)
from scena.commands.places import check_file
from scena.commands.scenario_argument import start_work
from scena.commands.usage import print_usage
from scena.data.params import DataGeneratorParams, PipelineMode
from scena.params import Params, param, parse, parse_options
from scena.prediction.answer_files import check_suffix
from scena.prediction.params import PredictorParams
from scena.scenario.errors import ScenarioError
from scena.terminal import visible

if TYPE_CHECKING:
    from scena.data.pipeline import DataPipeline

USAGE = """usage: scena predict --export_dir DIR… [--data.…] [--predict.…] [--pipeline.…] [--out FILE]

Predicts with an exported model; several directories vote. Prints what the scenario prints; --out FILE.jsonl writes JSON
lines, --out FILE.csv a table.
`scena predict --export_dir DIR --help` lists everything that can be set."""


class PredictOptions(ExportOptions):
    """Which models to predict with, and where the results go."""

    out: Path | None = param(
        None,
        help="write the outputs to this file: .jsonl for JSON lines, .csv for a table (-: JSON lines to the terminal)",
    )


class PredictRoot(Params):
    """What to predict, and how."""

    data: DataGeneratorParams | None = param(None, help="the data to predict")
    predict: PredictorParams = param(help="how to predict")


def run(arguments: list[str]) -> int:
    """Predicts with exported models."""
    options, rest = parse_options(PredictOptions, arguments)
    if not options.export_dir and asks_for_help(rest):
        print_usage(USAGE)
        return 0
    if options.out is not None:
        check_suffix(options.out)
        check_file("--out", options.out)
    scenario, exports = open_exports(options, "predict")
    pipelines = exports[0].params.pipelines
    # every sample is answered, in order: nothing is dropped, and nothing waits in a bucket
    pipeline = validation_batches(pipelines, batch_drop_remainder=False, bucket_boundaries=[], bucket_batch_sizes=[])
    default = PredictRoot(
        data=scenario.default_predict_source(pipelines), predict=scenario.predictor_params(pipeline=pipeline)
    )
    parsed = parse(default, rest, prog="scena predict", options=options)
    if parsed.params.data is None:
        raise ScenarioError("There is nothing to predict; name the data with --data.")
    try_data(parsed.params.data, PipelineMode.PREDICTION, parsed.params.predict.device)
    start_work(options)
    predictor = scenario.create_predictor(exports if len(exports) > 1 else exports[0], parsed.params.predict)
    pipeline = predictor.create_pipeline(parsed.params.data)
    limit = parsed.params.predict.pipeline.limit
    if pipeline.samples_per_epoch() == limit:
        tell_of_limit(parsed, "pipeline.limit", "the first", limit, own_data=parsed.params.data == default.data)
    _predict(predictor, pipeline, options.out)
    return 0


def _predict(predictor: Any, pipeline: "DataPipeline", out: Path | None) -> None:
    from scena.terminal import counting

    with counting("Predicting", pipeline.samples_per_epoch()) as advance, _Writer(predictor, out) as write:
        for sample in predictor.predict_pipeline(pipeline):
            write(sample)
            advance(1)


class _Writer:
    """Writes each sample to a file, or prints it as its model does."""

    def __init__(self, predictor: Any, out: Path | None) -> None:
        self._predictor = predictor
        self._out = out
        self._file: Any = None

    def __enter__(self) -> Callable[[Any], None]:
        if self._out is None:
            return self._print
        from scena.prediction.answer_files import JsonLines, Table

        try:
            self._file = sys.stdout if str(self._out) == "-" else self._out.open("w", encoding="utf-8", newline="")
        except OSError as error:
            raise ScenarioError(f"Cannot write to --out {self._out}: {error.strerror or error}.") from error
        return (Table if self._out.suffix.lower() == ".csv" else JsonLines)(self._file).write

    def __exit__(self, *error: object) -> None:
        if self._file not in (None, sys.stdout):
            self._file.close()

    def _print(self, sample: Any) -> None:
        self._predictor.print_prediction(sample, lambda text: print(visible(str(text))))
