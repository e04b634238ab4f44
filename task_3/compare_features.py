"""Task 3: compare every feature, used alone as a ranking, with the five expert teachers.

Shows which ideas about question quality agree with experts, and how little a few pairs can show:
every figure has its 95 % interval. The directions of the features are fixed beforehand (see
`task_3/question_features.py`); nothing is fitted to the judgements.

Run:     python task_3/compare_features.py --phase public
         python task_3/compare_features.py --rankings submissions/submission_task_3.csv
Prints:  a Markdown table, like those in tests/benchmarks/task_3.md
"""

from pathlib import Path

from common import cli, io, layout, metrics, schema, submission
from common.evaluation.judgements import compare_with_experts, rank_pairs, read_judgements
from common.schema import Column

import numpy as np
import question_features as features
from question_features import FEATURES
from tqdm import tqdm

TASK = 3


def main() -> None:
    """Rank by every feature and print how often each ranking agrees with each expert."""
    p = cli.parser(__doc__)
    p.add_argument(
        "--phase", choices=layout.PHASES, default="public", help="which pairs (default public)"
    )
    for flag, folder, shown in (
        ("--input_dir", layout.TRAIN_DIR, "data/train_data"),
        ("--metadata_dir", layout.METADATA_DIR, "data/metadata"),
        ("--test_dir", layout.TEST_DIR, "data/test_data"),
    ):
        p.add_argument(flag, type=Path, metavar="DIR", default=folder, help=f"default {shown}")
    p.add_argument(
        "--train_data",
        nargs="+",
        metavar="FILE",
        default=[layout.TRAIN_TASK_3_4],
        help=f"answers; several files are joined (default {layout.TRAIN_TASK_3_4})",
    )
    p.add_argument(
        "--correct_rates",
        type=Path,
        metavar="FILE",
        help="counts of more answers (QuestionId, NumAnswers, NumCorrect), for the features that "
        "need nothing else",
    )
    p.add_argument(
        "--rankings", type=Path, nargs="+", metavar="FILE", default=[], help="rankings to add"
    )
    cli.add_template_flags(p, layout.TEMPLATE_TASK_3)
    options = p.parse_args()
    judgements = read_judgements(options.test_dir / layout.expert_judgements_name(options.phase))
    template = cli.template_path(options, layout.TEMPLATE_DIR, layout.TEMPLATE_TASK_3)
    question = submission.read_ranking_template(template)
    train = [options.input_dir / name for name in options.train_data]
    names = features.available_features(options.metadata_dir)
    data = features.read_for_features(names, train, question, options.metadata_dir)
    rows = np.searchsorted(data.question_id, question)

    values = {}
    for name in tqdm(names, desc="features", unit="feature", disable=None, leave=False):
        values[name] = features.shrink(FEATURES[name], data)[0][rows]
    if options.correct_rates:
        rate = read_correct_rates(options.correct_rates, question)
        values["correct_rate"] = rate
        values["correct_entropy"] = features.binary_entropy(rate)
    rankings = {
        f"{name}, {'high' if FEATURES[name].better > 0 else 'low'}": submission.rank_by_quality(
            question, FEATURES[name].better * value
        )
        for name, value in values.items()
    }
    for path in options.rankings:
        source = submission.submission_source(path, layout.submission_name(TASK), template)
        ranked, ranking = submission.read_ranking(source, question)
        order = np.argsort(ranked)
        rankings[cli.show(path)] = ranking[order][np.argsort(np.argsort(question))]

    print(f"{len(judgements.left)} pairs, {len(data.question):,} answers\n")
    header = ["best first", *schema.EXPERT_NAMES, "mean", "best"]
    print(f"| {' | '.join(header)} |\n|---|{'---|' * (len(header) - 1)}")
    for name, ranking in rankings.items():
        figures = compare_with_experts(judgements, *rank_pairs(judgements, question, ranking))
        cells = [
            "" if np.isnan(share) else f"{share:.2f} ({low:.2f}–{high:.2f})"
            for share, low, high in figures[["share", "low", "high"]].reindex(header[1:]).to_numpy()
        ]
        print(f"| {name} | {' | '.join(cells)} |")
    others = [
        "" if np.isnan(share) else f"{share:.2f}"
        for share in figures["others"].reindex(header[1:-1])
    ]
    print(f"| the other experts | {' | '.join(others)} | |")
    floor = metrics.random_best_agreement(judgements.left, judgements.right, judgements.better)
    print(
        f"\nRandom rankings reach {floor.mean():.2f} on average with their best expert, at most "
        f"1 in 20 exceeds {np.percentile(floor, 95):.2f}."
    )


def read_correct_rates(path: Path, question: io.IntArray) -> features.FloatArray:
    """Read the share of right answers to questions from their counts; NaN without answers.

    Raises
    ------
    InputError
        If the file is not as expected.
    """
    columns = (schema.QUESTION_ID, Column("NumAnswers"), Column("NumCorrect"))
    listed, n_answers, n_correct = io.read_columns(path, columns).values()
    rates = {
        number: right / n
        for number, n, right in zip(
            listed.tolist(), n_answers.tolist(), n_correct.tolist(), strict=True
        )
        if n
    }
    return np.array([rates.get(number, np.nan) for number in question.tolist()])


if __name__ == "__main__":
    cli.run(main)
