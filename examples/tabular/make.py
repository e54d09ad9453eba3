"""Writes made-up customers as CSV files: `python -m examples.tabular.make DIRECTORY`."""

import csv
import sys
from pathlib import Path

import numpy as np

FILES = {"train.csv": 4000, "val.csv": 1000}
SHARE_OF_PLANS = {"free": 0.6, "basic": 0.3, "team": 0.1}
EUROS_A_MONTH = {"free": 1, "basic": 20, "team": 60}


def write_customers(directory: Path, seed: int = 0) -> None:
    """Writes a file for training and one for validation; every tenth age and income is missing."""
    directory.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    for name, count in FILES.items():
        with open(directory / name, "w", newline="", encoding="utf-8") as file:
            table = csv.writer(file)
            table.writerow(["customer", "age", "income", "months", "plan", "left", "spent"])
            table.writerows(_customer(rng, f"{name[0]}{number}") for number in range(count))


def _customer(rng: np.random.Generator, name: str) -> list[object]:
    plan = rng.choice(list(SHARE_OF_PLANS), p=list(SHARE_OF_PLANS.values()))
    age, income, months = rng.integers(18, 80), np.exp(rng.normal(10.3, 0.4)), rng.exponential(24)
    # the young and the old leave, new customers too, and those who pay little
    odds = -7 + ((age - 48) / 12) ** 2 + 1.5 * (plan == "free") + 2 * np.exp(-months / 6) - (income - 30000) / 30000
    left = int(rng.uniform() < 1 / (1 + np.exp(-odds)))
    spent = EUROS_A_MONTH[plan] * (income / 30000) * rng.gamma(20, 1 / 20)
    cells = ["" if rng.uniform() < 0.1 else f"{value:.0f}" for value in (age, income)]
    return [name, *cells, f"{months:.1f}", plan, left, f"{spent:.2f}"]


if __name__ == "__main__":
    write_customers(Path(sys.argv[1]))
