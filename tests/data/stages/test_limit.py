"""A limit takes samples that stand for the whole source; predictions answer the first ones."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scena.data import PipelineMode
from scena.data.params import DataGeneratorParams
from scena.data.sources.params import ListFileGeneratorParams
from scena.data.stages.feed import representative_order
from tests.data.toys import LinesParams, NumbersParams, NumberStreamParams, sequence, toy_pipeline

TRAINING, EVALUATION, PREDICTION = PipelineMode.TRAINING, PipelineMode.EVALUATION, PipelineMode.PREDICTION


def seen(source: DataGeneratorParams, *processors: Any, epochs: int = 1, **settings: Any) -> list[list[int]]:
    """The samples of each epoch, in order."""
    pipeline = toy_pipeline(source, sequence(*processors), **settings)
    result: list[list[int]] = [[] for _ in range(epochs)]
    with pipeline.stream(repeat=True) as stream:
        for batch in stream:
            if batch.epoch >= epochs:
                return result
            result[batch.epoch] += [int(x) for x in batch.inputs["x"][:, 0]]
    return result


def test_any_beginning_of_the_order_holds_the_share_of_each_class() -> None:
    strata = np.repeat(["a", "b", "c"], [60, 30, 10])
    order = representative_order(100, np.random.default_rng(3), strata)
    assert sorted(order.tolist()) == list(range(100))
    for limit in range(1, 101):
        counts = Counter(strata[order[:limit]].tolist())
        for name, share in (("a", 0.6), ("b", 0.3), ("c", 0.1)):
            assert abs(counts[name] - share * limit) < 2, (limit, counts)
    labels = np.repeat(np.arange(10), 19)
    ten = Counter(labels[representative_order(190, np.random.default_rng(0), labels)[:20]].tolist())
    assert set(ten.values()) == {2}


def test_a_limit_draws_from_the_whole_source_by_seed() -> None:
    source = NumbersParams(count=200)
    first, second = seen(source, limit=20, epochs=2)
    assert sorted(first) == sorted(second) and first != second  # the same samples in each epoch, shuffled anew
    assert max(first) > 100 and len(set(first)) == 20
    assert sorted(seen(source, limit=20)[0]) == sorted(first)
    assert sorted(seen(source, limit=20, seed=9)[0]) != sorted(first)
    assert set(first) < set(seen(source, limit=50)[0])  # nested
    for processes in (0, 2):
        assert seen(source, limit=20, epochs=2, num_processes=processes) == [first, second]
    assert seen(source, limit=20, epochs=2, preload=True) == [first, second]
    (validated,) = seen(source, limit=20, mode=EVALUATION)
    assert validated == sorted(validated) and max(validated) > 100  # in the order of the source


def test_a_cache_of_a_limit_belongs_to_its_seed(tmp_path: Path) -> None:
    source = NumbersParams(count=200)
    for seed in (1, 2):
        expected = seen(source, limit=20, seed=seed)
        for _ in range(2):
            assert seen(source, limit=20, seed=seed, cache_dir=str(tmp_path), num_processes=0) == expected


def test_predictions_answer_the_first_samples() -> None:
    assert seen(NumbersParams(count=50), limit=5, mode=PREDICTION) == [[0, 1, 2, 3, 4]]
    assert seen(NumbersParams(count=50), limit=5, mode=EVALUATION, limit_from_start=True) == [[0, 1, 2, 3, 4]]


def test_a_limit_of_a_stream_is_its_beginning_and_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "scena.data"):
        assert seen(NumberStreamParams(count=50), limit=8, mode=EVALUATION) == [[0, 1, 2, 3, 4, 5, 6, 7]]
    assert "NumberStream is a stream, of which the limit takes the first 8 samples." in caplog.text


@pytest.mark.parametrize("ratios", [[], [3.0, 1.0]])
def test_a_limit_of_lists_takes_its_share_of_each(tmp_path: Path, ratios: list[float]) -> None:
    for name, numbers in (("a", range(60)), ("b", range(60, 80))):
        (tmp_path / name).write_text("\n".join(map(str, numbers)))
    lists = ListFileGeneratorParams(lists=[str(tmp_path / "a"), str(tmp_path / "b")], list_ratios=ratios)
    epochs = seen(lists, LinesParams(), limit=16, epochs=6)
    used = {number for epoch in epochs for number in epoch}
    assert len(used) == 16  # other epochs do not bring other samples in
    assert sum(number >= 60 for number in used) == 4
    assert seen(lists, LinesParams(), limit=16, epochs=6, preload=True) == epochs
