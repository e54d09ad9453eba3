"""Asks a model which value selects its best version, in a separate process, so that a search needs no TensorFlow.

`python -m scena.experiments.search.objective SCENARIO [--import …] [--flags]` prints the mode, min or max, and the name of the value.
"""

import json
import subprocess
import sys
from typing import Any

from scena.errors import ExperimentError


def ask(python: str, words: list[str]) -> tuple[str, str]:
    """The mode (min or max) and the name of the value that selects the best model of this training."""
    done = subprocess.run(
        [python, "-m", "scena.experiments.search.objective", *words], capture_output=True, text=True, check=False
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        output = [line for line in done.stderr.splitlines() if line.strip()]
        raise ExperimentError(
            f"The model cannot be created to ask for its best value: {output[-1] if output else 'no output'}. "
            "Set it with --direction max or min."
        )
    found = json.loads(lines[-1])
    return str(found["mode"]), str(found["name"])


def settings(scenario: Any, params: Any) -> dict[str, str]:
    """`--trainer.best`, or else `best` of the model of a scenario."""
    if params.best is not None:
        return {"mode": params.best.mode, "name": params.best.name}
    made = scenario(params.scenario)
    mode, name = made.create_model(made.create_data())._best_logging_settings()
    return {"mode": mode, "name": name}


def main(arguments: list[str]) -> int:
    """Prints the answer for the flags of a training."""
    from scena.params import parse, parse_options, root_of
    from scena.scenario.finding import ImportOptions, find_scenario, import_modules

    scenario = find_scenario(arguments[0])
    options, rest = parse_options(ImportOptions, arguments[1:])
    import_modules(options.modules)
    root = root_of(trainer=scenario.default_trainer_params())
    print(json.dumps(settings(scenario, parse(root, rest).params.trainer)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
