"""Task 3: write pages on single questions, or on the best and the worst questions of a ranking.

A question's page shows the question's subjects, all its features, and which options the students
chose. The students are divided by ability into quarters, each with a bar for every option; bars
that rest on fewer than 20 answers are grey. The ranking's page shows the ten best and the ten worst
questions.

Run:     python task_3/question_report.py --question 21 34    pages on these questions
         python task_3/question_report.py          a page on the ranking, and on each question there
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
from common.stray_files import list_paths
from common.submission import read_ranking
from common.tasks import TASK_3

import numpy as np
import pandas as pd
import question_features as features
from question_features import FEATURES, Feature, QuestionAnswers
from tqdm import tqdm

# How many questions of each end of the ranking are shown.
N_SHOWN = 10
# Labels under the bars: the quarters of the students, weakest first.
QUARTERS = ("1", "2", "3", "4")
# A bar shows the share of the answers that chose an option. A bar for fewer answers than this is
# grey: at a share of one half, 20 answers give a standard error of √(0.5 · 0.5 / 20) = 0.11.
FEW_ANSWERS = 20


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    parser.add_argument(
        "--question",
        type=int,
        nargs="+",
        metavar="ID",
        help="QuestionIds (default: the best and the worst of the ranking)",
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
    """Read the answers and a submitted ranking; write pages about the questions of the ranking."""
    options = build_parser().parse_args()
    train = options.input_dir / options.train_data
    reading.require_file(train)
    template = cli.template_path(options, layout.TEMPLATE_DIR, layout.TEMPLATE_TASK_3)
    submitted = options.submission_dir / options.submit_data
    ranking = read_ranking(submitted, template)
    unknown = np.setdiff1d(options.question or [], ranking.index)
    if len(unknown):
        raise InputError(f"--question {unknown[0]} is not one of the questions of {template}")

    names = features.available_features(options.metadata_dir)
    data = features.read_for_features(names, train, ranking.index.to_numpy(), options.metadata_dir)
    comparisons = {}
    for name in tqdm(names, desc="features", unit="feature", disable=None, leave=False):
        comparisons[name] = compare(FEATURES[name], data)
    questions = describe(data, comparisons, options.metadata_dir)
    # A question that was answered but is not in the template has no rank. It gets 0.
    questions["ranking"] = ranking.reindex(questions.index, fill_value=0)
    # Values for the templates of both kinds of pages: the page on the ranking and the pages on
    # single questions. A bar that stands for fewer answers than `few` is grey. `decimal` is a
    # function that formats numbers.
    shared = {
        "origin": provenance.origin_of(train),
        "few": FEW_ANSWERS,
        "decimal": decimal,
        "options": describe_options(data),
        "n_ranked": len(ranking),
    }

    page_by_path = {}
    # With --question, write the pages on these questions only.
    question_ids = options.question
    if not question_ids:
        # Write the page on the ranking, and the pages on its best and its worst questions.
        ends = find_ends(questions)
        question_ids = [*ends["best"].index, *ends["worst"].index]
        path = options.output_dir / "ranking.html"
        page_by_path[path] = ranking_page(questions, ends, submitted, shared)
    for question_id in question_ids:
        image = find_image(options.images_dir, question_id)
        question = questions.loc[question_id]
        path = options.output_dir / f"question_{question_id}.html"
        page_by_path[path] = question_page(question_id, question, data, comparisons, image, shared)
    writing.write_files(page_by_path)
    first_path, *other_paths = page_by_path
    more = f" and {len(other_paths)} more pages beside it" if other_paths else ""
    print(f"written: {cli.show(first_path)}{more}")


# ---- The pages -----------------------------------------------------------------------------------


def find_ends(questions: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the first and the last questions of the ranking, as ``best`` and ``worst``.

    `questions` is the table of `describe` with the column ``ranking``. Questions without answers
    are left out. No question is in both tables.
    """
    is_ranked = questions["ranking"] > 0
    has_answers = questions["n_answers"] > 0
    best_first = questions[is_ranked & has_answers].sort_values("ranking")
    best = best_first[:N_SHOWN]
    others = best_first[N_SHOWN:]
    return {"best": best, "worst": others[-N_SHOWN:]}


def ranking_page(
    questions: pd.DataFrame,
    ends: Mapping[str, pd.DataFrame],
    submitted: Path,
    shared: Mapping[str, Any],
) -> str:
    """Return the page on the best and the worst questions of a ranking.

    Parameters
    ----------
    questions
        The table of all questions that `describe` returns, with the column ``ranking``.
    ends
        The best and the worst questions, as `find_ends` returns them.
    submitted
        The file with the ranking.
    shared
        The values for the templates of all pages.
    """
    is_ranked = questions["ranking"] > 0
    has_answers = questions["n_answers"] > 0
    n_unanswered = (is_ranked & ~has_answers).sum()
    facts = [("Ranking", cli.show(submitted)), ("Questions", f"{shared['n_ranked']:,}")]
    if n_unanswered:
        facts.append(("Without answers, not shown", f"{n_unanswered:,}"))
    # A bar is grey if it stands for few answers. On this page, each question has one bar, which
    # stands for all its answers.
    shown = pd.concat(ends.values())
    has_grey_bars = (shown["n_answers"] < FEW_ANSWERS).any()
    return pages.render(
        "questions.html",
        title="Questions at both ends of the ranking",
        facts=facts,
        ends=ends,
        has_grey_bars=has_grey_bars,
        **shared,
    )


def question_page(
    question_id: int,
    question: pd.Series,
    data: QuestionAnswers,
    comparisons: Mapping[str, pd.DataFrame],
    image: str | None,
    shared: Mapping[str, Any],
) -> str:
    """Return the page on a question.

    Parameters
    ----------
    question_id
        The QuestionId.
    question
        The question's row in the table of `describe`, and ``ranking``: its rank, 0 for none.
    data
        The answers to all questions.
    comparisons
        What `compare` returns, by feature.
    image
        The URI of the question's image, if there is one.
    shared
        The values for the templates of all pages.
    """
    # The chart has a bar for each quarter of the students, from the least able to the ablest. A bar
    # is grey if it stands for few answers.
    by_ability = features.option_counts_by_ability(data, question_id)
    n_in_quarter = by_ability.sum(axis=1)
    options = shared["options"].loc[question_id]
    rows = [feature_row(name, table.loc[question_id]) for name, table in comparisons.items()]
    return pages.render(
        "question.html",
        title=f"Question {question_id}",
        image=image,
        question=question,
        chart=draw(options, by_ability),
        has_grey_bars=(n_in_quarter < FEW_ANSWERS).any(),
        features=rows,
        **shared,
    )


def find_image(folder: Path, question_id: int) -> str | None:
    """Return the URI of a question's image in a folder; None if there is no image."""
    images = list(list_paths(folder, f"{question_id}.*"))
    return images[0].resolve().as_uri() if images else None


def decimal(value: float, sign: str = "") -> str:
    """Write a number with two decimals, − instead of a hyphen, and no -0.00; "" for NaN.

    With the `sign` "+", positive numbers begin with a plus.
    """
    return "" if np.isnan(value) else f"{value:{sign}z.2f}".replace("-", "−")


# ---- What the answers say ------------------------------------------------------------------------


def compare(feature: Feature, data: QuestionAnswers) -> pd.DataFrame:
    """Compute a feature of all questions, and how many of the other questions are worse by it.

    Returns
    -------
    DataFrame
        A row for each question. ``value`` is the feature. ``shrunk`` is the value, moved towards
        the mean of all questions: values from few answers move most. ``better_than`` is the share
        of the other questions that are worse, 0 to 1. All three are NaN where the answers do not
        determine the feature.
    """
    value = feature.values(feature.relevant_answers(data))
    shrunk = features.shrink(feature, data)
    table = pd.DataFrame({"value": value, "shrunk": shrunk}, index=data.questions.index)
    # `feature.better` is 1 if high values are better, -1 if low values are better.
    quality = feature.better * table["shrunk"]
    # The lowest quality has rank 1. Without ties, rank − 1 questions are worse. `rank` gives tied
    # questions the mean of their ranks, so half of the other tied questions count as worse. For
    # example, three tied questions at the places 5, 6 and 7 get the rank 6: for each of them, the 4
    # questions below and 1 of the 2 other tied questions count as worse.
    n_worse = quality.rank() - 1
    n_others = quality.count() - 1
    return table.assign(better_than=n_worse / max(n_others, 1))


def describe(
    data: QuestionAnswers, comparisons: dict[str, pd.DataFrame], metadata_dir: Path
) -> pd.DataFrame:
    """Return the facts about each question that its page and the page of the ranking show.

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
    """Return the facts about each option that a question's page shows.

    There is a row for each QuestionId and each option, from 1 on. The columns are the name of the
    option, whether it is right, how many students chose it (`n`), and the correlation between
    choosing it and the ability.
    """
    options = range(1, data.n_options + 1)
    # Here each column is an array of shape (questions, options). `ravel` makes it a column of the
    # table below.
    is_right = np.equal.outer(data.questions["CorrectAnswer"].to_numpy(), options)
    right_names = [f"option {option}, right" for option in options]
    wrong_names = [f"option {option}" for option in options]
    columns = {
        "name": np.where(is_right, right_names, wrong_names),
        "is_right": is_right,
        "n": features.option_counts(data),
        "correlation": features.option_point_biserial(data),
    }
    index = pd.MultiIndex.from_product([data.questions.index, options])
    return pd.DataFrame({name: column.ravel() for name, column in columns.items()}, index)


def draw(options: pd.DataFrame, by_ability: IntArray, reaches: float = 0.0) -> Html:
    """Draw which options of a question each quarter of the students chose.

    The quarters divide the students by ability.

    Parameters
    ----------
    options
        The rows of the question in the table that `describe_options` returns.
    by_ability
        How many students of each quarter chose each option, shape (quarters, options).
    reaches
        The vertical axis goes at least up to this share, so that several charts can have the same
        axis.
    """
    n_in_quarter = by_ability.sum(axis=1)
    is_grey = (n_in_quarter < FEW_ANSWERS).tolist()
    shares = by_ability / np.maximum(n_in_quarter, 1)[:, None]
    panels = []
    for column, option in enumerate(options.to_dict("records")):
        panel = charts.Panel(
            title=option["name"],
            shares=shares[:, column].tolist(),
            accent=option["is_right"],
            faint=is_grey,
        )
        panels.append(panel)
    return charts.bar_panels(
        panels,
        QUARTERS,
        label="Share of each quarter of the students that chose each option",
        axis="quarter of the students, 4 the ablest",
        reaches=reaches,
    )


def feature_row(name: str, comparison: Any) -> list[str]:
    """Return a feature's row in a question's table.

    The cells are the feature's name, its value, its shrunk value, the share of the other questions
    whose shrunk value is worse, and why high or low values are considered better. `comparison`
    is the question's row in the table of `compare`.
    """
    title = name.replace("_", " ")
    why = FEATURES[name].why
    if np.isnan(comparison["shrunk"]):
        return [title, "unknown", "", "", why]
    direction = "high values" if FEATURES[name].better > 0 else "low values"
    return [
        title,
        decimal(comparison["value"]),
        decimal(comparison["shrunk"]),
        f"{comparison['better_than']:.0%}",
        f"{direction}: {why}",
    ]


if __name__ == "__main__":
    cli.run(main)
