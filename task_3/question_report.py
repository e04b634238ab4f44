"""Task 3: write pages on what the answers say about a question, or about the ends of a ranking.

A question's page names its subjects, shows who chose which option, from the weakest to the ablest
quarter of students, and every feature of the question. The ranking's page shows its ten best and
ten worst questions. Bars that rest on fewer than 20 answers are grey.

Run:     python task_3/question_report.py --question 21 34    pages of these questions
         python task_3/question_report.py                    page of the ranking, and its questions'
Writes:  data/test_output/question_report/question_21.html …, and ranking.html
"""

from pathlib import Path
from typing import Any, NamedTuple

from common import charts, cli, io, layout, made, metadata, pages, submission
from common.errors import InputError
from common.pages import Html

import numpy as np
import pandas as pd
import question_features as features
from question_features import FEATURES, Feature, QuestionAnswers
from tqdm import tqdm

TASK = 3
N_SHOWN = 10
QUARTERS = ("1", "2", "3", "4")
# A share of fewer answers is mostly chance: its standard error is above 0.1 around one half.
FEW_ANSWERS = 20


def main() -> None:
    """Read answers and ranking, compute the features, write the pages."""
    p = cli.parser(__doc__)
    p.add_argument(
        "--question", type=int, nargs="+", metavar="ID", help="QuestionIds (default: the ranking)"
    )
    cli.add_folder(p, "--input_dir", layout.TRAIN_DIR)
    cli.add_folder(p, "--metadata_dir", layout.METADATA_DIR)
    cli.add_folder(p, "--images_dir", layout.DATA_DIR / "images")
    cli.add_folder(p, "--submission_dir", layout.SUBMISSION_DIR)
    cli.add_folder(p, "--output_dir", layout.TEST_OUTPUT_DIR / "question_report")
    cli.add_file(p, "--train_data", layout.TRAIN_TASK_3_4)
    cli.add_file(p, "--submit_data", layout.submission_name(TASK), "the ranking, CSV or zip")
    cli.add_template_flags(p, layout.TEMPLATE_TASK_3)
    options = p.parse_args()
    train = options.input_dir / options.train_data
    io.require_file(train)
    template = cli.template_path(options, layout.TEMPLATE_DIR, layout.TEMPLATE_TASK_3)
    submitted = options.submission_dir / options.submit_data
    source = submission.submission_source(submitted, layout.submission_name(TASK), template)
    expected = submission.read_ranking_template(template)
    question, ranking = submission.read_ranking(source, expected)
    unknown = np.setdiff1d(options.question or [], expected)
    if len(unknown):
        raise InputError(f"--question {unknown[0]}: is not one of the questions of {template}")

    names = features.available_features(options.metadata_dir)
    data = features.read_for_features(names, [train], question, options.metadata_dir)
    scores = {
        name: compare(FEATURES[name], data)
        for name in tqdm(names, desc="features", unit="feature", disable=None, leave=False)
    }
    table = describe(data, scores, options.metadata_dir)
    table["ranking"] = pd.Series(ranking, question).reindex(table.index, fill_value=0)

    simulated = made.is_simulated(train)
    shared = {"simulated": simulated, "few": FEW_ANSWERS, "decimal": decimal}
    written = {}
    wanted = options.question
    if not wanted:
        answered = table[(table["ranking"] > 0) & (table["n_answers"] > 0)].sort_values("ranking")
        ends = {"best": answered[:N_SHOWN], "worst": answered[N_SHOWN:][-N_SHOWN:]}
        shown = pd.concat(ends.values())
        wanted = shown.index.tolist()
        facts = [("Ranking", cli.show(submitted)), ("Questions", f"{len(question):,}")]
        if len(answered) < len(question):
            facts.append(("Without answers, not shown", f"{len(question) - len(answered):,}"))
        written["ranking.html"] = pages.render(
            "questions.html",
            title="Questions at both ends of the ranking",
            facts=facts,
            ends=ends,
            is_grey=(shown["n_answers"] < FEW_ANSWERS).any(),
            **shared,
        )
    for number in wanted:
        image = next(iter(sorted(options.images_dir.glob(f"{number}.*"))), None)
        written[f"question_{number}.html"] = pages.render(
            "question.html",
            title=f"Question {number}",
            image=image and image.resolve().as_uri(),
            n_ranked=len(question),
            question=table.loc[number],
            **describe_question(data, number, table.loc[number]["options"], scores),
            **shared,
        )
    paths = [options.output_dir / name for name in written]
    with io.atomic_write(*paths) as files:
        for file, page in zip(files, written.values(), strict=True):
            file.write(page.encode())
    more = f" and {len(paths) - 1} more pages beside it" if len(paths) > 1 else ""
    print(f"written: {cli.show(paths[0])}{more}")


def compare(feature: Feature, data: QuestionAnswers) -> pd.DataFrame:
    """Return value, shrunk value and the share of the other questions that are worse."""
    value = feature.values(feature.counted(data))
    shrunk, _ = features.shrink(feature, data)
    table = pd.DataFrame({"value": value, "shrunk": shrunk}, index=data.questions.index)
    # Of questions that are equal, half count as worse.
    n_worse = (feature.better * table["shrunk"]).rank() - 1
    return table.assign(better_than=n_worse / max(n_worse.count() - 1, 1))


class Option(NamedTuple):
    """An option of a question, as the pages show it."""

    name: str
    is_right: bool
    n: int
    correlation: float


def describe(
    data: QuestionAnswers, scores: dict[str, pd.DataFrame], metadata_dir: Path
) -> pd.DataFrame:
    """Return what the pages say about every question, a row for each."""
    counts, correlation = features.option_counts(data), features.option_point_biserial(data)
    table = data.questions.assign(
        n_answers=data.n_answers,
        rate=scores["correct_rate"]["value"],
        discrimination=scores["point_biserial"]["value"],
        subjects="",
    )
    options = [
        [
            Option(
                f"option {k + 1}" + (", right" if k + 1 == right else ""),
                k + 1 == right,
                counts[row, k],
                correlation[row, k],
            )
            for k in range(data.n_options)
        ]
        for row, right in enumerate(table["CorrectAnswer"])
    ]
    table["options"] = pd.Series(options, table.index)
    lists = metadata.find(metadata_dir, layout.QUESTION_METADATA_TASK_3_4)
    tree = metadata.find(metadata_dir, layout.SUBJECT_METADATA)
    if lists and tree:
        table["subjects"] = metadata.name_subjects(lists, tree, table.index.to_numpy())
    return table


def describe_question(
    data: QuestionAnswers, number: int, options: list[Option], scores: dict[str, pd.DataFrame]
) -> dict[str, Any]:
    """Return the chart and the features of one question."""
    by_ability = features.option_counts_by_ability(data, number)
    in_quarter = by_ability.sum(axis=1)
    is_few = (in_quarter < FEW_ANSWERS).tolist()
    shares = by_ability / np.maximum(in_quarter, 1)[:, None]
    chart = charts.bar_panels(
        [
            charts.Panel(option.name, share.tolist(), option.is_right, is_few)
            for option, share in zip(options, shares.T, strict=True)
        ],
        QUARTERS,
        label="Share of each quarter of the students that chose each option",
        axis="quarter of the students, 4 the ablest",
    )
    rows = []
    for name, score in scores.items():
        value, shrunk, better_than = map(float, score.loc[number].to_numpy())
        why, cells = FEATURES[name].why, ["unknown", "", ""]
        if not np.isnan(shrunk):
            why = f"{'more' if FEATURES[name].better > 0 else 'less'}: {why}"
            cells = [decimal(value), decimal(shrunk), f"{better_than:.0%}"]
        rows.append([name.replace("_", " "), *cells, why])
    return {
        "chart": Html(chart),
        "is_grey": any(is_few),
        "features": rows,
    }


def decimal(value: float, sign: str = "") -> str:
    """Write a number with two decimals, its sign if asked for; nothing for NaN."""
    return "" if np.isnan(value) else f"{value:{sign}z.2f}".replace("-", "−")


if __name__ == "__main__":
    cli.run(main)
