"""Merging raw trees: what stays, what is replaced."""

from typing import Any

import pytest

from scena.params import Params, merge, param, parse, to_raw
from tests.params.trees import (
    CNN,
    Augment,
    HeadParams,
    ModelParams,
    Root,
    Wide,
)

MERGED = [
    ({"graph": "CNN"}, {"class": "CNN", "filters": [1], "dense": 100}),
    ({"graph": {"class": "CNN", "dense": 5}}, {"class": "CNN", "filters": [1], "dense": 5}),
    ({"graph": {"dense": 5}}, {"class": "CNN", "filters": [1], "dense": 5}),
    ({"graph": {"filters": [2, 3]}}, {"class": "CNN", "filters": [2, 3], "dense": 100}),
    ({"graph": "MLP"}, {"class": "MLP", "nodes": [100], "activation": "relu"}),
    ({"graph": {"class": "MLP", "nodes": [1]}}, {"class": "MLP", "nodes": [1], "activation": "relu"}),
]


@pytest.mark.parametrize(("layer", "expected"), MERGED)
def test_merging_keeps_the_values_of_the_same_class(layer: Any, expected: Any) -> None:
    raw = to_raw(ModelParams(graph=CNN(filters=[1])))
    before = repr(raw)
    assert merge(raw, layer, ModelParams)["graph"] == expected
    assert repr(raw) == before


def test_merging_lists_and_dicts() -> None:
    raw = to_raw(Root())
    layer = {
        "data": {
            "weights": {"b": 2},
            "processors": ["Crop", {"class": "Augment", "p": 0.1}],
            "heads": {"x": {"units": 3}},
        },
        "learning_rate": 0.5,
        "early_stopping": {"patience": 2},
    }
    data = merge(raw, layer, Root)["trainer"]["scenario"]["data"]
    assert data["weights"] == {"a": 1.0, "b": 2}
    assert [item["class"] for item in data["processors"]] == ["Crop", "Augment"]
    assert data["processors"][1]["p"] == 0.1
    assert list(data["heads"]) == ["main", "x"]
    removed = merge(raw, {"data": {"weights": {"a": None}, "heads": {"main": None}}}, Root)["trainer"]["scenario"][
        "data"
    ]
    assert (removed["weights"], removed["heads"]) == ({}, {})
    item = merge(raw, {"data": {"processors": {"Augment": {"p": 1}}}}, Root)["trainer"]["scenario"]["data"][
        "processors"
    ]
    assert item[0] == {"class": "Augment", "p": 1}


@pytest.mark.parametrize("words", ["main side=Wide", "main=Head side=Wide"])
def test_an_entry_that_is_named_again_keeps_its_values(words: str) -> None:
    class Outputs(Params):
        heads: dict[str, HeadParams] = param({"main": HeadParams(units=4), "other": HeadParams()})

    assert parse(Outputs(), ["--heads", *words.split()]).params.heads == {"main": HeadParams(units=4), "side": Wide()}
    assert parse(Outputs(), ["--heads", "main=Wide"]).params.heads == {"main": Wide()}


def test_none_replaces_a_list_of_objects_where_it_may_stand() -> None:
    class Steps(Params):
        steps: list[Augment] | None = param([Augment()])

    assert parse(Steps(), ["--steps", "None"]).params.steps is None
    assert parse(Steps(), ["--steps", "Augment", "Augment"]).params.steps == [Augment(), Augment()]


@pytest.mark.parametrize(
    ("hint", "merged"),
    [
        (dict[str, int], {"a": 1, "b": 3}),
        (dict[str, int | None], {"b": 3, "c": None}),
        (dict[str, Any], {"b": 3, "c": None}),
        (Any, {"b": 3, "c": None}),
    ],
)
def test_dicts_that_may_hold_none_are_replaced(hint: Any, merged: dict[str, int | None]) -> None:
    """In any other dict, None removes an entry."""

    class Holder(Params):
        x: hint = param({"a": 1, "c": 2})

    assert merge(to_raw(Holder()), {"x": {"b": 3, "c": None}}, Holder)["x"] == merged
