"""Describe an error of an entry in one line, for the person who wrote the entry."""

import os
import traceback
from pathlib import Path

from .submission import InvalidEntryError

# Packages of the kit. An entry cannot import them, neither here nor in the challenge.
KIT_PACKAGES = ("common", "tools")
# The names of the modules of Python and joblib that make locks and memory for several processes.
_SHARING_MODULES = ("synchronize.py", "shared_memory.py")
# At most this many characters of an exception's message are shown.
_MAX_TEXT = 300


def describe_fault(error: BaseException, folder: Path) -> str:
    """Describe an exception that an entry's code has raised; `folder` holds the entry's files."""
    if isinstance(error, InvalidEntryError):
        return str(error)
    line = _find_line(error, folder)
    if isinstance(error, MemoryError) or "allocate memory" in str(error):
        return f"ran out of memory{line}"
    if isinstance(error, SystemExit):
        return f"ended the program with exit code {error.code}{line}"
    refusal = _describe_refusal(error, folder, line)
    if refusal is not None:
        return refusal
    if isinstance(error, ModuleNotFoundError) and str(error.name).split(".")[0] in KIT_PACKAGES:
        return (
            f"imports {error.name}{line}, the kit's shared code, which is not there in the "
            "challenge; expected only the package's own files, numpy, pandas, scikit-learn, torch"
        )
    text = " ".join(str(error).split())[:_MAX_TEXT]
    colon = ": " if text else ""
    return f"raised {type(error).__name__}{colon}{text}{line}"


def _describe_refusal(error: BaseException, folder: Path, line: str) -> str | None:
    """Describe an error that comes from the isolation or the system; None for any other error.

    `folder` holds the entry's files. `line` says where the entry's code raised the error.
    """
    if isinstance(error, PermissionError) and _comes_from_shared_memory(error):
        return (
            "was refused a lock or memory that processes share, as this system (a container?) "
            "cannot give an entry a /dev/shm of its own; expected threads or a single process, "
            f"such as n_jobs=1, num_workers=0{line}"
        )
    if _may_come_from_executing(error, folder) and _is_noexec(folder):
        return (
            f"was refused to run a file of its own{line}, as its folder lies where nothing may be "
            "executed (mounted noexec); let the environment variable TMPDIR name another folder"
        )
    if isinstance(error, PermissionError | FileNotFoundError) and error.filename is not None:
        # Outside of the entry's folder, the isolation is the likely cause: it refuses files, and
        # lets other files look as if they were missing. Inside the folder, the isolation allows
        # everything, so the entry itself is the cause.
        path = _real_path(error.filename)
        if not path.is_relative_to(folder):
            return (
                f"was denied {path}, which is neither in the zip nor given by the challenge; "
                f"expected only files in the working folder{line}"
            )
    return None


def _comes_from_shared_memory(error: BaseException) -> bool:
    """Return whether an error comes from making a lock or memory that processes share."""
    frames = traceback.extract_tb(error.__traceback__)
    return any(Path(frame.filename).name in _SHARING_MODULES for frame in frames)


def _may_come_from_executing(error: BaseException, folder: Path) -> bool:
    """Return whether an error may come from executing a file in a folder, or loading a library."""
    # If a library may not be executed, the library loader raises an error with these words, which
    # has no error number.
    if "failed to map segment" in str(error):
        return True
    if not isinstance(error, PermissionError) or error.filename is None:
        return False
    return _real_path(error.filename).is_relative_to(folder)


def _is_noexec(folder: Path) -> bool:
    """Return whether no file in a folder may be executed, by an option of the mount (Linux)."""
    # Windows has no statvfs, and macOS no ST_NOEXEC.
    flag: int = getattr(os, "ST_NOEXEC", 0)
    return flag != 0 and os.statvfs(folder).f_flag & flag != 0


def _real_path(filename: str | bytes) -> Path:
    return Path(os.path.realpath(os.fsdecode(filename)))


def _find_line(error: BaseException, folder: Path) -> str:
    """Return where the entry's own code raised an error, for example " (model.py, line 7)".

    Returns the innermost line of the traceback that is in a file of the entry, or "" if there is no
    such line.
    """
    frames = traceback.extract_tb(error.__traceback__)
    own_frames = [frame for frame in frames if Path(frame.filename).is_relative_to(folder)]
    if not own_frames:
        return ""
    innermost = own_frames[-1]
    return f" ({Path(innermost.filename).name}, line {innermost.lineno})"
