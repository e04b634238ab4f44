"""Give this process a new root file system, with only the entry's folder and readable paths."""

import os
import struct
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from .readable_paths import devices
from .system_calls import call

# The folder of POSIX shared memory. In the new root file system it is empty at first, and vanishes
# with the process.
SHARED_MEMORY = "/dev/shm"

# A second, short path for the entry's folder of temporary files, whose own path may be long.
# `multiprocessing` makes sockets in this folder, and the path of a socket has at most 107 bytes.
TEMPORARY_FILES = "/tmp_of_entry"
# Symlinks that lead to the open files of the process that follows them. They are copied into the
# new root file system.
_LINKS_TO_DESCRIPTORS = ("/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr")

# unshare(2)
_CLONE_NEWNS = 0x00020000
# Flags of mount(2).
_MS_NOSUID = 1 << 1
_MS_NODEV = 1 << 2
_MS_BIND = 1 << 12
_MS_REC = 1 << 14
_MS_SLAVE = 1 << 19
# mount_setattr(2); the number is the same on all architectures.
_SYS_MOUNT_SETATTR = 442
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_MOUNT_ATTR_RDONLY = 1
# umount2(2)
_MNT_DETACH = 2
# proc(5): show a process only the processes that it may trace. An entry's process is restricted by
# Landlock, or has no capabilities. It may trace only processes that are restricted in the same way:
# the other processes of the entry.
_ONLY_OWN_PROCESSES = "hidepid=ptraceable"


@dataclass(frozen=True)
class NewRoot:
    """The root file system that `enter_root` has made."""

    # Whether the new root has a /proc of its own. An entry is the program that runs in the new
    # root. Its own /proc shows no processes but those of the entry, and only the facts about the
    # machine that the entry may read. Otherwise, the /proc of the system is mounted, which shows
    # more.
    has_own_proc: bool


def enter_root(folder: Path, readable: Collection[str]) -> NewRoot | None:
    """Make a new root file system the root of this process; return None if the system refuses.

    The new root shows only `folder` and the `readable` paths. All of it is for reading only, except
    for the folders `entry` and `tmp` in `folder` and an empty /dev/shm. The folder `tmp` has a
    second, short path: `TEMPORARY_FILES`. `folder` and readable paths may lie in /dev/shm. The
    process must be in namespaces of its own.
    """
    root = f"{folder}/root"
    not_recursive = 0
    try:
        call("unshare", _CLONE_NEWNS)
        # Mounts from now on are not visible outside of this process. This call of mount(2) changes
        # the propagation of mounts, and ignores its source "none".
        _mount("none", "/", _MS_REC | _MS_SLAVE)
        os.mkdir(root)
        _mount("tmpfs", root, _MS_NOSUID | _MS_NODEV, "tmpfs")
        has_own_proc = _fill(root, folder, readable)
        # Make all mounts below the new root read-only. Then make the mount of /dev/shm writable
        # again, but not the mounts of readable paths that lie in /dev/shm.
        _set_attributes(root, _AT_RECURSIVE, set_bits=_MOUNT_ATTR_RDONLY)
        _set_attributes(root + SHARED_MEMORY, not_recursive, clear_bits=_MOUNT_ATTR_RDONLY)
        # These new mounts are writable. They cover the read-only `entry` and `tmp` in `folder`.
        for name in ("entry", "tmp"):
            _mount(f"{folder}/{name}", f"{root}{folder}/{name}", _MS_BIND)
        _mount(f"{folder}/tmp", root + TEMPORARY_FILES, _MS_BIND)
        os.chdir(root)
        # Make the current folder the root. pivot_root(2) mounts the old root at its second path,
        # here at the same folder. The old root covers the new one until `umount2` unmounts it.
        call("pivot_root", b".", b".")
        call("umount2", b".", _MNT_DETACH)
        return NewRoot(has_own_proc)
    except (OSError, AttributeError):
        # AttributeError: the C library lacks one of the functions.
        return None
    finally:
        # The entry starts in its own folder, whether or not the process has a new root.
        os.chdir(folder / "entry")


def _fill(root: str, folder: Path, readable: Collection[str]) -> bool:
    """Mount everything that an entry may see in the new root, whose folder is `root`.

    An entry may see /proc, /dev/shm, its own `folder`, devices and the `readable` paths. A mount
    covers all earlier mounts below its path, so outer folders are mounted first.

    Returns whether the new root has a /proc of its own, and not the /proc of the system.
    """
    os.makedirs(f"{root}/proc")
    os.makedirs(root + SHARED_MEMORY)
    os.makedirs(root + TEMPORARY_FILES)
    has_own_proc = _mount_proc(root)
    # The paths that `_expose` must skip, since this function mounts them itself.
    mounted = {str(folder)}
    if has_own_proc:
        # Hide most of the new /proc, and note the paths in it that stay visible.
        mounted.update(_cover_proc(root, readable))
    else:
        # `_mount_proc` has mounted the whole /proc of the system.
        mounted.add("/proc")
    # Mount an empty /dev/shm first: the entry's folder and readable paths may lie in /dev/shm, and
    # a later mount of /dev/shm would cover them.
    _mount("tmpfs", root + SHARED_MEMORY, _MS_NOSUID | _MS_NODEV, "tmpfs")
    os.makedirs(root + str(folder), exist_ok=True)
    _mount(str(folder), root + str(folder), _MS_BIND)
    for path in (*devices(), *_LINKS_TO_DESCRIPTORS, *readable):
        _expose(path, root, mounted)
    return has_own_proc


def _mount_proc(root: str) -> bool:
    """Mount a new /proc in the new root or, if the system refuses, the /proc of the system.

    Returns whether the mounted /proc is new.
    """
    target = f"{root}/proc"
    try:
        _mount("proc", target, _MS_NOSUID | _MS_NODEV, "proc", _ONLY_OWN_PROCESSES)
        return True
    except OSError:
        # Some containers cover parts of /proc and refuse a new /proc. The container's /proc shows
        # that other processes exist, but gives no access to them.
        _mount("/proc", target, _MS_BIND | _MS_REC)
        return False


def _cover_proc(root: str, readable: Collection[str]) -> set[str]:
    """Hide everything in the /proc of the new root except processes and readable paths.

    /proc holds counters of the machine. The program that sees the new root is an entry of task 4.
    It plays several games, with other answers hidden in each game. Through a counter, it could pass
    answers on: change the counter in one game, and read it in the next game.

    Parameters
    ----------
    root
        The folder that becomes the root of the file system that the entry sees.
    readable
        The paths outside of its own folder that the entry may read.

    Returns
    -------
    set of str
        The paths in /proc that stay visible.
    """
    kept = set()
    for name in os.listdir(f"{root}/proc"):
        path = f"/proc/{name}"
        is_link = os.path.islink(root + path)
        # A folder whose name is a number belongs to a process. A link such as /proc/mounts leads
        # into the folder of the process that reads it, here the entry itself.
        if name.isdecimal() or is_link or path in readable:
            kept.add(path)
        elif name == "stat":
            # Cover /proc/stat with a copy whose content does not change: it has no counters.
            constant = Path(f"{root}/proc_stat")
            constant.write_text(_constant_part(Path(root + path).read_text("utf-8")), "utf-8")
            _mount(str(constant), root + path, _MS_BIND)
        elif os.path.isdir(root + path):
            # Cover the folder with an empty folder.
            _mount("tmpfs", root + path, _MS_NOSUID | _MS_NODEV, "tmpfs")
        else:
            # Cover the file with /dev/null.
            _mount(os.devnull, root + path, _MS_BIND)
    return kept


def _constant_part(stat: str) -> str:
    """Return the content of /proc/stat without its counters, which an entry could change and read.

    The times of the processors become 0. The line `btime`, the time when the machine started, is
    kept for entries that use joblib. Before joblib ends its worker processes, it asks psutil when
    they began, and psutil reads `btime`.
    """
    lines = []
    for line in stat.splitlines():
        name, *values = line.split()
        if name.startswith("cpu"):
            values = ["0"] * len(values)
        if name.startswith("cpu") or name == "btime":
            lines.append(" ".join([name, *values]) + "\n")
    return "".join(lines)


def _set_attributes(path: str, flags: int, set_bits: int = 0, clear_bits: int = 0) -> None:
    """Set and clear attributes of the mount at a path."""
    # The fields of struct mount_attr: the attributes to set, the attributes to clear, the
    # propagation and the user namespace.
    attributes = struct.pack("=QQQQ", set_bits, clear_bits, 0, 0)
    call(
        "syscall", _SYS_MOUNT_SETATTR, _AT_FDCWD, os.fsencode(path), flags,
        attributes, len(attributes),
    )  # fmt: skip


def _mount(
    source: str, target: str, flags: int, file_system: str | None = None, options: str = ""
) -> None:
    kind = None if file_system is None else os.fsencode(file_system)
    call("mount", os.fsencode(source), os.fsencode(target), kind, flags, os.fsencode(options))


def _expose(path: str, root: str, mounted: set[str]) -> None:
    """Mount a path in the new root, and copy the symlinks that are part of the path.

    `mounted` holds the paths that are mounted already; this function adds the path. A path that
    does not exist is skipped.
    """
    # Walk down the path: for /a/b, `start_of_path` is /a in the first step, and /a/b in the second.
    start_of_path = ""
    for name in path.split("/")[1:]:
        start_of_path += f"/{name}"
        # If a folder is mounted already, the paths in it are mounted with the folder.
        if start_of_path in mounted:
            return
        if os.path.islink(start_of_path):
            target = _copy_link(start_of_path, root)
            # Go on with the path that the symlink leads to.
            rest = path[len(start_of_path) :]
            _expose(os.path.normpath(target + rest), root, mounted)
            return
    if os.path.isdir(path):
        os.makedirs(root + path, exist_ok=True)
    elif os.path.exists(path):
        # A file is bind-mounted onto an empty file.
        os.makedirs(os.path.dirname(root + path), exist_ok=True)
        open(root + path, "wb").close()
    else:
        return
    _mount(path, root + path, _MS_BIND | _MS_REC)
    mounted.add(path)


def _copy_link(link: str, root: str) -> str:
    """Make the same symlink in the new root; return the path that the link leads to."""
    target = os.readlink(link)
    if not os.path.lexists(root + link):
        os.makedirs(os.path.dirname(root + link), exist_ok=True)
        os.symlink(target, root + link)
    return os.path.join(os.path.dirname(link), target)
