"""Several processes share each batch: together they have it, and nothing is made twice."""

from pathlib import Path
from typing import Any

import pytest

from scena.data.sample import Cursor
from tests.toy.scenario import ToyScenario
from tests.training.toy_runs import toy_params


def batches(path: Path, shard: tuple[int, int] | None, cursor: Cursor | None = None, **changes: Any) -> list[Any]:
    """The samples of each batch by index, how many count, and the cursor after it."""
    params = toy_params(path, gen__train__batch_size=7, gen__train_val__count=64, **changes)
    pipeline = params.gen.train_data(ToyScenario(params.scenario).create_data(), seed=3)
    if shard is not None:
        pipeline.shard(*shard)
    with pipeline.stream(cursor, repeat=False) as stream:
        made = [([m["index"] for m in one.meta], one.counted, one.total, one.cursor) for one in stream]
    pipeline.close()
    return made


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("processes", [0, 2])
@pytest.mark.parametrize(
    "changes",
    [{}, {"gen__train__batch_drop_remainder": True}, {"gen__train__on_error": "skip"}, {"gen__train__preload": True}],
    ids=str,
)
def test_parts_make_the_whole(tmp_path: Path, count: int, processes: int, changes: Any) -> None:
    changes = {"gen__train__num_processes": processes, **changes}
    whole = batches(tmp_path, None, **changes)
    parts = [batches(tmp_path, (index, count), **changes) for index in range(count)]
    for number, (indices, _, _, cursor) in enumerate(whole):
        together = [part[number] for part in parts]
        assert [i for own, counted, _, _ in together for i in own[:counted]] == indices
        assert all(total == len(indices) and after == cursor for _, _, total, after in together)
        # 64 samples in batches of 7: the last has one, and some part only keeps step with it
        assert all(len(own) == max(counted, 1) for own, counted, _, _ in together)
    assert {len(part) for part in parts} == {len(whole)}
    again = batches(tmp_path, (1, count), parts[0][3][3], **changes)
    assert again == parts[1][4:]
