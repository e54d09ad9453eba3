"""`scena lav MODEL…`: load and validate."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scena.commands.model_command import ModelCommand, ModelsOptions, model_facts, task_of, try_data
from scena.commands.output import check_file, make_folder, print_results
from scena.data.params import DataGeneratorParams, PipelineMode
from scena.errors import ScenarioError
from scena.evaluation.params import LAVParams
from scena.params import Params, param, to_raw
from scena.scenario.finding import AnyScenario
from scena.storage.run_layout import EXPORT_FILE, HISTORY_FILE

if TYPE_CHECKING:
    from scena.data.sample import Sample
    from scena.evaluation.report.collect import Collected
    from scena.scenario.loading import LoadedExport

Observer = Callable[[str, str, Any, "Sample"], None]
"""Called with the model's name, the part of the data, the LAV and each predicted sample."""


class LavOptions(ModelsOptions):
    """Which models to validate, and where the results go."""

    models: list[Path] = param(
        required=True,
        positional="MODEL",
        aliases=["export_dir"],
        help="a run, or its best or export directory; several are validated in one pass, and all together by vote",
    )
    json: Path | None = param(None, help="also write the results to this JSON file (- for the terminal)")
    dump: Path | None = param(None, help="write targets and predictions to this file, for scena evaluate-dump")
    report: Path | None = param(None, help="write a page with plots and examples of errors to this directory")


class LavRoot(Params):
    """What to validate on, and how."""

    data: DataGeneratorParams | None = param(None, help="the data to validate on (default: the run's validation data)")
    lav: LAVParams = param(help="how to validate")


class Lav(ModelCommand):
    """Loads models and computes losses, metrics and the evaluator's results on the data the run validated with, or on other data."""

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
        check_file("--json", options.json)
        check_file("--dump", options.dump)
        try_data(source, PipelineMode.EVALUATION, params.device)
        self.start()
        own_data = source == self.pipelines.val_gen()
        self.tell_of_limit("lav.limit", "a choice of", params.pipeline.limit, own_data=own_data)
        reporter = Reporter(options.report, exports, source) if options.report is not None else None
        with contextlib.ExitStack() as stack:
            observers = _observers(stack, options, exports)
            results = validate(self.scenario, exports, params, source, observers, reporter)
        print_results(results, options.json)
        if reporter is not None:
            print(f"Report: {reporter.write(results)}")


class Reporter:
    """Watches a validation and writes its report.

    Args:
        directory: where the page goes.
        exports: the models.
        source: the data they are validated on.
    """

    def __init__(self, directory: Path, exports: "list[LoadedExport]", source: DataGeneratorParams) -> None:
        from scena.evaluation.report.page import Report
        from scena.plots import new_figure

        new_figure()  # says at once if matplotlib is missing
        make_folder("--report", directory)
        self._exports = exports
        self._source = source
        scenario = type(exports[0].scenario)
        facts = model_facts(exports, Data=type(source).__name__.removesuffix("Params"))
        self._report = Report(directory, scenario.__name__, task_of(scenario), facts)
        self._collected: dict[tuple[str, str], Collected] = {}

    def observe(self, name: str, part: str, lav: Any, sample: "Sample") -> None:
        """Keeps what the page needs of a sample."""
        from scena.evaluation.report.collect import Collected

        del lav
        if (name, part) not in self._collected:
            self._collected[name, part] = Collected()
        self._collected[name, part](sample)

    def add(self, title: str, name: str, part: str, evaluator: Any) -> None:
        """A section for one model on one part of the data, once it has been validated."""
        self._report.add_model(title, self._collected.pop((name, part)), evaluator)

    def write(self, results: dict[str, dict[str, Any]]) -> Path:
        """Writes the page."""
        from scena.scenario.stored import read_description, versions

        page = self._report
        runs = dict.fromkeys(export.directory.resolve().parent for export in self._exports)
        for run in runs:
            page.add_history(run / HISTORY_FILE, run.name if len(runs) > 1 else "")
        stored = {str(export.directory): read_description(export.directory / EXPORT_FILE) for export in self._exports}
        parts = {"params": "scenario", "pipelines": "pipelines", "trainer": "trainer"}
        page.add_values(
            "Parameters",
            {name: {part: one[key] for key, part in parts.items() if key in one} for name, one in stored.items()},
        )
        made = {f"training of {name}": one.get("versions", {}) for name, one in stored.items()}
        page.add_values("Versions", {"this report": versions(), **made})
        page.add_values("Data", {"value": to_raw(self._source)})
        return page.write(results)


def _observers(stack: contextlib.ExitStack, options: LavOptions, exports: "list[LoadedExport]") -> list[Observer]:
    if options.dump is None:
        return []
    from scena.evaluation.dump import DumpWriter
    from scena.scenario.stored import describe_export

    first = exports[0]
    models = [str(export.directory) for export in exports]
    header = describe_export(type(first.scenario), first.params, models=models)
    writer = stack.enter_context(DumpWriter(options.dump, {**header, "format": "scena-dump"}))
    several = len(exports) > 1
    return [lambda name, part, lav, sample: writer.write(lav.extract_dump_data(sample), name if several else "", part)]


def validate(
    scenario: AnyScenario,
    exports: "list[LoadedExport]",
    params: LAVParams,
    source: DataGeneratorParams,
    observers: list[Observer],
    reporter: Reporter | None = None,
) -> dict[str, dict[str, Any]]:
    """The results by model and part of the data; several models run in one pass where they share their inputs."""
    groups = [exports] if len(exports) > 1 and _share_inputs(exports) else [[export] for export in exports]
    results: dict[str, dict[str, Any]] = {}
    for group in groups:
        lav = scenario.create_multi_lav(group, params)
        first = next(iter(lav.lavs.values()))
        for part, part_source in source.parts().items():
            watching = [*observers, reporter.observe] if reporter is not None else observers
            for name, values in _run(lav, first, part, part_source, watching).items():
                title = " ".join(filter(None, [name, part]))
                results[title] = values
                if reporter is not None:
                    reporter.add(title, name, part, lav.lavs[name].evaluator if name in lav.lavs else lav.evaluator)
    return results


def _run(lav: Any, first: Any, part: str, source: DataGeneratorParams, observers: list[Observer]) -> Any:
    from scena.display import counting

    def observe(name: str, sample: "Sample") -> None:
        for observer in observers:
            observer(name, part, lav.lavs.get(name, first), sample)

    total = first.create_pipeline(source).samples_per_epoch()
    with counting(f"Validating {part}".strip(), total) as advance:
        return lav.run(source, advance, observe if observers else None)


def _share_inputs(exports: "list[LoadedExport]") -> bool:
    import logging

    from scena.scenario.loading import check_same_inputs

    try:
        check_same_inputs(exports, PipelineMode.EVALUATION)
    except ScenarioError as reason:
        logging.getLogger(__name__).info("Validating one model after the other: %s", reason)
        return False
    return True
