"""Invalid input: the exception for it, how checks report it, and how messages show it."""

from collections.abc import Callable

# How many characters of a cell, or of other text from a file, a message shows.
MAX_SHOWN = 80

# What a check calls with every fault: `stop` raises, a list's `append` lets it find them all.
Report = Callable[[str], None]


class InputError(ValueError):
    """The user gave something wrong: one line with file, column, row, value, what was expected."""


def stop(fault: str) -> None:
    """Raise `InputError`: stop at the first fault, as every script but the checker does."""
    raise InputError(fault)


def quote(text: object) -> str:
    """Return a text from a file in quotes, for a message: printable, and cut if it is long."""
    return f"'{printable(str(text)[: MAX_SHOWN + 1], MAX_SHOWN)}'"


def printable(text: str, max_length: int | None = None) -> str:
    """Return a text, cut to a length if given, with unprintable characters escaped as in Python."""
    if not text.isprintable():
        escaped = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
        text = "".join(escaped)
    if max_length is None or len(text) <= max_length:
        return text
    return f"{text[: max_length - 1]}…"


def one_line(message: str) -> str:
    """Return a message on a single line that any terminal can print."""
    return printable(" ".join(message.split()))
