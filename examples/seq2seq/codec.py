"""Characters as numbers, and back. 0 is padding, 1 starts an answer."""

import numpy as np

CHARACTERS = " -./,0123456789abcdefghijklmnopqrstuvwxyz"
START = 1
SIZE = len(CHARACTERS) + 2
ANSWER = 10
"""The length of an answer: YYYY-MM-DD."""


def encode(text: str) -> np.ndarray:
    """The numbers of a text's characters; unknown ones are skipped."""
    return np.array([CHARACTERS.index(c) + 2 for c in text.lower() if c in CHARACTERS], "int32")


def decode(numbers: np.ndarray) -> str:
    """The text of the numbers."""
    return "".join(CHARACTERS[number - 2] for number in numbers if number >= 2)
