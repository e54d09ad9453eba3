"""The toy scenario with a predictor, a LAV, a trainer and a voter that their parameters build. It needs no Keras."""

from typing import Any

import numpy as np

from scena import LAVParams, PredictorParams, TrainerParams, Voter, VoterParams, param
from tests.toy.scenario import ToyScenario


class LoudestParams(VoterParams, builds=":Loudest"):
    """The most certain model decides."""


class Loudest(Voter[LoudestParams]):
    """The most certain model decides."""

    def vote(self, outputs: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
        return {"pred": np.max([output["pred"] for output in outputs], axis=0)}


class ShoutingParams(PredictorParams, builds="tests.prediction.shouting:Shouting"):
    """A predictor with a flag of its own."""

    marks: int = param(1, ge=0, help="exclamation marks after each sample")


class CountingParams(LAVParams, builds="tests.prediction.shouting:Counting"):
    """A LAV with a flag of its own."""

    start: int = param(0, help="the count that it starts with")


class PatientParams(TrainerParams[Any, Any], builds="tests.prediction.shouting:Patient"):
    """A trainer with a flag of its own."""

    patience: int = param(3, help="how patient")


class PartsScenario(ToyScenario):
    """Names the parameters of its parts."""

    predictor_params = ShoutingParams
    lav_params = CountingParams
    voter_params = LoudestParams
