"""What the page about the data shows of a group of tasks: what is counted and said.

Everything is counted from three frames. `answers` has a row for each training answer, with the
official column names; `students` and `questions` have a row for each id, with its answers as
`rate` counts them. A figure is a title, a chart, to be drawn once it has a label, and a sentence
on how to read it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import charts, io, metadata, schema
from common.answers import read_answers
from common.charts import Dot, Panel, compact
from common.schema import OPTIONS

import numpy as np
import pandas as pd
from exploration_charts import (
    WEEKDAYS,
    Figure,
    filled_chart,
    month_ticks,
    numbers_figure,
    say_rates,
    shares_chart,
    week_chart,
)

if TYPE_CHECKING:
    from explore import Files
    from tqdm import tqdm

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
FIRST_ANSWER, AFTER_LAST_ANSWER = pd.Timestamp(2015, 1, 1), pd.Timestamp(2025, 1, 1)
MISSING_INTRO = (
    "For which share of the training answers, and of the students and questions in them, a column "
    "says nothing: the cell is empty, or there is no row. A date is nonsense if no pupil can have "
    "it."
)

# A name, a share for its bar, figures, whether they rest on few answers, lines below it, and
# whether these are shown at once.
Line = dict[str, Any]


@dataclass(frozen=True)
class Section:
    """A part of the page: a text, lines with bars by their heading, figures, another text."""

    intro: str = ""
    lines: dict[str, list[Line]] = field(default_factory=dict)
    figures: list[Figure] = field(default_factory=list)
    note: str = ""


@dataclass(frozen=True)
class Part:
    """What the page shows of a group of tasks: figures at its top, then sections by name."""

    files: "Files"
    tiles: list[tuple[str, str]]
    sections: dict[str, Section]


def rate(is_correct: pd.Series, by: Any) -> pd.DataFrame:
    """Count answers (n) and right answers (n_right), with their share, by one or more keys."""
    # Sums of int8 would stay int8 where they fit.
    groups = is_correct.groupby(by)
    counts = pd.DataFrame({"n": groups.size(), "n_right": groups.sum()}).astype("int64")
    return counts.assign(share=counts["n_right"] / counts["n"])


def add_up(rated: pd.DataFrame, by: Any, index: pd.Index | None = None) -> pd.DataFrame:
    """Add up what `rate` counted by a coarser key, with the number of rows added (n_rows).

    With an index, the result has exactly its rows; the share of no answers is NaN.
    """
    groups = rated.groupby(by)
    counts = groups[["n", "n_right"]].sum().assign(n_rows=groups.size())
    if index is not None:
        counts = counts.reindex(index, fill_value=0)
    return counts.assign(share=counts["n_right"] / counts["n"])


# ---- Reading and counting -----------------------------------------------------------------------


def read_part(files: "Files", bar: "tqdm[Any]") -> Part:
    """Read and count what a group of tasks has."""

    def begin(step: str) -> None:
        bar.update()
        bar.set_description(f"tasks {files.tasks}: {step}")

    begin("answers")
    answers = read_answers(files.train, ids=True)
    begin("counts")
    students, questions = (
        rate(answers["IsCorrect"], answers[name]) for name in ("UserId", "QuestionId")
    )
    tiles = [
        (f"{len(answers):,}", "training answers"),
        (f"{len(students):,}", "students"),
        (f"{len(questions):,}", "questions"),
        (f"{len(answers) / len(students) / len(questions):.2%}", "of all pairs answered"),
        (f"{answers['IsCorrect'].mean():.1%}", "of the answers right"),
    ]
    sections = {
        "Answers": Section(figures=[*counts_figures(answers, students, questions)]),
        "Difficulty": Section(figures=[*difficulty_figures(students, questions)]),
        "Options": Section(figures=[*options_figures(answers)]),
    }
    begin("subjects")
    missing: list[Line] = []
    subjects, students_known, names = Section(), Section(), []
    main = pd.Series(-1, questions.index)
    if {"question", "subject"} <= files.metadata.keys():
        tree = metadata.read_subject_tree(files.metadata["subject"])
        names = tree["Name"].tolist()
        about = read_subjects(files.metadata["question"], questions, tree, missing)
        subjects = subjects_section(tree, about)
        # The first one below the root.
        first = about[about["subject"].map(tree["Level"]) == 1].drop_duplicates("QuestionId")
        main = first.set_index("QuestionId")["subject"].reindex(questions.index, fill_value=-1)
    if "student" in files.metadata:
        students = read_students(files.metadata["student"], students, missing)
    begin("circumstances")
    last_answer: Any = pd.NaT
    if "answer" in files.metadata and "AnswerId" in answers:
        answers = read_circumstances(files.metadata["answer"], answers, missing)
        last_answer = answers["DateAnswered"].max()
        for name, things in (
            ("QuizId", "quizzes"),
            ("GroupId", "groups (classes)"),
            ("SchemeOfWorkId", "schemes of work"),
        ):
            n = answers[name][answers[name] >= 0].nunique()
            tiles += [(f"{n:,}", things)] * bool(n)
        begin("dates")
        sections["Times"] = Section(figures=[*times_figures(answers, main, names)])
        begin("quizzes")
        sections |= {
            "Quizzes and groups": Section(figures=[*quizzes_figures(answers)]),
            "Confidence": Section(figures=[*confidence_figures(answers)]),
        }
    if "student" in files.metadata:
        students_known = students_section(students, last_answer)
    sections |= {
        "Subjects": subjects,
        "Students": students_known,
        "What is missing": Section(MISSING_INTRO, {"": missing}) if missing else Section(),
    }
    return Part(files, tiles, {name: each for name, each in sections.items() if each != Section()})


def read_subjects(
    path: Path, questions: pd.DataFrame, tree: pd.DataFrame, missing: list[Line]
) -> pd.DataFrame:
    """Return a row for each question and subject of it, with the answers to the question."""
    question_id = questions.index.to_numpy()
    found = metadata.read_question_subjects(path, question_id, tree)
    found["QuestionId"] = question_id[found["row"]]
    missing.append(gap("SubjectId", ~questions.index.isin(found["QuestionId"]), "questions"))
    return found.join(questions, on="QuestionId")


def read_students(path: Path, students: pd.DataFrame, missing: list[Line]) -> pd.DataFrame:
    """Add what is known about students to their answers, and what is not to `missing`."""
    student_id = students.index.to_numpy()
    found = metadata.read_student_metadata(path, student_id)
    is_known = found["DateOfBirth"].notna().to_numpy()
    # The reader leaves dates out that are nonsense.
    stated = np.zeros(len(students), bool)
    if schema.DATE_OF_BIRTH.name in io.read_header(io.file_source(path)):
        raw = io.read_columns(path, [schema.USER_ID, schema.DATE_OF_BIRTH])
        stated = np.isin(student_id, raw["UserId"][~np.isnat(raw["DateOfBirth"])])
    missing += [
        gap("Gender", found["Gender"] < 0, "students"),
        gap("Gender unspecified", found["Gender"] == 0, "students"),
        gap("DateOfBirth", ~stated, "students"),
        gap("DateOfBirth is nonsense", stated & ~is_known, "students"),
        gap("PremiumPupil", found["PremiumPupil"] < 0, "students"),
    ]
    return students.join(found.set_index(students.index))


def read_circumstances(path: Path, answers: pd.DataFrame, missing: list[Line]) -> pd.DataFrame:
    """Add how answers came about as columns, without dates that make no sense."""
    found = metadata.read_circumstances(path, answers["AnswerId"].to_numpy())
    date = found["DateAnswered"]
    possible = date.between(FIRST_ANSWER, AFTER_LAST_ANSWER, inclusive="left")
    missing += [
        gap("DateAnswered", date.isna(), "answers"),
        gap("DateAnswered is nonsense", date.notna() & ~possible, "answers"),
        gap("Confidence", found["Confidence"].isna(), "answers"),
        *(
            gap(name, found[name] < 0, "answers")
            for name in ("GroupId", "QuizId", "SchemeOfWorkId")
        ),
    ]
    found["DateAnswered"] = date.where(possible)
    return answers.assign(**found)


# ---- Sections of lines --------------------------------------------------------------------------


def gap(column: str, is_missing: Any, of: str) -> Line:
    """Return a line that says how often a column says nothing."""
    n, n_rows = int(is_missing.sum()), len(is_missing)
    figures = f"{percent(n, n_rows)} · {n:,} of {n_rows:,} {of}"
    return {"name": column, "share": n / n_rows, "figures": figures}


def percent(n: int, total: int) -> str:
    """Write a share so that only none is 0% and only all is 100%."""
    share = n / total
    if 0 < share < 0.001:
        return "< 0.1%"
    return "> 99.9%" if 0.999 < share < 1 else f"{share:.1%}"


def subjects_section(tree: pd.DataFrame, about: pd.DataFrame) -> Section:
    """Show the tree of subjects, those with most answers first."""
    rated = add_up(about, "subject").sort_values("n", ascending=False, kind="stable")
    lines: dict[int, Line] = {
        place: {
            "name": tree.loc[place, "Name"],
            "share": share,
            "figures": f"{n_questions:,} question{'s' * (n_questions != 1)} · "
            f"{compact(n)} answer{'s' * (n != 1)} · {share:.0%} right",
            "few": n < FEW_ANSWERS,
            "is_open": tree.loc[place, "Level"] == 0,
            "below": [],
        }
        for place, n, _, n_questions, share in rated.itertuples()
    }
    first: list[Line] = []
    for place, line in lines.items():
        # A question may lack the subjects above its own.
        above = lines.get(int(tree["parent"][place]))
        (above["below"] if above else first).append(line)
    return Section(
        f"{len(lines):,} of the {len(tree):,} subjects have questions. A question counts for "
        "every subject on its way from the root, so the levels overlap. The bar is the share of "
        f"right answers; grey ones rest on fewer than {FEW_ANSWERS} answers. Open a line to see "
        "what lies below.",
        {"": first},
    )


def students_section(students: pd.DataFrame, last_answer: pd.Timestamp) -> Section:
    """Show who the students are."""
    lines = {}
    for title, column, names in (
        ("Gender", "Gender", ("unspecified", "female", "male", "other")),
        (
            "Pupil premium (entitled to it for financial need)",
            "PremiumPupil",
            ("not entitled", "entitled"),
        ),
    ):
        known = students[students[column] >= 0]
        lines[title] = [
            {
                "name": names[value],
                "share": share,
                "figures": f"{n_students:,} students ({percent(n_students, len(known))}) · "
                f"{compact(n)} answers · {share:.1%} right",
                "few": n < FEW_ANSWERS,
            }
            for value, n, _, n_students, share in add_up(known, column).itertuples()
        ]
    return Section(
        "The bar is the share of right answers, of all answers that the students gave.",
        {title: own for title, own in lines.items() if own},
        [*birth_figures(students, last_answer)],
        "Differences between groups are no effects: they meet other questions, in other schools, "
        "and who states what is no matter of chance.",
    )


# ---- Sections of figures ------------------------------------------------------------------------


def counts_figures(
    answers: pd.DataFrame, students: pd.DataFrame, questions: pd.DataFrame
) -> Iterator[Figure]:
    """Show how many answers students and questions have."""
    n = students["n"]
    tenth = n.nlargest(max(len(n) // 10, 1)).sum() / n.sum()
    yield numbers_figure(
        "Answers per student", n, "students", "answers of a student",
        "Each column: how many students have so many answers; half have {median} or more. The "
        f"tenth with most answers gave {tenth:.0%} of them.",
    )  # fmt: skip
    yield numbers_figure(
        "Answers per question", questions["n"], "questions", "answers to it",
        "Each column: how many questions have so many answers; half have {median} or more.",
    )  # fmt: skip
    yield (
        "How sparse it is",
        filled_chart(answers, students["n"], questions["n"]),
        "Students and questions in tenths by their numbers of answers. The darker a field, the "
        "more of its pairs of student and question have an answer: most of the knowledge is in one "
        "corner, and a model must fill in the rest.",
    )


def difficulty_figures(students: pd.DataFrame, questions: pd.DataFrame) -> Iterator[Figure]:
    """Show how difficult questions and how able students are."""
    for rated, things, title, sentence in (
        (
            questions, "questions", "How difficult the questions are",
            "Columns on the left are hard questions, which few answer right; four options make "
            "25% possible by guessing.",
        ),
        (
            students, "students", "How able the students are",
            "Columns on the right are students who answer most of their questions right; those of "
            "one student may be harder than another's.",
        ),
    ):  # fmt: skip
        share = rated["share"][rated["n"] >= FEW_ANSWERS]
        out = len(rated) - len(share)
        if out:
            sentence += f" {out:,} with fewer than {FEW_ANSWERS} answers are left out."
        if len(share):
            chart = shares_chart(share, things, "share of right answers")
            yield title, chart, sentence


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
    yield (
        "The four options",
        partial(charts.bar_panels, panels, [str(option) for option in OPTIONS], axis="option"),
        "How often each option is chosen, how often it is the right one, and how often it is "
        "chosen where it is right. Equal heights in each block would mean that the place of an "
        "option tells nothing.",
    )
    # A few questions have had their key changed: their distractors are those of the usual key.
    n = counts.sum(axis=1)
    usual = counts.loc[n.groupby("QuestionId").idxmax()]
    usual = usual[usual.sum(axis=1) >= FEW_ANSWERS]
    key = usual.index.get_level_values("CorrectAnswer").to_numpy()
    is_wrong = np.array(OPTIONS) != key[:, None]
    wrong = -np.sort(-usual.to_numpy()[is_wrong].reshape(-1, 3), axis=1)
    if not wrong.any():
        return
    some = wrong[wrong.any(axis=1)]
    attraction = (some / some.sum(axis=1, keepdims=True)).mean(axis=0)
    dots = [
        Dot(f"{name} attractive", float(share))
        for name, share in zip(("most", "middle", "least"), attraction, strict=True)
    ]
    yield (
        "Which distractor attracts",
        partial(
            charts.dot_chart, dots, digits=2, limits=(0, 1), chance=1 / 3,
            axis="share of the wrong answers",
        ),
        f"Of the {len(wrong):,} questions with at least {FEW_ANSWERS} answers, the mean share of "
        "the wrong answers that fall on the most, middle and least attractive wrong option. At the "
        "dashed line all three would attract equally; the further apart, the more wrong answers "
        "point to one misconception.",
    )  # fmt: skip
    shares = pd.Series((wrong / usual.sum(axis=1).to_numpy()[:, None]).ravel())
    yield (
        "How often distractors are chosen",
        shares_chart(shares, "distractors", "share of the answers to its question"),
        f"Three distractors for each question; {(shares < WEAK_SHARE).mean():.0%} of them are "
        f"chosen in less than {WEAK_SHARE:.0%} of the answers and hardly attract anybody.",
    )


def times_figures(answers: pd.DataFrame, main: pd.Series, names: Sequence[str]) -> Iterator[Figure]:
    """Show when answers were given, and about what.

    `main` is the number in `names` of the subject of each QuestionId, -1 for none.
    """
    hour = answers["DateAnswered"].dt.floor("h")
    if hour.isna().all():
        return
    # The answers of each hour about each subject: a small table, from which all else is added up.
    subject = answers["QuestionId"].map(main).rename("subject")
    rated = rate(answers["IsCorrect"], [hour.rename("hour"), subject]).reset_index()
    when = rated["hour"].dt
    first, last = (f"{date.day} {date:%b %Y}" for date in (hour.min(), hour.max()))
    months = pd.period_range(hour.min(), hour.max(), freq="M")
    of_month = add_up(rated, when.to_period("M"), months)
    ticks = month_ticks(months)
    yield (
        "Answers by month",
        partial(
            charts.column_chart,
            of_month["n"].tolist(),
            say_rates(months.strftime("%b %Y"), of_month),
            [(place + 0.5, tick) for place, tick in enumerate(ticks) if tick],
            axis="month",
            unit="answers",
        ),
        f"From {first} to {last}, a column for each month. Where students answer at school, "
        "holidays show as low columns.",
    )
    about = rated[rated["subject"] >= 0]
    n = about.pivot_table("n", "subject", when.to_period("M"), "sum", fill_value=0)
    n = n.reindex(columns=months, fill_value=0)
    n = n.loc[n.sum(axis=1).sort_values(ascending=False, kind="stable").index]
    if n.sum().max() >= ENOUGH_FOR_A_SHADE:
        total = n.sum()
        n = n.head(N_MAIN_SUBJECTS)
        shown = [names[subject] for subject in n.index]
        tooltips = [
            [
                f"{name}, {month:%b %Y}: {count:,} answers of {of:,}"
                for month, count, of in zip(months, counts, total, strict=True)
            ]
            for name, counts in zip(shown, n.to_numpy(), strict=True)
        ]
        yield (
            "What in which month",
            partial(
                charts.heat_map,
                (n / total.where(total >= ENOUGH_FOR_A_SHADE)).to_numpy(),
                shown,
                ticks,
                tooltips,
                axis="month",
                key=lambda value: f"{value:.0%} of the month",
            ),
            "The darker a field, the larger the subject's share of that month's answers, for up to "
            f"{N_MAIN_SUBJECTS} subjects below the root. Where rows change from month to month, "
            "classes go from topic to topic.",
        )
    week = pd.MultiIndex.from_product([range(7), range(24)])
    of_week = add_up(rated, [when.dayofweek.rename("day"), when.hour.rename("at")], week)
    day, busiest = divmod(int(of_week["n"].argmax()), 24)
    yield (
        "When in the week",
        week_chart(
            of_week,
            of_week["n"].astype(float).where(of_week["n"] > 0),
            key=lambda n: f"{compact(n)} answers",
        ),
        "The darker a field, the more answers in that hour of the week; most in that of "
        f"{WEEKDAYS[day]} {busiest}:00. No time zone is stated.",
    )
    share = of_week["share"].where(of_week["n"] >= ENOUGH_FOR_A_SHADE)
    if share.notna().any():
        more = max(LEAST_RANGE - (share.max() - share.min()), 0) / 2
        yield (
            "Right when in the week",
            week_chart(
                of_week,
                share,
                key=lambda value: f"{value:.0%} right",
                limits=(max(share.min() - more, 0), min(share.max() + more, 1)),
            ),
            "The darker a field, the larger the share of right answers in that hour; hours with "
            f"fewer than {ENOUGH_FOR_A_SHADE} answers are empty. The hour is no cause: other "
            "students answer other questions at other times.",
        )


def quizzes_figures(answers: pd.DataFrame) -> Iterator[Figure]:
    """Show what makes up quizzes and groups."""
    for owner, member, title, things, axis, sentence in (
        (
            "QuizId", "QuestionId", "Questions per quiz", "quizzes", "questions of a quiz",
            "How many quizzes have so many questions; the median is",
        ),
        (
            "QuizId", "UserId", "Answers of a student in a quiz", "sittings",
            "answers of one student in one quiz",
            "A sitting is all that one student answered in one quiz; the median is",
        ),
        (
            "GroupId", "UserId", "Students per group", "groups", "students of a group",
            "A group is mostly a class; the median size is",
        ),
    ):  # fmt: skip
        known = answers[answers[owner] >= 0]
        if not len(known):
            continue
        # Each pair as one number: much quicker to sort than two columns.
        pairs = known[owner].to_numpy().astype(np.int64) << 32 | known[member].to_numpy()
        pairs, n = np.unique(pairs, return_counts=True)
        if things != "sittings":
            n = np.unique(pairs >> 32, return_counts=True)[1]
        sentence += " {median}; training answers only."
        yield numbers_figure(title, pd.Series(n), things, axis, sentence)


def confidence_figures(answers: pd.DataFrame) -> Iterator[Figure]:
    """Show how right answers are, by how sure students said they were."""
    # Whole quarters.
    level = 25 * (answers["Confidence"] / 25).round()
    rated = rate(answers["IsCorrect"], level)
    asked = rated["n"].sum() / len(answers)
    rated = rated[rated["n"] >= FEW_ANSWERS]
    dots = [
        Dot(f"{level:.0f}% sure ({compact(n)})", share, mark=level / 100)
        for level, n, share in zip(rated.index, rated["n"], rated["share"], strict=True)
    ]
    if dots:
        yield (
            "Confidence and correctness",
            partial(charts.dot_chart, dots, digits=2, limits=(0, 1), axis="share of right answers"),
            f"{asked:.1%} of the answers come with a confidence (in brackets: how many). Dot: "
            "share of these that is right; diamond: the confidence itself. Left of its diamond, a "
            "dot says that students overrate themselves.",
        )


def birth_figures(students: pd.DataFrame, last_answer: pd.Timestamp) -> Iterator[Figure]:
    """Show when students were born; `last_answer` is NaT where no date is known."""
    year = students["DateOfBirth"].dt.year
    if year.isna().all():
        return
    years = pd.RangeIndex(int(year.min()), int(year.max()) + 1)
    born = add_up(students, year, years)
    sentence = (
        "How many students were born in which year, of those whose date of birth is known and "
        "makes sense."
    )
    if not pd.isna(last_answer):
        commonest = years[int(born["n_rows"].argmax())]
        sentence += (
            f" Those of the most common year, {commonest}, turned {last_answer.year - commonest} "
            f"in {last_answer.year}."
        )
    yield (
        "Year of birth",
        partial(
            charts.column_chart,
            born["n_rows"].tolist(),
            say_rates([f"born in {year}" for year in years], born, "n_rows", "students"),
            [(place + 0.5, str(year)) for place, year in enumerate(years)],
            axis="year of birth",
            unit="students",
        ),
        sentence,
    )
