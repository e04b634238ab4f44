"""Pinned versions of packages, and their comparison with the installed versions."""

from importlib import metadata
from pathlib import Path

from tools import pinned

import pytest

REQUIREMENTS = "# A comment: numpy==0.\n\nnumpy==2.4.6\r\npython-dateutil==4.0.0\n"


def test_pins_are_read_without_comments(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(REQUIREMENTS)
    assert pinned.read_pins(path) == {"numpy": "2.4.6", "python-dateutil": "4.0.0"}


@pytest.mark.parametrize("version", ["2.13.0", "2.13.0+cpu"])
def test_a_build_of_the_pinned_version_is_no_difference(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "version", lambda package: version)
    assert pinned.find_differences({"torch": "2.13.0"}) == []


def test_another_version_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda package: "2.13.0.1")
    (difference,) = pinned.find_differences({"torch": "2.13.0"})
    assert difference == pinned.Difference("torch", pinned="2.13.0", installed="2.13.0.1")
    assert difference.describe() == "torch 2.13.0.1 (pinned: 2.13.0)"


def test_a_missing_package_is_a_difference() -> None:
    (difference,) = pinned.find_differences({"no-such-package": "1.0"})
    assert difference.installed is None
    assert difference.describe() == "no-such-package is not installed (pinned: 1.0)"
