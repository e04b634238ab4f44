"""Accuracy in groups of answers; every interval counts a student's answers as one cluster.

`pairs` is the frame of `pair_facts` with right, and majority_right where the majority is known.
"""

from __future__ import annotations

from common.arrays import Array, FloatArray
from common.evaluation.pair_facts import QUIZ

import numpy as np
import pandas as pd

# Title, how to read it, and a row for each group, as of `accuracy_by`.
Part = tuple[str, str, "pd.DataFrame"]

# Accuracies of fewer answers are not shown: they would tell a participant what these are.
FEW = 20
_LEVEL = 0.95
# Of the normal distribution, and so below that of Student's distribution for any number.
_NORMAL_QUANTILE = 1.9599
_N_SUBJECTS = 12
_OTHERS = -1
_N_LOST = 20
_NOTES = {
    "By difficulty of the question": "Share of the training answers to the question that are "
    "right.",
    "By subject": "A question of several subjects counts in each of them.",
    QUIZ: "Whether training answers of the same student in the same quiz are known.",
}


def break_down(pairs: pd.DataFrame, subjects: pd.DataFrame | None) -> list[Part]:
    """Group the answers in every way that the page draws."""
    titles = [name for name in map(str, pairs) if name.startswith("By ")]
    parts = [(name, _NOTES.get(name, ""), accuracy_by(pairs, name)) for name in titles]
    for level, title in enumerate(("By subject", "By subject, one level further down"), 1):
        if subjects is not None and (subjects["Level"] == level).any():
            part = title, _NOTES.get(title, ""), _by_subject(pairs, subjects, level)
            parts.insert(len(parts) - (QUIZ in pairs), part)
    return parts


def _by_subject(pairs: pd.DataFrame, subjects: pd.DataFrame, level: int) -> pd.DataFrame:
    """Group by the subjects of one level, those with most answers first."""
    own = subjects[subjects["Level"] == level]
    n_answers = own["QuestionId"].map(pairs["QuestionId"].value_counts())
    size = n_answers.groupby(own["SubjectId"]).sum().sort_values(ascending=False, kind="stable")
    most = size.index[:_N_SUBJECTS]
    named = own[own["SubjectId"].isin(most)]
    # Questions of which no subject is named go together.
    others = own[~own["QuestionId"].isin(named["QuestionId"])].drop_duplicates("QuestionId")
    own = pd.concat([named, others.assign(SubjectId=_OTHERS, Name="other subjects")])
    groups = own["SubjectId"].astype(pd.CategoricalDtype([*most, _OTHERS]))
    columns = pairs.columns.intersection(["QuestionId", "student_code", "right", "majority_right"])
    answers = pairs[columns].merge(own[["QuestionId"]].assign(subject=groups), on="QuestionId")
    table = accuracy_by(answers, "subject", n_all=len(pairs))
    names = own.drop_duplicates("SubjectId").set_index("SubjectId")["Name"]
    return table.set_axis(names[table.index])


def accuracy_by(
    pairs: pd.DataFrame, column: str, *, n_all: int | None = None, few: int = FEW
) -> pd.DataFrame:
    """Return a row for each group of a categorical column that has answers: n_answers, n_students,
    share of all, and, NaN on few answers, accuracy, low and high (its 95 % interval) and majority.
    """
    groups, student = pairs[column].cat, pairs["student_code"].to_numpy()
    code = groups.codes.to_numpy(np.int64)
    shape = len(groups.categories), int(student.max()) + 1
    cell = code * shape[1] + student
    n, n_right = (
        np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
        for cells in (cell, cell[pairs["right"].to_numpy()])
    )
    counts = {"n_answers": n.sum(axis=1), "n_students": (n > 0).sum(axis=1)}
    table = pd.DataFrame(counts, groups.categories.to_list())
    table["accuracy"] = n_right.sum(axis=1) / table["n_answers"]
    table["low"], table["high"] = clustered_intervals(n_right, n)
    if "majority_right" in pairs:
        own = code[pairs["majority_right"].to_numpy()]
        table["majority"] = np.bincount(own, minlength=shape[0]) / table["n_answers"]
    table.loc[table["n_answers"] < few, table.columns[2:]] = np.nan
    table["share"] = table["n_answers"] / (n_all or len(pairs))
    return table[table["n_answers"] > 0]


def clustered_intervals(n_right: Array, n_answers: Array) -> tuple[FloatArray, FloatArray]:
    """Return 95 % intervals (low, high) of shares by student, from counts (groups, students):
    Wilson's, with the effective number of answers and Student's distribution (Korn and Graubard
    1998; Dean and Pagano 2015); 0 to 1 for one student alone, NaN for none.
    """
    n, n_students = n_answers.sum(axis=1), (n_answers > 0).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = n_right.sum(axis=1) / n
        deviation = n_right - share[:, None] * n_answers
        variance = (deviation**2).sum(axis=1) * n_students / (n_students - 1) / n**2
        effective = np.minimum(share * (1 - share) / variance, n)
        # If all answers are right or all wrong, only the students are known to be independent.
        effective = np.where((share > 0) & (share < 1), effective, n_students)
        t = student_quantile(np.maximum(n_students - 1, 1))
        middle = (share + t**2 / (2 * effective)) / (1 + t**2 / effective)
        spread = np.sqrt(share * (1 - share) / effective + (t / (2 * effective)) ** 2)
        half = t * spread / (1 + t**2 / effective)
    alone = n_students == 1
    low = np.where(alone, 0.0, np.clip(middle - half, 0, 1))
    high = np.where(alone, 1.0, np.clip(middle + half, 0, 1))
    return low, high


def student_quantile(freedom: Array) -> FloatArray:
    """Return ± t that holds 95 % of Student's distribution, (n,); SciPy takes long to import."""
    place, weight = np.polynomial.legendre.leggauss(20)
    # t is √n tan(angle), where the angle has a density proportional to cos(angle) ** (n - 1).
    n = freedom[:, None].astype(np.float64)

    def area(angle: FloatArray) -> FloatArray:
        density = np.cos(angle * (1 + place) / 2) ** (n - 1)
        return np.asarray(angle / 2 * (density @ weight)[:, None])

    # Beyond nine standard deviations nothing is left.
    wanted = _LEVEL * area(np.minimum(np.pi / 2, 9 / np.sqrt(n)))
    angle = np.arctan(_NORMAL_QUANTILE / np.sqrt(n))
    # Newton's method, from below, where every step stays below: eleven digits after six.
    for _ in range(6):
        angle += (wanted - area(angle)) / np.cos(angle) ** (n - 1)
    return np.asarray(np.sqrt(n) * np.tan(angle))[:, 0]


def most_lost(
    pairs: pd.DataFrame, subjects: pd.DataFrame | None
) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Return questions, and the most specific subjects, with most wrong answers beyond the average,
    by falling loss above 0: name, about (subjects, or the one above), n_answers, n_wrong, lost.
    """
    wrong = ~pairs["right"]
    by_question = wrong.groupby(pairs["QuestionId"]).agg(n_answers="size", n_wrong="sum")

    def rank(table: pd.DataFrame) -> pd.DataFrame:
        table["lost"] = table["n_wrong"] - table["n_answers"] * wrong.mean()
        ranked = table.sort_values("lost", ascending=False, kind="stable")[:_N_LOST]
        return ranked[(ranked["lost"] > 0) & (ranked["n_answers"] >= FEW)]

    questions = rank(by_question.assign(name=by_question.index, about=""))
    if subjects is None:
        return questions, None
    deepest = subjects.groupby("QuestionId")["Level"].transform("max")
    own = subjects[subjects["Level"] == deepest]
    about = own[own["QuestionId"].isin(questions.index)].groupby("QuestionId")["Name"]
    named = about.agg(", ".join).reindex(questions.index, fill_value="")
    columns = {"name": ("Name", "first"), "about": ("Parent", "first")}
    columns |= {name: (name, "sum") for name in by_question}
    by_subject = own.join(by_question, on="QuestionId").groupby("SubjectId").agg(**columns)
    return questions.assign(about=named), rank(by_subject)
