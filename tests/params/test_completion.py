"""Completion of flags and values: the suggestions, and a real bash and zsh that ask for them."""

import functools
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import argcomplete
import pytest

from scena.params import Params, flag_completions, param
from scena.params.cli.completion import FILES, complete, shell_code
from tests.params.trees import Root

ROOT = Path(__file__).parents[2]


class Options(Params):
    export_dir: Path | None = param(None)
    verbose: bool = False


def suggested(line: str, beginning: str = "") -> list[str]:
    found = flag_completions(Root(), line.split(), beginning, options=Options)
    return [word for word in found if word.startswith(beginning) or word == FILES]


@pytest.mark.parametrize(
    ("line", "beginning", "expected"),
    [
        ("", "--model", ["--model.n_classes", "--model.graph", "--model.graph.filters", "--model.graph.dense"]),
        ("--model.graph MLP", "--model", ["--model.n_classes", "--model.graph.nodes", "--model.graph.activation"]),
        ("--model.graph MLP --model.graph.nodes 3", "--model.graph.n", []),
        ("--model.graph", "", ["CNN", "MLP"]),
        ("--model.graph", "M", ["MLP"]),
        ("--scenario.model.graph", "M", ["MLP"]),
        ("--early-stopping", "", ["EarlyStopping", "None"]),
        ("--early_stopping EarlyStopping --early_stopping.mode", "", ["min", "max"]),
        ("--data.dataset", "", ["digits", "mnist"]),
        ("--trainer.output_dir", "", [FILES]),
        ("--data.lists", "x", [FILES]),
        ("--config", "", [FILES]),
        ("--export_dir", "", [FILES]),
        ("--trainer.epochs", "", []),
        ("--", "--exp", ["--export_dir"]),
        ("", "--con", ["--config", "--config_set"]),
        ("--config x", "--con", ["--config_set"]),
        ("", "--he", ["--help"]),
        ("--data.processors Crop", "A", ["Augment"]),
        ("--wrong 3 --model.graph X", "--trainer.ep", ["--trainer.epochs"]),
        ("", "--n_ep", []),
    ],
)
def test_what_could_come_next(line: str, beginning: str, expected: list[str]) -> None:
    assert suggested(line, beginning) == expected


def test_after_a_bool_both_a_value_and_a_flag_may_come() -> None:
    found = suggested("--trainer.force_eager")
    assert found[:2] == ["True", "False"]
    assert "--model.graph" in found


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What the shell gets; argcomplete would write it to a descriptor that the shell has opened, and end this process."""
    output = io.StringIO()
    answer = functools.partialmethod(argcomplete.CompletionFinder.__call__, exit_method=sys.exit, output_stream=output)
    monkeypatch.setattr(argcomplete.CompletionFinder, "__call__", answer)
    monkeypatch.setattr(argcomplete.CompletionFinder, "_init_debug_stream", lambda self: None)
    monkeypatch.setattr(argcomplete.io, "debug_stream", io.StringIO())
    monkeypatch.setenv("_ARGCOMPLETE", "1")
    monkeypatch.setenv("_ARGCOMPLETE_IFS", "\n")
    return output


@pytest.mark.parametrize(
    ("line", "before", "beginning", "expected"),
    [
        ("prog ", [], "", ["train", "resume"]),
        ("prog train --model.gr", ["train"], "--model.gr", ["--model.graph", "--model.graph.filters", "--model.graph.dense"]),
        ("prog train --model.graph M", ["train", "--model.graph"], "M", ["MLP "]),
        ("prog train --model.graph=M", ["train", "--model.graph"], "M", ["--model.graph=MLP "]),
        ("prog train --trainer.note a=b", ["train", "--trainer.note"], "a=b", []),
    ],
)  # fmt: skip
def test_the_shell_gets_what_fits_the_word_at_the_cursor(
    line: str, before: list[str], beginning: str, expected: list[str],
    answered: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    def suggest(words: list[str], typed: str) -> list[str]:
        assert (words, typed) == (before, beginning)
        return flag_completions(Root(), words[1:], typed) if words else ["train", "resume"]

    monkeypatch.setenv("COMP_LINE", line)
    monkeypatch.setenv("COMP_POINT", str(len(line)))
    with pytest.raises(SystemExit) as caught:
        complete(suggest)
    assert caught.value.code == 0
    assert answered.getvalue().split("\n") == (expected or [""])


PROGRAM = """
#!{python}
# PYTHON_ARGCOMPLETE_OK
import os, sys
sys.path.insert(0, {root!r})
from scena.params.cli.completion import complete
from scena.params import flag_completions
from tests.params.trees import Root

def suggest(before, beginning):
    if not before:
        return ["train", "resume"]
    return flag_completions(Root(), before[1:], beginning)

if "_ARGCOMPLETE" in os.environ:
    complete(suggest)
print("not asked")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    program = tmp_path / "prog"
    program.write_text(PROGRAM.strip().format(python=sys.executable, root=str(ROOT)))
    program.chmod(0o755)
    (tmp_path / "runs.yaml").touch()
    (tmp_path / "rules").mkdir()
    return tmp_path


def bash(folder: Path, line: str) -> list[str]:
    """What a bash offers when Tab is pressed at the end of `line`."""
    script = f"""
{shell_code("bash", ["prog"])}
COMP_LINE={line!r}; COMP_POINT=${{#COMP_LINE}}; COMP_TYPE=9; COMP_WORDBREAKS=$' \\t\\n"\\'><=;|&(:'
COMP_WORDS=($COMP_LINE); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
$(complete -p prog | sed -n 's/.*-F \\([^ ]*\\).*/\\1/p') prog
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "--norc", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert not done.stderr, done.stderr
    return [word.rstrip() for word in done.stdout.splitlines() if word]


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("prog ", ["train", "resume"]),
        ("prog tr", ["train"]),
        ("prog train --model.gr", ["--model.graph", "--model.graph.filters", "--model.graph.dense"]),
        ("prog train --model.graph ", ["CNN", "MLP"]),
        ("prog train --model.graph MLP --model.graph.n", ["--model.graph.nodes"]),
        ("prog train --model.graph=M", ["MLP"]),
        ("prog train --config ru", ["rules/", "runs.yaml"]),
        ("prog train --zzz", []),
    ],
)
def test_a_real_bash(line: str, expected: list[str], folder: Path) -> None:
    assert sorted(bash(folder, line)) == sorted(expected)


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh here")
def test_a_real_zsh_loads_the_code(folder: Path) -> None:
    script = f"autoload -U compinit && compinit -D\n{shell_code('zsh', ['prog'])}\nprint ${{_comps[prog]}}"
    done = subprocess.run(["zsh", "-f", "-c", script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.stdout.strip().startswith("_python_argcomplete"), done.stderr


def test_both_shells_have_their_code() -> None:
    for shell in ("bash", "zsh"):
        assert "scena" in shell_code(shell)
