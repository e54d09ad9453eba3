"""Runs the code of one page, in order, in the current folder: `python -m tests.docs.run_page docs/parameters.md`.

All Python blocks of a page share one namespace and one process. Each `scena` command has a process of its own, forked from a copy of
this one as it was before the first block: where TensorFlow is imported already, as in the tests, it is there at once.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import types
from pathlib import Path

from tests.docs.blocks import Block, Command, read_blocks, read_commands, repository_text
from tests.zygote import Zygote

PLAIN = re.compile(r"(?:python -m )?scena( [^;|&<>$`()~]*)")
"""A command that needs no shell."""


def run_page(arguments: list[str]) -> None:
    """Runs every block of a page that is to be tested; the first failure ends it."""
    page = Path(arguments[0]).resolve()
    zygote = Zygote.copied()
    module = types.ModuleType("page")
    sys.modules["page"] = module  # classes defined on the page know where they come from
    for block in read_blocks(page):
        if block.no_test is not None:
            continue
        if block.title is not None:
            place_file(block)
        elif block.language == "python":
            exec(compile(block.padded(), str(page), "exec"), module.__dict__)
        elif block.language == "console":
            for command in read_commands(block):
                run_command(command, block, zygote)
    zygote.close()


def place_file(block: Block) -> None:
    """A block with a title is a file: equal to the repository's file of that name, or written for the page to use."""
    original = repository_text(str(block.title))
    if original is not None:
        if original.strip() != block.code.strip():
            sys.exit(f"{block.place}: differs from {block.title}; `make format` copies it.")
    else:
        target = Path(str(block.title))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(block.code, encoding="utf-8")


def run_command(command: Command, block: Block, zygote: Zygote) -> None:
    """Runs a command and compares its output, or (if not asked to run it) lets `scena` check its flags."""
    words = block.test.replace(",", " ").split()
    for_real = "run" in words
    if not for_real and not re.match(r"(python -m )?scena\b", command.text):
        sys.exit(f"{block.place}: `{command.text}` is not tested; mark the block <!-- test: run -->, or make it ```sh.")
    text = command.text if for_real else f"{command.text} --help"
    expected_status = int(words[words.index("exit") + 1]) if "exit" in words else 0
    plain = PLAIN.fullmatch(text)
    status, output = run_forked(shlex.split(plain[1]), zygote) if plain else run_in_shell(text)
    if status != expected_status:
        sys.exit(f"{block.place}: `{text}` ended with status {status}:\n{output}")
    if for_real:
        compare(command, output, block)


def run_forked(arguments: list[str], zygote: Zygote) -> tuple[int, str]:
    """Runs `scena` here; returns its status and what it wrote."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        status = zygote.run(*arguments, log=log, folder=Path.cwd(), environment={"NO_COLOR": "1"})
        return status, log.read_text(encoding="utf-8")


def run_in_shell(text: str) -> tuple[int, str]:
    """Runs any command here; returns its status and what it wrote."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", text],
        env=os.environ | {"PATH": path, "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def compare(command: Command, output: str, block: Block) -> None:
    """Every line shown, except those with `…`, appears in the output, in this order (spaces do not count)."""
    lines = iter(" ".join(line.split()) for line in output.splitlines())
    for shown in command.shown:
        wanted = " ".join(shown.split())
        if wanted and "…" not in wanted and wanted not in lines:
            sys.exit(f"{block.place}: `{command.text}` does not print {shown!r} (any more); it prints:\n{output}")


if __name__ == "__main__":
    run_page(sys.argv[1:])
