"""Where predictions are right and where they are not: accuracy in groups of answers.

Answers of one student are not independent, so every interval counts a student's answers as one
cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from common import schema

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:  # Importing it takes 0.2 s.
    import pandas as pd

FloatArray = npt.NDArray[np.float64]

# Accuracies that rest on fewer answers are not shown: those of a few answers would tell a
# participant what they are.
FEW = 20
_LEVEL = 0.95
# Numbers of answers from which a group begins; the next one ends it.
_COUNTS = (0, 1, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
_N_SHARES = 10
# The challenge's answers were given from September 2018 to May 2020; in English schools this day
# also divides the years of school.
AGE_ON = np.datetime64("2019-09-01")
# Who is as young as the first, or as old as the last, belongs to it; in years.
_AGES = range(10, 19)
_NOT_KNOWN = "not known"
# Of each level of the tree, the page names so many subjects.
_N_SUBJECTS = 12
_OTHERS = -1
# Of questions and of subjects, so many with which most is lost.
_N_LOST = 20

_GENDERS = ("unspecified", "female", "male", "other", "not listed")
QUIZZES = (
    "other answers in the quiz known",
    "no other answer in the quiz known",
    "quiz not known",
)


class Breakdown(NamedTuple):
    """Groups of answers that differ in one thing: its title, how to read it, `accuracy_by`."""

    title: str
    note: str
    groups: pd.DataFrame


def break_down(pairs: pd.DataFrame, subjects: pd.DataFrame | None) -> list[Breakdown]:
    """Group the answers in every way that the page draws, of what `pair_facts` knows."""
    parts: list[Breakdown] = []

    def add(title: str, groups: pd.Series, note: str = "") -> None:
        parts.append(Breakdown(title, note, _shown_groups(pairs, groups, len(pairs))))

    if "share_right" in pairs:
        note = "Share of the training answers to the question that are right."
        add("By difficulty of the question", by_tenth(pairs["share_right"]), note)
        add("By number of known answers of the student", by_count(pairs["n_of_student"]))
        add("By number of known answers to the question", by_count(pairs["n_of_question"]))
    if "correct_option" in pairs:
        names = [_NOT_KNOWN, *(f"option {option}" for option in schema.OPTIONS)]
        add("By which option is right", _named(pairs["correct_option"], names))
    if subjects is not None:
        parts += _by_subject(pairs, subjects)
    if "quiz" in pairs:
        note = "Whether training answers of the same student in the same quiz are known."
        add("By known or unknown quiz", _named(pairs["quiz"], QUIZZES), note)
    return parts


def break_down_students(pairs: pd.DataFrame) -> list[Breakdown]:
    """Group the answers by who the students are, where that is known."""
    if "gender" not in pairs:
        return []
    need = ["not entitled", "entitled", _NOT_KNOWN]
    return [
        Breakdown(title, "", _shown_groups(pairs, groups, len(pairs)))
        for title, groups in (
            ("Gender", _named(pairs["gender"], _GENDERS)),
            ("Pupil premium", _named(pairs["premium_pupil"], need)),
            (f"Age in years on {AGE_ON}", by_age(pairs["age"])),
        )
    ]


def _by_subject(pairs: pd.DataFrame, subjects: pd.DataFrame) -> list[Breakdown]:
    """Group by the subjects of the first two levels below the root."""
    import pandas as pd

    columns = pairs.columns.intersection(["QuestionId", "student_code", "right", "majority_right"])
    n_answers = pairs["QuestionId"].value_counts()
    names = subjects.drop_duplicates("SubjectId").set_index("SubjectId")["Name"]
    parts = []
    for level, title, note in (
        (1, "By subject", "A question of several subjects counts in each of them."),
        (2, "By subject, one level further down", ""),
    ):
        own = subjects.loc[subjects["Level"] == level, ["QuestionId", "SubjectId"]]
        if not len(own):
            continue
        size = own["QuestionId"].map(n_answers).groupby(own["SubjectId"]).sum()
        most = size.sort_values(ascending=False, kind="stable").index[:_N_SUBJECTS]
        is_named = own["SubjectId"].isin(most)
        # Questions of which no subject is named go together.
        others = own[~is_named & ~own["QuestionId"].isin(own["QuestionId"][is_named])]
        others = others.drop_duplicates("QuestionId").assign(SubjectId=_OTHERS)
        answers = pairs[columns].merge(pd.concat([own[is_named], others]), on="QuestionId")
        groups = answers["SubjectId"].astype(pd.CategoricalDtype([*most, _OTHERS]))
        table = _shown_groups(answers, groups, len(pairs))
        table.index = table.index.map({**names, _OTHERS: "other subjects"})
        parts.append(Breakdown(title, note, table))
    return parts


def _shown_groups(pairs: pd.DataFrame, groups: pd.Series, n_all: int) -> pd.DataFrame:
    """Return `accuracy_by` with the share of all answers; NaN for what rests on too few."""
    table = accuracy_by(pairs, groups)
    table = table.assign(share=table["n_answers"] / n_all)
    figures = table.columns.intersection(["accuracy", "low", "high", "majority"])
    table.loc[table["n_answers"] < FEW, figures] = np.nan
    return table


def accuracy_by(pairs: pd.DataFrame, groups: pd.Series | None = None) -> pd.DataFrame:
    """Measure the accuracy in groups of answers, a category of each pair, or of all together.

    The pairs have the columns student_code (0 to n - 1), right and, where the majority is known,
    majority_right. There is a row for each group that has answers, in the order of the categories:
    n_answers, n_students, accuracy, low and high (its 95 % interval), and majority.
    """
    import pandas as pd

    if groups is None:
        groups = _named(np.zeros(len(pairs), np.int8), ["all"])
    code, student = groups.cat.codes.to_numpy(), pairs["student_code"].to_numpy()
    shape = len(groups.cat.categories), int(student.max()) + 1
    cell = code.astype(np.int64) * shape[1] + student
    n, n_right = (
        np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
        for cells in (cell, cell[pairs["right"].to_numpy()])
    )
    low, high = clustered_intervals(n_right, n)
    n_answers = n.sum(axis=1)
    with np.errstate(invalid="ignore"):
        figures = {
            "n_answers": n_answers,
            "n_students": (n > 0).sum(axis=1),
            "accuracy": n_right.sum(axis=1) / n_answers,
            "low": low,
            "high": high,
        }
        if "majority_right" in pairs:
            own = code[pairs["majority_right"].to_numpy()]
            figures["majority"] = np.bincount(own, minlength=shape[0]) / n_answers
    table = pd.DataFrame(figures, index=pd.Index(groups.cat.categories.to_list()))
    return table[table["n_answers"] > 0]


def clustered_intervals(
    n_right: npt.NDArray[Any], n_answers: npt.NDArray[Any]
) -> tuple[FloatArray, FloatArray]:
    """Return 95 % intervals (low, high) of shares whose answers come in clusters, the students.

    Wilson's interval, with the number of independent answers that would give the clustered variance
    in the place of the number of answers, and Student's distribution for few clusters (Korn and
    Graubard 1998; Dean and Pagano 2015). It stays inside 0 to 1, and does not shrink to nothing
    where all answers are right. Both arguments have the shape (groups, students). The interval is
    0 to 1 for a group of a single student, who says nothing about others, and NaN for none.
    """
    # SciPy doubles the time that a script takes to start, and only this function needs it.
    from scipy.special import stdtrit

    n, n_students = n_answers.sum(axis=1), (n_answers > 0).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = n_right.sum(axis=1) / n
        deviation = n_right - share[:, None] * n_answers
        variance = (deviation**2).sum(axis=1) * n_students / (n_students - 1) / n**2
        effective = np.minimum(share * (1 - share) / variance, n)
        # If all answers are right or all wrong, only the students are known to be independent.
        effective = np.where((share > 0) & (share < 1), effective, n_students)
        t = stdtrit(np.maximum(n_students - 1, 1), (1 + _LEVEL) / 2)
        middle = (share + t**2 / (2 * effective)) / (1 + t**2 / effective)
        spread = np.sqrt(share * (1 - share) / effective + (t / (2 * effective)) ** 2)
        half = t * spread / (1 + t**2 / effective)
    alone = n_students == 1
    low = np.where(alone, 0.0, np.clip(middle - half, 0, 1))
    high = np.where(alone, 1.0, np.clip(middle + half, 0, 1))
    return low, high


# ---- Groups by numbers ---------------------------------------------------------------------------


def by_tenth(share: pd.Series) -> pd.Series:
    """Group by tenths of a share from 0 to 1, NaN where it is not known."""
    # Above 1, so that the last tenth includes it.
    ends = [*(k / _N_SHARES for k in range(_N_SHARES)), 2]
    return _cut(share, ends, [f"{10 * k} to {10 * k + 10} %" for k in range(_N_SHARES)])


def by_count(count: pd.Series) -> pd.Series:
    """Group by orders of a number of answers."""
    names = [
        f"{low:,}" if high == low + 1 else f"{low:,} to {high - 1:,}"
        for low, high in pairwise(_COUNTS)
    ]
    return _cut(count, [*_COUNTS, np.inf], ["none", *names[1:], f"from {_COUNTS[-1]:,}"])


def by_age(age: pd.Series) -> pd.Series:
    """Group by years, NaN where they are not known, with the youngest together, and the oldest."""
    names = [f"up to {_AGES[0]}", *map(str, _AGES[1:-1]), f"from {_AGES[-1]}"]
    return _cut(age, [0, *_AGES[1:], np.inf], names)


def _cut(values: pd.Series, ends: Sequence[float], names: Sequence[str]) -> pd.Series:
    """Group numbers by where each group begins; what is not known is the last group."""
    import pandas as pd

    groups = pd.cut(values, ends, right=False, labels=names).cat.add_categories(_NOT_KNOWN)
    return groups.fillna(_NOT_KNOWN)


def _named(code: Any, names: Sequence[str]) -> pd.Series:
    """Return groups by their numbers, of which -1 is the last one."""
    import pandas as pd

    code = np.asarray(code)
    known = np.where(code < 0, len(names) - 1, code)
    return pd.Series(pd.Categorical.from_codes(known, pd.Index(names)))


# ---- Where most is lost --------------------------------------------------------------------------


def most_lost(
    pairs: pd.DataFrame, subjects: pd.DataFrame | None
) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Find the questions, and the most specific subjects if known, with which most is lost.

    Lost are wrong predictions beyond those that as many answers have on average. By falling loss,
    which is above 0: name, about (the subjects of a question, or the subject above), n_answers,
    n_wrong, lost.
    """
    wrong = ~pairs["right"]
    by_question = wrong.groupby(pairs["QuestionId"]).agg(n_answers="size", n_wrong="sum")

    def rank(table: pd.DataFrame) -> pd.DataFrame:
        table["lost"] = table["n_wrong"] - table["n_answers"] * wrong.mean()
        ranked = table.sort_values("lost", ascending=False, kind="stable")[:_N_LOST]
        return ranked[(ranked["lost"] > 0) & (ranked["n_answers"] >= FEW)]

    questions = by_question.assign(name=by_question.index, about="")
    if subjects is None:
        return rank(questions), None
    deepest = subjects.groupby("QuestionId")["Level"].transform("max")
    own = subjects[subjects["Level"] == deepest]
    about = own.groupby("QuestionId")["Name"].agg(", ".join)
    questions["about"] = about.reindex(questions.index, fill_value="")
    columns = {"name": ("Name", "first"), "about": ("Parent", "first")}
    columns |= {name: (name, "sum") for name in by_question}
    by_subject = own.join(by_question, on="QuestionId").groupby("SubjectId").agg(**columns)
    return rank(questions), rank(by_subject)
