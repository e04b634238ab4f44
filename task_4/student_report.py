"""Task 4: pages on single students for a teacher: what was asked, and what is now expected.

A page shows the questions in order, the ability with its interval after each answer, the share
expected right in every subject and where that is unsure, and how the hidden answers came out.

Run:     python task_4/item_response/train_model.py --local
         python task_4/student_report.py --student 21 34                     of the local split
         python task_4/student_report.py --student 21 --phase public         of a phase
         python task_4/student_report.py --student 21 --stop_at_error 0.35   ends by precision
Writes:  data/test_output/student_report/student_21.html …
"""

import argparse
from collections.abc import Sequence
from math import nan
from pathlib import Path
from statistics import NormalDist
from typing import Any

from common import charts, cli, layout, metadata, pages, provenance, writing
from common.adaptive import entry_files, weights
from common.adaptive.game import N_ROUNDS, GameState, Reference, Rules
from common.adaptive.setting import add_data_flags, read_data_flags, read_students
from common.arrays import FloatArray, IntArray
from common.errors import InputError

import numpy as np
from ability import Bank, Course, ask, load_bank, share

# All intervals hold the truth with this probability, if the model is right.
_COVERAGE = 0.9
_NORMAL_QUANTILE = 1.645
# A prediction between these is not far from a coin toss.
_UNSURE = (0.4, 0.6)
# A topic of fewer questions is no topic of the bank.
_MIN_QUESTIONS = 5
_OUTCOMES = ("wrong", "right")

# The few areas of mathematics, and topics in them; the names stand above the charts.
_AREAS, _TOPICS = "Areas of mathematics", "Topics"

# Of every subject of a kind its name and its questions.
Subjects = dict[str, list[tuple[str, IntArray]]]


def main() -> None:
    """Load the model, ask the questions, write the pages."""
    options = build_parser().parse_args()
    # The model's weights must be there before anything else is done.
    entry_files.collect(options.package)
    setting = read_data_flags(options, options.package)
    reference = read_students(setting)
    mask = options.mask or next(iter(reference.targets))
    rows = find_students(options, reference, mask)
    bank = load_bank(options.package)
    courses = ask(bank, reference, mask, rows, options.questions, options.stop_at_error)

    length = f"{options.questions} questions"
    if options.stop_at_error:
        length = f"until the standard error is at most {options.stop_at_error:g}, at most {length}"
    trained_by = weights.describe_origin(weights.read_origin(options.package))
    facts = [
        ("Students", f"{cli.show(setting.reference)}, {mask}"),
        ("Test", length),
        ("Weights trained by", trained_by),
    ]
    simulated = provenance.is_simulated(setting.reference)
    subjects = find_subjects(setting.metadata_dir, bank.n_questions)
    columns = np.arange(reference.is_correct.shape[1])
    names = metadata.name_subjects(setting.metadata_dir, columns)
    written, lines = {}, []
    for row, course in courses.items():
        student, steps = int(reference.student[row]), course.steps
        page = student_page(student, bank, course, names, subjects, facts, simulated)
        written[options.output_dir / f"student_{student}.html"] = page
        last, n_asked = steps.iloc[-1], len(steps) - 1
        lines.append(
            f"UserId {student}: {n_asked} question{'s' * (n_asked != 1)}, ability "
            f"{last.ability:+z.2f} ± {last.error:.2f} (standard error), {last.share:.0%} of the "
            "bank expected right"
        )
    writing.write_files(written)
    print(*lines, f"written: {', '.join(map(cli.show, written))}", sep="\n")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    parser.add_argument("--student", type=int, nargs="+", metavar="ID", default=[], help="UserIds")
    add_data_flags(parser)
    parser.add_argument("--mask", help="column with the hidden answers (default: the file's first)")
    cli.add_number(parser, "--questions", N_ROUNDS, "how many are asked at most")
    stop = "end before that once the ability's standard error is at most S, as 0.35"
    parser.add_argument("--stop_at_error", type=share, metavar="S", default=0.0, help=stop)
    cli.add_folder(parser, "--package", layout.ROOT / "task_4" / "item_response")
    cli.add_folder(parser, "--output_dir", layout.TEST_OUTPUT_DIR / "student_report")
    return parser


def find_students(options: argparse.Namespace, reference: Reference, mask: str) -> list[int]:
    """Return the rows of the students asked for, who must have enough answers to be asked."""
    if mask not in reference.targets:
        raise InputError(
            f"--mask {mask}: is not a mask of {reference.name}, "
            f"expected {', '.join(reference.targets)}"
        )
    state = GameState(reference, mask, Rules())
    can_be_asked = state.can_query.sum(axis=1) >= options.questions
    examples = ", ".join(map(str, reference.student[can_be_asked][:3]))
    expected = f"expected UserIds of {reference.name}, such as {examples}"
    if not options.student:
        raise InputError(f"--student: names nobody, {expected}")
    unknown = np.setdiff1d(options.student, reference.student)
    if len(unknown):
        raise InputError(f"--student {unknown[0]}: is not there, {expected}")
    rows = np.searchsorted(reference.student, list(dict.fromkeys(options.student)))
    state.require_askable(options.questions, rows=rows)
    return [int(row) for row in rows]


def find_subjects(metadata_dir: Path, n_questions: int) -> Subjects:
    """Return the areas of mathematics and the topics of the bank; none without metadata."""
    listed = metadata.find_subjects(metadata_dir, np.arange(n_questions))
    found: Subjects = {_AREAS: [], _TOPICS: []}
    for (_, level, name), rows in listed.groupby(["subject", "Level", "Name"])["row"]:
        members = rows.unique()
        if level == 1 or (level == 2 and len(members) >= _MIN_QUESTIONS):
            found[_AREAS if level == 1 else _TOPICS].append((f"{name}", members))
    return found


# ---- The page, put into words by student.html ----------------------------------------------------


def student_page(
    student: int,
    bank: Bank,
    course: Course,
    names: Sequence[str],
    subjects: Subjects,
    facts: Sequence[tuple[str, str]],
    simulated: bool,
) -> str:
    """Return a student's page; `names` are the subjects of all questions, "" where not known."""
    reach = _NORMAL_QUANTILE * course.steps["error"]
    ends = {"low": course.steps["ability"] - reach, "high": course.steps["ability"] + reach}
    steps: list[Any] = [*course.steps.assign(reach=reach, **ends).itertuples()]
    first, last = steps[0], steps[-1]
    asked, drawn = [], [charts.Dot("before", nan, (first.low, first.high), first.ability)]
    for n, step in enumerate(steps[1:], 1):
        outcome = _OUTCOMES[step.is_right]
        drawn.append(charts.Dot(f"{n}, {outcome}", step.ability, (step.low, step.high)))
        name = names[step.QuestionId] or "unknown"
        cells = f"{n}", name, f"{step.QuestionId}", f"{step.expected:.0%}", outcome
        ability = f"{_signed(step.ability)} ± {step.reach:.2f}"
        asked.append((*cells, ability, f"{step.share:.0%}"))
    label, axis = "Ability after each question", "ability, compared with the training students"
    ability_chart = charts.dot_chart(drawn, label=label, digits=2, chance=0, axis=axis)
    axis = "share of the questions expected right"
    dots = {kind: expect(bank, course, members) for kind, members in subjects.items()}
    topics, chosen = subjects.get(_TOPICS, []), course.steps["QuestionId"][1:]
    least_known = sorted(dots.get(_TOPICS, []), key=lambda dot: -np.ptp(dot.interval))
    p, truth = course.hidden_probability, course.hidden_truth
    prediction, outcomes = p > 0.5, []
    for label, is_predicted in (("expected right", prediction), ("expected wrong", ~prediction)):
        n_right, n = truth[is_predicted].sum(), is_predicted.sum()
        outcomes.append((label, f"{n_right}", f"{n - n_right}", f"{n}"))
    return pages.render(
        "student.html",
        title=f"Student {student}",
        simulated=simulated,
        bank=bank,
        course=course,
        first=first,
        last=last,
        n_right=course.steps["is_right"][1:].sum(),
        facts=facts,
        share_ends=interval(course.draws.mean(axis=1)),
        # The share of the training students, normal around 0, with a lower ability.
        below=NormalDist().cdf(last.ability),
        below_ends=[NormalDist().cdf(end) for end in (last.low, last.high)],
        ability_chart=ability_chart,
        asked=asked,
        subject_charts={
            label: charts.dot_chart(some, label=label, digits=2, limits=(0, 1), axis=axis)
            for label, some in dots.items()
            if some
        },
        n_topics=len(topics),
        n_topics_asked=sum(bool(np.isin(members, chosen).any()) for _, members in topics),
        least_known=least_known[:3],
        is_hit=prediction == (truth == 1),
        unsure=_UNSURE,
        is_unsure=(p > _UNSURE[0]) & (p < _UNSURE[1]),
        hidden_ends=interval(course.hidden_counts),
        outcomes=outcomes,
        percent="{:.0%}".format,
        signed=_signed,
    )


def interval(draws: FloatArray | IntArray) -> tuple[float, float]:
    """Return the ends of the middle 90% of draws."""
    low, high = np.quantile(draws, [(1 - _COVERAGE) / 2, (1 + _COVERAGE) / 2]).tolist()
    return low, high


def expect(bank: Bank, course: Course, subjects: list[tuple[str, IntArray]]) -> list[charts.Dot]:
    """Return the share expected right in every subject, least first, as it is to be drawn."""
    return [
        charts.Dot(
            name,
            float(course.probability[members].mean()),
            interval=interval(course.draws[:, members].mean(axis=1)),
            mark=float(bank.share[members].mean()),
        )
        for name, members in sorted(subjects, key=lambda one: course.probability[one[1]].mean())
    ]


def _signed(value: float) -> str:
    return f"{value:+z.2f}".replace("-", "−")


if __name__ == "__main__":
    cli.run(main)
