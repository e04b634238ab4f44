"""From answers to predictions: planted abilities and effects of contexts, options, settings."""

import math
from typing import Any
from unittest.mock import patch

from common import item_response
from common.errors import InputError
from common.item_response import fitting
from common.item_response.blocks import ItemResponseModel as Model
from common.item_response.model import expected_probability
from common.item_response.prediction import explain

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

RNG = np.random.default_rng
KINDS = pytest.mark.parametrize("predicts", ["is_correct", "option"])
N_CLASSES, CLASS_SIZE, N_QUIZZES, QUIZ_SIZE = 20, 30, 30, 10
N_QUESTIONS = N_QUIZZES * QUIZ_SIZE
OWN_VARIANCE = 0.3
UNKNOWN = 1_000_000


def plant(
    of_quiz: float, of_group: float = 0, of_class: float = 0, few: float = 0.5
) -> pd.DataFrame:
    """Return answers, with effects of these variances."""
    rng = RNG(5)
    n = N_CLASSES * CLASS_SIZE
    ability = rng.standard_normal(n)
    easiness = rng.normal(0.2, 0.8, N_QUESTIONS)
    own = rng.normal(0, np.sqrt(of_quiz), (n, N_QUIZZES))
    own += np.repeat(rng.normal(0, np.sqrt(of_group), (n, N_QUIZZES // 3)), 3, axis=1)
    shared = rng.normal(0, np.sqrt(of_class), N_CLASSES * N_QUIZZES)
    # Classes each take half of the quizzes, in whole.
    taken = np.repeat(rng.random((N_CLASSES, N_QUIZZES)) < 0.5, QUIZ_SIZE, axis=1)
    student, question = np.nonzero(taken[np.arange(n) // CLASS_SIZE])
    quiz = question // QUIZ_SIZE
    of_class_ = student // CLASS_SIZE * N_QUIZZES + quiz
    known = easiness[question] + shared[of_class_]
    p = 1 / (1 + np.exp(-known - ability[student] - own[student, quiz]))
    # One in ten answers of such a quiz is for training, and none of a new student.
    knows_few = (rng.random((n, N_QUIZZES)) < few)[student, quiz]
    is_new = student % CLASS_SIZE >= 25
    columns = {
        # Ids in no order, and with gaps.
        "student": student * 3,
        "question": rng.permutation(N_QUESTIONS)[question] * 2,
        "quiz": quiz,
        "of_class": of_class_,
        "shared": shared[of_class_],
        "p_right": p,
        "known": known,  # Logit of `p_right` but for ability and effects of the student.
        "ability": ability[student],
        "is_right": (rng.random(len(p)) < p).astype(np.int8),
        "is_train": (rng.random(len(p)) < np.where(knows_few, 0.1, 0.8)) & ~is_new,
        "is_new": is_new,
        "knows_few": knows_few,
    }
    return pd.DataFrame(columns)


def split(answers: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return training answers, and further ones of the same students."""
    return answers[answers.is_train], answers[~answers.is_train & ~answers.is_new]


def groups(rows: pd.DataFrame) -> np.ndarray:
    """Return nested contexts, three quizzes in a group."""
    return np.stack([rows.quiz // 3, rows.quiz], axis=1)


def options(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return options and keys: a wrong one is the same for all of a student in a quiz."""
    key = rows.question.to_numpy() // 2 % 4
    choice = 1 + (rows.student.to_numpy() // 3 + 1) * (rows.quiz.to_numpy() + 3) // 4 % 2
    return (key + np.where(rows.is_right == 1, 0, choice)) % 4 + 1, key + 1


def plant_slopes(k: int, n_students: int, n_questions: int, guessing: float = 0) -> Any:
    """Return the columns of answers; their true probabilities; (slopes, intercept) of questions."""
    rng = RNG(3)
    ability = rng.standard_normal((n_students, k))
    z = rng.normal(0, 0.7, (n_questions, k + 1))
    z[:, 0] = np.exp(rng.normal(0, 0.3, n_questions))
    student, question = np.nonzero(rng.random((n_students, n_questions)) < 0.5)
    logit = (ability[student] * z[question, :k]).sum(axis=1) + z[question, k]
    p = guessing + (1 - guessing) / (1 + np.exp(-logit))
    return (student, question, (rng.random(len(p)) < p).astype(np.int8)), p, z


def fit(rows: pd.DataFrame, contexts: Any = None, predicts: str = "is_correct", **more: Any) -> Any:
    if contexts is not None:
        more["context"] = np.asarray(contexts).reshape(len(rows), -1)
    settings = {"n_dimensions": 2, **more}
    pairs = rows.student.to_numpy(), rows.question.to_numpy()
    if predicts == "is_correct":
        return item_response.fit(*pairs, rows.is_right.to_numpy(), **settings)
    return item_response.fit_options(*pairs, *options(rows), **settings)


def predict(fitted: Any, asked: Any, contexts: Any = None) -> np.ndarray:
    """Predict answers, or pairs of (student, question)."""
    function: Any = item_response.predict
    if not isinstance(fitted, Model):
        function = item_response.predict_options
    if isinstance(asked, pd.DataFrame):
        asked = asked.student.to_numpy(), asked.question.to_numpy()
    if contexts is not None:
        contexts = np.asarray(contexts).reshape(len(asked[0]), -1)
    result: np.ndarray = function(fitted, asked[0], asked[1], contexts)
    return result


def loss(p: np.ndarray, truth: Any) -> float:
    """Return the log loss expected of answers with these true probabilities."""
    return float(-(truth * np.log(p) + (1 - truth) * np.log1p(-p)).mean())


def assert_calibrated(p: Any, truth: Any, *, by: float = 0.025, n_bins: int = 9) -> None:
    """Compare the mean prediction with the mean truth in bins that are a tenth wide.

    Bins with fewer than 200 pairs do not count; at least `n_bins` must. A bin holds up to 2,700
    pairs, whose true probabilities deviate from the predictions by up to 0.2. About two pairs share
    each effect, so that a bin's mean has a standard error of at most 0.2 / √(2,400 / 2) = 0.006:
    `by` is four of these. Where fewer answers tell less of each student it is up to seven.
    """
    rows = pd.DataFrame({"p": p, "truth": np.asarray(truth)})
    bins = rows.groupby(np.minimum((p * 10).astype(int), 9))
    means = bins.mean()[bins.size() >= 200]
    assert len(means) >= n_bins
    assert_allclose(means.p, means.truth, atol=by)


def over_gaussian(logit: np.ndarray, variance: float) -> np.ndarray:
    """Return E[sigmoid(logit + x)] for x of N(0, variance)."""
    x, weight = np.polynomial.hermite_e.hermegauss(30)
    p = 1 / (1 + np.exp(-logit[:, None] - np.sqrt(variance) * x))
    result: np.ndarray = p @ weight / weight.sum()
    return result


TRAIN, TEST = split(plant(1.0, few=0.1))


# ---- Abilities and questions --------------------------------------------------------------------


def test_guessing_given_recovers_the_easiness_behind_it() -> None:
    columns, p_right, z = plant_slopes(1, 1_500, 120, guessing=0.25)
    error = {}
    for guessing in (0.0, 0.25):
        model = item_response.fit(*columns, n_dimensions=1, guessing=guessing)
        error[guessing] = np.abs(model.items.mean[:-1, 1] - z[:, 1]).mean()
    # Each of a question's 750 answers tells 0.15 about the easiness (Fisher's information), so that
    # the easiness has a standard error of 0.09. The mean size of the errors is less than 0.15.
    assert error[0.25] < min(0.15, error[0.0] / 2)
    p = predict(model, columns)
    assert p.min() >= 0.25
    assert_calibrated(p, p_right, n_bins=7)


@pytest.mark.parametrize("k", [1, 3])
def test_further_dimensions_are_found_where_they_are_and_shrink_where_not(k: int) -> None:
    columns, _, z = plant_slopes(k, 2_000, 150)
    slopes = item_response.fit(*columns, n_dimensions=3, n_steps=15).items.mean[:-1, :3]
    size = np.linalg.norm(slopes, axis=0) / math.sqrt(150)
    # The slopes planted have a size of 0.7. A slope rests on 1,000 answers and so has a standard
    # error of 1 / √(1,000 · 0.2) = 0.07. A dimension that is not there is made of such errors, and
    # fits where they are largest: at most twice their size.
    assert (size[1:] > 0.3).all() if k == 3 else (size[1:] < 0.15).all()
    # Slopes are identified up to a rotation: compare what they explain. That error takes
    # (0.07 / 0.7)² / 2 = 0.005 from the share explained.
    q, _ = np.linalg.qr(slopes[:, :k])
    assert np.linalg.norm(q.T @ z[:, :k]) / np.linalg.norm(z[:, :k]) > 0.97


def test_options_of_a_question_are_ranked_right_first_then_by_popularity() -> None:
    # Question 5: option 3 is right; 1 is chosen most, then 4, then 2, never 3.
    option = np.array([1, 1, 1, 4, 4, 2, 2, 2], np.int8)
    question = np.array([5, 5, 5, 5, 5, 5, 9, 9])
    key = np.where(question == 5, 3, 2).astype(np.int8)
    model = item_response.fit_options(np.arange(8), question, option, key, n_dimensions=1)
    assert_array_equal(model.outcome_of_option[0], [1, 3, 0, 2])
    assert model.outcome_of_option[1, 1] == 0
    # Of an unknown question, each as often as over all, and one never chosen is not impossible.
    p = predict(model, (np.array([99, 99, 99, 0]), np.array([5, 9, 1, 1])))
    assert p[0].argmax() == 0
    assert p[1, 1] > p[0, 2]
    assert_allclose(p[2:], np.array([[4, 4, 1, 3]] * 2) / 12, atol=1e-6)


def test_wrong_options_are_told_by_quiz_and_right_ones_by_ability() -> None:
    found = fit(TRAIN, TRAIN.quiz, "option")
    option, key = options(TEST)
    rows, wrong = np.arange(len(option)), option != key
    p = predict(found, TEST, TEST.quiz)
    assert p.shape == (len(rows), 4)
    assert_allclose(p.sum(axis=1), 1, atol=1e-5)
    assert_calibrated(p[rows, key - 1], TEST.p_right)
    without = predict(found, TEST, np.full(len(TEST), UNKNOWN))
    of_wrong = [(q[rows, option - 1] / (1 - q[rows, key - 1]))[wrong].mean() for q in (p, without)]
    assert of_wrong[0] > 0.68 > 0.6 > of_wrong[1]


# ---- Effects of contexts, of each student or shared ----------------------------------------------


def test_planted_effects_are_recovered() -> None:
    fitted, plain = fit(TRAIN, TRAIN.quiz), fit(TRAIN)
    # There are 7,700 effects with 7.5 answers each. An answer tells 0.17 (Fisher's information), so
    # an effect is known up to a variance of 1 / (7.5 · 0.17) = 0.8. Their variance then
    # has a standard error of √(2 / 7,700) · (1 + 0.8) = 0.03: five of these.
    assert fitted.variance[0, 0] == pytest.approx(1, abs=0.15)
    p, without = predict(fitted, TEST, TEST.quiz), predict(plain, TEST)
    assert len(predict(plain, TEST[:0])) == 0
    assert loss(p, TEST.p_right) < loss(without, TEST.p_right) - 0.02
    assert_calibrated(p, TEST.p_right)
    # What the predictions consist of.
    pairs = TEST.student.to_numpy(), TEST.question.to_numpy(), TEST.quiz.to_numpy()[:, None]
    parts = explain(fitted, *pairs)
    mean, variance = parts["mean"] + parts["effect"], parts["variance"] + parts["effect_variance"]
    assert_allclose(expected_probability(mean, variance), p, atol=0.03)
    assert np.corrcoef(parts["own_effect"], parts["effect"])[0, 1] > 0.9
    assert np.corrcoef(parts["ability"], TEST.ability)[0, 1] ** 2 > 0.4
    assert np.corrcoef(parts["easiness"], TEST.known)[0, 1] > 0.9
    with pytest.raises(InputError, match="had contexts, expected those of the pairs as well"):
        predict(fitted, TEST)


def test_contexts_without_effect_cost_nothing() -> None:
    """Quizzes in groups, and those of whole classes."""
    answers = plant(0.0)
    train, test = split(answers)
    new = answers[answers.is_new]
    plain = fit(train)
    for labels in (groups(answers), answers.of_class.to_numpy()):
        found = fit(train, labels[answers.is_train])
        assert max(found.variance.max(), found.shared.prior.max()) < 0.06
        for rows in (test, new):
            p, without = predict(found, rows, labels[rows.index]), predict(plain, rows)
            assert loss(p, rows.p_right) < loss(without, rows.p_right) + 2e-3


@pytest.mark.parametrize("level", [0, 1])
def test_the_level_that_has_the_effect_gets_the_variance(level: int) -> None:
    """Where only the group of a quiz is known, its effect is; further down they only vary."""
    train, test = split(plant(float(level == 1), float(level == 0)))
    found = fit(train, groups(train))
    # As above, but half of the effects rest on one answer in ten: the 6,600 effects of quizzes and
    # the 4,100 of groups give a standard error of about 0.05, four of these.
    assert found.variance[level, 0] == pytest.approx(1, abs=0.2)
    assert found.variance[1 - level, 0] < 0.2
    # All is known, the quiz is not, the group is not.
    unknown = over_gaussian((test.ability + test.known).to_numpy(), 1)
    truths = {2: test.p_right, 1: unknown if level else test.p_right, 0: unknown}
    for n_known, truth in truths.items():
        contexts = np.where(np.arange(2) < n_known, groups(test), UNKNOWN)
        assert_calibrated(predict(found, test, contexts), truth, by=0.03, n_bins=8)
    # A quiz without its group is none that the student has met.
    contexts[:, 1] = test.quiz
    assert_calibrated(predict(found, test, contexts), unknown, by=0.03, n_bins=8)


def test_what_a_class_shares_tells_most_of_students_with_few_answers() -> None:
    answers = plant(OWN_VARIANCE, of_class=1.0)
    train, rest = split(answers)
    by_class, planted = fit(train, train.of_class), train.groupby("of_class").shared.first()
    # The variance of 321 effects has a standard error of √(2 / 321) = 0.08: three of these.
    assert by_class.shared.prior[0] == pytest.approx(planted.var(), abs=0.25)
    # The 6,600 effects of single students are known up to a variance of 1.1, so that the standard
    # error is √(2 / 6,600) · (0.3 + 1.1) = 0.024: four of these.
    assert by_class.variance[0, 0] == pytest.approx(OWN_VARIANCE, abs=0.1)
    assert by_class.shared.variance[:-1].max() < by_class.shared.prior[0]
    # Neither shrunk too much nor too little. Effects deviate by 0.38 from what is found of them, so
    # the slope over 321 effects has a standard error of 0.38 / √321 = 0.02: five of these.
    found = by_class.shared.mean[:-1]
    assert np.cov(found, planted)[0, 1] / found.var() == pytest.approx(1, abs=0.1)

    alone = fit(train, train.quiz)  # Each student in a context of their own.
    new = answers[answers.is_new]
    for test, gain in ((rest[rest.knows_few], 0.03), (rest[~rest.knows_few], 0.005), (new, 0.03)):
        p, other = predict(by_class, test, test.of_class), predict(alone, test, test.quiz)
        assert loss(p, test.p_right) < loss(other, test.p_right) - gain
        assert_calibrated(p, test.p_right, by=0.04, n_bins=8)
    # No other information is there, so that it is as good as it can be, but for estimation.
    of_class = over_gaussian(new.known.to_numpy(), 1 + OWN_VARIANCE)
    assert loss(p, new.p_right) < loss(of_class, new.p_right) + 0.012
    assert_calibrated(p, of_class)
    # Of a class that has not taken the quiz no more is known than of one that nobody has heard of.
    not_taken = np.setdiff1d(np.arange(N_CLASSES * N_QUIZZES), train.of_class)
    unknown = predict(by_class, new, np.full(len(new), UNKNOWN))
    assert_array_equal(predict(by_class, new, RNG(0).choice(not_taken, len(new))), unknown)


# ---- Degenerate answers --------------------------------------------------------------------------

DEGENERATE = {
    "one answer": {},
    "one student": {"student": 2_000_000_000},
    "one question": {"question": 7},
    "all right": {"is_right": 1},
    "all wrong": {"is_right": 0},
}


@KINDS
@pytest.mark.parametrize("n_levels", [0, 3])
@pytest.mark.parametrize("what", DEGENERATE)
def test_degenerate_answers(predicts: str, n_levels: int, what: str) -> None:
    n = 1 if what == "one answer" else 400
    rows = TRAIN.iloc[np.linspace(0, len(TRAIN) - 1, n).astype(int)].assign(**DEGENERATE[what])
    labels = np.stack([rows.quiz // 4, rows.quiz // 2, rows.quiz], axis=1)[:, :n_levels]
    # The last ones are of a student or a question without answers, in a context without any.
    first = rows.iloc[0]
    student = np.append(rows.student, [123_456, first.student, 123_456])
    question = np.append(rows.question, [first.question, 9_999_998, 9_999_998])
    asked = np.concatenate([labels, np.full((3, n_levels), UNKNOWN)])
    p = predict(fit(rows, labels, predicts), (student, question), asked)
    assert np.isfinite(p).all()
    right = p[:n] if predicts == "is_correct" else p[np.arange(n), options(rows)[1] - 1]
    assert right.mean() == pytest.approx(rows.is_right.mean(), abs=0.5 / np.sqrt(n) + 0.05)
    if predicts == "option":
        assert_allclose(p.sum(axis=1), 1, atol=1e-5)


# ---- Settings and early stopping ----------------------------------------------------------------


def test_early_stopping_stops_when_the_held_out_loss_does_not_fall() -> None:
    events: list[dict[str, Any]] = []
    history = fit(TRAIN, log_event=lambda _, **values: events.append(values)).history
    losses = [loss for loss, _ in history]
    falls = [(before - now) / before for before, now in zip(losses, losses[2:], strict=False)]
    assert falls[-1] < 1.25e-3 <= min(falls[:-1])
    found = [(values["held_out_loss"], values["held_out_accuracy"]) for values in events]
    assert found == history


def test_many_answers_are_fitted_in_fewer_steps_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    few = fit(TRAIN, n_dimensions=6)
    monkeypatch.setattr(fitting, "_MANY", 0)
    many = fit(TRAIN, n_dimensions=6)
    assert len(many.history) < len(few.history)
    # Both are measured on the same answers by their true probabilities: nothing is drawn.
    losses = [loss(predict(model, TEST), TEST.p_right) for model in (many, few)]
    assert losses[0] < losses[1] + 5e-4


def test_in_the_end_all_answers_are_learned_from() -> None:
    """Those held out for early stopping too, which here are the only ones to their questions."""
    n = 2_000
    rows = pd.concat([TRAIN, TRAIN[:n].assign(question=np.arange(n) + UNKNOWN)])
    # The last one is a question without answers.
    *known, unknown = fit(rows, n_dimensions=1).items.covariance[:, 1, 1]
    assert len(known) == N_QUESTIONS + n
    assert max(known) < unknown


@pytest.mark.parametrize("has_contexts", [False, True])
def test_a_fit_goes_on_from_a_model_of_some_of_the_answers(has_contexts: bool) -> None:
    """That knows neither all students nor all questions nor all contexts."""
    known = TRAIN[(TRAIN.student % 7 > 0) & (TRAIN.question % 10 > 0) & (TRAIN.quiz > 1)]
    of_known, of_train, of_test = (
        groups(rows) if has_contexts else None for rows in (known, TRAIN, TEST)
    )
    start = fit(known, of_known)
    whole, on, new = (
        loss(predict(fit(TRAIN, of_train, **more), TEST, of_test), TEST.p_right)
        for more in ({}, {"start": start, "n_steps": 2}, {"n_steps": 2})
    )
    assert on < whole + 1e-3
    assert on < new - 1e-3
    # Control-C in the first step leaves nothing.
    stop = patch.object(fitting.blocks, "run_step", side_effect=KeyboardInterrupt)
    with stop, pytest.raises(KeyboardInterrupt):
        fit(TRAIN, of_train, start=start)


@KINDS
def test_no_answers_are_refused(predicts: str) -> None:
    with pytest.raises(InputError, match="no answers"):
        fit(TRAIN[:0], None, predicts)
