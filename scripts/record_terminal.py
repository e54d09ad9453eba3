"""Records the terminal session of the README from a real run: `python -m scripts.record_terminal` writes `docs/images/terminal.svg`.

Each command runs in a terminal of its own, as a user would see it: colors, the bar while an epoch runs, the kill.
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
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).parents[1]
IMAGE = ROOT / "docs/images/terminal.svg"
WIDTH = 100
KILLED_AFTER = "Epoch 3/4"
"""The first command is killed a second after it has printed this."""
SESSION = [
    "scena train examples.tutorial.min --trainer.epochs 4 --trainer.random_seed 1 --trainer.output_dir digits",
    "scena resume digits",
    "scena lav digits/best --lav.print_limit 2",
    "scena train examples.tutorial.full --model.graph CNN --model.graph.nodes 100",
]
"""The commands that are shown. The last one has to fail."""
COLORS = [(240, 113, 120), (140, 205, 130), (235, 200, 120), (120, 165, 245), (200, 150, 235), (110, 200, 210)]
BACK, FRONT, GRAY, WHITE = (24, 27, 37), (220, 223, 232), (110, 116, 136), (255, 255, 255)
THEME = TerminalTheme(BACK, FRONT, [BACK, *COLORS, FRONT], [GRAY, *COLORS, WHITE])


def main() -> None:
    """Runs the session and draws it."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    with tempfile.TemporaryDirectory() as name:
        for number, command in enumerate(SESSION):
            output = run(command, Path(name), kill_after=KILLED_AFTER if number == 0 else None)
            console.print(Text.assemble(("$ ", "bold bright_black"), (command, "bold")), soft_wrap=False)
            console.print(Text.from_ansi(output.rstrip("\n")))
            if number == 0:
                console.print(Text("Killed", "bold red"), end=" ")
                console.print(Text("  (kill -9 from another terminal, in the middle of epoch 3)", "bright_black"))
            console.print()
    svg = console.export_svg(title="scena", theme=THEME, font_aspect_ratio=0.61, unique_id="terminal")
    IMAGE.write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL))  # rich's fonts are on a web site
    print(f"{IMAGE}: {IMAGE.stat().st_size} bytes")


def run(command: str, folder: Path, kill_after: str | None) -> str:
    """What a terminal shows at the end of a command, or when it is killed a second after it has printed a text."""
    parent, child = pty.openpty()
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "COLUMNS": str(WIDTH),
        "LINES": "40",
        "TERM": "xterm-256color",
    }
    environment.pop("NO_COLOR", None)
    arguments = [sys.executable, "-m", *shlex.split(command)]
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
            deadline, kill_after = time.monotonic() + 1, None
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
