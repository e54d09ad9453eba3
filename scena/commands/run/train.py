"""`scena train SCENARIO`: a new training."""

from pathlib import Path
from typing import Any

from scena.commands.command import ScenarioCommand, TrainingOptions
from scena.params import param


class TrainOptions(TrainingOptions):
    """Where the parameters come from."""

    params: Path | None = param(None, help="start a fresh run from a stored trainer_params.json; flags change it")


class Train(ScenarioCommand):
    """Trains a scenario."""

    name = "train"
    options: TrainOptions

    def description(self) -> str:
        return self.scenario.__doc__ or ""

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

    def run(self) -> None:
        self.check_training()
        self.start()
        from scena.experiments.search.trial import trial_callbacks

        self.scenario.create_trainer(self.trainer).train(trial_callbacks())
