"""For tests of the sandbox: isolate an entry with some of the protections only."""

import shutil
import subprocess
from functools import partial
from pathlib import Path

from common.sandbox import IsolatedEntry, Limits
from common.sandbox.inside import landlock, protections
from common.sandbox.inside.protections import Protections

import pytest

# The version of Landlock on this system.
LANDLOCK = landlock.landlock_version()
# All protections of the operating system except Landlock, which has versions.
ALL_PROTECTIONS = ("namespaces", "root", "seccomp")
# A command that fails where the system allows no namespaces, as in many containers.
_TRY_NAMESPACES = ["unshare", "-Urmnip", "true"]
# A command that fails where the system allows no new /proc, as in a container that hides parts of
# its /proc.
_TRY_NEW_PROC = ["unshare", "-Urmnip", "--fork", "--mount-proc", "true"]


def limit_protections(
    monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], landlock_version: int
) -> Protections:
    """Let the isolation use only some of its protections, as on a system that lacks the others.

    `names` lists the protections to use, out of ALL_PROTECTIONS. `landlock_version` is the version
    of Landlock to use, or 0 for none. The function returns the protections in use. It skips the
    test if this system lacks one of them.
    """
    if landlock_version > LANDLOCK:
        pytest.skip(f"this kernel has version {LANDLOCK}")
    if "namespaces" in names and _fails(_TRY_NAMESPACES):
        pytest.skip("this system allows no namespaces")
    is_in_use = {name: name in names for name in ALL_PROTECTIONS}
    in_use = Protections(**is_in_use, landlock=landlock_version)
    # The sandbox isolates an entry with the protections that `protections.ALL` names.
    monkeypatch.setattr(protections, "ALL", in_use)
    return in_use


def require_new_proc() -> None:
    """Skip the test if this system does not allow an entry to have its own /proc."""
    if _fails(_TRY_NEW_PROC):
        pytest.skip("this system allows no new /proc")


def isolate(package: Path, answers: Path, limits: Limits) -> IsolatedEntry:
    """Return an isolated entry that runs a copy of the files in a folder."""
    copy_files = partial(shutil.copytree, package, dirs_exist_ok=True)
    return IsolatedEntry(copy_files, answers, limits)


def _fails(command: list[str]) -> bool:
    """Run a command; return whether it has failed."""
    return subprocess.run(command, capture_output=True).returncode != 0
