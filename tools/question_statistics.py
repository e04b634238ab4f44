"""Say of each question how difficult and how discriminating it is, and whether the model fits it.

    python -m tools.question_statistics
    python -m tools.question_statistics --group PremiumPupil
    python -m tools.question_statistics --train_data my_answers.csv --groups my_classes.csv

Fits item response theory to the training answers of tasks 3 and 4, or of other tasks
(`--tasks 1/2`). Writes a page, questions.html, and three tables with more rows than the page shows:

    questions.csv            difficulty, discrimination, standard errors and fit of each question
    question_pairs.csv       pairs of questions whose answers agree more than abilities explain
    question_groups.csv      how much easier a question is for one group of students than another

`--save_model FILE` keeps the fitted model, and `--model FILE` takes it in place of a fit. FILE may
also be what an item response sample of task 1 or 2 has written with --save_model. If that model has
effects of quizzes, they are removed, and a few steps of a fit follow.

The groups are those of a column of the student metadata, or of a table with the columns UserId and
Group (`--groups`); `--group none` does without, and removes question_groups.csv of an earlier run.
"""

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common import (
    charts,
    cli,
    layout,
    metadata,
    model_files,
    pages,
    provenance,
    reading,
    schema,
    writing,
)
from common.answers import read_answers
from common.arrays import IntArray
from common.errors import InputError
from common.item_response import ItemResponse
from common.item_response.question_statistics import QuestionStatistics
from common.item_response.significance import QUANTILE_90
from common.model_files import FoundModel
from common.origin import Origin
from tools.question_charts import fit_chart, map_chart

import pandas as pd

# The files that this script writes.
_OUTPUT_NAMES = ("questions.csv", "question_pairs.csv", "question_groups.csv", "questions.html")
# For each column of the metadata that can define groups, the names of the groups by their numbers
# in the column. Students with another number are in no group: it means that the value is unknown,
# or the group is too small to compare.
_NAMES_OF_GROUPS = {
    "Gender": {1: "female", 2: "male"},
    "PremiumPupil": {0: "others", 1: "premium pupils"},
}
_GROUP_COLUMN = schema.Column("Group", schema.TEXT)
# The page shows this many questions, pairs of questions, and differences between groups.
_N_SHOWN = 10
# For this many questions, the page has a chart of how well the model fits.
_N_FIT_CHARTS = 4
# Adjusted p-values up to this are called significant.
_SIGNIFICANT = 0.05
# The misfit of a question is the root mean square difference of observed and expected shares of
# right answers. Up to this value, it hardly matters.
_SMALL_MISFIT = 0.05
# The page shows how precisely a test with this number of average questions measures abilities.
_TEST_LENGTH = 20


@dataclass(frozen=True)
class Tables:
    """The tables of statistics; `QuestionStatistics` explains their columns."""

    questions: pd.DataFrame
    fit_groups: pd.DataFrame
    pairs: pd.DataFrame
    # Differences between groups of students; None if there are no groups.
    groups: pd.DataFrame | None
    reliability: pd.DataFrame
    information: pd.DataFrame


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    cli.add_answer_flags(parser)
    help_text = "the column of the student metadata with the groups (default: Gender)"
    parser.add_argument(
        "--group", choices=[*_NAMES_OF_GROUPS, "none"], default="Gender", help=help_text
    )
    help_text = "a table with the columns UserId and Group in place of the metadata"
    parser.add_argument("--groups", type=Path, metavar="FILE", help=help_text)
    model_files.add_save_flag(parser)
    model_files.add_fit_flags(parser)
    cli.add_folder(parser, "--output_dir", layout.TEST_OUTPUT_DIR)
    return parser


def main() -> None:
    """Fit the model, write the tables and the page."""
    options = build_parser().parse_args()
    model_files.refuse_model_with_settings(options)
    train = cli.answers_path(options)
    outputs = [options.output_dir / name for name in _OUTPUT_NAMES]
    cli.require_outputs([*outputs, options.save_model], [train, options.groups, options.model])
    answers = read_answers(train, options=False)
    group = read_groups(options, answers)

    # `found` holds the model, and says which answers it has learned from: their file (`source`),
    # and whether they are official (`origin`).
    found = find_model(options, train, answers)
    model_files.write_model(found.model, options.save_model)
    statistics = QuestionStatistics(
        found.model, answers["UserId"], answers["QuestionId"], answers["IsCorrect"]
    )
    tables = make_tables(statistics, group)
    page = make_page(tables, found.origin, found.source)

    # The table of groups is written only if there are groups.
    table_of_groups = options.output_dir / "question_groups.csv"
    has_groups = tables.groups is not None
    if not has_groups:
        outputs.remove(table_of_groups)
    with writing.atomic_write(*outputs) as files:
        for path, file in zip(outputs, files, strict=True):
            if path.suffix == ".html":
                file.write(page.encode())
            else:
                _write_csv(_table_of_file(tables, path.name), file)
    # An earlier run may have left a table of groups. Nobody must take it for a table of this run.
    if not has_groups and table_of_groups.is_file():
        table_of_groups.unlink()
        print(f"removed: {cli.show(table_of_groups)}, of an earlier run; there are no groups now")
    print(f"{len(tables.questions):,} questions, {len(tables.pairs):,} pairs of questions")
    print(f"written: {', '.join(map(cli.show, outputs))}")


def find_model(options: argparse.Namespace, train: Path, answers: pd.DataFrame) -> FoundModel:
    """Fit a model to the answers, or read it from the file that --model names.

    A model from a file may have contexts, which are quizzes: it knows, beside the abilities, how
    much better or worse a student does in each quiz. Then it is fitted anew without contexts. The
    result also says which answers the model has learned from.
    """
    known_answers = answers["UserId"], answers["QuestionId"], answers["IsCorrect"]
    if options.model is None:
        model = model_files.new_model(options).fit(*known_answers)
        origin = provenance.origin_of(train)
        return FoundModel(model, had_contexts=False, source=cli.show(train), origin=origin)
    found = model_files.read_model(options.model, train)
    if not found.had_contexts:
        return found
    # In the model from the file, effects of contexts explained a part of the answers. Without these
    # effects, the abilities must explain this part. So fit a new model with the same settings. The
    # fit starts from the model of the file, and needs only a few steps.
    old = found.model
    model = ItemResponse(old.n_dimensions, guessing=old.guessing, seed=old.seed)
    model.fit(*known_answers, start=old)
    return replace(found, model=model)


def read_groups(options: argparse.Namespace, answers: pd.DataFrame) -> pd.Series | None:
    """Return the group of each student by UserId; None if the user wants no groups.

    --groups names a file with a group for each student. Otherwise --group names a column of the
    students' metadata, such as the gender, or is "none".
    """
    if options.groups is not None:
        file = options.groups
        column = _GROUP_COLUMN.name
        group = _read_file_of_groups(file)
    elif options.group == "none":
        return None
    else:
        # `options.tasks` is "1/2" or "3/4". For "3/4", the file is student_metadata_task_3_4.csv.
        file = options.metadata_dir / f"student_metadata_{layout.ending_of(options.tasks)}"
        column = options.group
        group = _read_metadata_of_groups(file, column, answers["UserId"].unique())
    # The groups of students without answers do not count: a file of groups may name such students.
    has_answers = group.index.isin(answers["UserId"])
    if group[has_answers].nunique() < 2:
        raise InputError(
            f"{file}: column '{column}': has fewer than two groups among the students with "
            "answers, expected at least two; --group none does without"
        )
    return group


def _read_file_of_groups(path: Path) -> pd.Series:
    """Return the group of each student, by UserId, from a table with UserId and Group."""
    source = reading.file_source(path)
    table = reading.read_table(source, [schema.USER_ID, _GROUP_COLUMN])
    is_repeated = table["UserId"].duplicated()
    if is_repeated.any():
        # `argmax` returns the first row whose UserId an earlier row has too.
        row = int(is_repeated.argmax())
        raise InputError(
            f"{path}: row {source.row_number(row)}: column 'UserId': "
            f"{table['UserId'][row]} appears a second time, expected each student once"
        )
    group: pd.Series = table.set_index("UserId")["Group"].str.strip()
    return group


def _read_metadata_of_groups(path: Path, column: str, students: IntArray) -> pd.Series:
    """Return the group of each of the `students`, by UserId, from a column of the metadata."""
    reading.require_file(path)
    # The table has a row for each student, in the order of `students`.
    table = metadata.read_student_metadata(path, students)
    # The metadata hold a number for each group, such as 1 for "female".
    name_of_number = _NAMES_OF_GROUPS[column]
    group: pd.Series = table[column].map(name_of_number).set_axis(students)
    return group


def make_tables(statistics: QuestionStatistics, group: pd.Series | None) -> Tables:
    """Return all statistics."""
    questions = statistics.parameters().merge(statistics.item_fit(), on="question")
    return Tables(
        questions=questions,
        fit_groups=statistics.fit_groups(),
        pairs=statistics.local_dependence(),
        groups=None if group is None else statistics.differential_functioning(group),
        reliability=statistics.reliability(),
        information=statistics.information(),
    )


def _table_of_file(tables: Tables, name: str) -> pd.DataFrame:
    """Return the table for the CSV file with this name."""
    if name == "questions.csv":
        return tables.questions
    if name == "question_pairs.csv":
        return tables.pairs
    assert tables.groups is not None
    return tables.groups


def _write_csv(table: pd.DataFrame, file: Any) -> None:
    """Write a table as CSV; floats get four significant digits."""
    table.to_csv(file, index=False, float_format="%.4g", lineterminator="\n")


# ---- The page ----------------------------------------------------------------------------------


def make_page(tables: Tables, origin: Origin, source: str) -> str:
    """Return the HTML page on the questions, with the contents of all `tables`.

    `source` says which answers the model has learned from, `origin` whether they are official.
    """
    questions = tables.questions
    # The first row of the table of reliability is about all students.
    all_students = tables.reliability.iloc[0]
    facts = [
        ("Learned from", source),
        ("Answers", f"{questions['n_answers'].sum():,}"),
        ("Students", f"{int(all_students['n_students']):,}"),
        ("Questions", f"{len(questions):,}"),
        ("Reliability of the overall ability", f"{all_students['reliability']:.2f}"),
    ]
    # A question that too few students answered has no parameters.
    has_parameters = questions["difficulty"].notna()
    return pages.render(
        "question_statistics.html",
        title="What the answers say about the questions",
        origin=origin,
        facts=facts,
        n_known=int(has_parameters.sum()),
        n_questions=len(questions),
        map=map_chart(questions) if has_parameters.any() else None,
        fit=_fit_part(tables),
        pairs=_pairs_part(tables.pairs),
        groups=None if tables.groups is None else _groups_part(tables.groups),
        reliability=_reliability_chart(tables.reliability),
        information=_information_chart(tables.information, len(questions)),
        test_length=_TEST_LENGTH,
    )


def _fit_part(tables: Tables) -> dict[str, Any]:
    """Return what the page says about how well the model fits the questions.

    A question does not fit if its test is significant after a correction for the number of tests
    (`p_adjusted`). With many answers, even a small difference between observed and expected shares
    of right answers is significant. `misfit` measures the size of this difference.
    """
    # A question with too few answers for a test has no p-value.
    tested = tables.questions.dropna(subset=["p"])
    is_misfit = tested["p_adjusted"] <= _SIGNIFICANT
    is_large_misfit = is_misfit & (tested["misfit"] > _SMALL_MISFIT)
    # The questions with the smallest p, whose misfit is clearest, come first.
    clearest_misfits = tested.sort_values("p", kind="stable").head(_N_SHOWN)
    # For each question, observed and expected shares of right answers in groups of students with
    # similar abilities.
    groups_by_question = tables.fit_groups.groupby("question")
    return {
        "n_tested": len(tested),
        "n_misfit": int(is_misfit.sum()),
        "n_large": int(is_large_misfit.sum()),
        "rows": [
            (
                f"{row['question']}",
                f"{row['n_answers']:,}",
                f"{100 * row['misfit']:.1f}",
                _write_p(row["p_adjusted"]),
            )
            for row in clearest_misfits.to_dict("records")
        ],
        "charts": [
            fit_chart(groups_by_question.get_group(question), question)
            for question in clearest_misfits["question"].head(_N_FIT_CHARTS).tolist()
        ],
    }


def _pairs_part(pairs: pd.DataFrame) -> dict[str, Any]:
    """Return what the page says about pairs of questions.

    If the model explains the answers to two questions, their residuals are not correlated. The
    chart shows the pairs with the clearest correlation, each with its 90 % interval. The chart
    marks 0, which means no correlation.
    """
    is_dependent = pairs["p_adjusted"] <= _SIGNIFICANT
    dots = []
    # The pairs with the clearest correlation come first in the table.
    for row in pairs.head(_N_SHOWN).to_dict("records"):
        half_interval = QUANTILE_90 * row["error"]
        interval = (row["correlation"] - half_interval, row["correlation"] + half_interval)
        name = f"{row['question']} and {row['other']}"
        dots.append(charts.Dot(name, row["correlation"], interval))
    label = "Correlation of the residuals of pairs of questions"
    return {
        "n_tested": len(pairs),
        "n_dependent": int(is_dependent.sum()),
        "chart": charts.dot_chart(dots, label=label, digits=2, chance=0) if dots else None,
    }


def _groups_part(groups: pd.DataFrame) -> dict[str, Any]:
    """Return what the page says about groups of students (differential item functioning).

    A row of `groups` compares a group with the reference group, the largest one, on a question. The
    row tests whether students of equal ability answer the question differently in the two groups.
    The effect is the difference between the groups in the logit of a right answer. The chart marks
    0, which means no difference.
    """
    is_different = groups["p_adjusted"] <= _SIGNIFICANT
    is_large_difference = is_different & (groups["size"] == "large")
    shown = groups.sort_values("p", kind="stable").head(_N_SHOWN)
    dots = [
        charts.Dot(f"{row['question']}, {row['group']}", row["effect"], (row["low"], row["high"]))
        for row in shown.to_dict("records")
    ]
    label = "Differences of logits between groups of students"
    return {
        "n_tested": len(groups),
        "n_different": int(is_different.sum()),
        "n_large": int(is_large_difference.sum()),
        # All rows have the same reference group.
        "reference": groups["reference"].iloc[0] if len(groups) else "",
        "chart": charts.dot_chart(dots, label=label, digits=2, chance=0) if dots else None,
    }


def _reliability_chart(reliability: pd.DataFrame) -> pages.Html:
    """Draw the reliability by number of answers."""
    dots = [
        charts.Dot(_write_range(row["first"], row["last"]), row["reliability"])
        # The first row is about all students.
        for row in reliability.iloc[1:].to_dict("records")
    ]
    return charts.dot_chart(
        dots, label="Reliability by number of answers", digits=2, limits=(0, 1), axis="reliability"
    )


def _write_range(first: int, last: int) -> str:
    if first == last:
        return f"{first} answers" if first > 1 else "1 answer"
    return f"{first} to {last} answers"


def _information_chart(information: pd.DataFrame, n_questions: int) -> pages.Html:
    """Draw how precisely a test of average questions measures each ability.

    The measure is the Fisher information: 1 / information is about the squared standard error of
    the ability. The table `information` holds the sum of the information of all `n_questions`
    questions, for each ability. Divided by `n_questions`, it is that of an average question.
    """
    information_of_test = information["information"] * _TEST_LENGTH / n_questions
    curve = charts.Curve(
        f"a test of {_TEST_LENGTH} average questions",
        information["ability"].tolist(),
        information_of_test.tolist(),
    )
    return charts.curve_chart(
        [curve],
        label="Information of a test by ability",
        axis="overall ability",
        value_axis="information",
    )


def _write_p(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.3f}"


if __name__ == "__main__":
    cli.run(main)
