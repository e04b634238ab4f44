"""Calls of the C library and, through it, of the Linux kernel."""

import contextlib
import ctypes
import functools
import os

# The first argument of prctl(2) says what the call does. These are some of its values.
PR_SET_PDEATHSIG = 1
PR_SET_SECCOMP = 22
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38


@functools.cache
def c_library() -> ctypes.CDLL:
    """Return the C library of this process."""
    return ctypes.CDLL(None, use_errno=True)


def call(function: str, *arguments: int | bytes | None) -> int:
    """Call a function of the C library; `OSError` if it returns a negative number.

    A system call that the library has no function for is made by `call("syscall", number, …)`.
    """
    # `syscall` and `prctl` take a variable number of arguments, and read each argument from a whole
    # register. For an int, ctypes would fill only half of the register. So pass every integer as a
    # long.
    as_long = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    result = int(getattr(c_library(), function)(*as_long))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def try_call(function: str, *arguments: int | bytes | None) -> bool:
    """Call a function as `call` does; return whether the system allowed it."""
    with contextlib.suppress(OSError):
        call(function, *arguments)
        return True
    return False
