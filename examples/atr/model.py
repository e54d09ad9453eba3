"""CNN, LSTM and CTC."""

from typing import Any

from keras import layers, ops

from scena import GraphBase, ModelBase, Tensors

from .params import AtrModelParams, Beam


class AtrGraph(GraphBase[AtrModelParams]):
    """Reads a line from left to right; each convolution halves width and height.

    What lies beyond a line's own width is set to zero after each of them, so that a line is read the same whatever it is
    padded to, and with whatever other lines it shares a batch.
    """

    def __init__(self, params: AtrModelParams, characters: int, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        self.convolutions = [layers.Conv2D(n, 3, padding="same", use_bias=False) for n in params.filters]
        self.norms = [layers.BatchNormalization(momentum=0.95) for _ in params.filters]
        self.pool = layers.MaxPool2D()
        self.lstm = layers.Bidirectional(layers.LSTM(params.lstm, return_sequences=True))
        self.dropout = layers.Dropout(params.dropout)
        self.logits = layers.Dense(characters + 1)

    def build_graph(self, inputs: Tensors, training: bool | None = None) -> Tensors:
        features = ops.expand_dims(ops.cast(inputs["img"], "float32") / 255, -1)
        length = inputs["width"]
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            features = ops.relu(norm(self.pool(convolution(features)), training=training))
            length = length // 2
            inside = ops.expand_dims(ops.arange(ops.shape(features)[1]), 0) < ops.expand_dims(length, 1)
            features = ops.where(inside[:, :, None, None], features, 0.0)
        features = ops.reshape(features, (-1, ops.shape(features)[1], features.shape[2] * features.shape[3]))
        features = self.lstm(features, mask=inside)
        logits = self.logits(self.dropout(features, training=training))
        return {"logits": logits, "length": length, "decoded": self._decode(logits, length)}

    def _decode(self, logits: Any, length: Any) -> Any:
        """Numbers of characters; the blank is 0, as it is for the loss, and stands for nothing."""
        decoder = self.params.decoder
        if isinstance(decoder, Beam):
            options = {"strategy": "beam_search", "beam_width": decoder.width, "top_paths": 1}
        else:
            options = {"strategy": "greedy"}
        decoded, _ = ops.ctc_decode(logits, length, mask_index=0, **options)
        return ops.maximum(ops.cast(decoded[0], "int32"), 0)


class AtrModel(ModelBase[AtrModelParams]):
    """Learns text without knowing where its characters stand; the best model has the lowest character error rate."""

    graph = AtrGraph
    best = ("min", "lav_cer")

    def loss(self, inputs: Tensors, targets: Tensors, outputs: Tensors) -> Tensors:
        return {
            "loss": ops.ctc_loss(targets["text"], outputs["logits"], targets["length"], outputs["length"], mask_index=0)
        }
