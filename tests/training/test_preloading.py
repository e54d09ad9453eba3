"""`--trainer.preload_data` keeps processed samples in memory; the training does not differ."""

import logging
from pathlib import Path

from tests.training.toy_runs import trained_weights


def test_preloaded_data_train_the_same_weights(tmp_path: Path, caplog) -> None:
    plain = trained_weights(tmp_path / "plain")
    with caplog.at_level(logging.INFO, "scena.data"):
        preloaded = trained_weights(tmp_path / "preloaded", preload_data=True)
    assert [array.tobytes() for array in plain] == [array.tobytes() for array in preloaded]
    assert "training samples into memory" in caplog.text and "evaluation samples into memory" in caplog.text
