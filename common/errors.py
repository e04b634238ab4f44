"""Faults in the user's input: the one exception that stands for them, and what to do with one."""

from collections.abc import Callable

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
