"""A network of the zoo as a model: loss with smoothing, weights and mixed images, accuracy and top-k."""

from pathlib import Path
from typing import Any

import keras
from keras import ops

from scena.errors import ModelError
from scena.model.graph import GenericGraphBase, Tensors
from scena.model.model import ModelBase
from scena.model.zoo.network import network_from_params
from scena.scenario.classification.mixing import Mixing
from scena.scenario.classification.params import HUB, ClassificationModelParams, ClassificationNetworkParams


class ClassificationGraph(GenericGraphBase[ClassificationModelParams]):
    """The network; in training images may be mixed before it."""

    def __init__(self, params: ClassificationModelParams, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        self.network = create_network(params.network)
        self.mixing = Mixing(params.mix, name="mixing") if params.mix.mixup or params.mix.cutmix else None

    def build_train_graph(self, inputs: Tensors, targets: Tensors, training: bool | None = None) -> Tensors:
        """The network, on mixed images if that is asked for; says what was mixed with what."""
        if self.mixing is None or not training:
            return self._outputs(self.network(inputs["image"], training=training))
        image, other, share = self.mixing(inputs["image"], targets["label"])
        return {**self._outputs(self.network(image, training=training)), "other_label": other, "share": share}

    def build_prediction_graph(self, inputs: Tensors) -> Tensors:
        """The network."""
        return self._outputs(self.network(inputs["image"], training=False))

    def _outputs(self, logits: Any) -> Tensors:
        if isinstance(logits, dict):  # DeepPixBiS has a map beside them
            logits = logits["logits"]
        return {"logits": logits, "pred": ops.softmax(logits), "class": ops.argmax(logits, axis=-1)}


def create_network(params: ClassificationNetworkParams) -> Any:
    """The network of the zoo, or the classifier on a SavedModel's features."""
    if params.name != HUB:
        return network_from_params(params)
    from scena.model.hub.inspect import resolve_handle
    from scena.model.hub.layer import FeatureClassifier

    path = Path(params.files) if params.files is not None else resolve_handle(str(params.handle))
    size = (params.input_size[0], params.input_size[1], params.input_size[2])
    return FeatureClassifier(path, size, params.num_classes, params.dropout or 0.0, params.l2, name=HUB)


class ClassificationModel(ModelBase[ClassificationModelParams]):
    """Classifies images."""

    best = ("max", "acc")

    def create_graph(self) -> ClassificationGraph:
        """The chosen network."""
        weights, classes = self.params.class_weights, self.params.network.num_classes
        if weights and len(weights) != classes:
            raise ModelError(
                f"--model.class_weights needs one number for each of {classes} classes. Received: {len(weights)}."
            )
        return ClassificationGraph(self.params, name="graph")

    def loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        del inputs
        loss = self._cross_entropy(targets["label"], outputs["logits"])
        if "share" in outputs:
            share = outputs["share"]
            loss = share * loss + (1 - share) * self._cross_entropy(outputs["other_label"], outputs["logits"])
        return {"loss": loss}

    def _cross_entropy(self, label: Any, logits: Any) -> Any:
        classes = logits.shape[-1]
        wanted = ops.one_hot(label, classes, dtype="float32")
        smoothing = self.params.label_smoothing
        wanted = wanted * (1 - smoothing) + smoothing / classes
        loss = -ops.sum(wanted * ops.log_softmax(logits, axis=-1), axis=-1)
        if self.params.class_weights:
            loss = loss * ops.take(ops.convert_to_tensor(self.params.class_weights, "float32"), label)
        return loss

    def metrics(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        del inputs
        label, pred = targets["label"], outputs["pred"]
        measured = {"acc": keras.metrics.sparse_categorical_accuracy(label, pred)}
        for k in self.params.top_k:
            if 1 < k < pred.shape[-1]:
                measured[f"top{k}"] = keras.metrics.sparse_top_k_categorical_accuracy(label, pred, k=k)
        return measured
