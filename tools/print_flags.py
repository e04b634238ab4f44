"""Print the flags that a script declares in its function `build_parser`, as a JSON list.

    python tools/print_flags.py task_1/my_idea.py

Other tools run this program in a process of its own, because it imports the script.
"""

import json
import runpy
import sys
from pathlib import Path


def main() -> None:
    """Import the script without running its `main`, and print the flags of its parser."""
    script = Path(sys.argv[1]).resolve()
    # Set the arguments that the script would see if it ran without flags.
    sys.argv[:] = [str(script)]
    # Let the script import the modules that lie beside it.
    sys.path[0] = str(script.parent)
    # The name is not "__main__", so the script's own `main` does not run.
    names = runpy.run_path(str(script), run_name="script")
    parser = names["build_parser"]()
    # argparse has no public list of a parser's flags.
    flags = [flag for action in parser._actions for flag in action.option_strings]
    print(json.dumps(flags))


if __name__ == "__main__":
    main()
