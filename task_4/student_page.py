"""The page on one student of task 4: charts and figures, put into words by `student.html`."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import erf, sqrt

from common import charts, pages
from common.answers import IntArray
from common.pages import Html

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

Ends = tuple[float, float]


@dataclass(frozen=True)
class Subject:
    """A subject of the bank: one of the few areas of mathematics, or a topic in one."""

    name: str
    is_area: bool
    questions: IntArray


def interval(draws: FloatArray | IntArray) -> Ends:
    """Return the ends of the middle 90% of draws."""
    low, high = np.quantile(draws, [(1 - _COVERAGE) / 2, (1 + _COVERAGE) / 2]).tolist()
    return low, high


def student_page(
    student: int,
    bank: Bank,
    course: Course,
    names: Sequence[str],
    subjects: Sequence[Subject],
    facts: Sequence[tuple[str, str]],
    *,
    simulated: bool,
) -> str:
    """Return the page of one student.

    `names` are the subjects of each question asked, `subjects` areas and topics, empty where they
    are not known; `facts` tell where the answers come from and what the rules were.
    """
    steps = list(zip(course.ability.tolist(), course.deviation.tolist(), strict=True))
    asked = [
        (
            f"{number}",
            name or "unknown",
            f"{question}",
            f"{expected:.0%}",
            _OUTCOMES[is_right],
            f"{_signed(ability)} ± {_NORMAL_QUANTILE * error:.2f}",
            f"{share:.0%}",
        )
        for number, (question, name, expected, is_right, (ability, error), share) in enumerate(
            zip(
                course.chosen, names, course.expected, course.is_right, steps[1:],
                course.share[1:], strict=True,
            ),
            start=1,
        )
    ]  # fmt: skip
    areas = expect(bank, course, [subject for subject in subjects if subject.is_area])
    topics = expect(bank, course, [subject for subject in subjects if not subject.is_area])
    prediction = course.hidden_probability > 0.5
    low, high = _UNSURE
    outcomes = []
    for name, is_predicted in (("expected right", prediction), ("expected wrong", ~prediction)):
        n_right, n = int(course.hidden_truth[is_predicted].sum()), int(is_predicted.sum())
        outcomes.append((name, str(n_right), str(n - n_right), str(n)))
    return pages.render(
        "student.html",
        title=f"Student {student}",
        simulated=simulated,
        bank=bank,
        course=course,
        facts=facts,
        share_ends=interval(course.draws.mean(axis=1)),
        below=_share_below(steps[-1][0]),
        below_ends=[_share_below(end) for end in _range(*steps[-1])],
        ability_chart=Html(_ability_chart(course, steps)),
        asked=asked,
        subject_charts={
            label: Html(_subject_chart(label, dots))
            for label, dots in (("Areas of mathematics", areas), ("Topics", topics))
            if dots
        },
        n_topics=len(topics),
        n_topics_asked=sum(
            bool(np.isin(subject.questions, course.chosen).any())
            for subject in subjects
            if not subject.is_area
        ),
        least_known=sorted(topics, key=_certainty)[:_N_LEAST_KNOWN],
        is_hit=prediction == (course.hidden_truth == 1),
        unsure=_UNSURE,
        is_unsure=(course.hidden_probability > low) & (course.hidden_probability < high),
        hidden_ends=interval(course.hidden_counts),
        outcomes=outcomes,
        percent="{:.0%}".format,
        signed=_signed,
    )


def expect(bank: Bank, course: Course, subjects: Sequence[Subject]) -> list[charts.Dot]:
    """Return the share expected right in every subject, least first, as it is to be drawn."""
    shares = [float(course.probability[subject.questions].mean()) for subject in subjects]
    return [
        charts.Dot(
            subject.name,
            share,
            interval=interval(course.draws[:, subject.questions].mean(axis=1)),
            mark=float(bank.share[subject.questions].mean()),
        )
        for share, subject in sorted(zip(shares, subjects, strict=True), key=lambda pair: pair[0])
    ]


def _certainty(dot: charts.Dot) -> float:
    low, high = dot.interval or (0.0, 0.0)
    return low - high


def _subject_chart(label: str, dots: Sequence[charts.Dot]) -> str:
    axis = "share of the questions expected right"
    return charts.dot_chart(dots, label=label, digits=2, limits=(0, 1), axis=axis)


def _ability_chart(course: Course, steps: Sequence[tuple[float, float]]) -> str:
    outcomes = ["", *(_OUTCOMES[is_right] for is_right in course.is_right)]
    drawn = []
    for number, ((ability, error), outcome) in enumerate(zip(steps, outcomes, strict=True)):
        low, high = _range(ability, error)
        tooltip = f"after {number} questions{', ' * bool(outcome)}{outcome}: {_signed(ability)}, "
        tooltip += f"{_signed(low)} to {_signed(high)}"
        marker = {"": "D", "right": "o", "wrong": "x"}[outcome]
        drawn.append(charts.Step(ability, (low, high), marker=marker, tooltip=tooltip))
    return charts.interval_chart(
        drawn,
        label="Ability after each question",
        axis="questions asked",
        unit="ability, compared with the training students",
    )


def _range(ability: float, error: float) -> Ends:
    return ability - _NORMAL_QUANTILE * error, ability + _NORMAL_QUANTILE * error


def _share_below(ability: float) -> float:
    """Return the share of the training students, normal around 0, with a lower ability."""
    return 0.5 * (1 + erf(ability / sqrt(2)))


def _signed(value: float) -> str:
    return f"{value:+z.2f}".replace("-", "−")
