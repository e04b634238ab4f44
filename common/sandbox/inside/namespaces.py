"""Namespaces: give this process its own network and IPC, and its children their own process ids."""

import contextlib
import os
from pathlib import Path

from .system_calls import try_call

# Flags of unshare(2).
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWIPC = 0x08000000
_CLONE_NEWPID = 0x20000000
_CLONE_NEWNET = 0x40000000
_NAMESPACES = _CLONE_NEWIPC | _CLONE_NEWPID | _CLONE_NEWNET


def enter_namespaces() -> bool:
    """Enter new namespaces; return False if the system refuses.

    The process must have a single thread. Otherwise the kernel refuses a user namespace.
    """
    # Read the ids now: in the new user namespace, both are 65534 until they are mapped.
    user = os.geteuid()
    group = os.getegid()
    # In a new user namespace, any user may make the namespaces of IPC, process ids and network.
    # Some containers refuse user namespaces, but let root make the three other namespaces.
    with_user_namespace = _CLONE_NEWUSER | _NAMESPACES
    without_user_namespace = _NAMESPACES
    for flags in (with_user_namespace, without_user_namespace):
        if try_call("unshare", flags):
            # Map the ids to themselves. The kernel lets an ordinary user map the group only after
            # `setgroups` is denied. Without a new user namespace these writes fail, and no map is
            # needed.
            with contextlib.suppress(OSError):
                Path("/proc/self/setgroups").write_text("deny", "utf-8")
                Path("/proc/self/uid_map").write_text(f"{user} {user} 1", "utf-8")
                Path("/proc/self/gid_map").write_text(f"{group} {group} 1", "utf-8")
            return True
    return False
