"""What is replayed is not written again; what differs, or comes too late, starts a linked branch."""

from pathlib import Path
from typing import Any

from scena.training.trackers.journal import Artifact, Branch, Data, End, JournalReader, Points
from scena.training.trackers.recorder import Recorder


def recorder(path: Path, run: str = "run") -> Recorder:
    made = Recorder(path, run, "scenario", "dir", lambda: {"lr": 0.1})
    made.begin()
    return made


def written(path: Path) -> list[tuple[Any, ...]]:
    """Branch, key, step and value of each number, in order."""
    return [
        (entry.branch, key, entry.step, value)
        for entry in JournalReader(path).read()
        if isinstance(entry, Points)
        for key, value in entry.values.items()
    ]


def branches(path: Path) -> list[tuple[int, int | None, int]]:
    return [(e.branch, e.parent, e.step) for e in JournalReader(path).read() if isinstance(e, Branch)]


def train(into: Recorder, start: int, end: int, rate: float = 1.0) -> list[dict[str, Any]]:
    """A training with a checkpoint after each step; returns the states of the checkpoints."""
    states = []
    for step in range(start, end):
        into.points({"val/loss": step * rate / 3}, step)
        into.points({"train/loss": step * rate / 7}, step)
        states.append(into.state())
    return states


def test_replayed_values_are_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    states = train(recorder(path), 1, 10)
    before = written(path)
    for state in (*states, None):  # killed after its last step, and resumed from every checkpoint, and from none
        again = recorder(path)
        if state is not None:
            again.restore(state)
        train(again, 1 if state is None else states.index(state) + 2, 10)
    assert written(path) == before
    train(again, 10, 12)
    assert [step for _, key, step, _ in written(path) if key == "val/loss"] == list(range(1, 12))
    assert branches(path) == [(0, None, 0)]


def test_a_differing_value_starts_a_linked_branch(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    states = train(recorder(path), 1, 10)
    changed = recorder(path)
    changed.restore(states[4])
    later = train(changed, 6, 9, rate=2.0)
    assert branches(path) == [(0, None, 0), (1, 0, 6)]
    assert [entry for entry in written(path) if entry[0] == 1] == [
        (1, key, step, step * 2.0 / part) for step in (6, 7, 8) for key, part in (("val/loss", 3), ("train/loss", 7))
    ]
    before = written(path)
    for state, start in ((later[0], 7), (states[4], 6), (states[3], 6)):  # even from before it branched off
        again = recorder(path)
        again.restore(state)
        train(again, start, 9, rate=2.0)
    assert written(path) == before and len(branches(path)) == 2
    train(again, 9, 11, rate=2.0)
    third = recorder(path)
    third.restore(later[0])
    train(third, 7, 9, rate=4.0)
    assert branches(path) == [(0, None, 0), (1, 0, 6), (2, 1, 7)]


def test_the_same_flags_from_the_last_point_continue_the_run(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    states = train(recorder(path), 1, 10)
    again = recorder(path)
    again.restore(states[-1])
    train(again, 10, 12, rate=5.0)  # other flags, but nothing that was sent differs
    assert branches(path) == [(0, None, 0)]


def test_a_point_that_comes_too_late_starts_a_branch(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    states = train(recorder(path), 1, 10)
    again = recorder(path)
    again.restore(states[4])
    again.points({"lav/acc": 0.5}, 7)
    assert branches(path) == [(0, None, 0), (1, 0, 7)]


def test_not_a_number_is_equal_to_itself(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    recorder(path).points({"loss": float("nan"), "best": float("-inf")}, 1)
    recorder(path).points({"loss": float("nan"), "best": float("-inf")}, 1)
    assert len(written(path)) == 2 and len(branches(path)) == 1


def test_the_load_of_the_machine_is_never_replayed(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    first = recorder(path)
    first.points({"loss": 1.0}, 4)
    for step in (3, 4, 4, 6, 5):
        first.load({"system/cpu_percent": float(step)}, step)
    assert [entry[2] for entry in written(path) if entry[1] == "system/cpu_percent"] == [4, 6]


def test_images_artifacts_and_the_end_are_written_once(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    for _ in range(3):
        again = recorder(path)
        again.points({"loss": 1.0}, 4)
        again.data("val/image", "image", 4, lambda branch: (f"{branch}.npz", ""))
        again.tags({"host": "a"})
        again.artifact("best", "best")
        again.end()
    again.points({"loss": 0.5}, 5)
    again.artifact("best", "best")
    again.end()
    kinds = [type(entry) for entry in JournalReader(path).read()]
    assert (kinds.count(Data), kinds.count(Artifact), kinds.count(End)) == (1, 2, 2)


def test_a_journal_of_another_run_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    train(recorder(path, "before"), 1, 4)
    train(recorder(path, "after"), 1, 3, rate=2.0)
    assert branches(path) == [(0, None, 0)] and len(written(path)) == 4


def test_entries_of_a_full_disk_are_in_the_checkpoint(tmp_path: Path) -> None:
    import resource

    path = tmp_path / "journal"
    full = recorder(path)
    full.points({"loss": 1.0}, 1)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, before[1]))
    try:
        full.points({"loss": 0.5}, 2)
        state = full.state()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    del full  # killed before it could write them
    again = recorder(path)
    again.restore(state)
    again.points({"loss": 0.25}, 3)
    assert written(path) == [(0, "loss", 1, 1.0), (0, "loss", 2, 0.5), (0, "loss", 3, 0.25)]
    assert branches(path) == [(0, None, 0)]
