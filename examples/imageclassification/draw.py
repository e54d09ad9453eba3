"""Draws a folder of flowers, so that the example runs without a download: `python -m examples.imageclassification.draw flowers`.

Each class has its own build of blossom; place, size, turn, colours, background, light and noise are drawn at random.
"""

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

SIZE = 96
Colour = tuple[int, int, int]
Rng = np.random.Generator


def main() -> None:
    """Writes FOLDER/train and FOLDER/validation with a folder for each class."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder to write to")
    parser.add_argument("--count", type=int, default=160, help="images of each class to train on (default: 160)")
    arguments = parser.parse_args()
    count = arguments.count
    write_flowers(arguments.folder, count)
    print(f"{5 * count} images to train and {5 * (count // 4)} to validate in {arguments.folder}")


def write_flowers(folder: Path, count: int, seed: int = 0) -> None:
    """Writes `count` images of each class to train, and a quarter as many to validate."""
    for split, number in (("train", count), ("validation", count // 4)):
        for name in FLOWERS:
            (folder / split / name).mkdir(parents=True, exist_ok=True)
            for index in range(number):
                key = [seed, split == "train", list(FLOWERS).index(name), index]
                draw_flower(name, np.random.default_rng(key)).save(
                    folder / split / name / f"{index:04}.jpg", quality=90
                )


def draw_flower(name: str, rng: Rng) -> Image.Image:
    """One image, drawn at twice its size and made smaller."""
    image = _background(rng)
    draw = ImageDraw.Draw(image)
    centre = (SIZE + rng.uniform(-30, 30), SIZE + rng.uniform(-35, 15))
    _stem(draw, centre, rng)
    FLOWERS[name](draw, centre, rng.uniform(40, 72), rng)
    image = image.resize((SIZE, SIZE), Image.Resampling.LANCZOS)
    if rng.random() < 0.3:
        image = image.filter(ImageFilter.GaussianBlur(rng.uniform(0.3, 1.0)))
    pixels = np.asarray(image, np.float32) * rng.uniform(0.75, 1.15) + rng.normal(
        0, rng.uniform(2, 12), (SIZE, SIZE, 3)
    )
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def _background(rng: Rng) -> Image.Image:
    """Blurred patches of leaves, earth or sky."""
    base = np.array([(40, 90, 35), (110, 85, 60), (120, 160, 210), (150, 150, 140)][rng.integers(4)])
    patches = base + rng.normal(0, 30, (6, 6, 3))
    image = Image.fromarray(patches.clip(0, 255).astype(np.uint8))
    return image.resize((2 * SIZE, 2 * SIZE), Image.Resampling.BICUBIC)


def _stem(draw: ImageDraw.ImageDraw, centre: tuple[float, float], rng: Rng) -> None:
    foot = (SIZE + rng.uniform(-40, 40), 2 * SIZE + 10)
    draw.line([centre, foot], fill=_shade((60, 120, 40), rng), width=int(rng.integers(5, 10)))


def _daisy(draw: Any, centre: tuple[float, float], size: float, rng: Rng) -> None:
    _petals(draw, centre, size, int(rng.integers(11, 17)), 0.16, _shade((240, 235, 235), rng), rng)
    _disc(draw, centre, size * rng.uniform(0.25, 0.33), _shade((235, 190, 40), rng))


def _sunflower(draw: Any, centre: tuple[float, float], size: float, rng: Rng) -> None:
    for part in (1.0, 0.88):
        _petals(draw, centre, size * part, int(rng.integers(15, 22)), 0.15, _shade((240, 180, 20), rng), rng)
    _disc(draw, centre, size * rng.uniform(0.42, 0.52), _shade((80, 50, 25), rng))


def _rose(draw: Any, centre: tuple[float, float], size: float, rng: Rng) -> None:
    colour = _shade([(200, 30, 50), (235, 150, 160), (240, 235, 225), (240, 190, 60)][rng.integers(4)], rng)
    start = rng.uniform(0, 2 * math.pi)
    for ring in range(7):  # each ring lies on the one before, a little darker
        radius = size * 0.8 * (1 - ring / 7.5)
        shaded = _darker(colour, 1 - 0.08 * ring)
        for petal in range(5):
            angle = start + ring * 0.9 + petal * 2 * math.pi / 5
            place = (centre[0] + 0.35 * radius * math.cos(angle), centre[1] + 0.35 * radius * math.sin(angle))
            _disc(draw, place, 0.7 * radius, shaded, outline=_darker(shaded, 0.75))


def _tulip(draw: Any, centre: tuple[float, float], size: float, rng: Rng) -> None:
    colour = _shade(
        [(205, 40, 50), (240, 200, 60), (225, 120, 170), (120, 60, 150), (240, 235, 230)][rng.integers(5)], rng
    )
    tilt = rng.normal(0, 0.2)
    for side, shade in ((-1, 0.85), (1, 0.85), (0, 1.0)):
        angle = tilt + side * 0.33
        tip = (centre[0] + 1.05 * size * math.sin(angle), centre[1] - 1.05 * size * math.cos(angle))
        _leaf(draw, (centre[0], centre[1] + 0.45 * size), tip, 0.33 * size, _darker(colour, shade))


def _dandelion(draw: Any, centre: tuple[float, float], size: float, rng: Rng) -> None:
    yellow = rng.random() < 0.5
    colour = _shade((235, 200, 40) if yellow else (225, 225, 220), rng)
    for _ in range(220 if yellow else 130):
        angle, length = rng.uniform(0, 2 * math.pi), size * rng.uniform(0.35, 0.85)
        tip = (centre[0] + length * math.cos(angle), centre[1] + length * math.sin(angle))
        draw.line([centre, tip], fill=colour, width=3 if yellow else 1)
        if not yellow:
            _disc(draw, tip, 3, colour)
    if not yellow:
        _disc(draw, centre, 6, _shade((120, 100, 70), rng))


FLOWERS: dict[str, Callable[[Any, tuple[float, float], float, Rng], None]] = {
    "daisy": _daisy,
    "dandelion": _dandelion,
    "rose": _rose,
    "sunflower": _sunflower,
    "tulip": _tulip,
}


def _petals(
    draw: Any, centre: tuple[float, float], size: float, count: int, width: float, colour: Colour, rng: Rng
) -> None:
    start, flat = rng.uniform(0, 2 * math.pi), rng.uniform(0.75, 1.0)
    for petal in range(count):
        angle = start + 2 * math.pi * petal / count + rng.normal(0, 0.04)
        length = size * rng.uniform(0.92, 1.05)
        tip = (centre[0] + length * math.cos(angle), centre[1] + flat * length * math.sin(angle))
        _leaf(draw, centre, tip, width * size, colour)


def _leaf(draw: Any, foot: tuple[float, float], tip: tuple[float, float], width: float, colour: Colour) -> None:
    """A pointed oval from one point to another."""
    along = np.linspace(0, 1, 14)
    bulge = width * np.sin(np.pi * along**0.8)
    x, y = foot[0] + along * (tip[0] - foot[0]), foot[1] + along * (tip[1] - foot[1])
    length = math.dist(foot, tip) or 1.0
    across = (-(tip[1] - foot[1]) / length, (tip[0] - foot[0]) / length)
    left = [(float(a + b * across[0]), float(c + b * across[1])) for a, b, c in zip(x, bulge, y, strict=True)]
    right = [(float(a - b * across[0]), float(c - b * across[1])) for a, b, c in zip(x, bulge, y, strict=True)]
    draw.polygon(left + right[::-1], fill=colour, outline=_darker(colour, 0.8))


def _disc(draw: Any, centre: tuple[float, float], radius: float, colour: Any, outline: Any = None) -> None:
    box = (centre[0] - radius, centre[1] - radius, centre[0] + radius, centre[1] + radius)
    draw.ellipse(box, fill=colour, outline=outline)


def _darker(colour: Colour, share: float) -> Colour:
    return int(colour[0] * share), int(colour[1] * share), int(colour[2] * share)


def _shade(colour: Colour, rng: Rng) -> Colour:
    red, green, blue = (int(value) for value in (np.array(colour) + rng.normal(0, 14, 3)).clip(0, 255))
    return red, green, blue


if __name__ == "__main__":
    main()
