"""Look at the data: write one page about whatever lies in data/, official or simulated.

The page shows answers per student and question, difficulty, options and distractors, when answers
were given, quizzes and groups, confidence, the tree of subjects, students, and missing values. A
sentence says how to read each chart. Only training answers are counted. Charts without data are
left out.

Run:     python data/explore.py
         python data/explore.py --data_dir DIR --output_dir DIR
Writes:  data/test_output/explore.html. Real and simulated answers never share a page: where tasks
         1/2 are real and tasks 3/4 simulated, or the other way round, explore.html has the real
         ones and explore_simulated.html the others.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from common import charts, cli, layout, metadata, pages, provenance, reading, schema, writing
from common.answers import read_answers
from common.charts import Dot, Panel
from common.errors import InputError
from common.schema import OPTIONS

import numpy as np
import pandas as pd
from explore_charts import column_chart, compact, heat_map
from tqdm import tqdm

TASKS = ("1/2", "3/4")
PAGE_NAMES = ("explore.html", "explore_simulated.html")

# Draws a chart; `explore.html` calls it with the label.
Chart = Callable[..., str]


@dataclass(frozen=True)
class Figure:
    """A chart and the facts that its sentence in `explore.html` mentions."""

    name: str
    chart: Chart
    facts: dict[str, Any] = field(default_factory=dict)


# Steps that `read_part` shows on the progress bar.
N_STEPS = 6
# Shares of fewer answers are left out or grey, because they are mostly chance.
FEW_ANSWERS = 20
# A distractor is weak if a smaller share of the answers to its question chose it.
WEAK_SHARE = 0.05
# An hour of the week, or a month, is shaded if it has at least this many answers.
ENOUGH_FOR_A_SHADE = 100
# The shades of right answers span at least this range, so that small differences look small.
LEAST_RANGE = 0.1
# Subjects below the root that have a row in the chart of months.
N_MAIN_SUBJECTS = 8
# The official answers are of 2018 to 2020; a date outside these years is nonsense.
FIRST_ANSWER = "2015-01-01"
AFTER_LAST_ANSWER = "2025-01-01"
# A histogram of whole numbers has one bin for each number, up to this many.
MOST_UNIT_BINS = 30
# Otherwise it has about this many bins, which become wider and wider.
N_BINS = 24
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    cli.add_folder(parser, "--data_dir", layout.DATA_DIR, "a folder laid out like data/")
    cli.add_folder(parser, "--output_dir", layout.TEST_OUTPUT_DIR)
    return parser


def main() -> None:
    """Read the files that are there, count answers, write the pages."""
    options = build_parser().parse_args()
    if not options.data_dir.is_dir():
        raise InputError(f"{options.data_dir}: not found, expected a folder laid out like data/")
    parts = []
    for tasks in TASKS:
        part = find_part(options.data_dir, tasks)
        if part is not None:
            parts.append(part)
    if not parts:
        raise InputError(
            f"{options.data_dir / layout.TRAIN_DIR.name}: holds neither {layout.TRAIN_TASK_1_2} nor"
            f" {layout.TRAIN_TASK_3_4}; `python data/download.py` fetches the official files, "
            "`python data/generate_sample.py` simulates some"
        )
    texts = {}
    # The last step draws the charts.
    with tqdm(total=len(parts) * N_STEPS + 1, unit="step", disable=None, leave=False) as bar:
        for part in parts:
            part |= read_part(part["tasks"], part["paths"], bar)
        bar.set_description("charts")
        for simulated in sorted({part["simulated"] for part in parts}):
            shown = [part for part in parts if part["simulated"] == simulated]
            others = [part for part in parts if part["simulated"] != simulated]
            absent = [tasks for tasks in TASKS if tasks not in [part["tasks"] for part in parts]]
            name = PAGE_NAMES[1] if simulated and others else PAGE_NAMES[0]
            texts[options.output_dir / name] = pages.render(
                "explore.html",
                title="A look at the simulated data" if simulated else "A look at the data",
                tab="",
                simulated=simulated,
                others=others,
                other_name=PAGE_NAMES[0] if simulated else PAGE_NAMES[1],
                without=absent,
                parts=shown,
                few=FEW_ANSWERS,
                compact=compact,
            )
        bar.update()
    writing.write_files(texts)
    for path in texts:
        print(f"written: {cli.show(path)}")


def find_part(folder: Path, tasks: str) -> dict[str, Any] | None:
    """Find the files of tasks ``1/2`` or ``3/4``; return None if there are no training answers.

    The result also names metadata that are absent, or foreign: simulated although the answers are
    real, or the other way round.
    """
    ending = f"task_{tasks.replace('/', '_')}.csv"
    train = folder / layout.TRAIN_DIR.name / f"train_{ending}"
    if not reading.is_there(train):
        return None
    reading.require_file(train)
    simulated = provenance.is_simulated(train)
    paths: dict[str, Path] = {"train": train}
    absent = []
    foreign = []
    for kind in ("question", "student", "answer", "subject"):
        name = layout.SUBJECT_METADATA if kind == "subject" else f"{kind}_metadata_{ending}"
        path = metadata.find(folder / layout.METADATA_DIR.name, name)
        if path is None:
            absent.append(name)
        elif provenance.is_simulated(path) != simulated:
            foreign.append(name)
        else:
            paths[kind] = path
    return {
        "tasks": tasks,
        "simulated": simulated,
        "absent": absent,
        "foreign": foreign,
        "paths": paths,
    }


# ---- Reading and counting -----------------------------------------------------------------------
# Everything is counted from three tables. `answers` has a row for each training answer. `students`
# and `questions` have a row for each id, with the counts of its answers from `rate`.


def read_part(tasks: str, files: dict[str, Path], bar: tqdm[Any]) -> dict[str, Any]:
    """Read the files of a group of tasks and count their answers; return facts for the template.

    `files` gives the path of each kind of file that is there.
    """

    def begin(step: str) -> None:
        bar.update()
        bar.set_description(f"tasks {tasks}: {step}")

    begin("answers")
    answers = read_answers(files["train"], ids=True)
    begin("counts")
    students = rate(answers["IsCorrect"], answers["UserId"])
    questions = rate(answers["IsCorrect"], answers["QuestionId"])
    part: dict[str, Any] = {
        "n_answers": len(answers),
        "n_students": len(students),
        "n_questions": len(questions),
        "share_right": answers["IsCorrect"].mean(),
        "n_others": {},
        "missing": [],
        "subjects": [],
        "students": {},
    }
    figures = [
        *counts_figures(answers, students, questions),
        *difficulty_figures(students, questions),
        *options_figures(answers),
    ]
    begin("subjects")
    subject_names = pd.Series()
    main_subject = pd.Series(-1, questions.index)
    if "question" in files and "subject" in files:
        tree = metadata.read_subject_tree(files["subject"])
        subject_names = tree["Name"]
        main_subject = read_subjects(files["question"], tree, questions, part)
    if "student" in files:
        students = read_students(files["student"], students, part["missing"])
    begin("circumstances")
    last_answer: Any = pd.NaT
    if "answer" in files and "AnswerId" in answers:
        answers = read_circumstances(files["answer"], answers, part["missing"])
        last_answer = answers["DateAnswered"].max()
        for name in ("QuizId", "GroupId", "SchemeOfWorkId"):
            part["n_others"][name] = answers[name][answers[name] >= 0].nunique()
        begin("dates")
        figures += times_figures(answers, main_subject, subject_names)
        begin("quizzes")
        figures += [*quizzes_figures(answers), *confidence_figures(answers)]
    if "student" in files:
        figures += birth_figures(students, last_answer)
        for name in ("Gender", "PremiumPupil"):
            known = students[students[name] >= 0]
            part["students"][name] = add_up(known, name).to_dict("index")
    return {**part, "figures": {figure.name: figure for figure in figures}}


def read_subjects(
    path: Path, tree: pd.DataFrame, questions: pd.DataFrame, part: dict[str, Any]
) -> pd.Series:
    """Add facts about the subjects of questions to `part`; return each question's main subject.

    The main subject is the first one below the root, as a row of the tree, -1 for none.
    """
    question_id = questions.index.to_numpy()
    subjects = metadata.read_question_subjects(path, question_id, tree)
    subjects["QuestionId"] = question_id[subjects["row"]]
    is_missing = pd.DataFrame({"SubjectId": ~questions.index.isin(subjects["QuestionId"])})
    part["missing"] += count_missing("questions", is_missing)
    part["subjects"] = nest_subjects(tree, subjects.join(questions, on="QuestionId"))
    part["n_subjects"] = len(tree)
    part["n_with_questions"] = subjects["subject"].nunique()
    is_below_root = subjects["subject"].map(tree["Level"]) == 1
    first = subjects[is_below_root].drop_duplicates("QuestionId")
    return first.set_index("QuestionId")["subject"].reindex(questions.index, fill_value=-1)


def rate(is_correct: pd.Series, by: Any) -> pd.DataFrame:
    """Count answers (n) and right answers (n_right), with their share, by one or more keys."""
    # pandas may return small sums of int8 as int8.
    groups = is_correct.groupby(by)
    counts = pd.DataFrame({"n": groups.size(), "n_right": groups.sum()}).astype("int64")
    return counts.assign(share=counts["n_right"] / counts["n"])


def add_up(rated: pd.DataFrame, by: Any, index: pd.Index | None = None) -> pd.DataFrame:
    """Add up the counts of `rate` by a coarser key.

    With an index, the result has its rows in order. The column n_rows counts the rows added up. The
    share is NaN if there are no answers.
    """
    groups = rated.groupby(by)
    counts = groups[["n", "n_right"]].sum().assign(n_rows=groups.size())
    if index is not None:
        counts = counts.reindex(index, fill_value=0)
    return counts.assign(share=counts["n_right"] / counts["n"])


def nest_subjects(tree: pd.DataFrame, subjects: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the roots of the tree of subjects; each subject has a list `below`.

    `subjects` has a row for each question and subject. Subjects with most answers come first.
    """
    rated = add_up(subjects, "subject").sort_values("n", ascending=False, kind="stable")
    nodes = rated.join(tree).to_dict("index")
    for node in nodes.values():
        node["below"] = []
    roots: list[Any] = []
    for node in nodes.values():
        parent = nodes.get(node["parent"])
        # A question's list may lack the parent of a subject.
        if parent is None:
            roots.append(node)
        else:
            parent["below"].append(node)
    return roots


def count_missing(of: str, is_missing: pd.DataFrame) -> list[dict[str, Any]]:
    """Return how often the value in each column is missing, for rows that are called `of`."""
    counts = []
    for name, n in is_missing.sum().items():
        counts.append({"name": name, "n": n, "n_rows": len(is_missing), "of": of})
    return counts


def read_students(path: Path, students: pd.DataFrame, missing: list[Any]) -> pd.DataFrame:
    """Add the metadata of students to their counts, and counts of missing values to `missing`."""
    student_id = students.index.to_numpy()
    known = metadata.read_student_metadata(path, student_id)
    is_missing = known.isna() | (known == -1)
    # `known` lacks dates that are nonsense: read again which students stated any.
    stated = np.zeros(len(students), bool)
    if schema.DATE_OF_BIRTH.name in reading.read_header(reading.file_source(path)):
        raw = reading.read_table(path, [schema.USER_ID, schema.DATE_OF_BIRTH])
        stated = np.isin(student_id, raw["UserId"][raw["DateOfBirth"].notna()])
    is_missing.insert(1, "Gender unspecified", known["Gender"] == 0)
    is_missing.insert(3, "DateOfBirth is nonsense", stated & is_missing["DateOfBirth"])
    missing += count_missing("students", is_missing.assign(DateOfBirth=~stated))
    return students.join(known.set_index(students.index))


def read_circumstances(path: Path, answers: pd.DataFrame, missing: list[Any]) -> pd.DataFrame:
    """Add the metadata of answers as columns, without nonsensical dates.

    The counts of missing values are added to `missing`.
    """
    known = metadata.read_circumstances(path, answers["AnswerId"].to_numpy())
    is_missing = known.isna() | (known == -1)
    date = known["DateAnswered"]
    possible = date.between(FIRST_ANSWER, AFTER_LAST_ANSWER, inclusive="left")
    is_missing.insert(1, "DateAnswered is nonsense", date.notna() & ~possible)
    missing += count_missing("answers", is_missing)
    known["DateAnswered"] = date.where(possible)
    return answers.assign(**known)


# ---- Figures -------------------------------------------------------------------------------------


def counts_figures(
    answers: pd.DataFrame, students: pd.DataFrame, questions: pd.DataFrame
) -> Iterator[Figure]:
    """Show how many answers students and questions have."""
    n = students["n"]
    tenth = n.nlargest(max(len(n) // 10, 1)).sum() / n.sum()
    yield numbers_figure("per_student", n, "students", "answers of a student", tenth=tenth)
    yield numbers_figure("per_question", questions["n"], "questions", "answers to it")
    yield sparsity_figure(answers, students, questions)


def sparsity_figure(
    answers: pd.DataFrame, students: pd.DataFrame, questions: pd.DataFrame
) -> Figure:
    """Show which share of the pairs of student and question has an answer."""
    student_tenth = rank_in_tenths(students)
    question_tenth = rank_in_tenths(questions)
    tenths = range(10)
    row_of_answer = answers["UserId"].map(student_tenth)
    column_of_answer = answers["QuestionId"].map(question_tenth)
    counts = answers.groupby([row_of_answer, column_of_answer]).size().unstack(fill_value=0)
    counts = counts.reindex(index=tenths, columns=tenths, fill_value=0)
    n_students = np.bincount(student_tenth, minlength=10)
    n_questions = np.bincount(question_tenth, minlength=10)
    share = counts.div(np.outer(n_students, n_questions)).to_numpy()
    names = [f"{10 * n}–{10 * n + 10}%" for n in tenths]
    tooltips = []
    for row in tenths:
        pair_names = [f"students {names[row]}, questions {name}" for name in names]
        tooltips.append([f"{p}: {share[row, k]:.2%} answered" for k, p in enumerate(pair_names)])
    ends = ["most", *[""] * 8, "fewest"]
    chart = partial(
        heat_map,
        share,
        ends,
        ends,
        tooltips,
        axis="questions, those with most answers first",
        side="students, those with most answers first",
        key=lambda value: f"{100 * value:.3g}% answered",
    )
    return Figure("sparse", chart)


def rank_in_tenths(rated: pd.DataFrame) -> pd.Series:
    """Return the tenth, 0 to 9, of each row by its number of answers; 0 has most."""
    rank = rated["n"].rank(method="first", ascending=False) - 1
    return (rank * 10 // len(rated)).astype("int8")


def difficulty_figures(students: pd.DataFrame, questions: pd.DataFrame) -> Iterator[Figure]:
    """Show how difficult questions and how able students are."""
    tables = ("difficulty", questions, "questions"), ("ability", students, "students")
    for name, rated, things in tables:
        share = rated["share"][rated["n"] >= FEW_ANSWERS]
        if len(share):
            chart = shares_chart(share, things, "share of right answers")
            yield Figure(name, chart, {"left_out": len(rated) - len(share)})


def options_figures(answers: pd.DataFrame) -> Iterator[Figure]:
    """Show which options are chosen and right, and how the wrong ones of a question compare."""
    if "AnswerValue" not in answers:
        return
    # A row for each question and right option, a column for each option chosen.
    cells = answers.groupby(["QuestionId", "CorrectAnswer", "AnswerValue"]).size()
    counts = cells.unstack(fill_value=0).reindex(columns=OPTIONS, fill_value=0)
    total = counts.groupby("CorrectAnswer").sum().reindex(OPTIONS, fill_value=0)
    chosen_where_right = (np.diag(total) / total.sum(axis=1)).fillna(0)
    panels = [
        Panel("chosen", (total.sum() / len(answers)).tolist(), True),
        Panel("is right", (total.sum(axis=1) / len(answers)).tolist(), False),
        Panel("chosen where right", chosen_where_right.tolist(), False),
    ]
    chart: Chart = partial(charts.bar_panels, panels, [*map(str, OPTIONS)], axis="option")
    yield Figure("options", chart)
    yield from distractor_figures(counts)


def distractor_figures(counts: pd.DataFrame) -> Iterator[Figure]:
    """Show how often the wrong options of a question are chosen.

    `counts` has a row for each question and right option, and a column for each option chosen.
    """
    # The key of a few questions was changed: their distractors are those of the usual key.
    usual = counts.loc[counts.sum(axis=1).groupby("QuestionId").idxmax()]
    usual = usual[usual.sum(axis=1) >= FEW_ANSWERS]
    key = usual.index.get_level_values("CorrectAnswer").to_numpy()
    is_wrong = np.array(OPTIONS) != key[:, None]
    wrong = usual.to_numpy()[is_wrong].reshape(-1, len(OPTIONS) - 1)
    # Each question's distractors, the most attractive first.
    wrong = -np.sort(-wrong, axis=1)
    if not wrong.any():
        return
    with_wrong = wrong[wrong.any(axis=1)]
    wrong_shares = with_wrong / with_wrong.sum(axis=1, keepdims=True)
    attraction = wrong_shares.mean(axis=0).tolist()
    dots = [
        Dot(f"{name} attractive", share)
        for name, share in zip(("most", "middle", "least"), attraction, strict=True)
    ]
    axis = "share of the wrong answers"
    chart: Chart = partial(charts.dot_chart, dots, digits=2, limits=(0, 1), chance=1 / 3, axis=axis)
    yield Figure("attraction", chart, {"n": len(wrong)})
    shares = pd.Series((wrong / usual.sum(axis=1).to_numpy()[:, None]).ravel())
    chart = shares_chart(shares, "distractors", "share of the answers to its question")
    facts = {"weak": WEAK_SHARE, "are_weak": (shares < WEAK_SHARE).mean()}
    yield Figure("distractors", chart, facts)


def times_figures(
    answers: pd.DataFrame, main_subject: pd.Series, subject_names: pd.Series
) -> Iterator[Figure]:
    """Show when answers were given, and on which subject.

    `main_subject` gives the subject of each QuestionId, -1 for none.
    """
    hour = answers["DateAnswered"].dt.floor("h")
    if hour.isna().all():
        return
    # All figures add up this small table: the answers of each hour about each subject.
    subject = answers["QuestionId"].map(main_subject).rename("subject")
    rated = rate(answers["IsCorrect"], [hour.rename("hour"), subject]).reset_index()
    months = pd.period_range(hour.min(), hour.max(), freq="M")
    # In a long time, only some months are named.
    named = range(1, 13) if len(months) <= 6 else (1, 5, 9)
    month_names = [f"{month:%b %y}" if month.month in named else "" for month in months]
    of_month = add_up(rated, rated["hour"].dt.to_period("M"), months)
    chart: Chart = partial(
        column_chart,
        of_month["n"].tolist(),
        say_rates(months.strftime("%b %Y"), of_month),
        [(column + 0.5, name) for column, name in enumerate(month_names) if name],
        axis="month",
        unit="answers",
    )
    yield Figure("months", chart, {"first": hour.min(), "last": hour.max()})
    yield from subject_month_figures(rated, subject_names, months, month_names)
    yield from week_figures(rated)


def subject_month_figures(
    rated: pd.DataFrame,
    subject_names: pd.Series,
    months: pd.PeriodIndex,
    month_names: Sequence[str],
) -> Iterator[Figure]:
    """Show the share of each main subject in the answers of each month."""
    with_subject = rated[rated["subject"] >= 0]
    month = rated["hour"].dt.to_period("M")
    counts = with_subject.pivot_table("n", "subject", month, "sum", fill_value=0)
    counts = counts.reindex(columns=months, fill_value=0)
    total = counts.sum()
    if not total.max() >= ENOUGH_FOR_A_SHADE:
        return
    by_size = counts.sum(axis=1).sort_values(ascending=False, kind="stable")
    largest = by_size.head(N_MAIN_SUBJECTS).index
    counts = counts.loc[largest].set_axis(subject_names[largest])
    tooltips = []
    for name, *month_counts in counts.itertuples():
        cells = zip(months, month_counts, total, strict=True)
        tooltips.append([f"{name}, {m:%b %Y}: {n:,} answers of {of:,}" for m, n, of in cells])
    chart = partial(
        heat_map,
        (counts / total.where(total >= ENOUGH_FOR_A_SHADE)).to_numpy(),
        counts.index.tolist(),
        month_names,
        tooltips,
        axis="month",
        key=lambda value: f"{value:.0%} of the month",
    )
    yield Figure("subjects_by_month", chart, {"most": N_MAIN_SUBJECTS})


def week_figures(rated: pd.DataFrame) -> Iterator[Figure]:
    """Show the answers, and the share of right ones, in each hour of the week."""
    hours = pd.MultiIndex.from_product([WEEKDAYS, range(24)])
    day = rated["hour"].dt.day_of_week.map(dict(enumerate(WEEKDAYS))).rename("day")
    hour_of_day = rated["hour"].dt.hour.rename("at")
    of_week = add_up(rated, [day, hour_of_day], hours)
    tooltips = say_rates([f"{name} {at}:00 to {at}:59" for name, at in hours], of_week)
    week_chart = partial(
        heat_map,
        row_names=WEEKDAYS,
        column_names=[f"{at}:00" if at % 6 == 0 else "" for at in range(24)],
        tooltips=np.reshape(tooltips, (7, 24)).tolist(),
        axis="hour",
    )
    shades = of_week["n"].where(of_week["n"] > 0).to_numpy(float).reshape(7, 24)
    chart: Chart = partial(week_chart, shades, key=lambda n: f"{compact(n)} answers")
    yield Figure("week", chart, {"busiest": of_week["n"].idxmax()})

    share = of_week["share"].where(of_week["n"] >= ENOUGH_FOR_A_SHADE)
    if share.notna().any():
        # Widen a small range on both sides.
        margin = max(LEAST_RANGE - (share.max() - share.min()), 0) / 2
        limits = (max(share.min() - margin, 0), min(share.max() + margin, 1))
        shades = share.to_numpy().reshape(7, 24)
        chart = partial(week_chart, shades, key=lambda value: f"{value:.0%} right", limits=limits)
        yield Figure("right_in_week", chart, {"enough": ENOUGH_FOR_A_SHADE})


def quizzes_figures(answers: pd.DataFrame) -> Iterator[Figure]:
    """Show the sizes of quizzes, sittings and groups."""
    if len(counts := count_pairs(answers, "QuizId", "QuestionId")):
        n_questions = counts.groupby("QuizId").size()
        yield numbers_figure("per_quiz", n_questions, "quizzes", "questions of a quiz")
    if len(counts := count_pairs(answers, "QuizId", "UserId")):
        yield numbers_figure("sittings", counts, "sittings", "answers of one student in one quiz")
    if len(counts := count_pairs(answers, "GroupId", "UserId")):
        n_students = counts.groupby("GroupId").size()
        yield numbers_figure("per_group", n_students, "groups", "students of a group")


def count_pairs(answers: pd.DataFrame, first: str, second: str) -> pd.Series:
    """Count the answers of each pair of ids in two columns, where the first is known."""
    known = answers[answers[first] >= 0]
    # One number for each pair: much quicker to sort than two columns.
    pairs = known[first].to_numpy().astype(np.int64) << 32 | known[second].to_numpy()
    pairs, n = np.unique(pairs, return_counts=True)
    return pd.Series(n, index=pd.Index(pairs >> 32, name=first))


def confidence_figures(answers: pd.DataFrame) -> Iterator[Figure]:
    """Show the share of right answers by stated confidence."""
    rated = rate(answers["IsCorrect"], 25 * (answers["Confidence"] / 25).round())
    dots = [
        Dot(f"{level:.0f}% sure ({compact(n)})", share, mark=level / 100)
        for level, n, _, share in rated[rated["n"] >= FEW_ANSWERS].itertuples()
    ]
    if dots:
        axis = "share of right answers"
        chart = partial(charts.dot_chart, dots, digits=2, limits=(0, 1), axis=axis)
        yield Figure("confidence", chart, {"asked": rated["n"].sum() / len(answers)})


def birth_figures(students: pd.DataFrame, last_answer: pd.Timestamp) -> Iterator[Figure]:
    """Show when students were born; `last_answer` is NaT where no date is known."""
    year = students["DateOfBirth"].dt.year
    if year.isna().all():
        return
    years = pd.RangeIndex(int(year.min()), int(year.max()) + 1)
    born = add_up(students, year, years)
    chart = partial(
        column_chart,
        born["n_rows"].tolist(),
        say_rates([f"born in {year}" for year in years], born, "n_rows", "students"),
        [(column + 0.5, str(year)) for column, year in enumerate(years)],
        axis="year of birth",
        unit="students",
    )
    last = None if pd.isna(last_answer) else last_answer.year
    yield Figure("birth", chart, {"commonest": born["n_rows"].idxmax(), "last": last})


# ---- Shared charts -------------------------------------------------------------------------------


def numbers_figure(name: str, values: pd.Series, things: str, axis: str, **facts: float) -> Figure:
    """Draw a histogram of whole numbers from 1 on.

    `things` names what has the numbers, in the plural. `axis` says what the numbers are.
    """
    edges = bin_edges(int(values.min()), int(values.max()) + 1)
    counts, _ = np.histogram(values, edges)
    is_wide = len(counts) < edges[-1] - edges[0]

    # All bins are drawn equally wide. A single number is named below the middle of its column.
    def position(number: float) -> float:
        columns = np.arange(len(edges))
        if is_wide:
            return float(np.interp(np.log(number), np.log(edges), columns))
        return float(np.interp(number, edges, columns)) + 0.5

    numbers = round_numbers(edges) if is_wide else edges[:-1].tolist()
    tooltips = []
    for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
        bin_name = f"{low:,} to {high - 1:,}" if high > low + 1 else f"{low:,}"
        tooltips.append(f"{bin_name}: {count:,} {things}")
    median = f"{values.median():,.0f}"
    chart = partial(
        column_chart,
        counts.tolist(),
        tooltips,
        [(position(number), f"{number:,}") for number in numbers],
        axis=axis,
        unit=things,
        mark=(position(values.median()), f"median {median}"),
    )
    return Figure(name, chart, {**facts, "median": median, "is_wide": is_wide})


def bin_edges(low: int, high: int) -> np.ndarray:
    """Return the edges of bins for whole numbers below `high`: one each, or wider and wider."""
    if high - low <= MOST_UNIT_BINS:
        return np.arange(low, high + 1)
    growth = (high / low) ** (1 / N_BINS) - 1
    edges = [low]
    width = 1
    # No bin is narrower than the one before: widths that alternate would look like teeth.
    while edges[-1] < high:
        width = max(width, round(edges[-1] * growth))
        edges.append(edges[-1] + width)
    return np.array(edges)


def round_numbers(edges: np.ndarray) -> list[int]:
    """Return the whole numbers to write on a logarithmic scale, increasing."""
    few = (10, 20, 50)
    many = (10, 15, *range(20, 100, 10))
    for digits in (few, many):
        numbers = []
        # The digits are in tenths, because of 1.5.
        for power in range(8):
            for digit in digits:
                tenths = digit * 10**power
                if tenths % 10 == 0 and edges[0] <= tenths / 10 <= edges[-1]:
                    numbers.append(tenths // 10)
        if len(numbers) >= 4:
            break
    return numbers


def shares_chart(shares: pd.Series, things: str, axis: str) -> Chart:
    """Draw a histogram of shares, in twentieths; `things` names what has them, in the plural."""
    # The small number keeps shares such as 0.15 in the bin that starts there, despite rounding.
    bin_index = np.floor(shares * 20 + 1e-9).clip(upper=19).astype(int)
    counts = np.bincount(bin_index, minlength=20).tolist()
    median = shares.median()
    return partial(
        column_chart,
        counts,
        [f"{5 * at}% to {5 * at + 5}%: {n:,} {things}" for at, n in enumerate(counts)],
        [(float(at), f"{5 * at}%") for at in range(0, 21, 4)],
        axis=axis,
        unit=things,
        mark=(20 * median, f"median {median:.0%}"),
    )


def say_rates(
    names: Iterable[str], rated: pd.DataFrame, column: str = "n", of: str = "answers"
) -> list[str]:
    """Return a tooltip for each name: the number in a column, and the share of right answers."""
    tooltips = []
    for name, n, share in zip(names, rated[column], rated["share"], strict=True):
        right = f", {share:.0%} right" if n else ""
        tooltips.append(f"{name}: {n:,} {of}{right}")
    return tooltips


if __name__ == "__main__":
    cli.run(main)
