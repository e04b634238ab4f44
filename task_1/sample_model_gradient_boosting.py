"""Task 1: gradient boosting on features of what is known about each answer.

Run:     python task_1/sample_model_gradient_boosting.py --local     predict the local split
         python task_1/local_evaluation.py                           score that
         python task_1/sample_model_gradient_boosting.py             predict the template
         python task_1/sample_model_gradient_boosting.py --help      all flags
Writes:  submission_task_1.csv and the zip to upload
Scores:  0.7329 ± 0.0018 on real answers, where the majority model scores 0.6301

Features are functions in common/answer_features/. Add a feature of your own as one more column of
the tables below. Trees must learn from answers whose outcomes the features have not seen. So a part
of the training answers is held out, and its features are computed from all other answers; then the
next part is held out, and so on. Up to 125,000 answers are cut into ten parts, which are all held
out in turn. Of more answers, parts of at most 20 % are held out, 125,000 answers in all.
"""

import argparse

from common import answer_features, cli, progress, run_log, sample_models, submission
from common.answers import read_answers
from common.errors import InputError
from common.probabilities import write_probabilities

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

TASK = 1
# Chosen on answers held out of the training data. A fit stops early when the loss on
# `validation_fraction` of the rows no longer falls.
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
# Each fit draws the features that a split may use, and the rows for early stopping. The mean of
# several fits depends less on these draws.
N_FITS = 2
# Trees need at least this many answers of each kind, right and wrong.
MIN_ANSWERS = 100
# Rows predicted at a time, which bounds the memory of the prediction.
BLOCK_ROWS = 100_000
# Training and template rows together, measured at full size (tests/benchmarks/full_size.md).
ROWS_PER_SECOND = 190_000

Models = list[HistGradientBoostingClassifier]


def fit_trees(
    features: npt.NDArray[np.float32],
    outcome: npt.NDArray[np.generic],
    draws: np.random.RandomState,
    **settings: object,
) -> Models:
    """Return `N_FITS` fitted models, which differ only in what they draw."""
    # scikit-learn fails on a feature that is almost always missing.
    n_known = np.isfinite(features).sum(axis=0)
    features = np.where(n_known < MIN_ANSWERS, np.float32(0), features)
    models = []
    for _ in range(N_FITS):
        model = HistGradientBoostingClassifier(**SETTINGS, **settings, random_state=draws)
        models.append(model.fit(features, outcome))
    return models


def predict_mean(models: Models, table: pd.DataFrame) -> npt.NDArray[np.float64]:
    """Return the mean probability that the models give each row, shape (rows,)."""
    means = []
    for start in range(0, len(table), BLOCK_ROWS):
        block = table[start : start + BLOCK_ROWS].to_numpy()
        means.append(np.mean([model.predict_proba(block)[:, 1] for model in models], axis=0))
    return np.concatenate(means)


def log_losses(log_event: run_log.LogEvent, model: HistGradientBoostingClassifier) -> None:
    """Log the loss after each tree, on the rows learned from and on those for early stopping."""
    losses = zip(-model.train_score_, -model.validation_score_, strict=True)
    for step, (loss, held_out_loss) in enumerate(losses):
        log_event("step", step=step, loss=loss, held_out_loss=held_out_loss)


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
    """Read the answers, fit the model, predict the template, write the submission."""
    options = build_parser().parse_args()
    paths = sample_models.paths(options, TASK)
    template = submission.read_template(paths.template)
    answers = read_answers(paths.train, ids=True)
    n_wrong, n_right = np.bincount(answers["IsCorrect"], minlength=2)
    if min(n_right, n_wrong) < MIN_ANSWERS:
        raise InputError(
            f"{paths.train}: holds {n_right} right and {n_wrong} wrong answers, expected at least "
            f"{MIN_ANSWERS} of each"
        )
    progress.announce((len(answers) + len(template)) / ROWS_PER_SECOND)
    pairs = answer_features.read_pairs(answers, template, paths.metadata)
    # `pairs` holds these ids now; a second copy would take memory.
    answers = answers.drop(columns=["UserId", "QuestionId", "AnswerId"], errors="ignore")
    groups = answer_features.available_groups(
        pairs, answers, options.features, leave_out=["options", "distractors"]
    )
    print(f"features: {', '.join(groups)}")
    log_event = run_log.open_log(options.log)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `answers`; `pairs`; `groups`. Out, for each template row: `prediction`; `p_right`.
    *held_out, asked = answer_features.tables(pairs, answers, groups, options.seed)
    features = pd.concat([part.table for part in held_out]).to_numpy()
    rows = np.concatenate([part.rows for part in held_out])
    is_correct = answers["IsCorrect"].to_numpy()[rows]

    # The probability must not fall where that of the item response model, a feature, rises.
    rises = [int(name == "model") for name in asked.table]
    draws = np.random.RandomState(options.seed)
    models = fit_trees(features, is_correct, draws, monotonic_cst=rises)
    log_losses(log_event, models[0])

    p_right = predict_mean(models, asked.table)
    prediction = (p_right > 0.5).astype(np.int8)
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_predictions(template, TASK, prediction, paths.output)
    write_probabilities(template, TASK, p_right, paths.probabilities)
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(prediction):,} rows)")


if __name__ == "__main__":
    cli.run(main)
