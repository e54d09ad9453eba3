"""Writes rendered lines as files, as a user's own work looks: `python -m examples.atr.draw FOLDER --count 20`."""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

from .params import RenderedParams
from .rendering import make_text, render


def main() -> None:
    """Writes FOLDER/NUMBER.png with its text in FOLDER/NUMBER.gt.txt, and their names to FOLDER/lines.lst."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder to write to")
    parser.add_argument("--count", type=int, default=20, help="number of lines (default: 20)")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    names = [f"{number:04d}.png" for number in range(arguments.count)]
    for number, name in enumerate(names):
        rng = np.random.default_rng([2, number])  # 0 and 1 are the lines of training and validation
        text = make_text(rng)
        Image.fromarray(render(text, RenderedParams(), rng)).save(arguments.folder / name)
        (arguments.folder / name).with_suffix(".gt.txt").write_text(text + "\n", encoding="utf-8")
    (arguments.folder / "lines.lst").write_text("\n".join(names) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
