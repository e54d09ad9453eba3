"""`scena evaluate-dump FILE`: the evaluator's results from a dump of `scena lav --dump`, without the model."""

from collections import defaultdict
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scena.commands.command import Command, ImportOptions
from scena.commands.output import Results, check_file, check_plot, print_intervals, print_results, write_plot
from scena.params import Params, param, root_of
from scena.scenario.finding import AnyScenario

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from scena.evaluation.per_sample import Intervals

NOTHING = "There are no results: this scenario has no evaluator (evaluator_cls), and losses and metrics need the model: scena lav."


class DumpOptions(ImportOptions):
    """Which dump, and where the results go."""

    file: Path = param(required=True, positional="FILE", help="what `scena lav MODEL --dump FILE` wrote")
    scenario: str | None = param(None, help="the scenario, if its module is not where it was")
    json: Path | None = param(None, help="also write the results to this JSON file (- for the terminal)")
    bootstrap: int | None = param(
        None,
        ge=100,
        le=1_000_000,
        help="95 % intervals of the results from this many resamples of the samples, such as 1000",
    )
    plot: Path | None = param(
        None, help="draw the confusion matrix or predicted numbers, and what the evaluator draws, into this file"
    )


class EvaluateDump(Command):
    """Computes the results of the scenario's evaluator from targets and predictions that `scena lav --dump` wrote; no model is
    loaded.
    """

    name = "evaluate-dump"
    options: DumpOptions

    @cached_property
    def stored(self) -> tuple[AnyScenario, Any]:
        """The scenario of the dump, and its parameters."""
        return stored_scenario(self.options.file, self.options.scenario)

    def root(self) -> Params:
        return root_of(evaluator=self.stored[1].evaluator)

    def run(self) -> None:
        check_file("--json", self.options.json)
        check_plot(self.options.plot)
        self.show_log()
        scenario, params = self.stored
        params.evaluator = self.params.evaluator
        results, figures = evaluate(self.options.file, scenario(params), plot=self.options.plot is not None)
        if self.options.bootstrap is not None and any(results.values()):
            intervals = _intervals(self.options.file, scenario(params), results, self.options.bootstrap)
            print_intervals(results, intervals, self.options.bootstrap, self.options.json)
        else:
            print_results(results, self.options.json, NOTHING if results else "There are no samples in this dump.")
        if self.options.plot is not None:
            write_plot(self.options.plot, figures)


def evaluate(path: Path, scenario: Any, *, plot: bool = False) -> "tuple[Results, dict[str, Figure]]":
    """The evaluator's results by model and part of the data, and their figures if there shall be a plot."""
    from scena.evaluation.dump import read_dump
    from scena.evaluation.report.collect import Collected
    from scena.evaluation.report.plots import model_figures

    data = scenario.create_data()
    results: Results = {}
    figures: dict[str, Figure] = {}
    evaluators: dict[str, Any] = {}
    collected: dict[str, Collected] = defaultdict(Collected)
    with ExitStack() as stack:
        for model, part, sample in read_dump(path):
            name = " ".join(filter(None, [model, part]))
            if name not in evaluators:
                evaluators[name] = stack.enter_context(scenario.create_evaluator(data))
            evaluators[name].update_state(sample)
            if plot:
                collected[name](sample)
        for name, evaluator in evaluators.items():
            results[name] = evaluator.result()
            if plot:
                drawn = model_figures(collected[name], evaluator)
                figures |= {f"{name}: {caption}".lstrip(": "): figure for caption, figure in drawn.items()}
    return results, figures


def _intervals(path: Path, scenario: Any, results: Results, resamples: int) -> "dict[str, Intervals]":
    from scena.display import counting
    from scena.evaluation.dump import read_dump
    from scena.evaluation.per_sample import SampleResults, bootstrap

    data = scenario.create_data()
    measured: dict[str, SampleResults] = defaultdict(SampleResults)
    for model, part, sample in read_dump(path):
        measured[" ".join(filter(None, [model, part]))].samples.append(sample)
    found = {}
    for name, own in measured.items():
        with counting("Resampling", resamples) as advance:
            found[name] = bootstrap(own, results[name], scenario.create_evaluator(data), resamples, advance)
    return found


def stored_scenario(path: Path, explicit: str | None) -> tuple[AnyScenario, Any]:
    """The scenario of a dump (`explicit`, if a user named it), and its parameters."""
    from scena.evaluation.dump import read_header
    from scena.scenario.finding import scenario_of
    from scena.scenario.stored import joined, stored_export

    header = joined(read_header(path), path)
    scenario = scenario_of(header["scenario"], path, explicit)
    return scenario, stored_export(header, scenario, path).scenario
