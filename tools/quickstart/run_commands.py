"""Run several Python commands in one process, one after the other: each library is imported once.

Every argument is one command without the word `python`, such as "task_1/my_idea.py --local". The
first command that fails ends this process with its exit code.
"""

import runpy
import shlex
import sys
from pathlib import Path

# Printed before each command, so that the output tells which one failed.
PROMPT = "$ python "


def main() -> None:
    """Run the commands that the command line names."""
    commands = sys.argv[1:]
    for command in commands:
        print(f"{PROMPT}{command}", flush=True)
        run_command(shlex.split(command))


def run_command(words: list[str]) -> None:
    """Run a script with its flags as if it were started alone."""
    script = words[0]
    sys.argv = words
    # Python looks for the script's imports in the script's folder first, as if it were started
    # alone.
    sys.path[0] = str(Path(script).resolve().parent)
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise


if __name__ == "__main__":
    main()
