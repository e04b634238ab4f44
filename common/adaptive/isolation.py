"""Start an entry of task 4 in isolation; `entry_process.py` beside it starts this.

A copy of this file runs beside the entry's folder with the standard library only. Before any code
of the entry or of NumPy runs, it puts up the walls of task_4/ISOLATION.md, each where the system
allows it, in the order of this file; then half of the process supervises the other.
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

# The walls, of Landlock the latest version known here; a test may take some away, as systems do.
WALLS = {"namespaces": 1, "root": 1, "filter": 1, "Landlock": 10}

# How long the supervisor tries to end what an entry has left behind, in seconds.
_MAX_ENDING = 5.0

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
_GPU = ("/proc/devices", "/proc/driver", "/proc/modules", "/sys/bus", "/sys/class", "/sys/devices",
        "/sys/module", "/etc/OpenCL", "/usr/share/nvidia")  # fmt: skip
# Of /dev no disk, but these and those of GPUs; prefixes of their names.
_DEVICES = ("null", "zero", "full", "random", "urandom")
_GPU_DEVICES = ("nvidia", "dri", "kfd")
_SHARED_MEMORY = "/dev/shm"


def readable_paths(hidden: Iterable[str]) -> list[str]:
    """List files of Python and the system; `ValueError` if one needed holds a hidden folder."""
    prefixes = {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}
    # Of this, the system's Python needs what is listed above; it holds much else.
    prefixes.discard("/usr")
    needed = [f"{prefix}/{part}" for prefix in prefixes for part in _OF_PREFIX]
    needed += [sys.executable, os.path.dirname(os.__file__), *site.getsitepackages(), *_SYSTEM]
    needed += _GPU if any(_devices(_GPU_DEVICES)) else ()
    searched = [*sys.path, *os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)]
    for file in Path("/etc/ld.so.conf.d").glob("*.conf"):
        with contextlib.suppress(OSError, ValueError):
            lines = file.read_text("utf-8").splitlines()
            searched += [line for line in lines if line.startswith("/")]
    secret, readable = [os.path.realpath(path) for path in hidden], set()
    for path in filter(None, [*needed, *searched]):
        holds = [other for other in secret if _lies_in(other, os.path.realpath(path))]
        if not holds:
            readable.add(os.path.abspath(path))
        elif path in needed:
            raise ValueError(
                f"{holds[0]}: lies in {path}, which an entry has to read for its libraries; "
                "expected the answers, the kit's data and the working folder elsewhere"
            )
    return sorted(readable)


def _devices(names: tuple[str, ...]) -> Iterator[str]:
    with contextlib.suppress(OSError):
        yield from (f"/dev/{name}" for name in os.listdir("/dev") if name.startswith(names))


def _lies_in(path: str, folder: str) -> bool:
    return (path + os.sep).startswith(folder.rstrip(os.sep) + os.sep)


# ---- System calls --------------------------------------------------------------------------------


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(function: str | int, *arguments: int | bytes | None) -> int:
    """Call a function of the C library, or of the kernel by its number; `OSError` if it fails."""
    name = function if isinstance(function, str) else "syscall"
    given = arguments if isinstance(function, str) else (function, *arguments)
    # As variadic arguments, whole numbers must be as wide as a register.
    wide = [ctypes.c_long(value) if isinstance(value, int) else value for value in given]
    result = int(getattr(_libc(), name)(*wide))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _works(function: str | int, *arguments: int | bytes | None) -> bool:
    """Make a call, and return whether the system has not refused it."""
    with contextlib.suppress(OSError):
        return _call(function, *arguments) >= 0
    return False


# ---- Namespaces ----------------------------------------------------------------------------------

# prctl(2)
_SET_PARENT_DEATH_SIGNAL, _SET_SECCOMP, _SET_CHILD_SUBREAPER, _SET_NO_NEW_PRIVS = 1, 22, 36, 38
_NEW_USER, _NEW_MOUNTS = 0x10000000, 0x00020000
# System V IPC, processes, network.
_NEW_OTHERS = 0x08000000 | 0x20000000 | 0x40000000
# mount(2), mount_setattr(2), umount2(2)
_NO_SETUID, _NO_DEVICES, _BIND, _RECURSIVE, _SLAVE = 2, 4, 1 << 12, 1 << 14, 1 << 19
_MOUNT_SETATTR, _READ_ONLY, _ALL_BENEATH, _DETACH = 442, 1, 0x8000, 2


def _enter_namespaces() -> bool:
    """Leave the machine's network, IPC and, for children, processes; False if that is refused."""
    users, groups = os.geteuid(), os.getegid()
    # The kernel refuses it to a process with threads: here are none yet.
    # In a namespace of users of its own, whoever started this may do the rest; some containers
    # refuse that one, and let root have the others.
    for namespaces in (_NEW_USER | _NEW_OTHERS, _NEW_OTHERS):
        if _works("unshare", namespaces):
            with contextlib.suppress(OSError):
                Path("/proc/self/setgroups").write_text("deny", "utf-8")
                Path("/proc/self/uid_map").write_text(f"{users} {users} 1", "utf-8")
                Path("/proc/self/gid_map").write_text(f"{groups} {groups} 1", "utf-8")
            return True
    return False


def _enter_root(folder: Path, readable: Iterable[str]) -> bool:
    """Enter a root for reading only, but `entry`, `tmp` and an empty /dev/shm; False if refused."""
    root = f"{folder}/root"
    try:
        _call("unshare", _NEW_MOUNTS)
        _mount("none", "/", _RECURSIVE | _SLAVE)
        os.mkdir(root)
        _mount("tmpfs", root, _NO_SETUID | _NO_DEVICES, b"tmpfs")
        for name in (f"{root}/proc", f"{root}{_SHARED_MEMORY}", root + str(folder)):
            os.makedirs(name)
        try:
            _mount("proc", f"{root}/proc", _NO_SETUID | _NO_DEVICES, b"proc")
        except OSError:
            # In a container that covers parts of it. It shows other processes, but not into them.
            _mount("/proc", f"{root}/proc", _BIND | _RECURSIVE)
        _mount(str(folder), root + str(folder), _BIND)
        bound = {"/proc", str(folder)}
        for path in (*_devices(_DEVICES + _GPU_DEVICES), "/dev/fd", *readable):
            _expose(path, root, bound)
        for_reading = struct.pack("=QQQQ", _READ_ONLY, 0, 0, 0)
        _call(_MOUNT_SETATTR, -1, root.encode(), _ALL_BENEATH, for_reading, 32)
        for name in ("entry", "tmp"):
            _mount(f"{folder}/{name}", f"{root}{folder}/{name}", _BIND)
        _mount("tmpfs", root + _SHARED_MEMORY, _NO_SETUID | _NO_DEVICES, b"tmpfs")
        os.chdir(root)
        # The old root comes to lie on the new one, and is taken away.
        _call("pivot_root", b".", b".")
        _call("umount2", b".", _DETACH)
        return True
    except (OSError, AttributeError):
        return False
    finally:
        os.chdir(folder / "entry")


def _mount(source: str, target: str, flags: int, kind: bytes | None = None) -> None:
    _call("mount", os.fsencode(source), os.fsencode(target), kind, flags, None)


def _expose(path: str, root: str, bound: set[str]) -> None:
    """Make a path, and links that lead to it, appear in a new root, unless `bound` holds it."""
    place = ""
    for name in path.split("/")[1:]:
        place += f"/{name}"
        if place in bound:
            return
        if os.path.islink(place):
            target = os.readlink(place)
            if not os.path.lexists(root + place):
                os.makedirs(os.path.dirname(root + place), exist_ok=True)
                os.symlink(target, root + place)
            followed = os.path.join(os.path.dirname(place), target) + path[len(place) :]
            _expose(os.path.normpath(followed), root, bound)
            return
    if not os.path.exists(path):
        return
    is_folder = os.path.isdir(path)
    os.makedirs(root + (path if is_folder else os.path.dirname(path)), exist_ok=True)
    if not is_folder:
        open(root + path, "wb").close()
    _mount(path, root + path, _BIND | _RECURSIVE)
    bound.add(path)


# ---- Landlock ------------------------------------------------------------------------------------

# Numbers of the system calls, the same on all architectures that Python is built for today.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1

# Rights, by bit.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK, _REFER, _TRUNCATE = 1 << 6, 1 << 11, 1 << 13, 1 << 14
_IOCTL_DEV, _RESOLVE_UNIX = 1 << 15, 1 << 16
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_DEVICE = _READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL_DEV
# No device may be made: to root a new name for the disk would be a way to everything on it.
_OWN = (_RESOLVE_UNIX | ((1 << 15) - 1)) & ~(_MAKE_CHAR | _MAKE_BLOCK)
_FOR_FILES = _EXECUTE | _READ_FILE | _DEVICE

# By version: rights to files, TCP and UDP, and scopes (abstract UNIX sockets, signals).
_FILES = {1: (1 << 13) - 1, 2: _REFER, 3: _TRUNCATE, 5: _IOCTL_DEV, 9: _RESOLVE_UNIX}
_NETWORK, _SCOPES = {4: 0b11, 10: 0b1100}, {6: 0b11}


def landlock_version() -> int:
    """Return the version of Landlock that this kernel offers; 0 if it has none."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            return _call(_CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION)
    return 0


def ruleset(version: int) -> bytes:
    """Pack `struct landlock_ruleset_attr`: the rights refused unless a rule allows them."""
    # Older kernels take the longer structure as long as what they do not know is 0.
    known = (
        sum(rights for first, rights in table.items() if first <= version)
        for table in (_FILES, _NETWORK, _SCOPES)
    )
    return struct.pack("=QQQ", *known)


def restrict(readable: Iterable[str], writable: Iterable[str], version: int) -> int:
    """Let this process only read some files and write others; return the version, 0 if refused."""
    # It holds for the calling thread and what it starts, so it must come before other threads.
    version = min(version, landlock_version())
    if version < 1:
        return 0
    attributes = ruleset(version)
    handled = struct.unpack_from("=Q", attributes)[0]
    allowed = [(path, _READ) for path in readable] + [(path, _OWN) for path in writable]
    allowed += [(path, _DEVICE | _READ_DIR) for path in _devices(_DEVICES + _GPU_DEVICES)]
    try:
        rules = _call(_CREATE_RULESET, attributes, len(attributes), 0)
        for path, rights in allowed:
            with contextlib.suppress(OSError):
                descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
                rights &= handled if os.path.isdir(path) else handled & _FOR_FILES
                # struct landlock_path_beneath_attr
                rule = struct.pack("=Qi", rights, descriptor)
                _works(_ADD_RULE, rules, _RULE_PATH_BENEATH, rule, 0)
                # A file in /proc is made anew when nobody holds it, and loses its rule.
                if not path.startswith("/proc"):
                    os.close(descriptor)
        _call(_RESTRICT_SELF, rules, 0)
        os.close(rules)
    except OSError:
        return 0
    return version


# ---- The filter of system calls ------------------------------------------------------------------

# By machine: its number for the kernel's audit, and which column of numbers below is its own.
_MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1), "riscv64": (0xC00000F3, 1)}
# What these leave outlives the process: keys, shared memory, semaphores, queues (others' too),
# attributes, the kernel's log, priorities; io_uring makes calls past every filter.
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
# Without a root of its own no sockets; else those that are local, and those that ask the kernel.
_SOCKETS = {False: (41, 198, 0, (), True), True: (41, 198, 0, (1, 16), True)}
# Modes, owners and times: these do nothing and say that they did, since copying a file uses them.
_IDLE = {
    "chmod": (90, -1), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, -1), "fchown": (93, 55), "lchown": (94, -1), "fchownat": (260, 54),
    "utime": (132, -1), "utimes": (235, -1), "futimesat": (261, -1), "utimensat": (280, 88),
}  # fmt: skip


def _filter_calls(has_root: bool) -> bool:
    """Refuse system calls from now on; False on a machine with unknown numbers."""
    audit, column = _MACHINES.get(platform.machine(), (0, 0))
    if not audit or sys.byteorder != "little" or sys.maxsize < 1 << 32:
        return False
    results = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000
    allow, refuse, pretend = (_step(0x06, result) for result in results)
    rules = {numbers[column]: refuse for numbers in _REFUSED.values()}
    for *numbers, place, values, are_allowed in (*_BY_ARGUMENT.values(), _SOCKETS[has_root]):
        inside, outside = (allow, refuse) if are_allowed else (refuse, allow)
        # Of all that is sorted out here, the kernel takes the lower half only.
        cases = b"".join(_step(0x15, value, 0, 1) + inside for value in values)
        rules[numbers[column]] = _load(16 + 8 * place) + cases + outside
    # With a root of its own, modes and times of foreign files cannot be changed anyway.
    if not has_root:
        rules |= {numbers[column]: pretend for numbers in _IDLE.values() if numbers[column] >= 0}
    # Neither the calls of 32 bits nor, on x86_64, the third set of numbers.
    program = _load(4) + _step(0x15, audit, 1, 0) + refuse + _load(0)
    program += _step(0x35, 0x40000000, 0, 1) + refuse
    for number, then in rules.items():
        program += _step(0x15, number, 0, len(then) // 8) + then
    steps = ctypes.create_string_buffer(program + allow)
    described = struct.pack("@HP", len(program + allow) // 8, ctypes.addressof(steps))
    for_filter = ctypes.create_string_buffer(described)
    return _works("prctl", _SET_SECCOMP, 2, ctypes.addressof(for_filter), 0, 0)


def _step(code: int, value: int, skip_if: int = 0, skip_if_not: int = 0) -> bytes:
    return struct.pack("=HBBI", code, skip_if, skip_if_not, value)


def _load(place: int) -> bytes:
    """Of `struct seccomp_data`: the number at 0, the machine at 4, arguments from 16 on."""
    return _step(0x20, place)


def _guard_files(folder: Path, readable: Iterable[str]) -> None:
    """Let Python open only files in one folder, Python's own and the system's."""
    system = ["/dev", "/etc", "/proc", "/sys", "/System", "/var/lib"]
    windows = [os.environ[name] for name in ("SystemRoot", "ProgramFiles") if name in os.environ]
    # Unlike Path.home, this raises nothing where there is no home.
    roots = [str(folder), *readable, *system, *windows, os.path.expanduser("~")]
    *roots, home = (os.path.normcase(os.path.realpath(root)) for root in roots)
    code = tuple(importlib.machinery.all_suffixes())

    def is_allowed(path: str) -> bool:
        if process := re.match(r"/proc/(\d+)(/|$)", path):
            return int(process[1]) == os.getpid()
        if path.endswith(code) or not os.path.isfile(path):
            return True
        # Settings and caches of libraries lie in hidden folders at home.
        is_setting = path.startswith(os.path.join(home, "."))
        return is_setting or any(_lies_in(path, root) for root in roots)

    def check(event: str, arguments: tuple[Any, ...]) -> None:
        # Anything but a path is a file that is open already.
        if event in ("open", "os.listdir", "os.scandir") and isinstance(arguments[0], str | bytes):
            path = os.path.normcase(os.path.realpath(os.fsdecode(arguments[0])))
            if not is_allowed(path):
                raise PermissionError(13, "Permission denied", path)

    sys.addaudithook(check)


# ---- Whoever watches the entry -------------------------------------------------------------------


def _supervise(has_namespaces: bool, folder: Path) -> None:
    """Fork, and return in the entry's process; the other waits until it, or the evaluator, has
    ended, ends all that the entry started, removes the folder, and ends as the entry did.
    """
    # Whoever started the evaluator may have had it ignored: then nobody could be waited for.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # Orphans of the entry become children of this process, whatever session they are in.
    _works("prctl", _SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # The first process of a namespace adopts orphans: there this one is not seen.
    first = os.fork() if has_namespaces else None
    if first == 0:
        _works("prctl", _SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        _let_go_of_pipes()
        while True:
            signal.pause()
    awaited = {signal.SIGCHLD, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    entry = os.fork()
    if entry == 0:
        _works("prctl", _SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, awaited)
        os.setsid()
        return
    evaluator = select.poll()
    evaluator.register(os.dup(0), 0)
    _let_go_of_pipes()
    status, arrived = None, None
    while status is None and not evaluator.poll(0):
        arrived = signal.sigtimedwait(awaited, 0.1)
        if arrived is not None and arrived.si_signo == signal.SIGTERM:
            break
        while (waited := os.waitpid(-1, os.WNOHANG))[0] and status is None:
            status = waited[1] if waited[0] == entry else None
    _end_children([first] if status is not None else [entry, first])
    # Imported here, where nobody waits for it.
    import resource
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
    code = os.waitstatus_to_exitcode(status or 0)
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _let_go_of_pipes() -> None:
    # The evaluator must see its pipes close when the entry's processes let go of them.
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nothing, descriptor)


def _end_children(known: list[int | None]) -> None:
    # With the first process of a namespace the kernel ends all others in it: it comes last.
    for child in filter(None, known):
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    # All are killed first: one that another traces ends for its parent when that one does.
    for child in filter(None, known):
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)
    deadline = time.monotonic() + _MAX_ENDING
    with contextlib.suppress(ChildProcessError):
        # The children of a process that ends become this one's, so that the last is found as well.
        while time.monotonic() < deadline:
            if os.waitpid(-1, os.WNOHANG)[0]:
                continue
            for path in Path("/proc").glob("[0-9]*/stat"):
                with contextlib.suppress(OSError):
                    # The name of a program may hold anything, also blanks and brackets.
                    parent = int(path.read_bytes().rpartition(b")")[2].split()[1])
                    if parent == os.getpid():
                        os.kill(int(path.parent.name), signal.SIGKILL)
            time.sleep(0.001)


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


def describe(walls: Mapping[str, int]) -> str:
    """Describe what an entry is kept from by the walls in force, and what is open."""
    namespaces, root, filtered, version = (walls[name] for name in WALLS)
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
    shown = {"namespaces": namespaces, "own root": root, "filtered system calls": filtered}
    by = ", ".join(name for name in [*shown, f"Landlock {version}"] if shown.get(name, version))
    closed = ", ".join(name for name, value in is_closed.items() if value)
    parts = [f"enforced by the operating system ({by}): {closed}"] if closed else []
    if not is_closed.pop("files"):
        lacking = "this system offers neither namespaces nor Landlock"
        parts.insert(0, f"Python's own file functions only ({lacking})")
    if open_ways := ", ".join(name for name, value in is_closed.items() if not value):
        parts.append(f"open: {open_ways}")
    return "; ".join(parts)


def _protect(folder: Path, readable: list[str], allowed: Mapping[str, int]) -> dict[str, int]:
    """Keep this process to its folder, which holds ``entry`` and ``tmp``; return the walls."""
    walls = dict.fromkeys(WALLS, 0)
    if sys.platform == "linux":
        walls["namespaces"] = allowed["namespaces"] and _enter_namespaces()
        _supervise(bool(walls["namespaces"]), folder)
        walls["root"] = walls["namespaces"] and allowed["root"] and _enter_root(folder, readable)
        _works("prctl", _SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        # Of what root may do, here or in a namespace, nothing is left; no program gives it back.
        _works("capset", struct.pack("=Ii", 0x20080522, 0), bytes(24))
        # Without a root of its own, what lies in /dev/shm would stay there for the next mask.
        own = [f"{folder}/entry", f"{folder}/tmp", *[_SHARED_MEMORY] * walls["root"]]
        walls["Landlock"] = restrict([str(folder), *readable], own, allowed["Landlock"])
        walls["filter"] = allowed["filter"] and _filter_calls(bool(walls["root"]))
    else:
        _end_with_parent()
    if walls["Landlock"] or walls["root"]:
        # Libraries that keep settings and caches at home find an empty one.
        os.environ["PYTHONUSERBASE"] = site.getuserbase()
        os.environ["HOME"] = str(folder / "tmp")
        for name in [name for name in os.environ if re.fullmatch(r"XDG_\w+_(HOME|DIR)", name)]:
            del os.environ[name]
    else:
        _guard_files(folder, readable)
    return walls


def main() -> None:
    """Isolate this process as a line of JSON on stdin says, and run the runner in it."""
    # Without a buffer: what comes next is for the runner.
    with open(0, "rb", buffering=0, closefd=False) as requests:
        settings = json.loads(requests.readline())
    try:
        readable = readable_paths(settings["hidden"])
    except ValueError as refusal:
        print(json.dumps({"refused": str(refusal), "arrays": []}), flush=True)
        return
    walls = _protect(Path(__file__).resolve().parent, readable, settings["walls"])
    faulthandler.enable()
    runner = importlib.import_module("entry_runner")
    # An entry may have a module of this name.
    del sys.modules[runner.__name__]
    runner.main(settings["memory"], walls)


if __name__ == "__main__":
    main()
