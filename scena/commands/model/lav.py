"""`scena lav MODEL…`: load and validate."""

import contextlib
import logging
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scena.commands.model_command import ModelCommand, ModelsOptions, model_facts, task_of, try_data
from scena.commands.output import check_file, check_plot, make_folder, print_intervals, print_results, write_plot
from scena.data.params import DataGeneratorParams, PipelineMode
from scena.data.sources.params import SplitSourceParams
from scena.errors import ScenarioError
from scena.evaluation.params import LAVParams
from scena.params import Params, param, to_raw
from scena.scenario.finding import AnyScenario
from scena.storage.run_layout import EXPORT_FILE, HISTORY_FILE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from scena.data.sample import Sample
    from scena.evaluation.dump import DumpWriter
    from scena.evaluation.per_sample import Intervals
    from scena.evaluation.report.collect import Collected
    from scena.evaluation.report.page import Report
    from scena.scenario.stored import LoadedExport

logger = logging.getLogger(__name__)

Show = Callable[[str, "Collected", Any], None]
"""Called with a title, the samples that were collected, and the evaluator of each model and part of the data."""


class LavOptions(ModelsOptions):
    """Which models to validate, and where the results go."""

    json: Path | None = param(None, help="also write the results to this JSON file (- for the terminal)")
    dump: Path | None = param(None, help="write targets and predictions to this file, for scena evaluate-dump")
    report: Path | None = param(None, help="write a page with plots and examples of errors to this directory")
    bootstrap: int | None = param(
        None,
        ge=100,
        le=1_000_000,
        help="95 % intervals of the results from this many resamples of the samples, such as 1000; measures sample by sample",
    )
    plot: Path | None = param(
        None, help="draw the confusion matrix or predicted numbers, and what the evaluator draws, into this file"
    )


class LavRoot(Params):
    """What to validate on, and how."""

    data: DataGeneratorParams | None = param(None, help="the data to validate on (default: the run's validation data)")
    lav: LAVParams = param(help="how to validate")


class Lav(ModelCommand):
    """Loads models and computes losses, metrics and the evaluator's results on the data the run validated with, or on other data.

    Several models are validated in one pass, each on its own and all together by vote.
    """

    name = "lav"
    options: LavOptions

    def root(self) -> LavRoot:
        # each sample counts, also those that do not fill a batch
        batches = self.validation_batches(batch_drop_remainder=False)
        return LavRoot(data=self._source(), lav=self.scenario.lav_params(pipeline=batches))

    def _source(self) -> DataGeneratorParams | None:
        """The run's validation data, or the source of `scena predict` if the flags are its own and no class is named."""
        own, other = self.pipelines.val_gen(), self.scenario.default_predict_source(self.pipelines)
        flags = [word.partition("=")[0] for word in self.given]
        names = {flag.split(".")[1] for flag in flags if flag.startswith("--data.")}
        if "--data" in flags or other is None or names <= set(type(own).__params__ if own is not None else ()):
            return own
        return other if names <= set(type(other).__params__) else own

    def run(self) -> None:
        options, params, exports = self.options, self.params.lav, self.exports
        source: DataGeneratorParams | None = self.params.data
        if source is None:
            raise ScenarioError("The run had no validation data; name some with --data.")
        own = self.pipelines.val_gen()
        if isinstance(source, SplitSourceParams):
            source = source.beside(own)
        check_file("--json", options.json)
        check_file("--dump", options.dump)
        check_plot(options.plot)
        if options.report is not None:
            from scena.plots import new_figure

            new_figure()  # raises at once if matplotlib is missing
        try_data(source, PipelineMode.EVALUATION, params.device)
        self.start_for(params)
        own_data = source == own
        self.warn_of_limit("lav.limit", "a choice of", params.pipeline.limit, own_data=own_data)
        report = _new_report(options.report, exports, source) if options.report is not None else None
        figures: dict[str, Figure] = {}

        def show(title: str, collected: "Collected", evaluator: Any) -> None:
            if report is not None:
                report.add_model(title, collected, evaluator)
            if options.plot is not None:
                from scena.evaluation.report.plots import model_figures

                drawn = model_figures(collected, evaluator)
                figures.update({f"{title}: {caption}": figure for caption, figure in drawn.items()})

        shown = show if report is not None or options.plot is not None else None
        with contextlib.ExitStack() as stack:
            dump = stack.enter_context(_new_dump(options.dump, exports)) if options.dump is not None else None
            intervals: dict[str, Intervals] | None = {} if options.bootstrap is not None else None
            results = validate(self.scenario, exports, params, source, dump, shown, intervals, options.bootstrap or 0)
        if intervals:
            print_intervals(results, intervals, options.bootstrap or 0, options.json)
        else:
            print_results(results, options.json)
        if report is not None:
            _add_facts(report, exports, source)
            print(f"Report: {report.write(results)}")
        if options.plot is not None:
            write_plot(options.plot, figures)


def _new_report(directory: Path, exports: "list[LoadedExport]", source: DataGeneratorParams) -> "Report":
    from scena.evaluation.report.page import Report

    make_folder("--report", directory)
    scenario = type(exports[0].scenario)
    facts = model_facts(exports, Data=type(source).__name__.removesuffix("Params"))
    return Report(directory, scenario.__name__, task_of(scenario), facts)


def _add_facts(report: "Report", exports: "list[LoadedExport]", source: DataGeneratorParams) -> None:
    """Adds the curves of the trainings, the parameters and the versions to a report."""
    from scena.scenario.stored import read_description, versions

    runs = dict.fromkeys(export.directory.resolve().parent for export in exports)
    for run in runs:
        report.add_history(run / HISTORY_FILE, run.name if len(runs) > 1 else "")
    stored = {str(export.directory): read_description(export.directory / EXPORT_FILE) for export in exports}
    parts = {"params": "scenario", "pipelines": "pipelines", "trainer": "trainer"}
    report.add_values(
        "Parameters",
        {name: {part: one[key] for key, part in parts.items() if key in one} for name, one in stored.items()},
    )
    made = {f"training of {name}": one.get("versions", {}) for name, one in stored.items()}
    report.add_values("Versions", {"this report": versions(), **made})
    report.add_values("Data", {"value": to_raw(source)})


def _new_dump(path: Path, exports: "list[LoadedExport]") -> "DumpWriter":
    from scena.evaluation.dump import DumpWriter
    from scena.scenario.stored import describe

    models = [str(export.directory) for export in exports]
    header = describe(type(exports[0].scenario), exports[0].params, models=models)
    return DumpWriter(path, {**header, "format": "scena-dump"})


def validate(
    scenario: AnyScenario,
    exports: "list[LoadedExport]",
    params: LAVParams,
    source: DataGeneratorParams,
    dump: "DumpWriter | None" = None,
    show: Show | None = None,
    intervals: "dict[str, Intervals] | None" = None,
    resamples: int = 0,
) -> dict[str, dict[str, Any]]:
    """The results by model and part of the data; several models run in one pass where they share their inputs. If `intervals` is a
    dict, it gets those of each result, from that many `resamples`.
    """
    groups = [exports] if len(exports) > 1 and _share_inputs(exports) else [[export] for export in exports]
    results: dict[str, dict[str, Any]] = {}
    for group in groups:
        lav = scenario.create_multi_lav(group, group[0].with_own_processing(params, exports[0]))
        for part, part_source in source.parts().items():
            found = _validate_part(lav, part, part_source, dump, show, several=len(exports) > 1)
            results |= found
            if intervals is not None:
                intervals |= _intervals(lav, part, part_source, found, resamples)
    return results


def _intervals(
    lav: Any, part: str, source: DataGeneratorParams, results: dict[str, dict[str, Any]], resamples: int
) -> "dict[str, Intervals]":
    """The intervals of each model's results on one part of the data."""
    from scena.display import counting
    from scena.evaluation.per_sample import bootstrap, measure_samples

    first = next(iter(lav.lavs.values()))
    with counting("Measuring each sample", first.create_pipeline(source).samples_per_epoch()) as advance:
        measured = measure_samples(lav, source, advance)
    found = {}
    for name, own in measured.items():
        title = " ".join(filter(None, [name, part]))
        with counting("Resampling", resamples) as advance:
            found[title] = bootstrap(own, results[title], lav.evaluator_of(name), resamples, advance)
    return found


def _validate_part(
    lav: Any, part: str, source: DataGeneratorParams, dump: "DumpWriter | None", show: Show | None, *, several: bool
) -> dict[str, dict[str, Any]]:
    from scena.display import counting
    from scena.evaluation.report.collect import Collected

    first = next(iter(lav.lavs.values()))
    collected: dict[str, Collected] = defaultdict(Collected)

    def observe(name: str, sample: "Sample") -> None:
        if dump is not None:
            dump.write(lav.lavs.get(name, first).extract_dump_data(sample), name if several else "", part)
        if show is not None:
            collected[name](sample)

    with counting(f"Validating {part}".strip(), first.create_pipeline(source).samples_per_epoch()) as advance:
        found = lav.run(source, advance, observe if dump is not None or show is not None else None)
    results = {}
    for name, values in found.items():
        title = " ".join(filter(None, [name, part]))
        results[title] = values
        if show is not None:
            show(title, collected[name], lav.evaluator_of(name))
    return results


def _share_inputs(exports: "list[LoadedExport]") -> bool:
    from scena.prediction.voting import check_same_inputs

    try:
        check_same_inputs(exports, PipelineMode.EVALUATION)
    except ScenarioError as reason:
        logger.info("Validating one model after the other: %s", reason)
        return False
    return True
