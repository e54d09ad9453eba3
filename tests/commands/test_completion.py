"""Tab completes commands, scenarios and the flags of the current selection."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scena.commands.completion import suggest
from scena.commands.main import main

ROOT = Path(__file__).parents[2]


def test_the_first_word_is_a_command() -> None:
    assert {"train", "lav", "evaluate", "predict", "resume"} <= set(suggest([], ""))


def test_the_second_word_of_train_is_a_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert "examples.tutorial.full" in suggest(["train"], "exa")


def test_flags_follow_the_selection() -> None:
    before = ["train", "examples.tutorial.full", "--model.graph", "MLP"]
    assert {"MLP", "CNN"} <= set(suggest(before[:3], ""))
    flags = suggest(before, "--model.graph.")
    assert "--model.graph.nodes" in flags and "--model.graph.filters" not in flags


def test_nonsense_gives_nothing_and_no_error() -> None:
    assert suggest(["train", "there.is.none", "--x"], "") == []


def test_bash_completes_with_the_printed_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    (tmp_path / "code.sh").write_text(capsys.readouterr().out)
    program = Path(sys.executable).with_name("scena")
    if not program.is_file():
        program = Path(shutil.which("scena") or pytest.skip("the scena script is not installed in this environment"))
    script = f"""
        PATH={program.parent}:$PATH; source {tmp_path}/code.sh
        COMP_LINE='scena train examples.tutorial.full --model.graph CNN --model.graph.f'; COMP_POINT=${{#COMP_LINE}}
        COMP_WORDS=(scena train examples.tutorial.full --model.graph CNN --model.graph.f); COMP_CWORD=5
        COMP_TYPE=9; COMP_KEY=9
        _python_argcomplete scena
        echo "REPLY ${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["REPLY", "--model.graph.filters"]
