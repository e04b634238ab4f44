"""Task 3: compare every feature, used alone as a ranking, with every expert.

The table shows which ideas about question quality agree with the experts. It also shows how little
a few pairs can tell: every figure has a 95 % interval. `task_3/question_features.py` fixes
beforehand whether high or low values of a feature rank first; nothing is fitted to the judgements.

Run:     python task_3/compare_features.py --phase public
         python task_3/compare_features.py --rankings submissions/submission_task_3.csv
Prints:  a Markdown table, like those in tests/benchmarks/task_3.md
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from common import cli, layout, metrics, submission
from common.arrays import IntArray
from common.evaluation.ranking import agreement, compare_with_experts, read_judgements
from common.submission import read_ranking
from common.tasks import TASK_3

import numpy as np
import pandas as pd
import question_features as features
from question_features import FEATURES, QuestionAnswers
from tqdm import tqdm


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    parser.add_argument(
        "--phase",
        choices=layout.PHASES,
        default="public",
        help="phase whose pairs of questions the experts judged (default public)",
    )
    cli.add_folder(parser, "--input_dir", layout.TRAIN_DIR)
    cli.add_folder(parser, "--metadata_dir", layout.METADATA_DIR)
    cli.add_folder(parser, "--test_dir", layout.TEST_DIR)
    cli.add_file_name(parser, "--train_data", layout.TRAIN_TASK_3_4)
    parser.add_argument(
        "--rankings",
        type=Path,
        nargs="+",
        metavar="FILE",
        default=[],
        help="further rankings for the table, CSV or zip",
    )
    cli.add_template_flags(parser, layout.TEMPLATE_TASK_3)
    return parser


def main() -> None:
    """Rank by every feature and print how often each ranking agrees with each expert."""
    options = build_parser().parse_args()
    judgements = read_judgements(options.test_dir / TASK_3.answers_name(options.phase))
    template = cli.template_path(options, layout.TEMPLATE_DIR, layout.TEMPLATE_TASK_3)
    question = submission.read_ranking_template(template)
    names = features.available_features(options.metadata_dir)
    train = options.input_dir / options.train_data
    data = features.read_for_features(names, train, question, options.metadata_dir)

    rankings = rank_by_features(data, names, question)
    for path in options.rankings:
        rankings[cli.show(path)] = read_ranking(path, template)

    print(f"{len(judgements)} pairs, {len(data.answers):,} answers\n")
    print_table(judgements, rankings)
    # Draw many random rankings. For each of them, find the expert with whom it agrees most often,
    # and the share of the pairs on which it agrees with this expert.
    by_chance = metrics.random_best_agreement(judgements)
    print(
        f"\nA random ranking agrees with its best expert on {by_chance.mean():.2f} of the pairs on "
        f"average; at most 1 in 20 on more than {np.percentile(by_chance, 95):.2f}."
    )


def rank_by_features(
    data: QuestionAnswers, names: Sequence[str], question: IntArray
) -> dict[str, pd.Series]:
    """Rank questions by each feature alone.

    Parameters
    ----------
    data
        The answers, with the metadata that the features need.
    names
        Features, as in `FEATURES`.
    question
        QuestionIds to rank, shape (n,), all in ``data.questions``.

    Returns
    -------
    dict
        For each feature, the ranks of the questions by QuestionId; 1 is the best. The key holds the
        feature's name and whether its high or its low values rank first, such as "option_entropy,
        high".
    """
    # The rows of these questions in `data.questions`, which is sorted by QuestionId.
    rows = np.searchsorted(data.questions.index, question)
    rankings = {}
    for name in tqdm(names, desc="features", unit="feature", disable=None, leave=False):
        feature = FEATURES[name]
        # Shrinking brings the values of questions with few answers closer to the mean. Otherwise
        # chance would put such questions at the ends of the ranking.
        value = features.shrink(feature, data)[rows]
        quality = feature.better * value
        first = "high" if feature.better > 0 else "low"
        rank = submission.rank_by_quality(question, quality)
        rankings[f"{name}, {first}"] = pd.Series(rank, question)
    return rankings


def print_table(judgements: pd.DataFrame, rankings: Mapping[str, pd.Series]) -> None:
    """Print a Markdown table: how often each ranking agrees with each expert.

    The table has a row for each ranking. Its columns are the experts, "mean" for all of them and
    "best" for the expert with whom the ranking agrees most often. The last row says how often each
    expert agrees with the other experts.
    """
    columns = [*judgements, "mean", "best"]
    print(f"| ranking, values ranked first | {' | '.join(columns)} |")
    print(f"|---|{'---|' * len(columns)}")
    figures_by_ranking = {}
    for name, ranking in rankings.items():
        # `agrees` has a row for each pair of questions and a column for each expert: 1 if the
        # ranking agrees with the expert's judgement, 0 if not, NaN if the expert has not judged the
        # pair.
        agrees = agreement(judgements, ranking)
        # `figures` has a row for each expert and for "mean" and "best". The row holds the share of
        # the pairs on which the ranking agrees with the expert, the interval of this share (`low`
        # to `high`), and how often the expert agrees with the other experts (`others`).
        figures = compare_with_experts(judgements, agrees)
        figures_by_ranking[name] = figures.reindex(columns)
    for name, figures in figures_by_ranking.items():
        cells = []
        for share, low, high in figures[["share", "low", "high"]].to_numpy():
            cells.append("" if np.isnan(share) else f"{share:.2f} ({low:.2f}–{high:.2f})")
        print(f"| {name} | {' | '.join(cells)} |")
    # How often each expert agrees with the other experts is the same for every ranking, so take it
    # from the figures of the first ranking.
    first_figures = next(iter(figures_by_ranking.values()))
    # In each row, the column "best" may be about another expert. So the row of the experts has no
    # value there.
    shares = first_figures["others"].drop("best")
    cells = ["" if np.isnan(share) else f"{share:.2f}" for share in shares]
    print(f"| the other experts | {' | '.join(cells)} | |")


if __name__ == "__main__":
    cli.run(main)
