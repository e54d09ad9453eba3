"""Asks a model which value selects its best version, in a separate process, so that a search needs no TensorFlow."""

import json
import subprocess
import sys

from scena.errors import ExperimentError


def ask(python: str, scenario: str, modules: list[str], flags: list[str]) -> tuple[str, str]:
    """The mode (min or max) and the name of the value that selects the best model of a training with these flags."""
    words = ["-m", "scena.experiments.search.objective", scenario, ",".join(modules), *flags]
    done = subprocess.run([python, *words], capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        output = [line for line in done.stderr.splitlines() if line.strip()]
        raise ExperimentError(
            f"The model cannot be created to ask for its best value: {output[-1] if output else 'no output'}. "
            "Set it with --direction max or min."
        )
    found = json.loads(lines[-1])
    return str(found["mode"]), str(found["name"])


def main(name: str, modules: str, *flags: str) -> None:
    """Prints the answer: `--trainer.best`, or else `best` of the scenario's model."""
    from scena.params import parse, root_of
    from scena.scenario.finding import find_scenario, import_modules

    scenario = find_scenario(name)
    import_modules([module for module in modules.split(",") if module])
    params = parse(root_of(trainer=scenario.default_trainer_params()), list(flags)).params.trainer
    if params.best is not None:
        mode, best = params.best.mode, params.best.name
    else:
        made = scenario(params.scenario)
        mode, best = made.create_model(made.create_data())._best_logging_settings()
    print(json.dumps({"mode": mode, "name": best}))


if __name__ == "__main__":
    main(*sys.argv[1:])
