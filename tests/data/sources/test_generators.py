"""The ready-made sources."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from scena.data import DataError, PipelineMode, Sample
from scena.data.sources.arrays import ArrayGenerator
from scena.data.sources.params import ArrayGeneratorParams, ListFileGeneratorParams, RowGeneratorParams
from scena.params import ParamsError
from tests.data.toys import LinesParams, NumberStreamParams, list_files, sequence, toy_pipeline


def epoch(source, mode=PipelineMode.TRAINING, epoch_number: int = 0) -> list[int]:
    with toy_pipeline(source, sequence(LinesParams()), mode, num_processes=0).stream(repeat=True) as stream:
        found: list[int] = []
        for batch in stream:
            if batch.epoch > epoch_number:
                return found
            if batch.epoch == epoch_number:
                found += batch.targets["y"].tolist()
    raise AssertionError


def test_lists_keep_their_order_in_evaluation(tmp_path: Path) -> None:
    assert epoch(list_files(tmp_path), PipelineMode.EVALUATION) == list(range(18))


def test_lists_are_mixed_by_ratio_in_training(tmp_path: Path) -> None:
    source = list_files(tmp_path)
    drawn = [number for e in range(30) for number in epoch(source, epoch_number=e)]
    second = sum(number >= 12 for number in drawn) / len(drawn)
    assert 0.65 < second < 0.85, "three of four samples come from the second list"
    once = epoch(source)
    counts = Counter(number for number in once if number >= 12)
    assert max(counts.values()) - min(counts.get(n, 0) for n in range(12, 18)) <= 1, "used up before it is repeated"
    assert epoch(source) == once
    assert epoch(source, epoch_number=1) != once


def test_without_ratios_each_line_once(tmp_path: Path) -> None:
    source = list_files(tmp_path).replace(list_ratios=[])
    assert sorted(epoch(source)) == list(range(18))
    assert epoch(source) != list(range(18))


def test_list_files_say_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"The list file '.*missing.lst' cannot be read: No such file"):
        ListFileGeneratorParams(lists=[str(tmp_path / "missing.lst")]).create(PipelineMode.TRAINING)
    with pytest.raises(DataError, match=r"There are no list files for training. Name some: --train.lists FILE"):
        ListFileGeneratorParams().create(PipelineMode.TRAINING)
    with pytest.raises(ParamsError, match="a number for each of the 1 lists"):
        ListFileGeneratorParams(lists=["a"], list_ratios=[1, 2])


def test_rows_of_tables(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('text,label\nhello,1\n"a, b",2\n')
    (tmp_path / "b.tsv").write_text("text\tlabel\nbye\t3\n")
    params = RowGeneratorParams(files=[str(tmp_path / "a.csv"), str(tmp_path / "b.tsv")], target_columns=["label"])
    rows = list(params.create(PipelineMode.TRAINING).generate())
    assert [(row.inputs, row.targets) for row in rows] == [
        ({"text": "hello"}, {"label": "1"}),
        ({"text": "a, b"}, {"label": "2"}),
        ({"text": "bye"}, {"label": "3"}),
    ]
    assert rows[1].meta.endswith("a.csv:3")
    with pytest.raises(DataError, match=r"has no column 'lable' \(did you mean label\?\); it has \['text', 'label'\]"):
        params.replace(target_columns=["lable"]).create(PipelineMode.TRAINING)


@pytest.mark.parametrize(("delimiter", "typed"), [(";", "';'"), ("\t", r"$'\t'")])
def test_a_table_with_another_delimiter_is_noticed(delimiter: str, typed: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"text{delimiter}label\nhello{delimiter}1\n")
    params = RowGeneratorParams(files=[str(tmp_path / "a.csv")])
    with pytest.raises(DataError) as caught:
        params.create(PipelineMode.TRAINING)
    assert f"has a single column, {f'text{delimiter}label'!r}. Is {delimiter!r} its delimiter?" in str(caught.value)
    assert f"--data.delimiter {typed}, or with" in str(caught.value)
    row = params.replace(delimiter=delimiter).create(PipelineMode.TRAINING)[0]
    assert row.inputs == {"text": "hello", "label": "1"}
    one = params.replace(delimiter=",").create(PipelineMode.TRAINING)[0]
    assert list(one.inputs) == [f"text{delimiter}label"], "a column may be called so"


def test_rows_to_predict_need_no_targets(tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("text\nhello\n")
    params = RowGeneratorParams(files=[str(tmp_path / "new.csv")], target_columns=["label"])
    row = params.create(PipelineMode.PREDICTION)[0]
    assert (row.inputs, row.targets) == ({"text": "hello"}, {})
    with pytest.raises(DataError, match="has no column 'label'"):
        params.create(PipelineMode.EVALUATION)


def test_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("size,size,label\n1,2,3\n")
    with pytest.raises(DataError, match=r"a.csv' has the column 'size' 2 times; rename or remove one."):
        RowGeneratorParams(files=[str(tmp_path / "a.csv")]).create(PipelineMode.TRAINING)


def test_arrays_of_files(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(6.0).reshape(3, 2))
    np.savez(tmp_path / "y.npz", y=np.arange(3))
    params = ArrayGeneratorParams(inputs={"x": str(tmp_path / "x.npy")}, targets={"y": f"{tmp_path}/y.npz:y"})
    samples = list(params.create(PipelineMode.TRAINING).generate())
    assert [(s.inputs["x"].tolist(), int(s.targets["y"])) for s in samples] == [([0, 1], 0), ([2, 3], 1), ([4, 5], 2)]
    with pytest.raises(DataError, match=r"name one of its arrays as y.npz:array. It has \['y'\]"):
        params.replace(targets={"y": str(tmp_path / "y.npz")}).create(PipelineMode.TRAINING)
    np.save(tmp_path / "objects.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(DataError, match="cannot be read as an array"):
        params.replace(inputs={"x": str(tmp_path / "objects.npy")}).create(PipelineMode.TRAINING)


def test_arrays_in_memory() -> None:
    source = ArrayGenerator.of({"x": np.ones((6, 1), np.float32)}, {"y": np.arange(6)})
    for processes in (0, 1):
        pipeline = toy_pipeline(source, mode=PipelineMode.EVALUATION, num_processes=processes)
        with pipeline.stream() as stream:
            assert [batch.targets["y"].tolist() for batch in stream] == [[0, 1, 2, 3], [4, 5]]
        pipeline.close()
    with pytest.raises(DataError, match="All arrays need the same number of rows"):
        ArrayGenerator.of({"x": np.ones(3)}, {"y": np.ones(4)})


def test_shuffling_covers_every_sample_and_changes_with_epoch_and_seed() -> None:
    samples = [Sample({"x": [1.0]}, {"y": i}) for i in range(20)]

    def order(source, seed: int = 1, number: int = 0, **settings) -> list[int]:
        pipeline = toy_pipeline(source, seed=seed, num_processes=0, **settings)
        with pipeline.stream() as stream:
            batches = [next(stream) for _ in range(15)]
        return [y for batch in batches if batch.epoch == number for y in batch.targets["y"].tolist()]

    for source, settings in ((samples, {}), (NumberStreamParams(count=20), {"shuffle_buffer_size": 6})):
        assert sorted(order(source, **settings)) == list(range(20))
        assert order(source, **settings) != order(source, number=1, **settings)
        assert order(source, **settings) != order(source, seed=2, **settings)
        assert order(source, **settings) == order(source, **settings)
        assert order(source, shuffle_buffer_size=0) == list(range(20))
