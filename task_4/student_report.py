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
from pathlib import Path

from common import cli, io, layout, made, metadata
from common.adaptive import entry_files, playing, training
from common.adaptive import options as adaptive_options
from common.adaptive.entry_process import read_entry_file
from common.adaptive.game import N_ROUNDS, GameState, Reference, Rules
from common.errors import InputError

import numpy as np
from ability import Course, ask, load_bank
from student_page import Report, Subject, student_page

# A topic of fewer questions is no topic of the bank.
MIN_QUESTIONS = 5
N_EXAMPLES = 3


def main() -> None:
    """Load the model, ask the questions, write the pages."""
    options = parse()
    # The model's weights must be there before anything else is done.
    entry_files.collect(options.package)
    place = playing.Setting(options.package, *adaptive_options.examined(options))
    reference = playing.read_students(place)
    mask = options.mask or next(iter(reference.targets))
    rows = find_students(options, reference, mask)
    playing.require_other_students(options.package, reference)
    bank = load_bank(options.package)
    courses = ask(bank, reference, mask, rows, options.questions, options.stop_at_error)

    simulated = made.is_simulated(place.reference)
    subjects = find_subjects(place.metadata_dir, bank.n_questions)
    names = name_questions(place.metadata_dir, reference.is_correct.shape[1])
    origin = made.parse(read_entry_file(options.package, training.TRAINING) or b"")
    facts = [
        ("Students", f"{cli.show(place.reference)}, {mask}"),
        ("Test", describe_test(options)),
        ("Weights trained by", training.describe_origin(origin)),
    ]
    pages = {
        f"student_{reference.student[row]}.html": student_page(
            Report(
                student=int(reference.student[row]),
                bank=bank,
                course=course,
                names=[names[question] for question in course.chosen],
                subjects=subjects,
                facts=facts,
                simulated=simulated,
            )
        )
        for row, course in courses.items()
    }
    paths = [options.output_dir / name for name in pages]
    with io.atomic_write(*paths) as files:
        for file, page in zip(files, pages.values(), strict=True):
            file.write(page.encode())
    for row, course in courses.items():
        print(f"UserId {reference.student[row]}: {summarise(course)}")
    print(f"written: {', '.join(cli.show(path) for path in paths)}")


def parse() -> argparse.Namespace:
    """Read the flags."""
    p = cli.parser(__doc__)
    p.add_argument("--student", type=int, nargs="+", metavar="ID", default=[], help="UserIds")
    adaptive_options.add_data_flags(p)
    p.add_argument("--mask", help="column with the hidden answers (default: the file's first)")
    p.add_argument(
        "--questions",
        type=cli.count,
        metavar="N",
        default=N_ROUNDS,
        help=f"how many are asked at most (default {N_ROUNDS})",
    )
    p.add_argument(
        "--stop_at_error",
        type=cli.share,
        metavar="S",
        default=0.0,
        help="end before that once the ability's standard error is at most S, as 0.35",
    )
    p.add_argument(
        "--package",
        type=Path,
        metavar="DIR",
        default=layout.ROOT / "task_4" / "item_response",
        help="default task_4/item_response",
    )
    p.add_argument(
        "--output_dir",
        type=Path,
        metavar="DIR",
        default=layout.TEST_OUTPUT_DIR / "student_report",
        help="default data/test_output/student_report",
    )
    return p.parse_args()


def find_students(options: argparse.Namespace, reference: Reference, mask: str) -> list[int]:
    """Return the rows of the students asked for.

    Raises
    ------
    InputError
        If there is no such mask or student, or a student has not enough answers to be asked.
    """
    if mask not in reference.targets:
        raise InputError(
            f"--mask {mask}: is not a mask of {reference.name}, "
            f"expected {', '.join(reference.targets)}"
        )
    n_askable = GameState(reference, mask, Rules()).can_query.sum(axis=1)
    examples = ", ".join(map(str, reference.student[n_askable >= options.questions][:N_EXAMPLES]))
    expected = f"expected UserIds of {reference.name}, such as {examples}"
    if not options.student:
        raise InputError(f"--student: names nobody, {expected}")
    unknown = np.setdiff1d(options.student, reference.student)
    if len(unknown):
        raise InputError(f"--student {unknown[0]}: is not there, {expected}")
    rows = np.searchsorted(reference.student, options.student)
    for row in rows[n_askable[rows] < options.questions].tolist():
        raise InputError(
            f"{reference.name}: UserId {reference.student[row]} has {n_askable[row]} answers that "
            f"may be asked with mask '{mask}', expected at least {options.questions}"
        )
    return list(dict.fromkeys(rows.tolist()))


def find_subjects(metadata_dir: Path, n_questions: int) -> list[Subject]:
    """Return the areas of mathematics and the topics of the bank; none without metadata."""
    questions = metadata.find(metadata_dir, layout.QUESTION_METADATA_TASK_3_4)
    subjects = metadata.find(metadata_dir, layout.SUBJECT_METADATA)
    if not (questions and subjects):
        return []
    tree = metadata.read_subject_tree(subjects)
    of_question = metadata.read_question_subjects(questions, np.arange(n_questions), tree)
    found = []
    for place in np.unique(of_question.subject).tolist():
        members = np.unique(of_question.row[of_question.subject == place])
        is_area = tree.level[place] == 1
        if is_area or (tree.level[place] == 2 and len(members) >= MIN_QUESTIONS):
            found.append(Subject(tree.names[place], bool(is_area), members))
    return found


def name_questions(metadata_dir: Path, n_questions: int) -> list[str]:
    """Return the names of the most specific subjects of all questions; empty without metadata."""
    questions = metadata.find(metadata_dir, layout.QUESTION_METADATA_TASK_3_4)
    subjects = metadata.find(metadata_dir, layout.SUBJECT_METADATA)
    if not (questions and subjects):
        return [""] * n_questions
    return metadata.name_subjects(questions, subjects, np.arange(n_questions))


def describe_test(options: argparse.Namespace) -> str:
    """Say how long the test is."""
    length = f"{options.questions} questions"
    if not options.stop_at_error:
        return length
    return f"until the standard error is at most {options.stop_at_error:g}, at most {length}"


def summarise(course: Course) -> str:
    """Return the end of a course in one line."""
    return (
        f"{len(course.chosen)} questions, ability {course.ability[-1]:+z.2f} "
        f"± {course.deviation[-1]:.2f} (standard error), {course.share[-1]:.0%} of the bank "
        "expected right"
    )


if __name__ == "__main__":
    cli.run(main)
