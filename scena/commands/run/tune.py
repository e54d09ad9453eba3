"""`scena tune SCENARIO --search …`: searches over parameters; every trial is an ordinary run."""

import sys
import time
from pathlib import Path
from typing import Any

from scena.commands.places import make_folder
from scena.commands.project_file import with_project_file
from scena.commands.run.live_runs import choose_scheduler, take_scheduler
from scena.commands.scenario_argument import ImportOptions, import_modules, set_up_console, take_scenario
from scena.commands.usage import print_usage
from scena.experiments.search.study import Pruner, Sampler
from scena.params import ParamsError, param, parse_options
from scena.storage.run_layout import BEST_PARAMS_FILE, PLOTS, TRIALS

USAGE = """usage: scena tune SCENARIO --search NAME=VALUES… [--trials N] [--flags of scena train]

Searches over parameters with Optuna. Trials are ordinary runs in OUTPUT/trials; run again, the search goes on.
  --search NAME=VALUES…   a,b,c  or  LOW:HIGH  or  LOW:HIGH:STEP  or  log:LOW:HIGH, of any parameter:
                          learning_rate.lr=log:1e-5:1e-2 model.graph=MLP,CNN model.graph.filters=[20],[40,20]
                          a parameter that only some classes have takes part when one of them is chosen
  --space depth_factor    the ready space of networks with a depth and a factor (MobileNetV2, ResNet)
  --trials N              how many trials the study should have in all (default: 20; grid: all combinations)
  --sampler KIND          tpe, random or grid (default: tpe)
  --pruner KIND           none, median or hyperband: ends trials early by their validation results (default: none)
  --warmup N              epochs before a trial may be ended (default: 1)
  --metric NAME           the value to search by, such as val_loss (default: what the model calls best)
  --direction max|min     whether more is better (default: what the model says)
  --output DIR            where everything goes (default: tune/SCENARIO)
  --storage URL           the study's database (default: OUTPUT/study.db); postgresql://… can be shared by machines
  --study NAME            the study's name in it (default: the name of OUTPUT)
  --seed N                makes the draw of values repeatable
  --gpus N… --cpus N… --per_device N   where trials run, as for scena experiment
  --cluster ray[://HOST:PORT]   run on a Ray cluster; --run_cpus N and --run_gpus N say what each run needs (default: 1 and 0)
  --scheduler NAME        what carries out the runs: local, ray, or that of an installed plugin; its options are --scheduler.…
  --dry_run               check everything, print the first command line, and start nothing

All other flags are those of `scena train SCENARIO`, for every trial. Results: OUTPUT/best.yaml, OUTPUT/plots, scena runs OUTPUT."""


class TuneOptions(ImportOptions):
    """How to search."""

    search: list[str] = param([], help="what to vary: NAME=VALUES")
    space: str | None = param(None, help="a ready space: depth_factor")
    trials: int | None = param(None, ge=0, help="trials of the study in all")
    sampler: Sampler = param("tpe", help="how values are drawn")
    pruner: Pruner = param("none", help="how trials are ended early")
    warmup: int = param(1, ge=0, help="epochs before a trial may be ended")
    metric: str | None = param(None, help="the value to search by")
    direction: str | None = param(None, choices=["max", "min"], help="whether more is better")
    output: Path | None = param(None, help="where everything goes")
    storage: str | None = param(None, help="the database of the study")
    study: str | None = param(None, help="the name of the study")
    seed: int | None = param(None, ge=0, lt=2**32, help="makes the draw of values repeatable")
    gpus: list[int] = param([], help="the GPUs to use")
    cpus: list[int] = param([], help="how many runs at once on the CPU, or the numbers of their slots")
    per_device: int = param(1, ge=1, help="trials at once on each device")
    cluster: str | None = param(None, help="a Ray cluster to run on: ray, or ray://HOST:PORT")
    run_cpus: float = param(1.0, ge=0, help="CPUs of the cluster that each run needs")
    run_gpus: float = param(0.0, ge=0, help="GPUs of the cluster that each run needs")
    dry_run: bool = param(False, help="start nothing")


def run(arguments: list[str]) -> int:
    """Searches."""
    if not arguments or any(argument in ("-h", "--help") for argument in arguments):
        print_usage(USAGE)
        return 0 if arguments else 2
    chosen, arguments = take_scheduler(arguments)
    scenario, rest = take_scenario("tune", arguments)
    options, flags = parse_options(TuneOptions, rest)
    flags = with_project_file(flags)
    import_modules(options.modules)
    if not options.search and options.space is None:
        raise ParamsError("say what to vary: --search learning_rate.lr=log:1e-5:1e-2, for example")
    set_up_console()
    scheduler = choose_scheduler(chosen, options)
    space = _space(scenario, options, flags)
    imports = ["--import", *options.modules] if options.modules else []
    words = [arguments[0], *imports, *flags]
    output = (
        options.output
        if options.output is not None
        else Path("tune", arguments[0].rpartition(".")[2].replace(":", "-"))
    )
    if options.dry_run:
        _print_first(space, words, output)
        return 0
    study, storage = _study(scenario, options, space, words, output)
    return _search(study, storage, space, words, output, options, scheduler.create())


_DIRECTORIES = tuple(
    f"trainer.{name}" for name in ("output_dir", "checkpoint_dir", "log_dir", "export_dir", "best_dir")
)


def _space(scenario: Any, options: TuneOptions, flags: list[str]) -> Any:
    from scena.experiments.search.objective import training_root
    from scena.experiments.search.space import SearchSpace, parse_axis, ready_space

    for word in flags:
        flag = word.partition("=")[0]
        if flag.replace("-", "_").removeprefix("__") in _DIRECTORIES:
            raise ParamsError(f"{flag} cannot be given: each trial has a directory of its own in --output")
    root = training_root(scenario)
    axes = [parse_axis(text) for text in options.search]
    if options.space is not None:
        axes += ready_space(options.space, root, flags)
    space = SearchSpace(axes, root, flags)
    space.check()
    return space


def _print_first(space: Any, words: list[str], output: Path) -> None:
    from scena.experiments.sheets.command_lines import shown

    print(
        shown(
            [
                "scena",
                "train",
                *words,
                *space.words(space.first()),
                f"--trainer.output_dir={output / TRIALS / '0000'}",
            ]
        )
    )


def _study(scenario: Any, options: TuneOptions, space: Any, words: list[str], output: Path) -> tuple[Any, Any]:
    from scena.experiments.search.objective import ask
    from scena.experiments.search.space import describe
    from scena.experiments.search.study import find_study, import_optuna, open_storage, open_study, storage_url

    import_optuna()
    make_folder("--output", output)
    storage = open_storage(storage_url(options.storage, output))
    name = options.study or output.absolute().name
    description = {
        "scenario": scenario.name(),
        "search": describe(space.axes),
        "flags": words[1:],
        "metric": options.metric or "",
    }
    direction = options.direction
    if direction is None and find_study(storage, name) is None:
        mode, best = ask(sys.executable, words)
        if options.metric is not None and options.metric.removeprefix("val_").removeprefix("lav_") != best:
            raise ParamsError(
                f"--metric {options.metric} needs --direction max or min: the model says {mode} for {best} only"
            )
        direction = mode
    return open_study(storage, name, direction or "min", description), storage


def _search(
    study: Any, storage: Any, space: Any, words: list[str], output: Path, options: TuneOptions, scheduler: Any
) -> int:
    from scena.experiments.search.search import Search
    from scena.experiments.search.study import close_storage, enqueue_grid, make_pruner, make_sampler
    from scena.params import parse

    epochs = parse(space.root, [*space.flags, *space.words(space.first())]).params.trainer.epochs
    study.sampler = make_sampler(options.sampler, options.seed, len(study.trials), scheduler.at_once > 1)
    study.pruner = make_pruner(options.pruner, epochs, options.warmup)
    wanted = 20 if options.trials is None else options.trials
    if options.sampler == "grid":
        total = enqueue_grid(study, space)
        wanted = total if options.trials is None else min(total, options.trials)
    search = Search(
        study,
        space,
        ["scena", "train", *words],
        output,
        sys.executable,
        wanted,
        options.metric,
        options.storage is None,
        scheduler.make_channel,
    )
    try:
        _carry_out(search, scheduler)
        return _report(study, space, search, output)
    finally:
        close_storage(storage)


def _carry_out(search: Any, scheduler: Any) -> None:
    from scena.commands.run.live_runs import RunProgress, clock, live_table

    progress: dict[str, Any] = {}
    started = time.monotonic()
    running: list[Any] = []

    def table() -> Any:
        from rich.table import Table

        counted = ", ".join(f"{count} {state}" for state, count in search.counts.items() if count)
        shown = Table(
            title=f"{counted or 'no trial has ended yet'}; {clock(time.monotonic() - started)}",
            title_justify="left",
            box=None,
        )
        for column in ("trial", "on", "epoch", "last values", "time", "still"):
            shown.add_column(column)
        for one in running:
            directory = search.running[one.job.key].directory if one.job.key in search.running else None
            own = progress.setdefault(one.job.key, RunProgress(directory))
            own.refresh()
            shown.add_row(one.job.key, one.slot.name, own.epoch, own.values, clock(one.seconds), clock(own.eta))
        return shown

    with live_table(table) as draw:

        def tick(now: list[Any]) -> None:
            running[:] = now
            draw()

        search.tick = tick
        scheduler.run(search)


def _report(study: Any, space: Any, search: Any, output: Path) -> int:
    from scena.experiments.search.plots import write_plots
    from scena.params import dump_yaml, parse
    from scena.storage.durable import write_file

    states = [trial.state.name.lower() for trial in study.trials]
    print(
        ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states)) or "no trials", file=sys.stderr
    )
    if "complete" not in states:
        print("No trial has come to its end, so there is no best one.", file=sys.stderr)
        return 1
    best = study.best_trial
    chosen = {axis.name: best.params[axis.name] for axis in space.axes if axis.name in best.params}
    params = parse(space.root, [*space.flags, *space.words(chosen)]).params
    head = f"# trial {best.number} of {output}: {best.value:.6g}\n"
    write_file(output / BEST_PARAMS_FILE, head + dump_yaml(params, space.root))
    write_plots(study, output / PLOTS)
    print(f"best: trial {best.number}, {best.value:.6g}: " + " ".join(space.words(chosen)))
    print(
        f"parameters: {output / BEST_PARAMS_FILE}   plots: {output / PLOTS}   run: {best.user_attrs.get('directory')}"
    )
    return 0
