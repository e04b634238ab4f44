"""Change files as a user might between two commands, so that records of them no longer match."""

from pathlib import Path


def drop_last_line(path: Path) -> None:
    """Remove the last line of a text file."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:-1]), encoding="utf-8")


def add_line(path: Path) -> None:
    """Add a line to a CSV file: the last line again, with 99999 in the first column."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    _, *rest = lines[-1].split(",")
    path.write_text("".join([*lines, ",".join(["99999", *rest])]), encoding="utf-8")
