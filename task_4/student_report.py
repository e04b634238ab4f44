"""Task 4: write pages on single students, for a teacher: what was asked, what is now expected.

A page shows the questions in the order asked, the ability with its interval after each answer, the
share of questions in each subject that the student is expected to answer correctly, and the hidden
answers beside their predictions.

Run:     python task_4/item_response/train_model.py --local
         python task_4/student_report.py --student 21 34               of the local split
         python task_4/student_report.py --student 21 --phase public   of the public phase
         python task_4/student_report.py --student 21 --stop_at_error 0.35
Writes:  data/test_output/student_report/student_21.html …
         data/test_output/student_report/mastery.csv, the shares of all these students
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path
from statistics import NormalDist
from typing import Any

from common import charts, cli, layout, mastery_table, metadata, pages, provenance, writing
from common.adaptive import entry_files, weights
from common.adaptive.game import N_ROUNDS, GameState, Reference, Rules
from common.adaptive.setting import add_data_flags, read_data_flags, read_students
from common.adaptive.weights_origin import find_weights_origin, judge_weights
from common.arrays import FloatArray, IntArray
from common.errors import InputError
from common.item_response.significance import QUANTILE_90
from common.origin import Origin
from common.pages import Html

import numpy as np
import pandas as pd
from ability import Bank, Session, ask, load_bank, parse_fraction

# Every interval contains the true value with this probability, if the model is right.
_COVERAGE = 0.9
# A prediction with a probability between these is hardly better than a coin toss.
_UNSURE = (0.4, 0.6)
# Levels of the tree of subjects; level 0 is mathematics.
_AREA_LEVEL = 1
_TOPIC_LEVEL = 2
# Topics with fewer questions in the bank are not shown.
_MIN_QUESTIONS = 5
# The words for an answer of 0 and an answer of 1.
_OUTCOMES = ("wrong", "right")


@dataclass(frozen=True)
class Subject:
    """A subject of questions of the bank."""

    subject_id: int
    # Level in the tree of subjects.
    level: int
    name: str
    # QuestionIds.
    questions: IntArray


@dataclass(frozen=True)
class Subjects:
    """The subjects that a page shows. Without metadata, both lists are empty."""

    # Areas of mathematics, the widest subjects.
    areas: list[Subject]
    # Topics, which are narrower subjects in these areas.
    topics: list[Subject]


@dataclass(frozen=True)
class Context:
    """Data that the pages of all students share."""

    bank: Bank
    # The names of each question's subjects, by QuestionId; "" if they are not known.
    names: Sequence[str]
    subjects: Subjects
    # Titles and texts for the top of the page.
    facts: Sequence[tuple[str, str]]
    # Where the answers come from.
    origin: Origin


def main() -> None:
    """Load the model, ask the questions, write the pages."""
    options = build_parser().parse_args()
    # `collect` raises `InputError` if the model has no weights: fail before all else.
    entry_files.collect(options.package)
    setting = read_data_flags(options, options.package)
    origin = find_weights_origin(options.package)
    reference = read_students(setting, origin)
    doubts = judge_weights(options.package, origin)
    first_mask = next(iter(reference.targets))
    mask = options.mask or first_mask
    rows = find_students(options, reference, mask)
    bank = load_bank(options.package)
    sessions = ask(bank, reference, mask, rows, options.questions, options.stop_at_error)

    facts = [
        ("Students", f"{cli.show(setting.reference)}, {mask}"),
        ("Test", describe_length(options.questions, options.stop_at_error)),
        ("Weights trained by", weights.describe_origin(origin.record)),
    ]
    facts += [("Doubt", doubt.sentence) for doubt in doubts]
    columns = np.arange(reference.is_correct.shape[1])
    context = Context(
        bank=bank,
        names=metadata.name_subjects(setting.metadata_dir, columns),
        subjects=find_subjects(setting.metadata_dir, bank.n_questions),
        facts=facts,
        origin=provenance.origin_of(setting.reference),
    )
    contents: dict[Path, str | pd.DataFrame] = {}
    lines = []
    tables = []
    subjects = [*context.subjects.areas, *context.subjects.topics]
    for row, session in sessions.items():
        student = int(reference.student[row])
        path = options.output_dir / f"student_{student}.html"
        shares = expected_shares(session, subjects)
        contents[path] = student_page(student, session, shares, context)
        lines.append(describe(student, session))
        tables.append(shares.assign(UserId=student))
    mastery = options.output_dir / mastery_table.FILE_NAME
    if subjects:
        contents[mastery] = mastery_table.columns_of_file(pd.concat(tables))
    writing.write_files(contents)
    # Without metadata there are no subjects, and no table is written. If the folder holds a table,
    # it comes from an earlier run. Remove it, so that nobody takes it for the table of these
    # students.
    if not subjects and mastery.is_file():
        mastery.unlink()
        lines.append(f"removed: {cli.show(mastery)}, of an earlier run; there are no subjects now")
    lines += [f"note: {doubt.sentence}" for doubt in doubts]
    lines.append(f"written: {', '.join(map(cli.show, contents))}")
    print("\n".join(lines))


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    parser.add_argument("--student", type=int, nargs="+", metavar="ID", default=[], help="UserIds")
    add_data_flags(parser)
    parser.add_argument("--mask", help="column with the hidden answers (default: the file's first)")
    cli.add_number(parser, "--questions", N_ROUNDS, "how many are asked at most")
    help_text = "end earlier, once the ability's standard error is at most S, such as 0.35"
    parser.add_argument(
        "--stop_at_error", type=parse_fraction, metavar="S", default=0.0, help=help_text
    )
    cli.add_folder(parser, "--package", layout.ROOT / "task_4" / "item_response")
    cli.add_folder(parser, "--output_dir", layout.TEST_OUTPUT_DIR / "student_report")
    return parser


def find_students(options: argparse.Namespace, reference: Reference, mask: str) -> list[int]:
    """Return the rows in `reference` of the students that --student names.

    Raises
    ------
    InputError
        If `mask` is not a mask of `reference`. If the flags name no student, an unknown student, or
        a student with fewer than --questions answers that may be asked.
    """
    if mask not in reference.targets:
        raise InputError(
            f"--mask {mask}: is not a mask of {reference.name}, "
            f"expected {', '.join(reference.targets)}"
        )
    # `can_query` has a row for each student and a column for each question. It says which questions
    # the student may be asked.
    state = GameState(reference, mask, Rules())
    # The messages give examples of students with enough answers.
    n_askable = state.can_query.sum(axis=1)
    has_enough = n_askable >= options.questions
    examples = ", ".join(map(str, reference.student[has_enough][:3]))
    expected = f"expected UserIds of {reference.name}, such as {examples}"
    if not options.student:
        raise InputError(f"--student: names nobody, {expected}")
    unknown = np.setdiff1d(options.student, reference.student)
    if len(unknown):
        raise InputError(f"--student {unknown[0]}: no such student, {expected}")
    # A student named twice gets one page.
    students = list(dict.fromkeys(options.student))
    # `reference.student` is sorted, so a binary search finds the rows of the students.
    rows = np.searchsorted(reference.student, students)
    state.require_askable(options.questions, rows=rows)
    return [int(row) for row in rows]


def find_subjects(metadata_dir: Path, n_questions: int) -> Subjects:
    """Return the areas of mathematics and the topics that the questions are about.

    The QuestionIds are 0 to ``n_questions - 1``.
    """
    listed = metadata.find_subjects(metadata_dir, np.arange(n_questions))
    # Each row is a question and one of its subjects. The column `row` holds the index of the
    # question in the array of QuestionIds, which is 0, 1, 2, …: so this index is the QuestionId.
    listed = listed.rename(columns={"row": "QuestionId"})
    subjects = Subjects(areas=[], topics=[])
    for _, rows in listed.groupby("subject"):
        first = rows.iloc[0]
        subject = Subject(
            subject_id=int(first["SubjectId"]),
            level=int(first["Level"]),
            name=str(first["Name"]),
            questions=rows["QuestionId"].unique(),
        )
        if subject.level == _AREA_LEVEL:
            subjects.areas.append(subject)
        elif subject.level == _TOPIC_LEVEL and len(subject.questions) >= _MIN_QUESTIONS:
            subjects.topics.append(subject)
    return subjects


def describe_length(n_questions: int, stop_at_error: float) -> str:
    """Say how long a test is."""
    if stop_at_error == 0:
        return f"{n_questions} questions"
    return f"until the standard error is at most {stop_at_error:g}, at most {n_questions} questions"


def describe(student: int, session: Session) -> str:
    """Return a line on what is known of a student after the last question."""
    last = session.steps.iloc[-1]
    n_asked = len(session.steps) - 1
    questions = "1 question" if n_asked == 1 else f"{n_asked} questions"
    return (
        f"UserId {student}: {questions}, ability {last.ability:+z.2f} ± {last.error:.2f} "
        f"(standard error), {last.share:.0%} of the bank expected right"
    )


# ---- The values of the page; the template student.html holds its words ---------------------------


def student_page(student: int, session: Session, shares: pd.DataFrame, context: Context) -> str:
    """Return a student's page.

    `shares` has a row for each area, then a row for each topic, see `expected_shares`.
    """
    return pages.render(
        "student.html",
        title=f"Student {student}",
        origin=context.origin,
        facts=context.facts,
        bank=context.bank,
        session=session,
        percent="{:.0%}".format,
        signed=_signed,
        **show_abilities(session, context.names),
        **show_subjects(shares, context),
        **show_hidden_answers(session),
    )


def show_abilities(session: Session, names: Sequence[str]) -> Mapping[str, Any]:
    """Return what the page shows of the questions asked and of the ability after each answer.

    `names` holds the names of each question's subjects, by QuestionId.
    """
    # Row n of `session.steps` describes the student after n questions; row 0 is before the first
    # question. An interval is the ability ± `half_width`.
    half_width = QUANTILE_90 * session.steps["error"]
    ability = session.steps["ability"]
    table = session.steps.assign(
        half_width=half_width, low=ability - half_width, high=ability + half_width
    )
    steps: list[Any] = list(table.itertuples())
    first = steps[0]
    last = steps[-1]
    # `share_below` returns the share of the training students whose ability is below a given
    # ability. The abilities of the training students have a standard normal distribution.
    share_below = NormalDist().cdf
    # Each row of `session.draws` holds P(right) of all questions, drawn from the posterior. The
    # mean of a row is the share of the questions that the student is expected to answer correctly.
    share_draws = session.draws.mean(axis=1)
    return {
        "asked": [question_row(step, names[step.QuestionId]) for step in steps[1:]],
        "n_right": session.steps["is_right"][1:].sum(),
        "first": first,
        "last": last,
        "share_interval": interval(share_draws),
        # The share of the training students who are less able than this student.
        "below": share_below(last.ability),
        "below_interval": [share_below(last.low), share_below(last.high)],
        "ability_chart": draw_abilities(steps),
    }


def question_row(step: Any, name: str) -> tuple[str, ...]:
    """Return the cells of a row of the table of questions that a student was asked.

    Parameters
    ----------
    step
        A question and what is known of the student after the answer: `Index` (the question's
        number in the test), `QuestionId`, `expected` (P(right) before the answer), `is_right`,
        `ability` with the `half_width` of its interval, and `share` (the share of all questions
        that the student is expected to answer correctly).
    name
        The names of the question's subjects; "" if they are not known.
    """
    return (
        f"{step.Index}",
        name or "unknown",
        f"{step.QuestionId}",
        f"{step.expected:.0%}",
        _OUTCOMES[step.is_right],
        f"{_signed(step.ability)} ± {step.half_width:.2f}",
        f"{step.share:.0%}",
    )


def draw_abilities(steps: Sequence[Any]) -> Html:
    """Draw the ability with its interval after each step; `show_abilities` makes the `steps`."""
    first = steps[0]
    # Before the first answer, the ability is a diamond (`mark`). The value nan draws no dot.
    dots = [charts.Dot("before", value=nan, interval=(first.low, first.high), mark=first.ability)]
    for step in steps[1:]:
        label = f"{step.Index}, {_OUTCOMES[step.is_right]}"
        dots.append(charts.Dot(label, step.ability, interval=(step.low, step.high)))
    return charts.dot_chart(
        dots,
        label="Ability after each question",
        digits=2,
        # A dashed line marks the ability 0, that of the average training student.
        chance=0,
        axis="ability, compared with the training students",
    )


def show_subjects(shares: pd.DataFrame, context: Context) -> Mapping[str, Any]:
    """Return what the page shows of the areas and the topics.

    `shares` has a row for each area, then a row for each topic (see `expected_shares`). The page
    names the topics that are least known: those whose expected share has the widest interval.
    """
    n_areas = len(context.subjects.areas)
    area_shares = shares[:n_areas]
    topic_shares = shares[n_areas:]
    area_dots = subject_dots(context.bank, context.subjects.areas, area_shares)
    topic_dots = subject_dots(context.bank, context.subjects.topics, topic_shares)
    subject_charts = {}
    for title, dots in (("Areas of mathematics", area_dots), ("Topics", topic_dots)):
        if dots:
            subject_charts[title] = charts.dot_chart(
                dots,
                label=title,
                digits=2,
                limits=(0, 1),
                axis="share of the questions expected right",
            )
    least_known_first = sorted(topic_dots, key=_width_of_interval, reverse=True)
    return {
        "subject_charts": subject_charts,
        "n_topics": len(topic_dots),
        "n_topics_asked": int((topic_shares["Answers"] > 0).sum()),
        "least_known": least_known_first[:3],
    }


def show_hidden_answers(session: Session) -> Mapping[str, Any]:
    """Return what the page shows of the hidden answers and their predictions.

    The student gave the hidden answers too, but the model does not see them: it predicts whether
    they are right. A prediction that comes true is a hit.
    """
    probability = session.hidden_probability
    truth = session.hidden_truth
    expected_right = probability > 0.5
    low, high = _UNSURE
    return {
        "is_hit": expected_right == (truth == 1),
        "unsure": _UNSURE,
        "is_unsure": (probability > low) & (probability < high),
        # An interval for how many of the hidden answers are right. Each element of `hidden_counts`
        # is a random draw of this number, as the model expects it.
        "hidden_interval": interval(session.hidden_counts),
        "outcomes": [
            outcome_row("expected right", truth[expected_right]),
            outcome_row("expected wrong", truth[~expected_right]),
        ],
    }


def outcome_row(label: str, truth: IntArray) -> tuple[str, str, str, str]:
    """Return a row of the table of outcomes: the numbers of right, of wrong and of all answers.

    `truth` is 1 for a right and 0 for a wrong answer.
    """
    n = len(truth)
    n_right = truth.sum()
    return label, f"{n_right}", f"{n - n_right}", f"{n}"


def interval(draws: FloatArray | IntArray) -> tuple[float, float]:
    """Return the ends of the interval that holds the middle `_COVERAGE` of the draws."""
    low, high = np.quantile(draws, [(1 - _COVERAGE) / 2, (1 + _COVERAGE) / 2]).tolist()
    return low, high


def subject_dots(bank: Bank, subjects: Sequence[Subject], shares: pd.DataFrame) -> list[charts.Dot]:
    """Return a row of the chart for each subject, in increasing order of the expected share.

    `shares` has a row for each of the subjects, see `expected_shares`. The dot is the share of the
    subject's questions that the student is expected to answer correctly. The diamond is the share
    that is expected of a student without known answers.
    """
    dots = []
    for subject, row in zip(subjects, shares.to_dict("records"), strict=True):
        ends = row["Low"], row["High"]
        mark = float(bank.share[subject.questions].mean())
        dots.append(charts.Dot(subject.name, row["Share"], interval=ends, mark=mark))
    return sorted(dots, key=lambda dot: dot.value)


def expected_shares(session: Session, subjects: Sequence[Subject]) -> pd.DataFrame:
    """Return which share of each subject's questions the student is expected to answer correctly.

    The result has a row for each subject. Share is the expected share, Low and High are the ends of
    its interval, and Answers is the number of questions on the subject that the student was asked.
    """
    # The first row of the steps describes the student before any question.
    asked = session.steps["QuestionId"][1:]
    rows = []
    for subject in subjects:
        questions = subject.questions
        # Each row of `draws` holds P(right) of all questions, drawn from the posterior.
        share_draws = session.draws[:, questions].mean(axis=1)
        low, high = interval(share_draws)
        rows.append(
            {
                "Level": subject.level,
                "SubjectId": subject.subject_id,
                "Name": subject.name,
                "Answers": int(np.isin(questions, asked).sum()),
                "Share": float(session.probability[questions].mean()),
                "Low": low,
                "High": high,
            }
        )
    # The columns are those of the mastery table, without its first column, UserId.
    return pd.DataFrame(rows, columns=mastery_table.COLUMNS[1:])


def _width_of_interval(dot: charts.Dot) -> float:
    low, high = dot.interval
    return high - low


def _signed(value: float) -> str:
    """Write a number with two decimals, a plus or a minus sign (−, not a hyphen), and no -0.00."""
    return f"{value:+z.2f}".replace("-", "−")


if __name__ == "__main__":
    cli.run(main)
