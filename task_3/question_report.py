"""Task 3: write pages on what the answers say about a question, or about the ends of a ranking.

A question's page names its subjects, shows who chose which option, from the weakest to the ablest
quarter of students, and every feature of the question. The ranking's page shows its ten best and
ten worst questions. Bars that rest on fewer than 20 answers are grey.

Run:     python task_3/question_report.py --question 21 34    pages of these questions
         python task_3/question_report.py                    page of the ranking, and its questions'
Writes:  data/test_output/question_report/question_21.html …, and ranking.html
"""

import argparse
from pathlib import Path

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

N_SHOWN = 10
QUARTERS = ("1", "2", "3", "4")
# A share of fewer answers is mostly chance: its standard error is above 0.1 around one half.
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
    question = ranking.index.to_numpy()
    data = features.read_for_features(names, train, question, options.metadata_dir)
    scores = {
        name: compare(FEATURES[name], data)
        for name in tqdm(names, desc="features", unit="feature", disable=None, leave=False)
    }
    table = describe(data, scores, options.metadata_dir)
    table["ranking"] = ranking.reindex(table.index, fill_value=0)
    of_options = describe_options(data)

    shared = {
        "simulated": provenance.is_simulated(train),
        "few": FEW_ANSWERS,
        "decimal": decimal,
        "options": of_options,
    }
    written, folder = {}, options.output_dir
    wanted = options.question
    if not wanted:
        answered = table[(table["ranking"] > 0) & (table["n_answers"] > 0)].sort_values("ranking")
        ends = {"best": answered[:N_SHOWN], "worst": answered[N_SHOWN:][-N_SHOWN:]}
        shown = pd.concat(ends.values())
        wanted = shown.index.tolist()
        facts = [("Ranking", cli.show(submitted)), ("Questions", f"{len(question):,}")]
        if len(answered) < len(question):
            facts.append(("Without answers, not shown", f"{len(question) - len(answered):,}"))
        written[folder / "ranking.html"] = pages.render(
            "questions.html",
            title="Questions at both ends of the ranking",
            facts=facts,
            ends=ends,
            is_grey=(shown["n_answers"] < FEW_ANSWERS).any(),
            **shared,
        )
    for number in wanted:
        image = next(iter(sorted(options.images_dir.glob(f"{number}.*"))), None)
        by_ability = features.option_counts_by_ability(data, number)
        written[folder / f"question_{number}.html"] = pages.render(
            "question.html",
            title=f"Question {number}",
            image=image and image.resolve().as_uri(),
            n_ranked=len(question),
            question=table.loc[number],
            chart=draw(of_options.loc[number], by_ability),
            is_grey=(by_ability.sum(axis=1) < FEW_ANSWERS).any(),
            features=[list_feature(name, score.loc[number]) for name, score in scores.items()],
            **shared,
        )
    writing.write_files(written)
    more = f" and {len(written) - 1} more pages beside it" if len(written) > 1 else ""
    print(f"written: {cli.show(next(iter(written)))}{more}")


def compare(feature: Feature, data: QuestionAnswers) -> pd.DataFrame:
    """Return value, shrunk value and the share of the other questions that are worse."""
    value = feature.values(feature.counted(data))
    shrunk = features.shrink(feature, data)
    table = pd.DataFrame({"value": value, "shrunk": shrunk}, index=data.questions.index)
    # Of questions that are equal, half count as worse.
    n_worse = (feature.better * table["shrunk"]).rank() - 1
    return table.assign(better_than=n_worse / max(n_worse.count() - 1, 1))


def describe(
    data: QuestionAnswers, scores: dict[str, pd.DataFrame], metadata_dir: Path
) -> pd.DataFrame:
    """Return what the pages say about every question, a row for each."""
    return data.questions.assign(
        n_answers=data.n_answers,
        rate=scores["correct_rate"]["value"],
        discrimination=scores["point_biserial"]["value"],
        subjects=metadata.name_subjects(metadata_dir, data.questions.index.to_numpy()),
    )


def describe_options(data: QuestionAnswers) -> pd.DataFrame:
    """Return what the pages say about every option, by QuestionId and option."""
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
    """Draw who chose which of the options of a question, by `option_counts_by_ability`."""
    in_quarter = by_ability.sum(axis=1)
    is_few = (in_quarter < FEW_ANSWERS).tolist()
    shares = by_ability / np.maximum(in_quarter, 1)[:, None]
    panels = [
        charts.Panel(name, share, is_right, is_few)
        for name, is_right, share in zip(
            options["name"], options["is_right"], shares.T.tolist(), strict=True
        )
    ]
    label = "Share of each quarter of the students that chose each option"
    axis = "quarter of the students, 4 the ablest"
    return charts.bar_panels(panels, QUARTERS, label=label, axis=axis)


def list_feature(name: str, score: pd.Series) -> list[str]:
    """Return the cells of a feature of a question, from what `compare` says of it."""
    why, cells = FEATURES[name].why, ["unknown", "", ""]
    if not np.isnan(score["shrunk"]):
        why = f"{'more' if FEATURES[name].better > 0 else 'less'}: {why}"
        cells = [decimal(score["value"]), decimal(score["shrunk"]), f"{score['better_than']:.0%}"]
    return [name.replace("_", " "), *cells, why]


def decimal(value: float, sign: str = "") -> str:
    """Write a number with two decimals, its sign if asked for; nothing for NaN."""
    return "" if np.isnan(value) else f"{value:{sign}z.2f}".replace("-", "−")


if __name__ == "__main__":
    cli.run(main)
