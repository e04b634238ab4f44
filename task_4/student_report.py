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
from common.adaptive.evaluation import name_questions
from common.adaptive.game import N_ROUNDS, GameState, Reference, Rules
from common.errors import InputError

import numpy as np
from ability import ask, load_bank
from student_page import Subject, student_page

# A topic of fewer questions is no topic of the bank.
MIN_QUESTIONS = 5
N_EXAMPLES = 3


def main() -> None:
    """Load the model, ask the questions, write the pages."""
    options = parse()
    # The model's weights must be there before anything else is done.
    entry_files.collect(options.package)
    setting = playing.Setting(options.package, *adaptive_options.examined(options))
    reference = playing.read_students(setting)
    mask = options.mask or next(iter(reference.targets))
    rows = find_students(options, reference, mask)
    bank = load_bank(options.package)
    courses = ask(bank, reference, mask, rows, options.questions, options.stop_at_error)

    length = f"{options.questions} questions"
    if options.stop_at_error:
        length = f"until the standard error is at most {options.stop_at_error:g}, at most {length}"
    trained = made.parse(read_entry_file(options.package, training.TRAINING) or b"")
    facts = [
        ("Students", f"{cli.show(setting.reference)}, {mask}"),
        ("Test", length),
        ("Weights trained by", training.describe_origin(trained)),
    ]
    simulated = made.is_simulated(setting.reference)
    subjects = find_subjects(setting.metadata_dir, bank.n_questions)
    names = name_questions(setting.metadata_dir, reference.is_correct.shape[1])
    pages = {}
    for row, course in courses.items():
        student = int(reference.student[row])
        of_asked = [names[question] for question in course.chosen]
        page = student_page(student, bank, course, of_asked, subjects, facts, simulated=simulated)
        pages[options.output_dir / f"student_{student}.html"] = page
    with io.atomic_write(*pages) as files:
        for file, page in zip(files, pages.values(), strict=True):
            file.write(page.encode())
    for row, course in courses.items():
        print(
            f"UserId {reference.student[row]}: {len(course.chosen)} questions, ability "
            f"{course.ability[-1]:+z.2f} ± {course.deviation[-1]:.2f} (standard error), "
            f"{course.share[-1]:.0%} of the bank expected right"
        )
    print(f"written: {', '.join(map(cli.show, pages))}")


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
    cli.add_folder(p, "--package", layout.ROOT / "task_4" / "item_response")
    cli.add_folder(p, "--output_dir", layout.TEST_OUTPUT_DIR / "student_report")
    return p.parse_args()


def find_students(options: argparse.Namespace, reference: Reference, mask: str) -> list[int]:
    """Return the rows of the students asked for, who must have enough answers to be asked."""
    if mask not in reference.targets:
        raise InputError(
            f"--mask {mask}: is not a mask of {reference.name}, "
            f"expected {', '.join(reference.targets)}"
        )
    state = GameState(reference, mask, Rules())
    can_be_asked = state.can_query.sum(axis=1) >= options.questions
    examples = ", ".join(map(str, reference.student[can_be_asked][:N_EXAMPLES]))
    expected = f"expected UserIds of {reference.name}, such as {examples}"
    if not options.student:
        raise InputError(f"--student: names nobody, {expected}")
    unknown = np.setdiff1d(options.student, reference.student)
    if len(unknown):
        raise InputError(f"--student {unknown[0]}: is not there, {expected}")
    rows = np.searchsorted(reference.student, list(dict.fromkeys(options.student)))
    state.require_askable(options.questions, rows=rows)
    return [int(row) for row in rows]


def find_subjects(metadata_dir: Path, n_questions: int) -> list[Subject]:
    """Return the areas of mathematics and the topics of the bank; none without metadata."""
    questions = metadata.find(metadata_dir, layout.QUESTION_METADATA_TASK_3_4)
    subjects = metadata.find(metadata_dir, layout.SUBJECT_METADATA)
    if not (questions and subjects):
        return []
    tree = metadata.read_subject_tree(subjects)
    of_question = metadata.read_question_subjects(questions, np.arange(n_questions), tree)
    found = []
    for place, rows in of_question.groupby("subject")["row"]:
        level, members = int(tree["Level"][place]), rows.unique()
        if level == 1 or (level == 2 and len(members) >= MIN_QUESTIONS):
            found.append(Subject(tree["Name"][place], level == 1, members))
    return found


if __name__ == "__main__":
    cli.run(main)
