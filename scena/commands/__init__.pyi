"""The public names of `scena.commands`; each is imported when it is first used."""

from scena.commands.command import Command as Command
from scena.commands.command import ScenarioCommand as ScenarioCommand
from scena.commands.command import ScenarioOptions as ScenarioOptions
from scena.commands.model_command import ModelCommand as ModelCommand
from scena.commands.model_command import ModelOptions as ModelOptions
from scena.commands.model_command import ModelsOptions as ModelsOptions
from scena.commands.output import print_table as print_table
