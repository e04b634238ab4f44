"""Say what each student is expected to know of each subject, for a teacher to look at.

    python -m tools.mastery
    python -m tools.mastery --students 12 70 512
    python -m tools.mastery --train_data my_answers.csv --concepts my_concepts.csv

Fits item response theory with the subjects of the questions as contexts to the training answers of
tasks 3 and 4, or of other tasks (`--tasks 1/2`). Writes mastery.csv, with a row for each student
and each subject in which the student has answers, and mastery.html, a page on a class. Mastery is
the share of a subject's questions that a student is expected to answer correctly. A share that
rests on few answers lies close to that of the subject above, and its interval is wide.

`--model FILE` names a model that an item response sample of task 1 or 2 has written with
--save_model. Then nothing is fitted, and the mastery of all subjects follows from the abilities
alone: a subject has no effect of its own.

`--concepts FILE` names a table with the columns QuestionId and Concept, which takes the place of
the subjects.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

from common import (
    cli,
    layout,
    mastery_table,
    metadata,
    model_files,
    pages,
    provenance,
    reading,
    schema,
    writing,
)
from common.answers import find_ids, find_rows, read_answers
from common.arrays import IntArray
from common.errors import InputError
from common.origin import Origin

import numpy as np
import pandas as pd

# Levels of the tree of subjects: areas of mathematics (1), parts of areas (2), topics (3). The root
# is left out: it is all of mathematics, so its mastery would only repeat the ability.
_TREE_LEVELS = (1, 2, 3)
# The page shows at most this many students, unless --students names the students to show.
_N_SHOWN = 30
# The page lists at most this many topics: those with the lowest mean mastery in the class.
_N_TOPICS = 10
# A topic is listed if at least this many of the shown students have answers in it.
_MIN_STUDENTS = 3
# Mastery of a topic is the share of its questions that a student is expected to answer correctly. A
# student needs help with the topic if even the upper end of the share's interval is below this
# limit.
_HELP_BELOW = 0.5
_CONCEPT = schema.Column("Concept", schema.TEXT)


@dataclass(frozen=True)
class Subjects:
    """The subjects of questions, as numbers that `ItemResponse` takes as contexts."""

    # For each question, the number of its subject at each level, shape (questions, levels).
    # Subjects are numbered from 0. If a question has no subject at a level, its number there is
    # larger than the numbers of all subjects.
    path: IntArray
    # Row i describes the subject with the number i by its name, its level and its SubjectId. If the
    # subjects are the concepts of a user's own file (--concepts), the SubjectId is -1.
    table: pd.DataFrame


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    cli.add_answer_flags(parser)
    parser.add_argument("--concepts", type=Path, metavar="FILE", help="concepts for subjects")
    parser.add_argument(
        "--students", type=int, nargs="+", metavar="ID", help="UserIds of the class on the page"
    )
    model_files.add_fit_flags(parser)
    cli.add_folder(parser, "--output_dir", layout.TEST_OUTPUT_DIR)
    return parser


def main() -> None:
    """Fit the model, write the table and the page."""
    options = build_parser().parse_args()
    model_files.refuse_model_with_settings(options)
    train = cli.answers_path(options)
    table_path = options.output_dir / mastery_table.FILE_NAME
    page_path = options.output_dir / "mastery.html"
    cli.require_outputs([table_path, page_path], [train, options.concepts, options.model])
    answers = read_answers(train, options=False)
    question_ids = np.unique(answers["QuestionId"])
    if options.concepts is None:
        subjects = read_subjects(options.metadata_dir, options.tasks, question_ids)
    else:
        subjects = read_concepts(options.concepts, question_ids)
    students = find_class(answers, options.students, train)

    # For each answer, the subjects of its question, shape (n_answers, n_levels). The model takes
    # them as contexts: it learns how much better or worse a student does in each subject.
    rows_of_questions = find_ids(question_ids, answers["QuestionId"])
    subjects_of_answers = subjects.path[rows_of_questions]
    if options.model is None:
        source = cli.show(train)
        origin = provenance.origin_of(train)
        model = model_files.new_model(options)
        model.fit(
            answers["UserId"],
            answers["QuestionId"],
            answers["IsCorrect"],
            context=subjects_of_answers,
        )
    else:
        found = model_files.read_model(options.model, train)
        model = found.model.with_subjects(answers["UserId"], subjects_of_answers)
        source = found.source
        origin = found.origin
    mastery = name_subjects(model.mastery(subjects.path), subjects)
    # A model from a file (--model) has no effects of subjects. So each student's share in a subject
    # follows from the student's abilities and the subject's questions alone.
    by_abilities = options.model is not None
    page = class_page(mastery, students, origin, source, by_abilities=by_abilities)

    writing.write_files({table_path: mastery_table.columns_of_file(mastery), page_path: page})
    print(f"{len(mastery):,} pairs of a student and a subject, {len(students)} on the page")
    print(f"written: {cli.show(table_path)}, {cli.show(page_path)}")


# ---- The subjects of questions -----------------------------------------------------------------


def read_subjects(folder: Path, tasks: str, question_ids: IntArray) -> Subjects:
    """Read the subjects of questions from the metadata: one subject at each level of the tree.

    A question's subject at a level lies on the path from its deepest subject up to the root. If a
    question has several deepest subjects, the first one in its list counts.

    In the result, `path` has a row for each question and a column for each level. Its values are
    row numbers of `table`, the table of the subjects. Larger values stand for "no subject".
    """
    question_metadata = folder / f"question_metadata_{layout.ending_of(tasks)}"
    subject_metadata = folder / layout.SUBJECT_METADATA
    for file in (question_metadata, subject_metadata):
        reading.require_file(file)
    tree = metadata.read_subject_tree(subject_metadata)
    # Each row of `listed` is a question and one subject of its list. `row` is the question's index
    # in `question_ids`, and `subject` is the subject's row in `tree`.
    listed = metadata.read_question_subjects(question_metadata, question_ids, tree)
    listed["level"] = tree["Level"].to_numpy()[listed["subject"]]
    listed = listed[listed["level"] <= _TREE_LEVELS[-1]]
    # Keep the deepest subject of each question. If several subjects are equally deep, the first one
    # in the question's list stays, because the stable sort keeps their order.
    deepest = listed.sort_values("level", ascending=False, kind="stable").drop_duplicates("row")
    path = _paths_to_root(deepest, tree, n_questions=len(question_ids))
    return Subjects(path, table=tree[["SubjectId", "Name", "Level"]])


def _paths_to_root(deepest: pd.DataFrame, tree: pd.DataFrame, n_questions: int) -> IntArray:
    """Return the subjects of each question, shape (questions, levels), as `Subjects.path`.

    Parameters
    ----------
    deepest
        The deepest subject of each question that has subjects: `row` is the question's row in the
        result, and `subject` is the subject's row in `tree`.
    tree
        The tree of subjects: `Level` is the level of a subject, and `parent` the row of its parent.
    n_questions
        The number of questions, with or without subjects.
    """
    n_subjects = len(tree)
    level_of_subject = tree["Level"].to_numpy()
    parent_of_subject = tree["parent"].to_numpy()
    # At levels below its deepest subject s, a question has no subject. There, `path` holds the
    # number n_subjects + s, so that questions with different deepest subjects do not share a
    # number. All questions without any subject share the number 2 * n_subjects.
    no_subject_at_all = 2 * n_subjects
    path = np.full((n_questions, len(_TREE_LEVELS)), no_subject_at_all, np.int32)
    # Element i of `subject` is a subject of the question in row `rows[i]` of `path`. Questions
    # without any subject are left out.
    subject = deepest["subject"].to_numpy()
    rows = deepest["row"].to_numpy()
    # Go through the levels from the deepest one up. For each question, `subject` stays the deepest
    # subject until the loop reaches the level of this subject. From there on, each round replaces
    # it by its parent.
    for column in reversed(range(len(_TREE_LEVELS))):
        is_at_level = level_of_subject[subject] == _TREE_LEVELS[column]
        path[rows, column] = np.where(is_at_level, subject, n_subjects + subject)
        subject = np.where(is_at_level, parent_of_subject[subject], subject)
    return path


def read_concepts(path: Path, question_ids: IntArray) -> Subjects:
    """Read a table with the concept of each question; a question without concept has no subject."""
    source = reading.file_source(path)
    listed = reading.read_table(source, [schema.QUESTION_ID, _CONCEPT])
    row = find_rows(listed["QuestionId"].to_numpy(), question_ids)
    if (row < 0).all():
        raise InputError(f"{path}: column 'QuestionId': names none of the questions with answers")
    number, names = pd.factorize(listed["Concept"].str.strip(), sort=True)
    concept = np.where(row < 0, len(names), number[row])
    table = pd.DataFrame({"SubjectId": -1, "Name": np.asarray(names), "Level": 1})
    return Subjects(concept[:, None].astype(np.int32), table)


def name_subjects(mastery: pd.DataFrame, subjects: Subjects) -> pd.DataFrame:
    """Return the table of mastery with the subjects' names; leave out rows without a subject."""
    # Numbers beyond the table of the subjects stand for "no subject".
    is_subject = mastery["subject"] < len(subjects.table)
    mastery = mastery[is_subject].reset_index(drop=True)
    table = subjects.table.iloc[mastery["subject"]].reset_index(drop=True)
    return pd.DataFrame(
        {
            "UserId": mastery["student"],
            "Level": table["Level"],
            "SubjectId": table["SubjectId"],
            "Name": table["Name"],
            "Answers": mastery["n_answers"],
            "Share": mastery["share"],
            "Low": mastery["low"],
            "High": mastery["high"],
        }
    )


# ---- The page ----------------------------------------------------------------------------------


def find_class(answers: pd.DataFrame, wanted: list[int] | None, path: Path) -> IntArray:
    """Return the students to show: those that --students names, or those with the most answers."""
    # The number of answers of each student. The index holds the UserIds.
    n_answers = answers["UserId"].value_counts()
    if wanted is None:
        # The students with the most answers come first. Among students with equally many answers,
        # the smallest UserId comes first, because the second sort is stable.
        most_first = n_answers.sort_index().sort_values(ascending=False, kind="stable")
        return np.sort(most_first.index[:_N_SHOWN].to_numpy())
    unknown = [student for student in wanted if student not in n_answers.index]
    if unknown:
        examples = ", ".join(map(str, n_answers.index.sort_values()[:3]))
        raise InputError(
            f"--students {unknown[0]}: has no answers in {path}, "
            f"expected UserIds such as {examples}"
        )
    return np.unique(wanted)


def class_page(
    mastery: pd.DataFrame, students: IntArray, origin: Origin, source: str, *, by_abilities: bool
) -> str:
    """Return the page on a class: each student's share in each area, and the weakest topics.

    `by_abilities` says whether the model predicts the shares from the students' abilities alone,
    without effects of subjects.
    """
    mastery_of_class = mastery[mastery["UserId"].isin(students)]
    # The areas are the subjects of the smallest level, and the topics those of the largest level.
    # Concepts (see --concepts) have a single level, so they are both areas and topics.
    level = mastery_of_class["Level"]
    area_mastery = mastery_of_class[level == level.min()]
    topic_mastery = mastery_of_class[level == level.max()]
    # For each area, the number of students of the class who have answers in it, the largest number
    # first. The index of `n_students` names an area by its SubjectId and Name.
    n_students = area_mastery.groupby(["SubjectId", "Name"]).size()
    n_students = n_students.sort_values(ascending=False, kind="stable")
    areas = n_students.index
    # The page has a table with a row for each student and a column for each area. A cell of this
    # table is a row of `mastery`: a student's expected share in an area.
    cells = {}
    for cell in area_mastery.itertuples(index=False):
        area = (cell.SubjectId, cell.Name)
        cells[cell.UserId, area] = cell
    # Each row holds a student and the cells of this student, with None for an area without answers.
    rows = []
    for student in students.tolist():
        rows.append((student, [cells.get((student, area)) for area in areas]))
    return pages.render(
        "mastery.html",
        title="What the class is expected to know",
        origin=origin,
        source=source,
        by_abilities=by_abilities,
        areas=[name for _, name in areas],
        rows=rows,
        topics=list(_topics_to_help_with(topic_mastery).itertuples(index=False)),
        min_students=_MIN_STUDENTS,
    )


def _topics_to_help_with(topic_mastery: pd.DataFrame) -> pd.DataFrame:
    """Return the topics with the lowest mean mastery, the lowest one first.

    A row of `topic_mastery` is a student's expected share in a topic. In the result, `n` is the
    number of students with answers in a topic, and `n_low` the number of students who need help.
    """
    # A student needs help with a topic if even the upper end of the share's interval is below the
    # limit.
    is_low = topic_mastery["High"] < _HELP_BELOW
    by_topic = topic_mastery.assign(is_low=is_low).groupby(["SubjectId", "Name"])
    topics = by_topic.agg(n=("Share", "size"), mean=("Share", "mean"), n_low=("is_low", "sum"))
    topics = topics[topics["n"] >= _MIN_STUDENTS].sort_values("mean", kind="stable").reset_index()
    return topics.head(_N_TOPICS)


if __name__ == "__main__":
    cli.run(main)
