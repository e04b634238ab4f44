"""Score an entry of task 4. The scripts `local_evaluation.py` of task 4 call this module."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common import cli, layout, metrics, probabilities, writing
from common.adaptive import entry_files, games_page
from common.adaptive.game import Reference
from common.adaptive.games_page import OUTCOMES
from common.adaptive.playing import (
    Played,
    list_questions,
    list_targets,
    measure_curves,
    play_all,
)
from common.adaptive.setting import (
    Setting,
    add_data_flags,
    add_game_flags,
    read_data_flags,
    read_game_flags,
    read_students,
)
from common.adaptive.training import package_without_local_students
from common.adaptive.weights_origin import find_weights_origin, judge_weights
from common.arrays import FloatArray
from common.evaluation import outcomes, score_files
from common.evaluation.doubt import Doubt
from common.metrics import ProbabilityScores
from common.provenance import Provenance
from common.tasks import LOCAL, TASK_4

import numpy as np
import pandas as pd

# By default, the questions that this many students were asked are printed.
_N_STUDENTS_PRINTED = 3


@dataclass(frozen=True)
class _Examination:
    """The results of playing an entry."""

    reference: Reference
    played: Played
    # How long it took to read the students and to play the scored games, in seconds.
    seconds: float
    # The accuracy after each question of the test, or a text that says why it was not measured: see
    # `measure_curves`.
    curves: FloatArray | str
    # How the entry's weights were trained; None if it is not recorded.
    training: Provenance | None
    # Reasons to doubt the score.
    doubts: list[Doubt]
    # Fingerprint of the entry's code.
    code: str


@dataclass(frozen=True)
class _Paths:
    """The files that an evaluation writes besides the score."""

    # The table of the questions that each student was asked.
    asked: Path
    # The text that the entry prints; there is no such file if the entry prints nothing.
    output: Path
    # The probabilities of a right answer to each target, an answer to be predicted. None if the
    # user does not ask for this file.
    probabilities: Path | None


def evaluate(options: argparse.Namespace, package: Path | None = None) -> None:
    """Play the entry that the flags of a `local_evaluation.py` name; write its score and page.

    The local split examines some of the training students. If the entry is the script's own folder,
    its weights may have been trained on these students. Then a copy of the folder is trained
    without them, and is played instead.

    Parameters
    ----------
    options
        The flags, parsed by the parser of `build_parser`.
    package
        The script's folder if the folder is an entry. None if the script is in no entry's folder
        and plays the entry that its first argument names.
    """
    named_setting = read_game_flags(options, read_data_flags(options, options.submission))
    paths = _prepare_outputs(options, named_setting)
    is_own_package = options.submission == package
    is_local_split = named_setting.reference == TASK_4.answers_path(LOCAL)
    may_train_copy = is_own_package and is_local_split
    with _with_local_weights(named_setting, may_train_copy) as played_setting:
        examination = _examine(played_setting, options, paths)
    # If a copy of the entry was played, the page still names the entry itself: `named_setting`
    # holds its path.
    _publish(options, named_setting, examination, paths)


def build_parser(doc: str | None, package: Path | None = None) -> argparse.ArgumentParser:
    """Return the parser of a `local_evaluation.py`, the script that scores an entry of task 4.

    An entry is a folder or a zip with the program that plays the game.

    Parameters
    ----------
    doc
        The docstring of the script.
    package
        The folder of the script if this folder is an entry. This entry is scored unless the flag
        --submission names another one. If `package` is None, the script's first argument names the
        entry.

    Returns
    -------
    ArgumentParser
        The parsed options hold the entry's path as `submission`. The path is None if `package` is
        None and the user names no entry.
    """
    parser = cli.parser(doc)
    _add_submission(parser, package)
    add_data_flags(parser)
    cli.add_folder(parser, "--output_dir", layout.TEST_OUTPUT_DIR)
    add_game_flags(parser)
    parser.add_argument(
        "--probabilities",
        type=Path,
        metavar="FILE",
        help="ask the entry for its probabilities too: write them to FILE (Parquet), score them",
    )
    parser.add_argument(
        "--skip_curve",
        action="store_true",
        help="do not measure the accuracy after each question, which takes further predictions",
    )
    cli.add_number(
        parser,
        "--show_sequences",
        _N_STUDENTS_PRINTED,
        "print what the first N students were asked, in order; 0: none",
        parse=cli.whole_number(0),
    )
    return parser


def _add_submission(parser: argparse.ArgumentParser, package: Path | None) -> None:
    """Add the argument or flag that names the entry to be scored."""
    if package is None:
        parser.add_argument(
            "submission",
            type=Path,
            nargs="?",
            metavar="SUBMISSION",
            help="folder or zip",
        )
    else:
        parser.add_argument(
            "--submission",
            type=Path,
            default=package,
            help="folder or zip (default: this folder)",
        )


def _prepare_outputs(options: argparse.Namespace, setting: Setting) -> _Paths:
    """Return the paths of the files to write, and remove the files of an earlier run."""
    inputs = [setting.submission, setting.reference, setting.train]
    phase = TASK_4.phase_of(options.phase, options.ref_data)
    text_path, _ = score_files.score_paths(options.output_dir, TASK_4.number, phase)
    # The table of questions is named like the score: for scores_task_4_public.txt, for instance, it
    # is sequence_task_4_public.csv.
    task_and_phase = text_path.stem.removeprefix("scores")
    paths = _Paths(
        asked=text_path.with_name(f"sequence{task_and_phase}.csv"),
        output=options.output_dir / "entry_output_task_4.txt",
        probabilities=options.probabilities,
    )
    cli.require_outputs([paths.asked, paths.output, paths.probabilities], inputs)
    # Remove the score and its page of an earlier run. If one of the two has the path of an input or
    # of the file of probabilities, this raises an error instead.
    not_to_overwrite = [*inputs, paths.probabilities]
    score_files.remove_scores(options.output_dir, TASK_4.number, phase, not_to_overwrite)
    for path in (paths.asked, paths.output):
        path.unlink(missing_ok=True)
    return paths


@contextmanager
def _with_local_weights(setting: Setting, may_train: bool) -> Iterator[Setting]:
    """Yield `setting`, with the entry that is to be played as its `submission`.

    The local split examines some of the training students. If `may_train` is true and the entry's
    weights were trained on these students, a copy of the entry with other weights is played (see
    `package_without_local_students`). Otherwise the entry itself is played.
    """
    if may_train:
        with package_without_local_students(setting.submission, setting.reference) as package:
            yield replace(setting, submission=package)
    else:
        yield setting


def _examine(setting: Setting, options: argparse.Namespace, paths: _Paths) -> _Examination:
    """Play the scored games; measure the accuracy after each question; write the entry's output.

    `setting.submission` is the entry that is played. It may be a copy of `options.submission`, the
    entry that the user has named, with other weights. Doubts, which are reasons why the score may
    be wrong, and warnings are about the entry that the user has named.
    """
    started = time.perf_counter()
    origin = find_weights_origin(setting.submission)
    reference = read_students(setting, origin)
    doubts = judge_weights(options.submission, origin)
    entry_files.warn_of_names(options.submission)
    with_probability = paths.probabilities is not None
    played = play_all(setting, reference, paths.output, with_probability)
    seconds = time.perf_counter() - started
    # The accuracy after each question, or a text that says why it was not measured.
    curves: FloatArray | str
    if options.skip_curve:
        curves = "not asked for"
    else:
        curves = measure_curves(setting, reference, played.games)
    # The fingerprint of the entry's code also depends on the code that trained the weights. That
    # code may have changed since. So use its fingerprint at the time of the training, which the
    # record of the weights holds.
    training_code = "" if origin.record is None else origin.record.code
    code = entry_files.fingerprint_code(setting.submission, training_code)
    if played.output:
        writing.write_files({paths.output: played.output})
    return _Examination(
        reference=reference,
        played=played,
        seconds=seconds,
        curves=curves,
        training=origin.record,
        doubts=doubts,
        code=code,
    )


def _publish(
    options: argparse.Namespace, setting: Setting, examination: _Examination, paths: _Paths
) -> None:
    """Print the score; write the score, its page, and the table of questions asked."""
    reference = examination.reference
    played = examination.played
    targets = list_targets(reference, played.games)
    asked = list_questions(reference, played.games)
    figures = games_page.figures_of(
        setting,
        reference,
        targets,
        played,
        examination.curves,
        examination.seconds,
        examination.training,
    )
    evaluation, page_fields = games_page.describe(
        setting,
        figures,
        TASK_4.phase_of(options.phase, options.ref_data),
        asked,
        training=examination.training,
        doubts=examination.doubts,
        code=examination.code,
        outcomes=outcomes.of_predictions(targets),
    )
    page_fields["template"] = "games.html"
    score_details = _describe_score(setting, figures)
    lines = [f"score {evaluation.score.value:.4f} {score_details}"]
    if paths.probabilities is not None:
        scores = _score_probabilities(targets, paths.probabilities)
        page_fields["calibration"] = score_files.calibration_html(scores, TASK_4.event)
        lines += score_files.probability_lines(scores)
    lines += [f"note: {note}" for note in games_page.list_notes(played)]
    if not isinstance(examination.curves, str):
        _, curve_of_random_choice = figures["curves"]
        accuracy_after_all_rounds = curve_of_random_choice[-1]
        lines.append(f"with questions chosen at random {accuracy_after_all_rounds:.4f}")
    elif not options.skip_curve:
        lines.append(f"no curve: {examination.curves}")
    lines += _show_sequences(asked, reference, options.show_sequences, paths.asked)
    writing.write_files({paths.asked: asked})
    written = [paths.asked]
    if played.output:
        written.append(paths.output)
    score_files.publish(options.output_dir, evaluation, lines, written, **page_fields)


def _describe_score(setting: Setting, figures: Mapping[str, Any]) -> str:
    """Return the text in brackets after the score: its deviation over the masks, and the rules."""
    n_masks = len(figures["masks"])
    if n_masks == 1:
        return f"(one mask, {setting.rules})"
    deviation = games_page.deviation_over_masks(figures)
    return f"± {deviation} (standard deviation over {n_masks} masks; {setting.rules})"


def _score_probabilities(targets: pd.DataFrame, path: Path) -> ProbabilityScores:
    """Write the probabilities of the targets to a file, and score them."""
    p_right = targets["PRight"].to_numpy(float)
    probabilities.write_probabilities(targets, TASK_4.number, p_right, path)
    return metrics.score_probabilities(
        targets["truth"].to_numpy(),
        np.stack([1 - p_right, p_right], axis=1),
        targets["predicted"].to_numpy(),
    )


def _show_sequences(
    asked: pd.DataFrame, reference: Reference, n_students: int, path: Path
) -> list[str]:
    """Return the questions that the first students were asked, a line for each student and mask.

    `path` is the file that lists the questions of all students. The last line names this file.
    """
    lines = []
    # `reference.student` is sorted, so these are the students with the smallest UserIds.
    is_shown = asked["UserId"].isin(reference.student[:n_students])
    by_student = asked[is_shown].sort_values("UserId", kind="stable")
    for (student, mask), rows in by_student.groupby(["UserId", "Mask"], sort=False):
        # OUTCOMES holds the names of a wrong and of a right answer, so IsCorrect, 0 or 1, is the
        # index.
        outcome_names = OUTCOMES[rows["IsCorrect"]]
        questions = zip(rows["QuestionId"], outcome_names, strict=True)
        sequence = ", ".join(f"{question} {outcome}" for question, outcome in questions)
        lines.append(f"UserId {student}, {mask}: {sequence}")
    # Name the file only if it lists further students, and if the user wants any lines: otherwise
    # `n_students` is 0.
    if 0 < n_students < len(reference.student):
        rest = f"and so on, of all {len(reference.student):,} students"
        lines.append(f"{rest}: {cli.show(path)}")
    return lines
