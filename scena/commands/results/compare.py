"""`scena compare A B`: tests whether two models, or two groups of runs over seeds, differ on the same samples."""

import math
import os
import sys
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scena.commands.command import Command
from scena.commands.model.lav import LavRoot
from scena.commands.model_command import ModelCommand, StoredOptions, export_of, try_data
from scena.commands.output import check_file, check_plot, print_table, print_wrapped, write_plot
from scena.data.params import DataGeneratorParams, PipelineMode
from scena.data.sources.params import SplitSourceParams
from scena.display import number, one_line
from scena.errors import ScenarioError
from scena.params import Params, ParamsError, param
from scena.scenario.ensemble import is_ensemble, members
from scena.storage.json_text import json_text
from scena.storage.run_layout import BEST, ENSEMBLE_FILE, EXPORT_FILE, PARAMS_FILE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from scena.evaluation.compare import Side
    from scena.evaluation.statistics.claims import Comparison
    from scena.scenario.stored import LoadedExport

WHAT = "a run, its best or export directory, an ensemble, a folder of runs that differ only in their seed, or a dump of scena lav"


class CompareOptions(StoredOptions):
    """What to compare."""

    first: Path = param(required=True, positional="A", help=WHAT)
    second: Path = param(required=True, positional="B", help="the same")
    resamples: int = param(2000, ge=100, help="resamples of the paired bootstrap")
    json: Path | None = param(None, help="also write the tests to this JSON file (- for the terminal)")
    plot: Path | None = param(None, help="draw the differences and their intervals into this file")


class Compare(ModelCommand):
    """Compares two models, or two groups of runs over seeds, sample by sample: paired bootstrap, McNemar's test for classes, effect
    sizes, and a sentence that says what may be claimed.

    Without --data both are measured on the data their runs validated with. Two dumps are compared without their models.
    """

    name = "compare"
    options: CompareOptions

    @cached_property
    def sides(self) -> "list[list[list[LoadedExport]]]":
        """The models of A and of B: each one export, or the members of an ensemble."""
        given = [_models(path) for path in (self.options.first, self.options.second)]
        opened = iter(self.opened_exports([path for models in given for paths in models for path in paths]))
        return [[[next(opened) for _ in paths] for paths in models] for models in given]

    @cached_property
    def exports(self) -> "list[LoadedExport]":
        return [export for side in self.sides for model in side for export in model]

    @property
    def has_dumps(self) -> bool:
        """Whether two dumps are compared."""
        paths = (self.options.first, self.options.second)
        for path in paths:
            if not os.path.exists(path):
                raise ScenarioError(f"There is no {path}: neither a dump nor a model.")
        files = [path.is_file() for path in paths]
        if any(files) and not all(files):
            file, folder = sorted(paths, key=lambda path: not path.is_file())
            raise ParamsError(
                f"compare takes two dumps or two models, and {file} is a file, {folder} a folder: scena lav MODEL --dump FILE writes a dump"
            )
        return all(files)

    def root(self) -> Params | None:
        if self.has_dumps:
            return Command.root(self)
        batches = self.validation_batches(batch_drop_remainder=False)
        return LavRoot(data=self.pipelines.val_gen(), lav=self.scenario.lav_params(pipeline=batches))

    def run(self) -> None:
        options = self.options
        check_file("--json", options.json)
        check_plot(options.plot)
        if self.has_dumps:
            self.show_log()
            first, second, evaluator, best = _read_dumps(options.first, options.second, self.options.scenario)
            named = all(sample.meta for sample in first.members[0].samples)
            notes = (
                []
                if named
                else ["The dumps do not name their samples; only equal targets show that they are the same."]
            )
            chosen = False
        else:
            source = self._source()
            try_data(source, PipelineMode.EVALUATION, self.params.lav.device)
            self.start()
            first, second, evaluator, best = self._measure(source)
            notes, chosen = self._notes(), self._chose(source)
        self._show(first, second, evaluator, best, notes, chosen)

    def _source(self) -> DataGeneratorParams:
        source: DataGeneratorParams | None = self.params.data
        if source is None:
            raise ScenarioError("The runs had no validation data; name some with --data.")
        if not any(word.startswith("--data") for word in self.given):
            for export in self.exports:
                if export.params.pipelines.val_gen() != source:
                    raise ScenarioError(
                        f"{self.exports[0].directory} and {export.directory} were validated on different data, so their results cannot be "
                        "paired. Name data that neither was trained on with --data."
                    )
        return source.beside(self.pipelines.val_gen()) if isinstance(source, SplitSourceParams) else source

    def _notes(self) -> list[str]:
        trained = [export.params.pipelines.train_gen() for export in self.exports]
        if all(one == trained[0] for one in trained):
            return []
        return ["They were trained on different data: make sure that neither has seen samples of this comparison."]

    def _chose(self, source: DataGeneratorParams) -> bool:
        return any(export.params.pipelines.val_gen() == source for export in self.exports if _is_best(export.directory))

    def _measure(self, source: DataGeneratorParams) -> "tuple[Side, Side, Any, tuple[str | None, str]]":
        from scena.display import counting
        from scena.evaluation.compare import Side, check_same_classes
        from scena.evaluation.per_sample import SampleResults, measure_samples

        sides: list[Side] = []
        evaluator: Any = None
        classes: list[list[str]] = []
        best: tuple[str | None, str] = (None, "")
        for path, models in zip((self.options.first, self.options.second), self.sides, strict=True):
            measured = []
            for exports in models:
                params = exports[0].with_own_processing(self.params.lav, self.exports[0])
                lav = self.scenario.create_multi_lav(exports, params)
                name, own = lav.names()[-1], next(iter(lav.lavs.values()))  # the vote, if there are several
                classes.append(lav.evaluator_of(name).class_names())
                check_same_classes(*classes)
                title = str(exports[0].directory if len(exports) == 1 else exports[0].directory.parent)
                member = SampleResults()
                for part in source.parts().values():
                    with counting(f"Measuring {title}", own.create_pipeline(part).samples_per_epoch()) as advance:
                        member.add(measure_samples(lav, part, advance)[name])
                measured.append(member)
                if evaluator is None:
                    evaluator = lav.evaluator_of(name)
                    best = _best(exports[0], own.built.model)
            sides.append(Side(str(path), measured))
        return sides[0], sides[1], evaluator, best

    def _show(
        self,
        first: "Side",
        second: "Side",
        evaluator: Any,
        best: tuple[str | None, str],
        notes: list[str],
        chosen: bool,
    ) -> None:
        from scena.display import counting
        from scena.evaluation.compare import compare
        from scena.evaluation.per_sample import StatisticsError
        from scena.evaluation.statistics.claims import claims, claims_of_answers

        options = self.options
        with counting("Resampling", options.resamples) as advance:
            found, answers, without = compare(first, second, evaluator, options.resamples, advance)
        if without:
            notes.append(f"Not compared, because some values are not finite: {', '.join(without)}.")
        if not found and answers is None:
            why = notes[-1] if without else "There are no losses or metrics, no evaluator, and no classes."
            raise StatisticsError(f"There is nothing to compare. {why}")
        runs = len(first.members), len(second.members)
        if found:
            mode, name = best
            primary = found.get(name) or next(iter(found.values()))
            known = mode if primary.name == name else "min" if primary.name == "loss" else None
            sentences = claims(primary, known, runs, len(found), mcnemar=answers, chosen_on_these=chosen)
            lines = [sentences[0], *notes, *sentences[1:]]
        else:
            assert answers is not None
            sentences = claims_of_answers(answers, chosen_on_these=chosen)
            lines = [sentences[0], *notes, *sentences[1:]]
        described = _described(found, answers, runs, lines)
        if options.json is not None and str(options.json) == "-":
            print(json_text(described))
        else:
            for letter, side in (("A", first), ("B", second)):
                print(one_line(f"{letter}: {side.title}{f' ({len(side.members)} runs)' if max(runs) > 1 else ''}"))
            _print(found)
            for line in lines:
                print_wrapped(line)
        if options.json is not None and str(options.json) != "-":
            options.json.write_text(json_text(described) + "\n", encoding="utf-8")
        if options.plot is not None:
            write_plot(options.plot, _figures(found))


def _models(path: Path) -> list[list[Path]]:
    """The export of a model, the members of an ensemble that vote, or the exports of the runs of a group."""
    if is_ensemble(path):
        return [members(path)]
    if (path / EXPORT_FILE).is_file() or (path / PARAMS_FILE).is_file() or not path.is_dir():
        return [[export_of(path)]]
    from scena.experiments.run_groups import differences, group_runs, notes
    from scena.experiments.stored_run import find_runs, read_run

    groups = group_runs([read_run(run) for run in find_runs([path])])
    counted = [group for group in groups if group.runs]
    if len(counted) != 1:
        differ = ", ".join(differences(counted)[:3])
        what = f"runs that differ in more than their seed ({differ})" if counted else "no finished runs"
        raise ScenarioError(f"{path} holds {what}. Name a run, or a folder whose runs differ only in their seed.")
    for line in notes(groups):
        print(line, file=sys.stderr)
    return [[export_of(run.directory)] for run in counted[0].runs]


def _is_best(directory: Path) -> bool:
    """Whether an export is that of the best epoch, or a member of an ensemble of such."""
    from scena.training.directory import read_json

    beside = directory.parent
    return directory.name == BEST or (is_ensemble(beside) and not read_json(beside / ENSEMBLE_FILE).get("last"))


def _best(export: "LoadedExport", model: Any) -> tuple[str | None, str]:
    """Whether more or less is better, and the result that selects the best model."""
    text = export.params.trainer.get("best")
    mode, name = text.split(":", 1) if isinstance(text, str) and ":" in text else model._best_logging_settings()
    return mode, name.removeprefix("val_").removeprefix("lav_")


def _read_dumps(first: Path, second: Path, explicit: str | None) -> "tuple[Side, Side, Any, tuple[str | None, str]]":
    from scena.commands.results.evaluate_dump import stored_scenario
    from scena.evaluation.compare import Side
    from scena.evaluation.dump import read_dump
    from scena.evaluation.per_sample import SampleResults

    sides = []
    for path in (first, second):
        names, member = set(), SampleResults()
        for model, _, sample in read_dump(path):
            names.add(model)
            member.samples.append(sample)
        if len(names) > 1:
            raise ScenarioError(
                f"{path} holds several models ({', '.join(sorted(names))}); compare takes a dump of one."
            )
        sides.append(Side(str(path), [member]))
    scenario, params = stored_scenario(first, explicit)
    made = scenario(params)
    return sides[0], sides[1], made.create_evaluator(made.create_data()), (None, "")


def _print(found: "dict[str, Comparison]") -> None:
    seeds = any(one.seeds is not None for one in found.values())
    heads = ["", "A", "B", "A - B", "95 % over samples", "p", "d", *(["95 % over seeds"] if seeds else [])]
    rows = []
    for name, one in found.items():
        test = one.test
        row = [name, number(test.first), number(test.second), f"{test.difference.value:.3g}", _ends(test.difference)]
        row += [f"{test.p:.3f}", "" if math.isnan(test.effect) else f"{test.effect:.2f}"]
        rows.append([*row, *([_ends(one.seeds) if one.seeds is not None else ""] if seeds else [])])
    if rows:
        print_table(heads, rows)


def _ends(interval: Any) -> str:
    return f"{interval.low:.3g} – {interval.high:.3g}"


def _described(found: "dict[str, Comparison]", answers: Any, runs: tuple[int, int], lines: list[str]) -> dict[str, Any]:
    tests = {
        name: {
            "a": one.test.first,
            "b": one.test.second,
            "difference": one.test.difference.value,
            "samples_interval": [one.test.difference.low, one.test.difference.high],
            "p": one.test.p,
            "effect_size": None if not math.isfinite(one.test.effect) else one.test.effect,
            "seeds_interval": None if one.seeds is None else [one.seeds.low, one.seeds.high],
            "samples": one.test.n,
        }
        for name, one in found.items()
    }
    classes = None
    if answers is not None:
        odds = answers.odds_ratio
        classes = {"samples": answers.n, "only_a": answers.only_first, "only_b": answers.only_second}
        classes |= {"mid_p": answers.mid, "exact_p": answers.exact, "odds_ratio": odds if math.isfinite(odds) else None}
    return {"runs": list(runs), "results": tests, "mcnemar": classes, "claims": lines}


def _figures(found: "dict[str, Comparison]") -> "dict[str, Figure]":
    from scena.plots import new_figure

    figure = new_figure(7, 0.7 + 0.9 * len(found))
    for row, (name, one) in enumerate(found.items(), 1):
        axes = figure.add_subplot(len(found), 1, row)
        for height, interval, label in ((0.25, one.test.difference, "samples"), (-0.25, one.seeds, "seeds")):
            if interval is not None:
                axes.plot([interval.low, interval.high], [height, height], marker="|", label=f"95 % over {label}")
                axes.plot([interval.value], [height], marker="o", color=axes.lines[-1].get_color())
        axes.axvline(0, color="gray", linewidth=1)
        axes.set_ylim(-0.6, 0.6)
        axes.set_yticks([0], [name])
        axes.legend(fontsize="x-small", loc="upper right") if row == 1 else None
    return {"A - B": figure} if found else {}
