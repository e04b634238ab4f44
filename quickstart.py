#!/usr/bin/env python3
"""From a fresh clone to scored submissions for all four tasks, in one command.

    python3 quickstart.py             set up, simulate data if there are none, run and score all
    python3 quickstart.py --related   the same for the related challenges instead of the four tasks
    python3 quickstart.py --test      set up the same way, check the code and run the kit's tests

Needs only Python 3.11 or newer with pip. Everything is installed into .venv beside this file. If
the official data lie in data/, they are used instead of simulated ones. Finished steps are skipped:
a second run goes straight to the scores, and an interrupted one resumes where it stopped.
"""

# A Python that is too old must be able to read this file, to say so: no newer syntax here.
import os
import sys

OLDEST_PYTHON = (3, 11)


def main():
    # type: () -> int
    """Hand over to the quickstart, or say which Python it needs; return the exit code."""
    if sys.version_info < OLDEST_PYTHON:
        advice = newer_python()
        sys.stderr.write(
            "error: this is Python %d.%d, the kit needs %d.%d or newer%s\n"
            % (sys.version_info[:2] + OLDEST_PYTHON + (advice,))
        )
        return 2
    from tools.quickstart import command_line

    return command_line.main(__doc__)


def newer_python():
    # type: () -> str
    """Return the end of the error message: how to start a newer Python; empty if none is found."""
    # The newest first. Twenty later versions are enough for long.
    for minor in range(OLDEST_PYTHON[1] + 20, OLDEST_PYTHON[1] - 1, -1):
        name = "python3.%d" % minor
        for folder in os.environ.get("PATH", "").split(os.pathsep):
            if os.access(os.path.join(folder, name), os.X_OK):
                return ": try `%s quickstart.py`" % name
    return ""


if __name__ == "__main__":
    sys.exit(main())
