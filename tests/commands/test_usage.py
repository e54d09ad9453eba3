"""What follows from the declaration of a command: its place in `scena --help`, its help, and that it fits into a terminal."""

import importlib
import pkgutil

import pytest

import scena.commands
from scena.commands.command import Command
from scena.commands.main import ALIASES, GROUPS, command_names, find_command, main

NAMES = [name for _, commands in GROUPS.values() for name in commands]


def test_every_command_is_listed_in_the_group_of_its_folder() -> None:
    for module in pkgutil.walk_packages(scena.commands.__path__, "scena.commands."):
        importlib.import_module(module.name)
    found = {
        command.name: command.__module__.split(".")[2]
        for command in subclasses(Command)
        if "name" in vars(command) and command.__module__.startswith("scena.")
    }
    assert found == {name: folder for folder, (_, commands) in GROUPS.items() for name in commands}
    assert set(command_names()) >= {*found, *ALIASES}


def subclasses(cls: type[Command]) -> list[type[Command]]:
    return [found for child in cls.__subclasses__() for found in (child, *subclasses(child))]


@pytest.mark.parametrize("name", ["", "records", *NAMES])
def test_help_fits_into_the_terminal(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*name.split(), "--help"]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert "\n\n\n" not in shown
    if name in NAMES:
        words = shown.split()
        assert shown.startswith(f"usage: scena {name}")
        assert set(find_command(name).about().split()) <= set(words)
        for field in find_command(name).options_class().__params__.values():
            flag = f"--{field.flat if isinstance(field.flat, str) else field.name}"
            assert (field.positional or flag) in words
            assert not any(f"--{alias}" in words for alias in field.aliases)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("lav", "scena lav: error: name the model first: scena lav MODEL… [--flag value …]. MODEL is a run, its best or"),
        ("new", "scena new: error: name the folder first: scena new FOLDER [--flag value …]."),
        ("new a b", "scena new: error: unexpected 'b': scena new FOLDER [--flag value …]"),
        ("devices here", "scena devices: error: unexpected 'here': scena devices"),
        ("completion", "scena completion: error: name the shell first: scena completion SHELL. SHELL is the shell to complete in."),
        ("completion fish", "scena completion: error: SHELL: expected one of bash, zsh, received 'fish'"),
        ("import-checkpoint a", "scena import-checkpoint: error: name the scenario first: scena import-checkpoint CHECKPOINT"),
        ("params", "scena params: error: name the scenario or run first: scena params SCENARIO|RUN [--flag value …]."),
        ("runs --sotr best", "scena runs: error: --sotr does not exist; did you mean --sort?"),
        ("schema examples.tutorial.min --wrong", "scena schema: error: --wrong does not exist; see --help"),
        ("zoo --wrong", "scena zoo: error: --wrong does not exist; see --help"),
        ("zoo -x", "scena zoo: error: unexpected '-x': a value needs its flag before it"),
        ("lav a --export_dir b", "scena lav: error: MODEL is given twice, also as --export_dir"),
        ("train examples.tutorial.min --trsut", "scena train: error: --trsut does not exist; did you mean --trust?"),
        ("train examples.tutorial.min more", "scena train: error: unexpected 'more': a value needs its flag before it"),
        ("launch --workers 2", "scena launch: error: scena launch runs train or resume: scena launch --workers 2 train"),
        ("adapt run", "scena adapt: error: --out is required: the new export directory (expected a path)"),
        ("records", ""),
        ("records wirte", "scena: error: there is no command 'records wirte' (did you mean records write"),
        ("recrods", "scena: error: there is no command 'recrods'"),
    ],
)  # fmt: skip
def test_wrong_arguments_show_the_usage(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    assert capsys.readouterr().err.startswith(message)


def test_help_of_a_command_shows_the_arguments_that_were_given(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "zoo", "ResNet*"]) == 0
    assert capsys.readouterr().out.startswith("usage: scena zoo ResNet* [--flag value …]\n")
    assert main(["zoo", "--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: scena zoo [NAME…] [--flag value …]\n")
    assert main(["launch", "--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: scena launch [--flag value …] train|resume …\n")
    assert main(["launch", "--workers", "2", "resume", "--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: scena resume RUN [--flag value …]\n")
