"""Task 3: compare every feature, used alone as a ranking, with every expert.

Shows which ideas about question quality agree with experts, and how little a few pairs can show:
every figure has its 95 % interval. The directions of the features are fixed beforehand (see
`task_3/question_features.py`); nothing is fitted to the judgements.

Run:     python task_3/compare_features.py --phase public
         python task_3/compare_features.py --rankings submissions/submission_task_3.csv
Prints:  a Markdown table, like those in tests/benchmarks/task_3.md
"""

import argparse
from pathlib import Path

from common import cli, layout, metrics, submission
from common.evaluation.ranking import agreement, compare_with_experts, read_judgements
from common.submission import read_ranking
from common.tasks import TASK_3

import numpy as np
import pandas as pd
import question_features as features
from question_features import FEATURES
from tqdm import tqdm


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    help_text = "which pairs (default public)"
    parser.add_argument("--phase", choices=layout.PHASES, default="public", help=help_text)
    cli.add_folder(parser, "--input_dir", layout.TRAIN_DIR)
    cli.add_folder(parser, "--metadata_dir", layout.METADATA_DIR)
    cli.add_folder(parser, "--test_dir", layout.TEST_DIR)
    cli.add_file_name(parser, "--train_data", layout.TRAIN_TASK_3_4)
    help_text = "rankings to add"
    parser.add_argument(
        "--rankings", type=Path, nargs="+", metavar="FILE", default=[], help=help_text
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
    rows = np.searchsorted(data.questions.index, question)

    rankings = {}
    for name in tqdm(names, desc="features", unit="feature", disable=None, leave=False):
        better = FEATURES[name].better
        quality = better * features.shrink(FEATURES[name], data)[rows]
        ranking = pd.Series(submission.rank_by_quality(question, quality), question)
        rankings[f"{name}, {'high' if better > 0 else 'low'}"] = ranking
    rankings |= {cli.show(path): read_ranking(path, template) for path in options.rankings}

    print(f"{len(judgements)} pairs, {len(data.answers):,} answers\n")
    columns = [*judgements, "mean", "best"]
    print(f"| best first | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for name, ranking in rankings.items():
        agrees = agreement(judgements, ranking)
        figures = compare_with_experts(judgements, agrees).reindex(columns)
        cells = [
            "" if np.isnan(share) else f"{share:.2f} ({low:.2f}–{high:.2f})"
            for share, low, high in figures[["share", "low", "high"]].to_numpy()
        ]
        print(f"| {name} | {' | '.join(cells)} |")
    others = figures["others"].drop("best")
    cells = ["" if np.isnan(share) else f"{share:.2f}" for share in others]
    print(f"| the other experts | {' | '.join(cells)} | |")
    floor = metrics.random_best_agreement(judgements)
    print(
        f"\nRandom rankings reach {floor.mean():.2f} on average with their best expert, at most "
        f"1 in 20 exceeds {np.percentile(floor, 95):.2f}."
    )


if __name__ == "__main__":
    cli.run(main)
