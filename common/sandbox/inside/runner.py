"""Run an entry: make it and call its methods as the evaluator asks."""

import contextlib
import os
import sys
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from . import channel
from .faults import KIT_PACKAGES, describe_fault
from .messages import Ready, Reply
from .protections import Protections
from .submission import InvalidEntryError, call_method, create


def answer_requests(protections: Protections, memory: int) -> None:
    """Tell the evaluator which protections are in force, then answer its calls of the entry.

    The function returns when the evaluator has closed the pipe of requests.

    `memory` is the largest address space of the process in bytes. The working folder must be the
    entry's folder.
    """
    requests, replies = _take_over_pipes()
    folder = Path.cwd()
    _hide_the_kit(folder)
    ready = Ready(protections, memory_limited=_limit_memory(memory))
    channel.write(replies, asdict(ready))

    entry = None
    # `peek` waits for the next request. It returns no byte once the evaluator has closed the pipe.
    while requests.peek(1):
        request = channel.read(requests)
        method = request.fields["method"]
        reply = Reply()
        values: channel.Array | None = None
        try:
            if method == "__init__":
                entry = create()
            else:
                returned = call_method(entry, method, request.arrays)
                # Also tell the evaluator which arguments the method has changed.
                reply = Reply(changed=returned.changed)
                values = returned.values
        # An entry may raise anything, also SystemExit.
        except BaseException as error:
            reply = Reply(fault=describe_fault(error, folder))
            # Print where the entry failed, for its author. An `InvalidEntryError` comes from the
            # kit, so its traceback would not help.
            if not isinstance(error, InvalidEntryError):
                with contextlib.suppress(MemoryError):
                    traceback.print_exc()
        # The entry may have closed stdout or stderr.
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        channel.write(replies, asdict(reply), [] if values is None else [values])


def _take_over_pipes() -> tuple[Any, IO[bytes]]:
    """Take the pipes of requests and replies away from stdin and stdout, and return them.

    From now on, stdin is empty. Stdout leads to stderr, so that an entry that prints cannot garble
    a reply.
    """
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.dup2(2, 1)
    os.close(empty)
    return requests, replies


def _hide_the_kit(folder: Path) -> None:
    """Let imports find the entry's modules in `folder`, and installed packages.

    Neither the kit's modules nor those of this program, the package `inside`, can be imported any
    more.
    """
    program_folder = Path(__file__).resolve().parent
    searched = [path for path in sys.path if path != str(program_folder.parent)]
    sys.path[:] = [str(folder), *searched]
    # Remove this program's modules from `sys.modules`, where an import looks first: the entry may
    # have modules of the same names.
    for name in list(sys.modules):
        if name.split(".")[0] == program_folder.name:
            del sys.modules[name]
    for package in KIT_PACKAGES:
        entry_has_it = (folder / package).exists() or (folder / f"{package}.py").exists()
        if not entry_has_it:
            # An entry that imports this package of the kit now gets ModuleNotFoundError, as on the
            # challenge's server, even if the kit is installed here.
            sys.modules[package] = None  # type: ignore[assignment]


def _limit_memory(n_bytes: int) -> bool:
    """Limit the address space of this process; return whether the system enforces the limit."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))
    except (ImportError, ValueError, OSError):
        return False
    # macOS accepts the limit and ignores it.
    return sys.platform != "darwin"
