"""Write a map of misconceptions: groups of wrong options that the same students choose.

The page shows, for each group, the questions, their wrong options, how many students the group
concerns, and how sure it is. Three in five students find the groups, one in five choose how alike
options of a group must be, and one in five check the groups. The method is in
task_2/misconception_groups.py, figures are in tests/benchmarks/misconceptions.md.

Run:     python task_2/misconceptions.py                  the training answers of tasks 3/4
         python task_2/misconceptions.py --tasks 1/2      the training answers of tasks 1/2
Writes:  data/test_output/misconceptions.html, and the same table as .csv
"""

import argparse
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from common import (
    answer_options,
    cli,
    layout,
    metadata,
    pages,
    provenance,
    reading,
    schema,
    stray_files,
    writing,
)
from common.answer_context import number_contexts
from common.answers import number_ids, read_answers
from common.arrays import BoolArray, IntArray
from common.item_response import ItemResponseOptions
from common.origin import Origin

import misconception_groups as groups
import numpy as np
import pandas as pd
from misconception_groups import Ratio, WrongAnswers

PAGE = "misconceptions.html"
TABLE = "misconceptions.csv"
# Number of abilities in the item response model, which predicts the students' choices. With more
# abilities, the model itself would learn the misconceptions that this script is to find.
N_DIMENSIONS = 2
# The students are divided at random into three parts. The answers of the first part are searched
# for groups of wrong options, the answers of the second part decide how strict the search is, and
# the answers of the third part check the groups. These are the shares of the parts.
SHARES = (0.6, 0.2, 0.2)
FINDING, CHOOSING, CHECKING = range(3)


@dataclass(frozen=True)
class WrongOption:
    """A wrong option of a group, with the facts that the page shows."""

    question_id: int
    # The wrong option and the right one, from 1.
    option: int
    right_option: int
    # Share of all answers to the question that chose the option.
    share: float
    # Number of all answers to the question.
    n_answers: int
    # Names of the question's deepest subjects.
    subjects: list[str]
    # Link to the question's image; "" if there is none.
    image: str
    # Link to the page about the question that task 3 writes; "" if there is none.
    page: str


@dataclass(frozen=True)
class Group:
    """A group of wrong options."""

    # Number of students who chose at least two of its options.
    n_students: int
    # How much more often than expected students choose another option of the group; see
    # `groups.measure_lift`.
    lift: Ratio
    options: list[WrongOption]

    @property
    def is_confirmed(self) -> bool:
        """Return whether students who took no part in the search confirm the group.

        They confirm it if the 95 % interval of the group's lift lies above 1.
        """
        return self.lift.low > 1

    @property
    def common_subjects(self) -> list[str]:
        """Return the subjects that more than half of the questions have."""
        counts = Counter(name for option in self.options for name in option.subjects)
        half = len(self.options) / 2
        return [name for name, n in counts.most_common() if n > half]

    @property
    def common_position(self) -> int | None:
        """Return the number of the option, from 1, if all wrong options of the group share it.

        Otherwise return None.
        """
        positions = {option.option for option in self.options}
        return positions.pop() if len(positions) == 1 else None


@dataclass(frozen=True)
class Found:
    """The groups that were found, and the wrong answers of all students."""

    wrong: WrongAnswers
    # The QuestionId of each question; `wrong` numbers the questions from 0.
    question_id: IntArray
    # The group of each item (an option of a question), -1 for none; see `groups.find_groups`.
    group: IntArray
    # The lift of each group: how much more often than expected students who chose one option of the
    # group chose another one too.
    lifts: list[Ratio]
    # How much the groups lower the mean log loss of wrong answers. It is measured on the students
    # who check the groups: their answers took no part in the search.
    gain: Ratio
    # The number of students who check the groups.
    n_checking: int


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    parser.add_argument("--tasks", choices=layout.TASK_PAIRS, default="3/4", help="default: 3/4")
    cli.add_folder(parser, "--input_dir", layout.TRAIN_DIR)
    cli.add_folder(parser, "--metadata_dir", layout.METADATA_DIR)
    cli.add_folder(parser, "--images_dir", layout.IMAGES_DIR)
    cli.add_folder(parser, "--output_dir", layout.TEST_OUTPUT_DIR)
    cli.add_number(parser, "--seed", 0, "seed of the model, and of who finds, chooses and checks")
    return parser


def main() -> None:
    """Find groups of wrong options that the same students choose; write a page and a table."""
    options = build_parser().parse_args()
    ending = layout.ending_of(options.tasks)
    train = options.input_dir / f"train_{ending}"
    reading.require_file(train)
    writing.require_writable_folder(options.output_dir)
    answers = read_answers(train, options=True, ids=True)
    context = find_context(answers, options.metadata_dir, ending)
    found = find_and_check(answers, context, options.seed)

    subjects = metadata.list_subject_names(options.metadata_dir, found.question_id, options.tasks)
    # Only the questions of tasks 3/4 have images. Only these questions have pages of their own in
    # the question report, which task 3 writes.
    has_images = options.tasks == "3/4"
    images_dir = options.images_dir if has_images else None
    report_dir = options.output_dir / "question_report" if has_images else None
    described = describe_groups(found, answers, subjects, images_dir, report_dir)
    page = render(described, found, answers, provenance.origin_of(train))
    table = tabulate(described).to_csv(index=False, lineterminator="\n")
    page_path = options.output_dir / PAGE
    writing.write_files({page_path: page, options.output_dir / TABLE: table})
    print(f"written: {cli.show(page_path)} ({len(described):,} groups) and .csv")


def find_context(answers: pd.DataFrame, metadata_dir: Path, ending: str) -> IntArray:
    """Return the contexts in which each answer was given, as numbers, int32 (answers, columns).

    A context is a quiz that a class takes. If quizzes are not known, a context is a cluster of
    questions that the same students answer. The model of answers learns an effect of each student
    in each context.

    If contexts are quizzes, there is one column. If they are clusters, there is a column for each
    level: the clusters of a level are divided into the smaller clusters of the next level.

    The metadata are in the file answer_metadata_ with this `ending`, such as task_3_4.csv.
    """
    path = metadata.find(metadata_dir, f"answer_metadata_{ending}")
    # The class and the quiz of each answer, if the metadata are there.
    circumstances = None
    if path is not None and "AnswerId" in answers:
        header = reading.read_header(reading.file_source(path))
        columns = [column for column in (schema.GROUP_ID, schema.QUIZ_ID) if column.name in header]
        answer_id = answers["AnswerId"].to_numpy()
        circumstances = metadata.read_circumstances(path, answer_id, columns=columns)
    student = answers["UserId"].to_numpy()
    question = answers["QuestionId"].to_numpy()
    # `number_contexts` expects `n_answers` rows that are only learned from, followed by the rows to
    # be predicted. Here the model predicts the same rows that it learns from, so `n_answers` is 0.
    return number_contexts(student, question, n_answers=0, circumstances=circumstances)


# ---- Finding groups ------------------------------------------------------------------------------


def find_and_check(answers: pd.DataFrame, context: IntArray, seed: int) -> Found:
    """Find groups of wrong options, and check them on students who took no part in the search.

    A model of answers (item response) says how probable each option is. The answers of a first part
    of the students are searched for groups of wrong options that are chosen together more often
    than the model expects. The second part decides how strict the search is. The third part checks
    the result. The lift of a group says how much more often than expected students choose further
    options of the group. The gain says how much better all groups together predict wrong answers.

    `context` is the result of `find_context`.
    """
    student_id, student = number_ids(answers["UserId"])
    question_id, question = number_ids(answers["QuestionId"])
    option = answers["AnswerValue"].to_numpy()
    right = answers["CorrectAnswer"].to_numpy()
    model = ItemResponseOptions(N_DIMENSIONS, seed=seed)
    n_options = answer_options.number_of_each(answers)
    model.fit(student, question, option, right, n_options=n_options, context=context)
    wrong_rows = np.flatnonzero(option != right)
    p_option = model.predict_proba(
        student[wrong_rows], question[wrong_rows], context=context[wrong_rows]
    )
    # The files number options from 1, and `WrongAnswers` from 0.
    wrong_option = option[wrong_rows] - np.int8(1)
    right_option = right[wrong_rows] - np.int8(1)
    wrong = WrongAnswers(
        student=student[wrong_rows],
        question=question[wrong_rows],
        option=wrong_option,
        # The probability of each option, given that the answer is wrong.
        probability=groups.given_wrong(p_option, right_option),
        n_students=len(student_id),
        n_questions=len(question_id),
    )
    # The part of each student: FINDING, CHOOSING or CHECKING.
    part = draw_parts(len(student_id), seed)
    pairs = groups.compare_pairs(wrong.of_students(part == FINDING))
    group = groups.choose_groups(pairs, wrong.of_students(part == CHOOSING))
    checking = wrong.of_students(part == CHECKING)
    # Check the groups on the students of the third part. Each wrong answer is predicted from the
    # student's other wrong answers. For each student, find by how much the groups lower the log
    # loss of these predictions, and their number.
    gain_sum, n_predicted = groups.gain_by_student(known=checking, asked=checking, group=group)
    return Found(
        wrong=wrong,
        question_id=question_id,
        group=group,
        lifts=groups.measure_lift(checking, group),
        gain=groups.ratio_by_student(gain_sum, n_predicted),
        n_checking=int((part == CHECKING).sum()),
    )


def draw_parts(n_students: int, seed: int) -> IntArray:
    """Draw the part of each student: FINDING, CHOOSING or CHECKING, int64 (n_students,).

    The answers of the first part are searched for groups of wrong options, the answers of the
    second part decide how strict the search is, and the answers of the third part check the groups.
    """
    bounds = np.cumsum(SHARES)[:-1]
    return np.searchsorted(bounds, np.random.default_rng(seed).random(n_students), side="right")


# ---- What people see -----------------------------------------------------------------------------


def describe_groups(
    found: Found,
    answers: pd.DataFrame,
    subjects: list[list[str]],
    images_dir: Path | None,
    report_dir: Path | None,
) -> list[Group]:
    """Return the groups of wrong options as the page shows them, the group of most students first.

    Parameters
    ----------
    found
        The groups, and the wrong answers of all students.
    answers
        All answers, right and wrong.
    subjects
        Names of the deepest subjects of each question, in the order of ``found.question_id``.
    images_dir, report_dir
        Folders with images of questions and with pages about questions; None if there are none.
    """
    # An item is an option of a question. Its number is n_options · question + option, with
    # questions and options numbered from 0.
    question = np.searchsorted(found.question_id, answers["QuestionId"].to_numpy())
    n_options = found.wrong.n_options
    item = question * n_options + answers["AnswerValue"].to_numpy() - 1
    n_chosen = np.bincount(item, minlength=found.wrong.n_items)
    n_answers = np.bincount(question, minlength=len(found.question_id))
    is_right: BoolArray = answers["IsCorrect"].to_numpy() == 1
    right_option = np.zeros(len(found.question_id), np.int8)
    right_option[question[is_right]] = answers["CorrectAnswer"].to_numpy()[is_right]
    n_students = groups.count_students(found.wrong, found.group)
    described = []
    for number, lift in enumerate(found.lifts):
        options = []
        for item_of_group in np.flatnonzero(found.group == number).tolist():
            row, position = divmod(item_of_group, n_options)
            question_id = int(found.question_id[row])
            options.append(
                WrongOption(
                    question_id=question_id,
                    option=position + 1,
                    right_option=int(right_option[row]),
                    share=float(n_chosen[item_of_group] / n_answers[row]),
                    n_answers=int(n_answers[row]),
                    subjects=subjects[row],
                    image=link_to(images_dir, f"{question_id}.*"),
                    page=link_to(report_dir, f"question_{question_id}.html"),
                )
            )
        options.sort(key=lambda option: -option.share)
        described.append(Group(int(n_students[number]), lift, options))
    return sorted(described, key=lambda group: -group.n_students)


def link_to(folder: Path | None, pattern: str) -> str:
    """Return the URI of the first file in a folder that matches a pattern; "" if there is none."""
    path = next(stray_files.list_paths(folder, pattern), None) if folder else None
    return path.resolve().as_uri() if path else ""


def render(described: list[Group], found: Found, answers: pd.DataFrame, origin: Origin) -> str:
    """Return the page on groups of wrong options that the same students choose.

    `described` are the groups as the page shows them. The page also says how much better the groups
    predict wrong answers (``found.gain``), and how many students' answers show this
    (``found.n_checking``).
    """
    return pages.render(
        PAGE,
        title="Wrong answers that go together",
        tab="Misconceptions",
        origin=origin,
        groups=described,
        gain=found.gain,
        n_checking=found.n_checking,
        n_students=found.wrong.n_students,
        n_wrong=len(found.wrong.option),
        n_answers=len(answers),
    )


def tabulate(described: list[Group]) -> pd.DataFrame:
    """Return the table: a row for each option of each group."""
    columns = ["Group", "Students", "Lift", "LiftLow", "LiftHigh", "QuestionId", "AnswerValue"]
    columns += ["CorrectAnswer", "Share", "Answers", "Subjects"]
    rows = []
    for number, group in enumerate(described, start=1):
        lift = (group.lift.value, group.lift.low, group.lift.high)
        cells_of_group = [number, group.n_students, *(round(value, 3) for value in lift)]
        for option in group.options:
            cells_of_option = [
                option.question_id,
                option.option,
                option.right_option,
                round(option.share, 4),
                option.n_answers,
                ", ".join(option.subjects),
            ]
            rows.append([*cells_of_group, *cells_of_option])
    return pd.DataFrame(rows, columns=columns)


if __name__ == "__main__":
    cli.run(main)
