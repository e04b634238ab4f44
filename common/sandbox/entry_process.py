"""The operating system's process of an entry: its start, its messages, its output, its end."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Generic, TypeVar

from common.arrays import Array
from common.errors import InputError
from common.sandbox.inside import channel
from common.sandbox.inside.messages import Call, Start

# Bytes that an entry may write to stdout and stderr. If it writes more, it is stopped.
_MAX_OUTPUT = 5_000_000
# Bytes at the end of the output that are kept.
_KEPT_OUTPUT = 100_000
# Seconds to wait for the rest of a reply that has begun.
_MAX_REPLYING = 10.0
# Seconds to wait for the exit code of a process that no longer replies.
_MAX_EXITING = 1.0
# Seconds to wait for the end of a process that was told to end.
_MAX_ENDING = 10.0
# Seconds to wait for the end of a thread that reads from a pipe.
_MAX_READING = 1.0

_Parsed = TypeVar("_Parsed")


class EntryError(InputError):
    """An entry broke a rule, or its process failed; the message names the call and the fault."""


@dataclass(frozen=True)
class Received(Generic[_Parsed]):
    """A reply of the process, and the array that came with the reply."""

    reply: _Parsed
    # The array; None if no array came with the reply.
    values: Array | None


class EntryProcess:
    """A process that runs `common.sandbox.inside`, to which it is connected by pipes.

    Parameters
    ----------
    folder
        Holds the program in `inside`, the entry's files in `entry` and an empty folder `tmp`. On
        Linux the process removes the folder when it ends.
    environment
        The environment variables of the process.
    seconds
        Wall time that the start of the process and all replies may take together. `restart_clock`
        restarts it.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], seconds: float) -> None:
        """Start the process, and a thread that reads what the process prints."""
        self._seconds = seconds
        self.restart_clock()
        # The end of the output, and the number of bytes of the whole output (see `_read_output`).
        self._output = bytearray()
        self._n_output = 0
        self._process = subprocess.Popen(
            # Let Python print without a buffer (-u): all that the entry prints must arrive, even if
            # its process is killed.
            [sys.executable, "-u", "-m", "inside", str(folder)],
            # `-m inside` runs the copy of `common.sandbox.inside` in the working folder.
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Give the process a process group of its own, which `_stop` can end as a whole.
            start_new_session=True,
        )
        self._output_thread = threading.Thread(target=self._read_output, daemon=True)
        self._output_thread.start()
        # The thread that sends the latest request to the process and reads the reply (see
        # `exchange`); None before the first request.
        self._exchange_thread: threading.Thread | None = None

    @property
    def output(self) -> str:
        """The end of what the process has written to stdout and stderr."""
        return self._output.decode("utf-8", "replace")

    def restart_clock(self) -> None:
        """Restart the clock: all replies from now on may take `seconds` in total."""
        self._deadline = time.monotonic() + self._seconds

    def exchange(
        self,
        request: Start | Call,
        arrays: Sequence[Array],
        parse: Callable[[dict[str, Any]], _Parsed],
    ) -> Received[_Parsed]:
        """Send a request, and wait for the reply.

        Parameters
        ----------
        request
            The request.
        arrays
            Arrays that are sent with the request.
        parse
            Makes the reply from the fields of a message. Any exception means that the message is
            not valid.

        Raises
        ------
        EntryError
            If no valid reply comes within the time limit.
        """
        # `talk` sets this event when the first byte of the reply comes, or when no reply can be
        # read.
        reply_has_begun = threading.Event()
        # `talk` puts the reply into this list, which stays empty without a valid reply.
        received: list[Received[_Parsed]] = []
        requests = self._process.stdin
        replies = self._process.stdout
        assert requests is not None and replies is not None

        def talk() -> None:
            """Send the request, wait for the reply, and put it into `received`.

            All that `talk` needs are variables of `exchange`: `request`, `arrays`, the pipes
            `requests` and `replies`, the event `reply_has_begun`, and `parse`, which makes the
            reply from the fields of a message.
            """
            # Writing fails if the process has ended. `exchange` then reports the missing reply.
            with contextlib.suppress(OSError, ValueError):
                channel.write(requests, asdict(request), arrays)
            # An entry that cheats may have written any bytes to the pipe, and reading them may
            # raise any exception.
            with contextlib.suppress(Exception):
                _wait_for_first_byte(replies)
                reply_has_begun.set()
                received.append(_parse_reply(channel.read(replies), parse))
            # Set the event also if reading has failed, so that `exchange` stops waiting.
            reply_has_begun.set()

        # Use a thread: writing to a process that hangs, or reading from it, may never end.
        exchange_thread = threading.Thread(target=talk, daemon=True)
        self._exchange_thread = exchange_thread
        exchange_thread.start()
        if not reply_has_begun.wait(self._deadline - time.monotonic()):
            self._stop()
            raise EntryError(f"has not finished; expected a whole game within {self._seconds:g} s")
        exchange_thread.join(_MAX_REPLYING)
        if not received:
            raise EntryError(self._explain_missing_reply())
        return received[0]

    def end(self) -> None:
        """End the process and everything that it has started."""
        self._stop()
        try:
            self._process.wait(_MAX_ENDING)
        except subprocess.TimeoutExpired:
            # On Linux, `_stop` only asks the supervisor to end. Now kill the supervisor.
            self._process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_MAX_ENDING)
        self._output_thread.join(_MAX_READING)
        if self._exchange_thread is not None:
            self._exchange_thread.join(_MAX_READING)
            if self._exchange_thread.is_alive():
                # The thread still reads from a pipe or writes to it. Closing this pipe would wait
                # for the thread. The thread may wait for ever, if a process of the entry has
                # survived and keeps the other end of the pipe open.
                return
        # `_read_output` closes stderr.
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError, ValueError):
                    pipe.close()

    def _explain_missing_reply(self) -> str:
        """Return the fault of an entry whose process has not replied."""
        # Each process serves one mask, which says which answers the entry has to predict.
        if self._n_output > _MAX_OUTPUT:
            return f"printed more than {_MAX_OUTPUT / 1e6:g} MB, expected at most that for one mask"
        try:
            # If the process has closed the pipe because it ends, its exit code comes soon.
            code = self._process.wait(_MAX_EXITING)
        except subprocess.TimeoutExpired:
            self._stop()
            return "closed or garbled the channel to the evaluator"
        if code >= 0:
            return f"its process ended with exit code {code}"
        # A negative code means that a signal has ended the process. Real-time signals have no name.
        number = -code
        names = {int(known): known.name for known in signal.Signals}
        return f"its process was ended by {names.get(number, f'signal {number}')}"

    def _read_output(self) -> None:
        """Read what the process writes to stderr, until it closes stderr or writes too much.

        Only the last `_KEPT_OUTPUT` bytes are kept.
        """
        assert self._process.stderr is not None
        with self._process.stderr as pipe:
            while block := os.read(pipe.fileno(), 1 << 16):
                self._n_output += len(block)
                self._output += block
                del self._output[:-_KEPT_OUTPUT]
                if self._n_output > _MAX_OUTPUT:
                    self._stop()
                    return

    def _stop(self) -> None:
        """Tell the process to end with everything that it has started."""
        if sys.platform == "linux":
            # `_process` is the supervisor of the entry (see `inside.supervisor`). On this signal,
            # SIGTERM, it ends the entry and everything that the entry has started.
            self._process.terminate()
        elif hasattr(os, "killpg"):
            # Kill the process group, even if the entry's own process has ended. The group keeps its
            # id as long as one of its processes runs, and the evaluator is not in the group.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        elif self._process.poll() is None:
            self._process.kill()


def _wait_for_first_byte(pipe: IO[bytes]) -> None:
    pipe.peek(1)  # type: ignore[attr-defined]


def _parse_reply(
    message: channel.Message, parse: Callable[[dict[str, Any]], _Parsed]
) -> Received[_Parsed]:
    """Return the reply that a message holds; any exception means that the message is not valid."""
    if len(message.arrays) > 1:
        raise ValueError("a reply has one array at most")
    values = message.arrays[0] if message.arrays else None
    return Received(parse(message.fields), values)
