"""Task 3: write pages on what the answers say about a question, or about the ends of a ranking.

A question's page shows the question's subjects, which options the students chose, from the weakest
to the ablest quarter, and all features. The ranking's page shows the ten best and the ten worst
questions. Bars that rest on fewer than 20 answers are grey.

Run:     python task_3/question_report.py --question 21 34    pages of these questions
         python task_3/question_report.py                    page of the ranking, and its questions'
Writes:  data/test_output/question_report/question_21.html …, and ranking.html
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common import charts, cli, layout, metadata, pages, provenance, reading, writing
from common.arrays import IntArray
from common.errors import InputError
from common.pages import Html
from common.submission import read_ranking
from common.tasks import TASK_3

import numpy as np
import pandas as pd
import question_features as features
from question_features import FEATURES, Feature, QuestionAnswers
from tqdm import tqdm

# How many questions of each end of the ranking are shown.
N_SHOWN = 10
# Names of the quarters of the students below the bars, the weakest first.
QUARTERS = ("1", "2", "3", "4")
# A share of fewer answers is mostly chance: a share of one half has a standard error above 0.1.
FEW_ANSWERS = 20


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    parser.add_argument(
        "--question", type=int, nargs="+", metavar="ID", help="QuestionIds (default: the ranking)"
    )
    cli.add_folder(parser, "--input_dir", layout.TRAIN_DIR)
    cli.add_folder(parser, "--metadata_dir", layout.METADATA_DIR)
    cli.add_folder(parser, "--images_dir", layout.DATA_DIR / "images")
    cli.add_folder(parser, "--submission_dir", layout.SUBMISSION_DIR)
    cli.add_folder(parser, "--output_dir", layout.TEST_OUTPUT_DIR / "question_report")
    cli.add_file_name(parser, "--train_data", layout.TRAIN_TASK_3_4)
    cli.add_file_name(parser, "--submit_data", TASK_3.submission, "the ranking, CSV or zip")
    cli.add_template_flags(parser, layout.TEMPLATE_TASK_3)
    return parser


def main() -> None:
    """Read answers and ranking, compute the features, write the pages."""
    options = build_parser().parse_args()
    train = options.input_dir / options.train_data
    reading.require_file(train)
    template = cli.template_path(options, layout.TEMPLATE_DIR, layout.TEMPLATE_TASK_3)
    submitted = options.submission_dir / options.submit_data
    ranking = read_ranking(submitted, template)
    unknown = np.setdiff1d(options.question or [], ranking.index)
    if len(unknown):
        raise InputError(f"--question {unknown[0]}: is not one of the questions of {template}")

    names = features.available_features(options.metadata_dir)
    data = features.read_for_features(names, train, ranking.index.to_numpy(), options.metadata_dir)
    comparisons = {}
    for name in tqdm(names, desc="features", unit="feature", disable=None, leave=False):
        comparisons[name] = compare(FEATURES[name], data)
    questions = describe(data, comparisons, options.metadata_dir)
    # Questions that were answered but are not in the template have no rank: 0.
    questions["ranking"] = ranking.reindex(questions.index, fill_value=0)
    # What both kinds of pages show.
    shared = {
        "simulated": provenance.is_simulated(train),
        "few": FEW_ANSWERS,
        "decimal": decimal,
        "options": describe_options(data),
        "n_ranked": len(ranking),
    }

    contents = {}
    numbers = options.question
    if not numbers:
        ends = find_ends(questions)
        numbers = [*ends["best"].index, *ends["worst"].index]
        path = options.output_dir / "ranking.html"
        contents[path] = ranking_page(questions, ends, submitted, shared)
    for number in numbers:
        images = sorted(options.images_dir.glob(f"{number}.*"))
        image = images[0].resolve().as_uri() if images else None
        path = options.output_dir / f"question_{number}.html"
        question = questions.loc[number]
        contents[path] = question_page(number, question, data, comparisons, image, shared)
    writing.write_files(contents)
    first, *others = contents
    more = f" and {len(others)} more pages beside it" if others else ""
    print(f"written: {cli.show(first)}{more}")


# ---- The pages -----------------------------------------------------------------------------------


def find_ends(questions: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the best and the worst answered questions of the ranking, by ``best`` and ``worst``.

    No question is in both.
    """
    is_shown = (questions["ranking"] > 0) & (questions["n_answers"] > 0)
    answered = questions[is_shown].sort_values("ranking")
    return {"best": answered[:N_SHOWN], "worst": answered[N_SHOWN:][-N_SHOWN:]}


def ranking_page(
    questions: pd.DataFrame,
    ends: Mapping[str, pd.DataFrame],
    submitted: Path,
    shared: Mapping[str, Any],
) -> str:
    """Return the page on both ends of the ranking in the file `submitted`."""
    n_unanswered = ((questions["ranking"] > 0) & (questions["n_answers"] == 0)).sum()
    facts = [("Ranking", cli.show(submitted)), ("Questions", f"{shared['n_ranked']:,}")]
    if n_unanswered:
        facts.append(("Without answers, not shown", f"{n_unanswered:,}"))
    shown = pd.concat(ends.values())
    return pages.render(
        "questions.html",
        title="Questions at both ends of the ranking",
        facts=facts,
        ends=ends,
        is_grey=(shown["n_answers"] < FEW_ANSWERS).any(),
        **shared,
    )


def question_page(
    number: int,
    question: pd.Series,
    data: QuestionAnswers,
    comparisons: Mapping[str, pd.DataFrame],
    image: str | None,
    shared: Mapping[str, Any],
) -> str:
    """Return the page on a question.

    Parameters
    ----------
    number
        The QuestionId.
    question
        The question's row of what `describe` returns, with its ranking.
    data
        The answers to all questions.
    comparisons
        What `compare` returns, by feature.
    image
        The URI of the question's image, if there is one.
    shared
        What all pages show.
    """
    by_ability = features.option_counts_by_ability(data, number)
    return pages.render(
        "question.html",
        title=f"Question {number}",
        image=image,
        question=question,
        chart=draw(shared["options"].loc[number], by_ability),
        is_grey=(by_ability.sum(axis=1) < FEW_ANSWERS).any(),
        features=[list_feature(name, table.loc[number]) for name, table in comparisons.items()],
        **shared,
    )


def decimal(value: float, sign: str = "") -> str:
    """Write a number with two decimals, or "" for NaN; a `sign` of "+" also marks positive ones."""
    return "" if np.isnan(value) else f"{value:{sign}z.2f}".replace("-", "−")


# ---- What the answers say ------------------------------------------------------------------------


def compare(feature: Feature, data: QuestionAnswers) -> pd.DataFrame:
    """Compute a feature of all questions and compare them by it.

    Returns
    -------
    DataFrame
        A row for each question: ``value``, ``shrunk`` (the value that `shrink` returns), and
        ``better_than``, the share of the other questions that are worse, 0 to 1. NaN where the
        answers do not determine the feature.
    """
    value = feature.values(feature.counted(data))
    shrunk = features.shrink(feature, data)
    table = pd.DataFrame({"value": value, "shrunk": shrunk}, index=data.questions.index)
    # `rank` gives equal questions their mean rank, so that half of them count as worse.
    n_worse = (feature.better * table["shrunk"]).rank() - 1
    return table.assign(better_than=n_worse / max(n_worse.count() - 1, 1))


def describe(
    data: QuestionAnswers, comparisons: dict[str, pd.DataFrame], metadata_dir: Path
) -> pd.DataFrame:
    """Return what the pages say about each question.

    Parameters
    ----------
    data
        The answers to all questions.
    comparisons
        What `compare` returns, by feature.
    metadata_dir
        The folder that may hold the names of the subjects.

    Returns
    -------
    DataFrame
        A row for each question, by QuestionId: the columns of ``data.questions``, the number of
        answers, the share of right ones (rate), the discrimination and the names of the subjects.
    """
    return data.questions.assign(
        n_answers=data.n_answers,
        rate=comparisons["correct_rate"]["value"],
        discrimination=comparisons["point_biserial"]["value"],
        subjects=metadata.name_subjects(metadata_dir, data.questions.index.to_numpy()),
    )


def describe_options(data: QuestionAnswers) -> pd.DataFrame:
    """Return what the pages say about each option, in rows by QuestionId and option from 1 on.

    The columns are its name, whether it is right, the number n of students who chose it, and the
    correlation of choosing it with ability.
    """
    options = range(1, data.n_options + 1)
    is_right = np.equal.outer(data.questions["CorrectAnswer"].to_numpy(), options)
    columns = {
        "name": [f"option {option}" for option in options] + np.where(is_right, ", right", ""),
        "is_right": is_right,
        "n": features.option_counts(data),
        "correlation": features.option_point_biserial(data),
    }
    index = pd.MultiIndex.from_product([data.questions.index, options])
    return pd.DataFrame({name: column.ravel() for name, column in columns.items()}, index)


def draw(options: pd.DataFrame, by_ability: IntArray) -> Html:
    """Draw which options of a question each quarter of the students chose.

    Parameters
    ----------
    options
        The question's rows of what `describe_options` returns.
    by_ability
        What `option_counts_by_ability` returns, shape (quarters, options).
    """
    n_in_quarter = by_ability.sum(axis=1)
    is_few = (n_in_quarter < FEW_ANSWERS).tolist()
    shares = by_ability / np.maximum(n_in_quarter, 1)[:, None]
    panels = []
    for name, is_right, share in zip(
        options["name"], options["is_right"], shares.T.tolist(), strict=True
    ):
        panels.append(charts.Panel(name, share, is_right, is_few))
    label = "Share of each quarter of the students that chose each option"
    axis = "quarter of the students, 4 the ablest"
    return charts.bar_panels(panels, QUARTERS, label=label, axis=axis)


def list_feature(name: str, comparison: Any) -> list[str]:
    """Return the cells of a feature in a question's table.

    `comparison` is the question's row of what `compare` returns.
    """
    title = name.replace("_", " ")
    why = FEATURES[name].why
    if np.isnan(comparison["shrunk"]):
        return [title, "unknown", "", "", why]
    direction = "more" if FEATURES[name].better > 0 else "less"
    return [
        title,
        decimal(comparison["value"]),
        decimal(comparison["shrunk"]),
        f"{comparison['better_than']:.0%}",
        f"{direction}: {why}",
    ]


if __name__ == "__main__":
    cli.run(main)
