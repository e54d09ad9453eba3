"""Training sees the right answer (teacher forcing); prediction has only what it wrote so far."""

from typing import Any

import keras
from keras import layers, ops

from scena import GenericGraphBase, ModelBase, Tensors

from .codec import ANSWER, SIZE, START
from .params import DatesModelParams


class DatesGraph(GenericGraphBase[DatesModelParams]):
    """Encoder, decoder and attention between them; both graphs use the same layers."""

    def __init__(self, params: DatesModelParams, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        self.embedding = layers.Embedding(SIZE, params.embedding)
        self.encoder = layers.Bidirectional(layers.GRU(params.units, return_sequences=True))
        self.keys = layers.Dense(params.units)
        self.decoder = layers.GRU(params.units, return_sequences=True, return_state=True)
        self.logits = layers.Dense(SIZE)

    def build_train_graph(self, inputs: Tensors, targets: Tensors, training: bool | None = None) -> Tensors:
        memory, present, state = self._encode(inputs["text"])
        before = ops.pad(targets["answer"][:, :-1], ((0, 0), (1, 0)), constant_values=START)
        logits, _ = self._decode(before, memory, present, state)
        return {"logits": logits}

    def build_prediction_graph(self, inputs: Tensors) -> Tensors:
        memory, present, state = self._encode(inputs["text"])
        character = ops.full_like(inputs["text"][:, :1], START)
        answer = []
        for _ in range(ANSWER):
            logits, state = self._decode(character, memory, present, state)
            character = ops.cast(ops.argmax(logits, axis=-1), "int32")
            answer.append(character)
        return {"answer": ops.concatenate(answer, axis=1)}

    def _encode(self, text: Any) -> tuple[Any, Any, Any]:
        """What is known at each character, which of them are no padding, and the state that the decoder starts with."""
        present = ops.not_equal(text, 0)
        memory = self.encoder(self.embedding(text), mask=present)
        whole_text = memory[:, 0, self.params.units :]  # where reading backwards ends
        return memory, present, whole_text

    def _decode(self, before: Any, memory: Any, present: Any, state: Any) -> tuple[Any, Any]:
        query, state = self.decoder(self.embedding(before), initial_state=state)
        scores = ops.matmul(query, ops.transpose(self.keys(memory), (0, 2, 1))) / self.params.units**0.5
        scores = ops.where(ops.expand_dims(present, 1), scores, -1e9)
        context = ops.matmul(ops.softmax(scores, axis=-1), memory)
        return self.logits(ops.concatenate([query, context], axis=-1)), state


class DatesModel(ModelBase[DatesModelParams]):
    """Learns character by character; the best model is the one with the most exact answers."""

    graph = DatesGraph
    best = ("max", "lav_exact")

    def loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        loss = keras.losses.sparse_categorical_crossentropy
        return {"loss": loss(targets["answer"], outputs["logits"], from_logits=True)}

    def metrics(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {"char_acc": keras.metrics.sparse_categorical_accuracy(targets["answer"], outputs["logits"])}
