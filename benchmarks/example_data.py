"""Data that some examples need and do not bring along, and trainers of all examples on it."""

from pathlib import Path
from typing import Any

import numpy as np

from scena.params import parse, root_of
from scena.scenario.finding import find_scenario


def create_trainer(name: str, seed: int, data: Path) -> tuple[Any, Any]:
    """The parameters and the scenario of an example."""
    scenario = find_scenario(name)
    params = parse(root_of(trainer=scenario.default_trainer_params()), flags_of(name, data), prog=name).params.trainer
    params.random_seed = seed
    params.gen.train.num_processes = params.gen.val.num_processes = 0
    trainer = scenario.create_trainer(params)
    return trainer.params, trainer.scenario


def flags_of(name: str, data: Path) -> list[str]:
    """What an example needs beside its defaults: data that is made here, or from which a little can always be learned."""
    return {
        "examples.template.general": ["--data.spread=0.2", "--data.count=2000"],
        "examples.template.listfile": [f"--train.lists={data}/train.lst", f"--val.lists={data}/val.lst"],
        "examples.template.table": [f"--data.file={data}/plants.csv"],
        "examples.imageclassification": [f"--data.images={data}/flowers"],
        "examples.tabular": [f"--train.files={data}/customers/train.csv", f"--val.files={data}/customers/val.csv"],
    }.get(name, [])


def make_data(data: Path) -> None:
    """Points on two rings that overlap for the list-file template, plants in a table, drawn flowers, and made-up customers."""
    if data.exists():
        return
    from examples.imageclassification.draw import write_flowers
    from examples.tabular.make import write_customers

    rng = np.random.default_rng(0)
    (data / "points").mkdir(parents=True)
    for split, count in (("train", 2000), ("val", 500)):
        paths = [data / "points" / f"{split}{number}.txt" for number in range(count)]
        for path in paths:
            label, angle = rng.integers(0, 2), rng.uniform(0, 2 * np.pi)
            radius = 0.5 + label + rng.normal(0, 0.25)
            path.write_text(f"{radius * np.cos(angle)} {radius * np.sin(angle)}")
            path.with_suffix(".gt.txt").write_text(str(label))
        (data / f"{split}.lst").write_text("\n".join(str(path.resolve()) for path in paths))
    lines = ["height,width,place,kind"]
    for _ in range(4000):
        kind = rng.integers(0, 3)
        height = "" if rng.random() < 0.1 else f"{rng.normal([50, 40, 60][kind], 10):.1f}"
        place = ["wood", "wall", "pond"][kind if rng.random() < 0.6 else rng.integers(0, 3)]
        lines.append(f"{height},{rng.normal([40, 30, 35][kind], 8):.1f},{place},{['fern', 'moss', 'reed'][kind]}")
    (data / "plants.csv").write_text("\n".join(lines) + "\n")
    write_flowers(data / "flowers", 800)
    write_customers(data / "customers")
