"""`scena benchmark-input SCENARIO`: how fast the input pipeline of a scenario is, and what slows it down."""

from scena.commands.command import ScenarioCommand, ScenarioOptions
from scena.params import param


class BenchmarkOptions(ScenarioOptions):
    """What to measure, and for how long."""

    time_limit: float = param(10.0, gt=0, help="seconds to measure")
    pipeline: str = param("train", choices=["train", "val"], flat="measure", help="the pipeline to measure")


class BenchmarkInput(ScenarioCommand):
    """Measures the input pipeline that `scena train` would use with the same flags, and finds what slows it down."""

    name = "benchmark-input"
    options: BenchmarkOptions

    def run(self) -> int:
        self.show_log()
        from scena.data.benchmark import benchmark_input

        trainer = self.trainer
        data = self.scenario(trainer.scenario).create_data()
        train = self.options.pipeline == "train"
        measured = trainer.gen.train_data(data) if train else trainer.gen.val_data(data)
        if measured is None:
            print("There is no validation data.")
            return 1
        try:
            print("\n".join(benchmark_input(measured, self.options.time_limit).lines()))
        finally:
            measured.close()
        return 0
