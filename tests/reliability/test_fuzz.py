"""A short form of the fuzzing: tests/reliability/fuzz.py has the long one."""

import warnings
from pathlib import Path

from tests.reliability.fuzz import fuzz, parsers


def test_parsers_raise_declared_errors_only(tmp_path: Path) -> None:
    wrong = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy's, of the headers of arrays
        for name, parser in parsers(tmp_path).items():
            wrong[name] = list(fuzz(parser, count=100, seed=5))
    assert not any(wrong.values()), wrong
