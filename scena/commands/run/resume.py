"""`scena resume RUN`: a run from its last checkpoint."""

from pathlib import Path
from typing import Literal

from scena.commands.command import Command
from scena.commands.model_command import StoredOptions
from scena.errors import ScenarioError
from scena.params import Params, ParamsError, param, root_of
from scena.scenario.finding import AnyScenario
from scena.scenario.stored import read_training
from scena.storage.run_layout import PARAMS_FILE
from scena.training.directory import check_repeated, forget_paths, paths_outside


class ResumeOptions(StoredOptions):
    """Which run, and where it starts."""

    directory: Path = param(required=True, positional="RUN", help="the directory of the run")
    start: str = param("latest", flat="from", help="the checkpoint to start from: latest, best, or a step")
    strict: bool = param(False, help="an error instead of a warning if the code has changed since the checkpoint")

    def checkpoint(self) -> int | Literal["latest", "best"]:
        """The checkpoint to start from."""
        if self.start == "latest":
            return "latest"
        if self.start == "best":
            return "best"
        if self.start.isascii() and self.start.isdecimal():
            return int(self.start)
        raise ParamsError(f"--from must be latest, best or the step of a checkpoint. Received: {self.start!r}.")


class Resume(Command):
    """Resumes a run from its last checkpoint, exactly where it was.

    Flags change its parameters, for example --trainer.epochs 50; what changes is shown and recorded.
    """

    name = "resume"
    options: ResumeOptions
    places: dict[str, str]

    scenario: AnyScenario

    def root(self) -> Params:
        self.options.checkpoint()
        directory = self.options.directory
        if not (directory / PARAMS_FILE).is_file():
            raise ScenarioError(f"{directory} is not the directory of a run: it has no {PARAMS_FILE}.")
        self.scenario, _, params = read_training(directory / PARAMS_FILE, self.options.scenario)
        params.output_dir = directory  # the run may have been moved
        self.places = paths_outside(directory, params)
        forget_paths(params, self.places)
        return root_of(trainer=params)

    def run(self) -> None:
        directory, trainer, start = self.options.directory, self.params.trainer, self.options.checkpoint()
        if trainer.output_dir != directory:
            raise ParamsError(
                f"--trainer.output_dir cannot be changed: a run is resumed where it is, in {directory}. "
                "To keep it as it is, copy its directory and resume the copy."
            )
        check_repeated(directory, trainer, self.places, self.given)
        from scena.training.checks.before_start import check_before_start, check_code

        self.show_log()
        check_before_start(trainer, fresh=False)
        if self.options.strict:
            check_code(directory, trainer, start, self.scenario.__module__)
        self.start()
        from scena.experiments.search.trial import trial_callbacks

        self.scenario.create_trainer(trainer).train(
            trial_callbacks(), resume=True, start=start, strict=self.options.strict
        )
