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
        self.decoder = layers.RNN(layers.GRUCell(params.units), return_sequences=True)
        self.logits = layers.Dense(SIZE)

    def build_train_graph(self, inputs: Tensors, targets: Tensors, training: bool | None = None) -> Tensors:
        memory, keys, present, state = self._encode(inputs["text"])
        before = ops.pad(targets["answer"][:, :-1], ((0, 0), (1, 0)), constant_values=START)
        query = self.decoder(self.embedding(before), initial_state=state)
        return {"logits": self._attend(query, memory, keys, present)}

    def build_prediction_graph(self, inputs: Tensors) -> Tensors:
        memory, keys, present, state = self._encode(inputs["text"])
        character = ops.full_like(inputs["text"][:, 0], START)
        answer = []
        for _ in range(ANSWER):  # one step at a time, so the cell alone
            query, state = self.decoder.cell(self.embedding(character), state)
            logits = self._attend(query[:, None], memory, keys, present)
            character = ops.cast(ops.argmax(logits[:, 0], axis=-1), "int32")
            answer.append(character)
        return {"answer": ops.stack(answer, axis=1)}

    def _encode(self, text: Any) -> tuple[Any, Any, Any, Any]:
        """What is known at each character, its key, which of them are no padding, and the state that the decoder starts with."""
        present = ops.not_equal(text, 0)
        memory = self.encoder(self.embedding(text), mask=present)
        whole_text = memory[:, 0, self.params.units :]  # where reading backwards ends
        return memory, ops.transpose(self.keys(memory), (0, 2, 1)), present, whole_text

    def _attend(self, query: Any, memory: Any, keys: Any, present: Any) -> Any:
        scores = ops.matmul(query, keys) / self.params.units**0.5
        scores = ops.where(ops.expand_dims(present, 1), scores, -1e9)
        context = ops.matmul(ops.softmax(scores, axis=-1), memory)
        return self.logits(ops.concatenate([query, context], axis=-1))


class DatesModel(ModelBase[DatesModelParams]):
    """Learns character by character; the best model is the one with the most exact answers."""

    graph = DatesGraph
    best = ("max", "lav_exact")

    def loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        loss = keras.losses.sparse_categorical_crossentropy
        return {"loss": loss(targets["answer"], outputs["logits"], from_logits=True)}

    def metrics(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {"char_acc": keras.metrics.sparse_categorical_accuracy(targets["answer"], outputs["logits"])}
