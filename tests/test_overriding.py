"""Methods with almost the right name, and an `__init__` that forgets the one above it, are refused where they are written."""

from typing import Any

import pytest

from scena import (
    DataBase,
    DataBaseParams,
    DataGeneratorParams,
    Evaluator,
    EvaluatorParams,
    GraphBase,
    ModelBase,
    ModelBaseParams,
    PipelineMode,
    RandomAccessGenerator,
    Sample,
    ScenarioBase,
)
from scena.errors import ModelError

MISSPELT = [
    (ModelBase, "_sample_weight", "_sample_weights"),
    (ModelBase, "_metrics", "metrics"),
    (ModelBase, "_best_logging_setting", "_best_logging_settings"),
    (ModelBase, "metric", "metrics"),
    (DataBase, "input_spec", "input_specs"),
    (DataBase, "_input_layer_spec", "_input_layer_specs"),
    (DataBase, "_padding_value", "_padding_values"),
    (GraphBase, "build_graphs", "build_graph"),
    (Evaluator, "update_sate", "update_state"),
    (ScenarioBase, "graph_kwarg", "graph_kwargs"),
]


@pytest.mark.parametrize(("base", "name", "meant"), MISSPELT, ids=lambda value: str(getattr(value, "__name__", value)))
def test_a_method_with_almost_the_right_name_is_refused(base: type, name: str, meant: str) -> None:
    def method(self: Any) -> None:
        """Would be called by nobody."""

    with pytest.raises(TypeError) as failure:
        type("Mine", (base,), {name: method})
    assert str(failure.value) == (
        f"Mine.{name} is never called; did you mean {meant}? If it is a method of your own, rename it."
    )
    type("Mine", (base,), {name: method, meant: method})  # then it is one of its own
    type("Mine", (type("Parent", (base,), {meant: method}),), {name: method})


class ForgetfulSource(RandomAccessGenerator[DataGeneratorParams]):
    def __init__(self, params: DataGeneratorParams, mode: PipelineMode) -> None:
        self.rows = [1, 2]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Sample:
        return Sample({"x": self.params})


def test_an_init_that_does_not_call_the_one_above_it_is_named() -> None:
    source = ForgetfulSource(DataGeneratorParams(), PipelineMode.TRAINING)
    with pytest.raises(
        AttributeError, match=r"^ForgetfulSource has no params: its __init__ must call super\(\).__init__\(…\) first"
    ):
        source[0]
    with pytest.raises(AttributeError, match="^'ForgetfulSource' object has no attribute 'row'$"):
        getattr(source, "row")  # noqa: B009


class ForgetfulGraph(GraphBase[ModelBaseParams]):
    def __init__(self, params: ModelBaseParams) -> None:
        self.number = 1

    def build_graph(self, inputs: Any, training: bool | None = None) -> Any:
        return inputs


class Model(ModelBase[ModelBaseParams]):
    graph: Any = None

    def create_graph(self) -> Any:
        return self.graph and self.graph(self.params)


def test_a_graph_that_is_none_is_named() -> None:
    model = Model(ModelBaseParams())
    with pytest.raises(ModelError, match=r"^Model.create_graph must return a GraphBase. Received: NoneType.$"):
        model.create_root_graph()
    model.graph = ForgetfulGraph
    with pytest.raises(
        ModelError, match=r"^ForgetfulGraph.__init__ must call super\(\).__init__\(params, \*\*kwargs\) first.$"
    ):
        model.create_root_graph()


def test_parts_of_scena_are_not_concerned() -> None:
    assert DataBase(DataBaseParams()).params and Evaluator(EvaluatorParams()).params
