"""Pictures made on the spot for the tests of images and records."""

from pathlib import Path

import numpy as np
from PIL import Image


def picture(seed: int, height: int = 40, width: int = 60, channels: int = 3) -> np.ndarray:
    """A smooth picture with some noise: neither flat, nor pure noise that JPEG would ruin."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (6, 8, channels), dtype=np.uint8)
    layers = [
        Image.fromarray(coarse[..., c]).resize((width, height), Image.Resampling.BICUBIC) for c in range(channels)
    ]
    smooth = np.stack([np.asarray(layer, np.int16) for layer in layers], -1)
    noise = rng.integers(-6, 7, smooth.shape)
    return (smooth + noise).clip(0, 255).astype(np.uint8)


def save(path: Path, array: np.ndarray, **options: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array[..., 0] if array.ndim == 3 and array.shape[-1] == 1 else array).save(path, **options)
    return path


def class_folders(root: Path, counts: dict[str, int], suffix: str = ".jpg", size: tuple[int, int] = (40, 60)) -> Path:
    for number, (name, count) in enumerate(counts.items()):
        for i in range(count):
            save(root / name / f"{name}_{i:03d}{suffix}", picture(number * 1000 + i, *size))
    return root
