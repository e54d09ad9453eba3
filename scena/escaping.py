"""Text from files, folders and clients as a terminal may show it. Pages have `html.escape`."""


def visible(text: str) -> str:
    """The text with control characters as escapes, so that a name can neither steer a terminal nor hide what follows; lines stay.

    Characters that only change the direction of text, and bytes of a name that are not text, are escaped too.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else _escaped(char) for char in text)


def one_line(text: str) -> str:
    """The same on one line, for a cell of a table."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def _escaped(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # how Python keeps a byte of a file name that is not text
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
