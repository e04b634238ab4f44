"""Markers of tests that need what some systems lack; each skip names what that is."""

import sys
import tempfile
from pathlib import Path

import pytest


def on_linux(needs: str) -> pytest.MarkDecorator:
    """Skip a test elsewhere than on Linux, which alone has what it needs."""
    return pytest.mark.skipif(sys.platform != "linux", reason=f"only Linux has {needs}")


def on_unix(needs: str) -> pytest.MarkDecorator:
    """Skip a test on Windows, which lacks what it needs."""
    return pytest.mark.skipif(sys.platform == "win32", reason=f"Windows has no {needs}")


def _can_link() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        try:
            Path(folder, "link").symlink_to("nowhere")
        except OSError:
            return False
    return True


# Windows lets only administrators and developers make symbolic links.
CAN_LINK = _can_link()
with_links = pytest.mark.skipif(not CAN_LINK, reason="this user may not make symbolic links")
