"""The ingestion program of the platform, for task 4: play the ten rounds with an entry.

    python3 /app/program/ingest.py /app/input_data /app/ingested_program /app/output

The students' answers lie beside this program. They are not in /app/input_data, because the platform
shows that folder to a submission that brings its own program. If there are no answers beside the
program, the private phase is scored elsewhere: the entry is then only tried, with students of the
training file.
"""

import re
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common import layout, metrics, provenance
from common.adaptive.entry_files import read_entry_file
from common.adaptive.game import Game, Reference
from common.adaptive.games_page import figures_of
from common.adaptive.playing import dry_run, list_targets, measure_curves, play_all
from common.adaptive.setting import Setting, read_students
from common.adaptive.weights import TRAINING
from common.adaptive.weights_origin import find_weights_origin
from common.arrays import FloatArray
from common.errors import InputError
from common.reading import is_there
from common.sandbox import Limits
from common.tasks import TASK_4

import played

# If a submission holds a file with one of these names, the platform runs the submission as a
# program.
_PROGRAM_NAMES = ("metadata.yaml", "metadata")
# The message of an error that an entry raises is cut to this many characters.
_SHOWN_FAULT = 300
# Matches an error in a round, such as `IsTarget_0, after round 10, predict: WORDS`. The group holds
# the place of the error. The WORDS after it come from the entry.
_FAULT_OF_A_ROUND = re.compile(r"(.*?, (?:after )?round \d+, \w+): .*", re.DOTALL)
# Limits of one game. A mask says which answers are to be predicted; an entry plays one game for
# each mask.
GAME_LIMITS = Limits(seconds=45.0, memory=4 << 30)
# An entry gets this many seconds for all games together, including the games that are replayed to
# measure the accuracy after each round. The platform's default queue ends a run after ten minutes.
_TOTAL_SECONDS = 540.0


@dataclass(frozen=True)
class Folders:
    """The folders that the platform gives to the program."""

    # The folder of this program. It also holds the students' answers if the server scores the
    # phase.
    program: Path
    # The public data that an entry may read.
    input_data: Path
    submission: Path
    output: Path

    @property
    def students(self) -> Path | None:
        """The file with the answers of the students to be examined; None if it is not there."""
        return next((self.program / layout.TEST_DIR.name).glob("*.csv"), None)


def ingest(folders: Folders) -> int:
    """Let an entry play the games of task 4; write its scores, or why it failed.

    Returns the exit code: 0, or 2 if the entry failed.
    """
    # The record of the scores holds the digest of the submission, so that nobody can use the record
    # for another submission. Take the digest before the entry runs.
    digest = played.digest_of(folders.submission)
    folders.output.mkdir(parents=True, exist_ok=True)
    exit_code = 0
    try:
        record = _play_or_dry_run(folders)
    except InputError as error:
        fault = _shown_fault(str(error), folders)
        print(f"error: {fault}", file=sys.stderr)
        record = {"fault": fault}
        exit_code = 2
    # The record is signed with a key in the folder of the program, so that nobody can forge it.
    played.write(folders.output, record, submission=digest, program=folders.program)
    return exit_code


def _shown_fault(fault: str, folders: Folders) -> str:
    """Return the part of an error message that participants may read.

    In the private phase, the entry's own words are cut off. They could tell answers that the entry
    got in one game and has to predict in another game.
    """
    text = fault.replace(str(folders.submission), "the entry")
    private_answers = TASK_4.answers_name(layout.PHASES[-1])
    if is_there(folders.program / layout.TEST_DIR.name / private_answers):
        text = _FAULT_OF_A_ROUND.sub(r"\1 failed; the public phase says how", text)
    return text[:_SHOWN_FAULT]


def _play_or_dry_run(folders: Folders) -> dict[str, Any]:
    """Let an entry examine the students of the phase, and return its scores.

    If the program does not have the answers of these students, the entry examines students of the
    training file instead, and the result is empty. Raises `InputError` if the entry is invalid or
    fails.
    """
    # If a submission holds a file with one of these names, the platform runs the submission as a
    # program. An entry must not run in this way: the present program imports it and calls it.
    for name in _PROGRAM_NAMES:
        if is_there(folders.submission / name):
            raise InputError(
                f"the zip holds {name}, which would be run as a program of its own; expected only "
                "what `task_4/package.py` puts in"
            )
    train = folders.input_data / layout.TRAIN_DIR.name / TASK_4.data.train
    metadata_dir = folders.input_data / layout.METADATA_DIR.name
    students = folders.students
    # `Setting` gets no rules of the game, because its default rules are those of the challenge of
    # 2020.
    setting = Setting(
        submission=folders.submission,
        reference=students or train,
        train=train,
        metadata_dir=metadata_dir,
        limits=GAME_LIMITS,
    )
    if students is None:
        _dry_run(setting, train)
        return {}
    return _play(setting)


def _dry_run(setting: Setting, train: Path) -> None:
    """Check with students of the training file that an entry plays without an error.

    Raises `InputError` if the entry fails.
    """
    try:
        dry_run(setting)
    except InputError as fault:
        # An error that begins with the path of the training file is a fault of this file, not of
        # the entry. For example, no student in the file may have enough answers.
        is_fault_of_file = str(fault).startswith(str(train))
        if not is_fault_of_file:
            raise
        print(f"not tried: {fault}")
    else:
        print("tried with students of the training file")


def _play(setting: Setting) -> dict[str, Any]:
    """Play a game for each mask; return the scores and counts that may be published.

    A mask says which answers are hidden from the entry, which predicts them.
    """
    started = time.perf_counter()
    # The origin of the weights tells which students the entry's model is trained on.
    # `read_students` raises an error if such a student is among the students to be examined.
    weights_origin = find_weights_origin(setting.submission)
    reference = read_students(setting, weights_origin)
    games_played = play_all(setting, reference)
    # Maps the name of each mask to its game.
    games = games_played.games
    seconds = time.perf_counter() - started
    print(f"played {len(games)} masks in {seconds:.1f} s")
    # The submission may hold a record that says how the entry was trained. `training` is None if
    # the record is missing or not valid.
    training_record = read_entry_file(setting.submission, TRAINING) or b""
    training = provenance.parse(training_record)
    curves = _curves_or_reason(setting, reference, games, seconds)
    # `changed` holds the names of the arguments that the entry has modified. It is not published,
    # because an entry could modify arguments on purpose to send a message.
    published = replace(games_played, changed={})
    # A row for each answer that the entry has predicted: the student, the prediction, the truth.
    targets = list_targets(reference, games)
    figures = figures_of(
        setting,
        reference,
        targets,
        published,
        curves=curves,
        seconds=seconds,
        training=training,
    )
    accuracy = metrics.accuracy(
        targets["truth"].to_numpy(), targets["predicted"].to_numpy(), targets["UserId"].to_numpy()
    )
    return {
        **figures,
        "standard_error": accuracy.error,
        "n_students": accuracy.n_students,
    }


def _curves_or_reason(
    setting: Setting, reference: Reference, games: Mapping[str, Game], seconds: float
) -> FloatArray | str:
    """Return the entry's accuracy after each round, or a sentence that says why it is not measured.

    `games` holds one game for each mask, and `seconds` is the time that these games have taken. To
    measure the accuracy, the entry plays two more games with each mask: one game with the questions
    that it has chosen in `games`, and one game with random questions. In these two games, the entry
    chooses no questions: it only predicts.
    """
    seconds_per_game = seconds / len(games)
    n_more_games = 2 * len(games)
    # Each further game gets an equal part of the time that is left of _TOTAL_SECONDS. This part
    # must be longer than the time that a game in `games` has taken on average.
    seconds_left_per_game = (_TOTAL_SECONDS - seconds) / n_more_games
    if seconds_left_per_game <= seconds_per_game:
        return "the entry is too slow for it"
    limits = Limits(
        seconds=min(seconds_left_per_game, setting.limits.seconds),
        memory=setting.limits.memory,
    )
    curves = measure_curves(replace(setting, limits=limits), reference, games)
    if isinstance(curves, str):
        # `curves` is the reason for a failure. It may hold the entry's own words, which are not
        # published.
        return "the entry failed when the games were replayed with given questions"
    return curves


def main() -> int:
    """Play the entry that the command line names; return the exit code."""
    input_data, submission, output = (Path(argument).resolve() for argument in sys.argv[1:4])
    program = Path(__file__).resolve().parent
    return ingest(Folders(program, input_data, submission, output))


if __name__ == "__main__":
    sys.exit(main())
