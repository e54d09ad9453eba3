"""The recorded terminal session shows commands that exist, and the error that still appears."""

import html
import re
import shlex

import pytest

from scena.commands.main import main
from scripts.record_terminal import IMAGE, SESSION


def shown() -> str:
    """The text of the image, without line breaks and spaces."""
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", IMAGE.read_text(encoding="utf-8"))
    return re.sub(r"\s", "", html.unescape("".join(texts)))


def test_every_command_is_shown_and_exists(capsys: pytest.CaptureFixture[str]) -> None:
    for command in SESSION:
        assert command.replace(" ", "") in shown(), "python -m scripts.record_terminal makes the image again"
        name, *words = shlex.split(command)[1:]
        known = words[:1] if name == "train" else []  # the run `digits` is not here
        assert main([name, *known, "--help"]) == 0
        text = capsys.readouterr().out
        assert all(word in text for word in words if word.startswith("--trainer."))


def test_the_error_is_the_one_that_appears(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(SESSION[-1])[1:]) == 2
    assert capsys.readouterr().err.replace(" ", "").strip().replace("\n", "") in shown()


def test_the_run_was_killed_and_resumed() -> None:
    text = shown()
    assert 0 < text.index("Epoch2/4:") < text.index("Killed") < text.index("Epoch4/4:") < text.index("Done:digits")
