"""`scena benchmark-input SCENARIO [--flags]`: how fast the input pipeline of a scenario is, and what slows it down."""

from scena.commands.project_file import with_project_file
from scena.commands.scenario_argument import ImportOptions, import_modules, root_of, set_up_console, take_scenario
from scena.params import param, parse, parse_options


class BenchmarkOptions(ImportOptions):
    """What to measure, and for how long."""

    time_limit: float = param(10.0, gt=0, help="seconds to measure")
    pipeline: str = param("train", choices=["train", "val"], flat="measure", help="the pipeline to measure")


def run(arguments: list[str]) -> int:
    """Measures the input pipeline that `scena train` would use with the same flags."""
    scenario, rest = take_scenario("benchmark-input", arguments)
    options, rest = parse_options(BenchmarkOptions, rest)
    import_modules(options.modules)
    parsed = parse(
        root_of(trainer=scenario.default_trainer_params()),
        with_project_file(rest),
        prog=f"scena benchmark-input {arguments[0]}",
        description=scenario.__doc__ or "",
        options=options,
    )
    set_up_console()
    from scena.data.benchmark import benchmark_input

    trainer = parsed.params.trainer
    data = scenario(trainer.scenario).create_data()
    measured = trainer.gen.train_data(data) if options.pipeline == "train" else trainer.gen.val_data(data)
    if measured is None:
        print("There is no validation data.")
        return 1
    try:
        print("\n".join(benchmark_input(measured, options.time_limit).lines()))
    finally:
        measured.close()
    return 0
