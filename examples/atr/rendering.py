"""Lines of made-up text as images, each the same whenever its index is asked for."""

import functools
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from scena import DataError, PipelineMode, RandomAccessGenerator, Sample

from .params import RenderedParams

FONTS = (
    "DejaVuSans.ttf",
    "DejaVuSerif.ttf",
    "DejaVuSansMono.ttf",
    "DejaVuSans-Bold.ttf",
    "STIXGeneral.ttf",
    "cmr10.ttf",
)
SYLLABLES = ("an", "ber", "con", "de", "el", "fa", "gri", "ho", "in", "jo", "ka", "lum", "mo", "nes", "or", "pli", "qua", "ri",
             "sta", "tu", "un", "ver", "wy", "xa", "yo", "zel")  # fmt: skip


@functools.lru_cache(maxsize=64)
def load_font(name: str, size: int) -> Any:
    """One of the fonts inside the matplotlib package, which is not imported."""
    package = importlib.util.find_spec("matplotlib")
    if package is None or package.origin is None:
        raise DataError("The rendered lines need the fonts of matplotlib: pip install 'scena[plot]'.")
    return ImageFont.truetype(str(Path(package.origin).parent / "mpl-data" / "fonts" / "ttf" / name), size)


def make_text(rng: np.random.Generator) -> str:
    """One to four words of made-up syllables, numbers and punctuation among them."""
    words = []
    for _ in range(rng.integers(1, 5)):
        if rng.random() < 0.2:
            words.append(str(rng.integers(0, 10_000)))
            continue
        word = "".join(rng.choice(SYLLABLES, size=rng.integers(1, 4)))
        words.append(word.capitalize() if rng.random() < 0.3 else word.upper() if rng.random() < 0.2 else word)
    return " ".join(words) + str(rng.choice(["", "", ".", ",", ":", "-"]))


def render(text: str, params: RenderedParams, rng: np.random.Generator) -> np.ndarray:
    """An image of the text: dark on light, slanted, blurred and noisy."""
    font = load_font(str(rng.choice(FONTS)), int(rng.integers(18, 25)))
    left, _, right, _ = font.getbbox(text)
    ascent, descent = font.getmetrics()  # of the font, not of these letters: their size tells "o" from "O"
    image = Image.new("L", (int(right - left) + 24, ascent + descent + 6), int(rng.integers(200, 256)))
    ImageDraw.Draw(image).text((12 - left, int(rng.integers(1, 6))), text, fill=int(rng.integers(0, 80)), font=font)
    slant = float(rng.uniform(-params.slant, params.slant))
    paper = int(np.asarray(image)[0, 0])
    moved = (1, slant, -slant * image.height / 2, 0, 1, 0)
    image = image.transform(image.size, Image.Transform.AFFINE, moved, Image.Resampling.BILINEAR, fillcolor=paper)
    image = image.filter(ImageFilter.GaussianBlur(float(rng.uniform(0, params.blur))))
    noisy = np.asarray(image, "float32") + rng.normal(0, params.noise, (image.height, image.width))
    return np.clip(noisy, 0, 255).astype("uint8")


class RenderedLines(RandomAccessGenerator[RenderedParams]):
    """A line for each index; validation lines are others than training lines."""

    def __len__(self) -> int:
        return self.params.count if self.mode == PipelineMode.TRAINING else max(1, self.params.count // 20)

    def __getitem__(self, index: int) -> Sample:
        rng = np.random.default_rng([0 if self.mode == PipelineMode.TRAINING else 1, index])
        text = make_text(rng)
        return Sample(inputs=render(text, self.params, rng), targets=text, meta=text)
