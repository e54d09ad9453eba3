"""Two models of the toy scenario, made once for all tests here."""

from pathlib import Path

import pytest

from tests.evaluation.exporting import export


@pytest.fixture(scope="session")
def exports(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The export directories of two models with different weights."""
    folder = tmp_path_factory.mktemp("exports")
    return [export(folder / f"model{seed}", seed) for seed in (1, 2)]
