"""Lets the scripts of this folder find the kit's own code, whether it is installed or not."""

import sys
from pathlib import Path

# The kit around this folder; for a copy of the folder elsewhere, an installed one.
_PLACES = [*Path(__file__).resolve().parents, *map(Path, sys.path)]
__path__ = [str(next(p / "common" for p in _PLACES if (p / "common/layout.py").is_file()))]

from common import requirements as requirements  # noqa: E402
