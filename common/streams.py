"""Printing that never ends a script: characters that cannot be shown, closed and full streams.

This module needs the standard library only: `common.requirements` uses it.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO, cast


def prepare_streams() -> None:
    """Prepare stdin, stdout and stderr of this process, before anything is printed."""
    _open_closed_streams()
    # A console may lack characters: on Windows its encoding is often cp1252. Print an escape for a
    # character that the console lacks, instead of failing. Python does so for stderr by itself.
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _open_closed_streams() -> None:
    """Open the null device in place of each standard stream that is closed.

    A shell closes stdout, for example, if it starts the process with ``>&-``.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # The descriptor is closed. `os.open` opens the null device with the lowest free
            # descriptor, which is this one. If it stayed closed, the next file that is opened would
            # get this descriptor. The output of libraries and child processes would then go into
            # that file.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    # If a descriptor was closed when Python started, `sys.stdout` or `sys.stderr` is None. The
    # streams that replace it are never closed, since the process may print until it ends.
    if sys.stdout is None:
        sys.stdout = _nowhere()
    if sys.stderr is None:
        sys.stderr = _nowhere()


def _nowhere() -> TextIO:
    """Return a stream that drops what is written to it."""
    return Path(os.devnull).open("w", encoding="utf-8")


@contextlib.contextmanager
def safe_printing() -> Iterator[None]:
    """Let this process continue if stdout or stderr cannot be written to.

    The reader of a pipe, such as `head`, may have ended, or the disk may be full. The printed text
    is then lost, but the script goes on to write its files.

    Raises
    ------
    OSError
        At the end, if stdout has failed. A pipe whose reader has ended does not count as a failure.
    """
    output = _SafeStream(sys.stdout)
    messages = _SafeStream(sys.stderr)
    try:
        with (
            contextlib.redirect_stdout(cast(TextIO, output)),
            contextlib.redirect_stderr(cast(TextIO, messages)),
        ):
            yield
    finally:
        output.finish()
        messages.finish()
    if output.error is not None and not isinstance(output.error, BrokenPipeError):
        raise OSError(output.error.errno, os.strerror(output.error.errno or 0), "stdout")


class _SafeStream:
    """Writes to a stream until that fails, and drops what is printed later."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        # The first error of the stream.
        self.error: OSError | None = None

    def write(self, text: str) -> int:
        """Write a text; return its length."""
        if self.error is None:
            try:
                self._stream.write(text)
            except OSError as error:
                self.error = error
        return len(text)

    def flush(self) -> None:
        """Write what is buffered."""
        if self.error is None:
            try:
                self._stream.flush()
            except OSError as error:
                self.error = error

    def finish(self) -> None:
        """Write what is buffered, at the end.

        Python flushes stdout once more when it ends. If the stream has failed, this flush would
        fail too. So the text that is left goes to the null device.
        """
        self.flush()
        if self.error is not None:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
