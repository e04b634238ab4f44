"""Let the scripts in this folder import the kit's package `common`, without installing the kit.

Python looks for imports in the script's folder first, so `import common` finds this file. Setting
`__path__` turns this module into the package: `common.cli`, for example, then comes from the kit.
"""

import sys
from pathlib import Path

_THIS_FOLDER = Path(__file__).resolve().parent
# The kit's package lies in this folder or in a folder above it. A copy of this folder outside the
# kit finds the package on sys.path, if the kit was installed with `pip install -e`.
_SEARCH_PATH = [_THIS_FOLDER, *_THIS_FOLDER.parents, *map(Path, sys.path)]
_CANDIDATES = [folder / "common" for folder in _SEARCH_PATH]
# Other packages may be called `common` too: only the kit's package has a layout.py.
_PACKAGES = [folder for folder in _CANDIDATES if (folder / "layout.py").is_file()]
if not _PACKAGES:
    print(
        f"error: {_THIS_FOLDER}: the starter kit is not found; move this folder into a task folder "
        "of the kit, or install the kit: `pip install -e KIT_FOLDER`",
        file=sys.stderr,
    )
    sys.exit(2)
# Python looks for the modules of a package in the folders of its `__path__`. With this `__path__`,
# the present file acts as the kit's package: `import common.cli`, for example, loads the kit's cli.
__path__ = [str(_PACKAGES[0])]

# Nothing here uses this module. Importing it limits the threads of libraries, and ends the script
# with a message if a required package is missing. This line works only after `__path__` is set.
from common import requirements as requirements  # noqa: E402
