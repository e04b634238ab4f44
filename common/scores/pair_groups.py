"""The groups of answers that the pages of tasks 1 and 2 show, from what is known about them."""

from dataclasses import dataclass

from common import schema
from common.answers import IntArray
from common.scores.breakdown import (
    NOT_KNOWN,
    Group,
    Loss,
    Scored,
    by_count,
    by_number,
    by_share,
    group_answers,
    most_lost,
)
from common.scores.pair_facts import QUIZ_GROUPS, PairFacts, Subjects

import numpy as np
import numpy.typing as npt

# Of each level of the tree, the page names so many subjects.
_N_SUBJECTS = 12
# The challenge's answers were given from September 2018 to May 2020; in English schools this day
# also divides the years of school.
AGE_ON = np.datetime64("2019-09-01")
_AGES = 10, 18


@dataclass(frozen=True)
class Breakdown:
    """Groups of answers that differ in one thing.

    Attributes
    ----------
    title
        What they differ in.
    groups
        In a meaningful order.
    note
        How to read it, if that is not clear.
    """

    title: str
    groups: list[Group]
    note: str = ""


@dataclass(frozen=True)
class NamedLoss:
    """A `Loss`, and the names of what it is about: a QuestionId and its subjects, or a subject."""

    name: str
    about: str
    loss: Loss


def break_down(scored: Scored, facts: PairFacts) -> list[Breakdown]:
    """Group the answers in every way that the page shows."""
    parts = []
    training = facts.training
    if training is not None:
        for title, (group, names), note in (
            (
                "By difficulty of the question",
                by_share(training.share_right),
                "Share of the training answers to the question that are right.",
            ),
            (
                "By number of known answers of the student",
                by_count(training.n_of_student),
                "",
            ),
            (
                "By number of known answers to the question",
                by_count(training.n_of_question),
                "",
            ),
        ):
            parts.append(Breakdown(title, group_answers(scored, group, names), note))
        if training.correct_option is not None:
            option_names = [NOT_KNOWN, *(f"option {option}" for option in schema.OPTIONS)]
            groups = group_answers(scored, training.correct_option, option_names)
            parts.append(Breakdown("By which option is right", groups))
    if facts.subjects is not None:
        parts += _by_subject(scored, facts.subjects)
    if facts.quiz is not None:
        groups = group_answers(scored, facts.quiz, QUIZ_GROUPS)
        parts.append(
            Breakdown(
                "By known or unknown quiz",
                groups,
                "Whether training answers of the same student in the same quiz are known.",
            )
        )
    return parts


def _by_subject(scored: Scored, subjects: Subjects) -> list[Breakdown]:
    """Group by the subjects of the first two levels below the root."""
    tree, of_question = subjects.tree, subjects.of_question
    level = tree.level[of_question.subject]
    n_of_question = np.bincount(scored.question, minlength=len(of_question.start) - 1)
    parts = []
    for number, title in ((1, "By subject"), (2, "By subject, one level further down")):
        chosen = level == number
        question, subject = of_question.row[chosen], of_question.subject[chosen]
        if not len(subject):
            continue
        n_of_subject = np.bincount(subject, n_of_question[question], len(tree.ids))
        most = np.argsort(-n_of_subject, kind="stable")[:_N_SUBJECTS]
        place = np.full(len(tree.ids), -1)
        place[most] = np.arange(len(most))
        # Questions of which no subject is named go together; a question may have several.
        named = place[subject] >= 0
        others = np.setdiff1d(question[~named], question[named])
        question = np.concatenate([question[named], others])
        group = np.concatenate([place[subject[named]], np.full(len(others), len(most))])
        names = [*(tree.names[k] for k in most.tolist()), "other subjects"]
        rows, group = _spread(scored.question, question, group)
        parts.append(Breakdown(title, group_answers(scored, group, names, rows)))
    parts[:1] = [
        Breakdown(part.title, part.groups, "A question of several subjects counts in each of them.")
        for part in parts[:1]
    ]
    return parts


def _spread(
    question_of_answer: IntArray, question: IntArray, group: IntArray
) -> tuple[npt.NDArray[np.int64], IntArray]:
    """Give every answer the groups of its question.

    Parameters
    ----------
    question_of_answer
        Number of each answer's question, shape (answers,).
    question, group
        A group of a question, in any order, as often as it has groups.

    Returns
    -------
    rows, group : arrays of int
        Row of an answer, and a group of it.
    """
    order = np.argsort(question, kind="stable")
    ids = np.arange(question_of_answer.max() + 2)
    start = np.searchsorted(question[order], ids)
    count = np.diff(start)[question_of_answer]
    rows = np.repeat(np.arange(len(question_of_answer)), count)
    nth = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
    return rows, group[order][start[question_of_answer[rows]] + nth]


def lost_questions(scored: Scored, facts: PairFacts) -> list[NamedLoss]:
    """Return the questions with which most is lost, by QuestionId with their subjects."""
    n_answers = np.bincount(scored.question)
    n_wrong = np.bincount(scored.question[~scored.right], minlength=len(n_answers))
    losses = most_lost(n_answers, n_wrong, float(np.mean(~scored.right)))
    return [
        NamedLoss(
            str(facts.question_ids[loss.number]), _name_subjects(facts.subjects, loss.number), loss
        )
        for loss in losses
    ]


def lost_subjects(scored: Scored, facts: PairFacts) -> list[NamedLoss]:
    """Return the most specific subjects with which most is lost."""
    if facts.subjects is None:
        return []
    tree, of_question = facts.subjects.tree, facts.subjects.of_question
    n_questions = len(of_question.start) - 1
    n_answers = np.bincount(scored.question, minlength=n_questions)
    n_wrong = np.bincount(scored.question[~scored.right], minlength=n_questions)
    question, subject = of_question.row, of_question.subject
    deepest = np.zeros(n_questions, np.int64)
    np.maximum.at(deepest, question, tree.level[subject])
    own = tree.level[subject] == deepest[question]
    question, subject = question[own], subject[own]
    answers, wrong = (
        np.bincount(subject, n[question], len(tree.ids)) for n in (n_answers, n_wrong)
    )
    return [
        NamedLoss(
            tree.names[loss.number],
            tree.names[tree.parent[loss.number]] if tree.parent[loss.number] >= 0 else "",
            loss,
        )
        for loss in most_lost(answers, wrong, float(np.mean(~scored.right)))
    ]


def _name_subjects(subjects: Subjects | None, question: int) -> str:
    """Name the most specific subjects of a question."""
    if subjects is None:
        return ""
    tree, of_question = subjects.tree, subjects.of_question
    own = of_question.subject[of_question.start[question] : of_question.start[question + 1]]
    deepest = own[tree.level[own] == tree.level[own].max(initial=0)]
    return ", ".join(tree.names[place] for place in deepest)


def subgroups(scored: Scored, facts: PairFacts) -> list[Breakdown]:
    """Group the answers by who the students are, where that is known."""
    students = facts.students
    if students is None:
        return []
    birth = students.date_of_birth.astype("datetime64[M]")
    months = (AGE_ON.astype("datetime64[M]") - birth).astype(np.int64)
    age = np.where(np.isnat(birth), -1, months // 12)
    need = students.premium_pupil.astype(np.int64)
    gender = students.gender.astype(np.int64)
    genders = ["unspecified", "female", "male", "other", "not listed"]
    premium = ["not entitled", "entitled", NOT_KNOWN]
    age_groups = by_number(age, *_AGES)
    return [
        Breakdown(title, group_answers(scored, group[scored.student], names))
        for title, group, names in (
            ("Gender", np.where(gender < 0, 4, gender), genders),
            ("Pupil premium", np.where(need < 0, 2, need), premium),
            (f"Age in years on {AGE_ON}", *age_groups),
        )
    ]
