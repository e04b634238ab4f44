"""Simulate the complete tree of official files, and the CSV templates that go with it.

    python data/generate_sample.py --size tiny     # a second: for tests
    python data/generate_sample.py --size small    # some seconds: to see every model at work
    python data/generate_sample.py --size full     # minutes: exactly the official counts

Nothing in these files is real: `data/simulation.py` holds the model, `data/SIMULATION.md` describes
it. The files have the official names, columns and quirks, so that every script runs on either.
The same size and seed give the same bytes. Real files are never overwritten.

With `--output_dir`, the tree goes there and the templates to its folder submission_templates.
"""

import argparse
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
from simulation import CHUNK, EMPTY, N_OPTIONS, Questions, Rng, SchoolSetting
from subject_tree import Leaves, draw_subject_lists, list_paths, make_subjects
from tqdm import tqdm

# Raised whenever the same seed gives other data than before.
GENERATOR_VERSION = 2

# No student answers a larger share of the questions.
MOST_ANSWERED = 0.9
# Masks of task 4, and the share of the answers that each hides.
N_MASKS = 10
TARGET_SHARE = 0.2
# Pairs of questions that experts judge, public and private ones together.
N_PAIRS = 50
# Standard deviation of the noise in the judgements of each expert.
EXPERTS = {"T1_ALR": 1.0, "T2_CL": 1.6, "T3_GF": 1.2, "T4_MQ": 1.8, "T5_NS": 1.4}
# Width and height of an image, and the size of its font, in pixels.
IMAGE_SIZE = (240, 180)
IMAGE_FONT_SIZE = 18

TRAIN = layout.TRAIN_DIR.name
METADATA = layout.METADATA_DIR.name
TEST = layout.TEST_DIR.name
IDS = ["QuestionId", "UserId", "AnswerId"]
OFFICIAL_COLUMNS = [*IDS, "IsCorrect", "CorrectAnswer", "AnswerValue"]
# Steps of the progress bar: 17 files of tables, and the two simulations.
N_STEPS = 19

# The official sizes. 15,867,850 training answers of tasks 1/2 are 80 % of all.
TASKS_1_2 = SchoolSetting(
    students=(118_971,),
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
    no_birth_date=0.32,
    no_premium=0.58,
)
# The parts are training, public test and private test. Test students have fewer answers. The number
# of private answers follows from the highest answer ids.
TASKS_3_4 = SchoolSetting(
    students=(4_918, 615, 615),
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
    no_birth_date=0.54,
    no_premium=0.10,
)


@dataclass(frozen=True)
class SizeSettings:
    """The settings of both groups of tasks, for one --size."""

    tasks_1_2: SchoolSetting
    tasks_3_4: SchoolSetting


SIZES = {
    "tiny": SizeSettings(
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
    "small": SizeSettings(
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
    "full": SizeSettings(TASKS_1_2, TASKS_3_4),
}


@dataclass(frozen=True)
class TableFile:
    """A file to be written: its name below the data folder, and the tables that it joins."""

    name: str
    # Large files come in several tables, so that not all rows are in memory as text.
    tables: Iterable[pd.DataFrame]


@dataclass(frozen=True)
class School:
    """A simulated group of tasks. It shares only the subjects with the other group."""

    setting: SchoolSetting
    # The official columns, and for each answer its sitting (`start`, `quiz`, `cohort`, `alone`),
    # its `slot` in the sitting, the `confidence` (EMPTY where it was not asked), and the `part` of
    # its student.
    answers: pd.DataFrame
    # Columns UserId, part and birth_year (the year in which the school year of birth ends).
    students: pd.DataFrame
    questions: Questions
    # The public QuestionId of each question.
    question_id: Array
    # The lowest subjects of each question.
    leaves: Leaves
    # The best accuracies that any prediction can expect.
    limits: dict[str, float]


def settings(size: str, n_questions: int | None = None) -> SizeSettings:
    """Return the settings of a size, with another number of questions of tasks 3/4 if given.

    Raises `InputError` if the answers need more questions.
    """
    chosen = SIZES[size]
    if n_questions is None:
        return chosen
    setting = chosen.tasks_3_4
    for n_students, n_answers in zip(setting.students, setting.answers, strict=True):
        answers_per_student = -(-n_answers // n_students)
        if answers_per_student > int(n_questions * MOST_ANSWERED):
            raise InputError(
                f"--questions {n_questions}: are too few for {n_answers:,} answers of "
                f"{n_students:,} students, expected at least "
                f"{int(answers_per_student / MOST_ANSWERED) + 1}: choose more, or a smaller --size"
            )
    n_quizzes = max(1, round(setting.n_quizzes * n_questions / setting.n_questions))
    changed = replace(setting, n_questions=n_questions, n_quizzes=n_quizzes)
    return replace(chosen, tasks_3_4=changed)


# ---- Simulation ----------------------------------------------------------------------------------


def simulate(rng: Rng, setting: SchoolSetting, subjects: pd.DataFrame) -> School:
    """Simulate one group of tasks."""
    leaves, topic = draw_subject_lists(rng, subjects, setting.n_questions, setting.n_topics)
    counts = draw_counts_of_parts(rng, setting)
    quizzes = simulation.draw_quizzes(rng, topic, setting.n_quizzes)
    area_of_topic = pd.factorize(subjects.loc[subjects["Level"] == 2, "parent"])[0]
    level_of_topic = rng.random(len(area_of_topic))
    quiz_level = level_of_topic[topic[quizzes[:, 0]]]
    incidence = simulation.draw_incidence(rng, setting, counts, quizzes, quiz_level)
    cohort = np.zeros(len(counts), np.int64)
    cohort[incidence.sittings["student"]] = incidence.sittings["cohort"]
    n_answers = np.bincount(incidence.answers["question"], minlength=setting.n_questions)
    questions = simulation.draw_questions(rng, setting, topic, n_answers)
    ability = simulation.draw_abilities(rng, cohort, setting.n_cohorts, area_of_topic)
    choices = simulation.draw_choices(rng, incidence, questions, ability)

    question_id = rng.permutation(setting.n_questions).astype(np.int32)
    student_id = rng.permutation(len(counts)).astype(np.int32)
    answer_id = rng.permutation(len(incidence.answers)).astype(np.int32)
    first_year, last_year = setting.birth_years
    students = pd.DataFrame(
        {
            "UserId": student_id,
            "part": np.repeat(np.arange(len(setting.students), dtype=np.int8), setting.students),
            "birth_year": rng.integers(first_year, last_year + 1, setting.n_cohorts)[cohort],
        }
    )
    question = incidence.answers["question"].to_numpy()
    student = incidence.answers["student"].to_numpy()
    sitting = incidence.answers["sitting"].to_numpy()
    key = questions.key[question]
    columns = {
        "QuestionId": question_id[question],
        "UserId": student_id[student],
        "AnswerId": answer_id,
        "IsCorrect": (choices.option == key).astype(np.int8),
        "CorrectAnswer": key + np.int8(1),
        "AnswerValue": choices.option + np.int8(1),
        "slot": incidence.answers["slot"].to_numpy(),
        "confidence": choices.confidence,
        "part": students["part"].to_numpy()[student],
    }
    for name in ("start", "quiz", "cohort", "alone"):
        columns[name] = incidence.sittings[name].to_numpy()[sitting]
    answers = pd.DataFrame(columns, copy=False)
    return School(setting, answers, students, questions, question_id, leaves, choices.limits)


def draw_counts_of_parts(rng: Rng, setting: SchoolSetting) -> Array:
    """Draw the number of answers of each student, part after part; int64 (n_students,)."""
    most = int(setting.n_questions * MOST_ANSWERED)
    counts = []
    for n_students, n_answers, activity in zip(
        setting.students, setting.answers, setting.activity, strict=True
    ):
        counts.append(simulation.draw_counts(rng, n_students, n_answers, activity, most))
    return np.concatenate(counts)


def change_keys(rng: Rng, school: School) -> None:
    """Change the key in the earlier answers to three questions, as in the official tasks 3/4."""
    answers = school.answers
    counts = answers["QuestionId"].value_counts().reindex(school.question_id, fill_value=0)
    common = np.flatnonzero(counts >= min(100, np.median(counts)))
    for question in rng.choice(common, 3, replace=False):
        question_answers = answers[answers["QuestionId"] == school.question_id[question]]
        start = question_answers["start"]
        early = start.index[start < np.quantile(start, rng.uniform(0.2, 0.4))]
        early_key = (school.questions.key[question] + rng.integers(1, N_OPTIONS)) % N_OPTIONS + 1
        answers.loc[early, "CorrectAnswer"] = early_key
        is_correct = answers["AnswerValue"][early] == early_key
        answers.loc[early, "IsCorrect"] = is_correct.astype(np.int8)


# ---- Answers -------------------------------------------------------------------------------------


def split_rows(n_rows: int) -> Iterator[slice]:
    """Return slices that cover all rows of a large table."""
    return (slice(start, start + CHUNK) for start in range(0, n_rows, CHUNK))


def take_columns(answers: pd.DataFrame, columns: list[str], rows: Array) -> Iterator[pd.DataFrame]:
    """Return some rows of some columns, in several tables."""
    selected = answers[columns]
    return (selected.iloc[rows[chunk]] for chunk in split_rows(len(rows)))


def split_tasks_1_2(rng: Rng, school: School) -> Iterator[TableFile]:
    """Split the answers of tasks 1/2 at random into 80 % training, 10 % public, 10 % private."""
    answers = school.answers
    order = rng.permutation(len(answers)).astype(np.int32)
    n_train = len(order) * 4 // 5
    private_start = n_train + (len(order) - n_train) // 2
    train_rows = order[:n_train]
    train_tables = take_columns(answers, OFFICIAL_COLUMNS, train_rows)
    yield TableFile(f"{TRAIN}/{layout.TRAIN_TASK_1_2}", train_tables)
    test_rows = (order[n_train:private_start], order[private_start:])
    for phase, rows in zip(layout.PHASES, test_rows, strict=True):
        for task in (TASK_1, TASK_2):
            name = f"{TEST}/{task.answers_name(phase)}"
            yield TableFile(name, take_columns(answers, [*IDS, task.column.name], rows))


def split_tasks_3_4(rng: Rng, school: School) -> Iterator[TableFile]:
    """Split the answers of tasks 3/4 by student into training, public and private."""
    answers = school.answers.iloc[rng.permutation(len(school.answers))]
    masks = [f"IsTarget_{mask}" for mask in range(N_MASKS)]
    for name, part, target_columns in (
        (f"{TRAIN}/{layout.TRAIN_TASK_3_4}", 0, []),
        (f"{TEST}/{TASK_4.answers_name('public')}", 1, masks),
        (f"{TEST}/{TASK_4.answers_name('private')}", 2, masks),
        (f"{TEST}/test_private_task_4.csv", 2, ["IsTarget"]),
    ):
        part_answers = answers.loc[answers["part"] == part, OFFICIAL_COLUMNS]
        for column in target_columns:
            is_target = rng.random(len(part_answers)) < TARGET_SHARE
            part_answers = part_answers.assign(**{column: is_target.astype(np.int8)})
        yield TableFile(name, [part_answers])


# ---- Metadata ------------------------------------------------------------------------------------


def write_subjects(subjects: pd.DataFrame, path: Path) -> None:
    """Write the tree of subjects, with the byte order mark and the NULL of the official file."""
    path.parent.mkdir(parents=True)
    subjects.sort_values("SubjectId").to_csv(
        path,
        columns=["SubjectId", "Name", "ParentId", "Level"],
        index=False,
        na_rep="NULL",
        encoding="utf-8-sig",
        lineterminator="\n",
    )


def describe(rng: Rng, school: School, subjects: pd.DataFrame, ending: str) -> Iterator[TableFile]:
    """Return the metadata of questions, students and answers, in files whose names end so."""
    paths = list_paths(subjects, school.leaves)
    questions = pd.DataFrame({"QuestionId": school.question_id, "SubjectId": paths})
    shuffled = questions.iloc[rng.permutation(len(questions))]
    yield TableFile(f"{METADATA}/question_{ending}", [shuffled])
    yield TableFile(f"{METADATA}/student_{ending}", [describe_students(rng, school)])
    yield TableFile(f"{METADATA}/answer_{ending}", describe_answers(rng, school))


def describe_students(rng: Rng, school: School) -> pd.DataFrame:
    """Return gender, date of birth and pupil premium of all students, each often unknown."""
    setting = school.setting
    n = len(school.students)
    has_birth = rng.random(n) >= setting.no_birth_date
    # Students who gave no date of birth mostly gave no gender either. A few chose "other".
    gender = rng.integers(1, 3, n)
    is_unspecified = np.where(has_birth, rng.random(n) < 0.03, rng.random(n) < 0.74)
    gender[is_unspecified] = 0
    gender[rng.random(n) < 0.0005] = 3
    # A school year runs from September to August.
    month = rng.integers(0, 12, n) + 8
    year = school.students["birth_year"].to_numpy() + month // 12 - 1
    # Some dates of birth are nonsense.
    is_nonsense = rng.random(n) < 0.01
    year[is_nonsense] = rng.integers(1900, 2030, int(is_nonsense.sum()))
    months_since_1970 = 12 * (year - 1970) + month % 12
    birth = months_since_1970.astype("datetime64[M]").astype("datetime64[ms]")
    premium = (rng.random(n) < 0.27).astype(np.int8)
    knows_premium = has_birth & (rng.random(n) >= setting.no_premium)
    columns = {
        "UserId": school.students["UserId"],
        "Gender": gender.astype(np.int8),
        "DateOfBirth": pd.Series(birth).where(has_birth),
        "PremiumPupil": pd.Series(premium, dtype="Int8").where(knows_premium),
    }
    return pd.DataFrame(columns).iloc[rng.permutation(n)]


def describe_answers(rng: Rng, school: School) -> Iterator[pd.DataFrame]:
    """Return the metadata of all answers, and some rows without an AnswerId."""
    answers = school.answers
    setting = school.setting
    n = len(answers)
    n_empty = max(2, n // 20_000)
    rows = np.concatenate([rng.permutation(n).astype(np.int32), rng.integers(0, n, n_empty)])
    is_empty = np.zeros(len(rows), bool)
    # Rows without an AnswerId repeat other answers. Swap them from the end to random positions.
    empty_positions = rng.choice(n, n_empty, replace=False)
    last_rows = rows[n:].copy()
    rows[n:] = rows[empty_positions]
    rows[empty_positions] = last_rows
    is_empty[empty_positions] = True

    # Classes get new ids in a new school year. The scheme of work stays.
    first_day = np.datetime64(setting.first_day, "ms")
    year_end = int((np.datetime64("2019-09-01") - first_day) / np.timedelta64(1, "m"))
    n_cohorts = setting.n_cohorts
    n_years = 2 if year_end > 0 else 1
    group_id = rng.permutation(n_cohorts * n_years).reshape(n_years, n_cohorts).astype(np.int32)
    quiz_id = rng.permutation(setting.n_quizzes).astype(np.int32)
    n_schemes = max(2, n_cohorts // 3)
    scheme_id = rng.integers(1, 60_000, n_schemes)[rng.integers(0, n_schemes, n_cohorts)]
    has_scheme = rng.random(n_cohorts) < 0.8
    for chunk in split_rows(len(rows)):
        part = answers.iloc[rows[chunk]].reset_index(drop=True)
        minute = part["start"] + part["slot"]
        cohort = part["cohort"].to_numpy()
        year = np.where((n_years == 2) & (minute >= year_end), 1, 0)
        scheme = pd.Series(scheme_id[cohort], dtype="Int32")
        columns = {
            "AnswerId": part["AnswerId"].astype("Int32").mask(is_empty[chunk]),
            "DateAnswered": first_day + minute.to_numpy() * np.timedelta64(60_000, "ms"),
            "Confidence": part["confidence"].astype("Int8").mask(part["confidence"] == EMPTY),
            "GroupId": group_id[year, cohort],
            "QuizId": quiz_id[part["quiz"]],
            "SchemeOfWorkId": scheme.mask(~has_scheme[cohort] | part["alone"]),
        }
        yield pd.DataFrame(columns)


# ---- Judgements of experts, and images -----------------------------------------------------------


def draw_quality(rng: Rng, questions: Questions) -> Array:
    """Draw the quality of questions in the eyes of experts; float64 (n_questions,).

    A good question has wrong options that are all plausible, tells students apart and is not too
    easy. As much again does not show in the answers.
    """
    n = len(questions.key)
    wrong = np.exp(questions.attraction.astype(float))
    wrong[np.arange(n), questions.key] = 0
    wrong /= wrong.sum(axis=1, keepdims=True)
    balance = -(wrong * np.log(wrong + 1e-12)).sum(axis=1)
    quality = np.zeros(n)
    for weight, feature in (
        (0.8, balance),
        (0.5, np.log(questions.discrimination)),
        (0.5, -questions.easiness),
        (0.9, rng.normal(size=n)),
    ):
        quality += weight * (feature - feature.mean()) / feature.std()
    return quality


def judge(rng: Rng, school: School) -> Iterator[TableFile]:
    """Return the judgements of simulated experts about pairs of questions, half of them public."""
    n = len(school.question_id)
    quality = draw_quality(rng, school.questions)
    pairs = np.array([rng.choice(n, 2, replace=False) for _ in range(N_PAIRS)])
    left = pairs[:, 0]
    right = pairs[:, 1]
    noise = np.array([*EXPERTS.values()]) * rng.normal(size=(N_PAIRS, len(EXPERTS)))
    prefers_right = (quality[right] - quality[left])[:, None] + noise > 0
    order = rng.permutation(N_PAIRS)
    table = pd.DataFrame(1 + prefers_right, columns=[*EXPERTS])
    # One expert left pairs out, so that the whole column is written with decimals.
    table["T4_MQ"] = table["T4_MQ"].astype("Int8")
    table.loc[rng.choice(order[N_PAIRS // 2 :], 2, replace=False), "T4_MQ"] = pd.NA
    table.insert(0, "", np.arange(N_PAIRS))
    table.insert(1, "Unnamed: 0", np.arange(N_PAIRS))
    table.insert(2, "left", school.question_id[left])
    table.insert(3, "right", school.question_id[right])
    for phase, rows in zip(layout.PHASES, np.split(order, 2), strict=True):
        yield TableFile(f"{TEST}/{TASK_3.answers_name(phase)}", [table.iloc[rows]])


def write_images(rng: Rng, folder: Path, school: School) -> None:
    """Draw a small picture of every question: its number, a sum and four options.

    The right option is the one of the usual key.
    """
    folder.mkdir(parents=True)
    font = ImageFont.load_default(IMAGE_FONT_SIZE)
    for number, question_id in enumerate(school.question_id.tolist()):
        left, right = rng.integers(12, 80, 2).tolist()
        errors = rng.choice([-20, -11, -10, -2, -1, 1, 2, 9, 10, 11], N_OPTIONS, replace=False)
        options = left + right + errors
        options[school.questions.key[number]] = left + right
        lines = [f"Question {question_id}", f"What is {left} + {right}?"]
        for letter, option in zip("ABCD", options, strict=True):
            lines.append(f"{letter})  {option}")
        image = Image.new("L", IMAGE_SIZE, "white")
        ImageDraw.Draw(image).multiline_text((14, 12), "\n".join(lines), "black", font, spacing=8)
        image.save(folder / f"{question_id}.jpg", quality=80)


# ---- Writing -------------------------------------------------------------------------------------


def write_table(path: Path, tables: Iterable[pd.DataFrame]) -> None:
    """Write a file table by table.

    Numbers of type Int8 or Int32 get a decimal, as in the official files: ``75.0``.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for table in tables:
            for name, column in table.items():
                if isinstance(column.array, pd.arrays.IntegerArray):
                    numbers = pa.array(column).cast(pa.string())
                    cells = pa_compute.binary_join_element_wise(numbers, ".0", "")
                    table = table.assign(**{str(name): pd.arrays.ArrowExtensionArray(cells)})
            is_first = file.tell() == 0
            writing.write_csv_to(file, table, header=is_first)


def write_tree(folder: Path, size: str, seed: int, n_questions: int | None) -> dict[str, Any]:
    """Simulate and write all official files; return the facts for the marker file."""
    random_streams = iter(np.random.default_rng(seed).spawn(16))
    subjects = make_subjects()
    write_subjects(subjects, folder / METADATA / layout.SUBJECT_METADATA)
    chosen = settings(size, n_questions)
    limits = {}
    with tqdm(total=N_STEPS, unit="file", disable=None, desc="simulate") as bar:

        def write_files(files: Iterable[TableFile]) -> None:
            for file in files:
                write_table(folder / file.name, file.tables)
                bar.update()

        school = simulate(next(random_streams), chosen.tasks_1_2, subjects)
        bar.update()
        limits["1_2"] = school.limits
        answers_rng = next(random_streams)
        metadata_rng = next(random_streams)
        write_files(split_tasks_1_2(answers_rng, school))
        write_files(describe(metadata_rng, school, subjects, "metadata_task_1_2.csv"))
        # At full size, both schools at once would need too much memory.
        del school

        school = simulate(next(random_streams), chosen.tasks_3_4, subjects)
        bar.update()
        limits["3_4"] = school.limits
        answers_rng = next(random_streams)
        judgements_rng = next(random_streams)
        metadata_rng = next(random_streams)
        # A stream outside `random_streams`: the tables are the same with and without images.
        images_rng = np.random.default_rng([seed, 1])
        change_keys(answers_rng, school)
        write_images(images_rng, folder / layout.IMAGES_DIR.name, school)
        write_files(split_tasks_3_4(answers_rng, school))
        write_files(judge(judgements_rng, school))
        write_files(describe(metadata_rng, school, subjects, "metadata_task_3_4.csv"))
    return {
        "size": size,
        "seed": seed,
        "questions_task_3_4": chosen.tasks_3_4.n_questions,
        "generator_version": GENERATOR_VERSION,
        "best_expected_accuracy": limits,
    }


def generate(output_dir: Path, size: str, seed: int, n_questions: int | None = None) -> Path:
    """Write the simulated tree and its templates; return the folder of the templates.

    Either all files of the tree are written or none. Raises `InputError` if the folder holds real
    files, or if another process simulates into it.
    """

    def write(folder: Path) -> dict[str, Any]:
        return write_tree(folder, size, seed, n_questions)

    folders = (TRAIN, METADATA, TEST, layout.IMAGES_DIR.name)
    simulated.place_simulated(output_dir, folders, write)
    is_default = output_dir.resolve() == layout.DATA_DIR
    templates = layout.TEMPLATE_DIR if is_default else output_dir / layout.TEMPLATE_DIR.name
    build_templates(output_dir, templates)
    return templates


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    parser.add_argument("--size", choices=[*SIZES], default="small", help="default: small")
    cli.add_number(parser, "--seed", 0)
    parser.add_argument(
        "--questions",
        type=cli.whole_number(80, 5000),
        metavar="N",
        help="questions of tasks 3 and 4, such as the official 948 (default: by size)",
    )
    cli.add_folder(parser, "--output_dir", layout.DATA_DIR)
    return parser


def main() -> None:
    """Read the command line and write the files."""
    options = build_parser().parse_args()
    templates = generate(options.output_dir, options.size, options.seed, options.questions)
    print(
        f"simulated data ({options.size}) in {cli.show(options.output_dir)}, "
        f"templates in {cli.show(templates)}"
    )


if __name__ == "__main__":
    cli.run(main)
