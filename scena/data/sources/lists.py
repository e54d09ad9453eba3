"""Samples named by the lines of list files."""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from scena.data.generator import RandomAccessGenerator
from scena.data.params import PipelineMode
from scena.data.sample import Sample
from scena.data.sources.params import ListFileGeneratorParams
from scena.errors import DataError
from scena.storage.location import located, only_here, read_bytes, reason_of

P = TypeVar("P", bound=ListFileGeneratorParams)


class ListFileGenerator(RandomAccessGenerator[P]):
    """Each line is a sample: its inputs and targets are the line itself, for a processor to load. Override `sample` to
    change that.

    Evaluation keeps the order of lists and lines. Training draws from the lists by `list_ratios`: an epoch has as many
    samples as there are lines in lists with a ratio, a list is used up before one of its lines is repeated.
    """

    def __init__(self, params: P, mode: PipelineMode) -> None:
        super().__init__(params, mode)
        if not params.lists:
            raise DataError(
                f"There are no list files for {mode.value}. Name some: --train.lists FILE… in a training, --data.lists FILE… in "
                "lav and predict, lists=[…] in Python."
            )
        if only_here(*params.lists):
            self.main_process = True  # type: ignore[misc]
        self.lines: list[str] = []
        self.sizes: list[int] = []
        for name in params.lists:
            lines = read_list(located(name), params.ignore_prefix)
            self.sizes.append(len(lines))
            self.lines += lines

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, index: int) -> Sample:
        return self.sample(self.lines[index])

    def sample(self, line: str) -> Sample:
        """The sample of one line."""
        return Sample(inputs=line, targets=line, meta=line)

    def fingerprint(self) -> list[str]:
        """The lines themselves (what the files they name hold is not looked at)."""
        return self.lines

    def strata(self) -> Sequence[int]:
        """The list of each line."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes).tolist()

    def epoch_order(self, rng: np.random.Generator, chosen: Sequence[int]) -> Sequence[int] | None:
        """A random mixture of the lists by ratio."""
        if not self.params.list_ratios:
            return None
        lists = np.split(np.asarray(chosen), np.searchsorted(chosen, np.cumsum(self.sizes)[:-1]))
        ratios = np.array([r if len(lines) else 0.0 for r, lines in zip(self.params.list_ratios, lists, strict=True)])
        total = int(sum(len(lines) for lines, r in zip(lists, ratios, strict=True) if r))
        if not total:
            return []
        choices = rng.choice(len(ratios), size=total, p=ratios / ratios.sum())
        order = np.empty(total, np.int64)
        for number, lines in enumerate(lists):
            places = np.flatnonzero(choices == number)
            rounds = -(-len(places) // len(lines)) if len(lines) else 0
            drawn = [lines[rng.permutation(len(lines))] for _ in range(rounds)]
            if drawn:
                order[places] = np.concatenate(drawn)[: len(places)]
        return order.tolist()


def read_list(path: Any, ignore_prefix: str) -> list[str]:
    """The lines of a list file, without empty and ignored ones."""
    try:
        text = read_bytes(path).decode("utf-8")
    except OSError as error:
        raise DataError(f"The list file {str(path)!r} cannot be read: {reason_of(error)}.") from None
    except UnicodeDecodeError as error:
        raise DataError(
            f"The list file {str(path)!r} is not UTF-8 text: {error.reason} at byte {error.start}."
        ) from None
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not (ignore_prefix and line.startswith(ignore_prefix))]
