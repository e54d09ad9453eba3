"""LitServe with batching: `python litserve_app.py MODEL PORT`."""

import sys
from typing import Any

import litserve
import numpy as np
from model import decode, encode, open_model


class Api(litserve.LitAPI):
    """The model behind LitServe's queue."""

    def setup(self, device: str) -> None:
        self.model = open_model(sys.argv[1])

    def decode_request(self, request: dict[str, Any]) -> np.ndarray:
        return decode(request["instances"][0])

    def batch(self, inputs: list[np.ndarray]) -> np.ndarray:
        return np.stack(inputs)

    def predict(self, x: np.ndarray) -> np.ndarray:
        return self.model(x)

    def unbatch(self, output: np.ndarray) -> list[np.ndarray]:
        return list(output)

    def encode_response(self, output: np.ndarray) -> dict[str, Any]:
        return encode(output[None])


if __name__ == "__main__":
    api = Api(max_batch_size=32, batch_timeout=0.001)
    server = litserve.LitServer(api, accelerator="cpu", workers_per_device=1, timeout=60)
    server.run(port=int(sys.argv[2]), num_api_servers=1, log_level="warning", generate_client_file=False)
