"""End with exit code 0 only if this Python has the pinned packages and this very kit.

The arguments are the kit's folder, then the names of files there that pin packages.
"""

import sys
from pathlib import Path

from common import layout
from tools import pinned


def main() -> None:
    """Compare the installed packages with the versions that the named files pin."""
    root = Path(sys.argv[1])
    if root != layout.ROOT:
        sys.exit(f"error: another copy of the kit is installed: {layout.ROOT}")
    for name in sys.argv[2:]:
        differences = pinned.find_differences(pinned.read_pins(root / name))
        if differences:
            sys.exit(f"error: {', '.join(difference.describe() for difference in differences)}")


if __name__ == "__main__":
    main()
