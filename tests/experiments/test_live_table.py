"""The live table of a terminal, on a real pseudo-terminal."""

import os
import pty
import subprocess
import sys
from pathlib import Path

from tests.experiments.program import ROOT

PROGRAM = """#!/bin/bash
mkdir -p $SCENA_RUN_ID.out
echo '{"trainer": {"epochs": 4}}' > $SCENA_RUN_ID.out/trainer_params.json
printf 'epoch,step,learning_rate,seconds,loss,val_acc\\n1,10,0.1,30,0.5,0.9125\\n' > $SCENA_RUN_ID.out/history.csv
sleep 2
"""


def test_a_terminal_shows_epoch_values_and_the_time_that_is_left(tmp_path: Path) -> None:
    (tmp_path / "program").write_text(PROGRAM)
    (tmp_path / "program").chmod(0o755)
    (tmp_path / "runs.yaml").write_text("script: ./program\nruns: [{id: 7, params: {output_dir: 7.out}}, {id: 8}]\n")
    controller, terminal = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
    process = subprocess.Popen(
        [sys.executable, "-m", "scena", "experiment", "runs.yaml"],
        cwd=tmp_path,
        env=environment,
        stderr=terminal,
        stdin=terminal,
    )
    os.close(terminal)
    shown = b""
    while True:
        try:
            part = os.read(controller, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(controller)
    assert process.wait(60) == 0
    text = shown.decode()
    row = next(line for line in text.splitlines() if "cpu 0" in line and "1/4" in line)
    assert "val_acc 0.9125" in row and "loss 0.5" in row and "1:30" in row
    assert "0 done, 0 failed, 1 running, 1 waiting" in text and "2 runs: 2 done." in text
