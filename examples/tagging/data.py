"""Lines of text with a tag for each letter. Lines have different lengths: a batch is padded to its longest."""

import numpy as np

from scena import ArraySpec, DataBase, MappingDataProcessor, PipelineMode, RandomAccessGenerator, Sample

from .evaluator import fields
from .params import CutPaddingParams, LinesParams, TaggingDataParams, TextsParams

TAGS = ["other", "date", "amount", "name"]
PADDING = -1
"""The tag of letters that are not there: losses and metrics skip it."""
MONTHS = ["january", "march", "may", "august", "october"]
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789. "
MISPRINTS = 0.05
SYLLABLES = ["mo", "na", "ri", "ta", "le", "ka", "so", "bi", "du", "el"]


class Lines(RandomAccessGenerator[LinesParams]):
    """A made-up line for each index. Names and other words are made of the same syllables: only what is around them tells."""

    def __len__(self) -> int:
        return self.params.count if self.mode == PipelineMode.TRAINING else max(1, self.params.count // 10)

    def __getitem__(self, index: int) -> Sample:
        rng = np.random.default_rng([0 if self.mode == PipelineMode.TRAINING else 1, index])
        text, tags = "", list[int]()
        for _ in range(rng.integers(1, 6)):
            for part, tag in _phrase(rng):
                text += part
                tags += [TAGS.index(tag)] * len(part)
        text = "".join(letter if rng.uniform() > MISPRINTS else rng.choice(list(LETTERS)) for letter in text)
        return Sample(inputs={"letters": encode(text)}, targets={"tags": np.array(tags)}, meta={"text": text})


def _phrase(rng: np.random.Generator) -> list[tuple[str, str]]:
    word = "".join(rng.choice(SYLLABLES, rng.integers(2, 4)))
    day, month, cents = rng.integers(1, 29), rng.integers(1, 13), rng.integers(100, 99999)
    date = [f"{day}.{month}.", f"{day} {rng.choice(MONTHS)}", f"20{day:02}-{month:02}-{day:02}"][rng.integers(3)]
    amount = [f"{cents / 100:.2f}", f"{cents // 100} euros"][rng.integers(2)]
    phrases = [
        [("on ", "other"), (date, "date")],
        [(str(rng.choice(["paid ", "got ", "", "fee "])), "other"), (amount, "amount")],
        [(str(rng.choice(["to ", "from ", "dear "])), "other"), (word, "name")],
        [(str(rng.choice(["for ", "no ", "with "])) + word, "other")],
        [(f"no {cents}", "other")],
    ]
    return [*phrases[rng.integers(len(phrases))], (" ", "other")]


class Texts(RandomAccessGenerator[TextsParams]):
    """Lines given by a user."""

    def __len__(self) -> int:
        return len(self.params.texts)

    def __getitem__(self, index: int) -> Sample:
        text = self.params.texts[index]
        return Sample(inputs={"letters": encode(text)}, meta={"text": text})


def encode(text: str) -> np.ndarray:
    """Letters as numbers from 1 to 127; 0 is padding. Others than ASCII are one and the same."""
    return np.array([min(max(ord(letter), 1), 127) for letter in text.lower()], "int32")


class CutPadding(MappingDataProcessor[CutPaddingParams]):
    """Outputs and targets come out of a batch, and are as long as its longest line."""

    def apply(self, sample: Sample) -> Sample:
        length = len(sample.meta["text"])
        sample = sample.new_outputs({"tags": sample.outputs["tags"][:length]})
        return sample.new_targets({"tags": sample.targets["tags"][:length]}) if sample.targets else sample


class TaggingData(DataBase[TaggingDataParams]):
    inputs = {"letters": ArraySpec((None,), "int32")}
    targets = {"tags": ArraySpec((None,), "int32")}

    def padding(self) -> dict[str, float]:
        return {"letters": 0, "tags": PADDING}

    def describe(self, sample: Sample) -> str:
        text = sample.meta["text"]
        found = [f"{TAGS[tag]} {text[start:end]!r}" for start, end, tag in sorted(fields(sample.outputs["tags"]))]
        return f"{text}: {', '.join(found)}"
