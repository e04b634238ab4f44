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
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

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
from simulation import CHUNK, EMPTY, Questions, Rng, SchoolSetting
from subject_tree import Leaves, draw_subject_lists, list_paths, make_subjects
from tqdm import tqdm

# Raised whenever the same seed gives other data than before.
GENERATOR_VERSION = 2

# Share of the questions that one student answers at most.
MOST_ANSWERED = 0.9
N_MASKS = 10
TARGET_SHARE = 0.2
N_PAIRS = 50
# How much the judgement of each expert is left to chance.
EXPERTS = {"T1_ALR": 1.0, "T2_CL": 1.6, "T3_GF": 1.2, "T4_MQ": 1.8, "T5_NS": 1.4}
IMAGE_SIZE, IMAGE_FONT_SIZE = (240, 180), 18
IDS = ["QuestionId", "UserId", "AnswerId"]
OFFICIAL = [*IDS, "IsCorrect", "CorrectAnswer", "AnswerValue"]

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
# The parts are training, public and private test. Students of the test have fewer answers. The
# number of private answers is what the highest answer ids leave.
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
# The settings of tasks 1/2 and of tasks 3/4.
SIZES = {
    "tiny": (
        replace(
            TASKS_1_2,
            students=(240,),
            answers=(16_000,),
            n_questions=100,
            n_quizzes=60,
            n_cohorts=12,
        ),
        replace(
            TASKS_3_4,
            students=(200, 25, 25),
            answers=(12_000, 1_375, 1_350),
            n_questions=80,
            n_quizzes=16,
            n_cohorts=10,
        ),
    ),
    "small": (
        replace(
            TASKS_1_2,
            students=(4_000,),
            answers=(500_000,),
            n_questions=1_000,
            n_quizzes=630,
            n_cohorts=160,
        ),
        replace(
            TASKS_3_4,
            students=(1_200, 150, 150),
            answers=(120_000, 11_000, 9_500),
            n_questions=300,
            n_quizzes=60,
            n_cohorts=75,
        ),
    ),
    "full": (TASKS_1_2, TASKS_3_4),
}
# The tables of files, by their names below the folder.
Tables = Iterator[tuple[str, Iterable[pd.DataFrame]]]
TRAIN, METADATA, TEST = layout.TRAIN_DIR.name, layout.METADATA_DIR.name, layout.TEST_DIR.name
# The files of tables, and the two simulations.
N_STEPS = 19


class School(NamedTuple):
    """A simulated group of tasks, which shares nothing with the other but the subjects."""

    setting: SchoolSetting
    # The official columns, and of each answer the sitting (`start`, `quiz`, `cohort`, `alone`), the
    # `slot` there, the `confidence` (EMPTY where it was not asked), and the `part` of the student.
    answers: pd.DataFrame
    students: pd.DataFrame  # UserId, part, birth_year (that of the school year)
    questions: Questions
    question_id: Array
    leaves: Leaves  # the subjects of each question
    limits: dict[str, float]  # the best accuracies that any prediction can expect


def settings(size: str, n_questions: int | None = None) -> tuple[SchoolSetting, SchoolSetting]:
    """Return the settings of tasks 1/2 and 3/4; `InputError` if the answers need more questions."""
    first, second = SIZES[size]
    if n_questions is not None:
        n_quizzes = max(1, round(second.n_quizzes * n_questions / second.n_questions))
        second = replace(second, n_questions=n_questions, n_quizzes=n_quizzes)
        for n, total in zip(second.students, second.answers, strict=True):
            mean = -(-total // n)
            if mean > int(n_questions * MOST_ANSWERED):
                raise InputError(
                    f"--questions {n_questions}: are too few for {total:,} answers of {n:,} "
                    f"students, expected at least {int(mean / MOST_ANSWERED) + 1}: choose more, or "
                    "a smaller --size"
                )
    return first, second


def simulate(rng: Rng, setting: SchoolSetting, subjects: pd.DataFrame) -> School:
    """Simulate one group of tasks."""
    leaves, topic = draw_subject_lists(rng, subjects, setting.n_questions, setting.n_topics)
    most = int(setting.n_questions * MOST_ANSWERED)
    parts = zip(setting.students, setting.answers, setting.activity, strict=True)
    counts = np.concatenate([simulation.draw_counts(rng, *part, most) for part in parts])
    quizzes = simulation.draw_quizzes(rng, topic, setting.n_quizzes)
    areas = pd.factorize(subjects.loc[subjects["Level"] == 2, "parent"])[0]
    level = rng.random(len(areas))[topic[quizzes[:, 0]]]
    incidence = simulation.draw_incidence(rng, setting, counts, quizzes, level)
    question, student, sitting, slot = (
        incidence.answers[name].to_numpy() for name in ("question", "student", "sitting", "slot")
    )
    cohort = np.zeros(len(counts), np.int64)
    cohort[incidence.sittings["student"]] = incidence.sittings["cohort"]
    asked = np.bincount(question, minlength=setting.n_questions)
    questions = simulation.draw_questions(rng, setting, topic, asked)
    ability = simulation.draw_abilities(rng, cohort, setting.n_cohorts, areas)
    option, confidence, limits = simulation.draw_choices(rng, incidence, questions, ability)
    # The public ids of internal numbers.
    question_id, student_id, answer_id = (
        rng.permutation(n).astype(np.int32)
        for n in (setting.n_questions, len(counts), len(question))
    )
    first_year, last_year = setting.birth_years
    students = pd.DataFrame(
        {
            "UserId": student_id,
            "part": np.repeat(np.arange(len(setting.students), dtype=np.int8), setting.students),
            "birth_year": rng.integers(first_year, last_year + 1, setting.n_cohorts)[cohort],
        }
    )
    key = questions.key[question]
    columns = {
        "QuestionId": question_id[question],
        "UserId": student_id[student],
        "AnswerId": answer_id,
        "IsCorrect": (option == key).astype(np.int8),
        "CorrectAnswer": key + np.int8(1),
        "AnswerValue": option + np.int8(1),
        "slot": slot,
        "confidence": confidence,
        "part": students["part"].to_numpy()[student],
    }
    for name in ("start", "quiz", "cohort", "alone"):
        columns[name] = incidence.sittings[name].to_numpy()[sitting]
    answers = pd.DataFrame(columns, copy=False)
    return School(setting, answers, students, questions, question_id, leaves, limits)


def change_keys(rng: Rng, school: School) -> None:
    """Change the key in the earlier answers to three questions, as official tasks 3/4 have it."""
    answers = school.answers
    counts = answers["QuestionId"].value_counts().reindex(school.question_id, fill_value=0)
    common = np.flatnonzero(counts >= min(100, np.median(counts)))
    for question in rng.choice(common, 3, replace=False):
        own = answers[answers["QuestionId"] == school.question_id[question]]
        early = own.index[own["start"] < np.quantile(own["start"], rng.uniform(0.2, 0.4))]
        key = (school.questions.key[question] + rng.integers(1, 4)) % 4 + 1
        answers.loc[early, "CorrectAnswer"] = key
        answers.loc[early, "IsCorrect"] = (answers["AnswerValue"][early] == key).astype(np.int8)


# ---- Files --------------------------------------------------------------------------------------


def write_table(path: Path, tables: Iterable[pd.DataFrame]) -> None:
    """Write a file table by table; numbers of type Int32 as in the official files: ``75.0``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for table in tables:
            for name, column in table.items():
                if isinstance(column.array, pd.arrays.IntegerArray):
                    numbers = pa.array(column).cast(pa.string())
                    cells = pa_compute.binary_join_element_wise(numbers, ".0", "")
                    table = table.assign(**{str(name): pd.arrays.ArrowExtensionArray(cells)})
            writing.write_csv_to(file, table, header=not file.tell())


def chunks(n_rows: int) -> Iterator[slice]:
    """Return the places of all rows of a large table, in parts."""
    return (slice(start, start + CHUNK) for start in range(0, n_rows, CHUNK))


def split_tasks_1_2(rng: Rng, school: School) -> Tables:
    """Split the answers at random, 80/10/10."""
    order = rng.permutation(len(school.answers)).astype(np.int32)
    n_train = len(order) * 4 // 5
    middle = n_train + (len(order) - n_train) // 2
    files = [(f"{TRAIN}/{layout.TRAIN_TASK_1_2}", order[:n_train], OFFICIAL)]
    for phase, rows in zip(layout.PHASES, (order[n_train:middle], order[middle:]), strict=True):
        for task in (TASK_1, TASK_2):
            name = f"{TEST}/{task.answers_name(phase)}"
            files.append((name, rows, [*IDS, task.column.name]))
    for name, rows, columns in files:
        own = school.answers[columns]
        yield name, (own.iloc[rows[at]] for at in chunks(len(rows)))


def split_tasks_3_4(rng: Rng, school: School) -> Tables:
    """Split the students into training, public and private."""
    answers = school.answers.iloc[rng.permutation(len(school.answers))]
    masks = [f"IsTarget_{mask}" for mask in range(N_MASKS)]
    for name, part, targets in (
        (f"{TRAIN}/{layout.TRAIN_TASK_3_4}", 0, []),
        (f"{TEST}/{TASK_4.answers_name('public')}", 1, masks),
        (f"{TEST}/{TASK_4.answers_name('private')}", 2, masks),
        (f"{TEST}/test_private_task_4.csv", 2, ["IsTarget"]),
    ):
        own = answers.loc[answers["part"] == part, OFFICIAL]
        hidden = {name: (rng.random(len(own)) < TARGET_SHARE).astype(np.int8) for name in targets}
        yield name, [own.assign(**hidden)]


def describe_answers(rng: Rng, school: School) -> Iterator[pd.DataFrame]:
    """Return the circumstances of all answers, and some rows whose AnswerId is empty."""
    answers, setting = school.answers, school.setting
    n, n_empty = len(answers), max(2, len(answers) // 20_000)
    rows = np.concatenate([rng.permutation(n).astype(np.int32), rng.integers(0, n, n_empty)])
    is_empty = np.zeros(len(rows), bool)
    moved = rng.choice(n, n_empty, replace=False)
    rows[moved], rows[n:], is_empty[moved] = rows[n:].copy(), rows[moved].copy(), True

    # Classes get new ids in a new school year; the scheme of work stays.
    first_day = np.datetime64(setting.first_day, "ms")
    year_end = int((np.datetime64("2019-09-01") - first_day) / np.timedelta64(1, "m"))
    n_cohorts = setting.n_cohorts
    n_years = 2 if year_end > 0 else 1
    group_id = rng.permutation(n_cohorts * n_years).reshape(n_years, n_cohorts).astype(np.int32)
    quiz_id = rng.permutation(setting.n_quizzes).astype(np.int32)
    n_schemes = max(2, n_cohorts // 3)
    scheme_id = rng.integers(1, 60_000, n_schemes)[rng.integers(0, n_schemes, n_cohorts)]
    has_scheme = rng.random(n_cohorts) < 0.8
    for at in chunks(len(rows)):
        own = answers.iloc[rows[at]].reset_index(drop=True)
        minute, cohort = own["start"] + own["slot"], own["cohort"].to_numpy()
        year = np.where((n_years == 2) & (minute >= year_end), 1, 0)
        scheme = pd.Series(scheme_id[cohort], dtype="Int32")
        columns = {
            "AnswerId": own["AnswerId"].astype("Int32").mask(is_empty[at]),
            "DateAnswered": first_day + minute.to_numpy() * np.timedelta64(60_000, "ms"),
            "Confidence": own["confidence"].astype("Int8").mask(own["confidence"] == EMPTY),
            "GroupId": group_id[year, cohort],
            "QuizId": quiz_id[own["quiz"]],
            "SchemeOfWorkId": scheme.mask(~has_scheme[cohort] | own["alone"]),
        }
        yield pd.DataFrame(columns)


def describe_students(rng: Rng, school: School) -> pd.DataFrame:
    """Return gender, date of birth and pupil premium, each often unknown, of all students."""
    setting, n = school.setting, len(school.students)
    has_birth = rng.random(n) >= setting.no_birth_date
    # Students who gave no date of birth mostly gave no gender either; a few chose "other".
    gender = rng.integers(1, 3, n)
    gender[np.where(has_birth, rng.random(n) < 0.03, rng.random(n) < 0.74)] = 0
    gender[rng.random(n) < 0.0005] = 3
    # A school year runs from September to August; some dates of birth are nonsense.
    month = rng.integers(0, 12, n) + 8
    year = school.students["birth_year"].to_numpy() + month // 12 - 1
    odd = rng.random(n) < 0.01
    year[odd] = rng.integers(1900, 2030, int(odd.sum()))
    birth = (12 * (year - 1970) + month % 12).astype("datetime64[M]").astype("datetime64[ms]")
    premium = (rng.random(n) < 0.27).astype(np.int8)
    knows_premium = has_birth & (rng.random(n) >= setting.no_premium)
    columns = {
        "UserId": school.students["UserId"],
        "Gender": gender.astype(np.int8),
        "DateOfBirth": pd.Series(birth).where(has_birth),
        "PremiumPupil": pd.Series(premium, dtype="Int8").where(knows_premium),
    }
    return pd.DataFrame(columns).iloc[rng.permutation(n)]


def judge(rng: Rng, school: School) -> Tables:
    """Return what five simulated experts say about pairs of questions, half of them public."""
    questions = school.questions
    n = len(school.question_id)
    # A good question has wrong options that are all plausible, tells students apart and is not too
    # easy; as much again of what experts see does not show in the answers.
    wrong = np.exp(questions.attraction.astype(float))
    wrong[np.arange(n), questions.key] = 0
    wrong /= wrong.sum(axis=1, keepdims=True)
    balance = -(wrong * np.log(wrong + 1e-12)).sum(axis=1)
    quality = sum(
        weight * (feature - feature.mean()) / feature.std()
        for weight, feature in (
            (0.8, balance),
            (0.5, np.log(questions.discrimination)),
            (0.5, -questions.easiness),
            (0.9, rng.normal(size=n)),
        )
    )
    left, right = np.array([rng.choice(n, 2, replace=False) for _ in range(N_PAIRS)]).T
    noise = np.array([*EXPERTS.values()]) * rng.normal(size=(N_PAIRS, len(EXPERTS)))
    says_right = (quality[right] - quality[left])[:, None] + noise > 0
    order = rng.permutation(N_PAIRS)
    table = pd.DataFrame(1 + says_right, columns=[*EXPERTS])
    # One expert left pairs out, so that the whole column is written with decimals.
    table["T4_MQ"] = table["T4_MQ"].astype("Int8")
    table.loc[rng.choice(order[N_PAIRS // 2 :], 2, replace=False), "T4_MQ"] = pd.NA
    for name, side in (("right", right), ("left", left)):
        table.insert(0, name, school.question_id[side])
    for name in ("Unnamed: 0", ""):
        table.insert(0, name, np.arange(N_PAIRS))
    for phase, rows in zip(layout.PHASES, np.split(order, 2), strict=True):
        yield f"{TEST}/{TASK_3.answers_name(phase)}", [table.iloc[rows]]


def describe(rng: Rng, school: School, subjects: pd.DataFrame, end: str) -> Tables:
    """Return the metadata, of files whose names end so."""
    lists = list_paths(subjects, school.leaves)
    questions = pd.DataFrame({"QuestionId": school.question_id, "SubjectId": lists})
    yield f"{METADATA}/question_{end}", [questions.iloc[rng.permutation(len(lists))]]
    yield f"{METADATA}/student_{end}", [describe_students(rng, school)]
    yield f"{METADATA}/answer_{end}", describe_answers(rng, school)


def write_images(rng: Rng, folder: Path, school: School) -> None:
    """Draw a small picture of every question: number, a sum, four options, the usual key right."""
    folder.mkdir(parents=True)
    font = ImageFont.load_default(IMAGE_FONT_SIZE)
    for number, question_id in enumerate(school.question_id.tolist()):
        left, right = rng.integers(12, 80, 2).tolist()
        wrong = rng.choice([-20, -11, -10, -2, -1, 1, 2, 9, 10, 11], 4, replace=False)
        options = left + right + wrong
        options[school.questions.key[number]] = left + right
        lines = [f"Question {question_id}", f"What is {left} + {right}?"]
        lines += [f"{letter})  {option}" for letter, option in zip("ABCD", options, strict=True)]
        image = Image.new("L", IMAGE_SIZE, "white")
        ImageDraw.Draw(image).multiline_text((14, 12), "\n".join(lines), "black", font, spacing=8)
        image.save(folder / f"{question_id}.jpg", quality=80)


def write_tree(folder: Path, size: str, seed: int, n_questions: int | None) -> dict[str, Any]:
    """Simulate and write all official files; return what the marker says of them."""
    streams = iter(np.random.default_rng(seed).spawn(16))
    subjects = make_subjects()
    (folder / METADATA).mkdir(parents=True)
    # With the byte order mark and the NULL of the official file.
    subjects.sort_values("SubjectId").to_csv(
        folder / METADATA / layout.SUBJECT_METADATA,
        columns=["SubjectId", "Name", "ParentId", "Level"],
        index=False,
        na_rep="NULL",
        encoding="utf-8-sig",
        lineterminator="\n",
    )
    both, limits = settings(size, n_questions), {}
    # Its own stream: the tables are the same with and without pictures.
    images_rng = np.random.default_rng([seed, 1])
    with tqdm(total=N_STEPS, unit="file", disable=None, desc="simulate") as bar:
        for name, setting in zip(("1_2", "3_4"), both, strict=True):
            school = simulate(next(streams), setting, subjects)
            bar.update()
            limits[name] = school.limits
            rng = next(streams)
            if name == "1_2":
                tables = split_tasks_1_2(rng, school)
            else:
                change_keys(rng, school)
                tables = chain(split_tasks_3_4(rng, school), judge(next(streams), school))
                write_images(images_rng, folder / layout.IMAGES_DIR.name, school)
            metadata = describe(next(streams), school, subjects, f"metadata_task_{name}.csv")
            for path, parts in chain(tables, metadata):
                write_table(folder / path, parts)
                bar.update()
            del school
    return {
        "size": size,
        "seed": seed,
        "questions_task_3_4": both[1].n_questions,
        "generator_version": GENERATOR_VERSION,
        "best_expected_accuracy": limits,
    }


def generate(output_dir: Path, size: str, seed: int, n_questions: int | None = None) -> Path:
    """Write the simulated tree, all files or none, and its templates, whose folder is returned;
    `InputError` if there are real files, or another process simulates there.
    """
    folders = (TRAIN, METADATA, TEST, layout.IMAGES_DIR.name)
    write = partial(write_tree, size=size, seed=seed, n_questions=n_questions)
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
    help_text = "questions of tasks 3 and 4, such as the official 948 (default: by size)"
    kind = cli.whole_number(80, 5000)
    parser.add_argument("--questions", type=kind, metavar="N", help=help_text)
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
