"""`scena predict MODEL… --data.…`: predict with one model, or let several vote."""

import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scena.commands.model_command import ModelCommand, ModelsOptions, try_data
from scena.commands.output import check_file
from scena.data.params import DataGeneratorParams, PipelineMode
from scena.display import counting, visible
from scena.errors import ScenarioError
from scena.params import Params, param
from scena.prediction.params import PredictorParams

logger = logging.getLogger(__name__)


class PredictOptions(ModelsOptions):
    """Which models to predict with, and where the results go."""

    out: Path | None = param(
        None,
        help="write the outputs to this file, classes by name: .jsonl for JSON lines, .csv for a table "
        "(-: JSON lines to the terminal)",
    )


class PredictRoot(Params):
    """What to predict, and how."""

    data: DataGeneratorParams | None = param(None, help="the data to predict")
    predict: PredictorParams = param(help="how to predict")


class Predict(ModelCommand):
    """Predicts with a model; several vote. Prints what the scenario prints; --out FILE.jsonl writes JSON lines, --out FILE.csv a
    table.
    """

    name = "predict"
    options: PredictOptions

    def root(self) -> PredictRoot:
        if self.options.out is not None:
            from scena.prediction.answer_files import check_suffix  # late: it needs numpy, `--help` does not

            check_suffix(self.options.out)
            check_file("--out", self.options.out)
        # every sample is answered, in order: nothing is dropped, and nothing waits in a bucket
        batches = self.validation_batches(batch_drop_remainder=False, bucket_boundaries=[], bucket_batch_sizes=[])
        source = self.scenario.default_predict_source(self.pipelines)
        return PredictRoot(data=source, predict=self.scenario.predictor_params(pipeline=batches))

    def run(self) -> None:
        source, params = self.params.data, self.params.predict
        if source is None:
            raise ScenarioError("There is nothing to predict; name the data with --data.")
        try_data(source, PipelineMode.PREDICTION, params.device)
        self.start_for(params)
        predictor = self.scenario.create_predictor(self.exports if len(self.exports) > 1 else self.exports[0], params)
        pipeline = predictor.create_pipeline(source)
        limit = params.pipeline.limit
        if pipeline.samples_per_epoch() == limit:
            own_data = source == self.scenario.default_predict_source(self.pipelines)
            self.warn_of_limit("pipeline.limit", "the first", limit, own_data=own_data)
        total = pipeline.samples_per_epoch()
        # the evaluator knows the names of the classes, for reports
        names = self.exports[0].scenario.create_evaluator(predictor.data).class_names() if self.options.out else []
        with counting("Predicting", total) as advance, _writing(predictor, self.options.out, names) as write:
            for sample in predictor.predict_pipeline(pipeline):
                write(sample)
                advance(1)


@contextmanager
def _writing(predictor: Any, out: Path | None, names: Sequence[str]) -> Iterator[Callable[[Any], None]]:
    """Yields what writes a sample to the file, with the names of its classes, or prints it as its model does."""
    if out is None:
        yield lambda sample: predictor.print_prediction(sample, lambda text: print(visible(str(text))))
        return
    from scena.prediction.answer_files import JsonLines, Table
    from scena.prediction.class_names import has_one_class

    one_class = has_one_class(predictor.data.target_layer_specs())
    kind = Table if out.suffix.lower() == ".csv" else JsonLines
    if str(out) == "-":
        yield kind(sys.stdout, names, one_class=one_class).write
        return
    # a pipe or a link, for example
    in_place = out.is_symlink() or (out.exists() and not (out.is_file() and os.access(out.parent, os.W_OK)))
    written = out if in_place else out.with_name(f"{out.name}.part")
    try:
        file = written.open("w", encoding="utf-8", newline="")
    except OSError as error:
        raise ScenarioError(f"Cannot write to --out {out}: {error.strerror or error}.") from error
    try:
        with file:
            yield kind(file, names, one_class=one_class).write
    except BaseException:
        if not in_place and written.stat().st_size:
            logger.warning("What was predicted before the error is in %s.", written)
        elif not in_place:
            written.unlink()
        raise
    if not in_place:
        written.replace(out)
