"""The rules of the filter of system calls: which calls an entry may not make, and why.

`seccomp.py` makes a program from the rules. A call that no rule names is allowed.
"""

from dataclasses import dataclass
from enum import Enum


class Action(Enum):
    """The possible treatments of a system call."""

    ALLOW = "the kernel carries it out"
    REFUSE = "it fails with EPERM"
    PRETEND = "it does nothing and reports success"


@dataclass(frozen=True)
class Rule:
    """A rule for one system call.

    If `argument` is None, `action` holds for every call. Otherwise `action` holds if the argument
    has one of the `values`, and `otherwise` holds if it has another value.
    """

    name: str
    # The number of the system call on x86_64.
    x86_64: int
    # The number on aarch64 and riscv64, which have the same numbers; None if the call does not
    # exist there.
    generic: int | None
    action: Action = Action.REFUSE
    # The position, from 0, of the argument that decides between `action` and `otherwise`. Only the
    # lower 32 bits of this argument are compared with `values`.
    argument: int | None = None
    values: tuple[int, ...] = ()
    otherwise: Action = Action.ALLOW


def _allow_only_if(name: str, x86_64: int, generic: int, argument: int, *values: int) -> Rule:
    """Return a rule that allows a call only if its argument at `argument` has one of `values`."""
    return Rule(name, x86_64, generic, Action.ALLOW, argument, values, otherwise=Action.REFUSE)


def _refuse_if(name: str, x86_64: int, generic: int, argument: int, *values: int) -> Rule:
    """Return a rule that refuses a call if its argument at `argument` has one of `values`."""
    return Rule(name, x86_64, generic, Action.REFUSE, argument, values, otherwise=Action.ALLOW)


def _pretend(name: str, x86_64: int, generic: int | None) -> Rule:
    """Return a rule by which a call does nothing and reports success."""
    return Rule(name, x86_64, generic, Action.PRETEND)


# ioctl(2): flags of a file, such as "append only".
_FS_IOC_SETFLAGS = 0x40086602
_FS_IOC_FSSETXATTR = 0x401C5820
# fcntl(2): hints at the expected lifetime of written data.
_F_SET_RW_HINT = 1036
_F_SET_FILE_RW_HINT = 1038
# socket(2): the families of local sockets, and of netlink sockets, by which programs ask the kernel
# for information, such as a list of network devices.
_AF_UNIX = 1
_AF_NETLINK = 16
# In the arguments of system calls, the process id 0 stands for the calling process itself.
_SELF = 0

# These calls are always refused. An entry plays several games, with other answers hidden in each,
# and gets a new process for each game. Most of these calls leave something behind that outlives the
# process: with them, an entry could pass information from one game to the next.
_ALWAYS = (
    Rule("add_key", 248, 217),  # leaves a key in the kernel
    Rule("request_key", 249, 218),  # finds such a key
    Rule("keyctl", 250, 219),  # reads and changes keys
    Rule("shmget", 29, 194),  # makes shared memory of System V, which stays
    Rule("shmat", 30, 196),  # reads and writes shared memory, of any process
    Rule("shmctl", 31, 195),  # changes and removes shared memory
    Rule("semget", 64, 190),  # makes a semaphore, which stays
    Rule("semop", 65, 193),  # changes a semaphore
    Rule("semtimedop", 220, 192),  # changes a semaphore
    Rule("semctl", 66, 191),  # reads and removes semaphores
    Rule("msgget", 68, 186),  # makes a queue of System V, which stays
    Rule("msgsnd", 69, 189),  # leaves a message in a queue
    Rule("msgrcv", 70, 188),  # takes a message from a queue
    Rule("msgctl", 71, 187),  # reads and removes queues
    Rule("mq_open", 240, 180),  # makes a POSIX queue, which stays
    Rule("mq_unlink", 241, 181),  # removes a POSIX queue
    Rule("io_uring_setup", 425, 425),  # makes system calls that no filter sees
    Rule("setxattr", 188, 5),  # sets an extended attribute of a file
    Rule("lsetxattr", 189, 6),  # the same for a symlink
    Rule("fsetxattr", 190, 7),  # the same for an open file
    Rule("setxattrat", 463, 463),  # the same for a file in an open folder
    Rule("removexattr", 197, 14),  # removes an extended attribute of a file
    Rule("lremovexattr", 198, 15),  # the same for a symlink
    Rule("fremovexattr", 199, 16),  # the same for an open file
    Rule("removexattrat", 466, 466),  # the same for a file in an open folder
    Rule("file_setattr", 469, 469),  # sets flags of a file
    Rule("syslog", 103, 116),  # reads and clears the kernel's log
    Rule("setpriority", 141, 140),  # changes the priority of other processes
    Rule("ioprio_set", 251, 30),  # changes the disk priority of other processes
)
# These calls are refused only with some arguments. With them, the first four calls would change
# another process. The last two would set flags or a hint of a file, also of a file outside the
# entry's folder: these would outlive the game, and the entry could read them in its next game.
_BY_ARGUMENT = (
    _allow_only_if("sched_setscheduler", 144, 119, 0, _SELF),  # changes how others are scheduled
    _allow_only_if("sched_setparam", 142, 118, 0, _SELF),  # the same
    _allow_only_if("sched_setattr", 314, 274, 0, _SELF),  # the same
    _allow_only_if("prlimit64", 302, 261, 0, _SELF),  # changes the limits of other processes
    _refuse_if("ioctl", 16, 29, 1, _FS_IOC_SETFLAGS, _FS_IOC_FSSETXATTR),  # sets flags of a file
    _refuse_if("fcntl", 72, 25, 1, _F_SET_RW_HINT, _F_SET_FILE_RW_HINT),  # sets a hint of a file
)
# sched_setaffinity(2) chooses the processors of a thread. The calling thread may choose its own.
# For any other thread, the call returns success and changes nothing. The call must not fail: if
# OMP_PROC_BIND is set, OpenMP makes this call for each thread that it starts, and stops the program
# at an error.
_AFFINITY = Rule("sched_setaffinity", 203, 122, Action.ALLOW, 0, (_SELF,), otherwise=Action.PRETEND)
# If an entry has no root file system of its own, it could reach local sockets of other programs by
# their paths. So it may open no socket. socketpair(2) stays allowed: its two sockets reach only
# each other.
_NO_SOCKETS = Rule("socket", 41, 198)
# If an entry has a root file system of its own, it sees no sockets of other programs. So it may
# open local and netlink sockets.
_NO_NETWORK = _allow_only_if("socket", 41, 198, 0, _AF_UNIX, _AF_NETLINK)
# An entry plays several games, with other answers hidden in each. It could leave information for
# the next game in the mode, the owner or the times of a file. So these calls do nothing. They
# report success, since programs that copy files make these calls and would stop at an error.
_FILE_ATTRIBUTES = (
    _pretend("chmod", 90, None),  # changes the mode of a file
    _pretend("fchmod", 91, 52),  # the same for an open file
    _pretend("fchmodat", 268, 53),  # the same for a file in an open folder
    _pretend("fchmodat2", 452, 452),  # the same, with flags
    _pretend("chown", 92, None),  # changes the owner of a file
    _pretend("fchown", 93, 55),  # the same for an open file
    _pretend("lchown", 94, None),  # the same for a symlink
    _pretend("fchownat", 260, 54),  # the same for a file in an open folder
    _pretend("utime", 132, None),  # changes the times of a file
    _pretend("utimes", 235, None),  # the same
    _pretend("futimesat", 261, None),  # the same for a file in an open folder
    _pretend("utimensat", 280, 88),  # the same
)


def rules(has_root: bool) -> tuple[Rule, ...]:
    """Return the filter's rules for an entry with or without a root file system of its own."""
    if has_root:
        # `_FILE_ATTRIBUTES` is not needed: the entry may change modes, owners and times of files
        # only in its own folders, which are removed after the game. Everything else is mounted for
        # reading only.
        return (*_ALWAYS, *_BY_ARGUMENT, _AFFINITY, _NO_NETWORK)
    return (*_ALWAYS, *_BY_ARGUMENT, _AFFINITY, _NO_SOCKETS, *_FILE_ATTRIBUTES)
