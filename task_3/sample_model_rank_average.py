"""Task 3: rank the questions by several features, and rank them again by the mean of their ranks.

The winning entry of 2020 did so. The default features need the answers alone: how evenly the
options are chosen, how evenly right and wrong answers are split, and how far the answers are from
each student's rate of right answers. All features have the same weight. Nothing is tuned on the
experts' judgements.

Run:     python task_3/sample_model_rank_average.py [--features point_biserial option_entropy]
         python task_3/local_evaluation.py --phase public
Guide:   "Default arguments for local evaluation" with --local, "… for Codalab submission" without
Writes:  submissions/submission_task_3.csv and the zip to upload
Scores:  agreement 0.80 with the best of five experts on 25 real pairs, 0.65 on average
"""

import argparse

from common import cli, sample_models, submission

import numpy as np
import pandas as pd
from question_features import FEATURES, read_for_features, shrink

TASK = 3
DEFAULT_FEATURES = ("option_entropy", "correct_entropy", "mean_absolute_residual")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = sample_models.parser(__doc__, TASK)
    sample_models.add_metadata_flag(parser)
    cli.add_names(parser, "--features", "some of", FEATURES, DEFAULT_FEATURES)
    return parser


def main() -> None:
    """Read the answers, compute each question's quality, write the submission."""
    options = build_parser().parse_args()
    paths = sample_models.paths(options, TASK)
    question = submission.read_ranking_template(paths.template)
    data = read_for_features(options.features, paths.train, question, paths.metadata)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `data`, the answers; `question`, the QuestionIds to rank. Out: `quality` of each of them.
    # The highest quality ranks first, NaN ranks last.
    ranks = []
    for name in options.features:
        feature = FEATURES[name]
        # `shrink` computes the feature of each question in `data`. If a value rests on few answers,
        # `shrink` moves it towards the mean of all questions. `feature.better` is 1 if high values
        # are better, and -1 if low values are better. Multiplied by it, high values are always
        # better.
        value = pd.Series(feature.better * shrink(feature, data))
        # The best question gets rank 1, questions of equal value share a mean rank, NaN ranks last.
        ranks.append(value.rank(ascending=False, na_option="bottom"))
    # The lower the mean rank, the better the question.
    quality = -np.mean(ranks, axis=0)
    # The quality of a question that nobody answered is unknown.
    quality[data.n_answers == 0] = np.nan
    # Take the questions to rank: all are rows of `data.questions`, which is sorted by QuestionId.
    quality = quality[np.searchsorted(data.questions.index, question)]
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_ranking(question, quality, paths.output)
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(question):,} questions)")


if __name__ == "__main__":
    cli.run(main)
