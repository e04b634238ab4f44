"""A terminal of 80 columns for the tests: what a script shows on it, line by line."""

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
    """Run Python with a terminal as its output; return the exit code, the lines that stay on the
    screen (of a progress bar, its last state), and all states of all lines, in their order.
    """
    import pty
    import termios

    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, COLUMNS))
    words, env = [sys.executable, *map(str, command)], {**os.environ, **environment}
    with subprocess.Popen(words, cwd=cwd, env=env, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        written = b""
        # Of Linux, where the other side has been closed.
        with contextlib.suppress(OSError):
            while part := os.read(ours, 1 << 16):
                written += part
        code = process.wait()
    os.close(ours)
    return code, *_show(written.decode())


def _show(written: str) -> tuple[list[str], list[str]]:
    """Return the lines that stay, and every state of each line."""
    lines, row, states = [""], 0, []
    for move, text in re.findall(r"(\r\n|[\r\n]|\x1b\[A|^)([^\r\n\x1b]*)", written):
        row += {"\n": 1, "\r\n": 1, "\x1b[A": -1}.get(move, 0)
        lines += [""] * (row + 1 - len(lines))
        # Bars write whole lines: all moves but that up go to the beginning of a line.
        lines[row] = text + lines[row][len(text) :]
        states.append(text)
    return [line.rstrip() for line in lines], states
