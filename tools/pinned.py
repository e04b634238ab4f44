"""Compares the installed packages with the versions that requirements.txt pins."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path


@dataclass(frozen=True)
class Difference:
    """A package that is missing, or installed in another version than the pinned one."""

    package: str
    pinned: str
    installed: str | None

    def describe(self) -> str:
        """Return a phrase such as "numpy 2.1.0 (pinned: 2.4.6)"."""
        installed = self.installed or "is not installed"
        return f"{self.package} {installed} (pinned: {self.pinned})"


def read_pins(path: Path) -> dict[str, str]:
    """Return the pinned version of each package in a requirements file."""
    pins = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        package, equals, version = line.partition("==")
        if equals and not line.startswith("#"):
            pins[package.strip()] = version.strip()
    return pins


def find_differences(pins: Mapping[str, str]) -> list[Difference]:
    """Return the packages that are not installed as pinned."""
    differences = []
    for package, pinned in pins.items():
        installed = installed_version(package)
        # "2.13.0+cpu" is a build of version 2.13.0.
        if installed is None or installed.partition("+")[0] != pinned:
            differences.append(Difference(package, pinned, installed))
    return differences


def installed_version(package: str) -> str | None:
    """Return the version of an installed package; None if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
