"""Records as a source of a pipeline: complete shuffle, exact cursor, in workers too."""

from pathlib import Path

import numpy as np
import pytest

from scena.data import ArraySpec, DataBase, DataBaseParams, DataError, DataPipelineParams, PipelineMode
from scena.data.records.leaf import Leaf
from scena.data.records.schema import Schema
from scena.data.records.writing import write_records
from scena.data.sources.params import RecordsParams
from scena.data.sources.records import Records

SCHEMA = Schema({"x": Leaf("x", "float32", (None,)), "y": Leaf("y", "int64", ())})


class NumbersData(DataBase[DataBaseParams]):
    def _input_layer_specs(self) -> dict[str, ArraySpec]:
        return {"x": ArraySpec((None,), "float32")}

    def _target_layer_specs(self) -> dict[str, ArraySpec]:
        return {"y": ArraySpec((), "int64")}


def write(folder: Path, split: str = "train", count: int = 23, **options: object) -> None:
    values = ({"x": np.full(i % 4, i, np.float32), "y": i} for i in range(count))
    write_records(values, SCHEMA, folder, split=split, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{}, {"shards": 3}, {"shards": 2, "compression": "GZIP"}], ids=str)
def test_a_pipeline_on_records_shuffles_completely_and_resumes_exactly(
    tmp_path: Path, options: dict[str, object]
) -> None:
    write(tmp_path, **options)
    source = RecordsParams(records=str(tmp_path), split="train", target_keys={"y": "y"})
    pipeline = NumbersData(DataBaseParams()).create_pipeline(
        PipelineMode.TRAINING, DataPipelineParams(batch_size=4, num_processes=0), source, seed=5
    )
    with pipeline.stream() as stream:
        batches = [next(stream) for _ in range(12)]
    first = np.concatenate([batch.targets["y"] for batch in batches[:6]])
    assert sorted(first) == list(range(23))
    assert list(first) != list(range(23))
    with pipeline.stream(batches[7].cursor) as stream:
        for batch in batches[8:]:
            again = next(stream)
            np.testing.assert_array_equal(again.targets["y"], batch.targets["y"])
            np.testing.assert_array_equal(again.inputs["x"], batch.inputs["x"])


def test_the_split_follows_the_mode(tmp_path: Path) -> None:
    write(tmp_path, "train", 8)
    write(tmp_path, "validation", 4)
    params = RecordsParams(records=str(tmp_path))
    assert len(Records(params, PipelineMode.TRAINING)) == 8
    assert len(Records(params, PipelineMode.EVALUATION)) == 4
    assert len(Records(params.replace(split="train"), PipelineMode.EVALUATION)) == 8
    with pytest.raises(DataError, match="has no split 'other'; it has train, validation"):
        Records(params.replace(split="other"), PipelineMode.TRAINING)


def test_wrong_names_are_explained(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(DataError, match="have no feature 'label'; they have x, y"):
        Records(RecordsParams(records=str(tmp_path), target_keys={"gt": "label"}), PipelineMode.TRAINING)
    with pytest.raises(DataError, match="There are no record files"):
        Records(RecordsParams(records=str(tmp_path / "none")), PipelineMode.TRAINING)
