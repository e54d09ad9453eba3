"""A graph that uses layers it does not keep is refused: they would be new at each call, and never trained."""

from typing import Any

import pytest
from keras import layers

from scena.errors import ModelError
from tests.toy.model import ToyGraph, ToyModel
from tests.toy.scenario import ToyScenario

OUTSIDE: dict[str, Any] = {}


class InlineGraph(ToyGraph):
    way = ""

    def build_graph(self, inputs: Any, training: bool | None = None) -> Any:
        x = inputs["x"]
        if self.way == "inline":
            x = layers.Dense(8)(x)
        elif self.way == "outside":
            x = OUTSIDE.setdefault("dense", layers.Dense(8))(x)
        else:
            x = layers.Flatten()(layers.ReLU()(x))  # no variables: nothing to lose
        return super().build_graph({"x": x}, training)


class InlineModel(ToyModel):
    def create_graph(self) -> ToyGraph:
        return InlineGraph(self.params)


class InlineScenario(ToyScenario):
    def create_model(self, data: Any) -> Any:
        return InlineModel(self.params.model)


@pytest.mark.parametrize("way", ["inline", "outside", "harmless"])
def test_layers_that_are_not_kept(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InlineGraph, "way", way)
    scenario = InlineScenario(InlineScenario.default_params())
    if way == "harmless":
        scenario.build()
        return
    with pytest.raises(
        ModelError, match=r"Dense '\w+': the graph uses a layer that it does not keep, so it would not be"
    ):
        scenario.build()
