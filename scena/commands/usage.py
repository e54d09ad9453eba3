"""Help texts that commands bring themselves, folded to the width of the terminal."""

import re

FLAG = re.compile(r"( +\S.*?(?: {2,}))(?=\S)")
"""`  --flag VALUE   ` of a line that goes on with what the flag means."""


def print_usage(text: str) -> None:
    """Prints a help text; lines that are too long for the terminal go on below what they say.

    Args:
        text: usage lines, paragraphs that begin at the margin, and indented lines such as `  --flag VALUE   what it does`.
    """
    from scena.params.cli.help import help_width

    width = help_width() - 1
    print("\n".join(line for block in _blocks(text) for line in _folded(block, width)))


def _blocks(text: str) -> list[str]:
    """The lines of a text, where those that only go on with a paragraph or with the meaning of a flag are joined to it."""
    blocks: list[str] = []
    column = 0
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip())
        goes_on = bool(line and blocks and blocks[-1]) and (indent == column and not line.startswith("usage: "))
        if goes_on and not blocks[-1].startswith("usage: ") and not blocks[-1].endswith(":"):
            blocks[-1] += f" {line.strip()}"
            continue
        blocks.append(line)
        flag = FLAG.match(line)
        column = flag.end() if flag else 0 if indent == 0 else -1
    return blocks


def _folded(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    import textwrap

    usage = line.startswith(("usage: ", "       scena "))
    if usage:  # what is in brackets stays together
        line = re.sub(r"\[[^]]*\]", lambda found: found[0].replace(" ", "\0"), line)
    lines = textwrap.wrap(
        line,
        width,
        subsequent_indent=" " * (len("usage: ") + 4 if usage else _hang(line)),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [folded.replace("\0", " ") for folded in lines]


def _hang(line: str) -> int:
    """The column in which what a line says begins."""
    flag = FLAG.match(line)
    return flag.end() if flag else len(line) - len(line.lstrip())
