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
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import cli, layout, simulated
from tools.templates import build_templates

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import simulation
from PIL import Image, ImageDraw, ImageFont
from simulation import CHUNK, EMPTY, Array, Choices, Incidence, Questions, SchoolSetting
from subject_tree import Leaves, Subjects, draw_subject_lists, make_subjects
from tqdm import tqdm

# Raised whenever the same seed gives other data than before.
GENERATOR_VERSION = 2

SIZES = ("tiny", "small", "full")
N_MASKS = 10
TARGET_SHARE = 0.2
N_PAIRS = 50
EXPERTS = ("T1_ALR", "T2_CL", "T3_GF", "T4_MQ", "T5_NS")
# In pixels.
IMAGE_SIZE, IMAGE_FONT_SIZE = (240, 180), 18


# What a column of a file holds: all of it, or a function that tells it for some of the rows.
Column = Any


@dataclass(frozen=True)
class Group:
    """One of the two groups of tasks, which share nothing but the subjects."""

    name: str
    setting: SchoolSetting
    first_day: str  # of the first answer, a Monday
    n_topics: int
    birth_years: tuple[int, int]  # of most of its students, first and last
    no_birth_date: float  # share of the students
    no_premium: float  # share of the others of whom it is not known


@dataclass(frozen=True)
class School:
    """A simulated group of tasks, with the public id of each internal number."""

    group: Group
    incidence: Incidence
    choices: Choices
    questions: Questions
    question_id: Array
    student_id: Array
    answer_id: Array
    key: Array  # for each answer the option counted as correct, 0 to 3
    part_of_student: Array
    birth_year: Array  # for each student, that of the school year


def settings(size: str, n_questions_3_4: int | None = None) -> tuple[Group, Group]:
    """Return the two groups of tasks at a size: ``tiny``, ``small`` or ``full``.

    Another number of questions of tasks 3/4 changes the number of quizzes in proportion.
    """
    # Tasks 1/2: (students, answers, questions, quizzes, cohorts); official: 15,867,850 training
    # answers are 80 % of all.
    scale_1_2 = {
        "tiny": (240, 16_000, 100, 60, 12),
        "small": (4_000, 500_000, 1_000, 630, 160),
        "full": (118_971, 19_834_813, 27_613, 17_274, 5_921),
    }[size]
    # Tasks 3/4: students and answers for training, public and private test; questions, quizzes,
    # cohorts. Official test students have fewer answers than training students; the private
    # count is what the highest answer ids leave.
    scale_3_4 = {
        "tiny": ((200, 25, 25), (12_000, 1_375, 1_350), 80, 16, 10),
        "small": ((1_200, 150, 150), (120_000, 11_000, 9_500), 300, 60, 75),
        "full": ((4_918, 615, 615), (1_382_727, 74_891, 51_299), 948, 119, 300),
    }[size]
    students, answers, n_questions, n_quizzes, n_cohorts = scale_1_2
    tasks_1_2 = Group(
        name="1_2",
        setting=SchoolSetting(
            students=(students,),
            answers=(answers,),
            n_questions=n_questions,
            n_quizzes=n_quizzes,
            n_cohorts=n_cohorts,
            min_answers=50,
            min_answers_per_question=50,
            # A lognormal tail above the minimum.
            activity=((0, 12, 24, 36, 50, 66, 85, 108, 140, 190, 270, 450, 1500),),
            popularity=(-4.5, -2.6, -1.3, -0.2, 0.9, 2.2, 4.2),
            level_width=0.15,
            easiness=0.2,
            easiness_sd=1.5,
            key_shares=(0.25, 0.246, 0.263, 0.241),
            n_days=440,
        ),
        first_day="2018-09-03",
        n_topics=69,
        birth_years=(2002, 2010),
        no_birth_date=0.32,
        no_premium=0.58,
    )
    parts, part_answers, n_questions, n_quizzes, n_cohorts = scale_3_4
    if n_questions_3_4 is not None:
        n_quizzes = max(1, round(n_quizzes * n_questions_3_4 / n_questions))
        n_questions = n_questions_3_4
    tasks_3_4 = Group(
        name="3_4",
        setting=SchoolSetting(
            students=parts,
            answers=part_answers,
            n_questions=n_questions,
            n_quizzes=n_quizzes,
            n_cohorts=n_cohorts,
            min_answers=50,
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
            n_days=58,
        ),
        first_day="2020-01-06",
        n_topics=24,
        birth_years=(2007, 2008),
        no_birth_date=0.54,
        no_premium=0.10,
    )
    return tasks_1_2, tasks_3_4


def simulate(rng: np.random.Generator, group: Group, subjects: Subjects) -> tuple[School, Leaves]:
    """Simulate one group of tasks; return the school, and the subjects of each question."""
    setting = group.setting
    leaves, topic = draw_subject_lists(rng, subjects, setting.n_questions, group.n_topics)
    counts = np.concatenate(
        [
            simulation.draw_counts(
                rng, n, total, shape, setting.min_answers, int(setting.n_questions * 0.9)
            )
            for n, total, shape in zip(
                setting.students, setting.answers, setting.activity, strict=True
            )
        ]
    )
    quizzes = simulation.draw_quizzes(rng, topic, setting.n_quizzes)
    topic_level = rng.random(len(subjects.area_of_topic))
    incidence = simulation.draw_incidence(
        rng, setting, counts, quizzes, topic_level[topic[quizzes[:, 0]]]
    )
    cohort = np.zeros(len(counts), np.int64)
    cohort[incidence.sittings.student] = incidence.sittings.cohort
    asked = np.bincount(incidence.question, minlength=setting.n_questions)
    questions = simulation.draw_questions(rng, setting, topic, asked)
    ability = simulation.draw_abilities(rng, cohort, setting.n_cohorts, subjects.area_of_topic)
    choices = simulation.draw_choices(rng, incidence, questions, ability)
    first, last = group.birth_years
    school = School(
        group=group,
        incidence=incidence,
        choices=choices,
        questions=questions,
        question_id=rng.permutation(setting.n_questions).astype(np.int32),
        student_id=rng.permutation(len(counts)).astype(np.int32),
        answer_id=rng.permutation(len(incidence)).astype(np.int32),
        key=questions.key[incidence.question],
        part_of_student=np.repeat(np.arange(len(setting.students)), setting.students),
        birth_year=rng.integers(first, last + 1, setting.n_cohorts)[cohort],
    )
    return school, leaves


def change_keys(rng: np.random.Generator, school: School, n_changed: int = 3) -> None:
    """Count another option as correct in a third of the answers to some questions, in place.

    The official files of tasks 3/4 hold three questions whose key was changed at some time.
    """
    incidence = school.incidence
    counts = np.bincount(incidence.question, minlength=len(school.question_id))
    common = np.flatnonzero(counts >= min(100, np.median(counts)))
    for question in rng.choice(common, n_changed, replace=False):
        rows = np.flatnonzero(incidence.question == question)
        minute = incidence.sittings.minute[incidence.sitting[rows]]
        early = rows[minute < np.quantile(minute, rng.uniform(0.2, 0.4))]
        school.key[early] = (school.questions.key[question] + rng.integers(1, 4)) % 4


# ---- Files --------------------------------------------------------------------------------------


def write_table(
    path: Path,
    columns: Mapping[str, Column],
    n_rows: int,
    bar: "tqdm[Any] | None" = None,
    quoting: str = "none",
) -> None:
    """Write a file, some rows at a time, so that little of it is text in memory at once."""
    options = pa_csv.WriteOptions(include_header=False, quoting_style=quoting, batch_size=1 << 14)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(",".join(columns).encode() + b"\n")
        for start in range(0, n_rows, CHUNK):
            at = slice(start, min(start + CHUNK, n_rows))
            table = {
                str(k): column(at) if callable(column) else column[at]
                for k, column in enumerate(columns.values())
            }
            pa_csv.write_csv(pa.table(table), file, options)
            if bar is not None:
                bar.update(at.stop - start)


def float_text(values: Array, empty: Array) -> pa.Array:
    """Write whole numbers as the official files do in columns with empty cells: ``75.0``."""
    numbers = pa.array(values, mask=empty).cast(pa.string())
    return pa.compute.binary_join_element_wise(numbers, ".0", "")


def answer_columns(school: School, rows: Array) -> dict[str, Column]:
    """Return the six official columns of some answers."""
    incidence, key, option = school.incidence, school.key, school.choices.option
    student = incidence.sittings.student
    return {
        "QuestionId": lambda at: school.question_id[incidence.question[rows[at]]],
        "UserId": lambda at: school.student_id[student[incidence.sitting[rows[at]]]],
        "AnswerId": lambda at: school.answer_id[rows[at]],
        "IsCorrect": lambda at: (option[rows[at]] == key[rows[at]]).astype(np.int8),
        "CorrectAnswer": lambda at: key[rows[at]] + np.int8(1),
        "AnswerValue": lambda at: option[rows[at]] + np.int8(1),
    }


def write_tasks_1_2(
    rng: np.random.Generator, train: Path, test: Path, school: School, bar: "tqdm[Any]"
) -> None:
    """Split the answers at random, 80/10/10."""
    order = rng.permutation(len(school.incidence)).astype(np.int32)
    n_train = len(order) * 4 // 5
    middle = n_train + (len(order) - n_train) // 2
    columns = answer_columns(school, order[:n_train])
    write_table(train / layout.TRAIN_TASK_1_2, columns, n_train, bar)
    for phase, rows in zip(layout.PHASES, (order[n_train:middle], order[middle:]), strict=True):
        columns = answer_columns(school, rows)
        for task, predicted in ((1, "IsCorrect"), (2, "AnswerValue")):
            path = test / layout.test_answers_name(task, phase)
            names = ("QuestionId", "UserId", "AnswerId", predicted)
            write_table(path, {name: columns[name] for name in names}, len(rows), bar)


def write_tasks_3_4(
    rng: np.random.Generator, train: Path, test: Path, school: School, bar: "tqdm[Any]"
) -> None:
    """Split the students into training, public and private."""
    order = rng.permutation(len(school.incidence)).astype(np.int32)
    part = school.part_of_student[school.incidence.student[order]]
    masks = [f"IsTarget_{mask}" for mask in range(N_MASKS)]
    for path, number, targets in (
        (train / layout.TRAIN_TASK_3_4, 0, []),
        (test / layout.test_masks_name("public"), 1, masks),
        (test / layout.test_masks_name("private"), 2, masks),
        (test / "test_private_task_4.csv", 2, ["IsTarget"]),
    ):
        rows = order[part == number]
        columns = answer_columns(school, rows)
        columns |= {
            name: (rng.random(len(rows)) < TARGET_SHARE).astype(np.int8) for name in targets
        }
        write_table(path, columns, len(rows), bar)


def count_without_id(n_answers: int) -> int:
    """Return how many rows of the answer metadata have no AnswerId."""
    return max(2, n_answers // 20_000)


def write_answer_metadata(
    rng: np.random.Generator, path: Path, school: School, bar: "tqdm[Any]"
) -> None:
    """Write the circumstances of all answers, and some rows whose AnswerId is empty."""
    incidence, group = school.incidence, school.group
    sittings, sitting = incidence.sittings, incidence.sitting
    n = len(incidence)
    n_empty = count_without_id(n)
    rows = np.concatenate([rng.permutation(n).astype(np.int32), rng.integers(0, n, n_empty)])
    is_empty = np.zeros(len(rows), bool)
    is_empty[n:] = True
    moved = rng.choice(n, n_empty, replace=False)
    rows[moved], rows[n:] = rows[n:].copy(), rows[moved].copy()
    is_empty[moved], is_empty[n:] = True, False

    # Classes get new ids in a new school year; the scheme of work stays.
    year_end = (np.datetime64("2019-09-01") - np.datetime64(group.first_day)).astype(int) * 1440
    n_cohorts = group.setting.n_cohorts
    n_years = 2 if year_end > 0 else 1
    group_id = rng.permutation(n_cohorts * n_years).reshape(n_years, n_cohorts).astype(np.int32)
    quiz_id = rng.permutation(group.setting.n_quizzes).astype(np.int32)
    scheme = rng.integers(1, 60_000, max(2, n_cohorts // 3))[
        rng.integers(0, max(2, n_cohorts // 3), n_cohorts)
    ].astype(np.int32)
    has_scheme = rng.random(n_cohorts) < 0.8
    start = np.datetime64(group.first_day, "ms").astype(np.int64)

    def minute(at: slice) -> Any:
        """Return when answers were given, in minutes from the first day."""
        return sittings.minute[sitting[rows[at]]] + incidence.slot[rows[at]]

    def date(at: slice) -> pa.Array:
        return pa.array(start + minute(at).astype(np.int64) * 60_000, pa.timestamp("ms"))

    def confidence(at: slice) -> pa.Array:
        values = school.choices.confidence[rows[at]]
        return float_text(values, values == EMPTY)

    def group_of(at: slice) -> Any:
        year = (minute(at) >= year_end).astype(int) if n_years == 2 else 0
        return group_id[year, sittings.cohort[sitting[rows[at]]]]

    def scheme_of(at: slice) -> pa.Array:
        cohort, alone = (of[sitting[rows[at]]] for of in (sittings.cohort, sittings.alone))
        return float_text(scheme[cohort], ~has_scheme[cohort] | alone)

    columns: dict[str, Column] = {
        "AnswerId": lambda at: float_text(school.answer_id[rows[at]], is_empty[at]),
        "DateAnswered": date,
        "Confidence": confidence,
        "GroupId": group_of,
        "QuizId": lambda at: quiz_id[sittings.quiz[sitting[rows[at]]]],
        "SchemeOfWorkId": scheme_of,
    }
    write_table(path, columns, len(rows), bar)


def write_student_metadata(rng: np.random.Generator, path: Path, school: School) -> None:
    """Write gender, date of birth and pupil premium, each often unknown, of all students."""
    n = len(school.student_id)
    has_birth = rng.random(n) >= school.group.no_birth_date
    # Students who gave no date of birth mostly gave no gender either; a few chose "other".
    gender = rng.integers(1, 3, n)
    gender[np.where(has_birth, rng.random(n) < 0.03, rng.random(n) < 0.74)] = 0
    gender[rng.random(n) < 0.0005] = 3
    # A school year runs from September to August; some dates of birth are nonsense.
    month = rng.integers(0, 12, n) + 8
    year = school.birth_year + month // 12 - 1
    odd = rng.random(n) < 0.01
    year[odd] = rng.integers(1900, 2030, int(odd.sum()))
    births = np.char.add(
        np.char.mod("%04d", year), np.char.mod("-%02d-01 00:00:00.000", month % 12 + 1)
    )
    premium = np.where(rng.random(n) < 0.27, "1.0", "0.0")
    knows_premium = has_birth & (rng.random(n) >= school.group.no_premium)
    order = rng.permutation(n)
    columns = {
        "UserId": school.student_id[order],
        "Gender": gender[order].astype(np.int8),
        "DateOfBirth": pa.array(births[order], mask=~has_birth[order]),
        "PremiumPupil": pa.array(premium[order], mask=~knows_premium[order]),
    }
    write_table(path, columns, n)


def write_question_metadata(
    rng: np.random.Generator, path: Path, school: School, subjects: Subjects, leaves: Leaves
) -> None:
    """Write the subjects of all questions, each list from the root down."""
    order = rng.permutation(len(leaves))
    columns = {
        "QuestionId": school.question_id[order],
        "SubjectId": [str(subjects.path_to(leaves[question])) for question in order],
    }
    write_table(path, columns, len(order), quoting="needed")


def write_judgements(rng: np.random.Generator, folder: Path, school: School) -> None:
    """Write what five simulated experts say about pairs of questions, half of them public."""
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
    advantage = quality[right] - quality[left]
    noise = np.array([1.0, 1.6, 1.2, 1.8, 1.4]) * rng.normal(size=(N_PAIRS, 5))
    says_right = advantage[:, None] + noise > 0
    judged = np.where(says_right, "2", "1").astype(object)
    # One expert left pairs out, so that the whole column is written with decimals.
    judged[:, 3] = np.where(says_right[:, 3], "2.0", "1.0")
    order = rng.permutation(N_PAIRS)
    judged[rng.choice(order[N_PAIRS // 2 :], 2, replace=False), 3] = None
    for phase, rows in zip(layout.PHASES, np.split(order, 2), strict=True):
        columns = {
            "": rows,
            "Unnamed: 0": rows,
            "left": school.question_id[left[rows]],
            "right": school.question_id[right[rows]],
        }
        columns |= {name: pa.array(judged[rows, k]) for k, name in enumerate(EXPERTS)}
        write_table(folder / layout.expert_judgements_name(phase), columns, len(rows))


def write_images(rng: np.random.Generator, folder: Path, school: School) -> None:
    """Draw a small picture of every question: its number, a sum, and four options.

    The option counted as correct in most answers is the result of the sum.
    """
    folder.mkdir(parents=True)
    font = ImageFont.load_default(IMAGE_FONT_SIZE)
    for number, question_id in enumerate(school.question_id.tolist()):
        left, right = rng.integers(12, 80, 2).tolist()
        wrong = rng.choice([-20, -11, -10, -2, -1, 1, 2, 9, 10, 11], 4, replace=False)
        options = left + right + wrong
        options[school.questions.key[number]] = left + right
        lines = [f"Question {question_id}", f"What is {left} + {right}?"]
        lines += [
            f"{letter})  {option}" for letter, option in zip("ABCD", options.tolist(), strict=True)
        ]
        image = Image.new("L", IMAGE_SIZE, "white")
        ImageDraw.Draw(image).multiline_text((14, 12), "\n".join(lines), "black", font, spacing=8)
        image.save(folder / f"{question_id}.jpg", quality=80)


def write_tree(
    folder: Path, size: str, seed: int, n_questions: int | None = None
) -> dict[str, dict[str, float]]:
    """Simulate and write all official files.

    Returns for each group of tasks the best accuracies that any prediction can expect.
    """
    streams = iter(np.random.default_rng(seed).spawn(16))
    places = (layout.TRAIN_DIR, layout.METADATA_DIR, layout.TEST_DIR)
    train, metadata, test = (folder / place.name for place in places)
    subjects = make_subjects()
    groups = settings(size, n_questions)
    write_subjects(metadata / "subject_metadata.csv", subjects)
    totals = [sum(group.setting.answers) for group in groups]
    # Each answer is simulated, written once or twice and described once.
    n_rows = sum(3 * total + count_without_id(total) for total in totals)
    n_rows += totals[0] - totals[0] * 4 // 5 + sum(groups[1].setting.answers[2:])
    limits = {}
    # Its own stream: the tables are the same with and without pictures.
    images_rng = np.random.default_rng([seed, 1])
    with tqdm(total=n_rows, unit="row", unit_scale=True, disable=None, desc="simulate") as bar:
        for group in groups:
            school, leaves = simulate(next(streams), group, subjects)
            bar.update(len(school.incidence))
            limits[group.name] = {
                "right_or_wrong": round(school.choices.limit_is_correct, 4),
                "option": round(school.choices.limit_option, 4),
            }
            rng = next(streams)
            if group.name == "1_2":
                write_tasks_1_2(rng, train, test, school, bar)
            else:
                change_keys(rng, school)
                write_tasks_3_4(rng, train, test, school, bar)
                write_judgements(next(streams), test, school)
                write_images(images_rng, folder / layout.IMAGES_DIR.name, school)
            rng = next(streams)
            end = f"task_{group.name}.csv"
            write_question_metadata(
                rng, metadata / f"question_metadata_{end}", school, subjects, leaves
            )
            write_student_metadata(rng, metadata / f"student_metadata_{end}", school)
            write_answer_metadata(rng, metadata / f"answer_metadata_{end}", school, bar)
            del school
    return limits


def write_subjects(path: Path, subjects: Subjects) -> None:
    """Write the subject tree, with the byte order mark and the NULL of the official file."""
    table = subjects.table
    table["ParentId"] = table["parent"].map(table["SubjectId"]).astype("Int32")
    path.parent.mkdir(parents=True, exist_ok=True)
    table.sort_values("SubjectId").to_csv(
        path,
        columns=["SubjectId", "Name", "ParentId", "Level"],
        index=False,
        na_rep="NULL",
        encoding="utf-8-sig",
        lineterminator="\n",
    )


def generate(
    output_dir: Path, template_dir: Path, size: str, seed: int, n_questions: int | None = None
) -> None:
    """Write the simulated tree and its templates; all files appear at the end, or none.

    The output folder is laid out like `data/`. `InputError` if it holds real files, or another
    process simulates into it.
    """

    def write(folder: Path) -> dict[str, Any]:
        limits = write_tree(folder, size, seed, n_questions)
        return {
            "size": size,
            "seed": seed,
            "questions_task_3_4": settings(size, n_questions)[1].setting.n_questions,
            "generator_version": GENERATOR_VERSION,
            "best_expected_accuracy": limits,
        }

    folders = (layout.TRAIN_DIR, layout.METADATA_DIR, layout.TEST_DIR, layout.IMAGES_DIR)
    simulated.place_simulated(output_dir, [folder.name for folder in folders], write)
    build_templates(output_dir, template_dir)


def at_least_80(text: str) -> int:
    """Read the number of questions from the command line."""
    value = int(text)
    if not 80 <= value <= 5000:
        raise argparse.ArgumentTypeError(f"{text} is not from 80 to 5000")
    return value


def main() -> None:
    """Read the command line and write the files."""
    parser = cli.parser(__doc__)
    parser.add_argument("--size", choices=SIZES, default="small", help="default: small")
    parser.add_argument("--seed", type=cli.seed, default=0, help="default: 0")
    parser.add_argument(
        "--questions",
        type=at_least_80,
        metavar="N",
        help="questions of tasks 3 and 4, such as the official 948 (default: by size)",
    )
    parser.add_argument(
        "--output_dir", type=Path, default=layout.DATA_DIR, help="default: the kit's folder data/"
    )
    options = parser.parse_args()
    is_default = options.output_dir.resolve() == layout.DATA_DIR
    templates = layout.TEMPLATE_DIR if is_default else options.output_dir / layout.TEMPLATE_DIR.name
    generate(options.output_dir, templates, options.size, options.seed, options.questions)
    print(
        f"simulated data ({options.size}) in {cli.show(options.output_dir)}, "
        f"templates in {cli.show(templates)}"
    )


if __name__ == "__main__":
    cli.run(main)
