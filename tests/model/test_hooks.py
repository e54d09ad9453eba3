"""Hooks can be overridden under their public name or under tfaip's, and the nearest class counts, whichever name it uses."""

from typing import Any

import pytest

from scena import (
    ArraySpec,
    DataBase,
    DataBaseParams,
    DataError,
    GraphBase,
    ModelBase,
    ModelBaseParams,
    ModelError,
    Sample,
)
from scena.overriding import spelled


class Public(ModelBase[ModelBaseParams]):
    best = ("max", "acc")

    def loss(self, inputs: Any, targets: Any, outputs: Any) -> Any:
        return {"loss": "public"}


class OldNameBelow(Public):
    def _loss(self, inputs: Any, targets: Any, outputs: Any) -> Any:
        return {"loss": "old below", **super().loss(inputs, targets, outputs)}

    def _best_logging_settings(self) -> tuple[str, str]:
        return "min", "loss"


class PublicBelow(OldNameBelow):
    best = ("max", "f1")

    def loss(self, inputs: Any, targets: Any, outputs: Any) -> Any:
        return {"own": "public below", **super()._loss(inputs, targets, outputs)}


@pytest.mark.parametrize("name", ["loss", "_loss"])
def test_the_nearest_class_counts_under_both_names(name: str) -> None:
    params = ModelBaseParams()
    assert getattr(Public(params), name)(0, 0, 0) == {"loss": "public"}
    assert getattr(OldNameBelow(params), name)(0, 0, 0) == {"loss": "public"}
    assert getattr(PublicBelow(params), name)(0, 0, 0) == {"own": "public below", "loss": "public"}


def test_best_is_an_attribute_or_a_method() -> None:
    params = ModelBaseParams()
    assert Public(params)._best_logging_settings() == ("max", "acc")
    assert OldNameBelow(params)._best_logging_settings() == ("min", "loss")
    assert PublicBelow(params)._best_logging_settings() == ("max", "f1")


def test_both_names_in_one_class_are_refused() -> None:
    with pytest.raises(TypeError, match="Both defines loss and _loss, which are two names of one method. Keep loss."):

        class Both(ModelBase[ModelBaseParams]):
            def loss(self, inputs: Any, targets: Any, outputs: Any) -> Any: ...

            def _loss(self, inputs: Any, targets: Any, outputs: Any) -> Any: ...

    with pytest.raises(TypeError, match="Twice defines best and _best_logging_settings, which say the same."):

        class Twice(ModelBase[ModelBaseParams]):
            best = ("max", "acc")

            def _best_logging_settings(self) -> tuple[str, str]: ...


class Graph(GraphBase[ModelBaseParams]):
    def __init__(self, params: ModelBaseParams, width: int = 1, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        self.width = width


def test_a_graph_is_named_or_created() -> None:
    class Named(ModelBase[ModelBaseParams]):
        graph = Graph

    class Created(Named):
        def create_graph(self) -> Graph:
            return Graph(self.params, width=7)

    class NamedAgain(Created):
        graph = Graph

    params = ModelBaseParams()
    assert Named(params).create_root_graph(width=3).graph.width == 3
    assert Created(params).create_root_graph().graph.width == 7
    assert NamedAgain(params).create_root_graph().graph.width == 1
    with pytest.raises(ModelError, match="Public must name its network \\(graph = MyGraph\\)"):
        Public(params).create_root_graph()


def test_specs_and_descriptions_of_data() -> None:
    class Data(DataBase[DataBaseParams]):
        def input_specs(self) -> dict[str, ArraySpec]:
            return {"x": ArraySpec((2,), "float32")}

        def describe(self, sample: Sample) -> str:
            return f"sample {sample.meta}"

    class OldData(Data):
        def _input_layer_specs(self) -> dict[str, ArraySpec]:
            return {**super().input_specs(), "y": ArraySpec((), "int32")}

    assert list(Data(DataBaseParams()).input_layer_specs()) == ["x"]
    assert list(OldData(DataBaseParams()).input_layer_specs()) == ["x", "y"]
    printed: list[str] = []
    ModelBase(ModelBaseParams())._print_prediction(Sample(meta=3), Data(DataBaseParams()), printed.append)
    assert printed == ["sample 3"]


def test_specs_are_attributes_or_methods_and_the_nearest_counts() -> None:
    class Constant(DataBase[DataBaseParams]):
        inputs = {"x": ArraySpec((2,), "float32")}

    class Computed(Constant):
        def _input_layer_specs(self) -> dict[str, ArraySpec]:
            return {"y": ArraySpec((3,), "float32")}

    class ConstantAgain(Computed):
        inputs = {"z": ArraySpec((4,), "float32")}

    names = [list(cls(DataBaseParams()).input_layer_specs()) for cls in (Constant, Computed, ConstantAgain)]
    assert names == [["x"], ["y"], ["z"]]
    with pytest.raises(
        TypeError, match="Twice defines inputs and _input_layer_specs, which say the same. Keep inputs."
    ):

        class Twice(DataBase[DataBaseParams]):
            inputs = {"x": ArraySpec((2,), "float32")}

            def _input_layer_specs(self) -> dict[str, ArraySpec]: ...

    with pytest.raises(DataError, match="DataBase must name its inputs, for example inputs = "):
        DataBase(DataBaseParams()).input_layer_specs()


MISTAKES: dict[str, tuple[type, dict[str, Any], str]] = {
    "a hook of the data": (
        ModelBase,
        {"describe": lambda self, sample: ""},
        "Mine.describe is never called: describe belongs to the data class (DataBase). Move it there.",
    ),
    "a hook of the model": (
        DataBase,
        {"metrics": lambda self, inputs, targets, outputs: {}},
        "Mine.metrics is never called: metrics belongs to the model (ModelBase). Move it there.",
    ),
    "another name for best": (
        ModelBase,
        {"bset": ("max", "acc")},
        "Mine.bset is never read; did you mean best?",
    ),
    "another name for targets": (
        DataBase,
        {"target": {"label": ArraySpec((), "int32")}},
        "Mine.target is never read; did you mean targets?",
    ),
    "specs in a list": (
        DataBase,
        {"inputs": [ArraySpec((), "int32")]},
        "Mine.inputs must be a dict of ArraySpec by name. Received: list.",
    ),
    "best without a direction": (
        ModelBase,
        {"best": "acc"},
        'Mine.best must be ("min" or "max", NAME), for example ("max", "acc"). Received: \'acc\'.',
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_misplaced_and_misspelt_declarations_are_refused(mistake: str) -> None:
    base, body, text = MISTAKES[mistake]
    with pytest.raises(TypeError) as failure:
        type("Mine", (base,), body)
    assert str(failure.value) == text


def test_messages_spell_a_hook_as_its_class_does() -> None:
    assert spelled(Public, "loss") == "Public.loss"
    assert spelled(OldNameBelow, "loss") == "OldNameBelow._loss"
    assert spelled(PublicBelow, "loss") == "PublicBelow.loss"
    assert spelled(Public, "metrics") == "Public.metrics"
