"""Write a machine-readable log of a long run: one line of JSON for every event."""

import argparse
import errno
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import provenance, running_script
from common.errors import InputError

# A function that logs an event, called as log_event(event, **values): `event` is the event's name,
# such as "step", and `values` are what to note about it.
LogEvent = Callable[..., None]

# Every line of a log begins with these bytes. `open_log` refuses other files.
_BEGIN = b'{"event": '


def add_log_flag(parser: argparse.ArgumentParser) -> None:
    """Add the flag ``--log``, the path of the log, to a script's parser; None by default."""
    help_text = "append what happens to FILE, a line of JSON each"
    parser.add_argument("--log", type=Path, metavar="FILE", help=help_text)


def ignore_event(event: str, **values: Any) -> None:
    """Do nothing: the `LogEvent` of a run without a log."""


def open_log(path: Path | None) -> LogEvent:
    """Open a log and log the start of the run.

    Parameters
    ----------
    path
        The log file, to which the run appends. With None, nothing is written.

    Returns
    -------
    function
        ``log_event(event, **values)`` appends a line with the event's name, the time (UTC), the
        seconds since the start and the values. Values are texts, numbers (NumPy's too) or lists of
        them. NaN and infinities, which JSON does not have, become null.

    Raises
    ------
    InputError
        If the file is not a log.
    """
    if path is None:
        return ignore_event
    path.parent.mkdir(parents=True, exist_ok=True)
    # The mode "a+" makes the file if it is missing, and allows reading a file that exists.
    with path.open("a+b") as file:
        file.seek(0)
        begin = file.read(len(_BEGIN))
        is_empty_or_log = begin in (b"", _BEGIN)
        if not is_empty_or_log:
            raise InputError(f"{path}: holds something else than a log, expected another --log")
    started = time.perf_counter()

    def log_event(event: str, **values: Any) -> None:
        seconds = round(time.perf_counter() - started, 3)
        append_line(path, {"event": event, "time": provenance.now(), "seconds": seconds, **values})

    words = running_script.arguments()
    log_event("start", command=[sys.argv[0], *words], options=provenance.options_of(words))
    return log_event


def append_line(path: Path, record: dict[str, Any]) -> None:
    """Append a record to a file as a line of JSON.

    One write appends the whole line, so that lines of several processes do not mix. If the last
    line was cut off, the new one still starts on a line of its own.

    Raises
    ------
    OSError
        If the disk has no room for the line.
    """
    # `json.dumps` writes NaN and Infinity, which are not JSON. Read the text back with
    # `parse_constant`, which replaces them by None, and write the result again.
    text = json.dumps(record, default=_plain)
    plain = json.loads(text, parse_constant=lambda name: None)
    line = json.dumps(plain, ensure_ascii=False) + "\n"
    # Write without a buffer, so that one system call writes the line. The mode "a+" also allows
    # reading the last byte of the file.
    with path.open("a+b", buffering=0) as file:
        # The mode "a+" opens a file at its end, so the position is the size of the file.
        size = file.tell()
        if size > 0:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                # The last line was cut off. End it.
                line = "\n" + line
        # File names may hold surrogates, which UTF-8 cannot encode. Write them as escapes such as
        # \udcff.
        data = line.encode("utf-8", "backslashreplace")
        if file.write(data) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def _plain(value: Any) -> Any:
    """Convert a value of a type that JSON lacks: NumPy values to Python's, others to text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
