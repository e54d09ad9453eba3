"""What is not a run's own is never removed, replaced or written into."""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scena.data.image.writer import WriteImagesParams, write_images
from scena.errors import CheckpointError, DataError, TrainingError
from scena.storage.checksums import keep_foreign, seal_tree
from scena.storage.durable import replace_directory, write_file
from scena.storage.location import Location
from scena.storage.run_layout import DIRECTORIES, MANIFEST, OWNER_FILE
from scena.training.callbacks.event_files import cut_back
from scena.training.checkpoint.store import CheckpointStore
from scena.training.directory import claimed, create_directory, paths_outside, release
from tests.faults import saver
from tests.faults.test_checkpoint_store import put


class Pipelines:
    """Where a run's data comes from, as far as these tests need it."""

    __params__ = ("train",)

    def __init__(self, cache_dir: str | None = None) -> None:
        self.train = SimpleNamespace(cache_dir=cache_dir)


def params(cache_dir: str | None = None, **directories: Path) -> Any:
    places: dict[str, Path | None] = dict.fromkeys(DIRECTORIES)
    return SimpleNamespace(gen=Pipelines(cache_dir), tracker=[], **(places | directories))


def new_run(directory: Path, identity: str) -> Path:
    create_directory(directory)
    (directory / "trainer_params.json").write_text(json.dumps({"run": identity}))
    return directory


def tree(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*")}


def test_only_checkpoints_are_removed(tmp_path: Path) -> None:
    mine = [
        "2021/photos/a.png",
        "30/notes.txt",
        "x.discarded/a",
        "7.discarded/a",
        ".5.new/a",
        ".6.old/a",
        "9/state.json.bak",
    ]
    for name in mine:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("mine")
    store = CheckpointStore(tmp_path, keep=1, run="a")
    store.clean()
    for number in range(1, 4):
        put(store, 100 * number, number)
    assert store.steps() == [300]
    store.discard_after(0)
    put(store, 400, 4)
    assert store.steps() == [400]
    assert set(mine) <= tree(tmp_path)


def test_a_directory_in_the_way_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "30").mkdir()
    (tmp_path / "30" / "notes.txt").write_text("mine")
    store = CheckpointStore(tmp_path)
    with pytest.raises(CheckpointError, match="30: it exists already, and is not a checkpoint of this run"):
        store.begin(30)
    assert (tmp_path / "30" / "notes.txt").read_text() == "mine"


def test_a_checkpoint_with_a_file_of_somebody_stays(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, keep=1)
    put(store, 1, 1)
    (tmp_path / "1" / "notes.txt").write_text("mine")
    put(store, 2, 2)
    assert store.steps() == [1, 2]


def test_checkpoints_of_another_run_are_neither_read_nor_removed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = CheckpointStore(tmp_path, 1, run="first"), CheckpointStore(tmp_path, 1, run="second")
    put(first, 1, 1)
    put(second, 2, 1)
    put(second, 3, 2)
    assert first.steps() == [1, 3]
    with pytest.raises(CheckpointError, match="it belongs to another run"):
        first.load(3)
    found = first.load_latest()
    assert found is not None and found[0] == 1
    first.discard_after(1)
    assert first.steps() == [1, 3]
    assert "it belongs to another run. It is skipped" in caplog.text


def test_two_runs_do_not_share_a_directory(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    first, second = new_run(tmp_path / "first", "1"), new_run(tmp_path / "second", "2")
    for name in DIRECTORIES:
        chosen = params(**{name: shared / name})
        with claimed(first, chosen, fresh=True):
            refusal = f"--trainer.{name} {shared / name} belongs to the run {first}"
            with pytest.raises(TrainingError, match="is in use: process"), claimed(second, chosen, fresh=True):
                pass
        for fresh in (True, False):  # also when the other one has ended
            with pytest.raises(TrainingError, match=refusal), claimed(second, chosen, fresh=fresh):
                pass
        with claimed(first, chosen, fresh=False):
            pass


def test_a_moved_run_keeps_its_directories_and_a_copy_gets_none(tmp_path: Path) -> None:
    chosen = params(checkpoint_dir=tmp_path / "elsewhere")
    run = new_run(tmp_path / "run", "1")
    with claimed(run, chosen, fresh=True):
        pass
    copy = new_run(tmp_path / "copy", "1")
    with pytest.raises(TrainingError, match="belongs to the run"), claimed(copy, chosen, fresh=False):
        pass
    run.rename(tmp_path / "moved")
    with claimed(tmp_path / "moved", chosen, fresh=False):
        pass


@pytest.mark.parametrize(
    ("flag", "name"),
    [("checkpoint_dir", "40"), ("log_dir", "tensorboard"), ("export_dir", "best"), ("export_dir", "export")],
)
def test_a_new_run_starts_where_nothing_is_in_the_way(tmp_path: Path, flag: str, name: str) -> None:
    run, place = new_run(tmp_path / "run", "1"), tmp_path / "place"
    (place / name).mkdir(parents=True)
    (place / "unrelated").mkdir()
    refusal = f"--trainer.{flag} {place} already holds {name} of another run"
    with pytest.raises(TrainingError, match=refusal), claimed(run, params(**{flag: place}), fresh=True):
        pass
    assert {path.name for path in place.iterdir()} == {name, "unrelated"}, "a refused command leaves nothing behind"
    (place / name).rmdir()
    with claimed(run, params(**{flag: place}), fresh=True):
        assert (place / OWNER_FILE).is_file()
    release(run, params(**{flag: place}))
    assert not (place / OWNER_FILE).exists()


def test_one_place_for_all_parts(tmp_path: Path) -> None:
    run, place = new_run(tmp_path / "run", "1"), tmp_path / "place"
    chosen = params(checkpoint_dir=place, log_dir=place, export_dir=place)
    with claimed(run, chosen, fresh=True):
        pass


def test_links_do_not_hide_where_a_run_writes(tmp_path: Path) -> None:
    run, precious = new_run(tmp_path / "run", "1"), tmp_path / "precious"
    precious.mkdir()
    assert paths_outside(run, params()) == {}
    (run / "checkpoint").symlink_to(precious)
    assert paths_outside(run, params()) == {"trainer.checkpoint_dir": str(precious)}
    assert paths_outside(run, params(export_dir=Path("../precious"), cache_dir="cache")) == {
        "trainer.checkpoint_dir": str(precious),
        "trainer.export_dir": str(precious),
        "train.cache_dir": "cache",
    }
    (precious / "a.tfevents").write_text("mine")
    (run / "tensorboard").symlink_to(precious)
    cut_back(run / "tensorboard", {})
    (run / ".history.csv.new").symlink_to(precious / "a.tfevents")
    write_file(run / "history.csv", "epoch\n")
    assert (precious / "a.tfevents").read_text() == "mine" and not (run / "history.csv").is_symlink()


def test_files_that_somebody_put_into_an_export_stay(tmp_path: Path) -> None:
    best = tmp_path / "best"

    def fill(content: str) -> Any:
        def write(aside: Path) -> None:
            (aside / "model.keras").write_text(content)
            seal_tree(aside)
            keep_foreign(best, aside)

        return write

    replace_directory(best, fill("old"))
    (best / "notes").mkdir()
    (best / "notes" / "mine.txt").write_text("mine")
    (best / "model.keras.bak").write_text("mine")
    replace_directory(best, fill("new"))
    assert tree(best) == {"model.keras", MANIFEST, "notes", "notes/mine.txt", "model.keras.bak"}
    assert (best / "model.keras").read_text() == "new"


def test_force_replaces_data_sets_only(tmp_path: Path) -> None:
    (tmp_path / "out" / "images").mkdir(parents=True)
    (tmp_path / "out" / "images" / "thesis.tex").write_text("mine")
    source = tmp_path / "images" / "cat"
    source.mkdir(parents=True)
    from PIL import Image

    for name in "abcd":
        Image.new("RGB", (8, 8)).save(source / f"{name}.png")
    settings = WriteImagesParams(images=Location(tmp_path / "images"), output=Location(tmp_path / "out"), force=True)
    with pytest.raises(DataError, match="is no data set, so --force does not replace it"):
        write_images(settings)
    assert os.listdir(tmp_path / "out" / "images") == ["thesis.tex"]


def test_checkpoints_without_an_identity_are_read(tmp_path: Path) -> None:
    saver.save(tmp_path, 1)
    CheckpointStore(tmp_path, run="a").load(1)
