"""Isolate this process, then run the entry in it: `python -m inside FOLDER`.

FOLDER holds this program, the entry's files in `entry`, and an empty folder `tmp`. All protections
are in force before any code of the entry or of NumPy runs.
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
from .protections import Protections
from .python_guard import guard_files
from .readable_paths import readable_paths
from .root_folder import SHARED_MEMORY, TEMPORARY_FILES, enter_root
from .seccomp import filter_system_calls
from .supervisor import end_with_parent, supervise
from .system_calls import PR_SET_NO_NEW_PRIVS, try_call

# Environment variables that name the folder for temporary files.
_TEMPORARY_FOLDER_VARIABLES = ("TMPDIR", "TEMP", "TMP")

# Version 3 of the structures of capset(2), the system call that sets a process's capabilities.
_LINUX_CAPABILITY_VERSION_3 = 0x20080522


def main() -> None:
    """Isolate this process, then run a submitted entry of task 4 in it.

    The code of the entry is not trusted. So the evaluator has started this process for it, and
    sends it messages on stdin. The first message, a line of JSON, is a `Start`: which folders the
    entry must not read, which protections to use, and how much memory the entry may have.
    """
    folder = Path(sys.argv[1]).resolve()
    os.chdir(folder / "entry")
    # Read stdin without a buffer: a buffer would also take bytes of the next messages, and the
    # runner would miss these bytes.
    with open(0, "rb", buffering=0, closefd=False) as requests:
        start = Start.parse(json.loads(requests.readline()))
    try:
        readable = readable_paths(start.hidden)
    except ValueError as refusal:
        ready = Ready(refusal=str(refusal))
        # Write the message as `channel.write` does: the key "arrays" lists the arrays that follow,
        # here none. `channel` is not imported here, since it imports NumPy.
        print(json.dumps({**asdict(ready), "arrays": []}), flush=True)
        return
    protections = isolate(folder, readable, start.protections)
    faulthandler.enable()
    # Import the runner only now: it imports NumPy, which starts threads, and a protection does not
    # hold for threads that were started before it.
    from .runner import answer_requests

    answer_requests(protections, start.memory)


def isolate(folder: Path, readable: list[str], wanted: Protections) -> Protections:
    """Let this process use only its folder and readable paths; return the protections in force.

    On Linux the function forks, and returns in the child process, which goes on to run the entry.
    In the parent process it does not return: the parent supervises the child, and then exits.
    """
    if sys.platform == "linux":
        protections = _use_protections_of_linux(folder, readable, wanted)
    else:
        # Other systems offer none of the protections.
        protections = Protections()
        end_with_parent()
    system_protects_files = protections.root or protections.landlock > 0
    if system_protects_files:
        # The process cannot read the user's home folder any more. Libraries that need a home folder
        # get an empty one.
        _move_home(folder / "tmp")
    else:
        # The system does not protect files. Let at least Python's own functions refuse to open
        # them.
        guard_files(folder, readable)
    return protections


def _use_protections_of_linux(
    folder: Path, readable: list[str], wanted: Protections
) -> Protections:
    """Start each wanted protection that the system allows; return the protections in force.

    The order matters: the last protections forbid system calls that start the other protections.
    """
    has_namespaces = wanted.namespaces and enter_namespaces()
    # Fork a child, which will run the entry. Only the child returns from this call. Its parent
    # stays in the call until the entry ends, and then cleans up.
    supervise(folder, has_namespaces)
    new_root = None
    # A new root can be mounted only within new namespaces.
    if has_namespaces and wanted.root:
        new_root = enter_root(folder, readable)
    has_root = new_root is not None
    _give_up_privileges()
    writable = [f"{folder}/entry", f"{folder}/tmp"]
    if has_root:
        # The new root has its own /dev/shm, where the entry may write. Without a new root, the
        # entry may not write to /dev/shm: files in the machine's /dev/shm outlive the process. An
        # entry plays several games, each in a new process and with other answers hidden. It could
        # then read in the next game what it wrote in this game.
        writable.append(SHARED_MEMORY)
        for name in _TEMPORARY_FOLDER_VARIABLES:
            os.environ[name] = TEMPORARY_FILES
    if new_root is not None and new_root.has_own_proc:
        # Processes that the entry starts need to read /proc/self, the folder of their own process
        # in /proc. A Landlock rule cannot name the folder of a process that does not exist yet. So
        # allow all of /proc.
        readable = [*readable, "/proc"]
    landlock_version = restrict([str(folder), *readable], writable, wanted.landlock)
    has_filter = wanted.seccomp and filter_system_calls(has_root)
    return Protections(
        namespaces=has_namespaces, root=has_root, seccomp=has_filter, landlock=landlock_version
    )


def _give_up_privileges() -> None:
    """Give up all capabilities, also those of root, for good."""
    # The entry may start programs. Do not let them gain privileges by the set-user-id bit or by
    # file capabilities.
    try_call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    this_process = 0
    header = struct.pack("=Ii", _LINUX_CAPABILITY_VERSION_3, this_process)
    # Set all bits of the effective, permitted and inheritable capabilities (64 bits each) to 0.
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
