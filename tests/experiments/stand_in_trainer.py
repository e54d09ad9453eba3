"""Stands in for Python in tests of a search: `stand_in -m scena train …` behaves like a training, without TensorFlow.

It reports a value per epoch, keeps its epoch and its history in the run's directory as a training does, and goes on from there.
"""

import json
import os
import signal
import sys
import time
from itertools import pairwise
from pathlib import Path

from scena.experiments.search.trial import SOCKET, VALUES, Channel


def main(words: list[str]) -> int:
    """`words` begin after `-m scena`."""
    joined = [f"{word}={after}" for word, after in pairwise([*words, ""]) if word.startswith("--") and "=" not in word]
    flags = dict(word[2:].split("=", 1) for word in [*words, *joined] if word.startswith("--") and "=" in word)
    directory = Path(words[1] if words[0] == "resume" else flags["trainer.output_dir"])
    values = json.loads(os.environ.get(VALUES, "{}"))
    directory.mkdir(parents=True, exist_ok=True)
    seed = int(flags.get("trainer.random_seed", "0"))
    name = (
        directory.name if directory.parent.name in ("trials", "runs") else f"{directory.parent.name}/{directory.name}"
    )
    folder = directory.parents[1 + name.count("/")]
    with (folder / "starts").open("a") as file:
        file.write(f"{words[0]} {name} {json.dumps(values)}\n")
    description = {"scenario": "stand:In", "trainer": {"epochs": int(flags["trainer.epochs"])}}
    (directory / "trainer_params.json").write_text(json.dumps(description))
    (directory / "best").mkdir(exist_ok=True)
    (directory / "best" / "scenario.json").write_text(json.dumps({"result": {"best": "val_acc"}}))
    if values.get("optimizer") == "SGD" and float(values.get("optimizer.momentum", 0)) > 0.7:
        print("out of memory")
        return 1
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    channel = Channel(os.environ[SOCKET]) if SOCKET in os.environ else None
    done = directory / "epoch"
    epoch = int(done.read_text()) if done.exists() else 0
    while epoch < int(flags["trainer.epochs"]):
        time.sleep(float(os.environ.get("STAND_IN_SECONDS", "0")))
        epoch += 1
        value = 1 - (float(values.get("model.units", 4)) - 5) ** 2 / 100 + epoch / 1000 + seed / 10000
        _add_to_history(directory / "history.csv", f"{epoch},{value}")
        stop = channel is not None and channel.report(epoch, value, "val_acc")
        done.with_suffix(".new").write_text(str(epoch))
        done.with_suffix(".new").rename(done)
        if stop:
            break
    return 0


def _add_to_history(path: Path, row: str) -> None:
    """Adds a row, unless the epoch is done for the second time; the file is replaced at once."""
    rows = path.read_text().splitlines() if path.exists() else ["epoch,val_acc"]
    if not any(old.split(",")[0] == row.split(",")[0] for old in rows):
        path.with_suffix(".new").write_text("\n".join([*rows, row]) + "\n")
        path.with_suffix(".new").rename(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[3:]))
