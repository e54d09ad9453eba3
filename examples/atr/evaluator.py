"""Character error rate: edits needed per right character."""

from typing import Any, Self

from scena import Evaluator, Sample

from .params import AtrEvaluatorParams


def edit_distance(one: str, other: str) -> int:
    """The number of characters to insert, delete or change to get from one text to the other."""
    row = list(range(len(other) + 1))
    for place, character in enumerate(one, 1):
        before, row[0] = row[0], place
        for column, wanted in enumerate(other, 1):
            before, row[column] = row[column], min(row[column] + 1, row[column - 1] + 1, before + (character != wanted))
    return row[-1]


class CharacterErrors(Evaluator[AtrEvaluatorParams]):
    """Counts edits and characters."""

    def __enter__(self) -> Self:
        self.edits = self.characters = self.wrong = self.lines = 0
        return self

    def update_state(self, sample: Sample) -> None:
        edits = edit_distance(sample.outputs["text"], sample.targets["string"])
        self.edits += edits
        self.characters += len(sample.targets["string"])
        self.wrong += int(edits > 0)
        self.lines += 1

    def result(self) -> dict[str, Any]:
        return {"cer": self.edits / max(1, self.characters), "line_error": self.wrong / self.lines}
