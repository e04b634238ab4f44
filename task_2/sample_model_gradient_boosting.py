"""Task 2: gradient boosting on features of what is known about each answer.

Run:     python task_2/sample_model_gradient_boosting.py --local     predict the local split
         python task_2/local_evaluation.py                           score that
         python task_2/sample_model_gradient_boosting.py             predict the template
         python task_2/sample_model_gradient_boosting.py --help      all flags
Writes:  submission_task_2.csv and the zip to upload
Scores:  0.5849 ± 0.0015 on real answers, where the majority model scores 0.5539

Features are functions in common/answer_features/. Add a feature of your own as one more column of
the tables below. Trees must learn from answers whose outcomes the features have not seen. So a part
of the training answers is held out, and its features are computed from all other answers; then the
next part is held out, and so on. Up to 125,000 answers are cut into ten parts, which are all held
out in turn. Of more answers, parts of at most 20 % are held out, 125,000 answers in all.

The trees answer three questions in turn: is the answer wrong? If so, is it another than the most
popular wrong option? If so, another than the next one? Features of options have the same order.
"""

import argparse
from dataclasses import dataclass

from common import answer_features, cli, progress, run_log, sample_models, submission
from common.answers import read_answers
from common.errors import InputError
from common.probabilities import write_probabilities

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

TASK = 2
# Chosen on answers held out of the training data. A fit stops early when the loss on
# `validation_fraction` of the rows no longer falls.
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
# Number of trees for each of the three questions above.
N_TREES = (100, 50, 25)
# Each fit draws the features that a split may use, and the rows for early stopping. The mean of
# several fits depends less on these draws.
N_FITS = 2
# Trees need at least this many answers of each kind, right and wrong.
MIN_ANSWERS = 100
# Trees need at least this many answers for each reply to one of the three questions.
MIN_OUTCOMES = 20
# Rows predicted at a time, which bounds the memory of the prediction.
BLOCK_ROWS = 100_000
# Training and template rows together, measured at full size (tests/benchmarks/full_size.md).
ROWS_PER_SECOND = 170_000

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


@dataclass(frozen=True)
class Stage:
    """One of the three questions, for the log."""

    model: HistGradientBoostingClassifier  # The first of the fits.
    share: float  # Share of the answers to which the question applies.


def log_losses(log_event: run_log.LogEvent, stages: list[Stage]) -> None:
    """Log the loss after each tree, on the rows learned from and on those for early stopping.

    The losses of the three questions are weighted by the share of answers to which they apply, and
    summed. A question with fewer trees keeps its last loss.
    """
    n_steps = 1 + max(N_TREES)
    losses = np.zeros(n_steps)
    held_out_losses = np.zeros(n_steps)
    for stage in stages:
        n_missing = n_steps - len(stage.model.train_score_)
        losses += stage.share * np.pad(-stage.model.train_score_, (0, n_missing), "edge")
        held_out_losses += stage.share * np.pad(
            -stage.model.validation_score_, (0, n_missing), "edge"
        )
    for step, (loss, held_out_loss) in enumerate(zip(losses, held_out_losses, strict=True)):
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
    answers = read_answers(paths.train, options=True, ids=True)
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
        pairs, answers, options.features, leave_out=["options"]
    )
    print(f"features: {', '.join(groups)}")
    log_event = run_log.open_log(options.log)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `answers`; `pairs`; `groups`. Out, for each template row: `prediction`; `p_option`.
    *held_out, asked = answer_features.tables(pairs, answers, groups, options.seed)
    features = pd.concat([part.table for part in held_out]).to_numpy()
    # An outcome is 0 for the right option, 1 to 3 for the wrong ones by popularity.
    question = pairs.numbers["question"]
    option = answers["AnswerValue"].to_numpy()
    outcomes = [
        part.outcome_of_option[question[part.rows], option[part.rows] - 1] for part in held_out
    ]
    outcome = np.concatenate(outcomes)

    draws = np.random.RandomState(options.seed)
    p_outcome = np.ones((len(template), 4))
    stages = []
    for stage, n_trees in enumerate(N_TREES):
        is_reached = outcome >= stage
        is_later = outcome[is_reached] > stage
        n_here, n_later = np.bincount(is_later, minlength=2)
        if min(n_here, n_later) >= MIN_OUTCOMES:
            models = fit_trees(features[is_reached], is_later, draws, max_iter=n_trees)
            stages.append(Stage(models[0], is_reached.mean()))
            p_later = predict_mean(models, asked.table)
        else:
            # Laplace's rule of succession: rare outcomes are not impossible.
            p_later = np.full(len(template), (n_later + 1) / (n_here + n_later + 2))
        p_outcome[:, stage] *= 1 - p_later
        p_outcome[:, stage + 1 :] *= p_later[:, np.newaxis]
    log_losses(log_event, stages)

    outcome_of_option = asked.outcome_of_option[question[asked.rows]]
    p_option = np.take_along_axis(p_outcome, outcome_of_option, axis=1)
    prediction = 1 + p_option.argmax(axis=1)
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_predictions(template, TASK, prediction, paths.output)
    write_probabilities(template, TASK, p_option, paths.probabilities)
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(prediction):,} rows)")


if __name__ == "__main__":
    cli.run(main)
