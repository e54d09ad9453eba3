"""`scena schema SCENARIO`: the JSON schema of a scenario's parameter files."""

import json

from scena.commands.command import Command, ScenarioOptions
from scena.params import json_schema, root_of
from scena.scenario.finding import find_scenario


class Schema(Command):
    """Prints the JSON schema of a scenario's parameter files; editors use it to complete and check them."""

    name = "schema"
    options: ScenarioOptions

    def run(self) -> None:
        default = find_scenario(self.options.scenario).default_trainer_params()
        print(json.dumps(json_schema(root_of(trainer=default)), indent=1))
