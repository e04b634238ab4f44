"""The ingestion program of the platform, for task 4: play the ten rounds with an entry.

    python3 /app/program/ingest.py /app/input_data /app/ingested_program /app/output

The students' answers lie beside this program, not in /app/input_data, which the platform shows to a
submission that brings a program of its own. Where they are not there, since the private phase is
scored elsewhere, the entry is tried with students of the training file.
"""

import re
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from common import layout, metrics
from common.adaptive.entry_files import read_entry_file
from common.adaptive.games_page import figures_of
from common.adaptive.playing import dry_run, list_targets, measure_curves, play_all
from common.adaptive.setting import Setting, read_students
from common.adaptive.weights import TRAINING
from common.answers import number_ids
from common.arrays import FloatArray
from common.errors import InputError
from common.provenance import parse
from common.reading import is_there
from common.sandbox import Limits
from common.tasks import TASK_4

import played

# The platform would run these as the submission's own program.
_PROGRAM_NAMES = ("metadata.yaml", "metadata")
# What an entry prints is shown to nobody, and of what it raises so many characters, in the private
# phase none: all could carry answers that were revealed to it, which other masks hide.
_SHOWN_FAULT = 300
_FAULT_OF_A_ROUND = re.compile(r"(.*?, (?:after )?round \d+, \w+): .*", re.DOTALL)
# The platform's default queue ends a run after ten minutes: masks and curve have so many seconds.
LIMITS = Limits(seconds=45.0, memory=4 << 30)
_ALL_SECONDS = 540.0


def ingest(program_dir: Path, input_dir: Path, submission_dir: Path, output_dir: Path) -> int:
    """Play an entry; write its scores, or why it was not played; return the exit code, 0 or 2."""
    digest = played.digest_of(submission_dir)
    output_dir.mkdir(parents=True, exist_ok=True)
    try:
        played.write(output_dir, _play(program_dir, input_dir, submission_dir), digest, program_dir)
        return 0
    except InputError as fault:
        text = str(fault).replace(str(submission_dir), "the entry")
        students = program_dir / layout.TEST_DIR.name
        if is_there(students / TASK_4.answers_name(layout.PHASES[-1])):
            text = _FAULT_OF_A_ROUND.sub(r"\1 failed; the public phase says how", text)
        text = text[:_SHOWN_FAULT]
        print(f"error: {text}", file=sys.stderr)
        played.write(output_dir, {"fault": text}, digest, program_dir)
        return 2


def _play(program_dir: Path, input_dir: Path, submission_dir: Path) -> dict[str, Any]:
    """Return what may be told about an entry: scores and counts."""
    for name in _PROGRAM_NAMES:
        if is_there(submission_dir / name):
            raise InputError(
                f"the zip holds {name}, which would be run as a program of its own; expected only "
                "what `task_4/package.py` puts in"
            )
    train = input_dir / layout.TRAIN_DIR.name / TASK_4.data.train
    metadata_dir = input_dir / layout.METADATA_DIR.name
    found = list((program_dir / layout.TEST_DIR.name).glob("*.csv"))
    # Played and scored as the guide of 2020 says.
    students = found[0] if found else train
    setting = Setting(submission_dir, students, train, metadata_dir, limits=LIMITS)
    if not found:
        try:
            dry_run(setting)
        except InputError as fault:
            # With few answers for each student there is nobody to try it with.
            if not str(fault).startswith(str(train)):
                raise
        print("tried with students of the training file")
        return {}
    started = time.perf_counter()
    reference = read_students(setting)
    games_played = play_all(setting, reference)
    games = games_played.games
    seconds = time.perf_counter() - started
    print(f"played {len(games)} masks in {seconds:.1f} s")
    training = parse(read_entry_file(submission_dir, TRAINING) or b"")
    # The curve is left out where the time does not suffice.
    left = (_ALL_SECONDS - seconds) / (2 * len(games))
    curves: FloatArray | str = "the entry is too slow for it"
    if left > seconds / len(games):
        limits = Limits(min(left, setting.limits.seconds), setting.limits.memory)
        curves = measure_curves(replace(setting, limits=limits), reference, games)
        if isinstance(curves, str):  # Of which the entry may have written the end.
            curves = "the entry failed when it was given the questions"
    # Which arguments the entry has changed could carry a message: it is not handed on.
    shown = replace(games_played, changed={})
    targets = list_targets(reference, games)
    _, student = number_ids(targets["UserId"].to_numpy())
    truth = targets["truth"].to_numpy()
    of_all_targets = metrics.accuracy(truth, targets["predicted"].to_numpy(), student)
    return {
        **figures_of(setting, reference, targets, shown, curves, seconds, training),
        "standard_error": of_all_targets.error,
    }


if __name__ == "__main__":
    places = [Path(argument).resolve() for argument in sys.argv[1:4]]
    sys.exit(ingest(Path(__file__).resolve().parent, *places))
