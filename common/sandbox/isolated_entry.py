"""`IsolatedEntry`: start an entry in isolation, and call its methods."""

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from common import layout
from common.arrays import Array
from common.errors import InputError, one_line
from common.sandbox.entry_process import EntryError, EntryProcess

# The program that runs in the entry's process. `_start` only needs its folder, which it copies. The
# import has a second purpose: the hosting tools pack the files that an evaluation imports, and so
# they pack the program's files too.
from common.sandbox.inside import __main__ as program
from common.sandbox.inside import protections, submission
from common.sandbox.inside.messages import Call, Ready, Reply, Start

# At most this many characters of a fault are shown, since an entry may write a text of any length.
_MAX_FAULT = 1000
# Environment variables that an entry does not get, since they tell the working folder of the
# evaluation, which the entry must not read. A shell sets the variable "_" to the path of the
# program that it starts.
_WORKING_FOLDER_VARIABLES = ("PWD", "OLDPWD", "_")
_TEMPORARY_FOLDER_VARIABLES = ("TMPDIR", "TEMP", "TMP")
# ENOSPC: the disk is full. EDQUOT: the user may not use more of the disk; Windows has no EDQUOT.
_ERRORS_OF_FULL_DISK = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


@dataclass(frozen=True)
class Limits:
    """Limits of time and memory for an entry, for the game with one mask.

    A mask says which of the students' answers the entry has to predict.
    """

    # Wall time of the game. The clock starts when the process begins to make an instance of the
    # entry's class.
    seconds: float = 600.0
    # Bytes of address space, by default 8 GiB; only Linux enforces this limit.
    memory: int = 8 << 30


class IsolatedEntry:
    """An entry in a separate process, which can read its own files and cannot read the answers.

    This is a context manager, which can be used once. On entering it, the process starts and makes
    an instance of the entry's class. On leaving it, the process ends with everything that it has
    started, and its files are removed.

    Parameters
    ----------
    write_files
        Writes the entry's files into an empty folder, which it is called with.
    hidden
        The file with the answers. The entry can reach neither the file's folder, nor the kit's
        data, nor the working folder of this process.
    limits
        Limits of time and memory.

    Attributes
    ----------
    isolation : str
        The protections that are in force, the ways to do harm that they close, and those that stay
        open, as text.
    memory_limited : bool
        Whether the system enforces the memory limit.
    changed : dict
        By method, the names of the arguments that the entry has changed.

    Raises
    ------
    EntryError
        On entering and by every call, if the entry fails or exceeds its limits.
    InputError
        On entering, if the entry cannot be kept from the answers, there is no space for its files,
        or `write_files` raises it.
    """

    def __init__(
        self, write_files: Callable[[Path], None], hidden: Path, limits: Limits = Limits()
    ) -> None:
        self._write_files = write_files
        self._hidden = hidden
        self._limits = limits
        self._process: EntryProcess | None = None
        self.isolation = ""
        self.memory_limited = False
        self.changed: dict[str, set[str]] = {}

    @property
    def output(self) -> str:
        """The end of the stdout and stderr of the process."""
        return "" if self._process is None else self._process.output

    def __enter__(self) -> "IsolatedEntry":
        """Start the process, and make an instance of the entry's class in it."""
        # If a step fails, the end of the `with` block undoes the steps before it.
        with ExitStack() as stack:
            folder = Path(stack.enter_context(_temporary_folder())).resolve()
            # If the disk is full, raise an error that tells how to choose another folder.
            with _naming_full_folder(folder):
                process = self._start(folder)
            self._process = process
            stack.callback(process.end)
            self._isolate(process)
            # Make the first instance of the class.
            self.restart()
            # All steps have succeeded. After `pop_all`, the `with` block does not undo the steps:
            # `__exit__` will undo them.
            self._cleanup = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        """End the process and everything that it has started, and remove its files."""
        self._cleanup.close()

    def restart(self) -> None:
        """Make a new instance of the entry's class in the same process, and restart the clock."""
        self._running_process().restart_clock()
        try:
            # A call of "__init__" lets the process make a new instance of the entry's class.
            self.call("__init__", ())
        except EntryError as fault:
            raise EntryError(f"starting {submission.CLASS}: {fault}") from None

    def call(self, method: str, arrays: Sequence[Array]) -> Array | None:
        """Call a method of the entry with int64 copies of arrays.

        Returns the array of numbers that the method has returned, of any dtype and shape, or None.
        Notes in `self.changed` the names of the arguments that the method has changed. Raises
        `EntryError` if the call has failed.
        """
        # `received` has the reply and the array that the method has returned.
        received = self._running_process().exchange(Call(method), arrays, parse=Reply.parse)
        reply = received.reply
        if reply.fault is not None:
            fault = one_line(reply.fault[:_MAX_FAULT])
            if fault.startswith("ran out of memory"):
                fault += f", expected at most {self._limits.memory / 2**30:.3g} GiB"
            raise EntryError(fault)
        # `reply.changed` should list the names of the arguments that the method has changed. An
        # entry that cheats may have sent other words: keep only the names of arguments.
        changed = {name for name in submission.ARGUMENTS if name in reply.changed}
        if changed:
            self.changed.setdefault(method, set()).update(changed)
        return received.values

    def _running_process(self) -> EntryProcess:
        if self._process is None:
            raise RuntimeError("an entry is called inside of its `with` block only")
        return self._process

    def _start(self, folder: Path) -> EntryProcess:
        """Fill the folder of a process, and start the process."""
        (folder / "entry").mkdir()
        self._write_files(folder / "entry")
        (folder / "tmp").mkdir()
        program_folder = Path(program.__file__).parent
        # The copy includes the bytecode that importing `program` has cached, so that the process
        # starts sooner.
        shutil.copytree(program_folder, folder / "inside")
        environment = self._environment(folder / "tmp")
        return EntryProcess(folder, environment, self._limits.seconds)

    def _isolate(self, process: EntryProcess) -> None:
        """Let the process isolate itself, before any code of the entry runs.

        Raises `InputError` if the entry cannot be kept from the answers.
        """
        # The folders that the entry must not read: the folder of the answers, whose other files may
        # tell the answers too, the kit's data, and the working folder.
        folder_of_answers = self._hidden.resolve().parent
        hidden = [folder_of_answers, layout.DATA_DIR]
        # `Path.cwd` raises this error if the working folder has been removed.
        with suppress(FileNotFoundError):
            hidden.append(Path.cwd())
        start = Start(
            hidden=[str(path) for path in hidden],
            protections=protections.ALL,
            memory=self._limits.memory,
        )
        no_arrays = ()
        ready = process.exchange(start, no_arrays, parse=Ready.parse).reply
        if ready.refusal is not None:
            raise InputError(ready.refusal)
        self.isolation = protections.describe(ready.protections)
        self.memory_limited = ready.memory_limited

    def _environment(self, temporary: Path) -> Mapping[str, str]:
        """Return the environment variables for the entry's process.

        The entry gets the environment variables of this process. Variables that tell the path of
        the answers or the working folder are left out. `temporary` is the entry's folder for
        temporary files.
        """
        paths_of_answers = {str(self._hidden), str(self._hidden.resolve())}
        environment = {}
        for name, value in os.environ.items():
            tells_path = any(path in value for path in paths_of_answers)
            if name not in _WORKING_FOLDER_VARIABLES and not tells_path:
                environment[name] = value
        for name in _TEMPORARY_FOLDER_VARIABLES:
            environment[name] = str(temporary)
        # The process starts with ``python -m inside``, in a folder that holds a copy of the program
        # `inside`. With PYTHONSAFEPATH, Python would not search the current folder for it.
        environment.pop("PYTHONSAFEPATH", None)
        # The entry's output is decoded as UTF-8 (`EntryProcess`).
        environment["PYTHONIOENCODING"] = "utf-8"
        return environment


def _temporary_folder() -> "tempfile.TemporaryDirectory[str]":
    """Make a temporary folder; raise an `InputError` that names TMPDIR if that is impossible."""
    try:
        return tempfile.TemporaryDirectory(prefix="task_4_entry_", ignore_cleanup_errors=True)
    except OSError as error:
        raise InputError(
            f"no folder can be made for the entry's files ({error.strerror or error}); let the "
            "environment variable TMPDIR name a folder that can be written to"
        ) from None


@contextmanager
def _naming_full_folder(folder: Path) -> Iterator[None]:
    """Raise an `InputError` that names TMPDIR if the `with` block runs out of disk space.

    The block writes files into the temporary folder `folder`. The system's own error would name a
    file that was copied, which is not at fault.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _ERRORS_OF_FULL_DISK:
            raise
        raise InputError(
            f"{folder.parent}: {error.strerror}, expected the entry's files to fit in it; let the "
            "environment variable TMPDIR name a folder with more space"
        ) from None
