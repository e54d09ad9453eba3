"""JSON without NaN and infinity: null where people and other programs read it, exact where a training continues from it."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from scena import Sample
from scena.commands.output import print_results
from scena.evaluation.dump import DumpWriter, read_dump
from scena.prediction.answer_files import JsonLines
from scena.scenario.stored import write_description
from scena.storage.json_text import exact_json, from_exact_json, json_text, number_or_nan

VALUE = {"a": [1.5, math.nan, {"b": (math.inf, -math.inf, None, True)}], "c": "NaN", "d": np.float64("nan")}


def strict(text: str) -> Any:
    """Reads JSON as other programs do."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


def test_numbers_that_are_not_finite_are_null_and_read_back_as_nan() -> None:
    found = strict(json_text(VALUE))
    assert found == {"a": [1.5, None, {"b": [None, None, None, True]}], "c": "NaN", "d": None}
    assert math.isnan(number_or_nan(found["d"])) and number_or_nan(0.0) == 0.0
    assert json_text({"ä": 1}, None) == '{"ä": 1}'


def test_exact_json_gives_the_same_value() -> None:
    text = exact_json(VALUE)
    strict(text)
    back = from_exact_json(text)
    assert repr(back) == "{'a': [1.5, nan, {'b': [inf, -inf, None, True]}], 'c': 'NaN', 'd': nan}"
    assert repr(from_exact_json('{"old": [NaN, -Infinity]}')) == "{'old': [nan, -inf]}"
    assert from_exact_json('{"$float": 1, "x": {"$float": 2}}') == {"$float": 1, "x": {"$float": 2}}


def test_files_with_results_are_json(tmp_path: Path) -> None:
    print_results({"model": {"eer": math.nan, "loss": 0.5}}, tmp_path / "results")
    assert strict((tmp_path / "results").read_text()) == {"model": {"eer": None, "loss": 0.5}}
    write_description(tmp_path / "scenario.json", {"result": {"best": "acc", "eer": math.nan}})
    assert strict((tmp_path / "scenario.json").read_text())["result"]["eer"] is None
    sample = Sample(outputs={"p": np.array([math.nan, 1.0])}, meta={"weight": math.inf, "none": None})
    with (tmp_path / "answers").open("w") as file:
        JsonLines(file).write(sample)
    answer = {"outputs": {"p": [None, 1.0]}, "meta": {"weight": None, "none": None}}
    assert strict((tmp_path / "answers").read_text()) == answer
    with DumpWriter(tmp_path / "dump", {}) as dump:
        dump.write(sample)
    for line in (tmp_path / "dump").read_text().splitlines():
        strict(line)
    ((_, _, back),) = read_dump(tmp_path / "dump")
    assert back.meta == sample.meta and np.array_equal(back.outputs["p"], sample.outputs["p"], equal_nan=True)
