"""Where the parts of a run and of an export are."""

from pathlib import Path

import pytest

from scena.storage.run_layout import DIRECTORIES, model_file, run_paths, saved_model


def places(**directories: str) -> list[str]:
    """Checkpoints, event files, export and best model of a run, inside its directory."""
    run = Path("run")
    paths = run_paths(run, dict.fromkeys(DIRECTORIES) | directories)
    return [str(path.relative_to(run)) for path in (paths.checkpoint, paths.tensorboard, paths.export, paths.best)]


@pytest.mark.parametrize(
    ("directories", "expected"),
    [
        ({}, ["checkpoint", "tensorboard", "export", "best"]),
        ({"checkpoint_dir": "a", "log_dir": "b"}, ["a", "b/tensorboard", "export", "best"]),
        ({"export_dir": "c"}, ["checkpoint", "tensorboard", "c/export", "c/best"]),
        ({"export_dir": "c", "best_dir": "d"}, ["checkpoint", "tensorboard", "c/export", "d/best"]),
    ],
)
def test_parts_of_a_run_are_inside_it_unless_its_parameters_name_another_place(
    directories: dict[str, str], expected: list[str]
) -> None:
    assert places(**directories) == expected


def test_each_graph_of_an_export_has_files_of_its_own() -> None:
    assert (model_file(), saved_model()) == ("model.keras", "saved_model")
    assert (model_file("encoder"), saved_model("encoder")) == ("model_encoder.keras", "saved_model_encoder")
