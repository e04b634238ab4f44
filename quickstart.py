#!/usr/bin/env python3
"""From a fresh clone to scored submissions for all four tasks, in one command.

    python3 quickstart.py             set up, simulate data if there are none, run and score all
    python3 quickstart.py --related   the same for the related challenges instead of the four tasks
    python3 quickstart.py --test      set up the same way, check the code and run the kit's tests

Needs only Python 3.11 or newer with pip. Everything is installed into .venv beside this file. If
the official data lie in data/, they are used instead of simulated ones. Finished steps are skipped:
a second run goes straight to the scores, and an interrupted one resumes where it stopped.
"""

# This file has no new syntax, so that a Python that is too old for the kit can run it and print an
# error message. For this reason, types stand in comments, and texts are formatted with %.
import os
import sys

OLDEST_PYTHON = (3, 11)


def main():
    # type: () -> int
    """Run the quickstart in tools/, or print which Python it needs; return the exit code."""
    if sys.version_info < OLDEST_PYTHON:
        here = "%d.%d" % sys.version_info[:2]
        needed = "%d.%d" % OLDEST_PYTHON
        advice = advise_newer_python()
        sys.stderr.write(
            "error: this is Python %s, the kit needs %s or newer%s\n" % (here, needed, advice)
        )
        return 2
    # Make sure that Python finds `tools`: with -P or PYTHONSAFEPATH, Python does not search the
    # folder of this file.
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from tools.quickstart import command_line

    return command_line.main(__doc__)


def advise_newer_python():
    # type: () -> str
    """Return the end of an error message, such as ": try `python3.13 quickstart.py`".

    The advice names the newest Python on the PATH that the kit can use. If the PATH has no such
    Python, the result is "".
    """
    oldest_minor = OLDEST_PYTHON[1]
    newest_minor = oldest_minor + 20  # Python gets one minor version a year.
    for minor in range(newest_minor, oldest_minor - 1, -1):
        name = "python3.%d" % minor
        for folder in os.environ.get("PATH", "").split(os.pathsep):
            if os.access(os.path.join(folder, name), os.X_OK):
                return ": try `%s quickstart.py`" % name
    return ""


if __name__ == "__main__":
    sys.exit(main())
