"""Declaring parameters: records, defaults, generics, text annotations, what a class builds."""

import copy
import importlib
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from scena.params import Params, ParamsError, build, check, param, short_name, to_raw
from scena.params.annotations import type_argument
from scena.params.declare import FlagValue, complete_repr
from tests.params import text_annotations
from tests.params.trees import CNN, MLP, BackendParams, ModelParams, TrainerParams


class Plain(Params):
    a: int = 1
    b: list[int] = param([1, 2])
    c: str
    kind: ClassVar[str] = "plain"
    _private: int = 3


def test_a_params_class_is_a_keyword_record() -> None:
    one = Plain(c="x")
    assert (one.a, one.b, one.c) == (1, [1, 2], "x")
    assert list(Plain.__params__) == ["a", "b", "c"]
    assert repr(one) == "Plain(c='x')" and repr(Plain(a=2, c="x")) == "Plain(a=2, c='x')"
    assert complete_repr(one) == "Plain(a=1, b=[1, 2], c='x')" and repr(one) == "Plain(c='x')"
    assert "<td>c</td><td>&#x27;&lt;b&gt;&#x27;</td>" in Plain(c="<b>")._repr_html_()
    assert one == Plain(c="x") != Plain(c="y")
    assert copy.deepcopy(one) == one == pickle.loads(pickle.dumps(one))


def test_each_instance_has_defaults_of_its_own() -> None:
    one, two = ModelParams(), ModelParams()
    assert isinstance(one.graph, CNN)
    assert isinstance(two.graph, CNN)
    one.graph.filters.append(3)
    assert two.graph.filters == [40, 20]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: Plain(d=1), "Plain has no parameter 'd'"),
        (lambda: Plain(bb=1), "Plain has no parameter 'bb' (did you mean b?)"),
        (lambda: setattr(Plain(c=""), "cc", 1), "Plain has no parameter 'cc' (did you mean c?)"),
    ],
)
def test_misspelt_names(act: Any, message: str) -> None:
    with pytest.raises((TypeError, AttributeError)) as caught:
        act()
    assert str(caught.value) == message


def test_replace_makes_a_changed_deep_copy() -> None:
    one = ModelParams()
    two = one.replace(n_classes=3)
    assert (one.n_classes, two.n_classes) == (10, 3)
    assert two.graph == one.graph
    assert two.graph is not one.graph


class Net(Params):  # the classes of trees.py stay without subclasses here, or other tests would see them as choices
    filters: list[int] = param([40, 20], help="filters of each convolution")
    dense: int = 100


def test_a_subclass_changes_a_default_without_repeating_the_type() -> None:
    class Small(Net):
        filters = [1]
        dense: int = param(5, help="few")

    assert Small().filters == [1]
    assert Small.__params__["filters"].help == "filters of each convolution"
    assert Small.hints()["filters"] == list[int]
    assert Small().dense == 5
    assert Net().dense == 100


def test_of_two_bases_the_nearer_declaration_counts() -> None:
    class Base(Params):
        x: int = 1

    class Changed(Base):
        x = 2

    class Other(Base):
        y: int = 1

    class Both(Other, Changed):
        pass

    assert Both().x == 2


def test_text_annotations_are_understood() -> None:
    tree = text_annotations.Outer()
    assert isinstance(tree.inner, text_annotations.Inner)
    assert text_annotations.Outer.hints()["later"] == list[text_annotations.Later]
    assert text_annotations.Outer.__params__["number"].required
    assert not text_annotations.Outer.__params__["inner"].required
    assert "constant" not in text_annotations.Outer.__params__
    assert build({"number": "3", "later": [{"x": "2"}]}, text_annotations.Outer).later[0].x == 2


def test_text_annotations_inside_a_function() -> None:
    class Local(Params):
        x: int = 1

    class User(Params):
        local: "Local"
        locals: "list[Local]" = param([])

    assert User().local == Local()
    assert build({"locals": [{"x": 5}]}, User).locals == [Local(x=5)]


def test_a_class_may_hold_one_that_is_defined_below_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "class Holder(Params):\n    part: 'Part'\n\nclass Part(Params):\n    x: int = 1\n"
    (tmp_path / "defined_below.py").write_text(f"from scena.params import Params\n\n{text}")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("defined_below")
    assert module.Holder().part == module.Part()
    assert check(module.Holder()).part.x == 1


def test_class_variables_are_no_parameters() -> None:
    class Counted(Params):
        size: int = 1
        total: ClassVar[int] = 3
        text: "ClassVar[int]" = 4

    assert list(Counted.__params__) == ["size"]
    assert (Counted.total, Counted.text) == (3, 4)


def test_a_name_that_cannot_be_resolved_is_explained() -> None:
    class Wrong(Params):
        x: "Nowhere" = param(None)  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(ParamsError, match=r"Wrong\.x: the type 'Nowhere' cannot be resolved: .* Import the names"):
        Wrong.hints()


TData = TypeVar("TData", bound=Params)
TModel = TypeVar("TModel", bound=Net)


class DataA(Params):
    a: int = 1


class Pair(Params, Generic[TData, TModel]):
    data: TData
    model: TModel


class Swapped(Pair[TModel, TData], Generic[TData, TModel]):  # type: ignore[type-var]
    pass


class MyModel(Net):
    extra: int = 7


class MyPair(Pair[DataA, MyModel]):
    pass


class Holder(Params):
    pair: Pair[DataA, MyModel]
    pairs: list[Pair[DataA, MyModel]] = param([])


def test_type_arguments_are_known() -> None:
    assert MyPair.hints() == {"data": DataA, "model": MyModel}
    assert isinstance(MyPair().model, MyModel)
    assert type_argument(MyPair, TData) is DataA


def test_arguments_are_followed_through_bases_that_swap_them() -> None:
    class Turned(Swapped[MyModel, DataA]):  # type: ignore[type-var]
        pass

    assert Turned.hints() == {"data": DataA, "model": MyModel}


def test_arguments_are_known_whatever_other_bases_come_first() -> None:
    class Mixin(Params):
        y: int = 1

    class Mixed(Mixin, Pair[DataA, MyModel]):
        pass

    assert Mixed.hints() == {"data": DataA, "model": MyModel, "y": int}
    assert isinstance(Mixed().model, MyModel)


def test_a_field_may_be_a_generic_class_with_arguments() -> None:
    holder = Holder()
    assert isinstance(holder.pair.data, DataA)
    assert isinstance(holder.pair.model, MyModel)
    assert build(to_raw(holder), Holder) == holder
    changed = build({"pair": {"model": {"extra": "8"}}, "pairs": [{"data": {"a": 3}}]}, Holder)
    assert changed.pair.model.extra == 8
    assert changed.pairs[0].data == DataA(a=3)


def test_a_class_made_for_some_arguments_does_not_stand_for_others() -> None:
    from scena.params.annotations import concrete

    class OtherModel(Net):
        other: int = 1

    assert isinstance(concrete(Pair[DataA, OtherModel])().model, OtherModel)
    assert build(to_raw(Holder()), Holder) == Holder()


def test_without_arguments_the_bound_counts() -> None:
    assert Pair.hints()["model"] is Net


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"x": param(1)}, "Broken.x = param(…) needs a type: `x: int = param(…)`."),
        (
            {"__annotations__": {"replace": int}},
            "Broken.replace: every Params class has a method replace(); choose another name for the parameter.",
        ),
    ],
)
def test_wrong_declarations(body: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        type("Broken", (Params,), body)
    assert str(caught.value) == message


def test_a_method_cannot_hide_a_parameter() -> None:
    with pytest.raises(TypeError, match=r"Hiding\.dense would hide the parameter 'dense' of Net; rename it\."):

        class Hiding(Net):
            def dense(self) -> int:  # type: ignore[override]
                return 1


def test_shorthand_must_be_a_parameter() -> None:
    with pytest.raises(TypeError, match=r"shorthand='z' is not one of its parameters: a"):
        type("Short", (DataA,), {}, shorthand="z")


class Counter(Params, builds="collections:OrderedDict"):
    pass


class Nothing(Params):
    pass


class Gone(Params, builds="collections:OrderedDct"):
    pass


def test_what_a_class_builds_is_imported_when_it_is_needed() -> None:
    assert Counter.implementation() is OrderedDict
    with pytest.raises(ParamsError, match="Nothing does not say what it builds"):
        Nothing().create()
    with pytest.raises(ParamsError, match=r"has no 'OrderedDct' \(did you mean OrderedDict"):
        Gone().create()
    with pytest.raises(TypeError, match="must name a module and a class"):
        type("Wrong", (Params,), {}, builds="collections")


def test_builds_is_relative_to_the_module() -> None:
    assert CNN.__builds__ == "tests.params.graphs:ConvNet"
    assert type("Own", (Params,), {"__module__": __name__}, builds=":Plain").__builds__ == f"{__name__}:Plain"
    assert type("Up", (Params,), {"__module__": __name__}, builds="..data.x:Y").__builds__ == "tests.data.x:Y"
    with pytest.raises(TypeError, match="goes beyond the top-level package"):
        type("Far", (Params,), {"__module__": __name__}, builds="....x:Y")


class Derived(Params):
    model: ModelParams
    total: int | None = None
    factor: int = 2

    def __post_init__(self) -> None:
        if self.total is None:
            self.total = self.factor * 10
        self.model.n_classes = self.total


def test_what_post_init_derives_is_derived_anew() -> None:
    default = Derived()
    assert (default.total, default.model.n_classes) == (20, 20)
    assert to_raw(default)["total"] is None
    assert to_raw(default)["model"]["n_classes"] == 10
    assert build({**to_raw(default), "factor": 3}, Derived).model.n_classes == 30
    assert default.replace(factor=4).total == 40
    assert build(to_raw(copy.deepcopy(default)), Derived) == default


def test_what_a_user_assigns_later_is_given() -> None:
    default = Derived()
    default.total = 20
    assert to_raw(default)["total"] == 20


def test_post_init_waits_for_required_values() -> None:
    class Strict(Params):
        path: str = param(required=True)
        size: int = 0

        def __post_init__(self) -> None:
            self.size = len(self.path)

    assert Strict().size == 0
    assert Strict(path="abc").size == 3


def test_classes_are_listed_once_in_their_order() -> None:
    from scena.params import subclasses

    assert subclasses(BackendParams)[:3] == [BackendParams, CNN, MLP]
    assert (short_name(TrainerParams), short_name(Params), short_name(CNN)) == ("Trainer", "Params", "CNN")


def test_a_class_is_chosen_by_its_name_without_params() -> None:
    class FrogParams(Params):
        pass

    class Toad(Params):
        pass

    class Newt(Params, name="newt-2"):
        pass

    assert [short_name(cls) for cls in (FrogParams, Toad, Newt)] == ["Frog", "Toad", "newt-2"]


def test_a_declaration_may_be_shared_and_copied() -> None:
    shared = param(ge=1, help="how many")
    copied = copy.deepcopy(shared)

    class One(Params):
        size: int = shared

    class Two(Params):
        count: int = shared
        other: int = copied

    for cls, name in ((One, "size"), (Two, "count"), (Two, "other")):
        field = cls.__params__[name]
        assert (field.name, field.owner, field.help, field.required) == (name, cls, "how many", True)


def test_what_one_class_makes_of_a_shared_declaration_is_its_own() -> None:
    shared = param(help="shared")

    class Net(Params):
        size: int = param(1)

    class One(Params):
        count: int = shared

    class Two(Params):
        net: Net = shared

    assert One.__params__["count"].required and not Two.__params__["net"].required
    assert Two().net == Net()


def test_one_text_is_one_alias() -> None:
    from scena.params import parse

    class Run(Params):
        epochs: int = param(1, aliases="n_epochs", known_as="max_rounds")

    assert parse(Run(), ["--n_epochs", "3"]).params.epochs == 3
    for words, hint in (("--max_rounds", "; did you mean --epochs?"), ("--rounds", ""), ("--n", "")):
        with pytest.raises(ParamsError) as caught:
            parse(Run(), [words, "3"])
        assert str(caught.value) == f"{words} does not exist{hint}"


@pytest.mark.parametrize(
    ("bound", "allowed", "refused", "message"),
    [
        ("ge", 3, 2, "must be >= 3, received 2"),
        ("gt", 4, 3, "must be > 3, received 3"),
        ("le", 3, 4, "must be <= 3, received 4"),
        ("lt", 2, 3, "must be < 3, received 3"),
    ],
)
def test_bounds(bound: str, allowed: int, refused: int, message: str) -> None:
    class Bounded(Params):
        x: int = param(allowed, **{bound: 3})  # type: ignore[call-overload]

    assert check(Bounded()).x == allowed
    with pytest.raises(ParamsError) as caught:
        build({"x": refused}, Bounded)
    assert str(caught.value) == f"x {message}"


class Beat(FlagValue):
    """A flag of one word: `3x`."""

    __slots__ = ("times",)

    def __init__(self, times: int) -> None:
        self.times = times

    @classmethod
    def from_param(cls, raw: Any) -> "Beat":
        return cls(int(str(raw).removesuffix("x")))

    def to_param(self) -> str:
        return f"{self.times}x"


class Pulse(Beat):
    pass


def test_flag_values_are_equal_if_their_words_are() -> None:
    class Heart(Params):
        beat: Beat = param(Beat(3))

    assert Beat(3) == Beat(3) != Beat(4)
    assert Beat(3) != Pulse(3) and Beat(3) != "3x"
    assert {Beat(3), Beat(3), Beat(4)} == {Beat(4), Beat(3)}
    assert build({"beat": "3x"}, Heart) == Heart() != Heart(beat=Beat(4))
    assert (repr(Heart()), repr(Heart(beat=Beat(4)))) == ("Heart()", "Heart(beat=Beat('4x'))")
