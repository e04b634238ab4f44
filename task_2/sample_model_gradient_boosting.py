"""Task 2: gradient boosting on features of an answer: all that is known but its outcome.

Run:     python task_2/sample_model_gradient_boosting.py --local     predict the local split
         python task_2/local_evaluation.py                           score that prediction
         python task_2/sample_model_gradient_boosting.py             predict the official pairs
Guide:   "Default arguments for local evaluation" with --local, "… for Codalab submission" without
Writes:  submission_task_2.csv and the zip to upload
Scores:  accuracy 0.5849 on real answers (SD over ten splits: 0.0015), majority model 0.5539

The functions in common/answer_features/ compute the features. To add a feature, add a column to
`part.table` of every part in `main`. Trees must learn from answers whose outcomes the features have
not seen. So one part of the training answers at a time is held out, and its features are computed
from all other answers.

Options have a rank: 0 is the right option, 1 the most popular wrong option, 3 the least popular. A
model is fitted for each of three stages. Stage 0: is the rank above 0? Stage 1, if so: is it above
1? Stage 2, if so: is it above 2? Features that exist once for each option are in order of rank too.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

from common import (
    answer_features,
    answer_options,
    cli,
    progress,
    run_log,
    sample_models,
    submission,
)
from common.answers import read_answers
from common.errors import InputError
from common.probabilities import write_probabilities

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import expit, logit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

TASK = 2
# The settings were chosen on answers held out of the training data. A fit sets
# `validation_fraction` of its rows aside, and stops if `n_iter_no_change` trees in a row do not
# lower the loss on these rows.
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
# The largest numbers of trees in stage 0, in stage 1 and in each later stage.
N_TREES = (100, 50)
N_TREES_OF_LATER_STAGES = 25
# Each fit draws at random which features a tree may split on and which rows are set aside. The mean
# of several fits depends less on these draws.
N_FITS = 2
# The training file must hold at least this many answers of each kind, right and wrong.
MIN_ANSWERS = 100
# Options have ranks: 0 is the right one, 1 the most popular wrong one, and so on. Stage r sees the
# answers whose option has rank r or a higher rank. Answers of rank r stop at this stage, all other
# answers go on to the next stage. A stage gets trees only if at least this many answers stop and at
# least this many go on. Half of these answers are held out to choose the weight of the trees.
MIN_STAGE_ANSWERS = 40
# Trees do not use a feature that has a value (not NaN) in fewer rows than this.
MIN_KNOWN = 100
# The possible weights of the trees. Weight 0 uses the simpler models of `start_logits` alone,
# weight 1 the trees alone.
WEIGHTS = np.linspace(0, 1, 51)
# Smaller shares of answers are replaced by this share, so that their logarithms are finite.
MIN_SHARE = 1e-6
# With more training answers than this, the group of features `options` is left out by default,
# because its item response models take long. If contexts of answers (such as quizzes) are known,
# these models take even longer, so the limit is lower.
MAX_ANSWERS_OF_OPTIONS = 200_000
MAX_ANSWERS_WITH_CONTEXTS = 100_000
# Predict this many rows at a time, to limit memory.
BLOCK_ROWS = 100_000
# Training and template rows that the script handles per second, to estimate its run time. Measured
# on files of the official size (tests/benchmarks/full_size.md).
ROWS_PER_SECOND = 170_000

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


def start_logits(table: pd.DataFrame, n_options: int) -> npt.NDArray[np.float64]:
    """Return the predictions of simpler models than trees, as logits, shape (rows, n_options - 1).

    `mix` averages them with the predictions of the trees. Each row is an answer. Options have
    ranks: 0 is the right one, 1 the most popular wrong one, and so on. An answer passes through
    stages: it stops at stage r if its option has rank r, and goes on to the next stage if its
    option has a higher rank. Column r of the result holds the logit of P(rank > r | rank ≥ r): an
    answer that has reached stage r goes on. So column 0 holds the logit of a wrong answer.

    `table` holds the features of the rows. If it has the columns `model_0`, `model_1`, ..., the
    logits follow from them: these columns hold the log-probabilities of the ranks, by an item
    response model of options. Otherwise the logits come from other columns of `table`:

    - for stage 0 from `model`, the logit of a right answer;
    - for stage 1 from `distractor`, the logit of rank 1 given that the answer is wrong;
    - for later stages from `share_0`, `share_1`, ..., the shares of the answers that chose the
      option of each rank.
    """
    if "model_0" in table:
        log_p_rank = table[[f"model_{rank}" for rank in range(n_options)]].to_numpy()
        p_rank = np.exp(log_p_rank.astype(np.float64))
        # Sum the columns from the last one backwards: column r becomes the probability of rank r or
        # above.
        p_reached = np.cumsum(p_rank[:, ::-1], axis=1)[:, ::-1]
        # Column r is log(P(rank > r) / P(rank = r)), the logit of going on at stage r.
        logits: npt.NDArray[np.float64] = np.log(p_reached[:, 1:] / p_rank[:, :-1])
        return logits
    # `model` holds logits of stopping at stage 0, and `distractor` logits of stopping at stage 1.
    # With the opposite sign, they are logits of going on.
    columns = [-table["model"].to_numpy(), -table["distractor"].to_numpy()]
    share = table[[f"share_{rank}" for rank in range(n_options)]].to_numpy()
    for stage in range(2, n_options - 1):
        share_stopping = np.maximum(share[:, stage], MIN_SHARE)
        share_going_on = np.maximum(share[:, stage + 1 :].sum(axis=1), MIN_SHARE)
        columns.append(np.log(share_going_on / share_stopping))
    # `columns` has a column for each of stages 0 and 1, even if questions have only two options,
    # and so only stage 0. Drop column 1 then.
    return np.column_stack(columns[: n_options - 1]).astype(np.float64)


def mix(
    start: npt.NDArray[np.floating], p_trees: npt.NDArray[np.float64], weight: float
) -> npt.NDArray[np.float64]:
    """Return probabilities between those of simpler models and those of the trees.

    `start` holds the logits of the simpler models (`start_logits`), `p_trees` the probabilities of
    the trees. The logits of both are averaged, and `weight` is the share of the trees.
    """
    p: npt.NDArray[np.float64] = expit((1 - weight) * start + weight * logit(p_trees))
    return p


def choose_weight(
    start: npt.NDArray[np.floating],
    p_trees: npt.NDArray[np.float64],
    outcome: npt.NDArray[np.generic],
) -> float:
    """Return the weight of the trees in the mean of trees and simpler models (`mix`).

    The weight is chosen by the `outcome` (true or false) of held-out answers, from which the trees
    have not learned. `start` holds the logits that the simpler models predict for these answers,
    `p_trees` the probabilities that the trees predict.

    If the trees alone predict better than the simpler models alone, by more than two standard
    errors, the weight is 1. A smaller weight would be too cautious: these trees have learned from
    half of the rows only, and the final trees, which learn from all rows, predict better.

    Otherwise the weight is the smallest one whose log-likelihood is at most 2 below the largest
    log-likelihood. This weight lies about two standard errors below the best weight, because a
    weight that is z standard errors away lowers the log-likelihood by about z² / 2. So trees get a
    weight above 0 only if they surely add something to the simpler models.
    """
    # The log-likelihood of each outcome (row) with each weight (column). The first column is the
    # simpler models alone (weight 0), the last column the trees alone (weight 1).
    by_outcome = np.empty((len(outcome), len(WEIGHTS)))
    for i, weight in enumerate(WEIGHTS):
        p = mix(start, p_trees, weight)
        by_outcome[:, i] = np.log(np.where(outcome, p, 1 - p))
    # How much larger the log-likelihood of each outcome is with the trees alone than with the
    # simpler models alone.
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
    """Return the weight that the trees get when `mix` averages them with simpler models.

    To choose the weight, trees learn from a random half of the rows and predict the other half.

    Options have ranks: rank 0 is the right option, rank 1 the most popular wrong option, and so on.
    All rows belong to one stage r: each row is an answer whose option has rank r or a higher rank.
    `outcome` is true where the rank is higher than r.

    `start` holds the logits that the simpler models predict for a true `outcome` (`start_logits`).
    `more_settings` are the settings that `fit_trees` adds to `SETTINGS`, as for the final trees.
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


@dataclass(frozen=True)
class LoggedStage:
    """A fitted stage, as `log_losses` needs it."""

    # The first of the stage's `N_FITS` models. The others have about the same losses, so they are
    # not logged.
    model: HistGradientBoostingClassifier
    # Share of the answers that reach the stage.
    share: float


def log_losses(log_event: run_log.LogEvent, stages: list[LoggedStage]) -> None:
    """Log two losses after each tree: on the training rows, and on the rows for early stopping.

    Each stage has its own trees, and so its own losses. The loss written is the sum of the losses
    of all stages, each multiplied by the share of the answers that reach the stage. A stage with
    fewer trees than another stage keeps the loss after its last tree.
    """
    # `N_TREES` holds the largest numbers of trees in stages 0 and 1. Later stages have fewer trees.
    # A stage with n trees has n + 1 losses, because the first is the loss before any tree.
    n_steps = 1 + max(N_TREES)
    losses = np.zeros(n_steps)
    validation_losses = np.zeros(n_steps)
    for stage in stages:
        # scikit-learn's scores are negative losses.
        stage_losses = -stage.model.train_score_
        stage_validation_losses = -stage.model.validation_score_
        # Repeat the last loss, so that all stages have the same number of losses.
        n_repeats = n_steps - len(stage_losses)
        losses += stage.share * np.pad(stage_losses, (0, n_repeats), "edge")
        validation_losses += stage.share * np.pad(stage_validation_losses, (0, n_repeats), "edge")
    for step, (loss, validation_loss) in enumerate(zip(losses, validation_losses, strict=True)):
        log_event("step", step=step, loss=loss, held_out_loss=validation_loss)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = sample_models.parser(__doc__, TASK)
    sample_models.add_metadata_flag(parser)
    run_log.add_log_flag(parser)
    # The group of features `options` takes long. By default, it is computed only if there are at
    # most `MAX_ANSWERS_OF_OPTIONS` training answers; or at most `MAX_ANSWERS_WITH_CONTEXTS`, if
    # contexts of answers (such as quizzes) are known.
    default_in_words = "all whose files are there; options only with few answers"
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
    answers = read_answers(paths.train, options=True, ids=True)
    require_right_and_wrong(answers, paths.train)
    progress.announce((len(answers) + len(template)) / ROWS_PER_SECOND)
    # `pairs` holds what is known before an answer is given: who is asked which question, and when.
    # It has a row for each training answer, followed by a row for each template row.
    pairs = answer_features.read_pairs(answers, template, paths.metadata)
    # To save memory, drop the ids, which `pairs` holds too.
    answers = answers.drop(columns=["UserId", "QuestionId", "AnswerId"], errors="ignore")
    has_contexts = pairs.context.shape[1] > 0
    limit = MAX_ANSWERS_WITH_CONTEXTS if has_contexts else MAX_ANSWERS_OF_OPTIONS
    leave_out = ["options"] if len(answers) > limit else []
    groups = answer_features.available_groups(pairs, answers, options.features, leave_out)
    print(f"features: {', '.join(groups)}")
    log_event = run_log.open_log(options.log)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `answers`, `pairs`, `groups`. Out, for each template row: `prediction`, `p_option`.
    # Each of `train_parts` holds some training answers with their features. The features are
    # computed from the training answers outside the part, so that no answer is among its own
    # features. The trees learn from all training answers if there are at most 125,000 of them, else
    # from about 125,000. The last part is the template.
    *train_parts, template_part = answer_features.tables(pairs, answers, groups, options.seed)
    features = pd.concat([part.table for part in train_parts]).to_numpy()
    question = pairs.numbers["question"]
    # The number of options of each question, and the highest of these numbers: 4 in the challenge.
    train_question = question[: len(answers)]
    n_options = answer_options.number_by_question(answers, train_question, pairs.n_questions)
    most_options = answer_options.count_options(answers)
    # Find the rank of the option that each answer chose. An answer must not influence its own rank.
    # So for each part of the training answers, the options are ranked by the answers outside it.
    option = answers["AnswerValue"].to_numpy()
    ranks = []
    for part in train_parts:
        rank_of_option = part.outcome_of_option[question[part.rows]]
        option_number = option[part.rows] - 1
        ranks.append(rank_of_option[np.arange(len(part.rows)), option_number])
    rank = np.concatenate(ranks)
    # Stage r learns from the answers whose rank is at least r, and predicts whether the rank is
    # above r. The last rank needs no stage, so a question has one stage fewer than options.
    n_stages = n_options[question] - 1
    train_stages = np.concatenate([n_stages[part.rows] for part in train_parts])

    # With these groups of features, `start_logits` can predict without trees.
    has_start = "options" in groups or {"model", "distractors"} <= set(groups)
    if has_start:
        starts = [start_logits(part.table, most_options) for part in train_parts]
        train_start = np.concatenate(starts)
        template_start = start_logits(template_part.table, most_options)

    random_state = np.random.RandomState(options.seed)
    p_rank = np.ones((len(template), most_options))
    logged_stages = []
    for stage in range(most_options - 1):
        n_trees = N_TREES[stage] if stage < len(N_TREES) else N_TREES_OF_LATER_STAGES
        reaches_stage = (rank >= stage) & (train_stages > stage)
        goes_on = rank[reaches_stage] > stage
        n_stop, n_go_on = np.bincount(goes_on, minlength=2)
        if min(n_stop, n_go_on) >= MIN_STAGE_ANSWERS:
            models = fit_trees(features[reaches_stage], goes_on, random_state, max_iter=n_trees)
            logged_stages.append(LoggedStage(models[0], reaches_stage.mean()))
            p_go_on = predict_mean(models, template_part.table)
            if has_start:
                # If there are no metadata, trees may predict worse than simpler models, such as the
                # item response model whose prediction is one of their features. So take a weighted
                # mean of both. The weight, from 0 to 1, is chosen by answers that the trees have
                # not learned from.
                start = train_start[reaches_stage, stage]
                stage_features = features[reaches_stage]
                weight = weigh_trees(start, stage_features, goes_on, options.seed, max_iter=n_trees)
                p_go_on = mix(template_start[:, stage], p_go_on, weight)
                print(f"weight of the trees at stage {stage}: {weight:.2f}")
        else:
            # There are too few answers for trees. All rows get the same probability. Laplace's rule
            # of succession keeps it above 0 and below 1.
            p_go_on = np.full(len(template), (n_go_on + 1) / (n_stop + n_go_on + 2))
        # A question with fewer options has fewer stages. At a stage that its question does not
        # have, an answer cannot go on.
        p_go_on[n_stages[template_part.rows] <= stage] = 0
        # An answer that stops at this stage has the rank `stage`. An answer that goes on has a
        # higher rank.
        p_rank[:, stage] *= 1 - p_go_on
        p_rank[:, stage + 1 :] *= p_go_on[:, np.newaxis]
    log_losses(log_event, logged_stages)

    # `p_rank` has a column for each rank. `p_option` has a column for each option, from 1.
    rank_of_option = template_part.outcome_of_option[question[template_part.rows]]
    p_any_option = np.take_along_axis(p_rank, rank_of_option, axis=1)
    p_option = answer_options.for_template(p_any_option, template)
    prediction = 1 + p_option.argmax(axis=1)
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_predictions(template, TASK, prediction, paths.output)
    write_probabilities(template, TASK, p_option, paths.probabilities)
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(prediction):,} rows)")


if __name__ == "__main__":
    cli.run(main)
