"""Write simulated files in place of all official ones, and the submission templates for them.

    python data/generate_sample.py --size tiny     # takes a second; for tests
    python data/generate_sample.py --size small    # takes some seconds; to try every model
    python data/generate_sample.py --size full     # takes minutes; exactly the official counts

Nothing in these files is real: `data/simulation.py` holds the model, `data/SIMULATION.md` describes
it. The files have the official folders, names, columns and quirks, so that every script that runs
on official files runs on simulated files too. The same size and seed give the same bytes. Real
files are never overwritten.

With `--output_dir DIR`, the files go to DIR and the templates to DIR/submission_templates.
"""

import argparse
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common import cli, layout, simulated, writing
from common.arrays import Array
from common.errors import InputError
from common.tasks import TASK_1, TASK_2, TASK_3, TASK_4
from tools.templates import build_templates

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pa_compute
import simulation
from PIL import Image, ImageDraw, ImageFont
from simulation import (
    CHUNK,
    N_OPTIONS,
    NO_CONFIDENCE,
    Misconceptions,
    Questions,
    Rng,
    SchoolSetting,
)
from subject_tree import Leaves, draw_subject_lists, make_subjects, write_subject_lists
from tqdm import tqdm

# Increase this number whenever a change makes the same seed give other data.
GENERATOR_VERSION = 2

# No student answers more than this share of the questions.
MOST_ANSWERED = 0.9
# Number of masks of task 4. A mask says which answers of a student are to be predicted (targets).
N_MASKS = 10
# Share of the answers that are targets in each mask.
TARGET_SHARE = 0.2
# Number of pairs of questions that the experts judge; half of the pairs are public.
N_PAIRS = 50
# Maps the column of each expert to the expert's error: the standard deviation of the noise that is
# added to the difference in quality of two questions.
EXPERTS = {"T1_ALR": 1.0, "T2_CL": 1.6, "T3_GF": 1.2, "T4_MQ": 1.8, "T5_NS": 1.4}
# Width and height of an image, and the size of its font, in pixels.
IMAGE_SIZE = (240, 180)
IMAGE_FONT_SIZE = 18

TRAIN_FOLDER = layout.TRAIN_DIR.name
METADATA_FOLDER = layout.METADATA_DIR.name
TEST_FOLDER = layout.TEST_DIR.name
# Name of the file in TEST_FOLDER that lists the planted misconceptions. {} stands for the tasks,
# 1_2 or 3_4.
MISCONCEPTIONS_NAME = "planted_misconceptions_task_{}.csv"
IDS = ["QuestionId", "UserId", "AnswerId"]
OFFICIAL_COLUMNS = [*IDS, "IsCorrect", "CorrectAnswer", "AnswerValue"]
# The progress bar has 19 steps: 17 files (all but the subjects, the misconceptions and the images),
# and the simulations of the answers of tasks 1/2 and of tasks 3/4.
N_STEPS = 19

# The official sizes of tasks 1/2. The class `SchoolSetting` describes the fields.
TASKS_1_2 = SchoolSetting(
    students=(118_971,),
    # Training and test answers together. `split_tasks_1_2` makes 80 % of them training answers:
    # 15,867,850, as in the official data.
    answers=(19_834_813,),
    n_questions=27_613,
    n_quizzes=17_274,
    n_cohorts=5_921,
    min_answers_per_question=50,
    activity=((0, 12, 24, 36, 50, 66, 85, 108, 140, 190, 270, 450, 1500),),
    popularity=(-4.5, -2.6, -1.3, -0.2, 0.9, 2.2, 4.2),
    level_width=0.15,
    easiness=0.2,
    easiness_sd=1.5,
    key_shares=(0.25, 0.246, 0.263, 0.241),
    first_day="2018-09-03",
    n_days=440,
    n_topics=69,
    birth_years=(2002, 2010),
    share_without_birth_date=0.32,
    share_without_premium=0.58,
)
# The official sizes of tasks 3/4. The tuples `students`, `answers` and `activity` have one entry
# each for the training, the public and the private part.
TASKS_3_4 = SchoolSetting(
    students=(4_918, 615, 615),
    # The numbers of training, public and private answers. The AnswerIds of the official data number
    # all these answers from 0. So the highest AnswerId plus 1 is the number of all answers. The
    # private answers are all but the training and the public answers.
    answers=(1_382_727, 74_891, 51_299),
    n_questions=948,
    n_quizzes=119,
    n_cohorts=300,
    min_answers_per_question=5,
    activity=(
        (50, 70, 100, 129, 170, 262, 360, 506, 530, 553, 598, 810),
        (50, 54, 60, 68, 80, 101, 120, 149, 190, 225, 277, 541),
        (50, 54, 60, 68, 80, 101, 120, 149, 190, 225, 277, 541),
    ),
    popularity=(-6.0, -3.2, -1.2, -0.1, 0.2, 0.35, 0.45, 0.6),
    level_width=10.0,
    easiness=-1.0,
    easiness_sd=1.55,
    key_shares=(0.263, 0.272, 0.278, 0.187),
    first_day="2020-01-06",
    n_days=58,
    n_topics=24,
    birth_years=(2007, 2008),
    share_without_birth_date=0.54,
    share_without_premium=0.10,
)


# A student's part says in which file the student's answers are: in the training file, in the public
# test file or in the private one.
TRAINING_PART = 0
PUBLIC_PART = 1
PRIVATE_PART = 2


@dataclass(frozen=True)
class Size:
    """A --size: the settings of both groups of tasks."""

    tasks_1_2: SchoolSetting
    tasks_3_4: SchoolSetting


SIZES = {
    "tiny": Size(
        tasks_1_2=replace(
            TASKS_1_2,
            students=(240,),
            answers=(16_000,),
            n_questions=100,
            n_quizzes=60,
            n_cohorts=12,
        ),
        tasks_3_4=replace(
            TASKS_3_4,
            students=(200, 25, 25),
            answers=(12_000, 1_375, 1_350),
            n_questions=80,
            n_quizzes=16,
            n_cohorts=10,
        ),
    ),
    "small": Size(
        tasks_1_2=replace(
            TASKS_1_2,
            students=(4_000,),
            answers=(500_000,),
            n_questions=1_000,
            n_quizzes=630,
            n_cohorts=160,
        ),
        tasks_3_4=replace(
            TASKS_3_4,
            students=(1_200, 150, 150),
            answers=(120_000, 11_000, 9_500),
            n_questions=300,
            n_quizzes=60,
            n_cohorts=75,
        ),
    ),
    "full": Size(TASKS_1_2, TASKS_3_4),
}


@dataclass(frozen=True)
class TableFile:
    """A file to be written: its name below the data folder, and the tables that are its rows."""

    name: str
    # A large file has several tables, which are written one after the other: the text of all rows
    # at once would need too much memory.
    tables: Iterable[pd.DataFrame]


@dataclass(frozen=True)
class School:
    """The simulated data of tasks 1/2 or of tasks 3/4, which share only the subjects."""

    setting: SchoolSetting
    # A row for each answer, with the official columns and these further ones. A sitting is the work
    # of a student on a quiz: start, quiz, cohort and alone describe the answer's sitting, and slot
    # is the position of the answer in it (see `simulation.Incidence`). confidence is NO_CONFIDENCE
    # if the student stated none. part says in which file the student's answers are: TRAINING_PART,
    # PUBLIC_PART or PRIVATE_PART.
    answers: pd.DataFrame
    # A row for each student: UserId, birth_year and part (as in `answers`). birth_year 2008 stands
    # for a school year: its students were born from September 2007 to August 2008.
    students: pd.DataFrame
    questions: Questions
    # The QuestionId that each question has in the files. Arrays such as this one have an element
    # for each question, in the order of the questions' numbers from 0.
    question_id: Array
    # For each question, its subjects on the lowest level of the tree, level 3.
    leaves: Leaves
    # The accuracies that the best possible model is expected to reach: a model that knows the true
    # probabilities of all answers. `limits` in `simulation.Choices` explains the keys.
    limits: dict[str, float]
    # The misconceptions of students that were planted in the answers; None if there are none.
    misconceptions: Misconceptions | None = None


def settings(size: str, n_questions: int | None = None) -> Size:
    """Return the settings of a --size; `n_questions` is another number of questions of tasks 3/4.

    Raises `InputError` if there are too few questions: a student answers a question at most once,
    and answers at most the share MOST_ANSWERED of all questions.
    """
    chosen = SIZES[size]
    if n_questions is None:
        return chosen
    setting = chosen.tasks_3_4
    most_per_student = int(n_questions * MOST_ANSWERED)
    # Check the training file and each test file: its students must have room for all its answers.
    # There is room if the mean number of answers of a student, rounded up, does not exceed the
    # largest number that a single student may have.
    for n_students, n_answers in zip(setting.students, setting.answers, strict=True):
        answers_per_student = math.ceil(n_answers / n_students)
        if answers_per_student > most_per_student:
            fewest = math.ceil(answers_per_student / MOST_ANSWERED)
            raise InputError(
                f"--questions {n_questions}: too few questions for {n_answers:,} answers of "
                f"{n_students:,} students, expected at least {fewest}; choose more, "
                "or a smaller --size"
            )
    # The number of quizzes changes in proportion to the number of questions.
    n_quizzes = max(1, round(setting.n_quizzes * n_questions / setting.n_questions))
    changed = replace(setting, n_questions=n_questions, n_quizzes=n_quizzes)
    return replace(chosen, tasks_3_4=changed)


# ---- Simulation ----------------------------------------------------------------------------------


def simulate(
    rng: Rng, setting: SchoolSetting, subjects: pd.DataFrame, n_misconceptions: int = 0
) -> School:
    """Simulate the students, questions and answers of tasks 1/2 or of tasks 3/4.

    `subjects` is the tree of subjects that `make_subjects` returns.
    """
    leaves, topic = draw_subject_lists(rng, subjects, setting.n_questions, setting.n_topics)
    # Draw who answers which question in which quiz.
    counts = draw_answer_counts(rng, setting)
    quizzes = simulation.draw_quizzes(rng, topic, setting.n_quizzes)
    # Topics are the subjects of level 2, and areas their parents; both are numbered from 0.
    area_of_topic = pd.factorize(subjects.loc[subjects["Level"] == 2, "parent"])[0]
    # Draw how advanced each topic is, from 0 to 1. A quiz has the level of its first question's
    # topic.
    level_of_topic = rng.random(len(area_of_topic))
    quiz_level = level_of_topic[topic[quizzes[:, 0]]]
    incidence = simulation.draw_incidence(rng, setting, counts, quizzes, quiz_level)
    # The cohort (class) of each student. The table of sittings names it: a sitting is the work of
    # one student on one quiz, and its row holds the student and the student's cohort.
    cohort = np.zeros(len(counts), np.int64)
    cohort[incidence.sittings["student"]] = incidence.sittings["cohort"]

    # Draw the options that the students choose.
    n_answers = np.bincount(incidence.answers["question"], minlength=setting.n_questions)
    questions = simulation.draw_questions(rng, setting, topic, n_answers)
    ability = simulation.draw_abilities(rng, cohort, setting.n_cohorts, area_of_topic)
    misconceptions = None
    if n_misconceptions:
        # Misconceptions have a random stream of their own. So all other random numbers are the same
        # with and without misconceptions.
        misconceptions = simulation.draw_misconceptions(
            rng.spawn(1)[0], questions, len(counts), n_misconceptions
        )
    choices = simulation.draw_choices(rng, incidence, questions, ability, misconceptions)

    # Draw the ids in random order, so that nothing about a question, a student or an answer can be
    # concluded from its id.
    question_id = rng.permutation(setting.n_questions).astype(np.int32)
    student_id = rng.permutation(len(counts)).astype(np.int32)
    answer_id = rng.permutation(len(incidence.answers)).astype(np.int32)
    students = tabulate_students(rng, setting, student_id, cohort)
    answers = tabulate_answers(incidence, questions, choices, question_id, answer_id, students)
    return School(
        setting=setting,
        answers=answers,
        students=students,
        questions=questions,
        question_id=question_id,
        leaves=leaves,
        limits=choices.limits,
        misconceptions=misconceptions,
    )


def tabulate_students(
    rng: Rng, setting: SchoolSetting, student_id: Array, cohort: Array
) -> pd.DataFrame:
    """Return a row for each student, with the columns of `School.students`.

    `student_id` is the UserId of each student, and `cohort` is the student's cohort. The column
    part of the result says in which file the student's answers are: training, public test or
    private test. The students of a part follow one another. In tasks 1/2, all students belong to
    the first part.
    """
    # All students of a cohort belong to one school year.
    first_year, last_year = setting.birth_years
    year_of_cohort = rng.integers(first_year, last_year + 1, setting.n_cohorts)
    # The parts are numbered from 0. `np.repeat` gives each student of a part the number of this
    # part. `setting.students` holds the number of students in each part.
    parts = np.arange(len(setting.students), dtype=np.int8)
    columns = {
        "UserId": student_id,
        "part": np.repeat(parts, setting.students),
        "birth_year": year_of_cohort[cohort],
    }
    return pd.DataFrame(columns)


def tabulate_answers(
    incidence: simulation.Incidence,
    questions: Questions,
    choices: simulation.Choices,
    question_id: Array,
    answer_id: Array,
    students: pd.DataFrame,
) -> pd.DataFrame:
    """Return a row for each answer, with the columns of `School.answers`.

    `incidence` says who answers which question in which sitting. A sitting is the work of one
    student on one quiz. `choices` says which option is chosen. `question_id` is the QuestionId of
    each question, and `answer_id` is the AnswerId of each answer. `students` is the table that
    `tabulate_students` returns.

    In the result, slot is the position of the answer in its sitting. The columns start, quiz,
    cohort (class) and alone (not in class) describe the sitting.
    """
    question = incidence.answers["question"].to_numpy()
    student = incidence.answers["student"].to_numpy()
    sitting = incidence.answers["sitting"].to_numpy()
    right_option = questions.key[question]
    columns = {
        "QuestionId": question_id[question],
        "UserId": students["UserId"].to_numpy()[student],
        "AnswerId": answer_id,
        "IsCorrect": (choices.option == right_option).astype(np.int8),
        # Options are 1 to 4 in the files; adding np.int8 keeps the dtype int8.
        "CorrectAnswer": right_option + np.int8(1),
        "AnswerValue": choices.option + np.int8(1),
        "slot": incidence.answers["slot"].to_numpy(),
        "confidence": choices.confidence,
        "part": students["part"].to_numpy()[student],
    }
    for name in ("start", "quiz", "cohort", "alone"):
        columns[name] = incidence.sittings[name].to_numpy()[sitting]
    return pd.DataFrame(columns, copy=False)


def draw_answer_counts(rng: Rng, setting: SchoolSetting) -> Array:
    """Draw the number of answers of each student; int64 (n_students,).

    The students of the training file come first, then those of each test file.
    """
    most = int(setting.n_questions * MOST_ANSWERED)
    counts = []
    for n_students, n_answers, quantiles in zip(
        setting.students, setting.answers, setting.activity, strict=True
    ):
        counts.append(simulation.draw_counts(rng, n_students, n_answers, quantiles, most))
    return np.concatenate(counts)


def change_keys(rng: Rng, school: School) -> None:
    """Let the right option (key) of three questions change over time.

    In the earliest 20 to 40 % of the answers to each of these questions, another option is the
    right one. The official tasks 3/4 have such questions too. The answers of `school` are changed
    in place.
    """
    answers = school.answers
    counts = answers["QuestionId"].value_counts().reindex(school.question_id, fill_value=0)
    # Choose among the questions with many answers: at least 100, or at least the median number of
    # answers of a question if this is less than 100.
    enough = min(100, np.median(counts))
    frequent = np.flatnonzero(counts >= enough)
    for question in rng.choice(frequent, 3, replace=False):
        question_answers = answers[answers["QuestionId"] == school.question_id[question]]
        # For each answer, the minute in which the student began the quiz.
        start = question_answers["start"]
        # The rows of the earliest answers in `answers`.
        early = start.index[start < np.quantile(start, rng.uniform(0.2, 0.4))]
        # Draw one of the three options that are not the key: it is right in the early answers.
        shift = rng.integers(1, N_OPTIONS)
        early_option = (school.questions.key[question] + shift) % N_OPTIONS
        # `key` numbers the options from 0; the column CorrectAnswer numbers them from 1.
        early_answer = early_option + 1
        answers.loc[early, "CorrectAnswer"] = early_answer
        is_correct = answers["AnswerValue"][early] == early_answer
        answers.loc[early, "IsCorrect"] = is_correct.astype(np.int8)


# ---- Answers -------------------------------------------------------------------------------------


def split_rows(n_rows: int) -> Iterator[slice]:
    """Return slices of at most CHUNK rows that cover all rows of a table."""
    return (slice(start, start + CHUNK) for start in range(0, n_rows, CHUNK))


def take_columns(answers: pd.DataFrame, columns: list[str], rows: Array) -> Iterator[pd.DataFrame]:
    """Select columns and rows of `answers`, in this order; yield tables of at most CHUNK rows."""
    selected = answers[columns]
    return (selected.iloc[rows[chunk]] for chunk in split_rows(len(rows)))


def split_tasks_1_2(rng: Rng, school: School) -> Iterator[TableFile]:
    """Split the answers of tasks 1/2 at random into 80 % training, 10 % public, 10 % private."""
    answers = school.answers
    order = rng.permutation(len(answers)).astype(np.int32)
    n_train = len(order) * 4 // 5
    # The rows after the training rows are test rows: the first half is public, the second half is
    # private.
    n_test = len(order) - n_train
    private_start = n_train + n_test // 2
    train_rows = order[:n_train]
    train_tables = take_columns(answers, OFFICIAL_COLUMNS, train_rows)
    yield TableFile(f"{TRAIN_FOLDER}/{layout.TRAIN_TASK_1_2}", train_tables)
    test_rows = (order[n_train:private_start], order[private_start:])
    for phase, rows in zip(layout.PHASES, test_rows, strict=True):
        for task in (TASK_1, TASK_2):
            name = f"{TEST_FOLDER}/{task.answers_name(phase)}"
            yield TableFile(name, take_columns(answers, [*IDS, task.column.name], rows))


def split_tasks_3_4(rng: Rng, school: School) -> Iterator[TableFile]:
    """Split the answers of tasks 3/4 by student into training, public and private.

    The test files of task 4 have masks: columns that say which answers are targets, that is, hidden
    from the entry, which has to predict them.
    """
    answers = school.answers.iloc[rng.permutation(len(school.answers))]
    masks = [f"IsTarget_{mask}" for mask in range(N_MASKS)]
    # The name of each file, the part whose students it holds, and the names of its masks.
    for name, part, target_columns in (
        (f"{TRAIN_FOLDER}/{layout.TRAIN_TASK_3_4}", TRAINING_PART, []),
        (f"{TEST_FOLDER}/{TASK_4.answers_name('public')}", PUBLIC_PART, masks),
        (f"{TEST_FOLDER}/{TASK_4.answers_name('private')}", PRIVATE_PART, masks),
        # The official data have the answers of the private students twice: in the file of the line
        # above, with all masks, and in this file, with a single mask.
        (f"{TEST_FOLDER}/test_private_task_4.csv", PRIVATE_PART, ["IsTarget"]),
    ):
        part_answers = answers.loc[answers["part"] == part, OFFICIAL_COLUMNS]
        for column in target_columns:
            is_target = rng.random(len(part_answers)) < TARGET_SHARE
            part_answers = part_answers.assign(**{column: is_target.astype(np.int8)})
        yield TableFile(name, [part_answers])


# ---- Metadata ------------------------------------------------------------------------------------


def write_subjects(subjects: pd.DataFrame, path: Path) -> None:
    """Write the tree of subjects.

    Like the official file, it has a byte order mark, and NULL as the parent of a root.
    """
    path.parent.mkdir(parents=True)
    subjects.sort_values("SubjectId").to_csv(
        path,
        columns=["SubjectId", "Name", "ParentId", "Level"],
        index=False,
        na_rep="NULL",
        encoding="utf-8-sig",
        lineterminator="\n",
    )


def metadata_files(
    rng: Rng, school: School, subjects: pd.DataFrame, ending: str
) -> Iterator[TableFile]:
    """Yield the metadata files of questions, students and answers.

    `ending` is the end of the files' names, such as "metadata_task_1_2.csv".
    """
    subject_lists = write_subject_lists(subjects, school.leaves)
    questions = pd.DataFrame({"QuestionId": school.question_id, "SubjectId": subject_lists})
    shuffled = questions.iloc[rng.permutation(len(questions))]
    yield TableFile(f"{METADATA_FOLDER}/question_{ending}", [shuffled])
    yield TableFile(f"{METADATA_FOLDER}/student_{ending}", [student_metadata(rng, school)])
    yield TableFile(f"{METADATA_FOLDER}/answer_{ending}", answer_metadata(rng, school))


def student_metadata(rng: Rng, school: School) -> pd.DataFrame:
    """Return gender, date of birth and pupil premium of all students; many values are unknown."""
    setting = school.setting
    n = len(school.students)
    has_birth = rng.random(n) >= setting.share_without_birth_date
    # Genders are 0 unspecified, 1 female, 2 male, 3 other. First draw female or male. Then replace
    # some genders: most students who gave no date of birth gave no gender either.
    gender = rng.integers(1, 3, n)
    is_unspecified = np.where(has_birth, rng.random(n) < 0.03, rng.random(n) < 0.74)
    gender[is_unspecified] = 0
    gender[rng.random(n) < 0.0005] = 3
    birth = draw_birth_dates(rng, school.students["birth_year"].to_numpy())
    # PremiumPupil is 1 if the school gets the pupil premium for the student. This is British public
    # money for financially disadvantaged students.
    premium = (rng.random(n) < 0.27).astype(np.int8)
    premium_is_known = has_birth & (rng.random(n) >= setting.share_without_premium)
    columns = {
        "UserId": school.students["UserId"],
        "Gender": gender.astype(np.int8),
        "DateOfBirth": pd.Series(birth).where(has_birth),
        "PremiumPupil": pd.Series(premium, dtype="Int8").where(premium_is_known),
    }
    return pd.DataFrame(columns).iloc[rng.permutation(n)]


def draw_birth_dates(rng: Rng, birth_year: Array) -> Array:
    """Draw a date of birth for each student, the first day of a month; datetime64[ms].

    Some dates are nonsense, as in the official files.
    """
    n = len(birth_year)
    # The students of a school year were born from September of the year before birth_year to August
    # of birth_year. `month` is the number of months since January of the year before birth_year:
    # September is month 8, and August of birth_year is month 19.
    month = rng.integers(8, 20, n)
    year = birth_year - 1 + month // 12
    month_of_year = month % 12
    is_nonsense = rng.random(n) < 0.01
    year[is_nonsense] = rng.integers(1900, 2030, int(is_nonsense.sum()))
    months_since_1970 = 12 * (year - 1970) + month_of_year
    return months_since_1970.astype("datetime64[M]").astype("datetime64[ms]")


def answer_metadata(rng: Rng, school: School) -> Iterator[pd.DataFrame]:
    """Yield the metadata of all answers in several tables, which together are one file.

    As in the official files, there are a few extra rows without an AnswerId.
    """
    answers = school.answers
    setting = school.setting
    n = len(answers)
    # For each row of the metadata: the number of the answer that it describes, and whether the
    # AnswerId is missing.
    answer, is_empty = draw_metadata_rows(rng, n_answers=n, n_empty=max(2, n // 20_000))

    # On 1 September 2019, a new school year begins. Then each cohort (class) gets a new GroupId and
    # keeps its SchemeOfWorkId. `new_year` is the number of minutes from the first day of the data
    # to this date. It is negative if the data begin later; then there is only one school year.
    first_day = np.datetime64(setting.first_day, "ms")
    new_year = int((np.datetime64("2019-09-01") - first_day) / np.timedelta64(1, "m"))
    n_cohorts = setting.n_cohorts
    n_years = 2 if new_year > 0 else 1
    # The array `group_id` has a row for each school year and a column for each cohort.
    group_id = rng.permutation(n_cohorts * n_years).reshape(n_years, n_cohorts).astype(np.int32)
    quiz_id = rng.permutation(setting.n_quizzes).astype(np.int32)
    # A scheme of work is the plan of a class. Several classes may have the same scheme, and some
    # classes have no scheme.
    n_schemes = max(2, n_cohorts // 3)
    scheme_ids = rng.integers(1, 60_000, n_schemes)
    scheme_of_cohort = scheme_ids[rng.integers(0, n_schemes, n_cohorts)]
    has_scheme = rng.random(n_cohorts) < 0.8
    for chunk in split_rows(len(answer)):
        chunk_answers = answers.iloc[answer[chunk]].reset_index(drop=True)
        # A student answers one question of a quiz each minute. `start` is the minute in which the
        # student begins the quiz, and `slot` is the position of the answer in it, from 0.
        minute = chunk_answers["start"] + chunk_answers["slot"]
        cohort = chunk_answers["cohort"].to_numpy()
        # The school year of the answer: 0 for the first year of the data, 1 for the second.
        year = np.where((n_years == 2) & (minute >= new_year), 1, 0)
        confidence = chunk_answers["confidence"].astype("Int8")
        # Answers that students give alone, outside class, belong to no scheme.
        scheme = pd.Series(scheme_of_cohort[cohort], dtype="Int32")
        has_no_scheme = ~has_scheme[cohort] | chunk_answers["alone"]
        columns = {
            "AnswerId": chunk_answers["AnswerId"].astype("Int32").mask(is_empty[chunk]),
            # A minute has 60,000 ms.
            "DateAnswered": first_day + minute.to_numpy() * np.timedelta64(60_000, "ms"),
            "Confidence": confidence.mask(confidence == NO_CONFIDENCE),
            "GroupId": group_id[year, cohort],
            "QuizId": quiz_id[chunk_answers["quiz"]],
            "SchemeOfWorkId": scheme.mask(has_no_scheme),
        }
        yield pd.DataFrame(columns)


def draw_metadata_rows(rng: Rng, n_answers: int, n_empty: int) -> tuple[Array, Array]:
    """Draw which answer each row of the answer metadata describes, and which rows have no AnswerId.

    Returns
    -------
    answer
        The number of the answer that each row describes, from 0. Each answer has a row with its
        AnswerId. The other `n_empty` rows have no AnswerId: each repeats the other columns of a
        random answer.
    is_empty
        True for a row without an AnswerId.
    """
    with_id = rng.permutation(n_answers).astype(np.int32)
    without_id = rng.integers(0, n_answers, n_empty)
    answer = np.concatenate([with_id, without_id])
    # The rows without an AnswerId are the last rows so far. Spread them over the file: exchange
    # each of them with a random row that has an AnswerId.
    last_rows = np.arange(n_answers, len(answer))
    empty_rows = rng.choice(n_answers, n_empty, replace=False)
    answer[last_rows], answer[empty_rows] = answer[empty_rows], answer[last_rows]
    is_empty = np.zeros(len(answer), bool)
    is_empty[empty_rows] = True
    return answer, is_empty


# ---- Judgements of experts, and images -----------------------------------------------------------


def draw_quality(rng: Rng, questions: Questions) -> Array:
    """Draw the quality of questions in the eyes of experts; float64 (n_questions,).

    A good question has wrong options that are all plausible, discriminates between students and is
    not too easy. A random part is added, since the answers do not show all that experts see.
    """
    n = len(questions.key)
    # For an average student (ability 0), the probability that a wrong answer is each of the wrong
    # options. A student who does not know the answer chooses an option with a probability in
    # proportion to exp(attraction).
    wrong_share = np.exp(questions.attraction.astype(float))
    wrong_share[np.arange(n), questions.key] = 0
    wrong_share /= wrong_share.sum(axis=1, keepdims=True)
    # The entropy is high if all wrong options are about equally plausible. Adding 1e-12 avoids the
    # logarithm of 0.
    entropy = -(wrong_share * np.log(wrong_share + 1e-12)).sum(axis=1)
    # Scale each feature to mean 0 and standard deviation 1 over the questions. The quality is their
    # sum with these weights.
    quality = np.zeros(n)
    for weight, feature in (
        (0.8, entropy),
        (0.5, np.log(questions.discrimination)),
        (0.5, -questions.easiness),
        (0.9, rng.normal(size=n)),
    ):
        quality += weight * (feature - feature.mean()) / feature.std()
    return quality


def judge(rng: Rng, school: School) -> Iterator[TableFile]:
    """Yield the judgements of simulated experts: a file for the public pairs, one for the private.

    For each pair of questions, each expert says whether the left or the right question is better.
    """
    n = len(school.question_id)
    quality = draw_quality(rng, school.questions)
    # Each pair consists of two different questions.
    pairs = np.array([rng.choice(n, 2, replace=False) for _ in range(N_PAIRS)])
    left = pairs[:, 0]
    right = pairs[:, 1]
    # An expert judges by the difference in quality of the two questions, plus noise. The standard
    # deviation of the noise depends on the expert.
    noise_sd = np.array([*EXPERTS.values()])
    noise = noise_sd * rng.normal(size=(N_PAIRS, len(EXPERTS)))
    # The array has a row for each pair and a column for each expert.
    prefers_right = (quality[right] - quality[left])[:, None] + noise > 0
    # Half of the pairs are public, the others private.
    public, private = np.split(rng.permutation(N_PAIRS), 2)
    # In the table, 1 stands for the left question, and 2 stands for the right question.
    table = pd.DataFrame(1 + prefers_right, columns=[*EXPERTS])
    # As in the official files, the expert T4_MQ has not judged two private pairs. The dtype Int8
    # allows missing values. `write_table` writes its numbers as in the official file: 1.0, 2.0.
    table["T4_MQ"] = table["T4_MQ"].astype("Int8")
    table.loc[rng.choice(private, 2, replace=False), "T4_MQ"] = pd.NA
    # The official files have two columns of row numbers with these names.
    table.insert(0, "", np.arange(N_PAIRS))
    table.insert(1, "Unnamed: 0", np.arange(N_PAIRS))
    table.insert(2, "left", school.question_id[left])
    table.insert(3, "right", school.question_id[right])
    for phase, rows in zip(layout.PHASES, (public, private), strict=True):
        yield TableFile(f"{TEST_FOLDER}/{TASK_3.answers_name(phase)}", [table.iloc[rows]])


def write_images(rng: Rng, folder: Path, school: School) -> None:
    """Write a small picture of every question: its QuestionId, a sum and four options.

    In a picture, the right option is the sum. If the right option of a question changes over
    time, the picture shows the later right option.
    """
    folder.mkdir(parents=True)
    font = ImageFont.load_default(IMAGE_FONT_SIZE)
    for question, question_id in enumerate(school.question_id.tolist()):
        a, b = rng.integers(12, 80, 2).tolist()
        errors = rng.choice([-20, -11, -10, -2, -1, 1, 2, 9, 10, 11], N_OPTIONS, replace=False)
        options = a + b + errors
        options[school.questions.key[question]] = a + b
        lines = [f"Question {question_id}", f"What is {a} + {b}?"]
        for letter, option in zip("ABCD", options, strict=True):
            lines.append(f"{letter})  {option}")
        image = Image.new("L", IMAGE_SIZE, "white")
        ImageDraw.Draw(image).multiline_text((14, 12), "\n".join(lines), "black", font, spacing=8)
        image.save(folder / f"{question_id}.jpg", quality=80)


# ---- Writing -------------------------------------------------------------------------------------


def write_table(path: Path, tables: Iterable[pd.DataFrame]) -> None:
    """Write a file table by table.

    Numbers of the dtypes Int8 and Int32, whose columns may have empty cells, are written with a
    decimal place, as in the official files: ``75.0``.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for table in tables:
            texts = {}
            for name, column in table.items():
                if isinstance(column.array, pd.arrays.IntegerArray):
                    numbers = pa.array(column).cast(pa.string())
                    # Join each number and ".0" with nothing between them (the last argument).
                    cells = pa_compute.binary_join_element_wise(numbers, ".0", "")
                    texts[str(name)] = pd.arrays.ArrowExtensionArray(cells)
            # Only the first table writes the header.
            is_first = file.tell() == 0
            writing.write_csv_to(file, table.assign(**texts), header=is_first)


def list_misconceptions(school: School, misconceptions: Misconceptions) -> pd.DataFrame:
    """Return the planted misconceptions: a row for each option to which a misconception leads."""
    questions = np.flatnonzero(misconceptions.of_question >= 0)
    columns = {
        "Misconception": misconceptions.of_question[questions],
        "QuestionId": school.question_id[questions],
        "AnswerValue": misconceptions.option[questions] + np.int8(1),
    }
    return pd.DataFrame(columns).sort_values(["Misconception", "QuestionId"])


def write_misconceptions(folder: Path, ending: str, school: School) -> None:
    """Write the table of a school's planted misconceptions, if it has any.

    `ending` is the end of the file's name: 1_2 or 3_4.
    """
    if school.misconceptions is not None:
        planted = list_misconceptions(school, school.misconceptions)
        write_table(folder / TEST_FOLDER / MISCONCEPTIONS_NAME.format(ending), [planted])


def write_tree(
    folder: Path, size: str, seed: int, n_questions: int | None, n_misconceptions: int
) -> dict[str, Any]:
    """Simulate all official files and write them into `folder`.

    Returns what SIMULATED.json, which marks the folder as simulated, says about the simulation.
    """
    # Each step takes its own random stream, so that a change of one step changes no other step. The
    # steps must always take their streams in the same order. There are more streams than steps.
    random_streams = iter(np.random.default_rng(seed).spawn(16))
    subjects = make_subjects()
    write_subjects(subjects, folder / METADATA_FOLDER / layout.SUBJECT_METADATA)
    chosen = settings(size, n_questions)
    # Check the settings of both simulations before the first one starts: at full size, it takes
    # minutes.
    for setting in (chosen.tasks_1_2, chosen.tasks_3_4):
        simulation.require_room(setting.n_questions, n_misconceptions)
    # For tasks 1/2 (key "1_2") and for tasks 3/4 ("3_4"): the accuracies that the best possible
    # model is expected to reach.
    limits = {}
    with tqdm(total=N_STEPS, unit="file", disable=None, desc="simulate") as bar:

        def write_tables(files: Iterable[TableFile]) -> None:
            """Write files; each file is a step of the progress bar."""
            for file in files:
                write_table(folder / file.name, file.tables)
                bar.update()

        school = simulate(next(random_streams), chosen.tasks_1_2, subjects, n_misconceptions)
        bar.update()
        write_misconceptions(folder, "1_2", school)
        limits["1_2"] = school.limits
        answers_rng = next(random_streams)
        metadata_rng = next(random_streams)
        write_tables(split_tasks_1_2(answers_rng, school))
        write_tables(metadata_files(metadata_rng, school, subjects, "metadata_task_1_2.csv"))
        # Free the memory: at full size, the data of both groups of tasks would be too large.
        del school

        school = simulate(next(random_streams), chosen.tasks_3_4, subjects, n_misconceptions)
        bar.update()
        write_misconceptions(folder, "3_4", school)
        limits["3_4"] = school.limits
        answers_rng = next(random_streams)
        judgements_rng = next(random_streams)
        metadata_rng = next(random_streams)
        # Images use a separate random stream, so that a change of the images changes no table.
        images_rng = np.random.default_rng([seed, 1])
        change_keys(answers_rng, school)
        write_images(images_rng, folder / layout.IMAGES_DIR.name, school)
        write_tables(split_tasks_3_4(answers_rng, school))
        write_tables(judge(judgements_rng, school))
        write_tables(metadata_files(metadata_rng, school, subjects, "metadata_task_3_4.csv"))
    facts = {
        "size": size,
        "seed": seed,
        "questions_task_3_4": chosen.tasks_3_4.n_questions,
        "generator_version": GENERATOR_VERSION,
        "best_expected_accuracy": limits,
    }
    # SIMULATED.json mentions misconceptions only if some are planted.
    if n_misconceptions:
        facts["misconceptions"] = n_misconceptions
    return facts


def generate(
    output_dir: Path,
    size: str,
    seed: int,
    n_questions: int | None = None,
    n_misconceptions: int = 0,
) -> Path:
    """Write the simulated files and the templates; return the folder of the templates.

    The templates list what to predict: pairs of student and question, or questions to rank.
    Either all simulated files are written or none. Raises `InputError` if the folder holds real
    files, or if another process is writing simulated files into it.
    """

    def write(folder: Path) -> dict[str, Any]:
        """Write the files into a folder; return what SIMULATED.json says about the simulation."""
        return write_tree(folder, size, seed, n_questions, n_misconceptions)

    folders = (TRAIN_FOLDER, METADATA_FOLDER, TEST_FOLDER, layout.IMAGES_DIR.name)
    simulated.place_simulated(output_dir, folders, write)
    template_dir = layout.template_dir_of(output_dir)
    build_templates(output_dir, template_dir)
    return template_dir


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    parser.add_argument("--size", choices=[*SIZES], default="small", help="default: small")
    cli.add_number(parser, "--seed", 0)
    parser.add_argument(
        "--questions",
        type=cli.whole_number(80, 5000),
        metavar="N",
        help="number of questions of tasks 3 and 4 (default: 80, 300 or 948, by --size)",
    )
    help_text = "plant N misconceptions in the answers of tasks 1/2, and N in those of tasks 3/4"
    cli.add_number(parser, "--misconceptions", 0, help_text, parse=cli.whole_number(0))
    cli.add_folder(parser, "--output_dir", layout.DATA_DIR)
    return parser


def main() -> None:
    """Read the command line and write the files."""
    options = build_parser().parse_args()
    templates = generate(
        options.output_dir,
        options.size,
        options.seed,
        options.questions,
        options.misconceptions,
    )
    print(
        f"simulated data ({options.size}) in {cli.show(options.output_dir)}, "
        f"templates in {cli.show(templates)}"
    )


if __name__ == "__main__":
    cli.run(main)
