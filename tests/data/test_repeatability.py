"""Samples that come out differently the second time are noticed, and named by who made them."""

import random
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scena.data import (
    ArraySpec,
    DataBase,
    DataBaseParams,
    DataGeneratorParams,
    DataPipelineParams,
    DataProcessorParams,
    MappingDataProcessor,
    PipelineMode,
    RandomAccessGenerator,
    Sample,
    SequentialProcessorPipelineParams,
)
from scena.data.repeatability import changing_part, same_samples
from scena.data.sources.params import ListFileGeneratorParams
from scena.data.stages.context import PipelineContext
from scena.params import param


class PointsParams(DataGeneratorParams, builds=":Points"):
    """Points."""

    seeded: bool = param(True, help="whether sample i is always the same")
    same: bool = param(False, help="whether the mode makes no difference")
    count: int = param(10, help="how many")


class Points(RandomAccessGenerator[PointsParams]):
    def __len__(self) -> int:
        return self.params.count

    def __getitem__(self, index: int) -> Sample:
        seed = [index, self.mode == PipelineMode.TRAINING and not self.params.same] if self.params.seeded else None
        return Sample({"x": np.random.default_rng(seed).normal(size=2), "missing": float("nan")})


class JitterParams(DataProcessorParams, builds=":Jitter"):
    """Random, as it should be."""


class Jitter(MappingDataProcessor[JitterParams]):
    def apply(self, sample: Sample, rng: np.random.Generator) -> Sample:
        return sample.new_inputs({**sample.inputs, "x": sample.inputs["x"] + rng.normal(size=2)})


class ChangeParams(DataProcessorParams, builds=":Change"):
    """Does what a test asks for."""


class Change(MappingDataProcessor[ChangeParams]):
    amount: Callable[[], float] = staticmethod(lambda: 0.0)

    def apply(self, sample: Sample) -> Sample:
        return sample.new_inputs({**sample.inputs, "x": sample.inputs["x"] + type(self).amount()})


class PointsData(DataBase[DataBaseParams]):
    def _input_layer_specs(self) -> dict[str, ArraySpec]:
        return {"x": ArraySpec((2,), "float32")}


def context(mode: PipelineMode = PipelineMode.TRAINING, **settings: Any) -> PipelineContext:
    processors = SequentialProcessorPipelineParams(processors=[JitterParams(), ChangeParams(), JitterParams()])
    data = PointsData(DataBaseParams(pre_proc=processors))
    return data.create_pipeline(mode, DataPipelineParams(num_processes=0), PointsParams(**settings), seed=1)._context


_numbers = count()


@pytest.mark.parametrize(
    "amount", [random.random, lambda: np.random.normal(), lambda: next(_numbers)], ids=["random", "np.random", "state"]
)
def test_a_processor_with_randomness_or_state_of_its_own_is_named(
    amount: Callable[[], float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Change, "amount", staticmethod(amount))
    part = changing_part(context())
    assert part is not None and part[0] == "Change" and part[1].startswith("sample ")


def test_a_processor_that_remembers_other_samples_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def centered(self: Change, sample: Sample) -> Sample:
        self.seen = [*getattr(self, "seen", []), sample.inputs["x"]]
        return sample.new_inputs({**sample.inputs, "x": sample.inputs["x"] - np.mean(self.seen, axis=0)})

    monkeypatch.setattr(Change, "apply", centered)
    part = changing_part(context())
    assert part is not None and part[0] == "Change"


def test_a_source_with_randomness_of_its_own_is_named() -> None:
    part = changing_part(context(seeded=False))
    assert part is not None and part[0] == "Points"


def test_random_numbers_of_the_pipeline_are_the_same_each_time() -> None:
    assert changing_part(context()) is None


def test_sources_that_are_the_same_in_training_and_validation_are_found() -> None:
    def sources(**settings: Any) -> tuple[PipelineContext, PipelineContext]:
        return context(**settings), context(PipelineMode.EVALUATION, **settings)

    assert same_samples(*sources(same=True))
    assert not same_samples(*sources())
    assert not same_samples(sources(same=True)[0], sources(same=True, count=9)[1])


def test_one_list_for_both_is_found(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n2\n3\n")
    (tmp_path / "b").write_text("4\n5\n6\n")

    def lines(name: str, mode: PipelineMode) -> PipelineContext:
        source = ListFileGeneratorParams(lists=[str(tmp_path / name)])
        return PointsData(DataBaseParams()).create_pipeline(mode, DataPipelineParams(), source)._context

    training = lines("a", PipelineMode.TRAINING)
    assert same_samples(training, lines("a", PipelineMode.EVALUATION))
    assert not same_samples(training, lines("b", PipelineMode.EVALUATION))
