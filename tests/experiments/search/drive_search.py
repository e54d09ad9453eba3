"""Runs a search over the toy scenario with stand-in trials, in a process that a test can kill."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scena.experiments.schedulers.local import LocalScheduler
from scena.experiments.schedulers.params import LocalParams
from scena.experiments.search.search import Search
from scena.experiments.search.space import SearchSpace, parse_axis
from scena.experiments.search.study import (
    enqueue_grid,
    make_pruner,
    make_sampler,
    open_storage,
    open_study,
    storage_url,
)

EPOCHS = 9


def search(output: Path, axes: list[str], trials: int, sampler: Any = "tpe", pruner: Any = "none", seed: int | None = 1,
           slots: int = 2, storage: str | None = None, seeds: Sequence[int] = ()) -> Any:  # fmt: skip
    """Carries out a search and returns its study."""
    from scena.params import root_of
    from tests.toy.scenario import ToyScenario

    output.mkdir(parents=True, exist_ok=True)
    python = output / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tests.experiments.stand_in_trainer "$@"\n')
    python.chmod(0o755)
    flags = [f"--trainer.epochs={EPOCHS}"]
    space = SearchSpace(
        [parse_axis(text) for text in axes], root_of(trainer=ToyScenario.default_trainer_params()), flags
    )
    space.check()
    study = open_study(open_storage(storage_url(storage, output)), "test", "max", {"search": axes})
    study.sampler = make_sampler(sampler, seed, len(study.trials), slots > 1)
    study.pruner = make_pruner(pruner, EPOCHS, 1)
    if sampler == "grid":
        trials = enqueue_grid(study, space)
    words = ["scena", "train", "tests.toy", *flags]
    LocalScheduler(LocalParams(cpus=list(range(slots)))).run(
        Search(study, space, words, output, str(python), trials, own_storage=storage is None, seeds=seeds)
    )
    return study


if __name__ == "__main__":
    options = json.loads(sys.argv[1])
    search(Path(options.pop("output")), **options)
    os._exit(0)
