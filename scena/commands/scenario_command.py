"""Commands whose first argument is a scenario, and which take the flags of its training."""

import os
import sys
from functools import cached_property
from typing import Any

from scena.commands.command import Command
from scena.params import Params, param, root_of
from scena.scenario.finding import AnyScenario, ImportOptions, find_scenario

HEAVY = ("keras", "tensorflow")


class WorkOptions(ImportOptions):
    """What every command asks that builds a model."""

    trust: bool = param(
        False, help="load foreign SavedModels (--model.name hub) although their graphs work with files or run Python"
    )


class ScenarioOptions(ImportOptions):
    """The scenario."""

    scenario: str = param(
        required=True,
        positional="SCENARIO",
        help="a module or package that defines a scenario (package.module, or package.module:Class), a folder, or a .py file",
    )


class TrainingOptions(ScenarioOptions, WorkOptions):
    """The scenario of a command that builds its model."""


class ScenarioCommand(Command):
    """A command for a scenario; its root has the scenario's default trainer parameters as `trainer`."""

    options: ScenarioOptions

    @cached_property
    def scenario(self) -> AnyScenario:
        """The scenario that was named."""
        found = find_scenario(self.options.scenario)
        heavy = [name for name in HEAVY if name in sys.modules]
        if heavy and os.environ.get("SCENA_LOG_LEVEL", "").lower() == "debug":
            import logging

            self.show_log()
            logging.getLogger(__name__).debug(
                "%s imports %s at its top: --help would be faster without.", found.__module__, " and ".join(heavy)
            )
        return found

    def root(self) -> Params:
        """The parameters of a training."""
        return root_of(trainer=self.default_trainer())

    def default_trainer(self) -> Any:
        """The parameters that flags change."""
        return self.scenario.default_trainer_params()

    def uses_project_file(self) -> bool:
        """Parameters of the project hold for every command that starts from a scenario's defaults."""
        return True

    @property
    def trainer(self) -> Any:
        """The trainer's parameters, as the flags set them."""
        return self.params.trainer

    def check_training(self) -> None:
        """Finds what is wrong with the training before TensorFlow is loaded."""
        from scena.training.checks.before_start import check_before_start

        self.show_log()
        check_before_start(self.trainer, fresh=True)
