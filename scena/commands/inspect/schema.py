"""`scena schema SCENARIO`: the JSON schema of a scenario's parameter files."""

import json

from scena.commands.scenario_argument import ImportOptions, import_modules, root_of, take_scenario
from scena.params import json_schema, parse_options
from scena.params.errors import ParamsError


def run(arguments: list[str]) -> int:
    """Prints the schema; editors use it to complete and check YAML files."""
    if arguments[1:] and arguments[1] in ("-h", "--help"):
        print(
            "usage: scena schema SCENARIO [--import MODULE…]\n\nPrints the JSON schema of the scenario's parameter files for editors."
        )
        return 0
    scenario, rest = take_scenario("schema", arguments)
    options, rest = parse_options(ImportOptions, rest)
    if rest:
        raise ParamsError(f"scena schema takes a scenario and --import only. Received: {' '.join(rest)}")
    import_modules(options.modules)
    print(json.dumps(json_schema(root_of(trainer=scenario.default_trainer_params())), indent=1))
    return 0
