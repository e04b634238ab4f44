"""End all processes that an entry has started with the entry, and the entry with the evaluator.

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
# Signals that the supervisor waits for: a child has ended; the evaluator wants the entry to end.
_AWAITED = {signal.SIGCHLD, signal.SIGTERM} if sys.platform == "linux" else set()


def supervise(folder: Path, has_namespaces: bool) -> None:
    """Fork a child that becomes the entry's process, and return in that child only (Linux).

    This process supervises the child. When the child or the evaluator has ended, this process ends
    everything that the child has started, removes `folder`, and ends with the child's exit code or
    signal.
    """
    # A parent may have left SIGCHLD ignored. Then no child could be waited for.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # Orphans of the entry become children of this process, whatever session they are in.
    try_call("prctl", PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # In a new namespace of process ids, orphans go to its first process instead. Fork one that does
    # nothing else.
    namespace_init = _fork_namespace_init() if has_namespaces else None
    signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    entry = os.fork()
    if entry == 0:
        _end_with_supervisor()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _AWAITED)
        os.setsid()
        return
    status = _wait_for(entry)
    to_kill = [] if status is not None else [entry]
    if namespace_init is not None:
        # Kill this process last: with it, the kernel kills all processes of the namespace.
        to_kill.append(namespace_init)
    _end_children(to_kill)
    _remove(folder)
    _end_like(status or 0)


def _fork_namespace_init() -> int:
    """Fork the first process of a namespace of process ids, which only waits; return its id."""
    child = os.fork()
    if child:
        return child
    _end_with_supervisor()
    # With SIGCHLD ignored, the kernel removes orphans that have ended; nobody has to wait for them.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    _release_pipes()
    while True:
        signal.pause()


def _wait_for(entry: int) -> int | None:
    """Wait until the entry has ended, and return its status.

    Returns None if the entry still runs and should be ended, since the evaluator has ended or asks
    for it.
    """
    # The evaluator holds the other end of the pipe at stdin. With the event mask 0, `poll` reports
    # only that this other end is closed, as happens if the evaluator has ended. Watch a duplicate
    # of stdin, since `_release_pipes` replaces stdin itself.
    evaluator = select.poll()
    evaluator.register(os.dup(0), 0)
    _release_pipes()
    while not evaluator.poll(0):
        arrived = signal.sigtimedwait(_AWAITED, 0.1)
        if arrived is not None and arrived.si_signo == signal.SIGTERM:
            return None
        # A signal may stand for several children that have ended, orphans among them: collect all.
        while True:
            child, status = os.waitpid(-1, os.WNOHANG)
            if child == entry:
                return status
            if child == 0:
                break
    return None


def _end_with_supervisor() -> None:
    """Let the kernel kill this process when its parent ends."""
    try_call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _release_pipes() -> None:
    """Let go of the pipes at stdin, stdout and stderr, which lead to the evaluator.

    So the pipes break as soon as the entry, their last user, has ended.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nothing, descriptor)


def _end_children(children: list[int]) -> None:
    """Kill some children of this process, then all the others that it has or gets."""
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    # Wait only after all are killed: a child that another child traces can be waited for only after
    # the tracing child has ended.
    for child in children:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)
    deadline = time.monotonic() + _MAX_ENDING
    # ChildProcessError: there are no children any more.
    with contextlib.suppress(ChildProcessError):
        # When a child ends, its own children become children of this process.
        while time.monotonic() < deadline:
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
        # The entry may have left a core dump already; this process leaves none.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def end_with_parent() -> None:
    """End this process when the evaluator has ended, where no supervisor does (macOS, Windows)."""
    parent = os.getppid()

    def watch() -> None:
        if sys.platform == "win32":
            has_ended = _wait_for_end_on_windows(parent)
        else:
            # An orphan gets another parent.
            while os.getppid() == parent:
                time.sleep(1)
            has_ended = True
        if has_ended:
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _wait_for_end_on_windows(process: int) -> bool:
    """Wait until a process has ended; return False at once if it cannot be waited for.

    On Windows an orphan keeps its parent's id, so a handle is needed.
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
