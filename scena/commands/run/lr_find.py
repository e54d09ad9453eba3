"""`scena lr-find SCENARIO`: tries learning rates in one short training and suggests one."""

from scena.commands.scenario_command import ScenarioCommand, TrainingOptions
from scena.training.schedules.params import RateFinderParams


class FinderOptions(RateFinderParams, TrainingOptions):
    """What to try, and where the plot goes."""


class LrFind(ScenarioCommand):
    """Trains for some batches with a learning rate that grows from --lowest to --highest, plots the loss, and suggests the rate
    at which three quarters of its first fall are done.

    It suggests nothing if the fall does not stand out from the noise, or reaches beyond the rates that are tried. Nothing
    but the plot is written.
    """

    name = "lr-find"
    options: FinderOptions

    def run(self) -> None:
        self.check_training()
        self.start()
        from scena.backends.base import backend
        from scena.terminal import counting
        from scena.training.errors import TrainingError
        from scena.training.schedules.rate_finder import find_rate

        backend().select_devices(self.trainer.device)
        with counting("Batches", self.options.steps) as progress:
            # the trainer may complete its parameters, for example with the names of classes
            trainer = self.scenario.create_trainer(self.trainer)
            found = find_rate(self.options, trainer.params, trainer.scenario, progress)
        plot = self.options.plot
        found.draw(plot)
        if found.suggestion is None:
            raise TrainingError(f"{found.refusal} The losses are in {plot}.")
        print(f"--learning_rate.lr {found.suggestion:.2g}")
        print(f"# three quarters of the first fall of the loss ({len(found.rates)} batches tried; plot: {plot})")
