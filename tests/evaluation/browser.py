"""Looking at a page in headless Chromium."""

import shutil
import subprocess
import tempfile

import pytest

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --virtual-time-budget=5000"
)

needs_chromium = pytest.mark.skipif(
    shutil.which("chromium") is None,
    reason="Chromium is not installed: `make test` installs it where it may (root, apt)",
)


def dumped(address: str) -> str:
    """The page's document after its scripts have run."""
    with tempfile.TemporaryDirectory() as profile:
        command = ["chromium", *FLAGS.split(), f"--user-data-dir={profile}", "--dump-dom", address]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
