"""Leave no process behind: when an entry or the evaluator ends, end all that the entry has started.

Some modules are imported late, after the entry has ended, so that their import delays nobody.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
import threading
import time
from pathlib import Path
from typing import NoReturn

from .system_calls import PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG, try_call

# Seconds for which the supervisor tries to end the processes that an entry has left behind.
_MAX_ENDING = 5.0
# Signals that the supervisor waits for: a child has ended (SIGCHLD), or the evaluator wants the
# entry to end (SIGTERM).
_AWAITED_SIGNALS = {signal.SIGCHLD, signal.SIGTERM} if sys.platform == "linux" else set()


def supervise(folder: Path, has_namespaces: bool) -> None:
    """Fork a child that becomes the entry's process (Linux). Only the child returns from this call.

    The process that calls this function becomes the supervisor, and does not return. The supervisor
    waits until the child or the evaluator has ended. Then it ends everything that the child has
    started, removes `folder`, and ends itself, with the child's exit code or signal.

    `has_namespaces` tells whether children of this process are in a new namespace of process ids.
    Then the supervisor has two children: the first process of the namespace, and the entry.
    """
    # A process that ignores SIGCHLD cannot wait for a child. If the evaluator ignores SIGCHLD, this
    # process has inherited that.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # If the entry starts a process whose parent then ends, let the kernel make this supervisor the
    # new parent, so that the supervisor can end the process.
    try_call("prctl", PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # In a new namespace of process ids, the namespace's first process becomes the new parent
    # instead. Fork a first process that does nothing else.
    namespace_init = _fork_namespace_init() if has_namespaces else None
    # Block the signals that `_wait_for_entry` waits for. The kernel then keeps a signal until
    # `_wait_for_entry` asks for it, even if the signal comes earlier.
    signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED_SIGNALS)
    entry = os.fork()
    if entry == 0:
        # This is the child, which goes on to run the entry. The kernel kills it if the supervisor
        # ends first.
        _end_with_supervisor()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _AWAITED_SIGNALS)
        os.setsid()
        return
    # This is the supervisor.
    status = _wait_for_entry(entry)
    to_kill = []
    if status is None:
        # The evaluator has ended, or wants the entry to end, but the entry still runs. Kill the
        # entry, and end with the exit code 0.
        to_kill.append(entry)
        status = 0
    if namespace_init is not None:
        # When the first process of a namespace ends, the kernel kills all other processes in it. So
        # kill the first process last.
        to_kill.append(namespace_init)
    _end_children(to_kill)
    _remove(folder)
    _end_like(status)


def _fork_namespace_init() -> int:
    """Fork the first process of a namespace of process ids; return the id of the new process.

    When the first process ends, the kernel kills all other processes of the namespace. So the first
    process only waits, until it is killed.
    """
    child = os.fork()
    if child:
        # This is the supervisor.
        return child
    # This is the child, the first process of the namespace.
    _end_with_supervisor()
    # If this process ignores SIGCHLD, the kernel removes its children when they end. Otherwise this
    # process would have to remove each of them by a call of `waitpid`.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # Close the pipes to the evaluator in this process. The entry is then the last process that has
    # them open, so the evaluator sees the end of the pipes as soon as the entry ends.
    _release_pipes()
    while True:
        signal.pause()


def _wait_for_entry(entry: int) -> int | None:
    """Wait until the process with the id `entry` has ended; return the status from waitpid(2).

    Returns None if the entry still runs and must be ended, since the evaluator, which has started
    this process, has ended or has sent SIGTERM.
    """
    # Stdin is a pipe from the evaluator. When the evaluator ends, the other end of the pipe is
    # closed. `poll` reports this even if it is asked for no events. Watch a duplicate of stdin,
    # because `_release_pipes` replaces stdin, stdout and stderr of this process by /dev/null.
    stdin_poll = select.poll()
    no_events = 0
    stdin_poll.register(os.dup(0), no_events)
    _release_pipes()
    # `poll` returns an empty list as long as the evaluator runs.
    while not stdin_poll.poll(0):
        arrived = signal.sigtimedwait(_AWAITED_SIGNALS, 0.1)
        if arrived is not None and arrived.si_signo == signal.SIGTERM:
            return None
        # Several children that end at the same time may send a single SIGCHLD. So call `waitpid`
        # until no more ended children are left.
        while True:
            child, status = os.waitpid(-1, os.WNOHANG)
            if child == entry:
                return status
            if child == 0:
                break
    return None


def _end_with_supervisor() -> None:
    """Let the kernel kill this process when its parent, the supervisor, ends."""
    try_call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _release_pipes() -> None:
    """Replace stdin, stdout and stderr of this process, the pipes to the evaluator, by /dev/null.

    The entry is then the last process that has the pipes open. So the evaluator sees the end of the
    pipes as soon as the entry has ended.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nothing, descriptor)


def _end_children(children: list[int]) -> None:
    """Kill the given children of this process, then all its other children.

    When a child ends, this process becomes the parent of the child's children, since this process
    is a subreaper (see `supervise`). So the children's children are killed too.
    """
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    # Send the signal to all children before waiting for any child. A child may trace another child
    # (ptrace): the wait for the traced child ends only after the tracing child has ended.
    for child in children:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)
    # Kill all other children, until none is left or the time is up. `waitpid` raises
    # ChildProcessError when no child is left.
    deadline = time.monotonic() + _MAX_ENDING
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < deadline:
            # The id of a child that has ended; 0 if all children still run.
            ended, _ = os.waitpid(-1, os.WNOHANG)
            if not ended:
                _kill_all_children()
                time.sleep(0.001)


def _kill_all_children() -> None:
    """Kill the processes whose parent is this process."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The second field is the program's name in brackets, and may itself hold blanks and
            # brackets. The fields after it are the state and the parent.
            after_name = path.read_bytes().rpartition(b")")[2]
            parent = int(after_name.split()[1])
            if parent == os.getpid():
                os.kill(int(path.parent.name), signal.SIGKILL)


def _remove(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def _end_like(status: int) -> NoReturn:
    """End this process with the exit code, or by the signal, of a process that has ended."""
    import resource

    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        # Write no core dump of this process. The entry may have written its own core dump already.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def end_with_parent() -> None:
    """Start a thread that ends this process as soon as the parent, the evaluator, has ended.

    The thread is needed on macOS and Windows, where no supervisor ends the process.
    """
    parent = os.getppid()

    def watch() -> None:
        if sys.platform == "win32":
            has_ended = _wait_for_end_on_windows(parent)
        else:
            # A process whose parent has ended gets another parent.
            while os.getppid() == parent:
                time.sleep(1)
            has_ended = True
        if has_ended:
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _wait_for_end_on_windows(process: int) -> bool:
    """Wait until the process with an id has ended; return False at once if that is impossible.

    On Windows, `os.getppid` returns the same id even after the parent has ended. To wait for the
    process, Windows needs a handle of it.
    """
    if sys.platform == "win32":
        access_to_wait = 0x00100000  # SYNCHRONIZE
        no_time_limit = 0xFFFFFFFF  # INFINITE
        kernel = ctypes.windll.kernel32
        handle = kernel.OpenProcess(access_to_wait, False, process)
        if handle:
            kernel.WaitForSingleObject(handle, no_time_limit)
            return True
    return False
