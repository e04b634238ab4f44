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
    """The file SIMULATED.json (the marker) lists the simulated files in its folder.

    A generator of simulated data writes it. Under the key "files", it lists the files that the
    generator has written. If a run of the generator was interrupted, it also lists the files that
    the run was to replace, under the key "replaced". The next run replaces or removes all listed
    files. So it must ignore a forged marker that lists a user's file outside the folder.
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


# The fingerprint of a small file depends on all its bytes. The fingerprint of a large file depends
# only on its beginning, its end and some parts between.
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
    """A file that has changed since it was simulated does not count as simulated any more.

    The file SIMULATED.json (the marker) lists the simulated files with their fingerprints. A
    fingerprint tells whether a file has changed. The test writes the marker first, and then changes
    the file as `change` says. Former versions of the kit wrote the SHA-256 of the whole file in
    place of a fingerprint. If `version` is "former", the test writes such a marker.
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
