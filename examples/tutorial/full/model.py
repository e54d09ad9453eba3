"""Loss, metric, and which model is the best."""

import keras

from scena import ModelBase, Tensors

from .graphs import TutorialGraph
from .params import TutorialModelParams


class TutorialModel(ModelBase[TutorialModelParams]):
    """Classifies images."""

    graph = TutorialGraph
    best = ("max", "acc")

    def __init__(self, params: TutorialModelParams) -> None:
        super().__init__(params)
        self.cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.accuracy = keras.metrics.SparseCategoricalAccuracy()

    def loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {"loss": self.cross_entropy(targets["gt"], outputs["logits"])}

    def metrics(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {"acc": self.accuracy(targets["gt"], outputs["pred"])}
