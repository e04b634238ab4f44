"""The one exception that stands for a fault in the user's input."""


class InputError(ValueError):
    """A file, a column, a value or a flag that the user gave is wrong.

    The message is one line that names the file, the column, the row and the value, and says what
    was expected. `common.cli.run` prints it and ends the script with exit code 2.
    """
