"""Tell whether a user has edited a sample model's marked block.

    python tests/sample_blocks.py

records a fingerprint of the marked block of every sample model in tests/sample_blocks.json. Run it
after changing a sample model of the kit. If a user replaces a block, the tests about the kit's
model in that block are skipped, and all other tests run.
"""

import functools
import hashlib
import json
import sys
from pathlib import Path

# Find the package `tools` even if the kit is not installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.kit_files import ROOT, glob_kit

import pytest

RECORD = Path(__file__).with_suffix(".json")
# These lines enclose the marked block of a sample model: the code of the model itself, which a user
# of the kit may replace.
BEGIN = "---- The model: replace this block by your own. -"
END = "---- End of the model. -"
PATTERNS = (
    "task_[123]/sample_model_*.py",
    "task_4/*/train_model.py",
    "related_challenges/*/sample_model_*.py",
)


def main() -> None:
    """Record a fingerprint of each sample model's marked block, for later use in `find_edited`."""
    RECORD.write_text(format_record(), encoding="utf-8")


def format_record() -> str:
    """Return the text of the record for the blocks of this kit."""
    return json.dumps(read_blocks(), indent=1) + "\n"


def read_blocks() -> dict[str, str]:
    """Return a fingerprint of each sample model's marked block; the keys are the scripts' paths."""
    paths = [path for pattern in PATTERNS for path in glob_kit(pattern)]
    blocks = {}
    for path in paths:
        block = path.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
        script = path.relative_to(ROOT).as_posix()
        blocks[script] = hashlib.sha256(block.encode()).hexdigest()[:16]
    return blocks


@functools.cache
def find_edited() -> frozenset[str]:
    """Return the sample models whose marked block differs from its recorded fingerprint.

    A script without a recorded fingerprint is new, and does not count as edited.
    """
    recorded = json.loads(RECORD.read_text(encoding="utf-8"))
    blocks = read_blocks()
    return frozenset(name for name in blocks if blocks[name] != recorded.get(name, blocks[name]))


def needs_blocks(*scripts: str) -> pytest.MarkDecorator:
    """Skip a test of the kit's models if a user has edited the marked block of one of `scripts`."""
    edited = sorted(find_edited().intersection(scripts))
    reason = f"the block was edited, and this test is about the kit's block: {', '.join(edited)}"
    return pytest.mark.skipif(bool(edited), reason=reason)


def each_script(scripts: list[str]) -> list[object]:
    """Return sample models as parameters of a test, skipped if their marked block was edited."""
    return [pytest.param(script, id=script, marks=needs_blocks(script)) for script in scripts]


if __name__ == "__main__":
    main()
