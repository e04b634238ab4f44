"""Invalid input: the exception for it, how checks report it, and how messages show it."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

# A message shows at most this many characters of a cell or of another text from a file.
MAX_SHOWN = 80

# A check calls this with every fault. `stop` raises at the first fault; the `append` of a list
# collects all faults.
Report = Callable[[str], None]


class InputError(ValueError):
    """The user's input is wrong.

    The message is one line with the file, column, row, value, and what was expected.
    """


def stop(fault: str) -> None:
    """Raise `InputError` with the fault.

    Scripts that stop at the first fault give this function to the checks as their `report`.
    """
    raise InputError(fault)


def quote(text: object) -> str:
    """Return a text in quotes for a message: printable, and shortened if it is long."""
    # Cut before escaping: the text may be huge. Keep one character more than is shown, by which
    # `printable` sees that the text is too long.
    start = str(text)[: MAX_SHOWN + 1]
    return f"'{printable(start, MAX_SHOWN)}'"


def printable(text: str, max_length: int | None = None) -> str:
    """Return a text with unprintable characters escaped as in Python.

    If `max_length` is given, a longer text is shortened and ends in "…".
    """
    if not text.isprintable():
        # Where Python takes the names of files for ASCII (a locale without UTF-8), it replaces each
        # other byte by a surrogate: the name "é" is read as "\udcc3\udca9". Restore the bytes, and
        # decode them as UTF-8.
        with suppress(UnicodeError):
            text = text.encode("utf-8", "surrogateescape").decode("utf-8")
        escaped = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
        text = "".join(escaped)
    if max_length is None or len(text) <= max_length:
        return text
    return f"{text[: max_length - 1]}…"


def without_folder(message: str, folder: Path) -> str:
    """Return a message that names the files in a folder without the path of the folder."""
    return message.replace(f"{folder}{os.sep}", "")


def one_line(message: str) -> str:
    """Return a message on a single line that any terminal can print."""
    return printable(" ".join(message.split()))
