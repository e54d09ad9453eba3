"""What a builder of the zoo is told beside its layers: classes, depth, dropout, features of the bottleneck."""

from collections.abc import Sequence
from typing import NamedTuple

from scena.model.errors import ModelError

Depth = float | Sequence[float]


class Options(NamedTuple):
    """The choices of a user; None where the network's own value is meant."""

    num_classes: int = 1000
    depth: Depth | None = None
    dropout: float | None = None
    embedding: int | None = None

    def dropout_or(self, default: float) -> float:
        """The dropout rate."""
        return default if self.dropout is None else self.dropout

    def blocks(self, default: Sequence[int]) -> list[int]:
        """The blocks of each stage: the network's own, those given, or its own times the number given.

        Raises:
            ModelError: the depth is neither one number nor one for each stage.
        """
        if self.depth is None:
            return list(default)
        numbers = [float(self.depth)] if isinstance(self.depth, int | float) else [float(n) for n in self.depth]
        if len(numbers) == 1:
            numbers = [max(1, round(numbers[0] * blocks)) if 0 < numbers[0] <= 1000 else 0 for blocks in default]
        if len(numbers) != len(default) or any(n < 1 or n != int(n) for n in numbers):
            raise ModelError(
                f"depth is one number that multiplies the blocks, or the blocks of each of the {len(default)} stages "
                f"(default: {' '.join(map(str, default))}). Received: {self.depth!r}"
            )
        return [int(n) for n in numbers]


def make_divisible(value: float, divisor: int = 8) -> int:
    """The nearest multiple of the divisor, at least the divisor, and not more than a tenth below the value."""
    nearest = max(divisor, int(value + divisor / 2) // divisor * divisor)
    return nearest + divisor if nearest < 0.9 * value else nearest
