"""Pairs of sentences in requests to `scena serve`."""

from typing import Any

from scena import Predictor, Sample


class PairPredictor(Predictor):
    """Takes sentences, where the network takes numbers of word pieces."""

    def sample_from_json(self, instance: Any) -> Sample:
        pair = isinstance(instance, list) and len(instance) == 2 and all(isinstance(text, str) for text in instance)
        if not pair:
            raise ValueError(f'An instance is a pair of sentences: ["FIRST", "SECOND"]. Received: {instance!r:.80}')
        return Sample(inputs=tuple(instance), meta=" | ".join(instance))
