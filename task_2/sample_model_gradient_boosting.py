"""Task 2: gradient boosting on features of what is known about each answer.

Run:     python task_2/sample_model_gradient_boosting.py --local     predict the local split
         python task_2/local_evaluation.py                           score that
         python task_2/sample_model_gradient_boosting.py             predict the template
         python task_2/sample_model_gradient_boosting.py --help      all flags
Writes:  submission_task_2.csv and the zip to upload
Scores:  0.5849 ± 0.0015 on real answers, where the majority model scores 0.5539

Features are functions in common/answer_features/; one of your own is another column of the tables
below. Trees learn from training answers whose outcomes the features have not seen: 10 % are held
out, their features computed from all others; then the next 10 %, ten times. Of more than 125,000
answers it is 20 %, or less, and no more than 125,000 are held out in all. What is predicted is not
A, B, C or D: is the answer right? If not, is it the most popular wrong one? If not, the next one?
Features of options are in the same order.
"""

import argparse

from common import answer_features, cli, progress, run_log, sample_models, submission
from common.answers import read_answers
from common.errors import InputError
from common.probabilities import write_probabilities

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

TASK = 2
# Chosen on answers held out of training data. A fit ends earlier if the loss on a few of the rows,
# which are held out for this, stops falling.
SETTINGS = {
    "learning_rate": 0.1,
    "max_leaf_nodes": 31,
    "min_samples_leaf": 100,
    "l2_regularization": 5.0,
    "max_features": 0.5,
    "early_stopping": True,
    "validation_fraction": 0.03,
    "n_iter_no_change": 30,
}
# Trees for each of the three questions above.
N_TREES = (100, 50, 25)
# Which features each split may use, and what is held out, is drawn: the mean of several fits
# depends less on luck. The log tells of the first one.
N_FITS = 2
# Fewer right or wrong answers teach trees nothing; outcomes rarer than the other are only counted.
MIN_ANSWERS, MIN_OUTCOMES = 100, 20
# Rows are predicted in blocks, which saves memory.
BLOCK = 100_000


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = sample_models.parser(__doc__, TASK)
    sample_models.add_metadata_flag(parser)
    run_log.add_log_flag(parser)
    default = "those there, without options"
    cli.add_optional_names(parser, "--features", "some of", answer_features.GROUPS, default)
    cli.add_number(parser, "--seed", 0, "of what is held out and of the trees")
    return parser


def main() -> None:
    """Load, model, predict, write."""
    options = build_parser().parse_args()
    paths = sample_models.paths(options, TASK)
    template = submission.read_template(paths.template)
    answers = read_answers(paths.train, options=True, ids=True)
    n_wrong, n_right = np.bincount(answers["IsCorrect"], minlength=2)
    if min(n_right, n_wrong) < MIN_ANSWERS:
        raise InputError(
            f"{paths.train}: holds {n_right} right and {n_wrong} wrong answers, expected at least "
            f"{MIN_ANSWERS} of each"
        )

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: columns of `answers`. Out, for each row of `template`: `prediction`, 1 to 4; `p_option`.
    # In pairs a second, from the times at full size (see tests/benchmarks/full_size.md).
    progress.announce((len(answers) + len(template)) / 170_000)
    pairs = answer_features.read_pairs(answers, template, paths.metadata)
    # Their ids are in the pairs now, and would take memory here.
    answers = answers.drop(columns=["UserId", "QuestionId", "AnswerId"], errors="ignore")
    groups = answer_features.available_groups(
        pairs, answers, options.features, leave_out=["options"]
    )
    print(f"features: {', '.join(groups)}")
    *parts, asked = answer_features.tables(pairs, answers, groups, options.seed)
    table = pd.concat([part.table for part in parts]).to_numpy()
    option, question = answers["AnswerValue"].to_numpy(), pairs.numbers["question"]
    outcome = np.concatenate(
        [part.outcome_of_option[question[part.rows], option[part.rows] - 1] for part in parts]
    )
    losses = np.zeros((2, 1 + max(N_TREES)))
    draws = np.random.RandomState(options.seed)
    p_outcome = np.ones((len(template), 4))
    for stage, n_trees in enumerate(N_TREES):
        is_reached = outcome >= stage
        x, is_later = table[is_reached], outcome[is_reached] > stage
        # Outcomes that trees cannot learn are rare, not impossible.
        p_later = np.full(len(template), (is_later.sum() + 1) / (len(is_later) + 2))
        if min(np.bincount(is_later, minlength=2)) >= MIN_OUTCOMES:
            # scikit-learn stumbles over a column of which hardly anything is known.
            x[:, np.isfinite(x).sum(axis=0) < MIN_ANSWERS] = 0
            settings = SETTINGS | {"max_iter": n_trees, "random_state": draws}
            models = [
                HistGradientBoostingClassifier(**settings).fit(x, is_later) for _ in range(N_FITS)
            ]
            blocks = (asked.table[i : i + BLOCK].to_numpy() for i in range(0, len(template), BLOCK))
            of_fits = [[model.predict_proba(block)[:, 1] for model in models] for block in blocks]
            p_later = np.concatenate([np.mean(p, axis=0) for p in of_fits])
            fell = -np.array([models[0].train_score_, models[0].validation_score_])
            # Of all rows; what is learned before the others stays as it is.
            n_left = losses.shape[1] - fell.shape[1]
            losses += is_reached.mean() * np.pad(fell, [(0, 0), (0, n_left)], "edge")
        p_outcome[:, stage] *= 1 - p_later
        p_outcome[:, stage + 1 :] *= p_later[:, None]
    log_event = run_log.open_log(options.log)
    for step, (loss, held_out_loss) in enumerate(losses.T):
        log_event("step", step=step, loss=loss, held_out_loss=held_out_loss)
    p_option = np.take_along_axis(p_outcome, asked.outcome_of_option[question[asked.rows]], axis=1)
    prediction = 1 + p_option.argmax(axis=1)
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_predictions(template, TASK, prediction, paths.output)
    write_probabilities(template, TASK, p_option, paths.probabilities)
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(prediction):,} rows)")


if __name__ == "__main__":
    cli.run(main)
