"""Verification of new people, with the pairs that were hardest in the report."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from scena import Sample, VerificationEvaluator, new_figure

from .params import FaceEvaluatorParams

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class FaceEvaluator(VerificationEvaluator):
    """Also keeps the images."""

    params: FaceEvaluatorParams

    def __enter__(self) -> Self:
        self.pictures: list[np.ndarray] = []
        return super().__enter__()

    def update_state(self, sample: Sample) -> None:
        super().update_state(sample)
        if sample.inputs is not None:  # a dump has none
            self.pictures.append(np.array(sample.inputs["image"]))

    def plots(self) -> "dict[str, Figure]":
        figures = super().plots()
        if not figures or not self.params.hardest or len(self.pictures) != len(self.labels):
            return figures
        vectors, labels = np.stack(self.embeddings), np.array(self.labels)
        likeness = vectors @ vectors.T
        same = labels[:, None] == labels[None]
        first, second = np.triu_indices(len(labels), k=1)
        genuine = same[first, second]
        likeness = likeness[first, second]
        for title, wanted, order in (
            ("Least alike, but the same person", genuine, likeness),
            ("Most alike, but different people", ~genuine, -likeness),
        ):
            chosen = np.flatnonzero(wanted)[np.argsort(order[wanted])[: self.params.hardest]]
            figures[title] = self._pairs([(first[n], second[n], likeness[n]) for n in chosen])
        return figures

    def _pairs(self, pairs: list[tuple[Any, Any, Any]]) -> "Figure":
        figure = new_figure(1.3 * len(pairs), 2.8)
        axes: Any = figure.subplots(2, len(pairs), squeeze=False)
        for column, (one, other, likeness) in enumerate(pairs):
            axes[0, column].set_title(f"{likeness:.2f}", fontsize=9)
            for row, index in enumerate((one, other)):
                axes[row, column].imshow(self.pictures[index])
                axes[row, column].set_axis_off()
        return figure
