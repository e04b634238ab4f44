"""Look at the data: write a page of charts about the files in data/.

The page shows answers per student and question, difficulty, options and distractors, when answers
were given, quizzes and groups, confidence, the tree of subjects, students, and missing values. A
sentence says how to read each chart. Only training answers are counted. Charts without data are
left out.

Run:     python data/explore.py
         python data/explore.py --data_dir DIR --output_dir DIR
Writes:  data/test_output/explore.html
         data/test_output/explore_simulated.html for simulated data if there are other data too:
         for example, if tasks 1/2 are official and tasks 3/4 are simulated
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from common import (
    answer_options,
    charts,
    cli,
    layout,
    metadata,
    pages,
    provenance,
    reading,
    schema,
    writing,
)
from common.answers import read_answers
from common.charts import Dot, Panel
from common.errors import InputError
from common.evaluation import joined_metadata
from common.origin import Origin

import numpy as np
import pandas as pd
from explore_charts import HeatMap, column_chart, compact
from tqdm import tqdm

PAGE = "explore.html"
# The name of the page about simulated data, if another page shows other data.
SIMULATED_PAGE = "explore_simulated.html"

# A function that draws a chart. The template explore.html calls it later, with the argument
# `label`: the text for screen readers.
Chart = Callable[..., str]


@dataclass(frozen=True)
class Figure:
    """A chart and the facts that its sentence in the template explore.html mentions."""

    name: str
    chart: Chart
    facts: dict[str, Any] = field(default_factory=dict)


# Number of steps that `read_part` shows on the progress bar.
N_STEPS = 6
# A share that rests on fewer answers than this is mostly chance: it is left out or grey.
FEW_ANSWERS = 20
# A distractor is weak if it is chosen in less than this share of the answers to its question.
WEAK_SHARE = 0.05
# In the charts of shares by hour and by month, an hour or a month with fewer answers than this
# stays empty, because its shares would be mostly chance.
ENOUGH_FOR_A_SHADE = 100
# In the chart of right answers by hour, shades stand for shares. The shares of the lightest and the
# darkest shade differ by at least this much, so that small differences look small.
LEAST_RANGE = 0.1
# The chart of subjects by month has this many subjects at most, those with most answers.
N_MAIN_SUBJECTS = 8
# The official answers are of 2018 to 2020. A date before the first limit, or from the second limit
# on, counts as nonsense.
FIRST_ANSWER = "2015-01-01"
AFTER_LAST_ANSWER = "2025-01-01"
# A histogram of whole numbers has a bin for each number if the largest number exceeds the smallest
# by at most this much.
MOST_UNIT_BINS = 30
# A histogram over a range wider than MOST_UNIT_BINS has about this many bins, of increasing width.
N_BINS = 24
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    cli.add_folder(parser, "--data_dir", layout.DATA_DIR, "a folder laid out like data/")
    cli.add_folder(parser, "--output_dir", layout.TEST_OUTPUT_DIR)
    return parser


def main() -> None:
    """Read the files that are there, count answers, write the pages."""
    options = build_parser().parse_args()
    if not options.data_dir.is_dir():
        raise InputError(f"{options.data_dir}: not found, expected a folder laid out like data/")
    parts = []
    for tasks in layout.TASK_PAIRS:
        part = find_part(options.data_dir, tasks)
        if part is not None:
            parts.append(part)
    if not parts:
        raise InputError(
            f"{options.data_dir / layout.TRAIN_DIR.name}: holds neither {layout.TRAIN_TASK_1_2} nor"
            f" {layout.TRAIN_TASK_3_4}; `python data/download.py` fetches the official files, "
            "`python data/generate_sample.py` simulates such files"
        )
    # The progress bar counts the steps of reading each part, and one step for drawing the charts.
    n_steps = len(parts) * N_STEPS + 1
    with tqdm(total=n_steps, unit="step", disable=None, leave=False) as bar:
        for part in parts:
            part.update(read_part(part["tasks"], part["paths"], bar))
        bar.set_description("charts")
        texts = render_pages(parts)
        bar.update()
    written = {options.output_dir / name: text for name, text in texts.items()}
    writing.write_files(written)
    for path in written:
        print(f"written: {cli.show(path)}")


def render_pages(parts: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return the text of each page by file name: a page on simulated data, a page on other data.

    A part of a page is about one group of tasks, ``1/2`` or ``3/4``; `parts` holds the variables of
    the template explore.html for each part. If all data are simulated, or if none are simulated,
    there is only one page, explore.html.
    """
    found_tasks = [part["tasks"] for part in parts]
    # The groups of tasks that have no training answers.
    missing_tasks = [tasks for tasks in layout.TASK_PAIRS if tasks not in found_tasks]
    texts = {}
    for simulated in (False, True):
        # A page shows either simulated data or other data. The parts on this page, and the parts on
        # the other page, if there is one.
        shown_parts = [part for part in parts if part["simulated"] == simulated]
        other_parts = [part for part in parts if part["simulated"] != simulated]
        if not shown_parts:
            continue
        # A page about simulated data is called SIMULATED_PAGE only if there is another page.
        name = SIMULATED_PAGE if simulated and other_parts else PAGE
        texts[name] = pages.render(
            "explore.html",
            title="A look at the simulated data" if simulated else "A look at the data",
            tab="",
            simulated=simulated,
            parts=shown_parts,
            other_parts=other_parts,
            # The name of the other page, if there is one.
            other_name=PAGE if simulated else SIMULATED_PAGE,
            missing_tasks=missing_tasks,
            few=FEW_ANSWERS,
            compact=compact,
        )
    return texts


def find_part(folder: Path, tasks: str) -> dict[str, Any] | None:
    """Find the files for the part of the page about one group of tasks, ``1/2`` or ``3/4``.

    Returns None if there are no training answers. The keys of the result are variables of the
    page's template:

    - tasks, origin and simulated: which tasks, and whether their answers are official, simulated or
      others;
    - absent: names of the metadata files that do not exist;
    - foreign: names of the metadata files that belong to other data than the answers;
    - paths: the path of each file to read. The key train is always there. The keys question,
      student, answer and subject are there if the metadata file exists and belongs to the answers.
    """
    ending = layout.ending_of(tasks)
    train = folder / layout.TRAIN_DIR.name / f"train_{ending}"
    if not reading.is_there(train):
        return None
    reading.require_file(train)
    origin = provenance.origin_of(train)
    metadata_paths, absent = find_metadata(folder / layout.METADATA_DIR.name, ending)
    # Find the files that belong to other data than the answers. Broken symlinks cannot be read, so
    # do not check them. They stay in `metadata_paths`: the reader of the metadata reports them.
    existing = [path for path in metadata_paths.values() if path.is_file()]
    foreign = joined_metadata.find_foreign(train, existing)
    used = {kind: path for kind, path in metadata_paths.items() if path not in foreign}
    return {
        "tasks": tasks,
        "origin": origin,
        "simulated": origin is Origin.SIMULATED,
        "absent": absent,
        "foreign": [path.name for path in foreign],
        "paths": {"train": train, **used},
    }


def find_metadata(folder: Path, ending: str) -> tuple[dict[str, Path], list[str]]:
    """Return the paths of the metadata files by kind, and the names of those that do not exist.

    The kinds are question, student, answer and subject. Except for the file of subjects, the names
    of the files end with `ending`.
    """
    paths = {}
    absent = []
    for kind in ("question", "student", "answer", "subject"):
        name = layout.SUBJECT_METADATA if kind == "subject" else f"{kind}_metadata_{ending}"
        path = metadata.find(folder, name)
        if path is None:
            absent.append(name)
        else:
            paths[kind] = path
    return paths, absent


# ---- Reading and counting -----------------------------------------------------------------------
# Everything is counted from three tables. `answers` has a row for each training answer. `students`
# and `questions` have a row for each id, with the number of answers (n), of right answers
# (n_right), and the share of right answers (share).


def read_part(tasks: str, paths: dict[str, Path], bar: tqdm[Any]) -> dict[str, Any]:
    """Read the files of tasks ``1/2`` or ``3/4``, and count what the page shows.

    `paths` gives the path of each kind of file that is there. Returns variables of the template
    explore.html, by name.
    """

    def begin(step: str) -> None:
        """Show the name of a step that begins, and move the progress bar on."""
        bar.update()
        bar.set_description(f"tasks {tasks}: {step}")

    begin("answers")
    answers = read_answers(paths["train"], ids=True)
    begin("counts")
    students = count_right(answers["IsCorrect"], answers["UserId"])
    questions = count_right(answers["IsCorrect"], answers["QuestionId"])
    part = variables_without_metadata(answers, students, questions)
    figures = [
        *counts_figures(answers, students, questions),
        *difficulty_figures(students, questions),
        *options_figures(answers),
    ]
    begin("subjects")
    # Without metadata, no question has a subject.
    subject_names = pd.Series()
    main_subject = pd.Series(-1, questions.index)
    if "question" in paths and "subject" in paths:
        tree = metadata.read_subject_tree(paths["subject"])
        subject_names = tree["Name"]
        main_subject = read_subjects(paths["question"], tree, questions, part)
    if "student" in paths:
        students, missing = read_students(paths["student"], students)
        part["missing"] += missing
    begin("answer metadata")
    last_answer: Any = pd.NaT
    if "answer" in paths and "AnswerId" in answers:
        answers, missing = add_answer_metadata(paths["answer"], answers)
        part["missing"] += missing
        last_answer = answers["DateAnswered"].max()
        for name in ("QuizId", "GroupId", "SchemeOfWorkId"):
            # Unknown values are -1.
            is_known = answers[name] >= 0
            part["n_others"][name] = answers[name][is_known].nunique()
        begin("dates")
        figures += times_figures(answers, main_subject, subject_names)
        begin("quizzes")
        figures += [*quizzes_figures(answers), *confidence_figures(answers)]
    if "student" in paths:
        figures += birth_figures(students, last_answer)
        for name in ("Gender", "PremiumPupil"):
            known = students[students[name] >= 0]
            part["students"][name] = add_up(known, name).to_dict("index")
    return {**part, "figures": {figure.name: figure for figure in figures}}


def variables_without_metadata(
    answers: pd.DataFrame, students: pd.DataFrame, questions: pd.DataFrame
) -> dict[str, Any]:
    """Return variables of the template explore.html, by name, before any metadata are read.

    Variables that come from the answers have their values. Variables that come from metadata are
    empty; they stay empty if there are no metadata. `answers` has a row for each training answer,
    `students` for each student, and `questions` for each question.
    """
    return {
        "n_answers": len(answers),
        "n_students": len(students),
        "n_questions": len(questions),
        "share_right": answers["IsCorrect"].mean(),
        # How many distinct quizzes, groups and schemes of work there are.
        "n_others": {},
        # For each column, how many rows lack a value; see `count_missing`.
        "missing": [],
        # The roots of the tree of subjects; see `nest_subjects`.
        "subjects": [],
        # Counts of students and answers by gender and by pupil premium.
        "students": {},
    }


def read_subjects(
    path: Path, tree: pd.DataFrame, questions: pd.DataFrame, part: dict[str, Any]
) -> pd.Series:
    """Add what the page shows about subjects to `part`; return each question's main subject.

    `tree` has a row for each subject. `questions` has a row for each QuestionId, its index, with
    numbers of answers. `part` holds variables of the template explore.html, by name; it is changed
    in place. The main subject of a question is the first subject in the question's list that is on
    level 1, just below a root of the tree. The result holds the row number of this subject in
    `tree`, or -1 for none.
    """
    question_id = questions.index.to_numpy()
    # `listed` has a row for each question and each subject in its list. The column row is the index
    # of the question in `question_id`, and the column subject the row number of the subject in
    # `tree`.
    listed = metadata.read_question_subjects(path, question_id, tree)
    listed["QuestionId"] = question_id[listed["row"]]
    has_no_subject = ~questions.index.isin(listed["QuestionId"])
    part["missing"] += count_missing("questions", pd.DataFrame({"SubjectId": has_no_subject}))
    listed_with_counts = listed.join(questions, on="QuestionId")
    part["subjects"] = nest_subjects(tree, listed_with_counts)
    part["n_subjects"] = len(tree)
    part["n_with_questions"] = listed["subject"].nunique()
    is_on_level_1 = listed["subject"].map(tree["Level"]) == 1
    # `drop_duplicates` keeps the first subject of each question.
    main_subjects = listed[is_on_level_1].drop_duplicates("QuestionId")
    main_subject = main_subjects.set_index("QuestionId")["subject"]
    return main_subject.reindex(questions.index, fill_value=-1)


def count_right(is_correct: pd.Series, by: Any) -> pd.DataFrame:
    """Count the answers (n) and the right answers (n_right) in groups.

    `by` is the key of the groups, as in `DataFrame.groupby`. The result has a row for each group.
    Its column share is n_right / n.
    """
    # pandas may keep the dtype int8 for sums. `add_up` adds such sums up, so convert them to a
    # dtype that is large enough.
    groups = is_correct.groupby(by)
    counts = pd.DataFrame({"n": groups.size(), "n_right": groups.sum()}).astype("int64")
    return counts.assign(share=counts["n_right"] / counts["n"])


def add_up(rows: pd.DataFrame, by: Any, index: pd.Index | None = None) -> pd.DataFrame:
    """Add up the numbers of answers (n) and of right answers (n_right) over groups of rows.

    `by` is the key of the groups, as in `DataFrame.groupby`. If `index` is given, it lists the
    groups of the result, in order. The column n_rows is the number of rows in the group, and share
    is n_right / n, or NaN if there are no answers.
    """
    groups = rows.groupby(by)
    counts = groups[["n", "n_right"]].sum().assign(n_rows=groups.size())
    if index is not None:
        counts = counts.reindex(index, fill_value=0)
    return counts.assign(share=counts["n_right"] / counts["n"])


def nest_subjects(tree: pd.DataFrame, subjects: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the subjects at the top of the tree as dicts; the key `below` lists their children.

    `tree` has a row for each subject, with its name and the row number of its parent. `subjects`
    has a row for each question and subject, with the numbers of answers (n) and of right answers
    (n_right) of the question. Subjects with most answers come first.
    """
    # For each subject, the sums of n and n_right over its questions.
    counts = add_up(subjects, "subject").sort_values("n", ascending=False, kind="stable")
    # A dict for each subject that has questions, with its counts, its name and its parent. The keys
    # of `nodes` and the parents are row numbers of `tree`.
    nodes = counts.join(tree).to_dict("index")
    for node in nodes.values():
        node["below"] = []
    roots: list[Any] = []
    for node in nodes.values():
        # A subject is shown at the top if it has no parent, or if its parent has no questions and
        # thus no node.
        parent = nodes.get(node["parent"])
        if parent is None:
            roots.append(node)
        else:
            parent["below"].append(node)
    return roots


def count_missing(things: str, is_missing: pd.DataFrame) -> list[dict[str, Any]]:
    """Return for each column how many values are missing, for the page's list of missing values.

    `things` is the plural of what a row stands for, such as "students". The list has the order of
    the columns of `is_missing`.
    """
    counts = []
    for name, n in is_missing.sum().items():
        counts.append({"name": name, "n": n, "n_rows": len(is_missing), "of": things})
    return counts


def read_students(path: Path, students: pd.DataFrame) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """Add the metadata of students to their numbers of answers, and count missing values.

    `students` has a row for each UserId, its index. The first result is this table with the
    metadata as further columns. The second result is the list that `count_missing` returns.
    """
    student_id = students.index.to_numpy()
    # The rows of `student_metadata` are in the order of `students`.
    student_metadata = metadata.read_student_metadata(path, student_id)
    # A missing value is NaN, NaT or -1, depending on the dtype of its column.
    has_no_value = student_metadata.isna() | (student_metadata == -1)
    has_stated_date = has_date_of_birth(path, student_id)
    is_missing = pd.DataFrame(
        {
            "Gender": has_no_value["Gender"],
            # The code 0 stands for an unspecified gender.
            "Gender unspecified": student_metadata["Gender"] == 0,
            "DateOfBirth": ~has_stated_date,
            "DateOfBirth is nonsense": has_stated_date & has_no_value["DateOfBirth"],
            "PremiumPupil": has_no_value["PremiumPupil"],
        }
    )
    with_metadata = students.join(student_metadata.set_index(students.index))
    return with_metadata, count_missing("students", is_missing)


def has_date_of_birth(path: Path, student_id: np.ndarray) -> np.ndarray:
    """Return for each student whether the metadata state a date of birth, even a nonsensical one.

    This function reads the file anew, because `metadata.read_student_metadata` drops such dates.
    """
    if schema.DATE_OF_BIRTH.name not in reading.read_header(reading.file_source(path)):
        return np.zeros(len(student_id), bool)
    stated = reading.read_table(path, [schema.USER_ID, schema.DATE_OF_BIRTH])
    with_date = stated["UserId"][stated["DateOfBirth"].notna()]
    return np.isin(student_id, with_date)


def add_answer_metadata(
    path: Path, answers: pd.DataFrame
) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """Return the answers with their metadata as columns, and the counts of missing values.

    Dates that are nonsense become NaT. The second result is the list that `count_missing` returns.
    """
    known = metadata.read_circumstances(path, answers["AnswerId"].to_numpy())
    # A missing value is NaN, NaT or -1, depending on the dtype of its column.
    is_missing = known.isna() | (known == -1)
    date = known["DateAnswered"]
    is_possible = date.between(FIRST_ANSWER, AFTER_LAST_ANSWER, inclusive="left")
    # The page lists the columns in their order. Insert the column of dates that are nonsense just
    # after the column of missing dates.
    date_index = is_missing.columns.tolist().index("DateAnswered")
    is_missing.insert(date_index + 1, "DateAnswered is nonsense", date.notna() & ~is_possible)
    known["DateAnswered"] = date.where(is_possible)
    return answers.assign(**known), count_missing("answers", is_missing)


# ---- Figures -------------------------------------------------------------------------------------


def counts_figures(
    answers: pd.DataFrame, students: pd.DataFrame, questions: pd.DataFrame
) -> Iterator[Figure]:
    """Show how many answers students and questions have."""
    n_answers = students["n"]
    # The share of all answers that come from the most active tenth of the students.
    n_most_active = max(len(students) // 10, 1)
    top_share = n_answers.nlargest(n_most_active).sum() / n_answers.sum()
    yield numbers_figure(
        "per_student", n_answers, "students", "answers of a student", share_of_top_tenth=top_share
    )
    yield numbers_figure("per_question", questions["n"], "questions", "answers to a question")
    yield sparsity_figure(answers, students, questions)


def sparsity_figure(
    answers: pd.DataFrame, students: pd.DataFrame, questions: pd.DataFrame
) -> Figure:
    """Show the share of pairs of student and question that have an answer.

    Students and questions are grouped into tenths by their numbers of answers.
    """
    # The tenth of each student and of each question, from 0 (most answers) to 9 (fewest answers).
    student_tenth = rank_in_tenths(students)
    question_tenth = rank_in_tenths(questions)
    tenths = range(10)
    # A table with the number of answers: the row is the tenth of the student, and the column is the
    # tenth of the question.
    row_of_answer = answers["UserId"].map(student_tenth)
    column_of_answer = answers["QuestionId"].map(question_tenth)
    counts = answers.groupby([row_of_answer, column_of_answer]).size().unstack(fill_value=0)
    counts = counts.reindex(index=tenths, columns=tenths, fill_value=0)
    n_students = np.bincount(student_tenth, minlength=10)
    n_questions = np.bincount(question_tenth, minlength=10)
    # Divide the number of answers in each cell by the number of pairs of student and question.
    share = counts.div(np.outer(n_students, n_questions)).to_numpy()
    names = [f"{10 * tenth}–{10 * tenth + 10}%" for tenth in tenths]
    tooltips = []
    for row in tenths:
        row_tooltips = []
        for column in tenths:
            pair_name = f"students {names[row]}, questions {names[column]}"
            row_tooltips.append(f"{pair_name}: {share[row, column]:.2%} answered")
        tooltips.append(row_tooltips)
    # Name only the first and the last row and column: the most and the fewest answers.
    end_names = ["most", *[""] * 8, "fewest"]
    heat_map = HeatMap(
        values=share,
        row_names=end_names,
        column_names=end_names,
        tooltips=tooltips,
        axis="questions, those with most answers first",
        side="students, those with most answers first",
        legend_text=lambda value: f"{100 * value:.3g}% answered",
    )
    return Figure("sparse", heat_map.draw)


def rank_in_tenths(counts: pd.DataFrame) -> pd.Series:
    """Divide rows into ten groups of about equal size by their numbers of answers (n).

    Returns the group of each row, from 0 (the tenth of the rows with the most answers) to 9.
    """
    # The rank of each row by its number of answers n, from 0.
    rank = counts["n"].rank(method="first", ascending=False) - 1
    return (rank * 10 // len(counts)).astype("int8")


def difficulty_figures(students: pd.DataFrame, questions: pd.DataFrame) -> Iterator[Figure]:
    """Show how difficult questions and how able students are."""
    figures = (
        ("difficulty", questions, "questions"),
        ("ability", students, "students"),
    )
    for name, counts, things in figures:
        share = counts["share"][counts["n"] >= FEW_ANSWERS]
        if len(share):
            chart = shares_chart(share, things, "share of right answers")
            yield Figure(name, chart, {"left_out": len(counts) - len(share)})


def options_figures(answers: pd.DataFrame) -> Iterator[Figure]:
    """Show which options are chosen and right, and how often each wrong option is chosen."""
    if "AnswerValue" not in answers:
        return
    # Count the answers to each question, by right option and by option chosen. The table `counts`
    # has a row for each question and right option, and a column for each option chosen. A question
    # whose right option was changed has several rows.
    n_answers = answers.groupby(["QuestionId", "CorrectAnswer", "AnswerValue"]).size()
    options = range(1, answer_options.count_options(answers) + 1)
    counts = n_answers.unstack("AnswerValue", fill_value=0).reindex(columns=options, fill_value=0)
    # Add up these counts over all questions: a row for each right option, and a column for each
    # option chosen.
    all_counts = counts.groupby("CorrectAnswer").sum().reindex(options, fill_value=0)
    # For each option, count the answers in which it was chosen, the answers in which it was right,
    # and the answers in which it was both chosen and right (the diagonal of the table).
    n_chosen = all_counts.sum(axis="index")
    n_right = all_counts.sum(axis="columns")
    n_chosen_where_right = np.diag(all_counts)
    chosen_where_right = (n_chosen_where_right / n_right).fillna(0)
    panels = [
        Panel("chosen", (n_chosen / len(answers)).tolist(), accent=True),
        Panel("is right", (n_right / len(answers)).tolist(), accent=False),
        Panel("chosen where right", chosen_where_right.tolist(), accent=False),
    ]
    chart: Chart = partial(charts.bar_panels, panels, [*map(str, options)], axis="option")
    yield Figure("options", chart, {"n": len(options)})
    # The number of options of the question in each row of `counts`.
    question_ids = counts.index.get_level_values("QuestionId")
    n_options = pd.Series(answer_options.number_by_id(answers, question_ids), counts.index)
    yield from distractor_figures(counts, n_options)


def distractor_figures(counts: pd.DataFrame, n_options: pd.Series) -> Iterator[Figure]:
    """Show how often the wrong options (distractors) of a question are chosen.

    `counts` has a row for each question and right option, and a column for each option chosen.
    `n_options` holds, for each row, the number of options of its question.
    """
    # A question whose right option was changed has several rows: keep the row with most answers.
    # Then leave out the questions with few answers.
    one_row_each = choose_usual_right_options(counts)
    usual_counts = one_row_each[one_row_each.sum(axis=1) >= FEW_ANSWERS]
    # A row for each question: how often its distractors are chosen, the most frequent one first.
    wrong_counts = sorted_wrong_counts(usual_counts)
    if not wrong_counts.any():
        return
    n_distractors = wrong_counts.shape[1]
    # Both figures below mention whether questions differ in their number of options.
    is_mixed = n_options.nunique() > 1
    # If questions have only one distractor, it gets all wrong answers, and the figure would tell
    # nothing.
    if n_distractors > 1:
        yield attraction_figure(wrong_counts, is_mixed=is_mixed)
    n_answers = usual_counts.sum(axis=1).to_numpy()
    share_of_answers = wrong_counts / n_answers[:, None]
    # All rows have `n_distractors` columns. If a question has fewer distractors, the last columns
    # of its row stand for no option: leave out these cells.
    n_distractors_of_question = n_options[usual_counts.index].to_numpy() - 1
    is_distractor = np.arange(n_distractors) < n_distractors_of_question[:, None]
    shares = pd.Series(share_of_answers[is_distractor])
    chart = shares_chart(shares, "distractors", "share of the answers to its question")
    facts = {
        # A distractor is weak if its share of the answers is below WEAK_SHARE.
        "weak_below": WEAK_SHARE,
        "share_weak": (shares < WEAK_SHARE).mean(),
        "n_distractors": n_distractors,
        "is_mixed": is_mixed,
    }
    yield Figure("distractors", chart, facts)


def choose_usual_right_options(counts: pd.DataFrame) -> pd.DataFrame:
    """Return one row of `counts` for each question.

    `counts` has a row for each question and right option. A few questions have several rows, since
    their right option was changed. The row with most answers is kept.
    """
    n_answers = counts.sum(axis=1)
    return counts.loc[n_answers.groupby("QuestionId").idxmax()]


def attraction_figure(wrong_counts: np.ndarray, *, is_mixed: bool) -> Figure:
    """Show how the wrong answers to a question are divided among its distractors, on average.

    `wrong_counts` has a row for each question: how often its distractors are chosen, in decreasing
    order. `is_mixed` says whether questions differ in their number of distractors.
    """
    # Leave out questions without wrong answers, whose shares would be 0 / 0.
    has_wrong_answers = wrong_counts.any(axis=1)
    positive_counts = wrong_counts[has_wrong_answers]
    share_of_wrong = positive_counts / positive_counts.sum(axis=1, keepdims=True)
    # The mean share of the most attractive distractor, of the second most attractive, and so on.
    mean_shares = share_of_wrong.mean(axis=0).tolist()
    n_distractors = wrong_counts.shape[1]
    # The names are "most", "middle" and "least" if there are three distractors.
    names = names_of_distractors(n_distractors)
    dots = []
    for name, share in zip(names, mean_shares, strict=True):
        dots.append(Dot(f"{name} attractive", share))
    # A dashed line shows the share by chance, if it is the same for all questions.
    chance = np.nan if is_mixed else 1 / n_distractors
    axis = "share of the wrong answers"
    chart: Chart = partial(
        charts.dot_chart, dots, digits=2, limits=(0, 1), chance=chance, axis=axis
    )
    facts = {"n": len(positive_counts), "n_distractors": n_distractors, "is_mixed": is_mixed}
    return Figure("attraction", chart, facts)


def sorted_wrong_counts(counts: pd.DataFrame) -> np.ndarray:
    """Return how often each wrong option of a question is chosen, in decreasing order.

    `counts` has a row for each question and a column for each option chosen. Its index holds the
    right option of each question. The result has the shape (n_questions, n_options - 1). Options
    that a question does not have count 0.
    """
    right_option = counts.index.get_level_values("CorrectAnswer").to_numpy()
    # Each row of `is_wrong` is true for all options but the right one. Indexing with `is_wrong`
    # gives a flat array. It has the same number of counts for each question, so it can be reshaped.
    is_wrong = counts.columns.to_numpy() != right_option[:, None]
    wrong_counts = counts.to_numpy()[is_wrong].reshape(-1, counts.shape[1] - 1)
    # `np.sort` sorts in increasing order. For decreasing order, sort the negative counts.
    return -np.sort(-wrong_counts, axis=1)


def names_of_distractors(n_distractors: int) -> list[str]:
    """Return the names of a question's distractors, the most attractive first."""
    if n_distractors == 3:
        return ["most", "middle", "least"]
    names = ["most", *(f"no. {rank}" for rank in range(2, n_distractors)), "least"]
    return names[:n_distractors]


def times_figures(
    answers: pd.DataFrame, main_subject: pd.Series, subject_names: pd.Series
) -> Iterator[Figure]:
    """Show when answers were given, and on which subject.

    `main_subject` gives the subject of each QuestionId, -1 for none.
    """
    hour = answers["DateAnswered"].dt.floor("h").rename("hour")
    if hour.isna().all():
        return
    # All figures add up rows of the small table `hourly`. This table has a row for each pair of an
    # hour (such as 10:00 to 10:59 on a certain day) and a subject. The columns n and n_right count
    # answers and right answers.
    subject = answers["QuestionId"].map(main_subject).rename("subject")
    hourly = count_right(answers["IsCorrect"], [hour, subject]).reset_index()
    months = pd.period_range(hour.min(), hour.max(), freq="M")
    # If there are many months, only January, May and September get a name on the axis.
    named_months = range(1, 13) if len(months) <= 6 else (1, 5, 9)
    month_names = [f"{month:%b %y}" if month.month in named_months else "" for month in months]
    month_counts = add_up(hourly, hourly["hour"].dt.to_period("M"), months)
    chart: Chart = partial(
        column_chart,
        heights=month_counts["n"].tolist(),
        # A tooltip is like "Mar 2020: 400 answers, 75% right".
        tooltips=rate_tooltips(months.strftime("%b %Y"), month_counts),
        # A name stands below the middle of its column.
        names=[(column + 0.5, name) for column, name in enumerate(month_names) if name],
        axis="month",
        unit="answers",
    )
    yield Figure("months", chart, {"first": hour.min(), "last": hour.max()})
    yield from subject_month_figures(hourly, subject_names, months, month_names)
    yield from week_figures(hourly)


def subject_month_figures(
    hourly: pd.DataFrame,
    subject_names: pd.Series,
    months: pd.PeriodIndex,
    month_names: Sequence[str],
) -> Iterator[Figure]:
    """Show the share of each main subject in the answers of each month.

    `hourly` has a row for each hour and main subject, with the number of answers in the column n.
    Answers to questions without a main subject do not count.
    """
    with_subject = hourly[hourly["subject"] >= 0]
    month_of_row = with_subject["hour"].dt.to_period("M")
    # The number of answers: a row for each subject, and a column for each month.
    counts = with_subject.pivot_table(
        values="n", index="subject", columns=month_of_row, aggfunc="sum", fill_value=0
    )
    counts = counts.reindex(columns=months, fill_value=0)
    n_by_month = counts.sum()
    # In a month with few answers, the shares are mostly chance: leave the month's cells empty.
    has_enough = n_by_month >= ENOUGH_FOR_A_SHADE
    if not has_enough.any():
        return
    n_by_subject = counts.sum(axis=1).sort_values(ascending=False, kind="stable")
    largest = n_by_subject.head(N_MAIN_SUBJECTS).index
    counts = counts.loc[largest].set_axis(subject_names[largest])
    tooltips = []
    for name, month_counts in zip(counts.index, counts.to_numpy(), strict=True):
        row_tooltips = []
        for month, n, n_in_month in zip(months, month_counts, n_by_month, strict=True):
            row_tooltips.append(f"{name}, {month:%b %Y}: {n:,} answers of {n_in_month:,}")
        tooltips.append(row_tooltips)
    shares = counts / n_by_month.where(has_enough)
    heat_map = HeatMap(
        values=shares.to_numpy(),
        row_names=counts.index.tolist(),
        column_names=month_names,
        tooltips=tooltips,
        axis="month",
        legend_text=lambda value: f"{value:.0%} of the month",
    )
    yield Figure("subjects_by_month", heat_map.draw, {"most": N_MAIN_SUBJECTS})


def week_figures(hourly: pd.DataFrame) -> Iterator[Figure]:
    """Show the number of answers, and the share of right answers, in each hour of the week.

    `hourly` has rows for hours of certain days, with the start of the hour in the column hour, the
    number of answers in n, and the number of right answers in n_right.
    """
    # The hours of the week, as pairs such as ("Mon", 0).
    hours = pd.MultiIndex.from_product([WEEKDAYS, range(24)])
    name_of_day = dict(enumerate(WEEKDAYS))
    weekday = hourly["hour"].dt.day_of_week.map(name_of_day).rename("weekday")
    hour_of_day = hourly["hour"].dt.hour.rename("hour_of_day")
    # For each hour of the week: the number of answers (n) and the share of right answers (share).
    counts = add_up(hourly, [weekday, hour_of_day], hours)
    names = [f"{day} {hour}:00 to {hour}:59" for day, hour in hours]
    # The heat maps have a row for each day, and a column for each hour of the day.
    shape = (7, 24)
    tooltips = np.reshape(rate_tooltips(names, counts), shape).tolist()
    # Every sixth hour has a name on the axis.
    column_names = [f"{hour}:00" if hour % 6 == 0 else "" for hour in range(24)]
    # Hours without answers are empty.
    n_answers = counts["n"].where(counts["n"] > 0)
    heat_map = HeatMap(
        values=n_answers.to_numpy(float).reshape(shape),
        row_names=WEEKDAYS,
        column_names=column_names,
        tooltips=tooltips,
        axis="hour",
        legend_text=lambda n: f"{compact(n)} answers",
    )
    yield Figure("week", heat_map.draw, {"busiest": counts["n"].idxmax()})

    share = counts["share"].where(counts["n"] >= ENOUGH_FOR_A_SHADE)
    if share.notna().any():
        lowest = share.min()
        highest = share.max()
        # If the shares differ by less than LEAST_RANGE, widen their range to LEAST_RANGE, by the
        # same margin on both sides. The limits stay between 0 and 1.
        margin = max(LEAST_RANGE - (highest - lowest), 0) / 2
        heat_map = HeatMap(
            values=share.to_numpy().reshape(shape),
            row_names=WEEKDAYS,
            column_names=column_names,
            tooltips=tooltips,
            axis="hour",
            legend_text=lambda value: f"{value:.0%} right",
            limits=(max(lowest - margin, 0), min(highest + margin, 1)),
        )
        yield Figure("right_in_week", heat_map.draw, {"enough": ENOUGH_FOR_A_SHADE})


def quizzes_figures(answers: pd.DataFrame) -> Iterator[Figure]:
    """Show the sizes of quizzes, sittings and groups.

    A sitting is the work of one student on one quiz.
    """
    # `count_pairs` returns the number of answers of each pair of ids. A quiz has as many such pairs
    # as it has questions.
    by_quiz_and_question = count_pairs(answers, "QuizId", "QuestionId")
    if len(by_quiz_and_question):
        n_questions = by_quiz_and_question.groupby("QuizId").size()
        yield numbers_figure("per_quiz", n_questions, "quizzes", "questions of a quiz")
    # A pair of a quiz and a student is a sitting.
    answers_of_sitting = count_pairs(answers, "QuizId", "UserId")
    if len(answers_of_sitting):
        axis = "answers of one student in one quiz"
        yield numbers_figure("sittings", answers_of_sitting, "sittings", axis)
    by_group_and_student = count_pairs(answers, "GroupId", "UserId")
    if len(by_group_and_student):
        n_students = by_group_and_student.groupby("GroupId").size()
        yield numbers_figure("per_group", n_students, "groups", "students of a group")


def count_pairs(answers: pd.DataFrame, first: str, second: str) -> pd.Series:
    """Return the number of answers for each pair of ids in two columns, such as quiz and student.

    The result has an element for each pair. Its index is the first id of the pair. So a first id
    that is in several pairs is repeated. The second id is left out, since no caller needs it.
    Answers whose first id is unknown (-1) do not count.
    """
    known = answers[answers[first] >= 0]
    first_id = known[first].to_numpy().astype(np.int64)
    second_id = known[second].to_numpy()
    # Sorting one column is much faster than sorting two. So combine both ids in one number: the
    # upper 32 bits hold the first id, and the lower 32 bits hold the second id.
    pairs, n_answers = np.unique((first_id << 32) | second_id, return_counts=True)
    return pd.Series(n_answers, index=pd.Index(pairs >> 32, name=first))


def confidence_figures(answers: pd.DataFrame) -> Iterator[Figure]:
    """Show the share of right answers by stated confidence."""
    # The official levels are 0, 25, 50, 75 and 100. Other values are rounded to the nearest level.
    level = 25 * (answers["Confidence"] / 25).round()
    counts = count_right(answers["IsCorrect"], level)
    shown = counts[counts["n"] >= FEW_ANSWERS]
    dots = []
    for percent, n, share in zip(shown.index, shown["n"], shown["share"], strict=True):
        # Each level of confidence has a dot at the share of right answers, and a mark at the stated
        # confidence. The dot would be on the mark if students were right as often as they state.
        dots.append(Dot(f"{percent:.0f}% sure ({compact(n)})", share, mark=percent / 100))
    if dots:
        axis = "share of right answers"
        chart = partial(charts.dot_chart, dots, digits=2, limits=(0, 1), axis=axis)
        yield Figure("confidence", chart, {"share_stated": counts["n"].sum() / len(answers)})


def birth_figures(students: pd.DataFrame, last_answer: pd.Timestamp) -> Iterator[Figure]:
    """Show when students were born; `last_answer` is NaT if no date of an answer is known."""
    birth_year = students["DateOfBirth"].dt.year
    if birth_year.isna().all():
        return
    years = pd.RangeIndex(int(birth_year.min()), int(birth_year.max()) + 1)
    # The table `born` has a row for each year of birth. The column n_rows is the number of students
    # who were born in the year, and the column share is the share of right answers among the
    # answers of these students.
    born = add_up(students, birth_year, years)
    tooltips = rate_tooltips(
        [f"born in {year}" for year in years],
        born,
        column="n_rows",
        things="students",
        share_of="of their answers ",
    )
    chart = partial(
        column_chart,
        heights=born["n_rows"].tolist(),
        tooltips=tooltips,
        # A name stands below the middle of its column.
        names=[(column + 0.5, str(year)) for column, year in enumerate(years)],
        axis="year of birth",
        unit="students",
    )
    last_year = None if pd.isna(last_answer) else last_answer.year
    facts = {"most_common_year": born["n_rows"].idxmax(), "last_year": last_year}
    yield Figure("birth", chart, facts)


# ---- Shared charts -------------------------------------------------------------------------------


def numbers_figure(name: str, values: pd.Series, things: str, axis: str, **facts: float) -> Figure:
    """Return a figure with a histogram of whole numbers from 1 on.

    `name` is the key of the figure in the template explore.html. Each number belongs to a thing,
    for example a student; `things` is the plural, "students". `axis` says what the numbers are, for
    example "answers of a student". `facts` are further facts that the page mentions beside the
    chart.
    """
    edges = bin_edges(int(values.min()), int(values.max()) + 1)
    counts, _ = np.histogram(values, edges)
    # If there are few whole numbers from the first edge to the last, each bin holds one of these
    # numbers. Otherwise `bin_edges` has made fewer bins, of increasing width. On a logarithmic
    # scale, these bins are about equally wide.
    n_numbers = edges[-1] - edges[0]
    is_logarithmic = len(counts) < n_numbers

    tooltips = []
    # A bin holds the whole numbers from `low` to `high` - 1.
    for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
        bin_name = f"{low:,} to {high - 1:,}" if high > low + 1 else f"{low:,}"
        tooltips.append(f"{bin_name}: {count:,} {things}")
    named_numbers = choose_round_numbers(edges) if is_logarithmic else edges[:-1].tolist()
    names = []
    for number in named_numbers:
        names.append((position_on_axis(number, edges, is_logarithmic), f"{number:,}"))
    median = values.median()
    median_text = f"{median:,.0f}"
    chart = partial(
        column_chart,
        heights=counts.tolist(),
        tooltips=tooltips,
        names=names,
        axis=axis,
        unit=things,
        mark=(position_on_axis(median, edges, is_logarithmic), f"median {median_text}"),
    )
    all_facts = {**facts, "median": median_text, "is_logarithmic": is_logarithmic}
    return Figure(name, chart, all_facts)


def position_on_axis(number: float, edges: np.ndarray, is_logarithmic: bool) -> float:
    """Return where a number stands on the axis of a histogram, whose columns have the width 1.

    `edges` are the edges of the bins. The edge with index k is at position k.
    """
    # A number between two edges is at a position between them.
    edge_positions = np.arange(len(edges))
    if is_logarithmic:
        # On a logarithmic axis, a bin may hold several numbers. Interpolate between the logarithms
        # of its edges.
        return float(np.interp(np.log(number), np.log(edges), edge_positions))
    # Otherwise a bin holds only one number, its left edge, which is shown in the middle of the bin.
    return float(np.interp(number, edges, edge_positions)) + 0.5


def bin_edges(low: int, high: int) -> np.ndarray:
    """Return the edges of bins for the whole numbers from `low`, at least 1, to `high` - 1.

    If there are few numbers, each number has its own bin. Otherwise the bins have increasing width.
    """
    if high - low <= MOST_UNIT_BINS:
        return np.arange(low, high + 1)
    # Let a bin's width be about its lower edge times `growth`. If this were exact, each edge would
    # be the previous one times 1 + growth, and N_BINS bins would lead from `low` to `high`.
    growth = (high / low) ** (1 / N_BINS) - 1
    edges = [low]
    width = 1
    # Widths are whole numbers. No bin is narrower than the previous bin: with alternating widths
    # the columns would jump up and down.
    while edges[-1] < high:
        width = max(width, round(edges[-1] * growth))
        edges.append(edges[-1] + width)
    return np.array(edges)


def choose_round_numbers(edges: np.ndarray) -> list[int]:
    """Return round numbers between the first and the last edge, to label a logarithmic axis."""
    coarse = (1, 2, 5)
    fine = (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)
    for factors in (coarse, fine):
        numbers = []
        # These powers of ten give numbers up to 90 million. No number in a histogram is larger,
        # since there are fewer answers in all.
        for power in range(8):
            for factor in factors:
                number = factor * 10**power
                is_whole = number == int(number)
                if is_whole and edges[0] <= number <= edges[-1]:
                    numbers.append(int(number))
        # Four numbers are enough to label the axis. If the coarse factors give fewer, use the fine
        # factors.
        if len(numbers) >= 4:
            break
    return numbers


def shares_chart(shares: pd.Series, things: str, axis: str) -> Chart:
    """Return a function that draws a histogram of shares in bins of 5 %.

    Each share belongs to a thing, for example a question; `things` is the plural, "questions".
    `axis` says what the shares are, for example "share of right answers".
    """
    # There are 20 bins, and the last bin also holds the share 1. Adding 1e-9 keeps shares such as
    # 0.15 in the bin that starts there, despite rounding.
    bin_index = np.floor(shares * 20 + 1e-9).clip(upper=19).astype(int)
    counts = np.bincount(bin_index, minlength=20).tolist()
    tooltips = []
    for index, count in enumerate(counts):
        low_percent = 5 * index
        tooltips.append(f"{low_percent}% to {low_percent + 5}%: {count:,} {things}")
    median = shares.median()
    return partial(
        column_chart,
        heights=counts,
        tooltips=tooltips,
        # A column has the width 1 on the axis. So the share 5 % is at the position 1, and a share s
        # is at the position 20 * s. Write every fourth edge below the axis: 0 %, 20 % and so on.
        names=[(float(edge), f"{5 * edge}%") for edge in range(0, 21, 4)],
        axis=axis,
        unit=things,
        mark=(20 * median, f"median {median:.0%}"),
    )


def rate_tooltips(
    names: Iterable[str],
    counts: pd.DataFrame,
    column: str = "n",
    things: str = "answers",
    share_of: str = "",
) -> list[str]:
    """Return a tooltip for each row of `counts`, such as "Mar 2020: 400 answers, 75% right".

    The number comes from the column `column`, and the percentage from the column share. `share_of`
    is put before "right", for example "of their answers ".
    """
    tooltips = []
    for name, n, share in zip(names, counts[column], counts["share"], strict=True):
        # If the number is 0, there is no share to show.
        share_text = f", {share:.0%} {share_of}right" if n else ""
        tooltips.append(f"{name}: {n:,} {things}{share_text}")
    return tooltips


if __name__ == "__main__":
    cli.run(main)
