"""Whether the suggestions of `scena lr-find` train: each one beside a grid of rates, on every example.

    python -m benchmarks.lr_find [--examples NAME…] [--minute] [--out FILE]

An example is trained with eleven constant rates from 1e-5 to 1, in half decades, and with the suggested one, each time for the same
number of steps; the loss on its validation data counts. One training is noisy: 10 % more or less of the same rate can change the loss by
20 %. So the suggestion and the three best rates of the grid are trained with three seeds, and their means are compared. Steps are
fixed rather than seconds, so that a busy machine gives the same result: `STEPS` has a number that takes some seconds on one core,
`--minute` takes what about a minute does. Results are added to the file as they come, and what is there is not computed again.
"""

import argparse
import gc
import json
import math
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from scena.params import parse, root_of
from scena.scenario.finding import find_scenario

RATES = [10.0 ** (-5 + half / 2) for half in range(11)]
SEEDS = (1, 2, 3)
WITHIN = 1.1
"""A suggestion is good if its loss is at most this many times the best one of the grid,"""
NOTHING = 0.01
"""or if the difference is below this share of the untrained loss: 0.0001 and 0.0002 are the same to a user."""
STEPS = {
    "examples.template.general": (2000, 20_000),
    "examples.template.listfile": (1000, 15_000),
    "examples.tutorial.min": (750, 10_000),
    "examples.tutorial.full": (750, 8000),
    "examples.imageclassification": (150, 1450),
    "examples.seq2seq": (150, 1100),
    "examples.faces": (60, 300),
    "examples.atr": (60, 300),
    "examples.text.finetuningbert": (40, 80),
}
"""Steps of each training, and those of about a minute on one core."""
FOLDER = Path("lr_find_data")


def main() -> None:
    """Measures what is missing in the file, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", nargs="*", default=list(STEPS))
    parser.add_argument("--minute", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("lr_find.json"))
    options = parser.parse_args()
    make_data()
    done: dict[str, Any] = json.loads(options.out.read_text()) if options.out.exists() else {}
    for name in options.examples:
        steps = STEPS[name][options.minute]
        mine = done.setdefault(f"{name} {steps}", {})
        if "suggestion" not in mine:
            mine["suggestion"] = find(name)
        if mine["suggestion"] is None:
            print(f"{name}: nothing is suggested")
            continue

        def measure(rate: float, seed: int, name: str = name, steps: int = steps, mine: dict[str, Any] = mine) -> None:
            if f"{rate:.2g} {seed}" not in mine:
                mine[f"{rate:.2g} {seed}"] = train(name, rate, steps, seed)
                options.out.write_text(json.dumps(done, indent=1))

        for rate in RATES:
            measure(rate, SEEDS[0])
        best = sorted(RATES, key=lambda rate: mine[f"{rate:.2g} {SEEDS[0]}"][-1])[:3]
        for seed in SEEDS:
            for rate in [mine["suggestion"], *best]:
                measure(rate, seed)
        print(judged(name, steps, mine, best), flush=True)


def judged(name: str, steps: int, mine: dict[str, Any], rates: list[float]) -> str:
    """A row of the table."""
    means = {rate: mean([mine[f"{rate:.2g} {seed}"][-1] for seed in SEEDS]) for rate in [mine["suggestion"], *rates]}
    best = min(rates, key=lambda rate: means[rate])
    loss, untrained = means[mine["suggestion"]], mine[f"{best:.2g} {SEEDS[0]}"][0]
    same = loss - means[best] <= NOTHING * untrained
    verdict = "good" if loss <= WITHIN * means[best] else "good: no difference to speak of" if same else "worse"
    return (
        f"| `{name}` | {steps} | {mine['suggestion']:.2g} | {loss:.3g} | {best:.2g} | {means[best]:.3g} | "
        f"{loss / means[best]:.2f} | {verdict} |"
    )


def find(name: str) -> float | None:
    """What is suggested."""
    import keras

    from scena.training.schedules.params import RateFinderParams
    from scena.training.schedules.rate_finder import find_rate

    trainer = trainer_of(name, SEEDS[0])
    found = find_rate(RateFinderParams(), trainer.params, trainer.scenario)
    keras.backend.clear_session()
    gc.collect()
    return found.suggestion


def train(name: str, rate: float, steps: int, seed: int) -> tuple[float, float]:
    """The validation loss before and after some steps; infinite if the training diverged."""
    import keras

    from scena.training.loop import stacked
    from scena.training.prepare import prepare_run

    trainer = trainer_of(name, seed, rate)
    run = prepare_run(trainer.params, trainer.scenario, Path("."))

    def validate() -> float:
        assert run.val_data is not None
        run.model.reset_metrics()
        logs: dict[str, float] = {}
        with run.val_data.stream(repeat=False) as stream:
            while block := stream.take_block(1):
                logs = run.engine.test(stacked(block, "inputs"), stacked(block, "targets"))
        return logs["loss"] if math.isfinite(logs["loss"]) else math.inf

    before, loss = validate(), 0.0
    with run.train_data.stream(repeat=True) as stream:
        for _ in range(steps):
            block = stream.take_block(1)
            run.model.reset_metrics()
            loss = run.engine.train(stacked(block, "inputs"), stacked(block, "targets"))[0]["loss"]
            if not math.isfinite(loss):
                break
    after = validate() if math.isfinite(loss) else math.inf
    keras.backend.clear_session()
    gc.collect()
    return before, after


def trainer_of(name: str, seed: int, rate: float | None = None) -> Any:
    """The example's trainer, with a constant rate if one is given."""
    from scena.training.schedules.params import Constant
    from scena.training.trigger import Trigger

    scenario = find_scenario(name)
    params = parse(root_of(trainer=scenario.default_trainer_params()), flags_of(name), prog=name).params.trainer
    params.random_seed = seed
    if rate is not None:
        params.learning_rate = Constant(lr=rate)
        params.val_every_n = Trigger(1)
    return scenario.create_trainer(params)


def flags_of(name: str) -> list[str]:
    """What an example needs beside its defaults: data that is made here."""
    if name == "examples.template.listfile":
        return [f"--train.lists={FOLDER}/train.lst", f"--val.lists={FOLDER}/val.lst"]
    if name == "examples.imageclassification":
        return [f"--data.images={FOLDER}/flowers"]
    return []


def make_data() -> None:
    """Points in files for the list-file template, and drawn flowers."""
    if FOLDER.exists():
        return
    from examples.imageclassification.draw import write_flowers

    rng = np.random.default_rng(0)
    (FOLDER / "points").mkdir(parents=True)
    for split, count in (("train", 2000), ("val", 500)):
        paths = [FOLDER / "points" / f"{split}{number}.txt" for number in range(count)]
        for path in paths:
            label, angle = rng.integers(0, 2), rng.uniform(0, 2 * np.pi)
            path.write_text(f"{(0.5 + label) * np.cos(angle)} {(0.5 + label) * np.sin(angle)}")
            path.with_suffix(".gt.txt").write_text(str(label))
        (FOLDER / f"{split}.lst").write_text("\n".join(str(path.resolve()) for path in paths))
    write_flowers(FOLDER / "flowers", 160)


if __name__ == "__main__":
    main()
