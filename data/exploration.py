"""What the page about the data shows of a group of tasks: what is counted, drawn and said.

Everything is counted from three frames. `answers` has a row for each training answer, with the
official column names; `students` and `questions` have a row for each id, with its answers as
`rate` counts them. A figure is a title, a chart, to be drawn once it has a label, and a sentence
on how to read it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from common import charts
from common.charts import Dot, Mark, Panel, compact
from common.schema import OPTIONS

import numpy as np
import pandas as pd

Figure = tuple[str, Callable[..., str], str]

# A share that rests on fewer answers is mostly chance.
FEW_ANSWERS = 20
# A distractor that is chosen in a smaller share of a question's answers attracts hardly anybody.
WEAK_SHARE = 0.05
# An hour of the week, or a month, is shaded from so many answers on.
ENOUGH_FOR_A_SHADE = 100
# What the shades of shares of right answers span at least: small differences are to look small.
LEAST_RANGE = 0.1
N_MAIN_SUBJECTS = 8
# With more different numbers than this, the bins of a histogram become wider and wider.
MOST_UNIT_BINS, N_BINS = 30, 24
# With more months than this, only years are named below them.
MANY_MONTHS = 30
# The official answers are of 2018 to 2020; a date outside these years is nonsense.
FIRST_ANSWER, AFTER_LAST_ANSWER = pd.Timestamp(2015, 1, 1), pd.Timestamp(2025, 1, 1)
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


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


# ---- Sections -----------------------------------------------------------------------------------


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


# ---- Charts -------------------------------------------------------------------------------------


def numbers_figure(title: str, values: pd.Series, things: str, axis: str, sentence: str) -> Figure:
    """Show how many things have which whole number from 1 on; `axis` says what the numbers are."""
    edges = bin_edges(values)
    counts, _ = np.histogram(values, edges)
    is_wide = len(counts) < edges[-1] - edges[0]
    scale: Callable[[Any], Any] = np.log if is_wide else np.asarray

    def place(value: float) -> float:
        """Return where a value lies if every bin is as wide as the others."""
        return float(np.interp(scale(value), scale(edges), np.arange(len(edges))))

    # The name of a single number stands below the middle of its column.
    middle = 0 if is_wide else 0.5
    numbers = round_numbers(edges) if is_wide else edges[:-1].tolist()
    median = values.median()
    chart = partial(
        charts.column_chart,
        counts.tolist(),
        [
            f"{low:,}{f' to {high - 1:,}' if high > low + 1 else ''}: {count:,} {things}"
            for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
        ],
        [(place(number) + middle, f"{number:,}") for number in numbers],
        axis=axis,
        unit=things,
        mark=Mark(place(median) + middle, f"median {median:,.0f}"),
    )
    note = " Logarithmic scale." if is_wide else ""
    return title, chart, sentence.format(median=f"{median:,.0f}") + note


def bin_edges(values: pd.Series) -> np.ndarray:
    """Return the edges of bins for whole numbers from 1 on: one each, or wider and wider."""
    low, high = int(values.min()), int(values.max()) + 1
    if high - low <= MOST_UNIT_BINS:
        return np.arange(low, high + 1)
    # Each at least as wide as the one before: bins of one and of two numbers in turn would draw
    # teeth where there are none.
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


def shares_chart(shares: pd.Series, things: str, axis: str) -> Callable[..., str]:
    """Draw how many things have which share, in twentieths."""
    # Shares such as 0.15 belong to the bin that starts there, whatever their last binary digit.
    place = np.floor(shares * 20 + 1e-9).clip(upper=19).astype(int)
    counts = np.bincount(place, minlength=20).tolist()
    median = shares.median()
    return partial(
        charts.column_chart,
        counts,
        [f"{5 * at}% to {5 * at + 5}%: {n:,} {things}" for at, n in enumerate(counts)],
        [(float(at), f"{5 * at}%") for at in range(0, 21, 4)],
        axis=axis,
        unit=things,
        mark=Mark(20 * median, f"median {median:.0%}"),
    )


def filled_chart(
    answers: pd.DataFrame, n_of_student: pd.Series, n_of_question: pd.Series
) -> Callable[..., str]:
    """Draw which share of the pairs of students and questions is answered, by tenths of both."""
    student, question = (
        ((n.rank(method="first", ascending=False) - 1) * 10 // len(n)).astype("int8")
        for n in (n_of_student, n_of_question)
    )
    cells = [answers["UserId"].map(student), answers["QuestionId"].map(question)]
    tenths = range(10)
    n = answers.groupby(cells).size().unstack(fill_value=0)
    n = n.reindex(index=tenths, columns=tenths, fill_value=0)
    n_pairs = np.outer(*(np.bincount(each, minlength=10) for each in (student, question)))
    share = n.div(n_pairs).to_numpy()
    names = [f"{10 * n}–{10 * n + 10}%" for n in tenths]
    tooltips = [
        [
            f"students {names[row]}, questions {names[column]}: {share[row, column]:.2%} answered"
            for column in tenths
        ]
        for row in tenths
    ]
    ends = ["most", *[""] * 8, "fewest"]
    return partial(
        charts.heat_map,
        share,
        ends,
        ends,
        tooltips,
        axis="questions, those with most answers first",
        side="students, those with most answers first",
        key=lambda value: f"{100 * value:.3g}% answered",
    )


def week_chart(of_week: pd.DataFrame, values: pd.Series, **options: Any) -> Callable[..., str]:
    """Draw a value for each hour of the week."""
    names = [f"{day} {hour}:00 to {hour}:59" for day in WEEKDAYS for hour in range(24)]
    tooltips = say_rates(names, of_week)
    return partial(
        charts.heat_map,
        values.to_numpy().reshape(7, 24),
        WEEKDAYS,
        [f"{hour}:00" if hour % 6 == 0 else "" for hour in range(24)],
        [tooltips[24 * day : 24 * day + 24] for day in range(7)],
        axis="hour",
        **options,
    )


def say_rates(
    names: Iterable[str], rated: pd.DataFrame, n: str = "n", of: str = "answers"
) -> list[str]:
    """Say for each name how many there are of something, and the share of right answers."""
    return [
        f"{name}: {n:,} {of}" + (f", {share:.0%} right" if n else "")
        for name, n, share in zip(names, rated[n], rated["share"], strict=True)
    ]


def month_ticks(months: pd.PeriodIndex) -> list[str]:
    """Return a short name for some months, nothing for the others."""
    if len(months) > MANY_MONTHS:
        return [str(month.year) if month.month == 1 else "" for month in months]
    named = range(1, 13) if len(months) <= 6 else (1, 5, 9)
    return [f"{month:%b %y}" if month.month in named else "" for month in months]
