"""An entry of task 4 in a process of its own, in a temporary folder, with limits.

The process that holds the answers runs none of the entry's code, and hands over only what has been
revealed. `isolation.py` isolates it further.
"""

import contextlib
import io
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

from common import layout, source_code, zips
from common.adaptive import entry_files, entry_runner, isolation
from common.adaptive.entry_files import ENTRY_FILE
from common.adaptive.game import EntryError
from common.answers import IntArray
from common.errors import InputError
from common.io import is_there, require_file

import numpy as np
import numpy.typing as npt

# An entry that writes more than this to stdout and stderr during one mask is stopped.
_MAX_OUTPUT = 5_000_000
# How much of the end of what it writes is kept.
_KEPT_OUTPUT = 100_000
# No array that an entry returns may be larger.
_MAX_REPLY = 1 << 30
_MAX_LINE = 1 << 16
# Nor a file of an entry that the evaluation itself reads.
_MAX_FILE = 256 << 20
# How long the end of a process, and of what reads its pipes, is waited for, in seconds.
_MAX_ENDING = 10.0
_MAX_READING = 1.0
# The folder of an entry, and the file in it that is locked as long as its evaluation lives.
_PREFIX = "task_4_entry_"
_LOCK = "evaluation.lock"


class Limits(NamedTuple):
    """What an entry may use: wall time in seconds for one game, start, rounds and predictions
    together, and bytes of address space, on systems that can limit it (Linux).
    """

    seconds: float = 600.0
    memory: int = 8 << 30


class EntryProcess:
    """A fresh process for an entry, in a fresh copy of its files; use it in a `with` block.

    The submission is a folder or a zip. `files`, by the names that they get, are what the challenge
    gives to every entry; they replace files of the entry that have the same name. `hidden` is the
    file that holds the answers: its folder is out of reach, and variables that name it are not in
    the environment. `changed` tells for each method which of its arguments the entry changed.
    """

    def __init__(
        self, submission: Path, files: Mapping[str, Path], limits: Limits, hidden: Path
    ) -> None:
        self.memory_limited = False
        self.isolation = ""
        self.changed: dict[str, set[str]] = {}
        self._limits = limits
        self._deadline = time.monotonic() + limits.seconds
        self._tail = bytearray()
        self._n_output = 0
        self._replies: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._sender = threading.Thread()
        sweep_folders()
        self._temporary = tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True)
        base = Path(self._temporary.name)
        self._lock = _lock(base / _LOCK)
        # Closed, it ends the entry; -1 once that has been done.
        self._lifeline: int | None = None
        lifeline: int | None = None
        if sys.platform == "linux":
            lifeline, self._lifeline = os.pipe()
        try:
            unpack(submission, base / "entry")
            for name, path in files.items():
                shutil.copyfile(path, base / "entry" / name)
            (base / "tmp").mkdir()
            runner, launcher = (
                shutil.copy(file, base) for file in (entry_runner.__file__, isolation.__file__)
            )
            self._process = subprocess.Popen(
                [sys.executable, launcher],
                cwd=base / "entry",
                env=_environment(hidden, base / "tmp"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=() if lifeline is None else (lifeline,),
                # A group of its own, so that what the entry starts ends with it.
                start_new_session=True,
            )
        except BaseException:
            self._cut_lifeline()
            self._remove_folder()
            raise
        finally:
            if lifeline is not None:
                os.close(lifeline)
        settings = {
            "runner": Path(runner).stem,
            "memory": limits.memory,
            "lifeline": lifeline,
            "hidden": [str(hidden.resolve().parent), str(layout.DATA_DIR)],
            "landlock": isolation.landlock_version(),
        }
        pipes = self._process
        assert pipes.stdin is not None and pipes.stdout is not None and pipes.stderr is not None
        self._requests, self._answers, self._printed = pipes.stdin, pipes.stdout, pipes.stderr
        self._send(json.dumps(settings).encode() + b"\n")
        self._threads = [
            threading.Thread(target=target, daemon=True)
            for target in (self._read_replies, self._read_output)
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> "EntryProcess":
        """Wait for the process, and make the entry; `EntryError` if that fails."""
        try:
            ready = self._receive()
            self.memory_limited = bool(ready["memory_limited"])
            self.isolation = isolation.describe(int(ready["landlock"]))
            self.restart()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        """End the process."""
        self.close()

    @property
    def output(self) -> str:
        """The end of what the entry has written to stdout and stderr."""
        return self._tail.decode("utf-8", "replace")

    def restart(self) -> None:
        """Make a new `Submission` in the same process, and start its time anew."""
        self._deadline = time.monotonic() + self._limits.seconds
        try:
            self.call("__init__", ())
        except EntryError as fault:
            raise EntryError(f"starting {entry_runner.CLASS}: {fault}") from None

    def call(self, method: str, arrays: tuple[IntArray, ...]) -> npt.NDArray[Any] | None:
        """Call a method of the entry, as `common.adaptive.game.Entry`."""
        data = []
        for array in arrays:
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, array, allow_pickle=False)
            data.append(buffer.getvalue())
        line = json.dumps({"method": method, "sizes": [len(part) for part in data]}).encode()
        # A process that hangs would not read, and block the one that writes.
        parts = (line + b"\n", *data)
        self._sender = threading.Thread(target=self._send, args=parts, daemon=True)
        self._sender.start()
        reply = self._receive()
        if "fault" in reply:
            fault = str(reply["fault"])
            if fault.startswith("ran out of memory"):
                fault += f", expected at most {self._limits.memory / 2**30:.3g} GiB"
            raise EntryError(fault)
        if reply["changed"]:
            self.changed.setdefault(method, set()).update(reply["changed"])
        array = reply["array"]
        assert array is None or isinstance(array, np.ndarray)
        return array

    def close(self) -> None:
        """End the process and whatever it started, and remove its folder."""
        self._kill()
        try:
            self._process.wait(_MAX_ENDING)
        except subprocess.TimeoutExpired:
            self._process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_MAX_ENDING)
        for thread in self._threads:
            thread.join(_MAX_READING)
        if self._sender.ident is not None:
            self._sender.join(_MAX_READING)
        # To close a pipe that a thread still uses would wait for the thread, and whoever holds the
        # other end could make it wait for ever. Those that read close their own.
        if not self._sender.is_alive():
            with contextlib.suppress(OSError, ValueError):
                self._requests.close()
        self._remove_folder()

    def _kill(self) -> None:
        if self._lifeline is not None:
            self._cut_lifeline()
        elif hasattr(os, "killpg"):
            # The group outlives its leader while members run; it is ours by start_new_session.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        elif self._process.poll() is None:
            self._process.kill()

    def _cut_lifeline(self) -> None:
        lifeline, self._lifeline = self._lifeline, -1
        if lifeline not in (None, -1):
            os.close(lifeline)

    def _remove_folder(self) -> None:
        # Windows removes no file that is open.
        self._lock.close()
        self._temporary.cleanup()

    def _send(self, *parts: bytes) -> None:
        # A process that is gone takes nothing; the missing reply shows it.
        with contextlib.suppress(OSError, ValueError):
            for part in parts:
                self._requests.write(part)
            self._requests.flush()

    def _receive(self) -> dict[str, Any]:
        try:
            reply = self._replies.get(timeout=max(0.0, self._deadline - time.monotonic()))
        except queue.Empty:
            self._kill()
            raise EntryError(
                f"has not finished; expected a whole game within {self._limits.seconds:g} s"
            ) from None
        if reply is not None:
            return reply
        if self._n_output > _MAX_OUTPUT:
            raise EntryError(
                f"printed more than {_MAX_OUTPUT / 1e6:g} MB, expected at most that for one mask"
            )
        try:
            code = self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            self._kill()
            raise EntryError("closed or garbled the channel to the evaluator") from None
        if code < 0:
            raise EntryError(f"its process was ended by {signal.Signals(-code).name}")
        raise EntryError(f"its process ended with exit code {code}")

    def _read_replies(self) -> None:
        # What is no reply of the runner's: the entry found the channel and wrote to it.
        wrong = OSError, ValueError, KeyError, TypeError, EOFError
        with contextlib.suppress(*wrong), self._answers as pipe:
            while line := pipe.readline(_MAX_LINE):
                self._replies.put(_read_reply(line, pipe))
        self._replies.put(None)

    def _read_output(self) -> None:
        with self._printed as pipe:
            while block := os.read(pipe.fileno(), 1 << 16):
                self._n_output += len(block)
                self._tail += block
                del self._tail[:-_KEPT_OUTPUT]
                if self._n_output > _MAX_OUTPUT:
                    self._kill()
                    return


def sweep_folders() -> None:
    """Remove the folders of entries whose evaluation has been killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            own = not hasattr(os, "getuid") or folder.lstat().st_uid == os.getuid()
            if own and not folder.is_symlink() and not _is_locked(folder / _LOCK):
                shutil.rmtree(folder, ignore_errors=True)


def _lock(path: Path) -> IO[bytes]:
    """Make a file that `_is_locked` tells to be locked as long as this process has it open."""
    if sys.platform == "win32":
        return path.open("wb")
    import fcntl

    # It gets its name when it is locked already, so that nobody finds it in between.
    draft = path.with_suffix(".new")
    file = draft.open("wb")
    # Some network file systems have no locks: then nobody else can lock it either.
    with contextlib.suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    draft.rename(path)
    return file


def _is_locked(path: Path) -> bool:
    """Tell whether a process that has made a lock lives; `OSError` if there is no lock."""
    if sys.platform == "win32":
        # There a file that is open cannot be removed.
        path.unlink()
        return False
    import fcntl

    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def unpack(submission: Path, folder: Path) -> None:
    """Copy an entry out of its folder, or unpack its zip, to a new folder."""
    if submission.is_dir():
        for name, path in entry_files.collect(submission).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / name)
        return
    with zips.open_zip(submission) as archive:
        names = archive.namelist()
        if ENTRY_FILE not in names:
            inside = [name for name in names if name.endswith(f"/{ENTRY_FILE}")]
            fault = f"holds a folder ({inside[0]})" if inside else f"holds no {ENTRY_FILE}"
            raise InputError(f"{submission}: {fault}, expected {ENTRY_FILE} at the top level")
    zips.unpack(submission, folder, entry_files.MAX_SIZE)


def names_inside(submission: Path) -> list[str]:
    """Return the names of the files of an entry's folder, as in its zip, or of its zip."""
    if submission.is_dir():
        return list(entry_files.collect(submission))
    with zips.open_zip(submission) as archive:
        return archive.namelist()


def read_entry_file(submission: Path, name: str) -> bytes | None:
    """Read a file of an entry's folder or zip; None if it is not there."""
    if submission.is_dir():
        path = submission / name
        if not is_there(path):
            return None
        require_file(path)
        return path.read_bytes()
    with zips.open_zip(submission) as archive:
        if name not in archive.namelist():
            return None
        return zips.read_member(archive, archive.getinfo(name), _MAX_FILE)


def fingerprint_code(submission: Path, training_code: str = "") -> str:
    """Return a fingerprint of an entry's Python files, the same for a folder and for its zip.

    The fingerprint of the code that made its weights, which need not be part of it, goes in too.
    """
    code = sorted(name for name in names_inside(submission) if name.endswith(".py"))
    contents = {name: read_entry_file(submission, name) or b"" for name in code}
    own = [part for part in contents.items() if not entry_files.finds_the_kit(*part)]
    return source_code.fingerprint_contents([*own, ("training", training_code.encode())])


def _environment(hidden: Path, temporary: Path) -> dict[str, str]:
    """Copy this process's environment, without what tells where the answers are."""
    secrets = {str(hidden), str(hidden.resolve())}
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PWD", "OLDPWD", "_") and not any(secret in value for secret in secrets)
    }
    return environment | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))


def _read_reply(line: bytes, pipe: IO[bytes]) -> dict[str, Any]:
    reply = json.loads(line)
    size = int(reply["size"])
    if size > _MAX_REPLY:
        return {"fault": f"returned an array of {size:,} bytes, expected at most {_MAX_REPLY:,}"}
    array = None
    if size:
        data = pipe.read(size)
        if len(data) < size:
            raise EOFError
        array = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    return {**reply, "array": array}
