"""Play the game of task 4 with an entry, in a fresh isolated process for each mask."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from common import cli, layout, writing
from common.adaptive import entry_files, game
from common.adaptive.game import N_ROUNDS, Game, Reference
from common.adaptive.setting import Setting
from common.adaptive.training import count_questions
from common.answers import read_answers
from common.arrays import FloatArray
from common.errors import InputError
from common.sandbox import EntryError, IsolatedEntry
from common.tasks import TASK_4

import numpy as np
import pandas as pd
from tqdm import tqdm

# A dry run only shows whether an entry runs. It examines this many students at most.
N_DRY_RUN_STUDENTS = 30
# A student of a dry run needs this many answers: a fifth of the answers become targets, and the
# rest must be enough for all rounds.
_MIN_DRY_RUN_ANSWERS = 2 * N_ROUNDS
# Metadata files that are copied to an entry's folder if they exist.
_METADATA = (*TASK_4.data.metadata, layout.SUBJECT_METADATA)
# By default, -1 stands for an answer that is not revealed. An entry that expects 0 there may use
# the -1 as an index or as a count, which typically raises one of these errors.
_FAULTS_OF_MINUS_1 = re.compile(r"raised IndexError|raised .*\b(out of (bounds|range)|negative)\b")


@dataclass(frozen=True)
class Played:
    """The games that an entry has played, and how its processes ran."""

    # A game examines all students: the entry asks questions, then predicts the answers that a mask
    # hides. There is one game for each mask, by the mask's name, in the order of playing.
    games: dict[str, Game]
    # The text that the entry has printed on stdout and stderr, one process after the other. If a
    # process has printed much, only the end is kept.
    output: str
    # For each method of the entry that has changed its arguments, the names of these arguments. The
    # arguments are copies, so the changes have no effect.
    changed: dict[str, set[str]]
    # How the entry was isolated, as text for the page.
    isolation: str
    # Whether the system enforces the memory limit.
    memory_limited: bool


def isolate(setting: Setting) -> IsolatedEntry:
    """Return an isolated entry that has not started yet.

    When the entry starts, it gets a folder with its own files, the metadata and the training file.
    Metadata and training file have the names that the challenge gives them.
    """

    def write_files(folder: Path) -> None:
        """Fill the entry's new folder with all files that the entry may read."""
        entry_files.unpack(setting.submission, folder)
        for name in _METADATA:
            if (setting.metadata_dir / name).is_file():
                shutil.copyfile(setting.metadata_dir / name, folder / name)
        if setting.train is not None:
            # The training file of a local split has another name than the official training file.
            shutil.copyfile(setting.train, folder / TASK_4.data.train)

    # The file `setting.reference` holds the true answers: the entry must not be able to read it.
    return IsolatedEntry(write_files, setting.reference, setting.limits)


def play_all(
    setting: Setting,
    reference: Reference,
    output_path: Path | None = None,
    with_probability: bool = False,
) -> Played:
    """Play a game with every mask of targets, each in a new process.

    A mask chooses the targets, the answers that the entry predicts. `with_probability` tells
    whether the entry is asked for probabilities too.

    Raises `InputError` if the entry fails. If the entry fails and `output_path` is given, the text
    that the entry has printed so far is written to this file.
    """
    games: dict[str, Game] = {}
    output = ""
    changed: dict[str, set[str]] = {}
    n_rounds = N_ROUNDS * len(reference.targets)
    with tqdm(total=n_rounds, desc="Rounds", unit="round", leave=None, disable=None) as progress:
        for mask in reference.targets:
            entry = isolate(setting)
            try:
                with entry:
                    games[mask] = game.play(
                        entry,
                        reference,
                        mask,
                        setting.rules,
                        on_round=progress.update,
                        with_probability=with_probability,
                    )
            except EntryError as fault:
                message = f"{setting.submission}: {mask}, {_explain(fault, setting)}"
                output += entry.output
                if output_path is not None and output:
                    writing.write_files({output_path: output})
                    message += f"; what it printed is in {cli.show(output_path)}"
                raise InputError(message) from None
            output += entry.output
            # `entry.changed` holds, for each method of the entry, the names of the arguments that
            # the method has changed. Collect these names over all games.
            for method, names in entry.changed.items():
                changed.setdefault(method, set()).update(names)
    # All processes of the entry were isolated and limited in the same way.
    return Played(games, output, changed, entry.isolation, entry.memory_limited)


def _explain(fault: EntryError, setting: Setting) -> str:
    """Return the text of an entry's error, with a hint if the entry seems to expect 0, not -1."""
    text = str(fault)
    may_expect_0 = _FAULTS_OF_MINUS_1.search(text) is not None
    if setting.rules.unobserved == -1 and may_expect_0:
        text += "; an entry written for 0 as unobserved needs --unobserved 0"
    return text


def dry_run(setting: Setting) -> None:
    """Play with some students of a training file, to see whether the entry runs; give no score.

    `setting.reference` must be the training file: the students examined come from it.
    """
    train = setting.reference
    answers = read_answers(train)
    # The number of answers of each student, by increasing UserId.
    n_answers = answers["UserId"].value_counts(sort=False).sort_index()
    students = n_answers.index[n_answers >= _MIN_DRY_RUN_ANSWERS][:N_DRY_RUN_STUDENTS]
    if not len(students):
        raise InputError(
            f"{train}: no student has {_MIN_DRY_RUN_ANSWERS} answers, expected some for the dry run"
        )
    # Sort the answers by student. Then make every fifth answer a target, so that about a fifth of
    # each student's answers are targets.
    answers = answers[answers["UserId"].isin(students)].sort_values("UserId", kind="stable")
    is_target = np.arange(len(answers)) % 5 == 0
    n_questions = count_questions(train, setting.metadata_dir)
    masks = {"dry run": is_target}
    play_all(setting, game.make_reference(str(train), answers, masks, n_questions))


def measure_curves(
    setting: Setting, reference: Reference, games: Mapping[str, Game]
) -> FloatArray | str:
    """Measure the accuracy after each question, by playing the games again.

    In these games the questions are given: the entry's method `select_questions` is not called. An
    entry fails if its other methods need what `select_questions` prepares.

    Returns
    -------
    array of shape (masks, 2, N_ROUNDS + 1), or str
        The accuracies after 0 to N_ROUNDS questions: first with the questions that the entry has
        chosen, second with questions chosen at random. If the entry fails, the reason as text.
    """
    accuracies = []
    n_games = 2 * len(games)
    progress = tqdm(total=n_games, desc="Curve", unit="game", disable=None)
    try:
        with progress, isolate(setting) as entry:
            # The questions chosen at random have another seed for each mask: the number of the
            # mask.
            for seed, (mask, played) in enumerate(games.items()):
                at_random = game.choose_at_random(reference, mask, setting.rules, seed)
                for questions in (played.chosen, at_random):
                    entry.restart()
                    accuracies.append(game.replay(entry, reference, mask, questions, setting.rules))
                    progress.update()
    except EntryError as fault:
        return f"replaying the games without select_questions, {fault}"
    # `accuracies` has an element for each game: for each mask, first the game with the entry's
    # questions, then the game with random questions.
    return np.array(accuracies).reshape(len(games), 2, N_ROUNDS + 1)


def list_questions(reference: Reference, games: Mapping[str, Game]) -> pd.DataFrame:
    """Return a table of all questions asked: Mask, UserId, Round, QuestionId, IsCorrect.

    Rounds count from 1.
    """
    tables = []
    for mask, played in games.items():
        # `played.chosen` has a row for each student and a column for each round. Flatten it: for
        # each question chosen, the student's row, the index of the round, and the QuestionId.
        row, round_index = np.indices(played.chosen.shape).reshape(2, -1)
        question = played.chosen.ravel()
        columns = {
            "Mask": mask,
            "UserId": reference.student[row],
            "Round": round_index + 1,
            "QuestionId": question,
            "IsCorrect": reference.is_correct[row, question],
        }
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)


def list_targets(reference: Reference, games: Mapping[str, Game]) -> pd.DataFrame:
    """Return a table of all targets: Mask, UserId, QuestionId, part, truth, predicted, PRight.

    `part` is the number of the mask, from 0. `PRight` is empty unless the entry gave probabilities.
    """
    tables = []
    for part, (mask, played) in enumerate(games.items()):
        # The student's row and the question of each target, in the order of `played.truth`.
        row, question = np.nonzero(reference.targets[mask])
        columns = {
            "Mask": mask,
            "UserId": reference.student[row],
            "QuestionId": question,
            "part": part,
            "truth": played.truth,
            "predicted": played.prediction,
            "PRight": played.probability,
        }
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)
