"""Let the scripts in this folder import the kit's package `common`, without installing the kit.

Python looks for imports in the script's folder first, so `import common` finds this file. Setting
`__path__` turns this module into the package: `common.cli`, for example, then comes from the kit.
"""

import sys
from pathlib import Path

_THIS_FOLDER = Path(__file__).resolve().parent
# Search the folders above this one first. For a copy of this folder outside the kit, search
# sys.path, to which `pip install -e` adds the kit.
_SEARCH_PATH = [_THIS_FOLDER, *_THIS_FOLDER.parents, *map(Path, sys.path)]
_CANDIDATES = [folder / "common" for folder in _SEARCH_PATH]
# Only the kit's package has a layout.py.
_PACKAGES = [folder for folder in _CANDIDATES if (folder / "layout.py").is_file()]
if not _PACKAGES:
    print(
        f"error: {_THIS_FOLDER}: the starter kit is not found; move this folder into a task folder "
        "of the kit, or install the kit: `pip install -e KIT_FOLDER`",
        file=sys.stderr,
    )
    sys.exit(2)
# From here on, this module is the package: its submodules are loaded from the kit.
__path__ = [str(_PACKAGES[0])]

# Imported for its effects: it limits the threads of libraries and names a missing package. The
# import needs `__path__`.
from common import requirements as requirements  # noqa: E402
