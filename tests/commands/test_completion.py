"""Tab completes commands, scenarios and the flags of the current selection."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scena.commands.inspect.completion import suggest
from scena.commands.main import command_names, main
from scena.params.cli.completion import FILES

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


def test_a_scenario_that_does_not_exist_leaves_the_options() -> None:
    assert not [word for word in suggest(["train", "there.is.none", "--x"], "") if not word.startswith("--")]


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


def test_every_command_completes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "runs/a/best").mkdir(parents=True)
    (tmp_path / "runs/a/trainer_params.json").write_text("{}")
    (tmp_path / "runs/a/best/scenario.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert {"write", "convert", "info", "preview"} == set(suggest(["records"], ""))
    for name in command_names():
        assert suggest(name.split(), "--"), name
        assert "--help" in suggest(name.split(), "--"), name
    assert suggest(["resume"], "ru") == ["runs/a", FILES]
    assert suggest(["lav"], "") == ["runs/a/best", FILES]
    assert suggest(["lav", "runs/a/best"], "ru")[:2] == ["runs/a/best", FILES]  # several models
    assert suggest(["completion"], "") == ["bash", "zsh"]
    assert suggest(["import-checkpoint", "x"], "classi")[:1] == ["classification"]
    assert suggest(["experiment"], "") == [FILES]


def test_options_of_a_command_complete_with_their_values() -> None:
    full = "examples.tutorial.full"
    assert {"yaml", "command", "json", "origins"} == set(suggest(["params", full, "--as"], ""))
    assert {"--as", "--all", "--plot", "--model.graph"} <= set(suggest(["params", full], "--"))
    assert "--plot_lr" not in suggest(["params", full], "--")
    assert suggest(["runs", "--plot"], "") == [FILES] and "--sort" in suggest(["runs", "--reverse"], "--s")
    assert {"tpe", "random", "grid"} == set(suggest(["tune", full, "--sampler"], ""))
    assert "--model.graph" in suggest(["launch", "--workers", "2", "train", full], "--model")
    assert suggest(["launch", "--workers", "2"], "")[:2] == ["train", "resume"]
    assert "--output" in suggest(["records", "convert"], "--") and "--splits" in suggest(["records", "convert"], "--")
    assert "--images" in suggest(["records", "write"], "--")
