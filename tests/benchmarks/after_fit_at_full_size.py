"""Measure statistics of questions and mastery of students at official size: time and memory.

Run:     python data/generate_sample.py --size full --output_dir FULL
         python tests/benchmarks/after_fit_at_full_size.py --data_dir FULL statistics
         python tests/benchmarks/after_fit_at_full_size.py --data_dir FULL mastery
Writes:  a table to the terminal

The answers are those of tasks 1 and 2. Each of the two measurements is a process of its own,
because peak memory belongs to a process. The table has wall time and processor time of every part.
"""

import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import cli, layout, metadata
from common.answers import find_ids, read_answers
from common.item_response import ItemResponse
from common.item_response.question_statistics import QuestionStatistics
from tools.mastery import read_subjects

import numpy as np
import pandas as pd

_TASKS = "1/2"


def measure(name: str, function: Callable[[], Any]) -> Any:
    """Call a function, print a row with its time, return what it returns."""
    wall = time.perf_counter()
    processor = time.process_time()
    result = function()
    wall = time.perf_counter() - wall
    processor = time.process_time() - processor
    print(f"| {name} | {wall:.1f} s | {processor:.1f} s |", flush=True)
    return result


def measure_statistics(answers: pd.DataFrame, metadata_dir: Path) -> None:
    """Fit a model without contexts, compute every statistic of the questions, time each step."""
    columns = answers["UserId"], answers["QuestionId"], answers["IsCorrect"]
    student_file = metadata_dir / f"student_metadata_{layout.ending_of(_TASKS)}"
    student_ids = answers["UserId"].unique()
    gender = metadata.read_student_metadata(student_file, student_ids)["Gender"]
    # Compare girls (1) and boys (2). Students of another or an unknown gender belong to no group:
    # NaN.
    is_girl_or_boy = gender.isin([1, 2])
    group = gender.where(is_girl_or_boy)
    # `differential_functioning` finds the group of a student by the UserId in the index.
    group_by_student = group.set_axis(student_ids)
    model = measure("fit", lambda: ItemResponse().fit(*columns))
    statistics = measure("abilities, predictions", lambda: QuestionStatistics(model, *columns))
    measure("parameters", statistics.parameters)
    measure("item fit", statistics.item_fit)
    measure("groups of item fit", statistics.fit_groups)
    measure("local dependence", statistics.local_dependence)
    measure(
        "differential functioning", lambda: statistics.differential_functioning(group_by_student)
    )
    measure("reliability", statistics.reliability)
    measure("information", statistics.information)


def measure_mastery(answers: pd.DataFrame, metadata_dir: Path) -> None:
    """Measure how long two models take to compute the mastery of all students.

    Mastery is the share of a subject's questions that a student is expected to answer correctly.
    The first model has the subjects of the questions as contexts, so a student can be better in one
    subject than in another. In the second model, mastery follows from the student's abilities
    alone.
    """
    question_ids = np.unique(answers["QuestionId"])
    # For each question, its subject on each level of the tree of subjects.
    question_subjects = read_subjects(metadata_dir, _TASKS, question_ids).path
    answer_subjects = question_subjects[find_ids(question_ids, answers["QuestionId"])]
    columns = answers["UserId"], answers["QuestionId"], answers["IsCorrect"]
    model = measure(
        "fit with subjects", lambda: ItemResponse().fit(*columns, context=answer_subjects)
    )
    table = measure("mastery", lambda: model.mastery(question_subjects))
    print(f"{len(table):,} shares")
    del table
    # `with_subjects` returns a model whose effects of the subjects are 0: only the abilities
    # remain.
    abilities_alone = measure(
        "subjects of a model without them",
        lambda: model.with_subjects(answers["UserId"], answer_subjects),
    )
    measure("mastery by abilities alone", lambda: abilities_alone.mastery(question_subjects))


def main() -> None:
    """Measure the statistics of questions or the mastery of students: the argument `what`."""
    parser = cli.parser(__doc__)
    parser.add_argument("what", choices=["statistics", "mastery"])
    parser.add_argument("--data_dir", type=Path, required=True, help="where the full data lie")
    options = parser.parse_args()
    answers = read_answers(options.data_dir / layout.TRAIN_DIR.name / layout.TRAIN_TASK_1_2)
    metadata_dir = options.data_dir / layout.METADATA_DIR.name
    print(f"{len(answers):,} answers")
    print("| what | wall | processor |\n|---|---|---|")
    if options.what == "statistics":
        measure_statistics(answers, metadata_dir)
    else:
        measure_mastery(answers, metadata_dir)
    # `ru_maxrss` is in kilobytes.
    peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"peak memory {peak_gb:.1f} GB")


if __name__ == "__main__":
    cli.run(main)
