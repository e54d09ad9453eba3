"""`records convert` and `RecordsParams` are inverse: a converted scenario has the same batches, meta included."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scena.commands.main import main
from scena.data import DataError, PipelineMode, Sample
from scena.data.generator import SequenceGenerator
from scena.data.records.convert import write_source
from scena.data.sources.params import ImageFilesParams, ImageRecordsParams, ListFileGeneratorParams, RecordsParams
from scena.params.kinds import candidates, kind_of
from scena.scenario.finding import find_scenario
from tests.data.image.pictures import class_folders
from tests.data.toys import LinesParams, sequence, toy_pipeline

TRAINING, EVALUATION = PipelineMode.TRAINING, PipelineMode.EVALUATION


def read(pipeline: Any, count: int = 7) -> list[tuple[Any, Any, Any]]:
    with pipeline.stream(repeat=True) as stream:
        return [(batch.inputs, batch.targets, batch.meta) for batch in (next(stream) for _ in range(count))]


def assert_same(ones: list[Any], others: list[Any]) -> None:
    for one, other in zip(ones, others, strict=True):
        for arrays, again in zip(one[:2], other[:2], strict=True):
            assert {name: (a.dtype, a.tolist()) for name, a in arrays.items()} == {
                name: (a.dtype, a.tolist()) for name, a in again.items()
            }
        assert one[2] == other[2]


@pytest.mark.parametrize(
    "name", ["tests.toy.scenario", "examples.tutorial.full", "examples.seq2seq", "tests.data.image.picture_scenario"]
)
def test_a_converted_scenario_has_the_same_batches(name: str, tmp_path: Path) -> None:
    assert main(["records", "convert", name, "--output", str(tmp_path / "set"), "--shards", "2"]) == 0
    scenario = find_scenario(name)
    params: Any = scenario.default_trainer_params()
    data = scenario(params.scenario).create_data()
    records = RecordsParams(records=str(tmp_path / "set"))
    for mode, gen, source in (
        (TRAINING, params.gen.train, params.gen.train_gen()),
        (EVALUATION, params.gen.val, params.gen.val_gen()),
    ):
        settings = gen.replace(num_processes=0)
        expected, found = (read(data.create_pipeline(mode, settings, each, seed=4)) for each in (source, records))
        assert_same(expected, found)


def test_any_scenario_can_choose_records_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    command = "params tests.toy.scenario --data Records --data.records some/folder --data.split train[:50%]"
    assert main(command.split()) == 0
    printed = capsys.readouterr().out
    assert "Records" in printed and "some/folder" in printed
    assert "Records" in candidates(kind_of(ListFileGeneratorParams), None)
    assert "Records" not in candidates(kind_of(LinesParams), None)  # a processor is no source


def test_texts_come_back_as_texts_for_processors(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("\n".join(map(str, range(20))))
    lists = ListFileGeneratorParams(lists=[str(tmp_path / "list.txt")])
    write_source(lists.create(TRAINING), tmp_path / "set", split="train")
    records = RecordsParams(records=str(tmp_path / "set"), split="train")
    expected, found = (read(toy_pipeline(source, sequence(LinesParams()))) for source in (lists, records))
    assert_same(expected, found)


def test_meta_of_any_plain_kind(tmp_path: Path) -> None:
    metas: list[Any] = [
        {"page": 17, "box": (1, 2), "path": Path("a/b"), 3: [None, 1.5]}, "a line", None, np.arange(3), {"set": {1, 2}},
    ]  # fmt: skip
    samples = [Sample({"x": float(i), "words": ["a", f"b{i}"]}, {"y": i}, meta=meta) for i, meta in enumerate(metas)]
    write_source(SequenceGenerator(samples, TRAINING), tmp_path, split="train")
    found = RecordsParams(records=str(tmp_path), split="train").create(TRAINING)
    for index, meta in enumerate(metas):
        again = found[index]
        assert again.inputs["x"] == index and list(again.inputs["words"]) == ["a", f"b{index}"]
        assert again.targets == {"y": index}
        assert np.array_equal(again.meta, meta) if isinstance(meta, np.ndarray) else again.meta == meta
    with pytest.raises(DataError, match="The meta of a sample holds a .*, which cannot be stored"):
        write_source(SequenceGenerator([Sample({"x": 1}, meta=object())], TRAINING), tmp_path / "b", split="train")
    late = [Sample({"x": i}, meta="late" if i == 150 else None) for i in range(200)]
    with pytest.raises(DataError, match="has meta, but the first 100 samples have none"):
        write_source(SequenceGenerator(late, TRAINING), tmp_path / "c", split="train")


def test_images_that_were_arrays_are_arrays_again(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 255, (6, 7, channels), dtype=np.uint8) for channels in (1, 3)]
    samples = [Sample({"image": image}, {"label": place}) for place, image in enumerate(images)]
    write_source(SequenceGenerator(samples, TRAINING), tmp_path, split="train")
    found = RecordsParams(records=str(tmp_path), split="train").create(TRAINING)
    for place, image in enumerate(images):
        assert np.array_equal(found[place].inputs["image"], image)
        assert (found[place].targets, found[place].meta) == ({"label": place}, None)
    encoded = ImageRecordsParams(records=tmp_path, split="train").create(TRAINING)
    assert isinstance(encoded[0].inputs["image"], bytes)


RGB = np.random.default_rng(0).integers(0, 255, (6, 7, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    ("inputs", "targets"),
    [
        ({"image": RGB, "mask": RGB[..., 0]}, {"label": 1}),
        ({"image": RGB}, {"label": 1, "box": np.arange(4)}),
        ({"image": np.concatenate([RGB, RGB[..., :1]], -1)}, {"label": 1}),
        ({"image": RGB / 255}, {"label": 1}),
        ({"image": b"\xff\xd8", "name": "text"}, {"label": 1}),
    ],
    ids=["more inputs", "more targets", "four channels", "floats", "bytes and text"],
)
def test_what_is_more_than_an_image_and_its_class_is_kept(
    inputs: dict[str, Any], targets: dict[str, Any], tmp_path: Path
) -> None:
    write_source(SequenceGenerator([Sample(inputs, targets)], TRAINING), tmp_path, split="train")
    found = RecordsParams(records=str(tmp_path), split="train").create(TRAINING)[0]
    for part, again in ((inputs, found.inputs), (targets, found.targets)):
        assert part.keys() == again.keys()
        for name, value in part.items():
            assert np.asarray(again[name]).dtype == np.asarray(value).dtype
            np.testing.assert_array_equal(again[name], value)


def test_one_file_of_records_is_trained_and_validated_on(tmp_path: Path) -> None:
    root = class_folders(tmp_path / "flowers", {"daisy": 20, "rose": 20})
    write_source(ImageFilesParams(images=root, split="all").create(TRAINING), tmp_path / "set", split="train", shards=2)
    (first, second) = sorted((tmp_path / "set").glob("*.tfrecord"))
    for kind in (ImageRecordsParams, RecordsParams):
        sources = [kind(records=str(first)).create(mode) for mode in (TRAINING, EVALUATION)]
        names = [{source[i].meta["name"] for i in range(len(source))} for source in sources]
        assert [len(found) for found in names] == [18, 2] and not names[0] & names[1]
        assert len(kind(records=f"{tmp_path}/set/*.tfrecord").create(TRAINING)) == 36
        with pytest.raises(DataError, match="There are no record files"):
            kind(records=f"{second}.gone").create(TRAINING)


def test_validation_of_records_is_not_what_is_trained_on(tmp_path: Path) -> None:
    write_source(SequenceGenerator([Sample({"x": i}) for i in range(50)], TRAINING), tmp_path, split="data")
    params = RecordsParams(records=str(tmp_path))
    seen = [
        [source[i].inputs["x"] for i in range(len(source))] for source in map(params.create, (TRAINING, EVALUATION))
    ]
    assert sorted(seen[0] + seen[1]) == list(range(50)) and len(seen[1]) == 5
    sides = params.replace(split="data[:60%]")
    source = sides.for_validation().create(EVALUATION)
    assert all(source[i].inputs["x"] >= 30 for i in range(len(source)))
