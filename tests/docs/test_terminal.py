"""The recorded terminal sessions show commands that exist, and the errors that still appear."""

import html
import re
import shlex
import shutil
from pathlib import Path

import pytest

from scena.commands.main import main
from scripts.record_terminal import IMAGES, MISTAKE, SESSIONS

SESSION = SESSIONS["terminal"].commands


def shown(name: str = "terminal") -> str:
    """The text of the image, without line breaks and spaces."""
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", (IMAGES / f"{name}.svg").read_text(encoding="utf-8"))
    return re.sub(r"\s", "", html.unescape("".join(texts)))


def squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)


@pytest.mark.parametrize("name", SESSIONS)
def test_every_session_is_recorded_and_in_the_documentation(name: str) -> None:
    for command in SESSIONS[name].commands:
        assert squeezed(command) in shown(name), f"python -m scripts.record_terminal {name} makes the image again"
    pages = [path.read_text(encoding="utf-8") for path in IMAGES.parent.rglob("*.md")]
    assert any(f"images/{name}.svg" in page for page in pages)


def test_every_command_of_the_readme_exists(capsys: pytest.CaptureFixture[str]) -> None:
    for command in SESSION:
        name, *words = shlex.split(command)[1:]
        known = words[:1] if name == "train" else []  # the run `digits` is not here
        assert main([name, *known, "--help"]) == 0
        text = capsys.readouterr().out
        assert all(word in text for word in words if word.startswith("--trainer."))


def test_the_error_is_the_one_that_appears(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(SESSION[-1])[1:]) == 2
    assert squeezed(capsys.readouterr().err) in shown()


def test_the_help_is_the_one_that_appears(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert main(shlex.split(SESSIONS["terminal-help"].commands[0])[1:]) == 0
    assert squeezed(capsys.readouterr().out) in shown("terminal-help")


def test_the_errors_of_a_graph_are_those_that_appear(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(MISTAKE, tmp_path / "digits.py")
    monkeypatch.chdir(tmp_path)
    for command in SESSIONS["terminal-debug"].commands[1:]:
        assert main(shlex.split(command)[1:]) == 1
        assert squeezed(capsys.readouterr().err) in shown("terminal-debug")


def test_the_run_was_killed_and_resumed() -> None:
    text = shown()
    assert (
        0
        < text.index("layer")
        < text.index("Epoch2/4:")
        < text.index("Killed")
        < text.index("Epoch4/4:")
        < text.index("Done:digits")
    )
