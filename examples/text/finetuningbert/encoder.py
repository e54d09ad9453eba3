"""BERT's encoder in Keras (Devlin et al. 2018), with exact GELU, as the pretrained weights expect it."""

from typing import Any

import keras
from keras import layers, ops

from .params import EncoderParams

EPSILON = 1e-12


class Embeddings(layers.Layer):
    """What a piece is, where it stands and which sentence it is part of, added up."""

    def __init__(self, params: EncoderParams, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.word = layers.Embedding(params.vocabulary, params.width, name="word")
        self.position = layers.Embedding(params.positions, params.width, name="position")
        self.part = layers.Embedding(2, params.width, name="part")
        self.norm = layers.LayerNormalization(epsilon=EPSILON, name="norm")
        self.dropout = layers.Dropout(params.dropout)

    def call(self, tokens: Any, parts: Any, training: bool | None = None) -> Any:
        """(batch, places) to (batch, places, width)."""
        positions = ops.expand_dims(ops.arange(ops.shape(tokens)[1]), 0)
        return self.dropout(
            self.norm(self.word(tokens) + self.part(parts) + self.position(positions)), training=training
        )


class Block(layers.Layer):
    """Attention and two dense layers, each added to what came in and normalised."""

    def __init__(self, params: EncoderParams, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.attention = layers.MultiHeadAttention(
            params.heads, params.width // params.heads, dropout=params.dropout, name="attention"
        )
        self.attention_norm = layers.LayerNormalization(epsilon=EPSILON, name="attention_norm")
        self.inner = layers.Dense(params.inner, activation=_exact_gelu, name="inner")
        self.outer = layers.Dense(params.width, name="outer")
        self.norm = layers.LayerNormalization(epsilon=EPSILON, name="norm")
        self.dropout = layers.Dropout(params.dropout)

    def call(self, features: Any, present: Any, training: bool | None = None) -> Any:
        """Features of the same shape; places that are not present are not looked at."""
        seen = self.attention(features, features, attention_mask=present, training=training)
        features = self.attention_norm(features + self.dropout(seen, training=training))
        changed = self.outer(self.inner(features))
        return self.norm(features + self.dropout(changed, training=training))


class Encoder(layers.Layer):
    """Features of word pieces that know all other pieces."""

    def __init__(self, params: EncoderParams, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.embeddings = Embeddings(params, name="embeddings")
        self.blocks = [Block(params, name=f"block{number}") for number in range(params.layers)]

    def call(self, tokens: Any, parts: Any, training: bool | None = None) -> Any:
        """(batch, places) to (batch, places, width); 0 is padding."""
        present = ops.expand_dims(ops.not_equal(tokens, 0), 1)
        features = self.embeddings(tokens, parts, training=training)
        for block in self.blocks:
            features = block(features, present, training=training)
        return features


def _exact_gelu(features: Any) -> Any:
    return keras.activations.gelu(features, approximate=False)
