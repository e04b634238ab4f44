"""Task 3: rank the questions by how confident students are of their answers.

A clear question leaves nobody in doubt about what is asked. In 2020, the University of Sydney
ranked the questions by their mean confidence alone. Here, the mean of a question with few stated
confidences is shrunk towards the mean of all questions. A question without any confidence ranks
last. There is no score on real answers, because the real files that the authors have hold no
confidences.

Run:     python task_3/sample_model_confidence.py
         python task_3/local_evaluation.py --phase public
Guide:   "Default arguments for local evaluation" with --local, "… for Codalab submission" without
Writes:  submissions/submission_task_3.csv and the zip to upload
"""

import argparse

from common import cli, sample_models, submission

import numpy as np
from question_features import FEATURES, read_for_features, shrink

TASK = 3


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = sample_models.parser(__doc__, TASK)
    sample_models.add_metadata_flag(parser)
    return parser


def main() -> None:
    """Read the confidences, compute each question's quality, write the submission."""
    options = build_parser().parse_args()
    paths = sample_models.paths(options, TASK)
    question = submission.read_ranking_template(paths.template)
    # The training answers with the students' confidence in each of them, from which the feature
    # "mean_confidence" is computed.
    data = read_for_features(["mean_confidence"], paths.train, question, paths.metadata)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `data`, the answers; `question`, the QuestionIds to rank. Out: `quality` of each of them.
    # The highest quality ranks first, NaN ranks last.
    # `FEATURES["mean_confidence"]` averages the confidences in each question of `data.questions`.
    # `shrink` moves the means towards the mean of all questions: the farther, the fewer answers a
    # question has.
    confidence = shrink(FEATURES["mean_confidence"], data)
    # Take the questions to rank: all are rows of `data.questions`, which is sorted by QuestionId.
    quality = confidence[np.searchsorted(data.questions.index, question)]
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_ranking(question, quality, paths.output)
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(question):,} questions)")


if __name__ == "__main__":
    cli.run(main)
