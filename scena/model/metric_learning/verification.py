"""Verification of pairs: scores, false accepts and rejects at each threshold, EER and TAR@FAR. Needs numpy only."""

from typing import Any, NamedTuple

import numpy as np

from scena.errors import ModelError

Array = np.ndarray[Any, Any]
BLOCK = 1024
"""Samples that are compared with all others at a time, which bounds the memory."""


def pair_scores(
    embeddings: Array, labels: Array, *, most_impostors: int | None = None, seed: int = 0
) -> tuple[Array, Array]:
    """The cosines of all pairs of samples: of genuine ones (the same label), and of impostors.

    Args:
        embeddings: one vector for each sample.
        labels: whose they are.
        most_impostors: draw about so many of the impostor pairs if there are more; None keeps all.
        seed: of that draw.

    Raises:
        ModelError: there are no genuine or no impostor pairs.
    """
    vectors = np.asarray(embeddings, "float32").reshape(len(embeddings), -1)
    labels = np.asarray(labels).reshape(-1)
    if len(vectors) != len(labels):
        raise ModelError(f"Each embedding has a label. Received: {len(vectors)} embeddings, {len(labels)} labels.")
    vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    counts = np.unique(labels, return_counts=True)[1].astype("int64")
    pairs = len(labels) * (len(labels) - 1) // 2
    expected = int(np.sum(counts * (counts - 1) // 2))
    if not 0 < expected < pairs:
        raise ModelError(
            "Verification needs several classes, and one of which there are several samples. "
            f"Received: {len(labels)} samples of {len(counts)} classes."
        )
    share = 1.0 if most_impostors is None else min(1.0, most_impostors / (pairs - expected))
    rng = np.random.default_rng(seed)
    genuine, impostors = [], []
    for start in range(0, len(vectors), BLOCK):
        rows = slice(start, start + BLOCK)
        scores = vectors[rows] @ vectors[start:].T
        later = np.triu(np.ones(scores.shape, bool), k=1)
        same = labels[rows, None] == labels[None, start:]
        genuine.append(scores[later & same])
        others = scores[later & ~same]
        impostors.append(others if share == 1.0 else others[rng.random(len(others)) < share])
    return np.concatenate(genuine), np.concatenate(impostors)


class ErrorRates(NamedTuple):
    """Rates of errors at each threshold, from the lowest to the highest; a pair is accepted if its score reaches the threshold."""

    thresholds: Array
    far: Array
    """False accepts: the share of impostor pairs that reach the threshold. Falls from 1 to 0."""
    frr: Array
    """False rejects: the share of genuine pairs that do not. Rises from 0 to 1."""

    @property
    def eer(self) -> float:
        """The equal error rate: where both rates meet, on the straight line between two thresholds."""
        return self._crossing()[0]

    @property
    def eer_threshold(self) -> float:
        """The threshold at which both rates meet."""
        return self._crossing()[1]

    def tar_at(self, far: float) -> float:
        """TAR@FAR: the largest share of genuine pairs that is accepted while at most this share of impostors is."""
        return float(1 - self.frr[self.far <= far].min())

    def _crossing(self) -> tuple[float, float]:
        after = int(np.argmax(self.frr >= self.far))  # at the first threshold all are accepted, so it is a later one
        before = after - 1
        gap_before, gap_after = self.far[before] - self.frr[before], self.frr[after] - self.far[after]
        share = float(gap_before / (gap_before + gap_after))
        rate = float(self.frr[before] + share * (self.frr[after] - self.frr[before]))
        low, high = float(self.thresholds[before]), float(self.thresholds[after])
        return rate, low + share * (high - low)


def error_rates(genuine: Array, impostors: Array) -> ErrorRates:
    """The rates at every threshold that makes a difference.

    Args:
        genuine: scores of pairs that belong together; higher is more alike.
        impostors: scores of pairs that do not.

    Raises:
        ModelError: one of them is empty or not finite.
    """
    genuine, impostors = (np.sort(np.asarray(scores, "float64").reshape(-1)) for scores in (genuine, impostors))
    if not len(genuine) or not len(impostors):
        raise ModelError(
            f"Error rates need both kinds of pairs. Received: {len(genuine)} genuine, {len(impostors)} impostors."
        )
    if not (np.isfinite(genuine).all() and np.isfinite(impostors).all()):
        raise ModelError("Error rates need finite scores. Received: some that are infinite or not a number.")
    thresholds = np.unique(np.concatenate([genuine, impostors]))
    thresholds = np.append(thresholds, np.nextafter(thresholds[-1], np.inf))  # nothing reaches the last one
    far = 1 - np.searchsorted(impostors, thresholds, side="left") / len(impostors)
    frr = np.searchsorted(genuine, thresholds, side="left") / len(genuine)
    return ErrorRates(thresholds, far, frr)
