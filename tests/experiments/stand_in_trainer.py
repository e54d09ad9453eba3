"""Stands in for Python in tests of a search: `stand_in -m scena train …` behaves like a training, without TensorFlow.

It reports a value per epoch, keeps its epoch in the run's directory as a checkpoint would, and goes on from there.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from scena.experiments.trial import SOCKET, VALUES, Channel


def main(words: list[str]) -> int:
    """`words` begin after `-m scena`."""
    flags = dict(word[2:].split("=", 1) for word in words if word.startswith("--") and "=" in word)
    directory = Path(words[1] if words[0] == "resume" else flags["trainer.output_dir"])
    values = json.loads(os.environ[VALUES])
    directory.mkdir(parents=True, exist_ok=True)
    with (directory.parent.parent / "starts").open("a") as file:
        file.write(f"{words[0]} {directory.name} {json.dumps(values)}\n")
    (directory / "trainer_params.json").touch()
    if values.get("optimizer") == "SGD" and float(values.get("optimizer.momentum", 0)) > 0.7:
        print("out of memory")
        return 1
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    channel = Channel(os.environ[SOCKET])
    done = directory / "epoch"
    epoch = int(done.read_text()) if done.exists() else 0
    while epoch < int(flags["trainer.epochs"]):
        time.sleep(float(os.environ.get("STAND_IN_SECONDS", "0")))
        epoch += 1
        value = 1 - (float(values.get("model.units", 4)) - 5) ** 2 / 100 + epoch / 1000
        stop = channel.report(epoch, value, "val_acc")
        done.with_suffix(".new").write_text(str(epoch))
        done.with_suffix(".new").rename(done)
        if stop:
            break
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[3:]))
