"""Several models vote. This module, as `data.py`, needs no Keras."""

import numpy as np

from scena import Voter

from .params import TutorialVoterParams


class TutorialVoter(Voter[TutorialVoterParams]):
    """The class with the highest mean probability wins."""

    def vote(self, outputs: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
        pred = np.mean([output["pred"] for output in outputs], axis=0)
        return {"pred": pred, "class": np.argmax(pred, axis=-1)}
