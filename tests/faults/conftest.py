"""What the tests of faults share: the run that was never killed."""

from pathlib import Path
from typing import Any

import pytest

from tests.faults.harness import FLAGS, SCENARIO, fingerprint
from tests.zygote import Zygote


@pytest.fixture(scope="session")
def reference(zygote: Zygote, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run that was never killed."""
    directory = tmp_path_factory.mktemp("reference") / "run"
    log = directory.with_suffix(".log")
    assert zygote.run("train", SCENARIO, "--trainer.output_dir", directory, *FLAGS, log=log) == 0, log.read_text()
    return directory


@pytest.fixture(scope="session")
def expected(reference: Path) -> dict[str, Any]:
    """What a run that was never killed ends with."""
    return fingerprint(reference)
