"""Isolate this process, then run the entry in it: `python -m inside FOLDER`.

FOLDER holds this program, the entry's files in `entry`, and an empty folder `tmp`. All walls stand
before any code of the entry or of NumPy runs.
"""

import faulthandler
import json
import os
import re
import site
import struct
import sys
from dataclasses import asdict
from pathlib import Path

from .landlock import restrict
from .messages import Ready, Start
from .namespaces import enter_namespaces
from .python_guard import guard_files
from .readable_paths import readable_paths
from .root_folder import SHARED_MEMORY, enter_root
from .seccomp import filter_system_calls
from .supervisor import end_with_parent, supervise
from .system_calls import PR_SET_NO_NEW_PRIVS, try_call
from .walls import Walls

# capset(2): the version of its structures with 64 bits for each set of capabilities.
_LINUX_CAPABILITY_VERSION_3 = 0x20080522


def main() -> None:
    """Isolate this process as the evaluator's first message says, and run the entry in it."""
    folder = Path(sys.argv[1]).resolve()
    os.chdir(folder / "entry")
    # Unbuffered: a buffer could swallow later messages, which the runner reads.
    with open(0, "rb", buffering=0, closefd=False) as requests:
        start = Start.parse(json.loads(requests.readline()))
    try:
        readable = readable_paths(start.hidden)
    except ValueError as refusal:
        ready = Ready(refusal=str(refusal))
        print(json.dumps({**asdict(ready), "arrays": []}), flush=True)
        return
    walls = isolate(folder, readable, start.walls)
    faulthandler.enable()
    # The runner imports NumPy, which starts threads. Threads that start before the walls stand
    # would be outside the walls.
    from .runner import answer_requests

    answer_requests(walls, start.memory)


def isolate(folder: Path, readable: list[str], wanted: Walls) -> Walls:
    """Let this process use only its folder and readable paths; return the walls in force.

    On Linux the function forks. It returns only in the child; the process that called it stays
    behind as the supervisor.
    """
    if sys.platform == "linux":
        walls = _put_up_walls(folder, readable, wanted)
    else:
        walls = Walls()
        end_with_parent()
    # A wall around files puts the home folder out of reach, so use an empty one. Without such a
    # wall, only a guard in Python's own functions is left.
    if walls.root or walls.landlock:
        _move_home(folder / "tmp")
    else:
        guard_files(folder, readable)
    return walls


def _put_up_walls(folder: Path, readable: list[str], wanted: Walls) -> Walls:
    """Put up the wanted walls, each where the system allows it; return those in force.

    The order matters: putting up a wall takes system calls that the walls after it forbid.
    """
    namespaces = wanted.namespaces and enter_namespaces()
    supervise(folder, namespaces)
    root = namespaces and wanted.root and enter_root(folder, readable)
    _give_up_privileges()
    writable = [f"{folder}/entry", f"{folder}/tmp"]
    if root:
        # The new root has a /dev/shm of its own, where the entry may write. Without a new root it
        # may not: files in the machine's /dev/shm outlive the process, and an entry could read in
        # the next game what it wrote in this one.
        writable.append(SHARED_MEMORY)
    landlock = restrict([str(folder), *readable], writable, wanted.landlock)
    seccomp = wanted.seccomp and filter_system_calls(root)
    return Walls(namespaces, root, seccomp, landlock)


def _give_up_privileges() -> None:
    """Give up all capabilities, also those of root, for good."""
    # Keep programs that the entry starts from gaining privileges (set-user-id, file capabilities).
    try_call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    this_process = 0
    header = struct.pack("=Ii", _LINUX_CAPABILITY_VERSION_3, this_process)
    # Effective, permitted and inheritable capabilities, 64 bits each: none.
    try_call("capset", header, bytes(24))


def _move_home(home: Path) -> None:
    """Make an empty folder the home folder, for libraries that keep settings and caches there."""
    # Python still finds the packages that the user has installed in the old home folder.
    os.environ["PYTHONUSERBASE"] = site.getuserbase()
    os.environ["HOME"] = str(home)
    folders = [name for name in os.environ if re.fullmatch(r"XDG_\w+_(HOME|DIR)", name)]
    for name in folders:
        del os.environ[name]


if __name__ == "__main__":
    main()
