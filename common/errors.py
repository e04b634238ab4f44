"""Invalid input: the exception for it, how checks report it, and how messages show it."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

# A message shows at most this many characters of a cell or of another text from a file.
MAX_SHOWN = 80

# A function that a check calls with each fault it finds. `stop` raises an error at the first fault;
# the method `append` of a list collects all faults in the list.
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
    # Cut the text before it is escaped, since it may be huge. Keep one character more than a
    # message shows, so that `printable` notices that the text is too long.
    start = str(text)[: MAX_SHOWN + 1]
    return f"'{printable(start, MAX_SHOWN)}'"


def count_rows(n_rows: int) -> str:
    """Return for instance " (7 such rows)", for a message that shows only the first of these rows.

    The result is "" if there is a single row.
    """
    return f" ({n_rows} such rows)" if n_rows > 1 else ""


def printable(text: str, max_length: int | None = None) -> str:
    """Return a text with unprintable characters escaped as in Python.

    If `max_length` is given, a longer text is shortened and ends in "…".
    """
    if not text.isprintable():
        # In a locale without UTF-8, Python reads the names of files as ASCII. It replaces each byte
        # that is not ASCII by a surrogate: the name "é" becomes "\udcc3\udca9". Turn surrogates
        # back into bytes, and decode the bytes as UTF-8. If this fails, keep the text.
        with suppress(UnicodeError):
            text = text.encode("utf-8", "surrogateescape").decode("utf-8")
        characters = []
        for character in text:
            if not character.isprintable():
                character = character.encode("unicode_escape").decode()
            characters.append(character)
        text = "".join(characters)
    if max_length is None or len(text) <= max_length:
        return text
    return f"{text[: max_length - 1]}…"


def without_folder(message: str, folder: Path) -> str:
    """Return a message that names the files in a folder without the path of the folder."""
    return message.replace(f"{folder}{os.sep}", "")


def one_line(message: str) -> str:
    """Return a message on a single line that any terminal can print."""
    return printable(" ".join(message.split()))
