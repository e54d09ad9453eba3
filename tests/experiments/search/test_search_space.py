"""What a search varies: how it is written, what exists under which class, grids, and what is wrong."""

import pytest

from scena.errors import ExperimentError
from scena.experiments.search.space import Axis, SearchSpace, Value, parse_axis
from tests.params.trees import Root

FLAGS = ["--data.lists", "x"]


def space(*texts: str) -> SearchSpace:
    made = SearchSpace([parse_axis(text) for text in texts], Root(), FLAGS)
    made.check()
    return made


def test_values_are_lists_or_ranges() -> None:
    assert parse_axis("a.b=1,2.5,x") == Axis("a.b", "1,2.5,x", ("1", "2.5", "x"))
    assert parse_axis("a.b=1,2.5,x").values == (1, 2.5, "x")
    assert parse_axis("f=[40,20],[80]").choices == ("[40,20]", "[80]")
    assert parse_axis("lr=log:1e-5:1e-2") == Axis("lr", "log:1e-5:1e-2", (), 1e-5, 1e-2, None, True)
    assert parse_axis("--n=-2:8:2") == Axis("n", "-2:8:2", (), -2, 8, 2)
    assert parse_axis("n=-2:8").word(-1) == "--n=-1"


def test_parameters_take_part_only_where_they_exist() -> None:
    conditional = space(
        "model.graph.filters=[1],[2,3]",
        "model.graph=CNN,MLP",
        "model.graph.nodes=[7],[8]",
        "learning_rate.lr=log:1e-4:1",
    )

    def draw(graph: str) -> dict[str, Value]:
        asked: list[tuple[str, bool]] = []

        def suggest(axis: Axis, whole: bool) -> Value:
            asked.append((axis.name, whole))
            return graph if axis.name == "model.graph" else axis.values[-1] if axis.choices else 0.5

        chosen = conditional.draw(suggest)
        assert asked[0] == ("model.graph", False), "the class is chosen first"
        return chosen

    assert draw("CNN") == {"model.graph": "CNN", "model.graph.filters": "[2,3]", "learning_rate.lr": 0.5}
    assert draw("MLP") == {"model.graph": "MLP", "model.graph.nodes": "[8]", "learning_rate.lr": 0.5}
    assert conditional.words(draw("MLP")) == ["--model.graph=MLP", "--model.graph.nodes=[8]", "--learning_rate.lr=0.5"]


def test_whole_numbers_are_drawn_for_whole_parameters() -> None:
    made = space("trainer.epochs=1:5", "learning_rate=0.5:1")
    kinds = {}

    def suggest(axis: Axis, whole: bool) -> Value:
        kinds[axis.name] = whole
        return int(axis.low) if whole else axis.low

    made.draw(suggest)
    assert kinds == {"trainer.epochs": True, "learning_rate": False}


def test_a_grid_has_each_combination_once() -> None:
    combinations = list(space("model.graph=CNN,MLP", "model.graph.nodes=[1],[2]", "trainer.epochs=1:3").combinations())
    assert len(combinations) == 3 * (1 + 2)
    assert {tuple(sorted(map(str, chosen.values()))) for chosen in combinations} == {
        *((epoch, "CNN") for epoch in "123"),
        *((epoch, "MLP", nodes) for epoch in "123" for nodes in ("[1]", "[2]")),
    }
    assert [c["learning_rate"] for c in space("learning_rate=0.25:1:0.25").combinations()] == [0.25, 0.5, 0.75, 1]
    with pytest.raises(
        ExperimentError, match="--sampler grid needs a list or steps: learning_rate=log:1e-3:1 has no end"
    ):
        list(space("learning_rate=log:1e-3:1").combinations())


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["model.grahp=CNN,MLP"], "--search: model.grahp does not exist; did you mean model.graph?"),
        (
            ["model.graph=CNN", "model.graph.nodes=[1]"],
            "--search: model.graph.nodes does not exist for model.graph CNN; MLP has it",
        ),
        (["model.graph=CNN,MPL"], "unknown BackendParams 'MPL' (did you mean MLP?)"),
        (["trainer.epochs=1,many"], "--trainer.epochs: expected a whole number, received 'many'"),
        (["trainer.epochs=0.5:3"], "trainer.epochs is a whole number"),
        (["learning_rate=3:1"], "expected LOW:HIGH, LOW:HIGH:STEP or log:LOW:HIGH with LOW < HIGH"),
        (["learning_rate=log:0:1"], "with LOW < HIGH and LOW > 0"),
        (["learning_rate=log:a:b"], "expected log:LOW:HIGH, such as log:1e-5:1e-2"),
        (["learning_rate"], "expected NAME=VALUES, such as learning_rate.lr=log:1e-5:1e-2"),
        (["trainer.epochs=1,1"], "each value must appear once"),
        (["trainer.epochs=1,2", "trainer.epochs=3,4"], "--search: trainer.epochs appears twice"),
    ],
)
def test_wrong_spaces(texts: list[str], message: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        space(*texts)
    assert message in str(caught.value)
