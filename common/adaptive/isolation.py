"""Start an entry of task 4 in isolation; `entry_process.py` beside it starts this.

This file is self-contained: a copy of it runs beside the entry's folder with the standard library
only. It reads one line of JSON from stdin (see `main`), and then takes these steps before any code
of the entry or of NumPy runs. Each is taken where the system allows it, and none takes a privilege;
`describe` says what they close.

1. Namespaces (Linux): the process leaves the machine's network, its System V IPC and POSIX queues,
   and its processes; see namespaces(7).
2. It splits in two. The first half supervises: whatever the entry starts, in a session of its own
   or not, ends when the entry does or when the evaluator closes a pipe, which it also does by
   dying. The second half becomes the entry's.
3. A root of its own: the second half sees no files but Python, its packages, the system's
   libraries, all for reading only, and its own folders; see mount_namespaces(7).
4. It gives up all capabilities, and what Landlock can refuse; see landlock(7).
5. A filter refuses the system calls by which one mask's game could leave something for the next,
   or reach others where there are no namespaces; see seccomp(2).

Without 3 and 4 a hook inside Python keeps it from opening files by accident; that is no wall.
Then the runner beside this file takes over in the same process.
"""

import contextlib
import ctypes
import errno
import faulthandler
import functools
import importlib
import importlib.machinery
import json
import os
import platform
import re
import select
import signal
import site
import struct
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

# What a test may take away, as a system does that does not allow it.
MEANS = ("namespaces", "root", "filter")

# How long the supervisor tries to end what an entry has left behind, in seconds.
_MAX_ENDING = 5.0

# ---- Which files can be read ---------------------------------------------------------------------

# Of each prefix of Python's; on Windows and macOS some have other names.
_OF_PREFIX = (
    "bin", "lib", "lib32", "lib64", "libexec", "include", "share", "etc", "ssl", "pyvenv.cfg",
    "DLLs", "Frameworks", "Lib", "Library", "Resources", "Scripts", "python3.dll",
)  # fmt: skip
# Programs, shared libraries, locale, certificates; of /proc this process and what tells of the
# machine, but no counter that an entry could move for the next one to read.
_SYSTEM = (
    "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
    "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/libexec",
    "/usr/local/bin", "/usr/local/lib", "/usr/local/lib64", "/nix/store", "/gnu/store",
    "/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
    "/etc/group", "/etc/nsswitch.conf", "/etc/passwd", "/etc/localtime", "/etc/timezone",
    "/etc/locale.alias", "/etc/mime.types", "/etc/os-release", "/etc/fonts",
    "/usr/share/fonts", "/usr/share/fontconfig", "/usr/share/i18n", "/usr/share/icu",
    "/usr/share/locale", "/usr/share/mime", "/usr/share/terminfo", "/usr/share/zoneinfo",
    "/etc/ca-certificates", "/etc/pki/ca-trust", "/etc/pki/tls", "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates",
    "/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/filesystems", "/proc/version",
    "/proc/sys/kernel/osrelease", "/proc/sys/kernel/pid_max", "/proc/sys/vm",
    "/sys/devices/system/cpu", "/sys/devices/system/node", "/sys/kernel/mm",
    "/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/memory.max",
)  # fmt: skip
# What a GPU's libraries look for.
_GPU = ("/proc/devices", "/proc/driver", "/proc/modules", "/sys/bus", "/sys/class", "/sys/devices",
        "/sys/module", "/etc/OpenCL", "/usr/share/nvidia")  # fmt: skip
# Of /dev no disk, but these and those of GPUs; prefixes of their names.
_DEVICES = ("null", "zero", "full", "random", "urandom")
_GPU_DEVICES = ("nvidia", "dri", "kfd")
_SHARED_MEMORY = "/dev/shm"


def readable_paths(hidden: Iterable[str]) -> list[str]:
    """List what an interpreter needs: its own files, packages, the system's libraries.

    Raises `ValueError` if one of these holds a hidden folder. A folder that is only searched
    (`PYTHONPATH`, such as the kit's own) is left out then.
    """
    secret = [os.path.realpath(path) for path in hidden]

    def find_secret(path: str) -> str:
        real = os.path.realpath(path)
        return next((other for other in secret if _lies_in(other, real)), "")

    prefixes = {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}
    needed = [f"{prefix}/{part}" for prefix in prefixes for part in _OF_PREFIX]
    needed += [sys.executable, os.path.dirname(os.__file__), *site.getsitepackages(), *_SYSTEM]
    needed += _GPU if any(_devices(_GPU_DEVICES)) else ()
    needed = [path for path in needed if os.path.lexists(path)]
    for path in needed:
        if other := find_secret(path):
            raise ValueError(
                f"{other}: lies in {path}, which an entry has to read for its libraries; expected "
                "the answers, the kit's data and the working folder elsewhere"
            )
    libraries = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    searched = [path for path in (*sys.path, *libraries, *_library_folders()) if path]
    found = {*needed, *(path for path in searched if not find_secret(path))}
    return sorted(os.path.abspath(path) for path in found)


def _library_folders() -> Iterator[str]:
    """List the folders of shared libraries that the system is set up with."""
    for file in Path("/etc/ld.so.conf.d").glob("*.conf"):
        with contextlib.suppress(OSError, ValueError):
            yield from (line for line in file.read_text().splitlines() if line.startswith("/"))


def _devices(names: tuple[str, ...]) -> Iterator[str]:
    with contextlib.suppress(OSError):
        yield from (f"/dev/{name}" for name in os.listdir("/dev") if name.startswith(names))


def _lies_in(path: str, folder: str) -> bool:
    return (path + os.sep).startswith(folder.rstrip(os.sep) + os.sep)


# ---- System calls --------------------------------------------------------------------------------


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _require(result: int) -> None:
    """Raise `OSError` if a call of the C library says that it failed."""
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _call(number: int, *arguments: int | bytes | None) -> int:
    """Make a system call; -1 if it fails."""
    # As variadic arguments, whole numbers must be as wide as a register.
    wide = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return int(_libc().syscall(ctypes.c_long(number), *wide))


_SET_PARENT_DEATH_SIGNAL, _SET_SECCOMP, _SET_CHILD_SUBREAPER, _SET_NO_NEW_PRIVS = 1, 22, 36, 38


def _prctl(option: int, value: int, address: int = 0) -> bool:
    wide = [ctypes.c_ulong(number) for number in (value, address, 0, 0)]
    return bool(_libc().prctl(ctypes.c_int(option), *wide) == 0)


# ---- Namespaces ----------------------------------------------------------------------------------

_NEW_USER, _NEW_MOUNTS = 0x10000000, 0x00020000
# System V IPC, processes, network.
_NEW_OTHERS = 0x08000000 | 0x20000000 | 0x40000000
# mount(2), mount_setattr(2), umount2(2)
_NO_SETUID, _NO_DEVICES, _BIND, _RECURSIVE, _SLAVE = 2, 4, 1 << 12, 1 << 14, 1 << 19
_MOUNT_SETATTR, _READ_ONLY, _ALL_BENEATH, _DETACH = 442, 1, 0x8000, 2


def _enter_namespaces() -> bool:
    """Leave the machine's network, IPC and, for children, processes; False if that is refused.

    The kernel refuses it to a process with threads: here are none yet.
    """
    ids = {"uid_map": os.geteuid(), "gid_map": os.getegid()}
    # In a namespace of users of its own, whoever started this may do the rest.
    if _libc().unshare(_NEW_USER | _NEW_OTHERS) == 0:
        with contextlib.suppress(OSError):
            Path("/proc/self/setgroups").write_text("deny")
            for name, own in ids.items():
                Path("/proc/self", name).write_text(f"{own} {own} 1")
        return True
    # Some containers refuse that one, and let root have the others.
    return bool(_libc().unshare(_NEW_OTHERS) == 0)


def _enter_root(folder: Path, readable: Iterable[str]) -> bool:
    """Give this process a root of its own, all for reading only but its own folder's `entry` and
    `tmp` and an empty /dev/shm; False if the system refuses, and nothing has changed.
    """
    root = f"{folder}/root"
    try:
        _require(_libc().unshare(_NEW_MOUNTS))
        _mount("none", "/", _RECURSIVE | _SLAVE)
        os.mkdir(root)
        _mount("tmpfs", root, _NO_SETUID | _NO_DEVICES, "tmpfs")
        for name in (f"{root}/proc", f"{root}{_SHARED_MEMORY}", root + str(folder)):
            os.makedirs(name)
        try:
            _mount("proc", f"{root}/proc", _NO_SETUID | _NO_DEVICES, "proc")
        except OSError:
            # In a container that covers parts of it. It shows other processes, but not into them.
            _mount("/proc", f"{root}/proc", _BIND | _RECURSIVE)
        _mount(str(folder), root + str(folder), _BIND)
        bound = {"/proc", str(folder)}
        for path in (*_devices(_DEVICES + _GPU_DEVICES), "/dev/fd", *readable):
            _expose(path, root, bound)
        for_reading = struct.pack("=QQQQ", _READ_ONLY, 0, 0, 0)
        _require(_call(_MOUNT_SETATTR, -1, root.encode(), _ALL_BENEATH, for_reading, 32))
        for name in ("entry", "tmp"):
            _mount(f"{folder}/{name}", f"{root}{folder}/{name}", _BIND)
        _mount("tmpfs", root + _SHARED_MEMORY, _NO_SETUID | _NO_DEVICES, "tmpfs")
        os.chdir(root)
        # The old root comes to lie on the new one, and is taken away.
        _require(_libc().pivot_root(b".", b"."))
        _require(_libc().umount2(b".", _DETACH))
        os.chdir(folder / "entry")
    except (OSError, AttributeError):
        os.chdir(folder / "entry")
        return False
    return True


def _mount(source: str, target: str, flags: int, kind: str | None = None) -> None:
    where = os.fsencode(source), os.fsencode(target), kind and kind.encode()
    _require(_libc().mount(*where, ctypes.c_ulong(flags), None))


def _expose(path: str, root: str, bound: set[str]) -> None:
    """Make a file or folder appear in a new root at the same place, and the links that lead to it.

    What lies in a path that is `bound` is there already.
    """
    parts = path.split("/")
    for depth in range(2, len(parts) + 1):
        place = "/".join(parts[:depth])
        if place in bound:
            return
        if os.path.islink(place):
            target = os.readlink(place)
            if not os.path.lexists(root + place):
                os.makedirs(os.path.dirname(root + place), exist_ok=True)
                os.symlink(target, root + place)
            followed = os.path.join(os.path.dirname(place), target, *parts[depth:])
            _expose(os.path.normpath(followed), root, bound)
            return
    if os.path.isdir(path):
        os.makedirs(root + path, exist_ok=True)
    elif os.path.exists(path):
        os.makedirs(os.path.dirname(root + path), exist_ok=True)
        open(root + path, "wb").close()
    else:
        return
    _mount(path, root + path, _BIND | _RECURSIVE)
    bound.add(path)


# ---- Landlock ------------------------------------------------------------------------------------

# Numbers of the system calls, the same on all architectures that Python is built for today.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1
# The latest version whose rights are known here; a newer kernel offers this one as well.
_NEWEST = 10

# Rights, by bit.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK, _TRUNCATE, _IOCTL_DEV = 1 << 6, 1 << 11, 1 << 14, 1 << 15
_RESOLVE_UNIX = 1 << 16
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_DEVICE = _READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL_DEV
# No device may be made: to root a new name for the disk would be a way to everything on it.
_OWN = (_RESOLVE_UNIX | ((1 << 15) - 1)) & ~(_MAKE_CHAR | _MAKE_BLOCK)
_FOR_FILES = _EXECUTE | _READ_FILE | _DEVICE

_TCP, _UDP = 0b11, 0b1100  # bind, connect
_SCOPES = 0b11  # abstract UNIX sockets, signals


def landlock_version() -> int:
    """Return the version of Landlock that this kernel offers; 0 if it has none."""
    if sys.platform != "linux":
        return 0
    version = _call(_CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION)
    return max(0, version)


def ruleset(version: int) -> bytes:
    """Pack `struct landlock_ruleset_attr`: the rights that are refused unless a rule allows them.

    Older versions know fewer rights.
    """
    files = (1 << 13) - 1
    for first, right in ((2, 1 << 13), (3, _TRUNCATE), (5, _IOCTL_DEV), (9, _RESOLVE_UNIX)):
        files |= right if version >= first else 0
    network = _TCP * (version >= 4) | _UDP * (version >= 10)
    # Older kernels take the longer structure as long as what they do not know is 0.
    return struct.pack("=QQQ", files, network, _SCOPES * (version >= 6))


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
    allowed = [(path, _READ) for path in readable] + [(path, _OWN) for path in writable]
    allowed += [(path, _DEVICE | _READ_DIR) for path in _devices(_DEVICES + _GPU_DEVICES)]
    for path, rights in allowed:
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
            rights &= handled if os.path.isdir(path) else handled & _FOR_FILES
            # struct landlock_path_beneath_attr
            rule = struct.pack("=Qi", rights, descriptor)
            _call(_ADD_RULE, rules, _RULE_PATH_BENEATH, rule, 0)
            # /proc makes its files anew when nobody holds them, and a rule is about the file it was
            # made for.
            if not path.startswith("/proc"):
                os.close(descriptor)
    in_force = _call(_RESTRICT_SELF, rules, 0) == 0
    os.close(rules)
    return version if in_force else 0


# ---- The filter of system calls ------------------------------------------------------------------

# By machine: its number for the kernel's audit, and which column of numbers below is its own.
_MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1), "riscv64": (0xC00000F3, 1)}
# What these leave behind outlives the process: keys, shared memory, queues and semaphores of
# System V (also those that others have made), queues of POSIX, attributes, the kernel's log,
# priorities. io_uring makes calls past every filter.
_REFUSED = {
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190),
    "semop": (65, 193), "semtimedop": (220, 192), "semctl": (66, 191), "msgget": (68, 186),
    "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187),
    "mq_open": (240, 180), "mq_unlink": (241, 181), "io_uring_setup": (425, 425),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "setxattrat": (463, 463),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "removexattrat": (466, 466), "file_setattr": (469, 469), "syslog": (103, 116),
    "setpriority": (141, 140), "ioprio_set": (251, 30),
}  # fmt: skip
# Of one argument, by place, these values alone are allowed (True) or refused (False): other
# processes' limits and priorities; settings of files, as flags or expected lifetime.
_BY_ARGUMENT = {
    "sched_setaffinity": (203, 122, 0, (0,), True),
    "sched_setscheduler": (144, 119, 0, (0,), True),
    "sched_setparam": (142, 118, 0, (0,), True),
    "sched_setattr": (314, 274, 0, (0,), True),
    "prlimit64": (302, 261, 0, (0,), True),
    "ioctl": (16, 29, 1, (0x40086602, 0x401C5820), False),
    "fcntl": (72, 25, 1, (1036, 1038), False),
}
# Sockets that are local, and those that ask the kernel.
_SOCKET, _FAMILIES = (41, 198), (1, 16)
# Modes, owners and times: these do nothing and say that they did, since copying a file uses them.
_IDLE = {
    "chmod": (90, -1), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, -1), "fchown": (93, 55), "lchown": (94, -1), "fchownat": (260, 54),
    "utime": (132, -1), "utimes": (235, -1), "futimesat": (261, -1), "utimensat": (280, 88),
}  # fmt: skip


def filter_program(machine: str, has_root: bool) -> bytes:
    """Assemble the filter, `struct sock_filter`s; nothing for a machine with unknown numbers.

    Where the process has a root of its own, local sockets reach nobody outside, and modes and times
    of foreign files cannot be changed anyway.
    """
    if machine not in _MACHINES or sys.byteorder != "little" or sys.maxsize < 1 << 32:
        return b""
    audit, column = _MACHINES[machine]
    allow, refuse, pretend = (
        _step(0x06, result) for result in (0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000)
    )
    # Neither the calls of 32 bits nor, on x86_64, the third set of numbers.
    program = _load(4) + _step(0x15, audit, 1, 0) + refuse + _load(0)
    program += _step(0x35, 0x40000000, 0, 1) + refuse
    rules = {numbers[column]: refuse for numbers in _REFUSED.values()}
    for *numbers, place, values, are_allowed in _BY_ARGUMENT.values():
        inside, outside = (allow, refuse) if are_allowed else (refuse, allow)
        rules[numbers[column]] = _sort_out(place, values, inside, outside)
    rules[_SOCKET[column]] = _sort_out(0, _FAMILIES if has_root else (), allow, refuse)
    if not has_root:
        rules |= {numbers[column]: pretend for numbers in _IDLE.values() if numbers[column] >= 0}
    for number, then in rules.items():
        program += _step(0x15, number, 0, len(then) // 8) + then
    return program + allow


def _step(code: int, value: int, skip_if: int = 0, skip_if_not: int = 0) -> bytes:
    return struct.pack("=HBBI", code, skip_if, skip_if_not, value)


def _load(place: int) -> bytes:
    """Of `struct seccomp_data`: the number at 0, the machine at 4, arguments from 16 on."""
    return _step(0x20, place)


def _sort_out(place: int, values: Iterable[int], inside: bytes, outside: bytes) -> bytes:
    # Of all that is sorted out here, the kernel takes the lower half only.
    cases = b"".join(_step(0x15, value, 0, 1) + inside for value in values)
    return _load(16 + 8 * place) + cases + outside


def _filter_calls(has_root: bool) -> bool:
    program = filter_program(platform.machine(), has_root)
    if not program:
        return False
    steps = ctypes.create_string_buffer(program, len(program))
    described = struct.pack("@HP", len(program) // 8, ctypes.addressof(steps))
    for_filter = ctypes.create_string_buffer(described, len(described))
    return _prctl(_SET_SECCOMP, 2, ctypes.addressof(for_filter))


# ---- Elsewhere -----------------------------------------------------------------------------------


def _guard_files(folder: Path, readable: Iterable[str]) -> None:
    """Let Python open only files in one folder, Python's own and the system's.

    This catches an entry that reads data from where they lie on one machine, such as the full
    training file, which holds the hidden answers of the local split. It is no wall against a
    program that means harm, nor against a library that opens files without Python's help.
    """
    system = ["/dev", "/etc", "/proc", "/sys", "/System", "/var/lib"]
    windows = [os.environ[name] for name in ("SystemRoot", "ProgramFiles") if name in os.environ]
    roots = [
        os.path.normcase(os.path.realpath(root))
        for root in [str(folder), *readable, *system, *windows]
    ]
    # Unlike Path.home, this raises nothing where there is no home.
    home = os.path.normcase(os.path.realpath(os.path.expanduser("~")))
    code = tuple(importlib.machinery.all_suffixes())

    def is_allowed(path: str) -> bool:
        process = re.match(r"/proc/(\d+)(/|$)", path)
        if process:
            return int(process[1]) == os.getpid()
        if path.endswith(code) or not os.path.isfile(path):
            return True
        # Settings and caches of libraries lie in hidden folders at home.
        return any(_lies_in(path, root) for root in roots) or (
            path.startswith(os.path.join(home, "."))
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


# ---- Whoever watches the entry -------------------------------------------------------------------


def _supervise(lifeline: int, has_namespaces: bool) -> None:
    """Split this process in two: return in the one for the entry, and stay in the other until all
    that the entry started has ended; then end as the entry did.

    When the evaluator closes its end of the pipe `lifeline`, everything ends.
    """
    # Orphans of the entry become children of this process, whatever session they are in.
    _prctl(_SET_CHILD_SUBREAPER, 1)
    first = os.fork() if has_namespaces else None
    if first == 0:
        _be_first(lifeline)
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
    _let_go_of_pipes()
    status: int | None = None
    with contextlib.suppress(ChildProcessError):
        while status is None and lifeline not in select.select([lifeline, ended], [], [])[0]:
            os.read(ended, 1 << 10)
            while (waited := os.waitpid(-1, os.WNOHANG))[0]:
                if waited[0] == entry:
                    status = waited[1]
    # When the first process of a namespace ends, the kernel ends all others in it, and lets it go
    # once they are waited for.
    children = ([entry] if status is None else []) + ([first] if first else [])
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    for child in children:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)
    _end_children()
    if status is not None and os.WIFSIGNALED(status):
        _die_of(os.WTERMSIG(status))
    os._exit(os.WEXITSTATUS(status) if status is not None else 0)


def _be_first(lifeline: int) -> None:
    """Be the process that adopts orphans in a namespace of processes, until the evaluator goes."""
    _prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    _let_go_of_pipes()
    os.read(lifeline, 1)
    os._exit(0)


def _let_go_of_pipes() -> None:
    # The evaluator must see its pipes close when the entry's processes let go of them.
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nothing, descriptor)


def _end_children() -> None:
    deadline = time.monotonic() + _MAX_ENDING
    with contextlib.suppress(ChildProcessError):
        # The children of a process that ends become this one's, so that the last is found as well.
        while time.monotonic() < deadline:
            if not os.waitpid(-1, os.WNOHANG)[0]:
                for name in filter(str.isdigit, os.listdir("/proc")):
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


# ---- All steps -----------------------------------------------------------------------------------


def describe(walls: Mapping[str, int]) -> str:
    """Describe what an entry is kept from by the walls in force, and what is open."""
    version = walls["Landlock"]
    namespaces, root, filtered = walls["namespaces"], walls["root"], walls["filter"]
    is_closed = {
        "files": root or version,
        "which files exist and when they were read": root,
        "modes and times of files": root or filtered,
        "cutting files short": root or version >= 3,
        "TCP": namespaces or filtered or version >= 4,
        "UDP and other networks": namespaces or filtered,
        "sockets by path": root or filtered or version >= 9,
        "signals": namespaces or version >= 6,
        "memory shared between programs": (namespaces or filtered) and (root or version),
        "kernel keyring": filtered,
    }
    by = ["namespaces"] * namespaces + ["own root"] * root + ["filtered system calls"] * filtered
    by += [f"Landlock {version}"] * (version > 0)
    closed = [name for name, value in is_closed.items() if value]
    parts = []
    if not is_closed.pop("files"):
        lacking = "this system offers neither namespaces nor Landlock"
        parts.append(f"Python's own file functions only ({lacking})")
    if closed:
        parts.append(f"enforced by the operating system ({', '.join(by)}): {', '.join(closed)}")
    if open_ways := [name for name, value in is_closed.items() if not value]:
        parts.append(f"open: {', '.join(open_ways)}")
    return "; ".join(parts)


def _protect(folder: Path, readable: list[str], has_namespaces: bool, settings: Any) -> Any:
    """Keep this process to its folder, which holds ``entry`` and ``tmp``; return the walls."""
    has_root = has_namespaces and "root" in settings["means"] and _enter_root(folder, readable)
    version, is_filtered = 0, False
    if sys.platform == "linux":
        _prctl(_SET_NO_NEW_PRIVS, 1)
        # Of what root may do, here or in a namespace, nothing is left; no program gives it back.
        _libc().capset(struct.pack("=Ii", 0x20080522, 0), bytes(24))
        # Without a root of its own, what lies in /dev/shm would stay there for the next mask.
        own = [f"{folder}/entry", f"{folder}/tmp", *[_SHARED_MEMORY] * has_root]
        version = restrict([str(folder), *readable], own, settings["landlock"])
        is_filtered = "filter" in settings["means"] and _filter_calls(has_root)
    if version or has_root:
        # Libraries that keep settings and caches at home find an empty one.
        os.environ["PYTHONUSERBASE"] = site.getuserbase()
        os.environ["HOME"] = str(folder / "tmp")
        for name in [name for name in os.environ if re.fullmatch(r"XDG_\w+_(HOME|DIR)", name)]:
            del os.environ[name]
    else:
        _guard_files(folder, readable)
    found = {"namespaces": has_namespaces, "root": has_root, "filter": is_filtered}
    return {**found, "Landlock": version}


def main() -> None:
    """Isolate this process as the first line of stdin says, and run the runner in it.

    The line is an object of JSON: ``runner`` (the module beside this one), ``memory`` (bytes of
    address space), ``lifeline`` (a descriptor, or null), ``hidden`` (folders), ``means`` (of those
    in `MEANS`, which may be used), ``landlock`` (the latest version to be used).
    """
    line = b""
    while not line.endswith(b"\n"):
        # Byte by byte: what comes next is for the runner.
        line += os.read(0, 1) or b"\n"
    settings = json.loads(line)
    try:
        readable = readable_paths(settings["hidden"])
    except ValueError as refusal:
        print(json.dumps({"refused": str(refusal), "arrays": []}), flush=True)
        return
    has_namespaces = False
    if settings["lifeline"] is None:
        _end_with_parent()
    else:
        has_namespaces = "namespaces" in settings["means"] and _enter_namespaces()
        _supervise(settings["lifeline"], has_namespaces)
    faulthandler.enable()
    walls = _protect(Path(__file__).resolve().parent, readable, has_namespaces, settings)
    runner = importlib.import_module(settings["runner"])
    # An entry may have a module of this name.
    del sys.modules[runner.__name__]
    runner.main(settings["memory"], walls)


if __name__ == "__main__":
    main()
