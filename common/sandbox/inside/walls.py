"""The walls around an entry, and which ways out each of them closes."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Walls:
    """A set of walls, either wanted or in force."""

    # Namespaces of the network, of System V IPC and, for child processes, of process ids.
    namespaces: bool = False
    # A root file system that holds only what an entry needs. It is mounted in its own namespace of
    # mounts.
    root: bool = False
    # A filter of system calls.
    seccomp: bool = False
    # The version of Landlock; 0 means none.
    landlock: int = 0


# Every wall, and the latest version of Landlock that this code knows. Tests leave some walls out,
# to imitate systems that lack them.
ALL = Walls(namespaces=True, root=True, seccomp=True, landlock=10)


def describe(walls: Walls) -> str:
    """Describe what the walls in force close and what they leave open, in one line."""
    version = walls.landlock
    # For each way to do harm, whether a wall closes it. README.md in the folder above explains why.
    is_closed = {
        "files": walls.root or version >= 1,
        "which files exist and when they were read": walls.root,
        "modes and times of files": walls.root or walls.seccomp,
        "cutting files short": walls.root or version >= 3,
        "TCP": walls.namespaces or walls.seccomp or version >= 4,
        "UDP and other networks": walls.namespaces or walls.seccomp,
        "sockets by path": walls.root or walls.seccomp or version >= 9,
        "signals": walls.namespaces or version >= 6,
        "memory shared between programs": (
            (walls.namespaces or walls.seccomp) and (walls.root or version >= 1)
        ),
        "kernel keyring": walls.seccomp,
    }
    names = {
        "namespaces": walls.namespaces,
        "own root": walls.root,
        "filtered system calls": walls.seccomp,
        f"Landlock {version}": version >= 1,
    }
    parts = []
    if not is_closed["files"]:
        parts.append(
            "Python's own file functions only (this system offers neither namespaces nor Landlock)"
        )
    closed = [way for way, closes in is_closed.items() if closes]
    if closed:
        in_force = ", ".join(name for name, stands in names.items() if stands)
        parts.append(f"enforced by the operating system ({in_force}): {', '.join(closed)}")
    # The first part has said already that files are open.
    left_open = [way for way, closes in is_closed.items() if not closes and way != "files"]
    if left_open:
        parts.append(f"open: {', '.join(left_open)}")
    return "; ".join(parts)
