"""Recognise official files by their checksums.

This module needs the standard library only, like `common.fingerprints`.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from common import fingerprints, layout
from common.fingerprints import Fingerprint

# The official training files of tasks 1/2 and 3/4. Their checksums were computed from the files in
# the official archive (see data/download.py). data/download.py also writes a record with the
# checksums of all other official files that it has fetched.
_TRAINING_FILES: tuple[Fingerprint, ...] = (
    {
        "bytes": 430_049_940,
        "sha256": "721ebae1c5ddb3f8a4c85a437893216bbba1d8b2ca950ee0681d1f3e98ebdc0e",
    },
    {
        "bytes": 31_731_601,
        "sha256": "8bdbe55a310641f9e59caffbff2eac85da0b2f6c6b2bb99fa69922296f52a4e1",
    },
)


def is_official(path: Path) -> bool:
    """Return whether a file has the content of an official file, wherever it lies."""
    for data_dir in fingerprints.data_folders(path):
        if fingerprints.is_listed(path, _read_record(data_dir).values()):
            return True
    return fingerprints.is_listed(path, _TRAINING_FILES)


def record_of(data_dir: Path, files: Iterable[Path]) -> dict[Path, str]:
    """Return the path and the content of the record that lists the official files in a data folder.

    `files` lie in folders of `data_dir`. Files that an earlier record lists stay listed.
    """
    listed = _read_record(data_dir)
    for path in files:
        listed[path.relative_to(data_dir).as_posix()] = fingerprints.fingerprint(path)
    content = {"official": True, "files": dict(sorted(listed.items()))}
    return {data_dir / layout.OFFICIAL_MARKER_NAME: json.dumps(content, indent=2) + "\n"}


def _read_record(data_dir: Path) -> dict[str, Fingerprint]:
    """Return the fingerprints of a data folder's official files, by path; empty without a record.

    The paths are relative to the data folder.
    """
    record: Any = fingerprints.read_json(data_dir / layout.OFFICIAL_MARKER_NAME)
    files = record.get("files") if isinstance(record, dict) else None
    return dict(files) if isinstance(files, dict) else {}
