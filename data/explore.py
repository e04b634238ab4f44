"""Look at the data: write one page about whatever lies in data/, official or simulated.

Answers per student and question, difficulty, options and distractors, when answers were given,
quizzes and groups, confidence, the tree of subjects, students, and what is missing: each chart
with a sentence on how to read it. Only training answers are counted. What is not there is left out.

Run:     python data/explore.py
         python data/explore.py --data_dir DIR --output_dir DIR
Writes:  data/test_output/explore.html. Real and simulated answers never share a page: where tasks
         1/2 are real and tasks 3/4 simulated, or the other way round, explore.html has the real
         ones and explore_simulated.html the others.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
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

# A name, a chart that lacks its label, and what the sentence in `explore.html` tells of it.
Chart = Callable[..., str]
Figure = tuple[str, Chart, dict[str, Any]]

# Steps that `read_part` shows on the progress bar.
N_STEPS = 6
# A share that rests on fewer answers is mostly chance.
FEW_ANSWERS = 20
# A distractor that is chosen in a smaller share of a question's answers attracts hardly anybody.
WEAK_SHARE = 0.05
# An hour of the week, or a month, is shaded from so many answers on.
ENOUGH_FOR_A_SHADE = 100
# What the shades of shares of right answers span at least: small differences are to look small.
LEAST_RANGE = 0.1
N_MAIN_SUBJECTS = 8
# The official answers are of 2018 to 2020; a date outside these years is nonsense.
FIRST_ANSWER, AFTER_LAST_ANSWER = "2015-01-01", "2025-01-01"
# With more different numbers than this, the bins of a histogram become wider and wider.
MOST_UNIT_BINS, N_BINS = 30, 24
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    cli.add_folder(parser, "--data_dir", layout.DATA_DIR, "a folder laid out like data/")
    cli.add_folder(parser, "--output_dir", layout.TEST_OUTPUT_DIR)
    return parser


def main() -> None:
    """Read what is there, count it, write the pages."""
    options = build_parser().parse_args()
    if not options.data_dir.is_dir():
        raise InputError(f"{options.data_dir}: not found, expected a folder laid out like data/")
    parts = [part for tasks in TASKS if (part := find_part(options.data_dir, tasks))]
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
            others = [part for part in parts if part["simulated"] != simulated]
            name = PAGE_NAMES[simulated and bool(others)]
            texts[options.output_dir / name] = pages.render(
                "explore.html",
                title="A look at the simulated data" if simulated else "A look at the data",
                tab="",
                simulated=simulated,
                others=others,
                other_name=PAGE_NAMES[not simulated],
                without=[tasks for tasks in TASKS if tasks not in [p["tasks"] for p in parts]],
                parts=[part for part in parts if part["simulated"] == simulated],
                few=FEW_ANSWERS,
                compact=compact,
            )
        bar.update()
    writing.write_files(texts)
    for path in texts:
        print(f"written: {cli.show(path)}")


def find_part(folder: Path, tasks: str) -> dict[str, Any] | None:
    """Find the files of tasks ``1/2`` or ``3/4``, None without training answers, and name metadata
    that are not there, or foreign: simulated ones of real answers, or the other way round.
    """
    ending = f"task_{tasks.replace('/', '_')}.csv"
    train = folder / layout.TRAIN_DIR.name / f"train_{ending}"
    if not reading.is_there(train):
        return None
    reading.require_file(train)
    simulated = provenance.is_simulated(train)
    paths: dict[str, Path] = {"train": train}
    absent, foreign = [], []
    for kind in ("question", "student", "answer", "subject"):
        name = layout.SUBJECT_METADATA if kind == "subject" else f"{kind}_metadata_{ending}"
        path = metadata.find(folder / layout.METADATA_DIR.name, name)
        if path is None:
            absent.append(name)
        elif provenance.is_simulated(path) != simulated:
            foreign.append(name)
        else:
            paths[kind] = path
    facts = {"tasks": tasks, "simulated": simulated, "absent": absent, "foreign": foreign}
    return {**facts, "paths": paths}


# ---- Reading and counting -----------------------------------------------------------------------
# Everything is counted from three frames: `answers` has a row for each training answer; `students`
# and `questions` have one for each id, with its answers as `rate` counts them.


def read_part(tasks: str, files: dict[str, Path], bar: tqdm[Any]) -> dict[str, Any]:
    """Read and count the files of a group of tasks, by kind; return what the template shows."""

    def begin(step: str) -> None:
        bar.update()
        bar.set_description(f"tasks {tasks}: {step}")

    begin("answers")
    answers = read_answers(files["train"], ids=True)
    begin("counts")
    students, questions = (
        rate(answers["IsCorrect"], answers[name]) for name in ("UserId", "QuestionId")
    )
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
    names, main = pd.Series(), pd.Series(-1, questions.index)
    if {"question", "subject"} <= files.keys():
        question_id = questions.index.to_numpy()
        tree = metadata.read_subject_tree(files["subject"])
        about = metadata.read_question_subjects(files["question"], question_id, tree)
        about["QuestionId"] = question_id[about["row"]]
        is_missing = pd.DataFrame({"SubjectId": ~questions.index.isin(about["QuestionId"])})
        part["missing"] += gaps("questions", is_missing)
        part["subjects"] = nest_subjects(tree, about.join(questions, on="QuestionId"))
        part["n_subjects"], part["n_with_questions"] = len(tree), about["subject"].nunique()
        # The first one below the root.
        names = tree["Name"]
        first = about[about["subject"].map(tree["Level"]) == 1].drop_duplicates("QuestionId")
        main = first.set_index("QuestionId")["subject"].reindex(questions.index, fill_value=-1)
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
        figures += times_figures(answers, main, names)
        begin("quizzes")
        figures += [*quizzes_figures(answers), *confidence_figures(answers)]
    if "student" in files:
        figures += birth_figures(students, last_answer)
        for name in ("Gender", "PremiumPupil"):
            known = students[students[name] >= 0]
            part["students"][name] = add_up(known, name).to_dict("index")
    return {**part, "figures": {name: (chart, told) for name, chart, told in figures}}


def rate(is_correct: pd.Series, by: Any) -> pd.DataFrame:
    """Count answers (n) and right answers (n_right), with their share, by one or more keys."""
    # Sums of int8 would stay int8 where they fit.
    groups = is_correct.groupby(by)
    counts = pd.DataFrame({"n": groups.size(), "n_right": groups.sum()}).astype("int64")
    return counts.assign(share=counts["n_right"] / counts["n"])


def add_up(rated: pd.DataFrame, by: Any, index: pd.Index | None = None) -> pd.DataFrame:
    """Add up what `rate` counted by a coarser key; n_rows counts rows; a share of none is NaN."""
    groups = rated.groupby(by)
    counts = groups[["n", "n_right"]].sum().assign(n_rows=groups.size())
    if index is not None:
        counts = counts.reindex(index, fill_value=0)
    return counts.assign(share=counts["n_right"] / counts["n"])


def nest_subjects(tree: pd.DataFrame, about: pd.DataFrame) -> list[dict[str, Any]]:
    """Nest the subjects of `about`, a row for each question and subject, most answers first."""
    rated = add_up(about, "subject").sort_values("n", ascending=False, kind="stable")
    found = {
        place: {**row, "below": []} for place, row in rated.join(tree).to_dict("index").items()
    }
    first: list[Any] = []
    for subject in found.values():
        # A question may lack the subjects above its own.
        above = found.get(subject["parent"])
        (above["below"] if above else first).append(subject)
    return first


def gaps(of: str, is_missing: pd.DataFrame) -> list[dict[str, Any]]:
    """Return how often columns say nothing."""
    n_rows = len(is_missing)
    return [
        {"name": name, "n": n, "n_rows": n_rows, "of": of} for name, n in is_missing.sum().items()
    ]


def read_students(path: Path, students: pd.DataFrame, missing: list[Any]) -> pd.DataFrame:
    """Add what is known about students to their answers, and what is not to `missing`."""
    student_id = students.index.to_numpy()
    found = metadata.read_student_metadata(path, student_id)
    is_missing = found.isna() | (found == -1)
    # The reader leaves dates out that are nonsense.
    stated = np.zeros(len(students), bool)
    if schema.DATE_OF_BIRTH.name in reading.read_header(reading.file_source(path)):
        raw = reading.read_table(path, [schema.USER_ID, schema.DATE_OF_BIRTH])
        stated = np.isin(student_id, raw["UserId"][raw["DateOfBirth"].notna()])
    is_missing.insert(1, "Gender unspecified", found["Gender"] == 0)
    is_missing.insert(3, "DateOfBirth is nonsense", stated & is_missing["DateOfBirth"])
    missing += gaps("students", is_missing.assign(DateOfBirth=~stated))
    return students.join(found.set_index(students.index))


def read_circumstances(path: Path, answers: pd.DataFrame, missing: list[Any]) -> pd.DataFrame:
    """Add how answers came about as columns, without dates that make no sense."""
    found = metadata.read_circumstances(path, answers["AnswerId"].to_numpy())
    is_missing, date = found.isna() | (found == -1), found["DateAnswered"]
    possible = date.between(FIRST_ANSWER, AFTER_LAST_ANSWER, inclusive="left")
    is_missing.insert(1, "DateAnswered is nonsense", date.notna() & ~possible)
    missing += gaps("answers", is_missing)
    found["DateAnswered"] = date.where(possible)
    return answers.assign(**found)


# ---- Figures -------------------------------------------------------------------------------------


def counts_figures(
    answers: pd.DataFrame, students: pd.DataFrame, questions: pd.DataFrame
) -> Iterator[Figure]:
    """Show how many answers students and questions have."""
    n = students["n"]
    tenth = n.nlargest(max(len(n) // 10, 1)).sum() / n.sum()
    yield numbers_figure("per_student", n, "students", "answers of a student", tenth=tenth)
    yield numbers_figure("per_question", questions["n"], "questions", "answers to it")
    student, question = (
        ((rated["n"].rank(method="first", ascending=False) - 1) * 10 // len(rated)).astype("int8")
        for rated in (students, questions)
    )
    tenths = range(10)
    cells = answers.groupby([answers["UserId"].map(student), answers["QuestionId"].map(question)])
    filled = cells.size().unstack(fill_value=0).reindex(index=tenths, columns=tenths, fill_value=0)
    n_pairs = np.outer(*(np.bincount(each, minlength=10) for each in (student, question)))
    share = filled.div(n_pairs).to_numpy()
    names = [f"{10 * n}–{10 * n + 10}%" for n in tenths]
    tooltips = [
        [
            f"students {names[row]}, questions {names[column]}: {share[row, column]:.2%} answered"
            for column in tenths
        ]
        for row in tenths
    ]
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
    yield "sparse", chart, {}


def difficulty_figures(students: pd.DataFrame, questions: pd.DataFrame) -> Iterator[Figure]:
    """Show how difficult questions and how able students are."""
    tables = ("difficulty", questions, "questions"), ("ability", students, "students")
    for name, rated, things in tables:
        share = rated["share"][rated["n"] >= FEW_ANSWERS]
        if len(share):
            chart = shares_chart(share, things, "share of right answers")
            yield name, chart, {"left_out": len(rated) - len(share)}


def options_figures(answers: pd.DataFrame) -> Iterator[Figure]:
    """Show which options are chosen and right, and how the wrong ones of a question compare."""
    if "AnswerValue" not in answers:
        return
    # A row for each question and right option, a column for each option chosen.
    cells = answers.groupby(["QuestionId", "CorrectAnswer", "AnswerValue"]).size()
    counts = cells.unstack(fill_value=0).reindex(columns=OPTIONS, fill_value=0)
    total = counts.groupby("CorrectAnswer").sum().reindex(OPTIONS, fill_value=0)
    found = (np.diag(total) / total.sum(axis=1)).fillna(0)
    panels = [
        Panel("chosen", (total.sum() / len(answers)).tolist(), True),
        Panel("is right", (total.sum(axis=1) / len(answers)).tolist(), False),
        Panel("chosen where right", found.tolist(), False),
    ]
    chart: Chart = partial(charts.bar_panels, panels, [*map(str, OPTIONS)], axis="option")
    yield "options", chart, {}
    # A few questions have had their key changed: their distractors are those of the usual key.
    usual = counts.loc[counts.sum(axis=1).groupby("QuestionId").idxmax()]
    usual = usual[usual.sum(axis=1) >= FEW_ANSWERS]
    key = usual.index.get_level_values("CorrectAnswer").to_numpy()
    wrong = -np.sort(-usual.to_numpy()[np.array(OPTIONS) != key[:, None]].reshape(-1, 3), axis=1)
    if not wrong.any():
        return
    some = wrong[wrong.any(axis=1)]
    attraction = (some / some.sum(axis=1, keepdims=True)).mean(axis=0).tolist()
    dots = [
        Dot(f"{name} attractive", share)
        for name, share in zip(("most", "middle", "least"), attraction, strict=True)
    ]
    axis = "share of the wrong answers"
    chart = partial(charts.dot_chart, dots, digits=2, limits=(0, 1), chance=1 / 3, axis=axis)
    yield "attraction", chart, {"n": len(wrong)}
    shares = pd.Series((wrong / usual.sum(axis=1).to_numpy()[:, None]).ravel())
    chart = shares_chart(shares, "distractors", "share of the answers to its question")
    facts = {"weak": WEAK_SHARE, "are_weak": (shares < WEAK_SHARE).mean()}
    yield "distractors", chart, facts


def times_figures(answers: pd.DataFrame, main: pd.Series, names: pd.Series) -> Iterator[Figure]:
    """Show when answers were given, and on which subject: `main`, by QuestionId, -1 for none."""
    hour = answers["DateAnswered"].dt.floor("h")
    if hour.isna().all():
        return
    # The answers of each hour about each subject: a small table, from which all else is added up.
    subject = answers["QuestionId"].map(main).rename("subject")
    rated = rate(answers["IsCorrect"], [hour.rename("hour"), subject]).reset_index()
    when = rated["hour"].dt
    month = when.to_period("M")
    months = pd.period_range(hour.min(), hour.max(), freq="M")
    named = range(1, 13) if len(months) <= 6 else (1, 5, 9)
    ticks = [f"{each:%b %y}" if each.month in named else "" for each in months]
    of_month = add_up(rated, month, months)
    chart: Chart = partial(
        column_chart,
        of_month["n"].tolist(),
        say_rates(months.strftime("%b %Y"), of_month),
        [(place + 0.5, tick) for place, tick in enumerate(ticks) if tick],
        axis="month",
        unit="answers",
    )
    yield "months", chart, {"first": hour.min(), "last": hour.max()}

    about = rated[rated["subject"] >= 0]
    n = about.pivot_table("n", "subject", month, "sum", fill_value=0)
    n = n.reindex(columns=months, fill_value=0)
    total = n.sum()
    if total.max() >= ENOUGH_FOR_A_SHADE:
        most = n.sum(axis=1).sort_values(ascending=False, kind="stable").head(N_MAIN_SUBJECTS)
        n = n.loc[most.index].set_axis(names[most.index])
        tooltips = [
            [
                f"{name}, {each:%b %Y}: {count:,} answers of {of:,}"
                for each, count, of in zip(months, counts, total, strict=True)
            ]
            for name, *counts in n.itertuples()
        ]
        chart = partial(
            heat_map,
            (n / total.where(total >= ENOUGH_FOR_A_SHADE)).to_numpy(),
            n.index.tolist(),
            ticks,
            tooltips,
            axis="month",
            key=lambda value: f"{value:.0%} of the month",
        )
        yield "subjects_by_month", chart, {"most": N_MAIN_SUBJECTS}

    week = pd.MultiIndex.from_product([WEEKDAYS, range(24)])
    day = when.day_of_week.map(dict(enumerate(WEEKDAYS)))
    of_week = add_up(rated, [day.rename("day"), when.hour.rename("at")], week)
    of_hours = say_rates([f"{day} {hour}:00 to {hour}:59" for day, hour in week], of_week)
    week_chart = partial(
        heat_map,
        row_names=WEEKDAYS,
        column_names=[f"{hour}:00" if hour % 6 == 0 else "" for hour in range(24)],
        tooltips=np.reshape(of_hours, (7, 24)).tolist(),
        axis="hour",
    )
    shades = of_week["n"].where(of_week["n"] > 0).to_numpy(float).reshape(7, 24)
    chart = partial(week_chart, shades, key=lambda n: f"{compact(n)} answers")
    yield "week", chart, {"busiest": of_week["n"].idxmax()}
    share = of_week["share"].where(of_week["n"] >= ENOUGH_FOR_A_SHADE)
    if share.notna().any():
        more = max(LEAST_RANGE - (share.max() - share.min()), 0) / 2
        limits = max(share.min() - more, 0), min(share.max() + more, 1)
        shades = share.to_numpy().reshape(7, 24)
        chart = partial(week_chart, shades, key=lambda value: f"{value:.0%} right", limits=limits)
        yield "right_in_week", chart, {"enough": ENOUGH_FOR_A_SHADE}


def quizzes_figures(answers: pd.DataFrame) -> Iterator[Figure]:
    """Show what makes up quizzes and groups."""
    for name, owner, member, things, axis in (
        ("per_quiz", "QuizId", "QuestionId", "quizzes", "questions of a quiz"),
        ("sittings", "QuizId", "UserId", "sittings", "answers of one student in one quiz"),
        ("per_group", "GroupId", "UserId", "groups", "students of a group"),
    ):
        known = answers[answers[owner] >= 0]
        if not len(known):
            continue
        # Each pair as one number: much quicker to sort than two columns.
        pairs = known[owner].to_numpy().astype(np.int64) << 32 | known[member].to_numpy()
        pairs, n = np.unique(pairs, return_counts=True)
        if things != "sittings":
            n = np.unique(pairs >> 32, return_counts=True)[1]
        yield numbers_figure(name, pd.Series(n), things, axis)


def confidence_figures(answers: pd.DataFrame) -> Iterator[Figure]:
    """Show how right answers are, by how sure students said they were."""
    rated = rate(answers["IsCorrect"], 25 * (answers["Confidence"] / 25).round())
    dots = [
        Dot(f"{level:.0f}% sure ({compact(n)})", share, mark=level / 100)
        for level, n, _, share in rated[rated["n"] >= FEW_ANSWERS].itertuples()
    ]
    if dots:
        axis = "share of right answers"
        chart = partial(charts.dot_chart, dots, digits=2, limits=(0, 1), axis=axis)
        yield "confidence", chart, {"asked": rated["n"].sum() / len(answers)}


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
        [(place + 0.5, str(year)) for place, year in enumerate(years)],
        axis="year of birth",
        unit="students",
    )
    last = None if pd.isna(last_answer) else last_answer.year
    yield "birth", chart, {"commonest": born["n_rows"].idxmax(), "last": last}


# ---- Charts of many figures ----------------------------------------------------------------------


def numbers_figure(name: str, values: pd.Series, things: str, axis: str, **facts: float) -> Figure:
    """Show how many things have which whole number from 1 on; `axis` says what the numbers are."""
    edges = bin_edges(int(values.min()), int(values.max()) + 1)
    counts, _ = np.histogram(values, edges)
    is_wide = len(counts) < edges[-1] - edges[0]
    # All bins are drawn equally wide; a single number's name is below the middle of its column.
    scale: Callable[[Any], Any] = np.log if is_wide else np.asarray
    middle = 0 if is_wide else 0.5

    def place(number: float) -> float:
        return float(np.interp(scale(number), scale(edges), np.arange(len(edges)))) + middle

    numbers = round_numbers(edges) if is_wide else edges[:-1].tolist()
    median = f"{values.median():,.0f}"
    chart = partial(
        column_chart,
        counts.tolist(),
        [
            f"{low:,}{f' to {high - 1:,}' if high > low + 1 else ''}: {count:,} {things}"
            for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
        ],
        [(place(number), f"{number:,}") for number in numbers],
        axis=axis,
        unit=things,
        mark=(place(values.median()), f"median {median}"),
    )
    return name, chart, {**facts, "median": median, "is_wide": is_wide}


def bin_edges(low: int, high: int) -> np.ndarray:
    """Return the edges of bins for whole numbers below `high`: one each, or wider and wider."""
    if high - low <= MOST_UNIT_BINS:
        return np.arange(low, high + 1)
    # None narrower than the one before: bins of one and two numbers in turn would look like teeth.
    growth = (high / low) ** (1 / N_BINS) - 1
    edges, width = [low], 1
    while edges[-1] < high:
        width = max(width, round(edges[-1] * growth))
        edges.append(edges[-1] + width)
    return np.array(edges)


def round_numbers(edges: np.ndarray) -> list[int]:
    """Return whole numbers to be named on a logarithmic scale, increasing."""
    for digits in ((10, 20, 50), (10, 15, *range(20, 100, 10))):
        tenths = [digit * 10**power for power in range(8) for digit in digits]
        found = [n // 10 for n in tenths if n % 10 == 0 and edges[0] <= n / 10 <= edges[-1]]
        if len(found) >= 4:
            break
    return found


def shares_chart(shares: pd.Series, things: str, axis: str) -> Chart:
    """Draw how many things have which share, in twentieths."""
    # Shares such as 0.15 belong to the bin that starts there, whatever their last binary digit.
    place = np.floor(shares * 20 + 1e-9).clip(upper=19).astype(int)
    counts = np.bincount(place, minlength=20).tolist()
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
    names: Iterable[str], rated: pd.DataFrame, n: str = "n", of: str = "answers"
) -> list[str]:
    """Say for each name how many there are of something, and the share of right answers."""
    return [
        f"{name}: {n:,} {of}" + (f", {share:.0%} right" if n else "")
        for name, n, share in zip(names, rated[n], rated["share"], strict=True)
    ]


if __name__ == "__main__":
    cli.run(main)
