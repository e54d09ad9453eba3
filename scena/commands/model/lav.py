"""`scena lav --export_dir DIR… [--data.…] [--lav.…]`: load and validate."""

import contextlib
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
from scena.commands.model.reporting import Reporter
from scena.commands.output import print_results
from scena.commands.places import check_file
from scena.commands.scenario_argument import start_work
from scena.commands.usage import print_usage
from scena.data.params import DataGeneratorParams, PipelineMode
from scena.evaluation.params import LAVParams
from scena.params import Params, param, parse, parse_options
from scena.scenario.errors import ScenarioError
from scena.scenario.finding import AnyScenario

if TYPE_CHECKING:
    from scena.data.sample import Sample
    from scena.scenario.loading import LoadedExport

USAGE = """usage: scena lav --export_dir DIR… [--data.…] [--lav.…] [--dump FILE] [--report DIR] [--json FILE]

Loads exported models and computes losses, metrics and the evaluator's results on the data the run validated with, or on other data.
Several models are validated in one pass, each on its own and all together by vote.
`scena lav --export_dir DIR --help` lists everything that can be set."""

Observer = Callable[[str, str, Any, "Sample"], None]
"""Called with the model's name, the part of the data, the LAV and each predicted sample."""


class LavOptions(ExportOptions):
    """Which models to validate, and where the results go."""

    json: Path | None = param(None, help="also write the results to this JSON file (- for the terminal)")
    dump: Path | None = param(None, help="write targets and predictions to this file, for scena evaluate-dump")
    report: Path | None = param(None, help="write a page with plots and examples of errors to this directory")


class LavRoot(Params):
    """What to validate on, and how."""

    data: DataGeneratorParams | None = param(None, help="the data to validate on (default: the run's validation data)")
    lav: LAVParams = param(help="how to validate")


def run(arguments: list[str]) -> int:
    """Validates exported models."""
    options, rest = parse_options(LavOptions, arguments)
    if not options.export_dir and asks_for_help(rest):
        print_usage(USAGE)
        return 0
    scenario, exports = open_exports(options, "lav")
    pipelines = exports[0].params.pipelines
    # each sample counts, also those that do not fill a batch
    batches = validation_batches(pipelines, batch_drop_remainder=False)
    default = LavRoot(data=pipelines.val_gen(), lav=scenario.lav_params(pipeline=batches))
    parsed = parse(default, rest, prog="scena lav", options=options)
    source: DataGeneratorParams | None = parsed.params.data
    if source is None:
        raise ScenarioError("The run had no validation data; name some with --data.")
    check_file("--json", options.json)
    check_file("--dump", options.dump)
    try_data(source, PipelineMode.EVALUATION, parsed.params.lav.device)
    start_work(options)
    tell_of_limit(parsed, "lav.limit", "a choice of", parsed.params.lav.pipeline.limit, own_data=source == default.data)
    reporter = Reporter(options.report, exports, source) if options.report is not None else None
    with contextlib.ExitStack() as stack:
        observers = _observers(stack, options, exports)
        results = validate(scenario, exports, parsed.params.lav, source, observers, reporter)
    print_results(results, options.json)
    if reporter is not None:
        print(f"Report: {reporter.write(results)}")
    return 0


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
    from scena.terminal import counting

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
