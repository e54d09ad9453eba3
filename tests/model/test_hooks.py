"""Hooks can be overridden under their public name or under tfaip's, and the nearest class counts, whichever name it uses."""

from typing import Any

import pytest

from scena import ArraySpec, DataBase, DataBaseParams, GraphBase, ModelBase, ModelBaseParams, Sample


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
    with pytest.raises(NotImplementedError, match="Public must name its network \\(graph = MyGraph\\)"):
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
