"""Loss, metric, and how results are shown."""

from collections.abc import Callable
from typing import Any

import keras

from scena import ModelBase, Sample

from .graphs import TutorialGraph
from .params import TutorialModelParams

Tensors = dict[str, Any]


class TutorialModel(ModelBase[TutorialModelParams]):
    """Classifies pictures."""

    def __init__(self, params: TutorialModelParams) -> None:
        super().__init__(params)
        self.cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.accuracy = keras.metrics.SparseCategoricalAccuracy()

    def create_graph(self) -> TutorialGraph:
        return TutorialGraph(self.params, name="graph")

    def _loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {"loss": self.cross_entropy(targets["gt"], outputs["logits"])}

    def _metric(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {"acc": (self.accuracy, targets["gt"], outputs["pred"])}

    def _best_logging_settings(self) -> tuple[str, str]:
        return "max", "acc"

    def _print_evaluate(self, sample: Sample, data: object, print_fn: Callable[[str], None] = print) -> None:
        label, target = sample.outputs["class"], sample.targets["gt"]
        mark = "right" if label == target else "WRONG"
        print_fn(f"{mark}: predicted {label} (p = {sample.outputs['pred'][label]:.2f}), target {target}")

    def _print_prediction(self, sample: Sample, data: object, print_fn: Callable[[str], None] = print) -> None:
        label = sample.outputs["class"]
        name = f"{sample.meta['file']}: " if sample.meta else ""
        print_fn(f"{name}{label} (p = {sample.outputs['pred'][label]:.2f})")
