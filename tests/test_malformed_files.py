"""Malformed files in every script: a sample of `malformed.py`; all with KIT_MALFORMED=all."""

import os
import random
import shutil
from pathlib import Path

import malformed
import pytest

pytestmark = pytest.mark.slow
INPUTS = {f"{item.script} < {item.file}": item for item in malformed.find_inputs()}
COMMANDS = {f"{item.script} {item.flags}": item for item in INPUTS.values()}


@pytest.fixture(scope="module")
def kit(simulated_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a kit with every file that a script reads, well formed."""
    kit = Path(shutil.copytree(simulated_kit, tmp_path_factory.mktemp("malformed") / "kit"))
    malformed.prepare(kit)
    return kit


@pytest.mark.parametrize("name", INPUTS, ids=INPUTS)
def test_malformed_files_are_refused(kit: Path, name: str) -> None:
    item = INPUTS[name]
    cases = malformed.malform(item, (kit / item.file).read_bytes())
    chosen = list(cases)
    if os.environ.get("KIT_MALFORMED") != "all":
        chosen = random.Random(name).sample(chosen, 3)
    faults = {name: malformed.try_out(item, cases[name], kit) for name in chosen}
    assert not {name: fault for name, fault in faults.items() if fault}


@pytest.mark.parametrize("command", COMMANDS, ids=COMMANDS)
def test_well_formed_files_are_accepted(kit: Path, command: str) -> None:
    """Otherwise it would mean nothing that the malformed ones are refused."""
    done = COMMANDS[command].run(kit)
    assert (done.returncode, done.stderr) == (0, "")
