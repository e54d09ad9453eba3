"""BentoML with adaptive batching: `MODEL=… bentoml serve bentoml_app:Pictures --port PORT`."""

import os
from typing import Any

import bentoml
import numpy as np
from model import decode, open_model


@bentoml.service(workers=1, traffic={"timeout": 60})
class Pictures:
    """The model behind BentoML's dispatcher."""

    def __init__(self) -> None:
        self.model = open_model(os.environ["MODEL"])

    @bentoml.api(batchable=True, max_batch_size=32, max_latency_ms=1000)
    def predict(self, instances: list[dict[str, str]]) -> list[list[float]]:
        """A row of probabilities for each instance."""
        rows: Any = self.model(np.stack([decode(instance) for instance in instances])).tolist()
        return rows
