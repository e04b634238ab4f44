"""Reads the training answers of a group of tasks, with their metadata, and counts them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from common import io, layout, metadata, provenance, schema
from common.answers import find_rows, number_ids, read_answers
from common.io import IntArray
from common.metadata import SubjectTree
from common.metadata.reading import read_whole

import exploration
import numpy as np
from exploration import FloatArray, Options, Tally
from exploration_circumstances import (
    Quizzes,
    Times,
    count_by_month,
    count_confidence,
    count_quizzes,
    count_times,
)

# Steps that `read_part` reports.
STEPS = ("answers", "counts", "subjects", "circumstances", "dates", "quizzes")


@dataclass(frozen=True)
class Files:
    """The files of a group of tasks.

    Attributes
    ----------
    tasks
        ``1/2`` or ``3/4``.
    folder
        Laid out like `data/`.
    train
        The training answers, in it.
    questions, students, circumstances, subjects
        The metadata; None where they are not there, or simulated while the answers are not, or the
        other way round.
    simulated
        Whether the training answers are simulated.
    absent, foreign
        Names of the metadata that are not there, and of those that are left out.
    """

    tasks: str
    folder: Path
    train: Path
    questions: Path | None
    students: Path | None
    circumstances: Path | None
    subjects: Path | None
    simulated: bool
    absent: list[str]
    foreign: list[str]


@dataclass(frozen=True)
class Missing:
    """How often a value is missing: in `n` of `n_rows` rows, shown with the column's name."""

    column: str
    n: int
    n_rows: int
    of: str


@dataclass(frozen=True)
class Subjects:
    """The tree of subjects, and for each the questions about it and the answers to these.

    The main subjects are those one level below the root; `kind` is the place in `main` of each
    question's, -1 for none.
    """

    tree: SubjectTree
    n_questions: IntArray
    answers: Tally
    main: IntArray
    kind: IntArray


@dataclass(frozen=True)
class Students:
    """Students and their answers by gender, by pupil premium and by year of birth.

    Each a number of students and their answers: genders 0 to 3 as in the files, pupil premium no
    and yes, years from `first_year` on, None where no date of birth is known.
    """

    gender: tuple[IntArray, Tally]
    premium: tuple[IntArray, Tally]
    first_year: int
    born: tuple[IntArray, Tally] | None


@dataclass(frozen=True)
class Part:
    """What was counted in the files of a group of tasks; None for what is not known.

    Attributes
    ----------
    files
        What was read.
    of_student, of_question
        The answers of each student, and to each question.
    filled
        As `exploration.filled` returns it.
    confidence
        Answers by stated confidence.
    main_by_month
        Answers to each main subject in each month, shape (main subjects, months).
    missing
        How often each column of the metadata has no value.
    n_groups, n_quizzes, n_schemes
        How many there are.
    """

    files: Files
    of_student: Tally
    of_question: Tally
    filled: FloatArray
    options: Options | None
    times: Times | None
    quizzes: Quizzes | None
    confidence: Tally | None
    main_by_month: IntArray | None
    subjects: Subjects | None
    students: Students | None
    missing: list[Missing]
    n_groups: int
    n_quizzes: int
    n_schemes: int


def find_files(folder: Path, tasks: str) -> Files | None:
    """Find the files of tasks ``1/2`` or ``3/4``; None if there are no training answers."""
    ending = tasks.replace("/", "_")
    train = folder / layout.TRAIN_DIR.name / f"train_task_{ending}.csv"
    if not io.is_there(train):
        return None
    io.require_file(train)
    simulated = provenance.is_simulated(train)
    found: dict[str, Path | None] = {}
    absent, foreign = [], []
    for kind, name in (
        ("questions", f"question_metadata_task_{ending}.csv"),
        ("students", f"student_metadata_task_{ending}.csv"),
        ("circumstances", f"answer_metadata_task_{ending}.csv"),
        ("subjects", layout.SUBJECT_METADATA),
    ):
        path = metadata.find(folder / layout.METADATA_DIR.name, name)
        if path is None:
            absent.append(name)
        elif provenance.is_simulated(path) != simulated:
            foreign.append(name)
            path = None
        found[kind] = path
    return Files(tasks, folder, train, **found, simulated=simulated, absent=absent, foreign=foreign)


def read_part(files: Files, begin: Callable[[str], None]) -> Part:
    """Read and count what a group of tasks has.

    Parameters
    ----------
    files
        Where it lies.
    begin
        Is called with the name of each of `STEPS` when it begins.

    Raises
    ------
    InputError
        If a file is not as expected, or describes other data.
    """
    begin(STEPS[0])
    answers = read_answers(files.train, ids=True)
    is_correct = answers["IsCorrect"].to_numpy()
    begin(STEPS[1])
    student_id, student = number_ids(answers["UserId"])
    question_id, question = number_ids(answers["QuestionId"])
    of_student = exploration.tally(student, is_correct, len(student_id))
    of_question = exploration.tally(question, is_correct, len(question_id))
    filled = exploration.filled(student, question, of_student.n, of_question.n)
    options = None
    if "AnswerValue" in answers:
        chosen, right = (answers[name].to_numpy() for name in ("AnswerValue", "CorrectAnswer"))
        options = exploration.count_options(question, chosen, right, len(question_id))
    begin(STEPS[2])
    missing: list[Missing] = []
    subjects = _read_subjects(files, question_id, of_question, missing)
    students = _read_students(files, student_id, of_student, missing)
    begin(STEPS[3])
    times = quizzes = confidence = main_by_month = None
    n_groups = n_quizzes = n_schemes = 0
    if files.circumstances is not None and "AnswerId" in answers:
        answer_id = answers["AnswerId"].to_numpy()
        found = metadata.read_circumstances(files.circumstances, answer_id)
        begin(STEPS[4])
        times = count_times(found.date_answered, is_correct)
        if times and subjects:
            kind = subjects.kind[question]
            main_by_month = count_by_month(found.date_answered, kind, len(subjects.main), times)
        missing += _missing_circumstances(found, times)
        if not np.isnan(found.confidence).all():
            confidence = count_confidence(found.confidence, is_correct)
        begin(STEPS[5])
        quizzes = count_quizzes(student, question, found.quiz, found.group)
        n_groups, n_quizzes, n_schemes = (
            len(np.unique(ids[ids >= 0])) for ids in (found.group, found.quiz, found.scheme)
        )
    return Part(
        files, of_student, of_question, filled, options, times, quizzes, confidence,
        main_by_month, subjects, students, missing, n_groups, n_quizzes, n_schemes,
    )  # fmt: skip


def _read_subjects(
    files: Files, question_id: IntArray, of_question: Tally, missing: list[Missing]
) -> Subjects | None:
    if files.questions is None or files.subjects is None:
        return None
    tree = metadata.read_subject_tree(files.subjects)
    found = metadata.read_question_subjects(files.questions, question_id, tree)
    without = int((found.count == 0).sum())
    missing.append(Missing("SubjectId", without, len(question_id), "questions"))
    n_questions, answers = exploration.spread(
        of_question, found.start, found.subject, len(tree.ids)
    )
    main, kind = exploration.main_subjects(found.start, found.subject, tree.level)
    return Subjects(tree, n_questions, answers, main, kind)


def _read_students(
    files: Files, student_id: IntArray, of_student: Tally, missing: list[Missing]
) -> Students | None:
    path = files.students
    if path is None:
        return None
    found = metadata.read_student_metadata(path, student_id)
    is_known = ~np.isnat(found.date_of_birth)
    n_nonsense = _count_dates_of_birth(path, student_id) - int(is_known.sum())
    no_date = len(student_id) - int(is_known.sum()) - n_nonsense
    for column, n in (
        ("Gender", int((found.gender < 0).sum())),
        ("Gender unspecified", int((found.gender == 0).sum())),
        ("DateOfBirth", no_date),
        ("DateOfBirth is nonsense", n_nonsense),
        ("PremiumPupil", int((found.premium_pupil < 0).sum())),
    ):
        missing.append(Missing(column, n, len(student_id), "students"))
    first_year, born = 0, None
    if is_known.any():
        year = np.full(len(student_id), -1)
        year[is_known] = found.date_of_birth[is_known].astype("datetime64[Y]").astype(int) + 1970
        first_year, last_year = int(year[is_known].min()), int(year.max())
        place = np.where(is_known, year - first_year, -1)
        born = exploration.sum_by(place, of_student, last_year - first_year + 1)
    return Students(
        gender=exploration.sum_by(found.gender, of_student, schema.GENDER.high + 1),
        premium=exploration.sum_by(found.premium_pupil, of_student, 2),
        first_year=first_year,
        born=born,
    )


def _count_dates_of_birth(path: Path, student_id: IntArray) -> int:
    """Count the students with any date of birth, be it nonsense."""
    if schema.DATE_OF_BIRTH.name not in io.read_header(io.file_source(path)):
        return 0
    raw = read_whole(path, [schema.USER_ID, schema.DATE_OF_BIRTH])
    rows = find_rows(raw[schema.USER_ID.name], student_id)
    return int((~np.isnat(raw[schema.DATE_OF_BIRTH.name][rows[rows >= 0]])).sum())


def _missing_circumstances(found: metadata.Circumstances, times: Times | None) -> list[Missing]:
    no_date = int(np.isnat(found.date_answered).sum())
    n_rows = len(found.quiz)
    counts = {
        "DateAnswered": no_date,
        "DateAnswered is nonsense": times.n_nonsense if times else n_rows - no_date,
        "Confidence": int(np.isnan(found.confidence).sum()),
        "GroupId": int((found.group < 0).sum()),
        "QuizId": int((found.quiz < 0).sum()),
        "SchemeOfWorkId": int((found.scheme < 0).sum()),
    }
    return [Missing(name, n, n_rows, "answers") for name, n in counts.items()]
