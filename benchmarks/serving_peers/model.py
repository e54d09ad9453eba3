"""What every contender of benchmarks/serving.py does beside serving: decode a request, run a batch, encode an answer.

It runs in the contender's own environment, without Scena.
"""

import base64
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

SIZE = 32
Predict = Callable[[np.ndarray], np.ndarray]


def decode(instance: dict[str, str]) -> np.ndarray:
    """The pixels of an instance: {"b64": "…"}."""
    with Image.open(io.BytesIO(base64.b64decode(instance["b64"]))) as image:
        return np.asarray(image.convert("RGB").resize((SIZE, SIZE)))


def encode(rows: np.ndarray) -> dict[str, Any]:
    """The answer that `scena serve` gives."""
    return {"predictions": rows.tolist()}


def open_model(path: str) -> Predict:
    """The model in the runtime that its file is for; `THREADS` of the environment are those of a call in ONNX Runtime."""
    if Path(path).suffix == ".onnx":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(os.environ.get("THREADS", "0"))  # 0: its default, all cores
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return lambda images: session.run(["pred"], {"image": images})[0]
    import keras

    model = keras.saving.load_model(path, compile=False)
    return lambda images: model.predict({"image": images}, verbose=0)["pred"]
