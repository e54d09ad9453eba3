"""`make demo`: trains the minimal tutorial, evaluates the best model, predicts some digits, and says what to try next."""

import os
import shlex
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

EPOCHS = 10
SHOWN = 6


def main() -> int:
    """Runs the commands a user would type, one after the other."""
    directory = Path("runs") / f"demo-{time.strftime('%Y%m%d-%H%M%S')}"
    commands = [
        f"train examples.tutorial.min --trainer.epochs {EPOCHS} --trainer.output_dir {directory}",
        f"lav {directory}/best",
        f"predict {directory}/best --pipeline.limit {SHOWN}",
    ]
    for command in commands:
        if command.startswith("predict"):
            print(f"\nThe first {SHOWN} test digits:\n{_drawings()}")
        status = _run(command)
        if status != 0:
            return status
    print(_next_steps(directory))
    return 0


def _run(command: str) -> int:
    from scena.commands.main import main as scena

    print(f"\n$ scena {command}", flush=True)
    return scena(shlex.split(command))


def _drawings() -> str:
    """The digits side by side, drawn with dots."""
    from scena import load_digits

    images, _ = load_digits("digits", "test")
    rows = []
    for top in range(0, 28, 4):
        rows.append("  ".join(_braille_row(image[top : top + 4] > 96) for image in images[:SHOWN]))
    return "\n".join(rows)


def _braille_row(dots: Any) -> str:
    """Four rows of dots as one row of braille characters, each two dots wide."""
    bits = ((0, 0, 1), (1, 0, 2), (2, 0, 4), (0, 1, 8), (1, 1, 16), (2, 1, 32), (3, 0, 64), (3, 1, 128))
    return "".join(chr(0x2800 + sum(bit for y, x, bit in bits if dots[y, left + x])) for left in range(0, 28, 2))


def _next_steps(directory: Path) -> str:
    scena = ".venv/bin/scena" if Path(".venv/bin/scena").is_file() else "scena"
    return f"""
What to try next:
  {Path(scena).with_name("tensorboard")} --logdir {directory.parent}
      look at the curves in a browser
  {scena} train examples.tutorial.full --model.graph MLP --model.graph.nodes 200 100 50 --trainer.epochs 5
      another network, chosen and changed by flags
  {scena} train examples.tutorial.full --help
      everything that can be set
  {scena} resume {directory} --trainer.epochs {EPOCHS + 5}
      continue this run
  examples/tutorial/min is the whole code of this demo: copy it to write your own scenario (docs/scenario.md)."""


if __name__ == "__main__":
    sys.exit(main())
