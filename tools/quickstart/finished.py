"""Remembers finished steps: each one leaves a file with a fingerprint of its code and data."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from common import layout, source_code
from common.layout import ROOT
from common.stray_files import list_paths
from tools.quickstart.steps import OUTPUT_DIR, Step

DATA_SUFFIXES = (".csv", ".txt", ".xml")


def mark_path(step: Step) -> Path:
    """Return the path of the file with the fingerprint of a finished step."""
    return step.output_dir / f"quickstart_{step.title.replace(' ', '_')}.txt"


def is_finished(step: Step, fingerprint: str) -> bool:
    """Return whether a step has run to its end with this fingerprint."""
    path = mark_path(step)
    return path.exists() and path.read_bytes() == fingerprint.encode()


def forget_models() -> None:
    """Remove the fingerprints of all finished models, so that all models run again."""
    related = layout.RELATED_DIR.glob(f"*/data/{OUTPUT_DIR.name}/*/quickstart_*.txt")
    for path in [*OUTPUT_DIR.glob("*/quickstart_*.txt"), *related]:
        path.unlink()


def fingerprint_of(step: Step) -> str:
    """Return a digest of a step's commands, of the code they run, and of the data they read."""
    scripts = [ROOT / command[0] for command in step.commands]
    if step.package:
        # The first commands run code of a copy of the package, which may not exist yet. So read the
        # code of the package itself. Take only the script of the last command, which evaluates the
        # copy.
        evaluation = scripts[-1]
        scripts = [*step.package.rglob("*.py"), evaluation]
    digest = hashlib.sha256(f"{step.commands} {source_code.fingerprint(*scripts)}".encode())
    for path in data_files(step.data):
        status = path.stat()
        digest.update(f"{path.name} {status.st_size} {status.st_mtime_ns}".encode())
    return digest.hexdigest()


def data_files(folders: Iterable[Path]) -> list[Path]:
    """Return the data files in some folders and below, in a fixed order."""
    files = []
    for folder in folders:
        files += [path for path in list_paths(folder) if path.suffix in DATA_SUFFIXES]
    return files
