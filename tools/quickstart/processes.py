"""Runs commands as child processes, which end when the quickstart is interrupted."""

import os
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from common.layout import ROOT

# A failed command is shown with at most this many lines: the last ones of its output.
N_LINES_SHOWN = 12


class CommandError(Exception):
    """A command has failed; the message says which and why."""


class StoppedError(Exception):
    """The quickstart is ending, so a command was ended or not started."""


@dataclass(frozen=True)
class EndedProcess:
    """Exit code of a process that has ended, and what it printed to stdout and stderr."""

    code: int
    printed: str


class Children:
    """The child processes that run now. Threads may start them; `stop` ends them all."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        """Set the children's environment variables, by default those of this process."""
        self._environment = environment
        self._running: set[subprocess.Popen[bytes]] = set()
        self._is_stopped = False
        self._lock = threading.Lock()

    def run(self, command: Sequence[str], *, shown: bool = False) -> EndedProcess:
        """Run a command to its end; return its exit code and what it printed.

        With `shown`, the user sees what the command prints, and the returned text is empty. Raises
        `StoppedError` if `stop` was called before or meanwhile.
        """
        with tempfile.TemporaryFile() as output:
            process = self._start(command, None if shown else output)
            try:
                process.wait()
            except KeyboardInterrupt:
                # Control-C must not leave the command running.
                process.terminate()
                process.wait()
                raise
            finally:
                with self._lock:
                    self._running.remove(process)
            if self._is_stopped:
                raise StoppedError
            output.seek(0)
            printed = output.read().decode(errors="replace")
        return EndedProcess(process.returncode, printed)

    def _start(self, command: Sequence[str], output: IO[bytes] | None) -> subprocess.Popen[bytes]:
        """Start a command, which writes what it prints into `output`; None for the terminal."""
        # Because of the lock, no process starts after `stop` has ended the running ones.
        with self._lock:
            if self._is_stopped:
                raise StoppedError
            environment = dict(os.environ if self._environment is None else self._environment)
            if output is not None:
                # `run` reads the output as UTF-8. On Windows, Python would write another encoding.
                environment["PYTHONIOENCODING"] = "utf-8"
            process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=output, stderr=output
            )
            self._running.add(process)
            return process

    def stop(self) -> None:
        """End all children, and let `run` start no more of them."""
        with self._lock:
            self._is_stopped = True
            for process in self._running:
                process.terminate()


def run_python(python: str, *words: str, shown: bool = False) -> None:
    """Run Python with some arguments to its end; raise `CommandError` if it fails."""
    ended = Children().run([python, *words], shown=shown)
    if ended.code:
        raise failure(" ".join(["python", *words]), ended.code, ended.printed)


def failure(command: str, code: int, printed: str) -> CommandError:
    """Return the error for a failed command: the command, its exit code, its last lines."""
    last_lines = printed.strip().splitlines()[-N_LINES_SHOWN:]
    return CommandError("\n  ".join([f"`{command}` ended with exit code {code}", *last_lines]))


def succeeds(command: Sequence[str]) -> bool:
    """Return whether a command exists and ends with exit code 0. Its output is not shown."""
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        return False
