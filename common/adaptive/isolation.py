"""Start an entry of task 4 in isolation; `entry_process.py` beside it starts this.

This file is self-contained: a copy of it runs beside the entry's folder with the standard library
only. It reads one line of JSON from stdin (see `main`), and then does three things before any
code of the entry or of NumPy runs:

On Linux the process splits in two. The first half supervises: whatever the entry starts, in a
session of its own or not, is a descendant of it, and ends when the entry does or when the evaluator
closes a pipe, which it also does by dying. The second half becomes the entry's.

Where the kernel has Landlock, the second half gives up, for itself and all that it starts, every
file but Python, its packages, the system's files (to read) and its own folders (to write), TCP, and
signals to others. This cannot be undone, and takes no privilege; see landlock(7).

Elsewhere a hook inside Python keeps it from opening files by accident; that is no wall.

Then the runner beside this file takes over in the same process.
"""

import contextlib
import ctypes
import faulthandler
import functools
import importlib
import importlib.machinery
import json
import os
import re
import select
import signal
import site
import struct
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

# Numbers of the system calls, the same on all architectures that Python is built for today.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1
# The latest version whose rights are known here; a newer kernel offers this one as well.
_NEWEST = 6

# Rights of landlock(7), by bit.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK, _TRUNCATE, _IOCTL_DEV = 1 << 6, 1 << 11, 1 << 14, 1 << 15
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_DEVICE = _READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL_DEV
# No device may be made: to root a new name for the disk would be a way to everything on it.
_OWN = ((1 << 15) - 1) & ~(_MAKE_CHAR | _MAKE_BLOCK)
_FOR_FILES = _EXECUTE | _READ_FILE | _DEVICE

_TCP = 0b11  # bind, connect
_SCOPES = 0b11  # abstract UNIX sockets, signals

# prctl(2)
_SET_PARENT_DEATH_SIGNAL, _SET_CHILD_SUBREAPER, _SET_NO_NEW_PRIVS = 1, 36, 38

# What counts as the system. Of /proc only this process and what tells of the machine; of /dev no
# disk.
_SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/snap",
    "/nix/store", "/gnu/store",
    "/proc/self", "/proc/cpuinfo", "/proc/devices", "/proc/driver", "/proc/filesystems",
    "/proc/loadavg", "/proc/meminfo", "/proc/modules", "/proc/stat", "/proc/sys", "/proc/uptime",
    "/proc/version",
    "/sys/bus", "/sys/class", "/sys/devices", "/sys/fs/cgroup", "/sys/kernel/mm", "/sys/module",
)  # fmt: skip
# Prefixes of their names.
_DEVICES = ("null", "zero", "full", "random", "urandom", "nvidia", "dri", "kfd")
_SHARED_MEMORY = "/dev/shm"

# How long the supervisor tries to end what an entry has left behind, in seconds.
_MAX_ENDING = 5.0


def landlock_version() -> int:
    """Return the version of Landlock that this kernel offers; 0 if it has none."""
    if sys.platform != "linux":
        return 0
    version = _call(_CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION)
    return max(0, version)


def describe(version: int) -> str:
    """Describe in a few words what an entry was kept from by a version of Landlock, or none: 0."""
    if not version:
        return "Python's own file functions only (this system offers no Landlock)"
    since = {"cutting files short": 3, "TCP": 4, "signals": 6}
    covered = ["files", *(name for name in ("TCP", "signals") if version >= since[name])]
    lacking = [name for name, first in since.items() if version < first]
    missing = f"; this kernel's version does not cover {', '.join(lacking)}" if lacking else ""
    return f"enforced by the operating system (Landlock {version}): {', '.join(covered)}{missing}"


def ruleset(version: int) -> bytes:
    """Pack `struct landlock_ruleset_attr`: the rights that are refused unless a rule allows them.

    Older versions know fewer rights.
    """
    files = (1 << 13) - 1
    for first, right in ((2, 1 << 13), (3, _TRUNCATE), (5, _IOCTL_DEV)):
        files |= right if version >= first else 0
    # Older kernels take the longer structure as long as what they do not know is 0.
    return struct.pack("=QQQ", files, _TCP * (version >= 4), _SCOPES * (version >= 6))


def restrict(readable: Iterable[str], writable: Iterable[str], version: int) -> int:
    """Give up, for good, everything that Landlock can refuse, except some files.

    What is readable may be executed too, with all beneath; in what is writable everything may be
    done but making devices; files that are missing are skipped. This holds for the calling thread
    and what it starts, so it must come before other threads. Returns the version in force, at most
    the kernel's and the one given; 0 if the system refuses.
    """
    version = min(version, landlock_version(), _NEWEST)
    if version < 1:
        return 0
    attributes = ruleset(version)
    handled = struct.unpack_from("=Q", attributes)[0]
    rules = _call(_CREATE_RULESET, attributes, len(attributes), 0)
    if rules < 0:
        return 0
    for path in readable:
        _allow(rules, path, _READ & handled)
    for path in writable:
        _allow(rules, path, _OWN & handled)
    for name in os.listdir("/dev"):  # noqa: PTH208 (pathlib takes ten times as long)
        if name.startswith(_DEVICES):
            _allow(rules, f"/dev/{name}", (_DEVICE | _READ_DIR) & handled)
    in_force = _call(_RESTRICT_SELF, rules, 0) == 0
    os.close(rules)
    return version if in_force else 0


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not os.path.isdir(path):  # noqa: PTH112
        rights &= _FOR_FILES
    # struct landlock_path_beneath_attr
    _call(_ADD_RULE, rules, _RULE_PATH_BENEATH, struct.pack("=Qi", rights, descriptor), 0)
    # /proc makes its files anew when nobody holds them, and a rule is about the file it was made
    # for.
    if not path.startswith("/proc"):
        os.close(descriptor)


def _call(number: int, *arguments: int | bytes | None) -> int:
    """Make a system call; -1 if it fails."""
    # As variadic arguments, whole numbers must be as wide as a register.
    wide = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    try:
        return int(_libc().syscall(ctypes.c_long(number), *wide))
    except (OSError, AttributeError):
        return -1


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def _prctl(option: int, value: int) -> None:
    wide = [ctypes.c_ulong(number) for number in (value, 0, 0, 0)]
    with contextlib.suppress(OSError, AttributeError):
        _libc().prctl(ctypes.c_int(option), *wide)


def readable_paths(hidden: Iterable[str]) -> list[str]:
    """List Python's folders, those of its packages and the system's, without hidden folders.

    Where a folder of the system or of Python holds a hidden one, what lies beside that one is
    listed. A folder that is only searched for packages (`PYTHONPATH`, such as the kit's own) is
    left out then.
    """
    secret = [os.path.realpath(path) for path in hidden]

    def holds_secret(path: str) -> bool:
        return any(_lies_in(other, path) for other in secret)

    own = [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix]
    searched = [*sys.path, *os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)]
    found = [os.path.realpath(folder) for folder in searched if folder]
    found = [path for path in found if not holds_secret(path)]
    waiting = [os.path.realpath(path) for path in (*own, *site.getsitepackages(), *_SYSTEM)]
    while waiting:
        path = waiting.pop()
        if not holds_secret(path):
            found.append(path)
        elif path not in secret:
            with contextlib.suppress(OSError), os.scandir(path) as children:
                waiting += [child.path for child in children if not child.is_symlink()]
    return sorted(set(found))


def _lies_in(path: str, folder: str) -> bool:
    return (path + os.sep).startswith(folder.rstrip(os.sep) + os.sep)


def _guard_files(folder: Path, hidden: Iterable[str]) -> None:
    """Let Python open only files in one folder, Python's own and the system's.

    This catches an entry that reads data from where they lie on one machine, such as the full
    training file, which holds the hidden answers of the local split. It is no wall against a
    program that means harm, nor against a library that opens files without Python's help.
    """
    system = ["/dev", "/proc", "/sys", "/System", "/var/lib"]
    windows = [os.environ[name] for name in ("SystemRoot", "ProgramFiles") if name in os.environ]
    roots = [
        os.path.normcase(os.path.realpath(root))
        for root in [str(folder), *readable_paths(hidden), *system, *windows]
    ]
    # Unlike Path.home, this raises nothing where there is no home.
    home = os.path.normcase(os.path.realpath(os.path.expanduser("~")))  # noqa: PTH111
    code = tuple(importlib.machinery.all_suffixes())

    def is_allowed(path: str) -> bool:
        process = re.match(r"/proc/(\d+)(/|$)", path)
        if process:
            return int(process[1]) == os.getpid()
        if path.endswith(code) or not os.path.isfile(path):  # noqa: PTH113 (hot)
            return True
        # Settings and caches of libraries lie in hidden folders at home.
        return any(_lies_in(path, root) for root in roots) or (
            path.startswith(os.path.join(home, "."))  # noqa: PTH118 (hot)
        )

    def check(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in ("open", "os.listdir", "os.scandir"):
            return
        if not isinstance(arguments[0], str | bytes):
            return  # A file that is open already.
        path = os.path.normcase(os.path.realpath(os.fsdecode(arguments[0])))
        if not is_allowed(path):
            raise PermissionError(13, "Permission denied", path)

    sys.addaudithook(check)


def _supervise(lifeline: int) -> None:
    """Split this process in two: return in the one for the entry, and stay in the other until all
    that the entry started has ended; then end as the entry did.

    When the evaluator closes its end of the pipe `lifeline`, everything ends.
    """
    # Orphans of the entry become children of this process, whatever session they are in.
    _prctl(_SET_CHILD_SUBREAPER, 1)
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    entry = os.fork()
    if entry == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for descriptor in (lifeline, ended, wake):
            os.close(descriptor)
        os.setsid()
        _prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        return
    # The evaluator must see its pipes close when the entry's processes let go of them.
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nothing, descriptor)
    status: int | None = None
    with contextlib.suppress(ChildProcessError):
        while status is None and lifeline not in select.select([lifeline, ended], [], [])[0]:
            os.read(ended, 1 << 10)
            while (waited := os.waitpid(-1, os.WNOHANG))[0]:
                if waited[0] == entry:
                    status = waited[1]
    if status is None:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(entry, signal.SIGKILL)
            os.waitpid(entry, 0)
    _end_children()
    if status is not None and os.WIFSIGNALED(status):
        _die_of(os.WTERMSIG(status))
    os._exit(os.WEXITSTATUS(status) if status is not None else 0)


def _end_children() -> None:
    deadline = time.monotonic() + _MAX_ENDING
    with contextlib.suppress(ChildProcessError):
        # The children of a process that ends become this one's, so that the last is found as well.
        while time.monotonic() < deadline:
            if not os.waitpid(-1, os.WNOHANG)[0]:
                for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208
                    with contextlib.suppress(OSError):
                        _end_child(int(name))
                time.sleep(0.001)


def _end_child(pid: int) -> None:
    # The name of a program may hold anything, also blanks and brackets.
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    if int(fields[1]) == os.getpid():
        os.kill(pid, signal.SIGKILL)


def _die_of(number: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _end_with_parent() -> None:
    """End this process when the evaluator has gone, where no other process watches it."""
    parent = os.getppid()

    def watch() -> None:
        if sys.platform == "win32":
            # There a process keeps the number of its parent; a handle on it is freed at its end.
            may_wait, for_ever = 0x00100000, 0xFFFFFFFF
            kernel = ctypes.windll.kernel32
            evaluator = kernel.OpenProcess(may_wait, False, parent)
            if not evaluator:
                return
            kernel.WaitForSingleObject(evaluator, for_ever)
        else:
            while os.getppid() == parent:
                time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _protect(folder: Path, hidden: Iterable[str], version: int) -> int:
    """Keep this process to its folder, by Landlock up to a version or else by Python's own means.

    The folder holds ``entry`` and ``tmp``, in which the entry may write. Returns the version of
    Landlock in force, or 0.
    """
    if sys.platform == "linux":
        _prctl(_SET_NO_NEW_PRIVS, 1)
    secret = [os.path.realpath(path) for path in hidden]
    writable = [str(folder / "entry"), str(folder / "tmp")]
    if not any(_lies_in(path, _SHARED_MEMORY) for path in secret):
        writable.append(_SHARED_MEMORY)
    version = restrict([str(folder), *readable_paths(secret)], writable, version)
    if version:
        # Libraries that keep settings and caches at home find an empty one.
        os.environ["PYTHONUSERBASE"] = site.getuserbase()
        os.environ["HOME"] = str(folder / "tmp")
        for name in [name for name in os.environ if re.fullmatch(r"XDG_\w+_(HOME|DIR)", name)]:
            del os.environ[name]
    else:
        _guard_files(folder, secret)
    return version


def main() -> None:
    """Isolate this process as the first line of stdin says, and run the runner in it.

    The line is an object of JSON: ``runner`` (the module beside this one), ``memory`` (bytes of
    address space), ``lifeline`` (a descriptor, or null), ``hidden`` (folders), ``landlock`` (the
    latest version to be used).
    """
    line = b""
    while not line.endswith(b"\n"):
        # Byte by byte: what comes next is for the runner.
        line += os.read(0, 1) or b"\n"
    settings = json.loads(line)
    if settings["lifeline"] is None:
        _end_with_parent()
    else:
        _supervise(settings["lifeline"])
    faulthandler.enable()
    here = Path(__file__).resolve().parent
    version = _protect(here, settings["hidden"], settings["landlock"])
    runner = importlib.import_module(settings["runner"])
    # An entry may have a module of this name.
    del sys.modules[runner.__name__]
    runner.main(settings["memory"], version)


if __name__ == "__main__":
    main()
