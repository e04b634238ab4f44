"""The ingestion program of the platform, for task 4: play the ten rounds with an entry.

    python3 /app/program/ingest.py /app/input_data /app/ingested_program /app/output

The students' answers lie beside this program, not in /app/input_data, which the platform shows to a
submission that brings a program of its own. What is written says what was asked and predicted, and
holds no answer.
"""

import re
import sys
import time
from dataclasses import replace
from pathlib import Path

from common import layout
from common.adaptive.entry_process import Limits, read_entry_file
from common.adaptive.evaluation import list_facts
from common.adaptive.playing import (
    Curves,
    measure_curves,
    play_all,
    read_students,
)
from common.adaptive.training import TRAINING
from common.errors import InputError
from common.io import is_there
from common.made import parse

import played

# The platform would run these as the submission's own program.
_PROGRAM_NAMES = ("metadata.yaml", "metadata")
# What an entry prints is shown to nobody, and of what it raises so many characters, in the private
# phase none: all could carry answers that were revealed to it, which other masks hide.
_SHOWN_FAULT = 300
_FAULT_OF_A_ROUND = re.compile(r"(.*?, (?:after )?round \d+, \w+): .*", re.DOTALL)
# All masks and the curve have this many seconds, and some are left for the end.
_ALL_SECONDS = 540.0


def ingest(program_dir: Path, input_dir: Path, submission_dir: Path, output_dir: Path) -> int:
    """Play an entry and write what it did, or why it was not played.

    Parameters
    ----------
    program_dir
        Folder of the program, which holds the key and the students.
    input_dir
        What an entry is given: training answers and metadata, in folders as in `data/`.
    submission_dir
        The entry.
    output_dir
        Where the record goes.

    Returns
    -------
    int
        The exit code: 0 if it was played to the end, 2 if not.
    """
    key = played.read_key(program_dir / layout.TEST_DIR.name)
    output_dir.mkdir(parents=True, exist_ok=True)
    try:
        record = _play(program_dir, input_dir, submission_dir)
    except InputError as fault:
        text = str(fault).replace(str(submission_dir), "the entry")
        students = program_dir / layout.TEST_DIR.name
        if is_there(students / layout.test_masks_name(layout.PHASES[-1])):
            text = _FAULT_OF_A_ROUND.sub(r"\1 failed; the public phase says how", text)
        text = text[:_SHOWN_FAULT]
        print(f"error: {text}", file=sys.stderr)
        played.write_fault(output_dir, text, key)
        return 2
    played.write(output_dir, record, key)
    print(f"played {len(record.games)} masks in {record.seconds:.1f} s")
    return 0


def _play(program_dir: Path, input_dir: Path, submission_dir: Path) -> played.Played:
    for name in _PROGRAM_NAMES:
        if is_there(submission_dir / name):
            raise InputError(
                f"the zip holds {name}, which would be run as a program of its own; expected only "
                "what `task_4/package.py` puts in"
            )
    (reference_path,) = (program_dir / layout.TEST_DIR.name).glob("*.csv")
    train = input_dir / layout.TRAIN_DIR.name / layout.TRAIN_TASK_3_4
    setting = played.setting_of(
        submission_dir,
        reference_path,
        train if is_there(train) else None,
        input_dir / layout.METADATA_DIR.name,
    )
    started = time.perf_counter()
    reference = read_students(setting)
    run = play_all(setting, reference)
    seconds = time.perf_counter() - started
    training = parse(read_entry_file(submission_dir, TRAINING) or b"")
    # The curve is left out where the time does not suffice.
    left = (_ALL_SECONDS - seconds) / (2 * len(run.games))
    curves: Curves | str = "the entry is too slow for it"
    if left > seconds / len(run.games):
        limits = Limits(min(left, setting.limits.seconds), setting.limits.memory)
        curves = measure_curves(replace(setting, limits=limits), reference, run)
        if isinstance(curves, str):  # Of which the entry may have written the end.
            curves = "the entry failed when it was given the questions"
    # What it says that it has changed could be any text.
    facts = list_facts(setting, reference, replace(run, changed={}), seconds, training)
    return played.Played(run.games, curves, facts, seconds)


def main() -> int:
    """Play the rounds; return the exit code."""
    paths = (Path(argument).resolve() for argument in sys.argv[1:4])
    return ingest(Path(__file__).resolve().parent, *paths)


if __name__ == "__main__":
    sys.exit(main())
