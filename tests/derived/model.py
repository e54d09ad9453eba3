"""Model of the scenario with derived state."""

from pathlib import Path
from typing import Any

import keras
from keras import layers, ops

from scena import GraphBase, ModelBase

from .params import DerivedModelParams

Tensors = dict[str, Any]


class Whitening(layers.Layer):
    """A user's layer: keeps a variable, and a tensor that is derived from it when the variable is read."""

    def build(self, input_shape: Any) -> None:
        size = input_shape[-1]
        self.deviation = self.add_weight(shape=(size,), initializer="ones", trainable=False, name="deviation")
        self.derive()

    def derive(self) -> None:
        self.scale = 1.0 / ops.convert_to_tensor(self.deviation)

    def adapt(self, data: Any) -> None:
        self.deviation.assign(data.std(axis=0))
        self.derive()

    def load_own_variables(self, store: Any) -> None:
        super().load_own_variables(store)
        self.derive()

    def call(self, x: Any) -> Any:
        return x * self.scale


class Offset(layers.Layer):
    """A user's layer: keeps numbers in a file, and one beside its variables."""

    offset = 0.0
    factor = 1.0

    def save_assets(self, directory: str) -> None:
        (Path(directory) / "inner").mkdir()
        (Path(directory) / "inner" / "offset.txt").write_text(repr(self.offset))

    def load_assets(self, directory: str) -> None:
        self.offset = float((Path(directory) / "inner" / "offset.txt").read_text())

    def save_own_variables(self, store: Any) -> None:
        store["factor"] = self.factor

    def load_own_variables(self, store: Any) -> None:
        self.factor = float(store["factor"])

    def call(self, x: Any) -> Any:
        return (x - self.offset) * self.factor


class Cached(layers.Layer):
    """A user's layer: trains its weight, and predicts with a tensor that is derived from it when it is read."""

    def build(self, input_shape: Any) -> None:
        self.scale = self.add_weight(shape=(input_shape[-1],), initializer="ones", name="scale")
        self.derive()

    def derive(self) -> None:
        self.squared = ops.square(ops.convert_to_tensor(self.scale))

    def load_own_variables(self, store: Any) -> None:
        super().load_own_variables(store)
        self.derive()

    def call(self, x: Any, training: bool | None = None) -> Any:
        return (x - 50.0) * (ops.square(self.scale) if training else self.squared)


class Forgetful(layers.Layer):
    """A user's layer that keeps something nobody can know of."""

    factor = 1.0

    def call(self, x: Any) -> Any:
        return x * self.factor


class DerivedGraph(GraphBase[DerivedModelParams]):
    def __init__(self, params: DerivedModelParams, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        make = {
            "normalization": lambda: layers.Normalization(),
            "given": lambda: layers.Normalization(mean=50.0, variance=100.0),
            "discretization": lambda: layers.Discretization(num_bins=4, output_mode="int"),
            "integer": lambda: layers.IntegerLookup(max_tokens=8, output_mode="one_hot", pad_to_max_tokens=True),
            "quantized": lambda: layers.Dense(3),
            "float8": lambda: layers.Dense(3),
            "whitening": lambda: Whitening(),
            "cached": lambda: Cached(),
            "string": lambda: layers.StringLookup(max_tokens=9, output_mode="multi_hot", pad_to_max_tokens=True),
            "text": lambda: layers.TextVectorization(
                max_tokens=20, standardize=None, output_mode="count", pad_to_max_tokens=True
            ),
            "tf_idf": lambda: layers.TextVectorization(
                max_tokens=20, standardize=None, output_mode="tf_idf", pad_to_max_tokens=True
            ),
            "synonyms": lambda: layers.StringLookup(max_tokens=9),
        }
        self.parts = {kind: make[kind]() for kind in params.kinds}
        self.offset = Offset()
        self.forgetful = Forgetful() if params.forgetful else None
        self.embedding = layers.Embedding(12, 2)
        self.dropout = layers.Dropout(params.dropout)
        self.logits = layers.Dense(2, name="logits")

    def build_graph(self, inputs: Tensors, training: bool | None = None) -> Tensors:
        x = inputs["x"]
        found = [self.offset(x)]
        for kind, layer in self.parts.items():
            if kind in ("quantized", "float8"):
                found.append(layer((x - 50.0) / 10.0))
            elif kind in ("normalization", "given", "whitening"):
                found.append(layer(x))
            elif kind == "cached":
                found.append(layer(x, training=training))
            elif kind == "discretization":
                found.append(ops.cast(layer(x), "float32"))
            elif kind == "integer":
                found.append(ops.cast(layer(inputs["code"]), "float32"))
            elif kind == "synonyms":
                found.append(self.embedding(layer(inputs["word"]))[:, 0])
            else:
                found.append(ops.cast(layer(inputs["word" if kind == "string" else "sentence"]), "float32"))
        x = ops.concatenate(found, axis=-1)
        if self.forgetful is not None:
            x = self.forgetful(x)
        logits = self.logits(self.dropout(x, training=training))
        return {"logits": logits, "pred": ops.softmax(logits)}

    def adapt(self, data: dict[str, Any]) -> None:
        """Adapts all layers to training data."""
        self.offset.offset, self.offset.factor = 49.5, 0.125
        columns = {"integer": "code", "string": "word", "synonyms": "word", "text": "sentence", "tf_idf": "sentence"}
        for kind, layer in self.parts.items():
            if kind in ("quantized", "float8"):
                layer.quantize("int8" if kind == "quantized" else "float8")
            elif kind not in ("given", "cached"):
                layer.adapt(data[columns.get(kind, "x")])


class DerivedModel(ModelBase[DerivedModelParams]):
    def create_graph(self) -> DerivedGraph:
        return DerivedGraph(self.params)

    def _loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {"loss": keras.losses.sparse_categorical_crossentropy(targets["y"], outputs["logits"], from_logits=True)}

    def _metric(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {"acc": keras.metrics.sparse_categorical_accuracy(targets["y"], outputs["pred"])}
