"""Invalid input: the one exception that stands for it, what to do with it, how to show it."""

from collections.abc import Callable

# How much of a cell, or of another text that a file holds, a message shows.
MAX_SHOWN = 80

# What a check does with a fault that it finds, given as the message of an `InputError`. A check
# that is told to note faults instead of raising them goes on, so that it finds all.
Report = Callable[[str], None]


class InputError(ValueError):
    """A file, a column, a value or a flag that the user gave is wrong.

    The message is one line that names the file, the column, the row and the value, and says what
    was expected. `common.cli.run` prints it and ends the script with exit code 2.
    """


def stop(fault: str) -> None:
    """Raise `InputError`: stop at the first fault, as every script but the checker does."""
    raise InputError(fault)


def quote(text: object) -> str:
    """Return a text from a file in quotes, for a message: on one line, and cut where it is long.

    Whatever a terminal would not print as it stands is escaped as Python would: line ends, control
    characters, half a surrogate pair.
    """
    return f"'{printable(str(text)[: MAX_SHOWN + 1], MAX_SHOWN)}'"


def printable(text: str, max_length: int | None = None) -> str:
    """Return a text with everything escaped that a terminal would not print as it stands.

    Parameters
    ----------
    text
        Any text.
    max_length
        Where to cut it; None: nowhere.
    """
    if not text.isprintable():
        text = "".join(
            character
            if character.isprintable()
            else character.encode("unicode_escape", "surrogatepass").decode("ascii")
            for character in text
        )
    if max_length is None or len(text) <= max_length:
        return text
    return f"{text[: max_length - 1]}…"


def one_line(message: str) -> str:
    """Return a message on a single line that any terminal can print."""
    return printable(" ".join(message.split()))
