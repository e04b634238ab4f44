"""Landlock: the kernel refuses this process all files that no rule allows. See landlock(7).

Later versions of Landlock control more rights, also rights to networks, sockets and signals. A
right that the kernel's version does not control stays allowed.
"""

import contextlib
import os
import struct
import sys
from collections.abc import Iterable

from .readable_paths import devices
from .system_calls import call, try_call

# Landlock's system calls. Their numbers are the same on all architectures that Python runs on.
_CREATE_RULESET = 444
_ADD_RULE = 445
_RESTRICT_SELF = 446
# A flag of the system call landlock_create_ruleset: return the version of Landlock, and make no
# ruleset.
_FLAG_RETURN_VERSION = 1
# A type of rule for the system call landlock_add_rule: the rule is about a file, or about a folder
# and everything in it.
_RULE_PATH_BENEATH = 1

# Rights to files. In the kernel, their names begin with LANDLOCK_ACCESS_FS_.
_EXECUTE = 1 << 0
_WRITE_FILE = 1 << 1
_READ_FILE = 1 << 2
_READ_DIR = 1 << 3
_MAKE_CHAR = 1 << 6
_MAKE_BLOCK = 1 << 11
_REFER = 1 << 13
_TRUNCATE = 1 << 14
_IOCTL_DEV = 1 << 15
_RESOLVE_UNIX = 1 << 16

# The rights of the first version of Landlock have the bits 0 to 12.
_RIGHTS_OF_VERSION_1 = (1 << 13) - 1
_ALL_RIGHTS = _RIGHTS_OF_VERSION_1 | _REFER | _TRUNCATE | _IOCTL_DEV | _RESOLVE_UNIX

# The rights of the entry to files that it may read, to devices, and to its own folders.
_RIGHTS_TO_READABLE = _EXECUTE | _READ_FILE | _READ_DIR
_RIGHTS_TO_DEVICES = _READ_FILE | _READ_DIR | _WRITE_FILE | _TRUNCATE | _IOCTL_DEV
# The entry may neither use devices in its own folders nor make any: an entry that runs as root
# could make a device file for the disk, and read the whole disk through this file.
_RIGHTS_TO_OWN_FOLDERS = _ALL_RIGHTS & ~(_IOCTL_DEV | _MAKE_CHAR | _MAKE_BLOCK)
# A rule for a file that is not a folder may hold these rights only.
_RIGHTS_TO_FILES = _EXECUTE | _READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL_DEV

# The rights to files that each version of Landlock has added.
_FILE_RIGHTS = {
    1: _RIGHTS_OF_VERSION_1,
    2: _REFER,
    3: _TRUNCATE,
    5: _IOCTL_DEV,
    9: _RESOLVE_UNIX,
}
# The rights to networks that each version of Landlock has added. Version 4 added the rights to bind
# and to connect TCP sockets (bits 0 and 1). Version 10 added the same two rights for UDP sockets
# (bits 2 and 3).
_NETWORK_RIGHTS = {4: 0b0011, 10: 0b1100}
# The scopes that each version of Landlock has added. Version 6 added a scope of abstract UNIX
# sockets (bit 0) and a scope of signals (bit 1): a restricted process can connect to other
# processes, or send them signals, only if they have the same restrictions.
_SCOPES = {6: 0b11}


def landlock_version() -> int:
    """Return the version of Landlock that this kernel offers; 0 if it has none."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            return call("syscall", _CREATE_RULESET, None, 0, _FLAG_RETURN_VERSION)
    return 0


def ruleset(version: int) -> bytes:
    """Pack `struct landlock_ruleset_attr`: the rights that are refused unless a rule allows them.

    An older kernel expects fewer fields. It accepts this structure nevertheless, since the further
    fields are 0 for its version of Landlock.
    """
    return struct.pack(
        "=QQQ",
        _rights_known(_FILE_RIGHTS, version),
        _rights_known(_NETWORK_RIGHTS, version),
        _rights_known(_SCOPES, version),
    )


def restrict(readable: Iterable[str], writable: Iterable[str], version: int) -> int:
    """Restrict this process: it may read the `readable` paths, and read and write the `writable`.

    In writable folders, the process may do everything except making and using devices. It may also
    use the devices that `devices` lists, such as /dev/null.

    The rules hold for the calling thread and for the threads and processes that it starts.
    Therefore this function must be called before other threads start. Returns the version of
    Landlock in force, at most `version`, or 0 if the system refuses.
    """
    version = min(version, landlock_version())
    if version < 1:
        return 0
    rights_by_path = [(path, _RIGHTS_TO_READABLE) for path in readable]
    rights_by_path += [(path, _RIGHTS_TO_OWN_FOLDERS) for path in writable]
    rights_by_path += [(path, _RIGHTS_TO_DEVICES) for path in devices()]
    # Rights are bits. The kernel refuses a rule with a bit that this version of Landlock does not
    # know.
    known_rights = _rights_known(_FILE_RIGHTS, version)
    attributes = ruleset(version)
    try:
        # The kernel returns a file descriptor of the ruleset. Later calls add rules to it, and put
        # it in force.
        rules = call("syscall", _CREATE_RULESET, attributes, len(attributes), 0)
    except OSError:
        return 0
    try:
        for path, rights in rights_by_path:
            # A path that does not exist gets no rule.
            with contextlib.suppress(OSError):
                _allow(rules, path, rights & known_rights)
        call("syscall", _RESTRICT_SELF, rules, 0)
    except OSError:
        return 0
    finally:
        os.close(rules)
    return version


def _rights_known(rights_by_version: dict[int, int], version: int) -> int:
    """Return all rights that a version of Landlock knows, those of earlier versions included."""
    return sum(rights for first, rights in rights_by_version.items() if first <= version)


def _allow(rules: int, path: str, rights: int) -> None:
    """Add a rule to a ruleset: the process has `rights` to a path and to everything in it.

    `rules` is the file descriptor of the ruleset.
    """
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    # The kernel refuses a rule that gives rights of folders to a file.
    if not os.path.isdir(path):
        rights &= _RIGHTS_TO_FILES
    # The rule is a struct landlock_path_beneath_attr: 64 bits of rights, then the descriptor.
    rule = struct.pack("=Qi", rights, descriptor)
    try_call("syscall", _ADD_RULE, rules, _RULE_PATH_BENEATH, rule, 0)
    # Leave files of /proc open. If nobody has such a file open, the kernel drops the file, and with
    # it the rule.
    if not path.startswith("/proc"):
        os.close(descriptor)
