"""Malformed files in every script: refused in one line, nothing scored, nothing written.

A sample of the cases of `malformed.py`, the same one each time; all with KIT_MALFORMED=all.
"""

import os
import random
from pathlib import Path

import malformed
import pytest

INPUTS = malformed.find_inputs()
N_SAMPLED, N_WAYS = 8, 3


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with every file that a script reads, well formed."""
    folder = tmp_path_factory.mktemp("malformed")
    malformed.prepare(folder)
    return folder


@pytest.mark.parametrize("number", range(len(INPUTS)), ids=[item.name for item in INPUTS])
def test_malformed_files_are_refused(workplace: Path, number: int) -> None:
    item = INPUTS[number]
    cases = malformed.malform(item, (workplace / item.file).read_bytes())
    chosen = list(cases)
    if os.environ.get("KIT_MALFORMED") != "all":
        chosen = random.Random(number).sample(chosen, min(N_SAMPLED, len(chosen)))
    faults = {name: malformed.try_out(item, cases[name], workplace) for name in chosen}
    assert not {name: fault for name, fault in faults.items() if fault}


@pytest.mark.parametrize("number", range(len(INPUTS)), ids=[item.name for item in INPUTS])
def test_well_formed_files_are_accepted(workplace: Path, number: int) -> None:
    """Otherwise it would mean nothing that the malformed ones are refused."""
    item = INPUTS[number]
    if item.kind == "marker":
        pytest.skip("would replace the sample")
    done = item.run(workplace)
    assert (done.code, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "number", [number for number, item in enumerate(INPUTS) if item.kind == "csv"]
)
def test_other_ways_to_write_a_file_make_no_difference(workplace: Path, number: int) -> None:
    item = INPUTS[number]
    path = workplace / item.file
    right = path.read_bytes()
    expected = item.run(workplace)
    try:
        ways = malformed.rewrite(item, right)
        for name in random.Random(number).sample(list(ways), min(N_WAYS, len(ways))):
            path.write_bytes(ways[name])
            done = item.run(workplace)
            assert (done.code, done.stderr) == (0, ""), name
            assert done.stdout == expected.stdout, name
    finally:
        path.write_bytes(right)
