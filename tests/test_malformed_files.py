"""Every script refuses malformed files.

A random sample of the cases in malformed.py is tried; KIT_MALFORMED=all tries all of them.
"""

import os
import random
import shutil
from pathlib import Path

import malformed
import pytest
import script_inputs

pytestmark = pytest.mark.slow
INPUTS = {f"{item.script} < {item.path}": item for item in script_inputs.find_inputs()}
INPUT_BY_COMMAND = {item.command: item for item in INPUTS.values()}
# Each file is damaged in this many ways, drawn at random. If KIT_MALFORMED is `all`, each file is
# damaged in all known ways.
N_SAMPLED = 3


@pytest.fixture(scope="module")
def kit(simulated_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a kit in which every file that a script reads exists and is well formed."""
    kit = Path(shutil.copytree(simulated_kit, tmp_path_factory.mktemp("malformed") / "kit"))
    script_inputs.write_inputs(kit)
    return kit


@pytest.mark.parametrize("name", INPUTS, ids=INPUTS)
def test_malformed_files_are_refused(kit: Path, name: str) -> None:
    input_file = INPUTS[name]
    cases = malformed.malform(input_file, (kit / input_file.path).read_bytes())
    chosen = list(cases)
    if os.environ.get("KIT_MALFORMED") != "all":
        chosen = random.Random(name).sample(chosen, N_SAMPLED)
    faults = {case: malformed.find_fault(input_file, cases[case], kit) for case in chosen}
    assert {case: fault for case, fault in faults.items() if fault} == {}


@pytest.mark.parametrize("command", INPUT_BY_COMMAND, ids=INPUT_BY_COMMAND)
def test_well_formed_files_are_accepted(kit: Path, command: str) -> None:
    """A script that refuses every file would pass the test of malformed files, but fails here."""
    done = INPUT_BY_COMMAND[command].run(kit)
    assert (done.returncode, done.stderr) == (0, "")
