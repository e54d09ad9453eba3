"""Raw trees: from params, merged, and built again; types and bounds of leaves."""

import datetime
import enum
import math
from pathlib import Path
from typing import Any, Literal, NewType, Self, TypeVar

import pytest

from scena.params import Params, ParamsError, build, check, default_raw, param, parse, to_raw
from scena.params.convert import Mismatch, convert
from scena.params.settable import Origins
from scena.params.tree import affects_results
from tests.params.trees import (
    CNN,
    MLP,
    Augment,
    DataParams,
    Every,
    ExponentialDecay,
    ModelParams,
    Root,
    SourceParams,
)


class Colour(enum.Enum):
    RED = 1
    GREEN = "green"
    VERT = "green"  # noqa: PIE796  # another name for it


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


UserId = NewType("UserId", int)
Number = TypeVar("Number", bound=int)
Anything = TypeVar("Anything")

CONVERTED = [
    (bool, True, True),
    (bool, "True", True),
    (bool, "off", False),
    (bool, "1", True),
    (bool, 0, False),
    (int, 3, 3),
    (int, "3", 3),
    (int, 3.0, 3),
    (int, "-3", -3),
    (int, 10**30, 10**30),
    (float, 1, 1.0),
    (float, "1e-4", 1e-4),
    (float, "inf", math.inf),
    (float, "-Infinity", -math.inf),
    (str, "3", "3"),
    (str, "", ""),
    (Path, "a/b", Path("a/b")),
    (Colour, 1, Colour.RED),
    (Colour, "1", Colour.RED),
    (Colour, "RED", Colour.RED),
    (Colour, "VERT", Colour.GREEN),
    (Level, 2, Level.HIGH),
    (Literal["a", 1, True], "a", "a"),
    (Literal["a", 1], "1", 1),
    (Literal[None, "x"], "x", "x"),
    (int | None, None, None),
    (int | None, "None", None),
    (int | None, "null", None),
    (str | None, "None", "None"),
    (int | str, "3", "3"),
    (int | float, "3", 3),
    (int | float | None, "null", None),
    (int | float | None, "None", None),
    (int | float, "3.5", 3.5),
    (bool | int, 1, 1),
    (bool | int, True, True),
    (float | None, 3, 3.0),
    (list[int], ["1", 2.0], [1, 2]),
    (list[list[float]], [[1], []], [[1.0], []]),
    (tuple[int, str], [1, "a"], (1, "a")),
    (tuple[int, ...], ["1", "2"], (1, 2)),
    (tuple[float, ...], ["1", 2, "inf"], (1.0, 2.0, math.inf)),
    (set[int], [1, 1], {1}),
    (frozenset[str], ["a"], frozenset({"a"})),
    (dict[str, int], {"a": "1"}, {"a": 1}),
    (dict[int, str], {"1": "a"}, {1: "a"}),
    (dict[str, list[int]], {"a": ["1"]}, {"a": [1]}),
    (list, [1, "a"], [1, "a"]),
    (dict, {"a": 1}, {"a": 1}),
    (Any, {"x": [1]}, {"x": [1]}),
    (UserId, "3", 3),
    (Number, "3", 3),
    (Anything, "3", "3"),
    (datetime.date, "2026-11-19", datetime.date(2026, 11, 19)),
    (Every, "3min", Every(3, "min")),
    (list[Path | None], ["a", None], [Path("a"), None]),
]


@pytest.mark.parametrize(("hint", "raw", "expected"), CONVERTED)
def test_a_raw_value_becomes_its_type(hint: Any, raw: Any, expected: Any) -> None:
    value = convert(raw, hint)
    assert value == expected
    assert type(value) is type(expected)


WRONG = [
    (bool, 2, "True or False"),
    (bool, "maybe", "True or False"),
    (int, True, "a whole number"),
    (int, 3.5, "a whole number"),
    (int, "3.5", "a whole number"),
    (int, math.nan, "a whole number"),
    (int, math.inf, "a whole number"),
    (int, [1], "a whole number"),
    (int, None, "a whole number"),
    (float, True, "a number"),
    (float, "x", "a number"),
    (float, 10**400, "a number"),
    (str, 3, "text (put it in quotes to make it a text)"),
    (str, True, "text (put it in quotes to make it a text)"),
    (str, None, "text"),
    (Path, 3, "a path"),
    (Path, "", "a path"),
    (Colour, "blue", "one of 1, green"),
    (Colour, True, "one of 1, green"),
    (Literal["a", 1], True, "one of a, 1"),
    (Literal["a", 1], "b", "one of a, 1"),
    (int | None, "x", "a whole number or None"),
    (int | float, "x", "a whole number or a number"),
    (list[int], "12", "a list of whole numbers"),
    (list[int], {"a": 1}, "a list of whole numbers"),
    (list[int], [1, "x"], "a whole number at position 2"),
    (list[Every], "3min", "a list of Every"),
    (tuple[int, str], [1], "2 values (a whole number, text)"),
    (dict[str, int], [1], "a mapping of names to whole numbers"),
    (dict[str, int], {"a": "x"}, "a whole number for 'a'"),
    (Every, 1.5, "a number of epochs, or a time such as 10min"),
]


@pytest.mark.parametrize(("hint", "raw", "expected"), WRONG)
def test_what_does_not_fit_is_refused(hint: Any, raw: Any, expected: str) -> None:
    with pytest.raises(Mismatch) as caught:
        convert(raw, hint)
    assert str(caught.value).startswith(f"expected {expected}, received ")


@pytest.mark.parametrize(("hint", "raw", "value"), [row for row in CONVERTED if row[0] is not UserId])
def test_a_value_survives_its_raw_form(hint: Any, raw: Any, value: Any) -> None:
    import json

    class Holder(Params):
        x: hint = param(None)  # type: ignore[valid-type]

    stored = to_raw(Holder(x=value))
    if value is not None:
        assert build(json.loads(json.dumps(stored, allow_nan=False)), Holder).x == value


def test_a_tree_survives_its_raw_form() -> None:
    root = Root()
    root.trainer.source.lists = [Path("x")]
    root.trainer.scenario.model.graph = MLP(nodes=[1])
    root.trainer.learning_rate = ExponentialDecay()
    assert build(to_raw(root), Root) == root


def test_missing_fields_get_their_defaults() -> None:
    assert build({}, ModelParams) == ModelParams()
    assert build({"graph": {"class": "MLP"}}, ModelParams).graph == MLP()
    assert default_raw(ModelParams) == to_raw(ModelParams())


BROKEN = [
    ({"graph": {"class": "X"}}, "graph: unknown BackendParams 'X'; choose from: CNN, MLP"),
    ({"graph": {"class": 3}}, "graph: unknown BackendParams 3; choose from: CNN, MLP"),
    ({"graph": {"class": "os:system"}}, "graph: unknown BackendParams 'os:system'; choose from: CNN, MLP"),
    ({"graph": 3}, "graph: expected BackendParams, received 3"),
    ({"graph": None}, "graph: expected BackendParams, received None"),
    ({"grph": 3}, "grph: ModelParams has no parameter 'grph' (did you mean graph?)"),
    ({"graph": {"class": "CNN", "nodes": []}}, "graph.nodes: CNN has no parameter 'nodes'"),
    ({"n_classes": 1}, "n_classes must be > 1, received 1"),
    ({"n_classes": None}, "n_classes: expected a whole number, received None"),
    ({"n_classes": 1.5, "graph": {"class": "CNN", "dense": "x"}},
     "n_classes: expected a whole number, received 1.5\ngraph.dense: expected a whole number, received 'x'"),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "message"), BROKEN)
def test_a_wrong_tree_says_where(raw: Any, message: str) -> None:
    with pytest.raises(ParamsError) as caught:
        build(raw, ModelParams)
    assert str(caught.value) == message


class Range(Params):
    low: int = 0
    high: int = 1

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError(f"low ({self.low}) must not be above high ({self.high})")


class Ranges(Params):
    first: Range
    more: list[Range] = param([])


class Outer(Params):
    first: Range = param(inline=True)


class Outermost(Params):
    outer: Outer


class Everything(Params):
    outermost: Outermost


def test_post_init_sees_final_values_and_its_errors_say_where() -> None:
    assert build({"first": {"low": 5, "high": 6}}, Ranges).first.low == 5
    with pytest.raises(ParamsError) as caught:
        build({"more": [{}, {"low": "2"}]}, Ranges)
    assert str(caught.value) == "more.1: low (2) must not be above high (1)"
    with pytest.raises(ParamsError) as caught:
        build({"outer": {"first": {"low": 2}}}, Outermost)
    assert str(caught.value) == "outer: low (2) must not be above high (1)"  # the name of an inline field is no flag
    with pytest.raises(ParamsError) as caught:
        build({"outermost": {"outer": {"first": {"low": 2}}}}, Everything)
    assert str(caught.value) == "outermost.outer: low (2) must not be above high (1)"


def test_an_unknown_name_in_a_stored_tree_is_reported_as_a_flag() -> None:
    raw = to_raw(Root())
    raw["trainer"]["source"]["lists"] = ["x"]
    raw["trainer"]["scenario"]["model"]["grph"] = 3
    with pytest.raises(ParamsError) as caught:
        build(raw, Root, where=Origins(raw, Root))
    assert str(caught.value) == "--model.grph: ModelParams has no parameter 'grph' (did you mean graph?)"


def test_params_made_in_python_can_be_checked() -> None:
    with pytest.raises(ParamsError, match="lists is required: list files to train on"):
        check(SourceParams())
    assert check(ModelParams(n_classes=3)) == ModelParams(n_classes=3)
    with pytest.raises(ParamsError, match="n_classes must be > 1, received 0"):
        check(ModelParams(n_classes=0))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_classes": "3"}, "n_classes: expected a whole number, received '3'"),
        ({"n_classes": True}, "n_classes: expected a whole number, received True"),
        ({"n_classes": 2.5}, "n_classes: expected a whole number, received 2.5"),
        ({"n_classes": None}, "n_classes: expected a whole number, received None"),
        ({"graph": MLP(nodes=[1, "2"])}, "graph.nodes: expected a list of whole numbers, received [1, '2']"),  # type: ignore[list-item]
        ({"graph": "CNN"}, "ModelParams.graph: expected BackendParams, received 'CNN'"),
        ({"graph": SourceParams(lists=["a"])}, "graph: unknown BackendParams 'Source'; choose from: CNN, MLP"),
        (
            {"n_classes": print},
            "ModelParams.n_classes: expected a whole number. A value of type builtin_function_or_method",
        ),
        ({"n_classes": b"3"}, "ModelParams.n_classes: expected a whole number. A value of type bytes cannot be stored"),
    ],
)
def test_wrong_types_from_python_are_named(changes: dict[str, Any], message: str) -> None:
    params = ModelParams()
    for name, value in changes.items():
        setattr(params, name, value)
    with pytest.raises(ParamsError) as caught:
        check(params)
    assert str(caught.value).startswith(message)


def test_a_number_from_python_is_no_switch() -> None:
    class Switch(Params):
        on: bool = param(False)

    with pytest.raises(ParamsError, match="on: expected True or False, received 1"):
        check(Switch(on=1))  # type: ignore[arg-type]
    assert check(Switch(on=True)).on is True


class Span:
    """A type of its own that is stored as a mapping."""

    def __init__(self, first: int, last: int) -> None:
        self.first, self.last = first, last

    @classmethod
    def from_param(cls, raw: Any) -> Self:
        return cls(raw["first"], raw["last"])

    def to_param(self) -> dict[str, int]:
        return {"first": self.first, "last": self.last}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Span) and self.to_param() == other.to_param()

    __hash__ = None  # type: ignore[assignment]


def test_a_type_of_its_own_may_be_stored_as_a_mapping() -> None:
    class Holder(Params):
        span: Span = param(Span(1, 2))

    assert to_raw(Holder())["span"] == {"first": 1, "last": 2}
    assert check(Holder(span=Span(3, 4))).span == Span(3, 4)
    assert build(to_raw(Holder(span=Span(3, 4))), Holder).span == Span(3, 4)


def test_checking_gives_values_their_declared_form_in_place() -> None:
    class Inner(Params):
        folder: Path = param(Path("a"))
        size: tuple[int, int] = param((1, 2))
        rate: float = param(1.0)
        anything: Any = param(None)

        def __post_init__(self) -> None:
            self.rate = self.rate or self.size[0] / 2

    class Outer(Params):
        inner: Inner = param()
        several: list[Inner] = param([])

    params = Outer(several=[Inner()])
    inner, item = params.inner, params.several[0]
    inner.folder, item.folder, inner.size, inner.rate, inner.anything = "b", "c", [8, 9], 0, (1, 2)  # type: ignore[assignment]
    assert check(params) is params
    assert params.inner is inner and params.several[0] is item
    assert (inner.folder, item.folder, inner.size, inner.anything) == (Path("b"), Path("c"), (8, 9), (1, 2))
    assert inner.rate == 4.0  # derived from the size of now
    inner.size = (2, 2)
    assert check(params).inner.rate == 1.0  # and anew


def test_infinity_and_not_a_number_are_numbers() -> None:
    class Limits(Params):
        low: float = param(float("-inf"))
        high: float = param(float("nan"))

    assert str(check(Limits())) == str(Limits())


def test_numbers_of_numpy_are_stored_as_plain_ones() -> None:
    numpy = pytest.importorskip("numpy")
    raw = to_raw(CNN(filters=numpy.array([1, 2]), dense=numpy.int64(3)))
    assert raw == {"class": "CNN", "filters": [1, 2], "dense": 3}
    assert type(raw["dense"]) is int


def test_what_stands_in_a_wrong_place_in_python_is_explained() -> None:
    with pytest.raises(ParamsError, match=r"DataParams\.processors: expected a list of Processor, received \['Crop'\]"):
        to_raw(DataParams(processors=["Crop"]))  # type: ignore[list-item]
    with pytest.raises(ParamsError, match=r"ModelParams\.graph: expected BackendParams, received 'CNN'"):
        to_raw(ModelParams(graph="CNN"))  # type: ignore[arg-type]


def test_results_depend_on_a_parameter_unless_it_or_something_around_it_says_no() -> None:
    class Part(Params):
        size: int = 1
        workers: int = param(1, affects_results=False)

    class Whole(Params):
        part: Part
        cache: Part = param(affects_results=False)

    paths = ["part.size", "part", "part.workers", "cache.size", "part.gone", "part.size.x"]
    assert [affects_results(Whole(), path) for path in paths] == [True, True, False, False, True, True]


def test_classes_of_one_name_are_told_apart_by_their_module() -> None:
    class Base(Params, abstract=True):
        pass

    one = type("Same", (Base,), {"__module__": "first"})
    two = type("Same", (Base,), {"__module__": "second"})

    class Holder(Params):
        x: Base = param(one())

    assert to_raw(Holder())["x"] == {"class": "first:Same"}
    assert type(build({"x": {"class": "second:Same"}}, Holder).x) is two
    with pytest.raises(ParamsError) as caught:
        build({"x": {"class": "Same"}}, Holder)
    assert str(caught.value) == "x: 'Same' is ambiguous: choose first:Same or second:Same"


def test_a_class_defined_again_replaces_the_former_one() -> None:
    class Base(Params, abstract=True):
        pass

    for _ in range(2):  # as a notebook cell that is run twice
        latest = type("Again", (Base,), {"__module__": "notebook"})

    class Holder(Params):
        x: Base = param(latest())

    assert type(build({"x": {"class": "Again"}}, Holder).x) is latest


def test_unsupported_types_are_refused() -> None:
    class Deep(Params):
        x: list[list[Augment]] = param([])

    class Fixed(Params):
        x: tuple[Augment] = param((Augment(),))

    class Mixed(Params):
        x: Augment | int = param(1)

    class Function(Params):
        x: complex = param(1j)

    for cls in (Deep, Fixed, Mixed):
        with pytest.raises(ParamsError, match="cannot be a parameter: params objects can stand alone"):
            build({}, cls)
    with pytest.raises(ParamsError, match="from_param"):
        to_raw(Function())


def test_two_flags_of_one_name_are_a_mistake_of_the_declaration() -> None:
    class One(Params):
        size: int = param(1, flat=True)

    class Two(Params):
        size: int = param(1, flat=True)

    class Both(Params):
        one: One
        two: Two

    with pytest.raises(ParamsError) as caught:
        parse(Both(), [])
    assert str(caught.value) == (
        '--size is declared twice: by One.size and by Two.size; rename one of them, or give it another name with param(flat="…").'
    )
