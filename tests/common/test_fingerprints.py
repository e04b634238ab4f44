"""A fingerprint tells whether a file has changed, and so whether a file is a simulated one."""

import json
from hashlib import sha256
from pathlib import Path

from common import fingerprints, layout, provenance

import pytest
from conftest import Write, succeeds

GENERATOR = "related_challenges/cloze/generate_sample.py"


@pytest.mark.parametrize("marker", ["files", "replaced", "cut off", "nested too deeply"])
def test_a_marker_cannot_name_a_file_outside_its_folder(write: Write, marker: str) -> None:
    """A marker is SIMULATED.json, the list of the files that a generator has written.

    The generator may replace or remove these files, so that a forged marker could cost others.
    """
    outside = write("outside.csv", "mine\n")
    known = fingerprints.fingerprint(outside)
    text = {
        "files": json.dumps({"files": {"../outside.csv": known}}),
        "replaced": json.dumps({"files": {}, "replaced": {str(outside): known}}),
        "cut off": "{half",
        "nested too deeply": "[" * 100_000,
    }[marker]
    data = write(f"data/{layout.SIMULATED_MARKER_NAME}", text).parent
    assert fingerprints.simulated_files(data) == []
    succeeds([GENERATOR, "--output_dir", data])
    assert outside.read_text() == "mine\n"


# Small files are read whole. Of large ones, the beginning, the end and samples between are read.
SIZES = pytest.mark.parametrize("size", [10, 5 << 20], ids=["small", "large"])


@SIZES
@pytest.mark.parametrize("version", ["now", "former"])
@pytest.mark.parametrize(
    ("change", "is_simulated"),
    [
        ("none", True),
        ("first byte", False),
        ("last byte", False),
        ("one byte less", False),
        ("all bytes", False),
    ],
)
def test_a_file_is_simulated_if_its_fingerprint_is_that_in_the_marker(
    tmp_path: Path, size: int, version: str, change: str, is_simulated: bool
) -> None:
    """Former versions wrote the digest of the whole file."""
    path = tmp_path / "train_data/a.csv"
    path.parent.mkdir()
    content = bytes(size)
    path.write_bytes(content)
    if version == "now":
        known = fingerprints.fingerprint(path)
    else:
        known = {"bytes": size, "sha256": sha256(content).hexdigest()}
    marker = {"files": {"train_data/a.csv": known}}
    (tmp_path / layout.SIMULATED_MARKER_NAME).write_text(json.dumps(marker))
    changed = {
        "none": content,
        "first byte": b"x" + content[1:],
        "last byte": content[:-1] + b"x",
        "one byte less": content[1:],
        "all bytes": b"x" * size,
    }
    path.write_bytes(changed[change])
    assert provenance.is_simulated(path) == is_simulated
