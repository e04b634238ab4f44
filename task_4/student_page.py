"""The page on one student of task 4, in plain words: HTML from the figures of `ability`."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import erf, sqrt

from common import charts, pages
from common.answers import IntArray

import numpy as np
from ability import Bank, Course, FloatArray

# All intervals hold the truth with this probability, if the model is right.
_COVERAGE = 0.9
_NORMAL_QUANTILE = 1.645
# A prediction between these is not far from a coin toss.
_UNSURE = (0.4, 0.6)
# How many of the least known topics are named.
_N_LEAST_KNOWN = 3
_OUTCOMES = ("wrong", "right")

_STYLE = """
h1 { margin-bottom: 1rem; } h3 { font-size: 1rem; margin: 1.4rem 0 .6rem; }
.lead { font-size: 1.1rem; }
.key { font-size: .875rem; opacity: .8; margin: .6rem 0 1.4rem; }
@media (min-width: 34rem) { .asked :is(td, th):nth-child(2) { text-align: left; } }
"""


@dataclass(frozen=True)
class Subject:
    """A subject of the bank.

    Attributes
    ----------
    name
        Its name.
    is_area
        Whether it is one of the few areas of mathematics, not a topic in one.
    questions
        QuestionIds.
    """

    name: str
    is_area: bool
    questions: IntArray


@dataclass(frozen=True)
class Report:
    """What the page of a student is made from.

    Attributes
    ----------
    student
        UserId.
    bank, course
        The model, and how the questions went.
    names
        For each question asked its subjects; empty where they are not known.
    subjects
        Areas and topics; none where they are not known.
    facts
        Where the answers come from and what the rules were, as (name, value) pairs.
    simulated
        Whether the answers are simulated.
    """

    student: int
    bank: Bank
    course: Course
    names: Sequence[str]
    subjects: Sequence[Subject]
    facts: Sequence[tuple[str, str]]
    simulated: bool


def student_page(report: Report) -> str:
    """Return the page of one student."""
    sections = [
        pages.simulated_note(report.simulated),
        _lead(report),
        _ability(report.course),
        _questions(report.course, report.names),
        _subjects(report),
        _hidden(report.course),
        _limits(report),
    ]
    return pages.page(f"Student {report.student}", "\n".join(sections), style=_STYLE)


def interval(draws: FloatArray | IntArray) -> tuple[float, float]:
    """Return the ends of the middle 90% of draws."""
    low, high = np.quantile(draws, [(1 - _COVERAGE) / 2, (1 + _COVERAGE) / 2]).tolist()
    return low, high


def share_below(ability: float) -> float:
    """Return the share of the training students, normal around 0, with a lower ability."""
    return 0.5 * (1 + erf(ability / sqrt(2)))


def _interval_of(ability: float, error: float) -> tuple[float, float]:
    return ability - _NORMAL_QUANTILE * error, ability + _NORMAL_QUANTILE * error


def _lead(report: Report) -> str:
    course = report.course
    low, high = interval(course.draws.mean(axis=1))
    ability = float(course.ability[-1])
    ends = _interval_of(ability, float(course.deviation[-1]))
    text = (
        f'<p class="lead">{len(course.chosen)} questions asked, {course.is_right.sum()} answered '
        f"correctly. Of all {report.bank.n_questions:,} questions of the bank, this student is now "
        f"expected to answer <strong>{course.share[-1]:.0%}</strong> correctly, with a probability "
        f"of 90% between {low:.0%} and {high:.0%}; a training student of whom nothing is known, "
        f"{report.bank.share.mean():.0%}. The overall ability is above that of about "
        f"<strong>{share_below(ability):.0%}</strong> of the training students (90% range "
        f"{share_below(ends[0]):.0%} to {share_below(ends[1]):.0%}).</p>"
    )
    return text + pages.table([], report.facts, css_class="facts")


def _ability(course: Course) -> str:
    steps = []
    for number, (ability, error) in enumerate(zip(course.ability, course.deviation, strict=True)):
        outcome = _OUTCOMES[course.is_right[number - 1]] if number else ""
        low, high = _interval_of(float(ability), float(error))
        steps.append(
            charts.Step(
                float(ability),
                (low, high),
                marker={"": "D", "right": "o", "wrong": "x"}[outcome],
                tooltip=f"after {number} questions{', ' * bool(outcome)}{outcome}: "
                f"{_signed(float(ability))}, {_signed(low)} to {_signed(high)}",
            )
        )
    chart = charts.interval_chart(
        steps,
        label="Ability after each question",
        axis="questions asked",
        unit="ability, compared with the training students",
    )
    return (
        f"<h2>Ability after each question</h2>\n<figure>{chart}"
        '<figcaption class="key">0 is the mean of the training students, 1 is one standard '
        "deviation above it: about two thirds of them lie between −1 and 1. The line through each "
        "mark is the range that holds the ability with a probability of 90%, if the model is "
        "right; it shortens as answers come in. A dot is a right answer, a cross a wrong one; the "
        "diamond is what was expected before, only from which questions the student has worked "
        f"on.</figcaption></figure>\n<p>After the last answer the ability is "
        f"{_signed(float(course.ability[-1]))} with a standard error of "
        f"{course.deviation[-1]:.2f}; before the first, it was {course.deviation[0]:.2f}.</p>"
    )


def _questions(course: Course, names: Sequence[str]) -> str:
    rows = [
        (
            f"{number}",
            name or "unknown",
            f"{question}",
            f"{expected:.0%}",
            _OUTCOMES[is_right],
            f"{_signed(ability)} ± {_NORMAL_QUANTILE * error:.2f}",
            f"{share:.0%}",
        )
        for number, (question, name, expected, is_right, ability, error, share) in enumerate(
            zip(
                course.chosen,
                names,
                course.expected,
                course.is_right,
                course.ability[1:].tolist(),
                course.deviation[1:].tolist(),
                course.share[1:],
                strict=True,
            ),
            start=1,
        )
    ]
    header = ["", "subject", "QuestionId", "right, expected", "answer", "ability", "of the bank"]
    return "<h2>The questions, in the order asked</h2>\n" + pages.table(
        header,
        rows,
        css_class="asked",
        stacks=True,
        caption="Each question was chosen for what its answer would tell about the others. “Right, "
        "expected” is the probability of a right answer just before: a right answer where little "
        "was expected, or a wrong one where much was, changes the picture most. Behind the answer, "
        "what was known after it: the ability with its 90% range, and the share of the whole bank "
        "that the student is expected to answer correctly.",
    )


def _subjects(report: Report) -> str:
    heading = "<h2>What is now expected, by subject</h2>\n"
    if not report.subjects:
        return f"{heading}<p>Not known: there are no metadata of the questions.</p>"
    course, bank = report.course, report.bank
    order = sorted(report.subjects, key=lambda s: course.probability[s.questions].mean())
    ends = {s.name: interval(course.draws[:, s.questions].mean(axis=1)) for s in order}
    parts = []
    for is_area, label in ((True, "Areas of mathematics"), (False, "Topics")):
        dots = [
            charts.Dot(
                s.name,
                float(course.probability[s.questions].mean()),
                interval=ends[s.name],
                mark=float(bank.share[s.questions].mean()),
            )
            for s in order
            if s.is_area == is_area
        ]
        if dots:
            axis = "share of the questions expected right"
            chart = charts.dot_chart(dots, label=label, digits=2, limits=(0, 1), axis=axis)
            parts.append(f"<h3>{label}</h3>\n<figure>{chart}</figure>")
    topics = [s for s in order if not s.is_area]
    widest = sorted(topics, key=lambda s: ends[s.name][0] - ends[s.name][1])[:_N_LEAST_KNOWN]
    unsure = "; ".join(f"{s.name}, {ends[s.name][0]:.0%} to {ends[s.name][1]:.0%}" for s in widest)
    n_asked = sum(bool(np.isin(s.questions, course.chosen).any()) for s in topics)
    note = (
        '<p class="key">The dot is the share of the bank’s questions on the subject that this '
        "student is expected to answer correctly, the line its 90% range, the diamond the same "
        "for a training student of whom nothing is known: left of the diamond, help may be needed "
        "first. The range says how well the share is known, not how luck in single answers moves "
        "it.</p>"
    )
    if topics:
        note += (
            f"<p>{n_asked} of the {len(topics)} topics were asked about; what is said of the "
            "others is concluded from how students’ answers usually go together. Least is known "
            f"about: {escape(unsure)}.</p>"
        )
    return heading + note + "\n".join(parts)


def _hidden(course: Course) -> str:
    heading = "<h2>How the hidden answers came out</h2>\n"
    n = len(course.hidden_truth)
    if not n:
        return f"{heading}<p>None of this student’s answers is hidden with this mask.</p>"
    prediction = course.hidden_probability > 0.5
    is_hit = prediction == (course.hidden_truth == 1)
    is_unsure = (course.hidden_probability > _UNSURE[0]) & (course.hidden_probability < _UNSURE[1])
    low, high = interval(course.hidden_counts)
    counts = [
        [int((course.hidden_truth[prediction == expected] == truth).sum()) for truth in (1, 0)]
        for expected in (True, False)
    ]
    rows = [
        (name, *map(str, row), str(sum(row)))
        for name, row in zip(("expected right", "expected wrong"), counts, strict=True)
    ]
    return (
        f"{heading}<p>{n} further answers of this student were kept back; they were neither asked "
        f"nor learned from. {is_hit.sum()} of them ({is_hit.mean():.0%}) came out as expected. "
        f"{int(course.hidden_truth.sum())} are right; {course.hidden_probability.sum():.1f} were "
        f"expected to be (90% range {low:.0f} to {high:.0f}). For {is_unsure.sum()} the "
        f"probability was between {_UNSURE[0]:.0%} and {_UNSURE[1]:.0%}, little more than a coin "
        f"toss; {(is_hit & is_unsure).sum()} of these came out as expected.</p>\n"
        + pages.table(
            ["", "right", "wrong", "together"],
            rows,
            caption="Rows: what was expected, right where its probability is above 50%. Columns: "
            "what the student answered.",
        )
    )


def _limits(report: Report) -> str:
    return (
        "<h2>What this page cannot say</h2>\n<p>All ranges hold if the model is right, and it is "
        f"a simple one. After {len(report.course.chosen)} answers much is a guess from students "
        "who answered alike: enough to choose what to look at next, not to grade anybody or to set "
        "students against each other. The questions are chosen to predict the student’s other "
        "answers, not to measure the overall ability, and only among those that the student has "
        "answered. The students of the file were asked at the same time; all "
        "their answers together tell how they differ as a group from the training students. The "
        "overall ability is the mean of the student’s logits (the logarithm of right to wrong) "
        "over all questions of the bank, less the mean of the training students, divided by their "
        "standard deviation.</p>"
    )


def _signed(value: float) -> str:
    return f"{value:+z.2f}".replace("-", "−")
