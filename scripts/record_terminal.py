"""Records the terminal sessions of README and documentation from real runs.

`python -m scripts.record_terminal` writes all of `docs/images/terminal*.svg`, `python -m scripts.record_terminal help debug` some of
them. Each command runs in a terminal of its own, as a user would see it: colors, the bar while an epoch runs, the kill.
"""

import io
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs/images"
WIDTH = 100
KILLED_AFTER = "Epoch 3/4"
"""The first command of the README is killed soon after it has printed this."""
MISTAKE = ROOT / "scripts/terminal_mistake.py"


@dataclass
class Session:
    """Commands that are shown with what they print."""

    commands: list[str]
    before: list[str] = field(default_factory=list)
    """Commands that are run first, and not shown."""
    kill_after: str | None = None


SESSIONS = {
    "terminal": Session(
        [
            "scena train examples.tutorial.min --trainer.epochs 4 --trainer.random_seed 1 --trainer.output_dir digits",
            "scena resume digits",
            "scena lav digits/best --lav.print_limit 2",
            "scena train examples.tutorial.full --model.graph CNN --model.graph.nodes 100",
        ],
        kill_after=KILLED_AFTER,
    ),
    "terminal-help": Session(["scena train examples.tutorial.full --help decay"]),
    "terminal-debug": Session(
        [
            "sed -n 20,23p digits.py",
            "scena train digits.py",
            "scena train digits.py --scenario.debug_graph_construction",
        ],
        before=[f"cp {MISTAKE} digits.py"],
    ),
    "terminal-compare": Session(
        ["scena runs adam sgd --group", "scena compare adam sgd"],
        before=[
            f"scena train examples.tutorial.min --seeds 5 --trainer.epochs 2 --trainer.random_seed 1 {flags}"
            for flags in (
                "--trainer.output_dir adam",
                "--optimizer SGD --optimizer.momentum 0.9 --trainer.output_dir sgd",
            )
        ],
    ),
}
"""The sessions by the name of their image. The last command of `terminal` has to fail, as have those of `terminal-debug`."""
COLORS = [(240, 113, 120), (140, 205, 130), (235, 200, 120), (120, 165, 245), (200, 150, 235), (110, 200, 210)]
BACK, FRONT, GRAY, WHITE = (24, 27, 37), (220, 223, 232), (110, 116, 136), (255, 255, 255)
THEME = TerminalTheme(BACK, FRONT, [BACK, *COLORS, FRONT], [GRAY, *COLORS, WHITE])


def main() -> None:
    """Records the sessions that are named, or all."""
    for name in sys.argv[1:] or SESSIONS:
        record(name)


def record(name: str) -> None:
    """Runs a session and draws it."""
    session = SESSIONS[name]
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    with tempfile.TemporaryDirectory() as folder:
        for command in session.before:
            run(command, Path(folder), None)
        for number, command in enumerate(session.commands):
            kill_after = session.kill_after if number == 0 else None
            output = run(command, Path(folder), kill_after)
            assert "Traceback" not in output, output
            console.print(Text.assemble(("$ ", "bold bright_black"), (command, "bold")), soft_wrap=False)
            console.print(Text.from_ansi(output.rstrip("\n")))
            if kill_after:
                console.print(Text("Killed", "bold red"), end=" ")
                epoch = re.findall(r"Epoch (\d+)/", output)[-1]
                where = f"  (kill -9 from another terminal, in the middle of epoch {epoch})"
                console.print(Text(where, "bright_black"))
            console.print()
    svg = console.export_svg(title="scena", theme=THEME, font_aspect_ratio=0.61, unique_id="terminal")
    image = IMAGES / f"{name}.svg"
    image.write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL))  # rich's fonts are on a web site
    print(f"{image}: {image.stat().st_size} bytes")


def run(command: str, folder: Path, kill_after: str | None) -> str:
    """What a terminal shows at the end of a command, or when it is killed soon after it has printed a text."""
    parent, child = pty.openpty()
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "COLUMNS": str(WIDTH),
        "LINES": "40",
        "TERM": "xterm-256color",
    }
    environment.pop("NO_COLOR", None)
    words = shlex.split(command)
    arguments = [sys.executable, "-m", *words] if words[0] == "scena" else words
    process = subprocess.Popen(
        arguments, cwd=folder, env=environment, stdin=child, stdout=child, stderr=child, start_new_session=True
    )
    os.close(child)
    received = b""
    deadline = None
    while True:
        if deadline is not None and time.monotonic() > deadline:
            os.killpg(process.pid, signal.SIGKILL)
            deadline = None
        try:
            part = os.read(parent, 65536)
        except OSError:  # the other side is closed
            break
        received += part
        if kill_after and kill_after.encode() in received and deadline is None:
            deadline, kill_after = time.monotonic() + 0.4, None
    process.wait()
    os.close(parent)
    return screen(received.decode("utf-8", "replace"))


def screen(text: str) -> str:
    """The lines that stay: a bar erases its line before it is drawn again, and goes up a line when it is done."""
    lines = [""]
    for found in re.finditer(r"\x1b\[2K|\x1b\[1A|\n|\r|\x1b\[\?25[hl]|(?:\x1b\[[\d;]*m|[^\x1b\r\n])+", text):
        if found[0] == "\n":
            lines.append("")
        elif found[0] == "\x1b[1A":
            lines.pop()
        elif found[0] == "\x1b[2K":
            lines[-1] = ""
        elif found[0] != "\r" and not found[0].startswith("\x1b[?"):
            lines[-1] += found[0]
    return "\n".join(line for line in lines if line)


if __name__ == "__main__":
    main()
