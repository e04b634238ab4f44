"""A terminal of 80 columns for the tests, and the lines that a script shows on it."""

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

COLUMNS = 80
ROWS = 24


@dataclass(frozen=True)
class Shown:
    """The lines that a program has shown on a terminal, and its exit code."""

    exit_code: int
    # The lines that are on the screen at the end. A progress bar overwrites itself, so the lines
    # hold only its last text.
    lines: list[str]
    # Every text in the order of writing, also texts that a later text has overwritten.
    texts: list[str]


def run_on_terminal(command: Sequence[object], cwd: Path, environment: Mapping[str, str]) -> Shown:
    """Run Python with a terminal of 80 columns as its output.

    A pseudo-terminal has two ends: the process writes to one end, and this function reads what it
    has written from the other end.
    """
    # Windows lacks these modules, and the tests import this file there too.
    import pty
    import termios

    read_end, process_end = pty.openpty()
    termios.tcsetwinsize(process_end, (ROWS, COLUMNS))
    words = [sys.executable, *map(str, command)]
    env = {**os.environ, **environment}
    with subprocess.Popen(
        words, cwd=cwd, env=env, stdout=process_end, stderr=process_end
    ) as process:
        os.close(process_end)
        written = b""
        # When the process has ended and closed the terminal, Linux raises an error instead of
        # returning an empty text.
        with contextlib.suppress(OSError):
            while part := os.read(read_end, 65_536):
                written += part
        exit_code = process.wait()
    os.close(read_end)
    lines, texts = _show(written.decode())
    return Shown(exit_code, lines, texts)


def _show(written: str) -> tuple[list[str], list[str]]:
    """Return the lines that are on the screen at the end, and every text in the order of writing.

    A program may move the cursor to overwrite lines, such as the lines of a progress bar.
    """
    # How many rows each move takes the cursor down: \r\n and \n go to the next line, \r goes to the
    # left margin, and \x1b[A goes up by a line. The empty move stands for the beginning of
    # `written`, where a text may come without a move.
    rows_by_move = {"\r\n": 1, "\n": 1, "\r": 0, "\x1b[A": -1, "": 0}
    move_pattern = r"\r\n|[\r\n]|\x1b\[A|^"
    text_pattern = r"[^\r\n\x1b]*"
    lines = [""]
    row = 0
    texts = []
    # Split `written` into pairs: a move of the cursor, and the text after the move.
    for move, text in re.findall(f"({move_pattern})({text_pattern})", written):
        row += rows_by_move[move]
        if row == len(lines):
            lines.append("")
        # The text overwrites the beginning of the line; the rest of a longer line stays. When the
        # cursor moves up, a real terminal keeps it in its column. This can be ignored here, because
        # progress bars move to the left margin before they write.
        rest = lines[row][len(text) :]
        lines[row] = text + rest
        texts.append(text)
    return [line.rstrip() for line in lines], texts
