"""`scena tune SCENARIO --search …`: searches over parameters; every trial is an ordinary run."""

import shlex
import sys
from pathlib import Path
from typing import Any

from scena.commands.command import ScenarioCommand, ScenarioOptions
from scena.commands.output import check_plot, make_folder, withdrawn_if_refused, write_plot
from scena.commands.run.live_runs import SchedulerRoot, SlotOptions, carry_out
from scena.experiments.search.study import Pruner, Sampler
from scena.params import Params, ParamsError, param, parse, root_of, take_part
from scena.storage.run_layout import BEST_PARAMS_FILE, PLOTS, TRIALS


class TuneOptions(ScenarioOptions, SlotOptions):
    """How to search."""

    search: list[str] = param([], help="what to vary: NAME=VALUES …")
    space: str | None = param(
        None, help="a predefined space: depth_factor, for networks with a depth and a factor (MobileNetV2, ResNet)"
    )
    trials: int | None = param(
        None, ge=0, help="how many trials the study should have in all (default: 20; grid: all combinations)"
    )
    sampler: Sampler = param("tpe", help="how values are drawn")
    pruner: Pruner = param("none", help="ends unpromising trials early, by their validation results")
    warmup: int = param(1, ge=0, help="epochs before a trial may be ended")
    metric: str | None = param(
        None, help="the value to search by, such as val_loss (default: what the model calls best)"
    )
    direction: str | None = param(
        None, choices=["max", "min"], help="whether higher or lower is better (default: as for the model's `best`)"
    )
    output: Path | None = param(None, help="where everything goes (default: tune/SCENARIO)")
    storage: str | None = param(
        None, help="the study's database (default: OUTPUT/study.db); postgresql://… can be shared by machines"
    )
    study: str | None = param(None, help="the study's name in it (default: the name of OUTPUT)")
    seed: int | None = param(None, ge=0, lt=2**32, help="makes the draw of values repeatable")
    seeds: int | None = param(
        None,
        ge=1,
        help="train each trial with this many seeds, derived from --trainer.random_seed (default: 0); its value is their mean",
    )
    plot: Path | None = param(
        None, help="draw the values of the trials and the importance of the parameters into this file"
    )
    dry_run: bool = param(False, help="check everything, print the first command line, and start nothing")


class Tune(ScenarioCommand):
    """Searches over parameters with Optuna. Trials are ordinary runs in OUTPUT/trials; run again, it continues the search.

    --search takes NAME=VALUES of any parameter, where VALUES are a,b,c or LOW:HIGH or LOW:HIGH:STEP or log:LOW:HIGH:
      scena tune SCENARIO --search learning_rate.lr=log:1e-5:1e-2 model.graph=MLP,CNN 'model.graph.filters=[20],[40,20]'

    A parameter that only some classes have takes part when one of them is chosen. The flags of `scena train SCENARIO` hold for
    every trial. Results: OUTPUT/best.yaml, OUTPUT/plots, `scena runs OUTPUT`.
    """

    name = "tune"
    options: TuneOptions

    def root(self) -> Params:
        return root_of(SchedulerRoot, trainer=self.default_trainer())

    def read(self, words: list[str]) -> None:
        """Keeps the flags for the trials: some of them may be right only together with searched values."""
        own, words = take_part("scheduler", words)
        self.chosen = parse(SchedulerRoot(), own, options=TuneOptions).params.scheduler if own else None
        self.words = self.with_project_file(words)

    def run(self) -> int:
        options, root = self.options, root_of(trainer=self.default_trainer())
        if not options.search and options.space is None:
            raise ParamsError("choose what to vary: --search learning_rate.lr=log:1e-5:1e-2, for example")
        if options.seeds is not None and options.pruner != "none":
            raise ParamsError("--pruner judges a trial by its only run, so it cannot be combined with --seeds")
        check_plot(options.plot)
        self.show_log()
        scheduler = options.scheduler(self.chosen)
        space = _space(root, options, self.words)
        imports = ["--import", *options.modules] if options.modules else []
        command = ["scena", "train", options.scenario, *imports, *self.words]
        default = Path("tune", options.scenario.rpartition(".")[2].replace(":", "-"))
        output = options.output if options.output is not None else default
        if options.dry_run:
            first = [*space.words(space.first()), f"--trainer.output_dir={output / TRIALS / '0000'}"]
            print(shlex.join([*command, *first]))
            return 0
        made = scheduler.create()
        if options.pruner != "none" and not hasattr(made, "make_channel"):
            raise ParamsError(f"--pruner {options.pruner}: runs of this --scheduler cannot report before they end")
        return self._search(space, command, output, made)

    def _search(self, space: Any, command: list[str], output: Path, scheduler: Any) -> int:
        from scena.experiments.search import study as studies
        from scena.experiments.search.search import Search
        from scena.experiments.seeds import derived_seeds

        options = self.options
        studies.import_optuna()
        with withdrawn_if_refused(output):
            make_folder("--output", output)
            storage = studies.open_storage(studies.storage_url(options.storage, output))
            study = self._open_study(storage, space, command, output)
        first = parse(space.root, [*space.flags, *space.words(space.first())]).params.trainer
        epochs = first.epochs
        seeds = derived_seeds(first.random_seed or 0, options.seeds) if options.seeds is not None else []
        study.sampler = studies.make_sampler(
            options.sampler, options.seed, len(study.trials), parallel=scheduler.at_once > 1
        )
        study.pruner = studies.make_pruner(options.pruner, epochs, options.warmup)
        wanted = 20 if options.trials is None else options.trials
        if options.sampler == "grid":
            total = studies.enqueue_grid(study, space)
            wanted = total if options.trials is None else min(total, options.trials)
        channel, own = getattr(scheduler, "make_channel", None), options.storage is None
        search = Search(study, space, command, output, sys.executable, wanted, options.metric, own, channel, seeds)

        def title(running: int) -> str:
            counted = ", ".join(f"{count} {state}" for state, count in search.counts.items() if count)
            return counted or "no trial has ended yet"

        def directory_of(key: str) -> Path | None:
            return search.running[key].directory if key in search.running else None

        try:
            with studies.explaining_storage():
                carry_out(search, scheduler, "trial", title, directory_of)
                return _report(study, space, output, options.plot)
        finally:
            studies.close_storage(storage)

    def _open_study(self, storage: Any, space: Any, command: list[str], output: Path) -> Any:
        from scena.experiments.search.objective import ask
        from scena.experiments.search.study import find_study, open_study

        options = self.options
        name = options.study or output.absolute().name
        description = {
            "scenario": self.scenario.name(),
            "search": {axis.name: axis.text for axis in space.axes},
            "flags": command[3:],
            "metric": options.metric or "",
            **({"seeds": options.seeds} if options.seeds is not None else {}),
        }
        direction = options.direction
        if direction is None and find_study(storage, name) is None:
            direction, best = ask(sys.executable, options.scenario, options.modules, space.flags)
            if options.metric is not None and options.metric.removeprefix("val_").removeprefix("lav_") != best:
                raise ParamsError(
                    f"--metric {options.metric} needs --direction max or min: the model's best is {direction} of {best}"
                )
        return open_study(storage, name, direction or "min", description)


_DIRECTORIES = [f"trainer.{name}_dir" for name in ("output", "checkpoint", "log", "export", "best")]


def _space(root: Any, options: TuneOptions, flags: list[str]) -> Any:
    from scena.experiments.search.space import SearchSpace, parse_axis, ready_space

    for word in flags:
        flag = word.partition("=")[0]
        if flag.replace("-", "_").removeprefix("__") in _DIRECTORIES:
            raise ParamsError(f"{flag} cannot be given: each trial has a directory of its own in --output")
    axes = [parse_axis(text) for text in options.search]
    if options.space is not None:
        axes += ready_space(options.space, root, flags)
    for axis in axes:
        if axis.name in _DIRECTORIES:
            raise ParamsError(f"--search {axis.name}: each trial has a directory of its own in --output")
    space = SearchSpace(axes, root, flags)
    space.check()
    if options.sampler == "grid":  # before there is a study, which would stand in the way of the corrected command
        next(space.combinations())
    return space


def _report(study: Any, space: Any, output: Path, plot: Path | None) -> int:
    from scena.experiments.search.plots import overview, write_plots
    from scena.params import dump_yaml
    from scena.storage.durable import write_file

    states = [trial.state.name.lower() for trial in study.trials]
    counted = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
    print(counted or "no trials", file=sys.stderr)
    if "complete" not in states:
        print("No trial was completed, so there is no best one.", file=sys.stderr)
        return 1
    best = study.best_trial
    chosen = {axis.name: best.params[axis.name] for axis in space.axes if axis.name in best.params}
    params = parse(space.root, [*space.flags, *space.words(chosen)]).params
    head = f"# trial {best.number} of {output}: {best.value:.6g}\n"
    write_file(output / BEST_PARAMS_FILE, head + dump_yaml(params, space.root))
    write_plots(study, output / PLOTS)
    if plot is not None:
        write_plot(plot, {"Search": overview(study)})
    mean = f" (mean of {len(best.user_attrs['seeds'])} seeds)" if "seeds" in best.user_attrs else ""
    print(f"best: trial {best.number}, {best.value:.6g}{mean}: " + " ".join(space.words(chosen)))
    print(
        f"parameters: {output / BEST_PARAMS_FILE}   plots: {output / PLOTS}   run: {best.user_attrs.get('directory')}"
    )
    return 0
