"""A fingerprint tells whether a file has changed; simulated files are told from real ones by it."""

import json
from hashlib import sha256
from pathlib import Path

from common import fingerprints, layout, provenance

import pytest
from conftest import Write, succeeds

GENERATOR = "related_challenges/cloze/generate_sample.py"


def test_a_marker_never_reaches_outside_its_folder(write: Write) -> None:
    outside = write("outside.csv", "mine\n")
    known = fingerprints.fingerprint(outside)
    files, replaced = {"../outside.csv": known}, {str(outside): known}
    markers = [{"files": files}, {"files": {}, "replaced": replaced}]
    for number, marker in enumerate([*map(json.dumps, markers), "{half", "[" * 100_000]):
        data = write(f"{number}/{layout.SIMULATED_MARKER_NAME}", marker).parent
        assert fingerprints.simulated_files(data) == []
        succeeds([GENERATOR, "--output_dir", data])
        assert outside.read_text() == "mine\n"


@pytest.mark.parametrize("size", [10, 5 << 20])
def test_a_fingerprint_tells_files_apart_and_those_of_former_versions_count(
    tmp_path: Path, size: int
) -> None:
    """Of a large file the beginning, the end and what lies between are looked at, not all of it."""
    path, content = tmp_path / "train_data/a.csv", bytes(size)
    path.parent.mkdir()
    path.write_bytes(content)
    former = {"bytes": size, "sha256": sha256(content).hexdigest()}
    for known in (fingerprints.fingerprint(path), former):
        marker = {"files": {"train_data/a.csv": known}}
        (tmp_path / layout.SIMULATED_MARKER_NAME).write_text(json.dumps(marker))
        for changed, expected in (
            (content, True), (b"x" + content[1:], False), (content[:-1] + b"x", False),
            (content[1:], False), (b"x" * size, False),
        ):  # fmt: skip
            path.write_bytes(changed)
            assert provenance.is_simulated(path) == expected
