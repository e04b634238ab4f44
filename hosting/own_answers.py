"""Make a folder laid out like the official data from one file of an organiser's own answers.

`hosting/README.md` describes the file, which answers count and how they are split.

All tasks get the same training file. A larger training file for task 4 would contain answers that
are hidden in tasks 1 and 2. Students get random numbers, answers get random AnswerIds and stand in
random order: no number and no order tells who a student is or whether an answer is right. Questions
are numbered in the order of their ids in the file, shorter ids first: 2 before 10, q2 before q10.
The folder organiser/ tells for each number which id of the organiser's file it stands for.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from common import answer_options, layout, reading, schema, writing
from common.adaptive.game import N_ROUNDS
from common.arrays import BoolArray, IntArray
from common.errors import InputError, quote
from common.tasks import TASK_3, TASK_4, TASKS, Form

import damaged_ids
import leaderboard
import numpy as np
import pandas as pd
from competition import N_MASKS, ORGANISER_DIR

# In the kit's files, students and questions are numbered from 0. These files in organiser/ list the
# original ids in the order of the numbers, so that the organiser can find the id for a number.
_ID_LIST_NAMES = {"UserId": "students.csv", "QuestionId": "questions.csv"}
_IDS = list(_ID_LIST_NAMES)
_ID_COLUMNS = [schema.Column(name, schema.TEXT) for name in _IDS]
# A whole number with zeros after the point, such as 3.0. A spreadsheet writes whole numbers in this
# way if another cell of the column is empty.
_WHOLE_NUMBER = r"^(\d+)\.0+$"

# The organiser's file must hold at least this many answers, students and questions. This is enough
# to try all scripts, but too little for a fair competition.
MIN_ANSWERS = 200
MIN_STUDENTS = 10
MIN_QUESTIONS = 10
MIN_STUDENTS_TASK_4 = 20
# At least this many students must have enough answers to be examined in task 4.
MIN_EXAMINABLE = 8
# A student who is examined in task 4 needs this many answers. An entry asks for one answer in each
# of the ten rounds, and predicts other answers, the targets. `draw_targets` makes a fifth of the
# answers targets, rounded: two of twelve answers, which leaves ten to ask for.
MIN_ANSWERS_OF_EXAMINED = N_ROUNDS + 2
# By default, questions and students with fewer answers are left out, as in section 2.1 of the
# challenge's guide.
MIN_ANSWERS_OF_EACH = 50
# Largest number of students times questions in a phase of task 4. It bounds the memory of an entry,
# which holds three arrays with 8 bytes for each student and question.
_MAX_CELLS = 10_000_000

# Maps the name of each file to write, relative to the folder, to the table in the file.
Tables = dict[str, pd.DataFrame]


def make_data_folder(
    path: Path, folder: Path, tasks: Sequence[int], rng: np.random.Generator, min_answers: int
) -> list[str]:
    """Split a file of answers into the files of some tasks.

    Parameters
    ----------
    path
        The organiser's CSV of answers.
    folder
        The folder to write, which gets the layout of `data/`. All files are written, or none.
    tasks
        Numbers of the tasks, out of 1, 2 and 4.
    rng
        Random numbers for the ids and the split.
    min_answers
        Questions and students with fewer answers are left out.

    Returns
    -------
    list of str
        Notes for the organiser, such as how many answers were left out.

    Raises
    ------
    InputError
        If the file is invalid, or holds too few answers.
    """
    if TASK_3.number in tasks:
        raise InputError(
            "task 3 needs experts' judgements of pairs of questions, which a file of answers does "
            "not hold; expected some of tasks 1, 2, 4"
        )
    notes: list[str] = []
    tables: Tables = {}
    answers = _read(path, min_answers, notes)
    answers = _renumber(answers, rng, tables)
    if TASK_4.number in tasks:
        answers = _set_students_aside(path, answers, rng, tables, notes)
    # Tasks 1 and 2 ask for a prediction for each pair of question and student.
    tasks_with_pairs = sorted(task for task in tasks if TASKS[task].form is Form.PREDICTIONS)
    if tasks_with_pairs:
        where = "besides those of the students examined in task 4"
        _require_enough(path, answers, where)
        answers = _set_answers_aside(answers, tasks_with_pairs, tables, notes)
    for task in sorted(tasks):
        tables[f"{layout.TRAIN_DIR.name}/{TASKS[task].data.train}"] = answers
    writing.write_files({folder / name: table for name, table in tables.items()})
    return notes


def _read(path: Path, min_answers: int, notes: list[str]) -> pd.DataFrame:
    """Read the organiser's answers, and add the column IsCorrect.

    If a student has answered a question several times, one of the answers is kept. Questions and
    students with fewer than `min_answers` answers are left out. Ids are texts. Adds to `notes` what
    the organiser should know.
    """
    attempts, has_dates = _read_attempts(path)
    if has_dates:
        counted = "latest answer"
        left_out = "earlier"
        # Sort rows without a date to the front, so that every row with a date counts as later.
        attempts = attempts.sort_values("DateAnswered", kind="stable", na_position="first")
        all_answers = attempts.drop_duplicates(_IDS, keep="last")
    else:
        counted = "first row"
        left_out = "later"
        all_answers = attempts.drop_duplicates(_IDS, keep="first")
    # Restore the order of the file.
    all_answers = all_answers.sort_index()
    n_repeated = len(attempts) - len(all_answers)
    if n_repeated:
        notes.append(
            f"left out as {left_out} attempts: {n_repeated:,} rows; the {counted} of a student and "
            "a question counts"
        )
    answers = _leave_out_rare(path, all_answers, min_answers, notes)
    _require_enough(path, answers)
    is_correct = (answers["AnswerValue"] == answers["CorrectAnswer"]).astype(np.int8)
    _require_right_and_wrong(path, is_correct)
    _note_ambiguous(answers, notes)
    if schema.NUMBER_OF_OPTIONS.name in answers:
        n_options = answer_options.count_options(answers)
        notes.append(f"questions have up to {n_options} options")
    return answers.assign(IsCorrect=is_correct)


def _require_right_and_wrong(path: Path, is_correct: pd.Series) -> None:
    """Raise `InputError` if all answers are right or all are wrong."""
    if is_correct.min() != is_correct.max():
        return
    if is_correct.all():
        found = "right (AnswerValue equals CorrectAnswer"
    else:
        found = "wrong (AnswerValue differs from CorrectAnswer"
    raise InputError(
        f"{path}: every answer is {found} in every row), expected right and wrong ones"
    )


def _note_ambiguous(answers: pd.DataFrame, notes: list[str]) -> None:
    """Add a note if the right option of some questions is not the same in all rows."""
    n_correct_answers = answers.groupby("QuestionId", sort=False)["CorrectAnswer"].nunique()
    ambiguous_questions = n_correct_answers.index[n_correct_answers > 1]
    if len(ambiguous_questions):
        notes.append(
            f"questions with more than one CorrectAnswer: {len(ambiguous_questions):,}, such as "
            f"QuestionId {quote(ambiguous_questions[0])}; each answer is right or wrong by its own "
            "row"
        )


def _read_attempts(path: Path) -> tuple[pd.DataFrame, bool]:
    """Read all rows of the organiser's file, with ids as text.

    The second result says whether the file has dates. Raises `InputError` if a spreadsheet seems to
    have damaged ids.
    """
    source = reading.file_source(path)
    header = reading.read_header(source)
    # If a file has the column AnswerId and not NumberOfOptions, the functions of `answer_options`
    # assume that the file is the challenge's own, and that every question has four options. This
    # does not hold for an organiser's file, so hide AnswerId from these functions.
    header_without_answer_id = [name for name in header if name != schema.ANSWER_ID.name]
    columns = [*_ID_COLUMNS, *answer_options.columns_of_answers(header_without_answer_id)]
    has_dates = schema.DATE_ANSWERED.name in header
    if has_dates:
        columns.append(schema.DATE_ANSWERED)
    attempts = reading.read_table(source, columns)
    for name in _IDS:
        ids = attempts[name].str.strip()
        damaged_ids.require_undamaged(source, name, ids)
        # An id such as 3.0 becomes 3. In the replacement, \1 stands for the group in parentheses of
        # `_WHOLE_NUMBER`.
        digits_before_point = r"\1"
        attempts[name] = ids.str.replace(_WHOLE_NUMBER, digits_before_point, regex=True)
    # Whether another row has the same student and the same question.
    is_repeated = attempts.duplicated(_IDS, keep=False)
    # Raise `InputError` if a spreadsheet seems to have rounded different ids to the same id. Such
    # ids make a student seem to answer the same question twice.
    for name in _IDS:
        damaged_ids.require_unmerged(source, name, attempts[name], is_repeated)
    # Add a column with the number of options of each question, unless all questions have four.
    attempts = answer_options.add_number_of_options(source, attempts, header_without_answer_id)
    return attempts, has_dates


def _leave_out_rare(
    path: Path, all_answers: pd.DataFrame, min_answers: int, notes: list[str]
) -> pd.DataFrame:
    """Leave out questions and students with few answers, and say in a note how many."""
    answers = all_answers
    # If a question is left out, its students have fewer answers than before. If a student is left
    # out, the questions have fewer. So repeat until all remaining questions and students have
    # enough answers.
    while True:
        n_of_student = answers.groupby("UserId")["UserId"].transform("size")
        n_of_question = answers.groupby("QuestionId")["QuestionId"].transform("size")
        is_kept = (n_of_student >= min_answers) & (n_of_question >= min_answers)
        if is_kept.all():
            break
        answers = answers[is_kept]
    n_students = all_answers["UserId"].nunique() - answers["UserId"].nunique()
    n_questions = all_answers["QuestionId"].nunique() - answers["QuestionId"].nunique()
    left_out = (
        f"{n_questions:,} questions and {n_students:,} students with fewer than {min_answers} "
        f"answers, {len(all_answers) - len(answers):,} answers in all"
    )
    if not len(answers):
        raise InputError(
            f"{path}: nothing is left after leaving out {left_out}; expected more answers, or a "
            "smaller --min_answers (0 leaves out none)"
        )
    if len(answers) < len(all_answers):
        notes.append(f"left out: {left_out} (--min_answers)")
    return answers


def _renumber(answers: pd.DataFrame, rng: np.random.Generator, tables: Tables) -> pd.DataFrame:
    """Replace the ids in the file by numbers, and put the answers into random order.

    Adds two tables to `tables`: they list the id in the file for each number of a student, and for
    each number of a question.
    """
    student_ids = pd.Series(answers["UserId"].unique())
    question_ids = pd.Series(answers["QuestionId"].unique())
    # The new number of a student or question is its position in a sorted list of ids. Sort the
    # students at random, so that a student's number tells nothing about the student.
    new_position = rng.permutation(len(student_ids))
    sorted_student_ids = student_ids.iloc[np.argsort(new_position)]
    # Sort the questions by the length of the id, then by the id: q2 comes before q10. `np.lexsort`
    # takes the most important key last.
    question_order = np.lexsort((question_ids, question_ids.str.len()))
    sorted_question_ids = question_ids.iloc[question_order]
    for name, ids in (("UserId", sorted_student_ids), ("QuestionId", sorted_question_ids)):
        number = np.arange(len(ids))
        # The ids are the index, so that `map` replaces each id by its number.
        number_of_id = pd.Series(number, index=ids)
        answers[name] = answers[name].map(number_of_id)
        # `quote_formula` prevents a spreadsheet from treating an id as a formula.
        id_list = pd.DataFrame({name: number, f"Own{name}": ids.map(leaderboard.quote_formula)})
        tables[f"{ORGANISER_DIR}/{_ID_LIST_NAMES[name]}"] = id_list
    answers["AnswerId"] = rng.permutation(len(answers))
    columns = [column.name for column in schema.ANSWER_COLUMNS]
    if schema.NUMBER_OF_OPTIONS.name in answers:
        columns.append(schema.NUMBER_OF_OPTIONS.name)
    # Put the rows into random order, so that their order does not show the order of the organiser's
    # file.
    return answers[columns].iloc[rng.permutation(len(answers))]


def _require_enough(path: Path, answers: pd.DataFrame, where: str = "") -> None:
    """Raise `InputError` if there are too few answers, students or questions.

    `where` is a part of the error message. It says which answers of the file are counted. Without
    it, all answers are counted.
    """
    n_students = answers["UserId"].nunique()
    n_questions = answers["QuestionId"].nunique()
    if where:
        where = f" {where}"
    if len(answers) < MIN_ANSWERS or n_students < MIN_STUDENTS or n_questions < MIN_QUESTIONS:
        raise InputError(
            f"{path}: holds {len(answers):,} answers of {n_students:,} students to "
            f"{n_questions:,} questions{where}, expected at least {MIN_ANSWERS}, {MIN_STUDENTS} "
            f"and {MIN_QUESTIONS}"
        )


def _set_students_aside(
    path: Path, answers: pd.DataFrame, rng: np.random.Generator, tables: Tables, notes: list[str]
) -> pd.DataFrame:
    """Draw the students for the tests of task 4, and add the test files of task 4 to the tables.

    An entry of task 4 asks these students questions (examines them). Returns the answers of the
    other students. Adds to `notes` how many students are examined.
    """
    # The number of answers of each student. Students are numbered from 0.
    n_answers = np.bincount(answers["UserId"])
    n_students = len(n_answers)
    examinable = np.flatnonzero(n_answers >= MIN_ANSWERS_OF_EXAMINED)
    if n_students < MIN_STUDENTS_TASK_4 or len(examinable) < MIN_EXAMINABLE:
        raise InputError(
            f"{path}: holds {n_students:,} students, {len(examinable):,} of them with "
            f"{MIN_ANSWERS_OF_EXAMINED} or more answers; task 4 needs at least "
            f"{MIN_STUDENTS_TASK_4} students, {MIN_EXAMINABLE} of them with that many answers; "
            "leave it out with --tasks 1 2"
        )
    n_questions = answers["QuestionId"].nunique()
    # A phase examines at most a tenth of all students, and at most a quarter of the students with
    # enough answers, so that most students remain for training. `_MAX_CELLS` also limits the number
    # of students times questions.
    n_examined = min(n_students // 10, len(examinable) // 4, _MAX_CELLS // n_questions)
    # Draw the students of both phases.
    examined = rng.permutation(examinable)[: 2 * n_examined]
    students_by_phase = (examined[:n_examined], examined[n_examined:])
    for phase, students in zip(layout.PHASES, students_by_phase, strict=True):
        table = answers[answers["UserId"].isin(students)]
        # Each mask is a column with 1 for the answers to be predicted (targets), and 0 for others.
        for mask in range(N_MASKS):
            is_target = draw_targets(table["UserId"].to_numpy(), rng)
            table = table.assign(**{f"{schema.IS_TARGET}_{mask}": is_target.astype(np.int8)})
        tables[f"{layout.TEST_DIR.name}/{TASK_4.answers_name(phase)}"] = table
        # All masks have the same number of targets: count the targets of the first mask.
        n_targets = table[f"{schema.IS_TARGET}_0"].sum()
        notes.append(
            f"task 4, {phase}: {n_examined:,} students with {len(table):,} answers, of which "
            f"{n_targets:,} are to be predicted in each game (mask)"
        )
    return answers[~answers["UserId"].isin(examined)]


def draw_targets(student: IntArray, rng: np.random.Generator) -> BoolArray:
    """Draw the targets at random: a fifth of each student's answers, rounded to a whole number.

    Parameters
    ----------
    student
        The student of each answer, shape (n_answers,).
    rng
        Random numbers for the draw.

    Returns
    -------
    array of bool, shape (n_answers,)
        True for a target.
    """
    # Each answer gets a random number. The targets of a student are the answers with the student's
    # smallest numbers.
    draws_by_student = pd.Series(rng.random(len(student))).groupby(student)
    n_answers = draws_by_student.transform("size")
    # n / 5 is rounded by floor(n / 5 + 1 / 2), which equals (2 * n + 5) // 10.
    n_targets = (2 * n_answers + 5) // 10
    return (draws_by_student.rank(method="first") <= n_targets).to_numpy()


def _set_answers_aside(
    answers: pd.DataFrame, tasks: Sequence[int], tables: Tables, notes: list[str]
) -> pd.DataFrame:
    """Set the test answers of tasks 1 and 2 aside; return the training answers.

    The answers are in random order. The first 80 % become the training answers. Each phase gets
    half of the remaining answers as test answers.

    Parameters
    ----------
    answers
        All answers.
    tasks
        The tasks to host: 1, 2 or both.
    tables
        The tables to write. The function adds the test files.
    notes
        Notes for the organiser. The function adds a note on the number of test answers of each
        phase.
    """
    n_train = len(answers) * 4 // 5
    # The remaining rows are halved: the public phase gets those before `private_start`, the private
    # phase those from there on.
    private_start = (n_train + len(answers)) // 2
    label = "tasks 1 and 2" if len(tasks) == 2 else f"task {tasks[0]}"
    hidden_by_phase = (answers[n_train:private_start], answers[private_start:])
    for phase, hidden in zip(layout.PHASES, hidden_by_phase, strict=True):
        for number in tasks:
            task = TASKS[number]
            # `task.column` is what the task predicts: IsCorrect or AnswerValue.
            columns = ["QuestionId", "UserId", "AnswerId", task.column.name]
            if schema.NUMBER_OF_OPTIONS.name in hidden:
                columns.append(schema.NUMBER_OF_OPTIONS.name)
            tables[f"{layout.TEST_DIR.name}/{task.answers_name(phase)}"] = hidden[columns]
        # The binomial standard error of an accuracy p is sqrt(p * (1 - p) / n). It is largest for
        # p = 0.5. The true error is larger, because answers of one student are not independent.
        standard_error = 0.5 / np.sqrt(len(hidden))
        notes.append(
            f"{label}, {phase}: {len(hidden):,} answers; a score has a standard error of about "
            f"{standard_error:.3f}"
        )
    return answers[:n_train]
