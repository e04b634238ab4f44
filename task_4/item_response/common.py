"""Let the scripts in this folder import the kit's package `common`, without installing the kit.

Python looks for imports beside the script, and finds this module: it points to the package, which
lies in a folder above.
"""

import sys
from pathlib import Path

# The kit around this folder; for a copy of the folder elsewhere, an installed kit.
_PLACES = [*Path(__file__).resolve().parents, *map(Path, sys.path)]
_PACKAGES = [place / "common" for place in _PLACES if (place / "common/layout.py").is_file()]
if not _PACKAGES:
    print(
        f"error: {Path(__file__).resolve().parent}: the starter kit is not found; move this folder "
        "into a task folder of the kit, or install the kit with `pip install -e` and its folder",
        file=sys.stderr,
    )
    sys.exit(2)
__path__ = [str(_PACKAGES[0])]

from common import requirements as requirements  # noqa: E402
