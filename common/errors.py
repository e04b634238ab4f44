"""Invalid input: the exception for it, how checks report it, and how messages show it."""

from collections.abc import Callable

# How many characters of a cell, or of other text from a file, a message shows.
MAX_SHOWN = 80

# What a check calls with the message of every fault that it finds: `stop` raises `InputError`; a
# function that returns, such as the `append` of a list, lets the check go on and find them all.
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
    """Return a text from a file in quotes, for a message: printable, and cut if it is long."""
    return f"'{printable(str(text)[: MAX_SHOWN + 1], MAX_SHOWN)}'"


def printable(text: str, max_length: int | None = None) -> str:
    """Return a text, cut to a length if one is given, with all unprintable characters escaped as in
    Python: line ends, control characters, half a surrogate pair.
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
