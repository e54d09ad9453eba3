"""Writes images of made-up people as files: `python -m examples.faces.draw OUTPUT --people 500 501 --pictures 4`."""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

from .people import draw_face, make_person


def main() -> None:
    """Writes OUTPUT/PERSON/PICTURE.png."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path, help="the folder to write to")
    parser.add_argument(
        "--people", type=int, nargs="+", default=[500, 501], help="numbers of people (default: 500 501)"
    )
    parser.add_argument("--pictures", type=int, default=4, help="images of each (default: 4)")
    parser.add_argument("--size", type=int, default=96, help="pixels of each side (default: 96)")
    arguments = parser.parse_args()
    for person in arguments.people:
        folder = arguments.output / str(person)
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(arguments.pictures):
            face = draw_face(make_person(person), arguments.size, np.random.default_rng([person, number]))
            Image.fromarray(face).save(folder / f"{number}.png")


if __name__ == "__main__":
    main()
