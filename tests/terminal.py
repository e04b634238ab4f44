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


@dataclass(frozen=True)
class Shown:
    """The lines that a program has shown on a terminal, and its exit code."""

    exit_code: int
    # The lines that stay on the screen. A progress bar is written over itself: only its last text
    # stays.
    lines: list[str]
    # Every text in the order of writing, also those that a later text has replaced.
    texts: list[str]


def run_on_terminal(command: Sequence[object], cwd: Path, environment: Mapping[str, str]) -> Shown:
    """Run Python with a terminal of 80 columns as its output."""
    import pty
    import termios

    our_end, its_end = pty.openpty()
    termios.tcsetwinsize(its_end, (24, COLUMNS))
    words = [sys.executable, *map(str, command)]
    env = {**os.environ, **environment}
    with subprocess.Popen(words, cwd=cwd, env=env, stdout=its_end, stderr=its_end) as process:
        os.close(its_end)
        written = b""
        # At the end of the output, Linux raises an error, because the process has closed the
        # terminal.
        with contextlib.suppress(OSError):
            while part := os.read(our_end, 1 << 16):
                written += part
        code = process.wait()
    os.close(our_end)
    # A program may overwrite what it has written: `lines` stay, `texts` holds everything.
    lines, texts = _show(written.decode())
    return Shown(code, lines, texts)


def _show(written: str) -> tuple[list[str], list[str]]:
    """Return the lines that stay on the screen, and every text that was written, in order.

    A program moves the cursor to overwrite lines, such as those of a progress bar.
    """
    up = "\x1b[A"
    rows_by_move = {"\n": 1, "\r\n": 1, up: -1}
    lines = [""]
    row = 0
    texts = []
    # Pairs of a cursor move and the text after it. The moves are: to the next line (\r\n or \n), to
    # the left margin (\r), up by a line (\x1b[A), and none at the beginning of `written` (^).
    for move, text in re.findall(r"(\r\n|[\r\n]|\x1b\[A|^)([^\r\n\x1b]*)", written):
        row += rows_by_move.get(move, 0)
        if row == len(lines):
            lines.append("")
        # The text overwrites the beginning of the line; the rest of a longer line stays. A real
        # terminal keeps the column in a move up, but progress bars go to column 0 before they
        # write.
        rest = lines[row][len(text) :]
        lines[row] = text + rest
        texts.append(text)
    return [line.rstrip() for line in lines], texts
