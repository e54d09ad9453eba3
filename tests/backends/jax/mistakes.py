"""Trains the toy scenario of the sanity check with a mistake at a time, and prints what comes of it."""

import json
import logging
from pathlib import Path

from scena.errors import ScenaError
from tests.training.test_sanity import SanityScenario
from tests.training.toy_runs import train_toy

MISTAKES = (
    {"gen__train_source__bad": "training:label"},
    {"gen__val_source__bad": "evaluation:label"},
    {"gen__val_source__bad": "evaluation:nan"},
    {"scenario__model__wrong": "pairs"},
    {"scenario__model__wrong": "random"},
)
"""All but the last: a loss that draws random numbers is no mistake, and tracing it must not change its seeds."""


def make(arguments: list[str]) -> None:
    """Prints a JSON list of the errors."""
    logging.disable()
    answers = []
    for number, mistake in enumerate(MISTAKES):
        try:
            train_toy(Path(arguments[0]) / str(number), scenario=SanityScenario, epochs=1, **mistake)
            answers.append("nothing was said")
        except ScenaError as error:
            answers.append(str(error))
    print(json.dumps(answers))
