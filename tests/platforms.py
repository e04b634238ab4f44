"""Markers that skip a test on systems that lack something; the reason names what they lack."""

import sys
import tempfile
from pathlib import Path

import pytest


def on_linux(needs: str) -> pytest.MarkDecorator:
    """Return a decorator that skips a test on every system but Linux, which has what it `needs`."""
    return pytest.mark.skipif(sys.platform != "linux", reason=f"only Linux has {needs}")


def on_unix(needs: str) -> pytest.MarkDecorator:
    """Return a decorator that skips a test on Windows, which lacks what it `needs`."""
    return pytest.mark.skipif(sys.platform == "win32", reason=f"Windows has no {needs}")


def _can_link() -> bool:
    """Return whether this user may make symbolic links."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            Path(folder, "link").symlink_to("nowhere")
        except OSError:
            return False
    return True


# On Windows only administrators and developers may make symbolic links.
CAN_LINK = _can_link()
with_links = pytest.mark.skipif(not CAN_LINK, reason="this user may not make symbolic links")
