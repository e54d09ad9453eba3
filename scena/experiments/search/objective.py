"""What is best for a model: asked in a process of its own, so that a search needs no TensorFlow.

`python -m scena.experiments.search.objective SCENARIO [--import …] [--flags]` prints the mode, min or max, and the name of the value.
"""

import json
import subprocess
import sys
import types
from typing import Any

from scena.experiments.errors import ExperimentError
from scena.params import Params, param


def ask(python: str, words: list[str]) -> tuple[str, str]:
    """The mode (min or max) and the name of the value that decides which model of this training is the best."""
    done = subprocess.run(
        [python, "-m", "scena.experiments.search.objective", *words], capture_output=True, text=True, check=False
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise ExperimentError(
            f"The model cannot be made, so it cannot be asked what is best: {said[-1] if said else 'it said nothing'}. "
            "Say it with --direction max or min."
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
    """Answers for the flags of a training."""
    import importlib

    from scena.params import Params, param, parse, parse_options
    from scena.scenario.finding import find_scenario

    class Options(Params):
        """What to import first."""

        modules: list[str] = param([], flat="import", help="modules to import first")

    scenario = find_scenario(arguments[0])
    options, rest = parse_options(Options, arguments[1:])
    for name in options.modules:
        importlib.import_module(name)
    from scena.experiments.search.objective import training_root

    print(json.dumps(settings(scenario, parse(training_root(scenario), rest).params.trainer)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))


def training_root(scenario: Any) -> Any:
    """A params object with the scenario's default trainer parameters under `trainer`."""
    trainer = scenario.default_trainer_params()

    def body(namespace: dict[str, Any]) -> None:
        namespace["__annotations__"] = {"trainer": type(trainer)}
        namespace["trainer"] = param(trainer)

    return types.new_class("Root", (Params,), {}, body)()
