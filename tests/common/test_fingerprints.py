"""A fingerprint tells whether a file has changed, and so whether a file is a simulated one."""

import json
from hashlib import sha256
from pathlib import Path

from common import fingerprints, layout, provenance
from common.origin import Origin

import pytest
from conftest import Write, succeeds

GENERATOR = "related_challenges/cloze/generate_sample.py"


@pytest.mark.parametrize("marker", ["files", "replaced", "cut off", "nested too deeply"])
def test_a_marker_cannot_name_a_file_outside_its_folder(write: Write, marker: str) -> None:
    """The marker SIMULATED.json lists the files of its folder that a generator has written.

    The key "files" lists the present files. If a run was interrupted, the key "replaced" lists the
    older files that the run replaces. The next run replaces or removes all listed files. So a
    forged marker must not be able to name a file of the user.
    """
    outside = write("outside.csv", "mine\n")
    known = fingerprints.fingerprint(outside)
    markers = {
        "files": json.dumps({"files": {"../outside.csv": known}}),
        "replaced": json.dumps({"files": {}, "replaced": {str(outside): known}}),
        "cut off": "{half",
        "nested too deeply": "[" * 100_000,
    }
    data = write(f"data/{layout.SIMULATED_MARKER_NAME}", markers[marker]).parent

    assert fingerprints.simulated_files(data) == []
    succeeds([GENERATOR, "--output_dir", data])
    assert outside.read_text() == "mine\n"


# A fingerprint reads small files whole. Of a large file it reads only the beginning, the end and
# some parts between.
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
    """A changed file does not count as simulated.

    The marker SIMULATED.json lists the simulated files with their fingerprints, which tell whether
    a file has changed. The marker is written first, and then the file is changed as `change` says.
    Markers of former versions of the kit hold the SHA-256 of the whole file instead of a
    fingerprint, and are accepted too. If `version` is "former", the marker is such a marker.
    """
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
    assert (provenance.origin_of(path) is Origin.SIMULATED) == is_simulated
