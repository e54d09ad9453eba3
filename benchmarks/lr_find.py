"""Whether the suggestions of `scena lr-find` train: each one beside a grid of rates, on every example.

    python -m benchmarks.lr_find [--examples NAME…] [--scale 1] [--seeds 1] [--out FILE]

An example is trained with eleven constant rates from 1e-5 to 1, in half decades, and with the suggested one, each time from the same
weights, with the same batches and for the same number of steps. What counts is the lowest of eight validation losses at equal distances,
on all validation data: that of the model which a training keeps as its best. Steps are fixed rather than seconds, so that a busy
machine gives the same result. `lr-find` gets a budget of four times these steps, as its default of four minutes is four times the minute
of a training. With several seeds, the suggestion and the three best rates of the grid are trained with each, and their means are
compared. Results are added to the file as they come, and what is there is not computed again.
"""

import argparse
import gc
import json
import time
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from scena.params import parse, root_of
from scena.scenario.finding import find_scenario

RATES = [10.0 ** (-5 + half / 2) for half in range(11)]
MIDDLE = 4
HOPELESS, HOPELESS_IN_A_ROW = 2.0, 2
"""From the middle outwards, the grid ends after so many rates in a row whose loss is this many times the best."""
WITHIN = 1.1
"""A suggestion is good if its loss is at most this many times the best one of the grid,"""
NOTHING = 0.01
"""or if the difference is below this share of the untrained loss: of two classifiers that start at 0.7, a few samples in a thousand."""
STEPS = {
    "examples.tutorial.min": 1200,
    "examples.tabular": 1000,
    "examples.tutorial.full": 1000,
    "examples.imageclassification": 200,
    "examples.seq2seq": 160,
    "examples.tagging": 200,
    "examples.template.general": 2000,
    "examples.template.listfile": 1500,
    "examples.atr": 100,
    "examples.faces": 80,
    "examples.text.finetuningbert": 24,
}
"""Steps of each training: those of 10 to 40 seconds on two quiet cores."""
VALIDATIONS = 8
FOLDER = Path("lr_find_data")


def main() -> None:
    """Measures what is missing in the file, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", nargs="*", default=list(STEPS))
    parser.add_argument("--scale", type=float, default=1, help="times the steps of each training")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("lr_find.json"))
    options = parser.parse_args()
    make_data()
    done: dict[str, Any] = json.loads(options.out.read_text()) if options.out.exists() else {}
    for name in options.examples:
        steps = round(STEPS[name] * options.scale)
        mine = done.setdefault(f"{name} {steps}", {})
        measure(name, steps, options.seeds, mine, lambda: options.out.write_text(json.dumps(done, indent=1)))
        print(judged(name, steps, options.seeds, mine), flush=True)


def measure(name: str, steps: int, seeds: int, mine: dict[str, Any], store: Any) -> None:
    """Adds what is missing: the grid, the suggestion, and further seeds of the best rates."""
    import keras

    from scena.training.schedules.params import RateFinderParams
    from scena.training.schedules.rate_finder import find_rate, prepare_trials
    from scena.training.schedules.rate_trials import Trials
    from scena.training.trigger import Trigger

    prepared: dict[int, Any] = {}

    def loss(rate: float, seed: int) -> float:
        name_of = f"{rate:.2g} {seed}"
        if name_of not in mine:
            if seed not in prepared:
                prepared[seed] = Trials(prepare_trials(*trainer_of(name, seed), None))
                mine[f"untrained {seed}"] = prepared[seed].validate()
            begun = time.monotonic()
            mine[name_of] = prepared[seed].loss_reached(rate, steps, VALIDATIONS)
            print(f"{name} {name_of}: {mine[name_of]:.4g}, {time.monotonic() - begun:.1f} s", flush=True)
            store()
        return float(mine[name_of])

    for direction in (-1, 1):
        worse, place = 0, MIDDLE
        while 0 <= place < len(RATES) and worse < HOPELESS_IN_A_ROW:
            best = min(loss(rate, 1) for rate in RATES if f"{rate:.2g} 1" in mine or rate == RATES[MIDDLE])
            worse = worse + 1 if loss(RATES[place], 1) > HOPELESS * best else 0
            place += direction
    if "suggestion" not in mine:
        found = find_rate(RateFinderParams(budget=Trigger(4 * steps, "steps")), *trainer_of(name, 1))
        mine["suggestion"], mine["refusal"] = found.suggestion, found.refusal
        mine["trials"] = [[trial.rate, trial.steps, trial.loss] for trial in found.trials]
        print(f"{name}: {found.suggestion} {found.refusal} {mine['trials']}", flush=True)
        store()
    for seed in range(1, seeds + 1):
        for rate in [*([mine["suggestion"]] if mine["suggestion"] else []), *_best(mine)]:
            loss(rate, seed)
    keras.backend.clear_session()
    gc.collect()


def judged(name: str, steps: int, seeds: int, mine: dict[str, Any]) -> str:
    """A row of the table."""
    if mine["suggestion"] is None:
        return f"| `{name}` | {steps} | {mine['refusal']} |"
    best = _best(mine)
    means = {
        rate: mean([mine[f"{rate:.2g} {seed}"] for seed in range(1, seeds + 1)]) for rate in [mine["suggestion"], *best]
    }
    first = min(best, key=lambda rate: means[rate])
    loss, untrained = means[mine["suggestion"]], mine["untrained 1"]
    same = loss - means[first] <= NOTHING * untrained
    verdict = "good" if loss <= WITHIN * means[first] else "good: no difference to speak of" if same else "worse"
    return (
        f"| `{name}` | {steps} | {untrained:.3g} | {mine['suggestion']:.2g} | {loss:.3g} | {first:.2g} | {means[first]:.3g} | "
        f"{loss / means[first]:.2f} | {verdict} |"
    )


def _best(mine: dict[str, Any]) -> list[float]:
    return sorted((rate for rate in RATES if f"{rate:.2g} 1" in mine), key=lambda rate: mine[f"{rate:.2g} 1"])[:3]


def trainer_of(name: str, seed: int) -> tuple[Any, Any]:
    """The parameters and the scenario of an example."""
    scenario = find_scenario(name)
    params = parse(root_of(trainer=scenario.default_trainer_params()), flags_of(name), prog=name).params.trainer
    params.random_seed = seed
    trainer = scenario.create_trainer(params)
    return trainer.params, trainer.scenario


def flags_of(name: str) -> list[str]:
    """What an example needs beside its defaults: data that is made here."""
    return {
        "examples.template.listfile": [f"--train.lists={FOLDER}/train.lst", f"--val.lists={FOLDER}/val.lst"],
        "examples.imageclassification": [f"--data.images={FOLDER}/flowers"],
        "examples.tabular": [f"--train.files={FOLDER}/customers/train.csv", f"--val.files={FOLDER}/customers/val.csv"],
    }.get(name, [])


def make_data() -> None:
    """Points in files for the list-file template, drawn flowers, and made-up customers."""
    if FOLDER.exists():
        return
    from examples.imageclassification.draw import write_flowers
    from examples.tabular.make import write_customers

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
    write_customers(FOLDER / "customers")


if __name__ == "__main__":
    main()
