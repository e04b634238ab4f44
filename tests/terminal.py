"""A terminal of 80 columns for the tests, and the lines that a script shows on it."""

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

COLUMNS = 80


def run_on_terminal(
    command: Sequence[object], cwd: Path, environment: Mapping[str, str]
) -> tuple[int, list[str], list[str]]:
    """Run Python with a terminal as its output.

    Returns
    -------
    exit code
    lines that stay on the screen
        The line of a progress bar is its last state.
    states of all lines
        Every text that has been written as a line, or over one, in the order of writing.
    """
    import pty
    import termios

    our_end, its_end = pty.openpty()
    termios.tcsetwinsize(its_end, (24, COLUMNS))
    words = [sys.executable, *map(str, command)]
    env = {**os.environ, **environment}
    with subprocess.Popen(words, cwd=cwd, env=env, stdout=its_end, stderr=its_end) as process:
        os.close(its_end)
        written = b""
        # Linux raises an error at the end, when the process has closed the terminal.
        with contextlib.suppress(OSError):
            while part := os.read(our_end, 1 << 16):
                written += part
        code = process.wait()
    os.close(our_end)
    return code, *_show(written.decode())


def _show(written: str) -> tuple[list[str], list[str]]:
    """Return the lines that stay on the screen, and the states of all lines."""
    up = "\x1b[A"
    rows_by_move = {"\n": 1, "\r\n": 1, up: -1}
    lines = [""]
    row = 0
    states = []
    # A text follows a move of the cursor: to the next line, to the margin, or up by a line.
    for move, text in re.findall(r"(\r\n|[\r\n]|\x1b\[A|^)([^\r\n\x1b]*)", written):
        row += rows_by_move.get(move, 0)
        if row == len(lines):
            lines.append("")
        # A text begins at the left margin, also after a move up: bars write whole lines.
        lines[row] = text + lines[row][len(text) :]
        states.append(text)
    return [line.rstrip() for line in lines], states
