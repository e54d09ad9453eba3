"""Several models vote."""

import numpy as np

from scena import MultiModelPredictor


class TutorialVoter(MultiModelPredictor):
    """The class with the highest mean probability wins."""

    def vote(self, outputs: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
        pred = np.mean([output["pred"] for output in outputs], axis=0)
        return {"pred": pred, "class": np.argmax(pred, axis=-1)}
