"""`--seeds N`: the same training with several seeds, each a run of its own."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from scena.errors import ExperimentError
from scena.experiments.sheets.command_lines import OUTPUT_DIR, is_training
from scena.experiments.sheets.sheet import Flag, SheetRun
from scena.storage.run_layout import RUNS

RANDOM_SEED = "trainer.random_seed"


def derived_seeds(first: int, count: int) -> list[int]:
    """The given seed and others that follow from it: those of a smaller count are the first ones of a larger count."""
    seeds = [first]
    number = 0
    while len(seeds) < count:
        number += 1
        found = int.from_bytes(hashlib.sha256(f"{first}/{number}".encode()).digest()[:4], "big")
        seeds += [found] if found not in seeds else []
    return seeds


def seed_runs(id: str, script: list[str], flags: Sequence[str], first: int, count: int) -> list[SheetRun]:
    """The runs of a training with several seeds; `flags` are the words of all other flags."""
    own = without_flags(flags, (RANDOM_SEED, OUTPUT_DIR))
    return [
        SheetRun(f"{id}{seed}", [*script, *own], [Flag(RANDOM_SEED, [str(seed)])], where=f"seed {seed}")
        for seed in derived_seeds(first, count)
    ]


def with_seeds(runs: list[SheetRun], count: int) -> list[SheetRun]:
    """Each training of a sheet with several seeds, derived from its random_seed (default: 0)."""
    return [one for run in runs for one in ([run] if run.skip else _with_seeds(run, count))]


def _with_seeds(run: SheetRun, count: int) -> list[SheetRun]:
    if not is_training(run.script):
        raise ExperimentError(
            f"{run.where}: --seeds is for runs of `scena train`, and {run.id} runs `{' '.join(run.script[:2])}`."
        )
    given = [flag for flag in run.flags if flag.name in (RANDOM_SEED, "random_seed")]
    try:
        first = int(given[-1].words[0]) if given else 0
    except (ValueError, IndexError):
        raise ExperimentError(f"{run.where}: random_seed must be one whole number for --seeds.") from None
    made = []
    for seed in derived_seeds(first, count):
        flags = [
            Flag(flag.name, [str(Path(flag.words[0], f"seed-{seed}"))]) if _is_directory(flag) else flag
            for flag in run.flags
            if flag not in given
        ]
        made.append(replace(run, id=f"{run.id}-seed-{seed}", flags=[*flags, Flag(RANDOM_SEED, [str(seed)])]))
    return made


def _is_directory(flag: Flag) -> bool:
    return flag.name in (OUTPUT_DIR, "output_dir") and len(flag.words) == 1


def without_flags(words: Sequence[str], names: Sequence[str]) -> list[str]:
    """A command line without some flags, each of which has one value."""
    kept: list[str] = []
    skipped = 0
    for word in words:
        name, equals, _ = word.removeprefix("--").partition("=")
        if word.startswith("--") and name.replace("-", "_") in names:
            skipped = 0 if equals else 1
        elif skipped:
            skipped = 0
        else:
            kept.append(word)
    return kept


def default_folder(scenario: str, words: Sequence[str]) -> Path:
    """`runs/NAME-seeds-HASH`: the same command again finds its runs, and other flags get another folder."""
    module, _, name = scenario.partition(":")
    parts = [part for part in module.split(".") if part != "scenario"]
    digest = hashlib.sha256(json.dumps(list(words)).encode()).hexdigest()[:6]
    return Path(RUNS, f"{parts[-1] if parts else name}-seeds-{digest}")
