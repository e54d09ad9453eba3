"""`scena lr-find SCENARIO`: tries learning rates in short trainings and suggests one."""

from scena.commands.command import ScenarioCommand, TrainingOptions
from scena.training.schedules.params import RateFinderParams


class FinderOptions(RateFinderParams, TrainingOptions):
    """What to try, and where the plot goes."""


class LrFind(ScenarioCommand):
    """Tries learning rates in short trainings, and suggests the one that reaches the lowest validation loss.

    First it trains for some batches with a rate that grows from --lowest to --highest, and plots the loss: its fall shows where to
    look. Then it trains at rates around it, half a decade apart, each time from the same weights: briefly at seven rates,
    longer at the better ones, longest at the best and its neighbours. Of rates within a tenth of the lowest loss it suggests the
    middle one. All trainings together take --budget. If noise hides the fall, the first step is repeated, up to four times. It suggests
    nothing if the fall still does not stand out, or if the best rate lies at the edge of those that may be tried. Nothing but the plot
    is written.
    """

    name = "lr-find"
    options: FinderOptions

    def run(self) -> None:
        self.check_training()
        self.start()
        from scena.backends.base import backend
        from scena.display import counting
        from scena.errors import TrainingError
        from scena.training.schedules.rate_finder import find_rate

        backend().select_devices(self.trainer.device)
        with counting("Steps", self.options.steps) as progress:
            # the trainer may complete its parameters, for example with the names of classes
            trainer = self.scenario.create_trainer(self.trainer)
            found = find_rate(self.options, trainer.params, trainer.scenario, progress)
        plot = self.options.plot
        found.draw(plot)
        rows = [*found.table(), *([f"before training: {found.untrained:.4g}"] if found.trials else [])]
        if found.suggestion is None:
            print("".join(f"# {row}\n" for row in rows), end="")
            raise TrainingError(f"{found.refusal} The losses of the range test are in {plot}.")
        print(f"--learning_rate.lr {found.suggestion:.2g}")
        if found.trials:
            steps = sum(trial.steps for trial in found.trials)
            print(
                f"# the middle one of the rates within a tenth of the lowest {found.measure}; {len(found.trials)} trainings with {steps} "
                "steps in all (--budget)"
            )
        else:
            reason = found.note or "--budget 0: no trainings were compared"
            print(f"# three quarters of the first fall of the loss in the range test; {reason}")
        print(*(f"# {row}" for row in [*rows, f"plot of the range test: {plot}"]), sep="\n")
