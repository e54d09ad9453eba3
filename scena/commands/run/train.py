"""`scena train SCENARIO`: a new training, or the same one with several seeds."""

import sys
from pathlib import Path
from typing import Any

from scena.commands.command import ScenarioCommand, TrainingOptions
from scena.params import Params, ParamsError, param, root_of, take_part
from scena.storage.run_layout import DIRECTORIES


class TrainOptions(TrainingOptions):
    """Where the parameters come from, and how often to train."""

    params: Path | None = param(None, help="start a fresh run from a stored trainer_params.json; flags change it")
    seeds: int | None = param(
        None,
        ge=1,
        help="train with this many seeds, derived from --trainer.random_seed (default: 0), in runs of their own; run again, it "
        "resumes; --scheduler sets where",
    )


class Train(ScenarioCommand):
    """Trains a scenario."""

    name = "train"
    options: TrainOptions

    def description(self) -> str:
        return self.scenario.__doc__ or ""

    def root(self) -> Params:
        if self.options.seeds is None:
            return super().root()
        from scena.commands.run.live_runs import SchedulerRoot

        return root_of(SchedulerRoot, trainer=self.default_trainer())

    def default_trainer(self) -> Any:
        """The scenario's default parameters, or those of a stored run (without its directory)."""
        if self.options.params is None:
            return super().default_trainer()
        from scena.scenario.stored import read_description, stored_params

        path = self.options.params
        params = stored_params(read_description(path), self.scenario, path)
        params.output_dir = params.checkpoint_dir = params.log_dir = params.export_dir = None  # those of another run
        return params

    def uses_project_file(self) -> bool:
        return self.options.params is None

    def run(self) -> int | None:
        self.check_training()
        if self.options.seeds is not None:
            return self._run_seeds(self.options.seeds)
        self.start()
        from scena.experiments.search.trial import trial_callbacks

        self.scenario.create_trainer(self.trainer).train(trial_callbacks())
        return None

    def _run_seeds(self, count: int) -> int:
        """Carries out one run for each seed, as an experiment that resumes."""
        from scena.commands.output import make_folder
        from scena.commands.run.live_runs import carry_out_runs, report_groups, report_runs
        from scena.experiments.seeds import default_folder, seed_runs
        from scena.experiments.sheets.experiment import Experiment

        options, trainer = self.options, self.trainer
        for name in DIRECTORIES:
            if getattr(trainer, name) is not None:
                raise ParamsError(f"--trainer.{name} cannot be given with --seeds: each run has a directory of its own")
        _, flags = take_part("scheduler", self.words)
        words = [
            *(["--import", *options.modules] if options.modules else []),
            *(["--params", str(options.params)] if options.params is not None else []),
            *(["--trust", "True"] if options.trust else []),
            *flags,
        ]
        script = ["scena", "train", options.scenario]
        output = trainer.output_dir or default_folder(self.scenario.name(), [*script, *words])
        scheduler = self.params.scheduler.create()  # before anything is written: it may refuse
        make_folder("--trainer.output_dir", output)
        print(f"Runs: {output}; the same command resumes them.", file=sys.stderr)
        runs = seed_runs("seed-", script, words, trainer.random_seed or 0, count)
        experiment = Experiment(runs, output, sys.executable, remedy="choose another --trainer.output_dir")
        carry_out_runs(experiment, scheduler)
        report_groups(experiment)
        return report_runs(experiment)
