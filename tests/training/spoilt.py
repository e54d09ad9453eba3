"""The toy's data with mistakes; without Keras, so that data workers start quickly."""

import numpy as np

from scena import Sample
from scena.data.params import PipelineMode
from tests.toy.data import Halves
from tests.toy.params import HalvesParams


class SpoiltHalves(Halves):
    """The toy's data with something wrong in one sample."""

    read: list[tuple[PipelineMode, int]] = []

    def __getitem__(self, index: int) -> Sample:
        sample = super().__getitem__(index)
        SpoiltHalves.read.append((self.mode, index))
        np.random.random()  # a user's code may use global random numbers
        where, _, what = self.params.bad.partition(":")
        if where != self.mode.value or index != 3:
            return sample
        if what == "label":
            return sample.new_targets({"y": np.int32(7)})
        if what == "nan":
            return sample.new_inputs({"x": np.full(8, np.nan, "float32")})
        raise KeyError("column")


class SpoiltParams(HalvesParams, builds=":SpoiltHalves"):
    """Something wrong in a mode: training:label, evaluation:nan, …"""
