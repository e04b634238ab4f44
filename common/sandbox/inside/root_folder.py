"""Give this process a new root file system, with only the entry's folder and readable paths."""

import os
import struct
from collections.abc import Iterable
from pathlib import Path

from .readable_paths import devices
from .system_calls import call

# The folder of POSIX shared memory. The new root gets an empty one, which vanishes with the
# process.
SHARED_MEMORY = "/dev/shm"

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


def enter_root(folder: Path, readable: Iterable[str]) -> bool:
    """Make a new root file system the root of this process; return False if the system refuses.

    All of the new root is for reading only, except for the folders `entry` and `tmp` in `folder`
    and an empty /dev/shm. The process must be in namespaces of its own.
    """
    root = f"{folder}/root"
    try:
        call("unshare", _CLONE_NEWNS)
        # Mounts from now on are not visible outside of this process. Of the arguments of mount(2),
        # only the target and the flags matter here.
        _mount("none", "/", _MS_REC | _MS_SLAVE)
        os.mkdir(root)
        _mount("tmpfs", root, _MS_NOSUID | _MS_NODEV, "tmpfs")
        _fill(root, folder, readable)
        _make_read_only(root)
        for name in ("entry", "tmp"):
            _mount(f"{folder}/{name}", f"{root}{folder}/{name}", _MS_BIND)
        _mount("tmpfs", root + SHARED_MEMORY, _MS_NOSUID | _MS_NODEV, "tmpfs")
        os.chdir(root)
        # pivot_root(2) makes its first path the root, and mounts the old root at its second path.
        # With the same path twice, the old root lies over the new one until it is unmounted.
        call("pivot_root", b".", b".")
        call("umount2", b".", _MNT_DETACH)
        return True
    except (OSError, AttributeError):
        # AttributeError: the C library lacks one of the functions.
        return False
    finally:
        os.chdir(folder / "entry")


def _fill(root: str, folder: Path, readable: Iterable[str]) -> None:
    """Mount /proc, the entry's `folder`, devices and everything readable in the new root."""
    for path in ("/proc", SHARED_MEMORY, str(folder)):
        os.makedirs(root + path)
    try:
        _mount("proc", f"{root}/proc", _MS_NOSUID | _MS_NODEV, "proc")
    except OSError:
        # Some containers cover parts of /proc and refuse a new /proc. The container's /proc shows
        # that other processes exist, but gives no access to them.
        _mount("/proc", f"{root}/proc", _MS_BIND | _MS_REC)
    _mount(str(folder), root + str(folder), _MS_BIND)
    # The paths that are mounted already; `_expose` adds to them.
    mounted = {"/proc", str(folder)}
    for path in (*devices(), "/dev/fd", *readable):
        _expose(path, root, mounted)


def _make_read_only(root: str) -> None:
    """Make the new root and every mount in it read-only."""
    # struct mount_attr: attributes to set, attributes to clear, propagation, user namespace.
    attributes = struct.pack("=QQQQ", _MOUNT_ATTR_RDONLY, 0, 0, 0)
    call(
        "syscall", _SYS_MOUNT_SETATTR, _AT_FDCWD, os.fsencode(root), _AT_RECURSIVE,
        attributes, len(attributes),
    )  # fmt: skip


def _mount(source: str, target: str, flags: int, file_system: str | None = None) -> None:
    kind = None if file_system is None else os.fsencode(file_system)
    call("mount", os.fsencode(source), os.fsencode(target), kind, flags, None)


def _expose(path: str, root: str, mounted: set[str]) -> None:
    """Mount a path in the new root, and copy the symlinks that are part of the path.

    `mounted` holds the paths that are mounted already; this function adds the path. A path that
    does not exist is skipped.
    """
    parent = ""
    for name in path.split("/")[1:]:
        parent += f"/{name}"
        # This folder is mounted already, and the path with it.
        if parent in mounted:
            return
        if os.path.islink(parent):
            target = _copy_link(parent, root)
            # Go on with the path that the symlink leads to.
            rest = path[len(parent) :]
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
