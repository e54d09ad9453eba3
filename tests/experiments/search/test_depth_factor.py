"""The ready space of depth and factor, on the scenario it is made for."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.long
def test_depth_and_factor_are_searched_on_real_networks(tmp_path: Path) -> None:
    command = (
        "tune classification --space depth_factor --trials 2 --sampler random --seed 1 --output tune "
        "--trainer.epochs 1 --train.limit 64 --val.limit 32 --train.batch_size 32"
    )
    done = subprocess.run(
        [sys.executable, "-m", "scena", *command.split()], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "2 complete" in done.stdout + done.stderr
    assert (tmp_path / "tune" / "plots" / "grid.png").read_bytes().startswith(b"\x89PNG")
    assert "factor:" in (tmp_path / "tune" / "best.yaml").read_text()
