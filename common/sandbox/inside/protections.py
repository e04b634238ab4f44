"""The operating system's protections against an entry, and which ways to do harm each closes."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Protections:
    """The protections of the operating system that isolate an entry's process.

    The fields are either the wanted protections or the protections in force; by default, none.
    """

    # The process has its own namespaces of the network and of System V IPC. Its child processes
    # have their own namespace of process ids.
    namespaces: bool = False
    # A root file system that holds only what an entry needs. It is mounted in its own namespace of
    # mounts.
    root: bool = False
    # A filter of system calls.
    seccomp: bool = False
    # The version of Landlock, the kernel's control of access to files; 0 if Landlock is not used.
    landlock: int = 0


# All protections, with the latest version of Landlock that this code knows. Tests leave out some of
# them, to imitate systems that lack them.
ALL = Protections(namespaces=True, root=True, seccomp=True, landlock=10)


def describe(protections: Protections) -> str:
    """Describe in one line which ways to do harm the protections close, and which stay open."""
    # Each version of Landlock also refuses all that the earlier versions refuse.
    version = protections.landlock
    # Each key is a way to do harm, and the value says whether one of the protections closes it.
    # ../README.md explains which protection closes which way, and how.
    is_closed = {
        "files": protections.root or version >= 1,
        "which files exist and when they were read": protections.root,
        "modes and times of files": protections.root or protections.seccomp,
        "cutting files short": protections.root or version >= 3,
        "TCP": protections.namespaces or protections.seccomp or version >= 4,
        "UDP and other networks": protections.namespaces or protections.seccomp,
        "sockets by path": protections.root or protections.seccomp or version >= 9,
        "signals": protections.namespaces or version >= 6,
        "memory shared between programs": (
            (protections.namespaces or protections.seccomp) and (protections.root or version >= 1)
        ),
        "kernel keyring": protections.seccomp,
    }
    is_in_force = {
        "namespaces": protections.namespaces,
        "own root": protections.root,
        "filtered system calls": protections.seccomp,
        f"Landlock {version}": version >= 1,
    }
    parts = []
    if not is_closed["files"]:
        parts.append(
            "Python's own file functions only (this system offers neither namespaces nor Landlock)"
        )
    closed = [way for way, way_is_closed in is_closed.items() if way_is_closed]
    if closed:
        names_in_force = ", ".join(name for name, in_force in is_in_force.items() if in_force)
        parts.append(f"enforced by the operating system ({names_in_force}): {', '.join(closed)}")
    # List the ways that no protection closes. If "files" is one of them, leave it out: the first
    # part of the text ("Python's own file functions only") has already said so.
    open_ways = [way for way, way_is_closed in is_closed.items() if not way_is_closed]
    left_open = [way for way in open_ways if way != "files"]
    if left_open:
        parts.append(f"open: {', '.join(left_open)}")
    return "; ".join(parts)
