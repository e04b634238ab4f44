"""An entry of task 4 in a process of its own, with limits, which is given what is revealed only."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from common import layout
from common.adaptive import entry_runner, isolation
from common.adaptive.entry_files import unpack
from common.adaptive.game import EntryError
from common.arrays import Array, IntArray
from common.errors import InputError, one_line

# An entry that writes more to stdout and stderr in one mask is stopped; what is kept of the end.
_MAX_OUTPUT, _KEPT_OUTPUT = 5_000_000, 100_000
# Seconds to wait for the end of a process, the rest of a reply, and the end of what reads a pipe.
_MAX_ENDING, _MAX_REPLYING, _MAX_READING = 10.0, 10.0, 1.0
# Of a fault, which the entry may have made up, so many characters are shown.
_MAX_FAULT = 1000

_Reply = tuple[dict[str, Any], list[Array]]


class Limits(NamedTuple):
    """Seconds of wall time for one game, from the start on, and bytes of address space (Linux)."""

    seconds: float = 600.0
    memory: int = 8 << 30


class EntryProcess:
    """An entry, folder or zip, in a process: a fresh one in a fresh copy of its files for every
    `with` block, to which `files` are added by the names that they get; the folder of `hidden` is
    out of reach, and `changed` tells for each method which of its arguments the entry changed.
    """

    def __init__(
        self, submission: Path, files: Mapping[str, Path], limits: Limits, hidden: Path
    ) -> None:
        self._submission, self._files, self._limits = submission, files, limits
        self._hidden = hidden
        self.changed: dict[str, set[str]] = {}
        self.memory_limited, self.isolation = False, ""
        self._earlier, self._tail = "", bytearray()

    @property
    def output(self) -> str:
        """The end of what each process has written to stdout and stderr."""
        return self._earlier + self._tail.decode("utf-8", "replace")

    def __enter__(self) -> "EntryProcess":
        """Start a process, and make the entry in it; `EntryError` if that fails."""
        self._earlier, self._tail, self._n_output = self.output, bytearray(), 0
        self._deadline = time.monotonic() + self._limits.seconds
        with contextlib.ExitStack() as stack:
            folder = tempfile.TemporaryDirectory(prefix="task_4_entry_", ignore_cleanup_errors=True)
            base = Path(stack.enter_context(folder))
            unpack(self._submission, base / "entry")
            for name, path in self._files.items():
                shutil.copyfile(path, base / "entry" / name)
            (base / "tmp").mkdir()
            shutil.copy(entry_runner.__file__, base)
            self._process = subprocess.Popen(
                # Unbuffered, so that what the entry prints comes before what ends it.
                [sys.executable, "-u", shutil.copy(isolation.__file__, base)],
                cwd=base / "entry",
                env=self._environment(base / "tmp"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # A group of its own, so that what the entry starts ends with it.
                start_new_session=True,
            )
            self._reading = self._talking = threading.Thread(target=self._read_output, daemon=True)
            self._reading.start()
            stack.callback(self._end)
            hidden = [self._hidden.resolve().parent, layout.DATA_DIR]
            with contextlib.suppress(FileNotFoundError):  # Somebody may have removed it.
                hidden.append(Path.cwd())
            walls = {"hidden": [str(path) for path in hidden], "walls": isolation.WALLS}
            ready, _ = self._exchange({**walls, "memory": self._limits.memory})
            if "refused" in ready:
                raise InputError(ready["refused"])
            self.memory_limited = ready["memory_limited"]
            self.isolation = isolation.describe(ready["walls"])
            self.restart()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        """End the process and whatever it started, and remove its folder."""
        self._stack.close()

    def restart(self) -> None:
        """Make a new `Submission` in the same process, and start its time anew."""
        self._deadline = time.monotonic() + self._limits.seconds
        try:
            self.call("__init__", ())
        except EntryError as fault:
            raise EntryError(f"starting {entry_runner.CLASS}: {fault}") from None

    def call(self, method: str, arrays: tuple[IntArray, ...]) -> Array | None:
        """Call a method of the entry, as `common.adaptive.game.Entry`."""
        reply, results = self._exchange({"method": method}, arrays)
        if "fault" in reply:
            fault = one_line(str(reply["fault"])[:_MAX_FAULT])
            if fault.startswith("ran out of memory"):
                fault += f", expected at most {self._limits.memory / 2**30:.3g} GiB"
            raise EntryError(fault)
        if changed := {name for name in entry_runner.ARGUMENTS if name in reply.get("changed", ())}:
            self.changed.setdefault(method, set()).update(changed)
        return results[0] if results else None

    def _exchange(self, request: dict[str, Any], arrays: tuple[IntArray, ...] = ()) -> _Reply:
        """Send a request, and return the reply; `EntryError` if there is none."""
        # That a reply begins, or that there is none; what it is, if it is one.
        begins, arrived = threading.Event(), list[_Reply]()
        requests, replies = self._process.stdin, self._process.stdout
        assert requests is not None and replies is not None

        def talk() -> None:
            # A process that is gone takes nothing; the missing reply shows it.
            with contextlib.suppress(OSError, ValueError):
                entry_runner.write(requests, request, arrays)
            # An entry that has found the channel may write to it whatever it likes.
            with contextlib.suppress(Exception):
                replies.peek(1)  # type: ignore[attr-defined]
                begins.set()
                message, results = entry_runner.read(replies)
                fault, names = message.get("fault", ""), message.get("changed", [])
                if isinstance(fault, str) and isinstance(names, list) and len(results) <= 1:
                    arrived.append((message, results))
            begins.set()

        # A process that hangs would block whoever writes to it and reads from it.
        self._talking = threading.Thread(target=talk, daemon=True)
        self._talking.start()
        if not begins.wait(self._deadline - time.monotonic()):
            self._kill()
            raise EntryError(
                f"has not finished; expected a whole game within {self._limits.seconds:g} s"
            )
        self._talking.join(_MAX_REPLYING)
        if not arrived:
            raise EntryError(self._explain_end())
        return arrived[0]

    def _explain_end(self) -> str:
        """Say why there is no reply: the process has ended, or wrote something else."""
        if self._n_output > _MAX_OUTPUT:
            return f"printed more than {_MAX_OUTPUT / 1e6:g} MB, expected at most that for one mask"
        try:
            code = self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            self._kill()
            return "closed or garbled the channel to the evaluator"
        if code >= 0:
            return f"its process ended with exit code {code}"
        # Not all have a name.
        names = {int(number): number.name for number in signal.Signals}
        return f"its process was ended by {names.get(-code, f'signal {-code}')}"

    def _read_output(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as pipe:
            while block := os.read(pipe.fileno(), 1 << 16):
                self._n_output += len(block)
                self._tail += block
                del self._tail[:-_KEPT_OUTPUT]
                if self._n_output > _MAX_OUTPUT:
                    self._kill()
                    return

    def _kill(self) -> None:
        if sys.platform == "linux":
            # The process that supervises the entry; it ends all that this has started.
            self._process.terminate()
        elif hasattr(os, "killpg"):
            # The group outlives its leader while members run; it is ours by start_new_session.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        elif self._process.poll() is None:
            self._process.kill()

    def _end(self) -> None:
        for end in (self._kill, self._process.kill):
            with contextlib.suppress(subprocess.TimeoutExpired):
                end()
                self._process.wait(_MAX_ENDING)
                break
        for thread in (self._reading, self._talking):
            thread.join(_MAX_READING)
        # To close a pipe that a thread still uses would wait for the thread, and whoever holds the
        # other end could make it wait for ever. The one that reads what is printed closes its own.
        if not self._talking.is_alive():
            for pipe in filter(None, (self._process.stdin, self._process.stdout)):
                with contextlib.suppress(OSError, ValueError):
                    pipe.close()

    def _environment(self, temporary: Path) -> dict[str, str]:
        """Copy this process's environment, without what tells where the answers are."""
        secrets = {str(self._hidden), str(self._hidden.resolve())}
        environment = {
            name: value
            for name, value in os.environ.items()
            if name not in ("PWD", "OLDPWD", "_") and not any(part in value for part in secrets)
        }
        # What the entry prints is read as UTF-8.
        environment["PYTHONIOENCODING"] = "utf-8"
        return environment | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))
