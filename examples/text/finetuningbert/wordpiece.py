"""Splits text into the word pieces of BERT: basic rules first, then the longest known pieces of each word from its start."""

import unicodedata
from collections.abc import Iterator
from pathlib import Path

from scena import DataError

UNKNOWN, START, SEPARATOR = "[UNK]", "[CLS]", "[SEP]"
LONGEST_WORD = 100
CJK = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF),
       (0xF900, 0xFAFF), (0x2F800, 0x2FA1F))  # fmt: skip
"""Ideographs, which are words of their own."""


class WordPieces:
    """Numbers of word pieces. Made from a vocabulary, a text file with a piece in each line.

    Args:
        path: the vocabulary.
        lower_case: ignore case and accents.
    """

    def __init__(self, path: Path, lower_case: bool = True) -> None:
        lines = path.read_text(encoding="utf-8").split("\n")
        self.numbers = {piece.rstrip("\r"): number for number, piece in enumerate(lines) if piece}
        self.lower_case = lower_case
        missing = [piece for piece in (UNKNOWN, START, SEPARATOR) if piece not in self.numbers]
        if missing:
            raise DataError(f"The vocabulary {path} lacks {', '.join(missing)}: is it one of BERT's?")

    def encode(self, text: str) -> list[int]:
        """The numbers of a text's pieces, without the special ones at its ends."""
        return [self.numbers[piece] for word in self._words(text) for piece in self._pieces(word)]

    def pair(self, first: str, second: str, longest: int) -> tuple[list[int], list[int]]:
        """Two texts in one row, `[CLS] first [SEP] second [SEP]`, and for each piece 0 or 1: which text it is part of."""
        one, other = self.encode(first), self.encode(second)
        while len(one) + len(other) > longest - 3:
            (one if len(one) > len(other) else other).pop()
        start, separator = self.numbers[START], self.numbers[SEPARATOR]
        tokens = [start, *one, separator, *other, separator]
        return tokens, [0] * (len(one) + 2) + [1] * (len(other) + 1)

    def _words(self, text: str) -> Iterator[str]:
        word = ""
        for character in self._normalised(text):
            if character.isspace() or _stands_alone(character):
                if word:
                    yield word
                word = ""
                if not character.isspace():
                    yield character
            else:
                word += character
        if word:
            yield word

    def _normalised(self, text: str) -> str:
        kept = "".join(" " if c in "\t\n\r" else c for c in text if c in "\t\n\r" or not _is_control(c))
        if not self.lower_case:
            return kept
        # accents first: the lower case of some letters with accents is two characters
        plain = "".join(c for c in unicodedata.normalize("NFD", kept) if unicodedata.category(c) != "Mn")
        return plain.lower()

    def _pieces(self, word: str) -> list[str]:
        if len(word) > LONGEST_WORD:
            return [UNKNOWN]
        pieces, start = [], 0
        while start < len(word):
            prefix = "##" if start else ""
            end = next((e for e in range(len(word), start, -1) if prefix + word[start:e] in self.numbers), None)
            if end is None:
                return [UNKNOWN]
            pieces.append(prefix + word[start:end])
            start = end
        return pieces


def _is_control(character: str) -> bool:
    return character in "\x00�" or unicodedata.category(character).startswith("C")


def _stands_alone(character: str) -> bool:
    if character.isascii():
        return character.isprintable() and not character.isalnum() and character != " "
    code = ord(character)
    return unicodedata.category(character).startswith("P") or any(first <= code <= last for first, last in CJK)
