"""Lets the scripts of this folder find the kit's own code, whether it is installed or not."""

import sys
from pathlib import Path

# The kit around this folder; for a copy of the folder elsewhere, an installed one.
_PLACES = [*Path(__file__).resolve().parents, *map(Path, sys.path)]
_KIT = next(place for place in _PLACES if (place / "common/layout.py").is_file())
__path__ = [str(_KIT / "common")]
# For `tools`; behind the folder of the script.
sys.path.insert(1, str(_KIT))

from common import requirements as requirements  # noqa: E402
