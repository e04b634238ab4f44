"""A guard in Python's file functions, for systems that offer no protection of files.

The guard catches accidents. A library that opens files without Python, or another program, is not
stopped.
"""

import errno
import importlib.machinery
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .readable_paths import lies_in

_SYSTEM_FOLDERS = ("/dev", "/etc", "/proc", "/sys", "/System", "/var/lib")
# Environment variables that hold a folder of Windows.
_WINDOWS_FOLDERS = ("SystemRoot", "ProgramFiles")
# Events of Python's audit hooks whose first argument is a path.
_EVENTS = ("open", "os.listdir", "os.scandir")


def guard_files(folder: Path, readable: Iterable[str]) -> None:
    """Let Python open only files in `folder`, `readable` files, and files of the system.

    `_is_allowed` adds a few exceptions, such as Python modules. From now on, opening any other file
    from Python raises `PermissionError`.
    """
    windows_folders = [os.environ[name] for name in _WINDOWS_FOLDERS if name in os.environ]
    roots = [str(folder), *readable, *_SYSTEM_FOLDERS, *windows_folders]
    allowed = [_normalise(path) for path in roots]
    # Unlike Path.home, this function raises nothing if there is no home folder.
    home = _normalise(os.path.expanduser("~"))

    # Python calls an audit hook (PEP 578) such as this function before it opens a file or lists a
    # folder, and before many other actions. If the hook raises an exception, the action is not
    # done.
    def check(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in _EVENTS:
            return
        opened = arguments[0]
        # If the argument is a number, it is the descriptor of a file that is open already.
        if isinstance(opened, str | bytes):
            path = _normalise(os.fsdecode(opened))
            if not _is_allowed(path, allowed, home):
                raise PermissionError(errno.EACCES, "Permission denied", path)

    sys.addaudithook(check)


def _is_allowed(path: str, allowed: Iterable[str], home: str) -> bool:
    """Return whether Python may open a path, which is absolute and without links."""
    # In /proc, allow the files of this process, but not those of other processes.
    if process := re.match(r"/proc/(\d+)(/|$)", path):
        return int(process[1]) == os.getpid()
    is_module = path.endswith(tuple(importlib.machinery.all_suffixes()))
    # Python modules, folders and files that do not exist hold no answers: allow them anywhere.
    if is_module or not os.path.isfile(path):
        return True
    # Libraries keep settings and caches in hidden files and folders of the home folder.
    is_hidden_in_home = path.startswith(os.path.join(home, "."))
    return is_hidden_in_home or any(lies_in(path, root) for root in allowed)


def _normalise(path: str) -> str:
    """Return an absolute path without links; on Windows, in lower case and with backslashes."""
    return os.path.normcase(os.path.realpath(path))
