"""Choices: of plain values, of classes, of what plugins add."""

from pathlib import Path

import pytest

from scena import plugins
from scena.params import Params, ParamsError, build, param, to_raw
from tests.params.trees import (
    CNN,
    MLP,
    Augment,
    Crop,
    Processor,
)


def test_choices_of_plain_values() -> None:
    class Chosen(Params):
        one: str = param("a", choices=["a", "b"])
        several: list[int] = param([1], choices=[1, 2])

    assert build({"several": ["2", 1]}, Chosen).several == [2, 1]
    with pytest.raises(ParamsError) as caught:
        build({"one": "c", "several": [1, 3]}, Chosen)
    assert str(caught.value) == "one: expected one of a, b, received 'c'\nseveral: expected one of 1, 2, received 3"


def test_choices_of_classes() -> None:
    class OnlyCNN(Params):
        graph: CNN | MLP = param(CNN(), choices=[CNN])

    with pytest.raises(ParamsError, match=r"unknown CNN or MLP 'MLP'; choose from: CNN"):
        build({"graph": {"class": "MLP"}}, OnlyCNN)


def test_a_union_of_classes() -> None:
    class Either(Params):
        graph: CNN | MLP = param(MLP())

    assert build({"graph": {"class": "CNN"}}, Either).graph == CNN()
    assert build({}, Either).graph == MLP()


def test_a_tuple_of_any_length_holds_params_objects() -> None:
    class Steps(Params):
        steps: tuple[Processor, ...] = param((Augment(), Crop()))

    assert build(to_raw(Steps()), Steps) == Steps()
    assert build({"steps": [{"class": "Crop"}]}, Steps).steps == (Crop(),)


def test_a_base_without_classes_to_choose_says_so() -> None:
    class Lonely(Params, abstract=True):
        pass

    class Holder(Params):
        x: Lonely | None = param(None)

    with pytest.raises(ParamsError) as caught:
        build({"x": {"class": "Any"}}, Holder)
    assert str(caught.value) == "x: there is no Lonely to choose; received 'Any'. Import the module that defines it."


def test_classes_of_installed_plugins_are_listed_where_they_may_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stage(Params, abstract=True):
        pass

    class Filter(Stage, abstract=True):
        pass

    class Keep(Filter):
        pass

    class Pipeline(Params):
        any: Stage = param(Keep())
        own: Stage = param(Keep(), choices=[Keep])

    (tmp_path / "blur-0.1.dist-info").mkdir()
    (tmp_path / "blur-0.1.dist-info" / "entry_points.txt").write_text("[scena.plugins]\nFilter.Blur = blur.steps\n")
    monkeypatch.syspath_prepend(tmp_path)
    plugins.installed.cache_clear()
    try:
        with pytest.raises(ParamsError) as caught:
            build({"any": {"class": "Shift"}, "own": {"class": "Shift"}}, Pipeline)
    finally:
        plugins.installed.cache_clear()
    assert str(caught.value) == (
        "any: unknown Stage 'Shift'; choose from: Keep, Blur\nown: unknown Stage 'Shift'; choose from: Keep"
    )
