"""An entry of task 4 in a process of its own, in a temporary folder, with limits.

The process that holds the answers runs none of the entry's code, and hands over only what has been
revealed. `isolation.py` isolates it further.
"""

import contextlib
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
from common.errors import InputError, one_line
from common.io import is_there, require_file

import numpy.typing as npt

# An entry that writes more than this to stdout and stderr during one mask is stopped.
_MAX_OUTPUT = 5_000_000
# How much of the end of what it writes is kept.
_KEPT_OUTPUT = 100_000
# No file of an entry that the evaluation itself reads may be larger.
_MAX_FILE = 256 << 20
# How long the end of a process, the rest of a reply that has begun, and the end of what reads a
# pipe are waited for, in seconds.
_MAX_ENDING = 10.0
_MAX_REPLYING = 10.0
_MAX_READING = 1.0
# What a reply may hold beside an array. Of a fault, which the entry may have made up, so many
# characters are shown.
_REPLY: dict[str, type] = {"fault": str, "changed": list}
_MAX_FAULT = 1000
# The folder of an entry, and the file in it that is locked as long as its evaluation lives.
_PREFIX = "task_4_entry_"
_LOCK = "evaluation.lock"


Message = dict[str, Any]
AnyArray = npt.NDArray[Any]
Arrays = tuple[IntArray, ...]


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
        self._talking = threading.Thread()
        sweep_folders()
        self._temporary = tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True)
        base = Path(self._temporary.name)
        self._lock = _lock(base / _LOCK)
        # Closed, it ends the entry.
        self._lifeline: IO[bytes] | None = None
        lifeline: int | None = None
        if sys.platform == "linux":
            lifeline, own = os.pipe()
            self._lifeline = os.fdopen(own, "wb")
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
            self._remove_folder()
            raise
        finally:
            if lifeline is not None:
                os.close(lifeline)
        pipes = self._process
        assert pipes.stdin is not None and pipes.stdout is not None and pipes.stderr is not None
        self._requests, self._answers, self._printed = pipes.stdin, pipes.stdout, pipes.stderr
        self._reading = threading.Thread(target=self._read_output, daemon=True)
        self._reading.start()
        secret = [hidden.resolve().parent, layout.DATA_DIR]
        with contextlib.suppress(FileNotFoundError):  # Somebody may have removed it.
            secret.append(Path.cwd())
        settings = {
            "runner": Path(runner).stem,
            "memory": limits.memory,
            "lifeline": lifeline,
            "hidden": [str(path) for path in secret],
            "means": isolation.MEANS,
            "landlock": isolation.landlock_version(),
        }
        with contextlib.suppress(OSError):
            self._requests.write(json.dumps(settings).encode() + b"\n")
            self._requests.flush()

    def __enter__(self) -> "EntryProcess":
        """Wait for the process, and make the entry; `EntryError` if that fails."""
        try:
            ready, _ = self._exchange(None, ())
            if "refused" in ready:
                raise InputError(ready["refused"])
            self.memory_limited = ready["memory_limited"]
            self.isolation = isolation.describe(ready["walls"])
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

    def call(self, method: str, arrays: Arrays) -> AnyArray | None:
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

    def close(self) -> None:
        """End the process and whatever it started, and remove its folder."""
        self._kill()
        try:
            self._process.wait(_MAX_ENDING)
        except subprocess.TimeoutExpired:
            self._process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_MAX_ENDING)
        for thread in (self._reading, self._talking):
            if thread.ident is not None:
                thread.join(_MAX_READING)
        # To close a pipe that a thread still uses would wait for the thread, and whoever holds the
        # other end could make it wait for ever. The one that reads what is printed closes its own.
        if not self._talking.is_alive():
            for pipe in (self._requests, self._answers):
                with contextlib.suppress(OSError, ValueError):
                    pipe.close()
        self._remove_folder()

    def _kill(self) -> None:
        if self._lifeline is not None:
            self._lifeline.close()
        elif hasattr(os, "killpg"):
            # The group outlives its leader while members run; it is ours by start_new_session.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        elif self._process.poll() is None:
            self._process.kill()

    def _remove_folder(self) -> None:
        # Windows removes no file that is open.
        for file in (self._lock, self._lifeline):
            if file is not None:
                file.close()
        self._temporary.cleanup()

    def _exchange(self, request: Message | None, arrays: Arrays) -> tuple[Message, list[AnyArray]]:
        """Send a request, if there is one, and return the reply; `EntryError` if there is none."""
        # First tells that a reply begins, then what it is, or that it is none.
        arrived: queue.Queue[Any] = queue.Queue()

        def talk() -> None:
            reply = None
            # A process that is gone takes nothing; the missing reply shows it.
            with contextlib.suppress(OSError, ValueError):
                if request is not None:
                    entry_runner.write(self._requests, request, arrays)
            # An entry that has found the channel may write to it whatever it likes.
            with contextlib.suppress(Exception):
                if self._answers.peek(1):  # type: ignore[attr-defined]
                    arrived.put("a reply")
                    reply = entry_runner.read(self._answers)
            arrived.put(reply)

        # A process that hangs would block whoever writes to it and reads from it.
        self._talking = threading.Thread(target=talk, daemon=True)
        self._talking.start()
        try:
            reply = arrived.get(timeout=max(0.0, self._deadline - time.monotonic()))
        except queue.Empty:
            self._kill()
            raise EntryError(
                f"has not finished; expected a whole game within {self._limits.seconds:g} s"
            ) from None
        if reply is not None:
            with contextlib.suppress(queue.Empty):
                reply = arrived.get(timeout=_MAX_REPLYING)
        if not _is_reply(reply):
            raise EntryError(self._explain_end())
        message, results = reply
        return message, results

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


def _is_reply(found: Any) -> bool:
    """Tell whether a message is one that the runner may have written."""
    if not isinstance(found, tuple) or not isinstance(found[0], dict) or len(found[1]) > 1:
        return False
    return all(isinstance(found[0].get(name, kind()), kind) for name, kind in _REPLY.items())
