"""A source of pictures and an augmentation."""

import numpy as np

from scena import Sample, SplitSource
from scena.data.image import Operation


class Stripes(SplitSource):
    def open(self):
        self.classes = ["horizontal", "vertical"]
        return {"train": self.params.count, "test": self.params.count}

    def title(self):
        return "stripes"

    def labels(self, split):
        return [place % 2 for place in range(self.params.count)]

    def read(self, split, place):
        rng = np.random.default_rng([place, split == "test"])
        row = rng.integers(0, 256, (16, 1, 3), "uint8")
        image = np.broadcast_to(row, (16, 16, 3))
        return Sample(
            inputs={"image": np.ascontiguousarray(image.swapaxes(0, 1) if place % 2 else image)},
            targets={"label": place % 2},
        )


class Invert(Operation):
    draws = 1

    def apply(self, b, image, u):
        return b.choose(u[0] < 0.5, lambda: 255 - image, lambda: image)
