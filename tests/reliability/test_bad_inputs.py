"""A short form of the wrong command lines and files: tests/reliability/bad_inputs.py has the long one."""

import subprocess
import sys

import pytest

from tests.reliability.bad_files import CONTENTS
from tests.zygote import ROOT


@pytest.mark.long
def test_wrong_input_is_refused_with_a_short_message() -> None:
    """In a process without TensorFlow, which tells what is refused before it would be loaded."""
    command = "-m tests.reliability.bad_inputs --count 80 --late 0 --without_run".split()
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 wrong" in done.stdout


def test_there_are_malicious_files() -> None:
    assert len([name for name in CONTENTS if name.startswith("malicious")]) > 15
