"""Task 1: gradient boosting on features of an answer: all that is known but its outcome.

Run:     python task_1/sample_model_gradient_boosting.py --local     predict the local split
         python task_1/local_evaluation.py                           score that prediction
         python task_1/sample_model_gradient_boosting.py             predict the official pairs
Guide:   "Default arguments for local evaluation" with --local, "… for Codalab submission" without
Writes:  submission_task_1.csv and the zip to upload
Scores:  accuracy 0.7329 on real answers (SD over ten splits: 0.0018), majority model 0.6301

The functions in common/answer_features/ compute the features. To add a feature, add a column to
`part.table` of every part in `main`. Trees must learn from answers whose outcomes the features have
not seen. So one part of the training answers at a time is held out, and its features are computed
from all other answers.
"""

import argparse
from pathlib import Path

from common import answer_features, cli, progress, run_log, sample_models, submission
from common.answers import read_right_or_wrong
from common.errors import InputError
from common.probabilities import write_probabilities

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import expit, logit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

TASK = 1
# The settings were chosen on answers held out of the training data. A fit sets
# `validation_fraction` of its rows aside, and stops if `n_iter_no_change` trees in a row do not
# lower the loss on these rows.
SETTINGS = {
    "learning_rate": 0.07,
    "max_leaf_nodes": 31,
    "min_samples_leaf": 100,
    "l2_regularization": 5.0,
    "max_features": 0.3,
    "max_iter": 100,
    "early_stopping": True,
    "validation_fraction": 0.03,
    "n_iter_no_change": 30,
}
# Each fit draws at random which features a tree may split on and which rows are set aside. The mean
# of several fits depends less on these draws.
N_FITS = 2
# The training file must hold at least this many answers of each kind, right and wrong.
MIN_ANSWERS = 100
# Trees do not use a feature that has a value (not NaN) in fewer rows than this.
MIN_KNOWN = 100
# The possible weights of the trees. Weight 0 uses the item response model alone, weight 1 the trees
# alone.
WEIGHTS = np.linspace(0, 1, 51)
# Predict this many rows at a time, to limit memory.
BLOCK_ROWS = 100_000
# Training and template rows that the script handles per second, to estimate its run time. Measured
# on files of the official size (tests/benchmarks/full_size.md).
ROWS_PER_SECOND = 190_000

# Several fits of one model. The mean of their predictions is the prediction.
Models = list[HistGradientBoostingClassifier]


def fit_trees(
    features: npt.NDArray[np.float32],
    outcome: npt.NDArray[np.generic],
    random_state: np.random.RandomState,
    n_fits: int = N_FITS,
    **more_settings: object,
) -> Models:
    """Return `n_fits` fitted models, which differ only in their random choices.

    `more_settings` are added to `SETTINGS`.
    """
    # scikit-learn fails on a feature that is almost always NaN. Set to 0, such a feature is
    # constant, and no tree splits on it.
    n_known = np.isfinite(features).sum(axis=0)
    features = np.where(n_known < MIN_KNOWN, np.float32(0), features)
    models = []
    for _ in range(n_fits):
        model = HistGradientBoostingClassifier(
            **SETTINGS, **more_settings, random_state=random_state
        )
        models.append(model.fit(features, outcome))
    return models


def predict_mean(models: Models, table: pd.DataFrame) -> npt.NDArray[np.float64]:
    """Return P(outcome = 1) for each row, the mean over the models, shape (rows,)."""
    block_means = []
    for start in range(0, len(table), BLOCK_ROWS):
        block = table[start : start + BLOCK_ROWS].to_numpy()
        p_by_model = [model.predict_proba(block)[:, 1] for model in models]
        block_means.append(np.mean(p_by_model, axis=0))
    return np.concatenate(block_means)


def mix(
    start: npt.NDArray[np.floating], p_trees: npt.NDArray[np.float64], weight: float
) -> npt.NDArray[np.float64]:
    """Return probabilities between those of the item response model and those of the trees.

    `start` holds the logits of the item response model, `p_trees` the probabilities of the trees.
    The logits of both are averaged, and `weight` is the share of the trees.
    """
    p: npt.NDArray[np.float64] = expit((1 - weight) * start + weight * logit(p_trees))
    return p


def choose_weight(
    start: npt.NDArray[np.floating],
    p_trees: npt.NDArray[np.float64],
    outcome: npt.NDArray[np.generic],
) -> float:
    """Return the weight of the trees in the mean of trees and item response model (`mix`).

    The weight is chosen by held-out answers, from which the trees have not learned: `outcome` is 1
    where such an answer is right. `start` holds the logits that the item response model predicts
    for these answers, `p_trees` the probabilities that the trees predict.

    If the trees alone predict better than the item response model alone, by more than two standard
    errors, the weight is 1. A smaller weight would be too cautious: these trees have learned from
    half of the rows only, and the final trees, which learn from all rows, predict better.

    Otherwise the weight is the smallest one whose log-likelihood is at most 2 below the largest
    log-likelihood. This weight lies about two standard errors below the best weight, because a
    weight that is z standard errors away lowers the log-likelihood by about z² / 2. So trees get a
    weight above 0 only if they surely add something to the item response model.
    """
    # The log-likelihood of each outcome (row) with each weight (column). The first column is the
    # item response model alone (weight 0), the last column the trees alone (weight 1).
    by_outcome = np.empty((len(outcome), len(WEIGHTS)))
    for i, weight in enumerate(WEIGHTS):
        p = mix(start, p_trees, weight)
        by_outcome[:, i] = np.log(np.where(outcome, p, 1 - p))
    # How much larger the log-likelihood of each outcome is with the trees alone than with the item
    # response model alone.
    gain = by_outcome[:, -1] - by_outcome[:, 0]
    # The standard error of the sum of all gains, if answers are independent.
    standard_error = gain.std() * np.sqrt(len(gain))
    if gain.sum() > 2 * standard_error:
        return 1.0
    log_likelihood = by_outcome.sum(axis=0)
    is_likely = log_likelihood >= log_likelihood.max() - 2
    return float(WEIGHTS[is_likely][0])


def weigh_trees(
    start: npt.NDArray[np.floating],
    features: npt.NDArray[np.float32],
    outcome: npt.NDArray[np.generic],
    seed: int,
    **more_settings: object,
) -> float:
    """Return the weight that the trees get when `mix` averages them with the item response model.

    To choose the weight, trees learn from a random half of the rows and predict the other half.

    Each row is an answer. `start` holds the logits of a right answer that the item response model
    predicts, and `outcome` is 1 where the answer is right. `more_settings` are the settings that
    `fit_trees` adds to `SETTINGS`, as for the final trees.
    """
    random_state = np.random.RandomState(seed)
    learned, held_out = train_test_split(
        np.arange(len(outcome)), test_size=0.5, stratify=outcome, random_state=random_state
    )
    # The final trees are the mean of several fits. To choose a weight, a single fit is enough.
    (model,) = fit_trees(
        features[learned], outcome[learned], random_state, n_fits=1, **more_settings
    )
    # The second column holds the probability that `outcome` is 1 (true).
    p_trees = model.predict_proba(features[held_out])[:, 1]
    return choose_weight(start[held_out], p_trees, outcome[held_out])


def log_losses(log_event: run_log.LogEvent, model: HistGradientBoostingClassifier) -> None:
    """Log two losses after each tree: on the training rows, and on the rows for early stopping."""
    # scikit-learn's scores are negative losses.
    losses = zip(-model.train_score_, -model.validation_score_, strict=True)
    for step, (loss, validation_loss) in enumerate(losses):
        log_event("step", step=step, loss=loss, held_out_loss=validation_loss)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = sample_models.parser(__doc__, TASK)
    sample_models.add_metadata_flag(parser)
    run_log.add_log_flag(parser)
    default_in_words = "all whose files are there, except options and distractors"
    # --help shows `description`, then the names of the groups of features, then
    # `default_in_words`.
    cli.add_optional_names(
        parser,
        "--features",
        description="some of",
        names=answer_features.GROUPS,
        default_in_words=default_in_words,
    )
    cli.add_number(parser, "--seed", 0, "seed of the parts held out and of the trees")
    return parser


def require_right_and_wrong(answers: pd.DataFrame, path: Path) -> None:
    """Raise `InputError` if there are too few right or too few wrong answers to train trees."""
    n_wrong, n_right = np.bincount(answers["IsCorrect"], minlength=2)
    if min(n_right, n_wrong) < MIN_ANSWERS:
        raise InputError(
            f"{path}: holds {n_right} right and {n_wrong} wrong answers, expected at least "
            f"{MIN_ANSWERS} of each"
        )


def main() -> None:
    """Read the answers, fit the model, predict the template, write the submission."""
    options = build_parser().parse_args()
    paths = sample_models.paths(options, TASK)
    template = submission.read_template(paths.template)
    answers = read_right_or_wrong(paths.train)
    require_right_and_wrong(answers, paths.train)
    progress.announce((len(answers) + len(template)) / ROWS_PER_SECOND)
    # `pairs` holds what is known before an answer is given: who is asked which question, and when.
    # It has a row for each training answer, followed by a row for each template row.
    pairs = answer_features.read_pairs(answers, template, paths.metadata)
    # To save memory, drop the ids, which `pairs` holds too.
    answers = answers.drop(columns=["UserId", "QuestionId", "AnswerId"], errors="ignore")
    # By default, the features `options` are left out because they are slow, and the features
    # `distractors` because they help in task 2 only.
    groups = answer_features.available_groups(
        pairs, answers, options.features, leave_out=["options", "distractors"]
    )
    print(f"features: {', '.join(groups)}")
    log_event = run_log.open_log(options.log)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `answers`, `pairs`, `groups`. Out, for each template row: `prediction`, `p_right`.
    # Each of `train_parts` holds some training answers with their features. The features are
    # computed from the training answers outside the part, so that no answer is among its own
    # features. The trees learn from all training answers if there are at most 125,000 of them, else
    # from about 125,000. The last part is the template.
    *train_parts, template_part = answer_features.tables(pairs, answers, groups, options.seed)
    features = pd.concat([part.table for part in train_parts]).to_numpy()
    # Row i of `features` belongs to row `train_rows[i]` of `answers`.
    train_rows = np.concatenate([part.rows for part in train_parts])
    is_correct = answers["IsCorrect"].to_numpy()[train_rows]

    # The feature `model` is the prediction of an item response model. Direction 1 means: if this
    # feature rises, the prediction of the trees must not fall. The other features have the
    # direction 0: their effect is free.
    directions = [1 if name == "model" else 0 for name in template_part.table.columns]
    random_state = np.random.RandomState(options.seed)
    models = fit_trees(features, is_correct, random_state, monotonic_cst=directions)
    # The models differ only in random choices and have about the same losses. So log those of the
    # first model.
    log_losses(log_event, models[0])

    p_right = predict_mean(models, template_part.table)
    if "model" in groups:
        # If there are no metadata, trees may predict worse than the item response model whose
        # prediction is one of their features. So take a weighted mean of both. The weight, from 0
        # to 1, is chosen by answers that the trees have not learned from.
        start = np.concatenate([part.table["model"] for part in train_parts])
        weight = weigh_trees(start, features, is_correct, options.seed, monotonic_cst=directions)
        p_right = mix(template_part.table["model"].to_numpy(), p_right, weight)
        print(f"weight of the trees: {weight:.2f}")
    prediction = (p_right > 0.5).astype(np.int8)
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_predictions(template, TASK, prediction, paths.output)
    write_probabilities(template, TASK, p_right, paths.probabilities)
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(prediction):,} rows)")


if __name__ == "__main__":
    cli.run(main)
