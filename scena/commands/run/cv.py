"""`scena cv SCENARIO`: cross-validation with one run for each fold."""

import hashlib
import json
import sys
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from scena.backends.params import DeviceParams
from scena.commands.command import ScenarioCommand, TrainingOptions
from scena.commands.model_command import model_facts, task_of
from scena.commands.output import check_plot, make_folder, print_table, print_wrapped, write_plot
from scena.commands.run.live_runs import SchedulerRoot, SlotOptions, carry_out_runs, report_runs
from scena.display import number
from scena.params import Params, ParamsError, param, parse, root_of, take_part, to_raw
from scena.storage.run_layout import DIRECTORIES, ENSEMBLE, EXPORT, OUT_OF_FOLD_FILE, REPORT, RESULTS_FILE

if TYPE_CHECKING:
    from scena.data.sample import Sample
    from scena.experiments.cross_validation import CrossValidation, Fold

POOLED = "all folds together"
CHECKED, SEARCHED = 20, 1000
"""How many samples of the validation data are looked for in the folds, and among how many."""


class CvOptions(TrainingOptions, SlotOptions):
    """How to divide the data."""

    folds: int = param(5, ge=2, help="how many folds")
    repeats: int = param(1, ge=1, help="how often to divide the samples anew")
    stratify: str | None = param(
        None, help="give each fold its share of each class, found at targets.NAME, meta.NAME or inputs.NAME"
    )
    group: str | None = param(
        None, help="keep samples together that have the same value at meta.NAME, targets.NAME or inputs.NAME"
    )
    last: bool = param(False, help="test the last model of each run, not the best one, which the validation data chose")
    output: Path | None = param(None, help="where everything goes (default: cv/SCENARIO)")
    plot: Path | None = param(
        None,
        help="draw the out-of-fold confusion matrix or predicted numbers, and what the evaluator draws, into this file",
    )
    dry_run: bool = param(False, help="draw the folds, print their sizes, and start nothing")


class Cv(ScenarioCommand):
    """Trains one run for each fold of the training data, and tests it on the samples it has not seen.

    Folds follow from --trainer.random_seed (default: 0). The scenario's own validation data is in no fold; it chooses the best epoch.
    Run again, it resumes. Results: a table, OUTPUT/report, OUTPUT/out_of_fold.jsonl (scena evaluate-dump reads it) and
    OUTPUT/ensemble, which predict, lav and serve take like an export.
    """

    name = "cv"
    options: CvOptions

    def root(self) -> Params:
        return root_of(SchedulerRoot, trainer=self.default_trainer())

    @cached_property
    def scheduler_params(self) -> Any:
        """What carries out the runs."""
        own, _ = take_part("scheduler", self.words)
        return self.options.scheduler(parse(SchedulerRoot(), own, options=CvOptions).params.scheduler if own else None)

    def run(self) -> int:
        options = self.options
        for name in (*DIRECTORIES, "output_dir"):
            if getattr(self.trainer, name) is not None:
                raise ParamsError(f"--trainer.{name} cannot be given: each fold has a directory of its own in --output")
        check_plot(options.plot)
        self.check_training()
        scheduler_params = self.scheduler_params
        output = options.output or Path("cv", options.scenario.rpartition(".")[2].replace(":", "-"))
        validation = self._draw(output)
        chosen = self._who_chooses(validation)
        scheduler = None if options.dry_run else scheduler_params.create()  # before anything is written: it may refuse
        make_folder("--output", output)
        validation.store()
        print(f"The best epoch {chosen}.", file=sys.stderr)
        if scheduler is None:
            return 0
        from scena.experiments.sheets.experiment import Experiment

        imports = ["--import", *options.modules] if options.modules else []
        trust = ["--trust", "True"] if options.trust else []
        words = ["scena", "train", options.scenario, *imports, *trust]
        runs = validation.runs(words, self.scenario, self.trainer)
        experiment = Experiment(runs, output, sys.executable, remedy="choose another --output")
        carry_out_runs(experiment, scheduler)
        if status := report_runs(experiment):
            return status
        self.start()
        return self._finish(validation, output, chosen)

    def _draw(self, output: Path) -> "CrossValidation":
        from scena.experiments.cross_validation import CrossValidation

        options, trainer = self.options, self.trainer
        if trainer.gen.train.limit is not None:
            raise ParamsError(
                "--train.limit would leave out samples of each fold; limit the data itself, or give no limit"
            )
        validation = CrossValidation(
            trainer.gen.train_gen(),
            output,
            options.folds,
            options.repeats,
            trainer.random_seed or 0,
            options.stratify,
            options.group,
        )
        sizes = [len(validation.tested(fold)) for fold in validation.folds]
        shown = f"{min(sizes)}" if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)}"
        print(f"{len(sizes)} folds of {shown} of {validation.count} samples: {validation.file}", file=sys.stderr)
        return validation

    def _who_chooses(self, validation: "CrossValidation") -> str:
        """Which data chooses the best epoch; refuses data that is in the folds."""
        source = self.trainer.gen.val_gen() if self.trainer.val_every_n or self.trainer.lav_every_n else None
        if self.options.last or source is None or not self.trainer.export_best:
            return "is not chosen; the last model of each run is tested"
        kind = type(source).__name__.removesuffix("Params")
        shared = _shared_samples(source, validation.source)
        if shared == "same":
            raise ParamsError(
                f"the validation data ({kind}) is the data of the folds, so tested samples would choose the best epoch. Test the last "
                "model instead (--last), or name other validation data (--val.…)"
            )
        if shared == "alike":
            print(
                f"The first samples of the validation data ({kind}) all have equals in the folds. If they are the same, tested samples "
                "choose the best epoch, and all results are too good: test the last model instead (--last), or name other validation data.",
                file=sys.stderr,
            )
            return f"is chosen on the scenario's validation data ({kind}), whose first samples have equals in the folds"
        return f"is chosen on the scenario's validation data ({kind}), which is in no fold"

    def _finish(self, validation: "CrossValidation", output: Path, chosen: str) -> int:
        from scena.evaluation.report.collect import Collected
        from scena.evaluation.report.plots import model_figures
        from scena.scenario.ensemble import write_ensemble
        from scena.scenario.stored import load_export

        last = self.options.last
        exports = {fold.name: validation.export(fold, last=last) for fold in validation.folds}
        if not last and any(path.name == EXPORT for path in exports.values()):
            last = True
            chosen = "is not chosen; the last model of each run is tested"
        opened = [load_export(path, self.scenario) for path in exports.values()]
        results, predicted, evaluator = self._test(validation, opened)
        self._dump(output / OUT_OF_FOLD_FILE, validation, opened, predicted)
        collected = Collected()
        with evaluator:
            for samples in predicted.values():
                for sample in samples:
                    evaluator.update_state(sample)
                    collected(sample)
            pooled = evaluator.result() if collected.count else {}
            summary = validation.summary(results)
            described = {
                "folds": results,
                POOLED: pooled,
                "summary": {
                    name: {"mean": one.mean, "deviation": one.deviation, "n": one.n, "half_width": one.half_width}
                    for name, one in summary.items()
                },
                "best epoch": chosen,
            }
            from scena.model.tensorboard import plain_result
            from scena.storage.checksums import write_checked
            from scena.storage.json_text import json_text

            write_checked(output / RESULTS_FILE, json_text(plain_result(described)) + "\n")
            self._report(output / REPORT, validation, opened, collected, evaluator, (results, pooled, chosen))
            if self.options.plot is not None:
                write_plot(self.options.plot, model_figures(collected, evaluator))
        write_ensemble(output / ENSEMBLE, self.scenario, exports, folds=validation.digest, best_epoch=chosen, last=last)
        _print(validation, results, summary, pooled)
        print_wrapped(f"The best epoch {chosen}.")
        for what, name in (("Report", REPORT), ("Predictions", OUT_OF_FOLD_FILE), ("Ensemble", ENSEMBLE)):
            print(f"{what}: {output / name}")
        return 0

    def _test(
        self, validation: "CrossValidation", opened: list[Any]
    ) -> "tuple[dict[str, Any], dict[str, list[Sample]], Any]":
        """The results of each fold, its predicted samples, and an evaluator."""
        from scena.display import counting
        from scena.evaluation.per_sample import own_sample

        results: dict[str, Any] = {}
        predicted: dict[str, list[Sample]] = {}
        batches = self.trainer.gen.val.replace(
            batch_drop_remainder=False, limit=None, bucket_boundaries=[], bucket_batch_sizes=[]
        )
        if "split" in type(batches).__params__:
            batches = batches.replace(split=None)
        device = DeviceParams(**{name: getattr(self.trainer.device, name) for name in DeviceParams.__params__})
        params = self.scenario.lav_params(pipeline=batches, device=device, print_limit=0)
        evaluator: Any = None
        for fold, export in zip(validation.folds, opened, strict=True):
            lav = self.scenario.create_lav(export, params)
            kept: list[Sample] = []

            def observe(sample: "Sample", lav: Any = lav, kept: "list[Sample]" = kept) -> None:
                kept.append(own_sample(lav.extract_dump_data(sample)))

            with counting(f"Testing {fold.name}", len(validation.tested(fold))) as advance:
                results[fold.name] = lav.run(validation.test_source(fold), advance, observe)
            predicted[fold.name] = kept
            evaluator = evaluator or lav.evaluator
        return results, predicted, evaluator

    def _dump(self, path: Path, validation: "CrossValidation", opened: list[Any], predicted: dict[str, Any]) -> None:
        """Writes the predictions of each repeat in the order of the source."""
        from scena.evaluation.dump import DumpWriter
        from scena.scenario.stored import describe

        header = describe(self.scenario, opened[0].params, models=[str(one.directory) for one in opened])
        with DumpWriter(path, {**header, "format": "scena-dump"}) as dump:
            for repeat in range(len(validation.assigned)):
                folds = [fold for fold in validation.folds if fold.repeat == repeat]
                part = f"repeat {repeat + 1}" if len(validation.assigned) > 1 else ""
                for sample in _in_order(validation, folds, predicted):
                    dump.write(sample, "", part)

    def _report(
        self,
        directory: Path,
        validation: "CrossValidation",
        opened: list[Any],
        collected: Any,
        evaluator: Any,
        found: Any,
    ) -> None:
        from scena.evaluation.report.page import Report

        results, pooled, chosen = found
        options = self.options
        facts = model_facts(
            opened[:1], Folds=f"{options.folds}, repeated {options.repeats} times", Best=f"epoch {chosen}"
        )
        facts |= {
            "Stratified by": options.stratify or "–",
            "Groups": options.group or "–",
            "Samples": f"{validation.count}",
        }
        report = Report(directory, f"{self.scenario.__name__}: cross-validation", task_of(self.scenario), facts)
        report.add_model("Out-of-fold predictions", collected, evaluator)
        report.add_values("Data", {"value": to_raw(validation.source)})
        report.write({**results, POOLED: pooled} if pooled else results)


def _in_order(validation: "CrossValidation", folds: "list[Fold]", predicted: dict[str, Any]) -> "list[Sample]":
    """The samples of a repeat in the order of the source; of the folds, if processing has made other numbers of them."""
    if any(len(predicted[fold.name]) != len(validation.tested(fold)) for fold in folds):
        return [sample for fold in folds for sample in predicted[fold.name]]
    by_index = {
        int(index): sample
        for fold in folds
        for index, sample in zip(validation.tested(fold), predicted[fold.name], strict=True)
    }
    return [by_index[index] for index in sorted(by_index)]


def _shared_samples(validation: Any, pool: Any) -> Literal["same", "alike", ""]:
    """Whether validation data begins with the samples of the folds, or with samples that are among the first of them."""
    from scena.data.generator import as_generator, has_random_access
    from scena.data.params import PipelineMode
    from scena.data.sources.fold import open_pool

    checked, all_samples = as_generator(validation, PipelineMode.EVALUATION), open_pool(pool)
    if not has_random_access(checked):
        return ""
    there: Any = checked
    samples = [there[index] for index in range(min(len(there), CHECKED))]
    if not samples:
        return ""
    first = [all_samples[index] for index in range(min(len(samples), len(all_samples)))]
    if all(_digest(one, one.meta) == _digest(other, other.meta) for one, other in zip(samples, first, strict=False)):
        return "same"
    # another order, or a copy of the file: what they are called may differ then
    left = {_digest(sample) for sample in samples}
    for index in range(min(len(all_samples), SEARCHED)):
        left.discard(_digest(all_samples[index]))
        if not left:
            return "alike"
    return ""


def _digest(sample: Any, meta: Any = None) -> str:
    from scena.evaluation.dump import DumpError, to_json

    content = [sample.inputs, sample.targets, meta]
    try:
        return hashlib.sha256(json.dumps(to_json(content)).encode()).hexdigest()
    except DumpError:
        return repr(content)


def _print(
    validation: "CrossValidation", results: dict[str, Any], summary: dict[str, Any], pooled: dict[str, Any]
) -> None:
    from scena.evaluation.statistics.bootstrap import is_number
    from scena.evaluation.statistics.student import FEW_FOLDS, ROUGH, WITHOUT_WIDTH

    names = list(summary)
    rows = [
        [fold.name, str(len(validation.tested(fold))), *(number(float(results[fold.name][name])) for name in names[:6])]
        for fold in validation.folds
    ]
    print_table(["", "samples", *names[:6]], rows)
    print()
    table = []
    for name, one in summary.items():
        together = number(pooled[name]) if is_number(pooled.get(name)) else ""
        ends = f"{one.interval.low:.4g} – {one.interval.high:.4g}"
        table.append([name, number(one.mean), number(one.deviation), ends, together])
    print_table(["", "mean of folds", "deviation", "95 % interval", "out of fold"], table)
    if some := dict.fromkeys(
        name for one in results.values() for name, value in one.items() if is_number(value) and name not in summary
    ):
        print_wrapped(f"Only some folds have: {', '.join(some)}.")
    print(
        f"{len(results)} folds; the interval is widened for the training samples that folds share (Nadeau and Bengio)."
    )
    if len({fold.number for fold in validation.folds}) < FEW_FOLDS:
        print_wrapped(ROUGH)
    if any(one.interval is not None and one.interval.without_width for one in summary.values()):
        print_wrapped(WITHOUT_WIDTH)
