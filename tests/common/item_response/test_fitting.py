"""From answers to predictions: planted truth, posteriors, options, settings."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from common import item_response
from common.answers import Answers
from common.errors import InputError
from common.item_response import ItemResponseModel, fitting
from common.item_response.model import Gaussians

KINDS = pytest.mark.parametrize("predicts", ["is_correct", "option"])
N_STUDENTS, N_QUESTIONS = 300, 60


def simulate() -> Answers:
    """Answers whose distractors depend on ability, with ids that have gaps."""
    rng = np.random.default_rng(0)
    ability, easiness = rng.standard_normal(N_STUDENTS), rng.normal(0.3, 1, N_QUESTIONS)
    key = rng.integers(0, 4, N_QUESTIONS)
    attraction, slope = rng.normal(0, 1, (2, N_QUESTIONS, 4))
    pairs = rng.permutation(N_STUDENTS * N_QUESTIONS)[:12_000]
    student, question = pairs // N_QUESTIONS, pairs % N_QUESTIONS
    right = 1 / (1 + np.exp(-(1.5 * ability[student] + easiness[question])))
    probability = np.exp(attraction[question] + slope[question] * ability[student, None])
    probability[np.arange(len(pairs)), key[question]] = 0
    probability *= ((1 - right) / probability.sum(axis=1))[:, None]
    probability[np.arange(len(pairs)), key[question]] = right
    option = (rng.random((len(pairs), 1)) > probability.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return Answers(
        student=(7 * student + 3).astype(np.int32),
        question=(2 * question + 11).astype(np.int32),
        is_correct=(option == key[question]).astype(np.int8),
        option=(option + 1).astype(np.int8),
        correct_option=(key[question] + 1).astype(np.int8),
    )


ANSWERS = simulate()
TRAIN, HELD_OUT = ANSWERS.take(np.arange(9_600)), ANSWERS.take(np.arange(9_600, 12_000))


def fit(predicts: str, answers: Answers = TRAIN, **settings: Any) -> Any:
    settings = {"n_dimensions": 2, **settings}
    if predicts == "is_correct":
        columns: list[Any] = [answers.student, answers.question, answers.is_correct]
        return item_response.fit(*columns, **settings)
    columns = [answers.student, answers.question, answers.option, answers.correct_option]
    return item_response.fit_options(*columns, **settings)


def predict(model: Any, student: Any = HELD_OUT.student, question: Any = HELD_OUT.question) -> Any:
    if isinstance(model, ItemResponseModel):
        return item_response.predict(model, student, question)
    return item_response.predict_options(model, student, question)


def accuracy(p: np.ndarray) -> float:
    if p.ndim == 1:
        return float(np.mean((p > 0.5) == HELD_OUT.is_correct))
    return float(np.mean(p.argmax(axis=1) + 1 == HELD_OUT.option))


def majority_accuracy(predicts: str) -> float:
    counts = np.zeros((200, 5))
    np.add.at(counts, (TRAIN.question, getattr(TRAIN, predicts)), 1)
    most_common = counts.argmax(axis=1)[HELD_OUT.question]
    return float(np.mean(most_common == getattr(HELD_OUT, predicts)))


@pytest.fixture(scope="module")
def fitted() -> dict[str, Any]:
    return {kind: fit(kind) for kind in ("is_correct", "option")}


# ---- What the fit finds ------------------------------------------------------------------------


@KINDS
def test_predicts_better_than_the_majority_and_calibrated(predicts: str, fitted: Any) -> None:
    p = predict(fitted[predicts])
    assert accuracy(p) > majority_accuracy(predicts) + 0.04
    assert p.dtype == np.float32
    if predicts == "is_correct":
        assert p.shape == (len(HELD_OUT),)
        sure, hits = p[p > 0.8], HELD_OUT.is_correct[p > 0.8]
    else:
        assert p.shape == (len(HELD_OUT), 4)
        assert_allclose(p.sum(axis=1), 1, atol=1e-5)
        sure = p.max(axis=1)
        hits, sure = (p.argmax(axis=1) + 1 == HELD_OUT.option)[sure > 0.7], sure[sure > 0.7]
    assert ((p >= 0) & (p <= 1)).all()
    assert len(sure) > 200
    assert sure.mean() == pytest.approx(hits.mean(), abs=0.05)


def plant(k: int, n_students: int, n_questions: int, guessing: float = 0) -> tuple[Any, ...]:
    """Answers of all students to most questions; abilities, (slopes, intercept)."""
    rng = np.random.default_rng(3)
    ability = rng.standard_normal((n_students, k))
    z = rng.normal(0, 0.7, (n_questions, k + 1))
    z[:, 0] = np.exp(rng.normal(0, 0.3, n_questions))
    student, question = np.nonzero(rng.random((n_students, n_questions)) < 0.5)
    logit = (ability[student] * z[question, :k]).sum(axis=1) + z[question, k]
    p = guessing + (1 - guessing) / (1 + np.exp(-logit))
    return student, question, (rng.random(len(p)) < p).astype(np.int8), ability, z


def test_one_dimension_recovers_the_two_parameter_model() -> None:
    *columns, ability, z = plant(1, 1_500, 120)
    model = item_response.fit(*columns, n_dimensions=1)
    students, items = model.students, model.items
    assert np.corrcoef(students.mean[:-1, 0], ability[:, 0])[0, 1] > 0.95
    assert np.corrcoef(items.mean[:-1, 1], z[:, 1])[0, 1] > 0.99
    assert np.corrcoef(items.mean[:-1, 0], z[:, 0])[0, 1] > 0.93
    # Not only in order, but on the scale of N(0, 1) abilities.
    assert np.polyfit(z[:, 1], items.mean[:-1, 1], 1)[0] == pytest.approx(1, abs=0.1)
    # The deviations are those of the errors.
    error = students.mean[:-1, 0] - ability[:, 0]
    assert 0.9 < (error / np.sqrt(students.covariance[:-1, 0, 0])).std() < 1.1


def test_guessing_given_recovers_the_easiness_behind_it() -> None:
    *columns, _, z = plant(1, 1_500, 120, guessing=0.25)
    error = {}
    for guessing in (0.0, 0.25):
        model = item_response.fit(*columns, n_dimensions=1, guessing=guessing)
        error[guessing] = np.abs(model.items.mean[:-1, 1] - z[:, 1]).mean()
        assert item_response.predict(model, columns[0], columns[1]).min() >= guessing
    assert error[0.25] < 0.15
    assert error[0.0] > 2 * error[0.25]


@pytest.mark.parametrize("k", [1, 3])
def test_further_dimensions_are_found_where_they_are_and_shrink_where_not(k: int) -> None:
    *columns, _, z = plant(k, 2_000, 150)
    slopes = item_response.fit(*columns, n_dimensions=3, n_steps=15).items.mean[:-1, :3]
    size = np.linalg.norm(slopes, axis=0) / math.sqrt(150)
    assert (size[1:] > 0.3).all() if k == 3 else (size[1:] < 0.15).all()
    # Slopes are identified up to a rotation: compare what they explain.
    q, _ = np.linalg.qr(slopes[:, :k])
    assert np.linalg.norm(q.T @ z[:, :k]) / np.linalg.norm(z[:, :k]) > 0.97


@pytest.mark.parametrize("guessing", [0.0, 0.25])
def test_posterior_of_a_new_student_agrees_with_numerical_integration(guessing: float) -> None:
    rng = np.random.default_rng(1)
    slopes, intercepts = rng.uniform(0.5, 2, 20), rng.normal(0, 1, 20)
    correct = (rng.random(20) < 0.6).astype(np.int8)
    z = np.zeros((21, 2), np.float32)
    z[:20] = np.stack([slopes, intercepts], axis=1)
    nobody = Gaussians(np.zeros((1, 1), np.float32), np.ones((1, 1, 1), np.float32))
    model = ItemResponseModel(
        student_ids=np.empty(0, np.int32),
        question_ids=np.arange(100, 120),
        students=nobody,
        items=Gaussians(z, np.zeros((21, 2, 2), np.float32)),
        guessing=np.full(21, guessing, np.float32),
        history=[],
    )
    new = item_response.student_posterior(model, np.full(20, 7), np.arange(100, 120), correct)

    grid = np.linspace(-6, 6, 2001)
    knows = 1 / (1 + np.exp(-slopes[:, None] * grid - intercepts[:, None]))
    right = guessing + (1 - guessing) * knows
    likelihood = np.where(correct[:, None], right, 1 - right)
    log_density = -(grid**2) / 2 + np.log(likelihood).sum(axis=0)
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    mean = (grid * density).sum()
    deviation = math.sqrt(((grid - mean) ** 2 * density).sum())
    assert new.students.mean[0, 0] == pytest.approx(mean, abs=0.01)
    assert math.sqrt(new.students.covariance[0, 0, 0]) == pytest.approx(deviation, rel=0.03)
    # Predictions are means over that posterior.
    p = item_response.predict(new, np.full(20, 7), np.arange(100, 120))
    assert_allclose(p, right @ density, atol=0.01)
    # A student without answers keeps the prior.
    assert_array_equal(new.students.mean[1], 0)
    assert_array_equal(new.students.covariance[1], 1)


# ---- Options -----------------------------------------------------------------------------------


def test_options_of_a_question_are_ranked_right_first_then_by_popularity() -> None:
    # Question 5: option 3 is right; 1 is chosen most, then 4, then 2, never 3.
    option = np.array([1, 1, 1, 4, 4, 2, 2, 2], np.int8)
    question = np.array([5, 5, 5, 5, 5, 5, 9, 9])
    key = np.where(question == 5, 3, 2).astype(np.int8)
    model = item_response.fit_options(np.arange(8), question, option, key, n_dimensions=1)
    assert_array_equal(model.outcome_of_option[0], [1, 3, 0, 2])
    assert model.outcome_of_option[1, 1] == 0
    p = item_response.predict_options(model, np.array([99, 99, 99]), np.array([5, 9, 1]))
    assert p[0].argmax() == 0
    assert p[1, 1] > p[0, 2]
    assert_allclose(p[2], np.array([3, 3, 0, 2]) / 8, atol=1e-6)


# ---- Few answers, unknown ids ------------------------------------------------------------------


@KINDS
def test_unknown_students_and_questions_are_predicted(predicts: str, fitted: Any) -> None:
    model = fitted[predicts]
    students = np.array([3, 999_999_999, 3, 999_999_999])
    questions = np.array([11, 11, 9_999_999, 9_999_999])
    p = predict(model, students, questions)
    if predicts == "is_correct":
        # An unknown student: the question's own rate. An unknown pair: about the overall share.
        ids = model.question_ids
        share = np.array([TRAIN.is_correct[TRAIN.question == q].mean() for q in ids])
        assert_allclose(predict(model, np.full(len(ids), 999_999), ids), share, atol=0.1)
        assert p[3] == pytest.approx(TRAIN.is_correct.mean(), abs=0.05)
        # A known student differs, also where the question is unknown.
        assert (p[2] > p[3]) == (model.students.mean[0, 0] > 0)
    else:
        assert TRAIN.option is not None
        assert_allclose(p[3], np.bincount(TRAIN.option)[1:] / len(TRAIN), atol=1e-6)
        assert_array_equal(p[2], p[3])
    assert len(predict(model, students[:0], questions[:0])) == 0


# ---- Settings ----------------------------------------------------------------------------------


def test_learns_nothing_from_random_labels() -> None:
    noise = np.random.default_rng(0).integers(0, 2, len(TRAIN))
    p = predict(item_response.fit(TRAIN.student, TRAIN.question, noise, n_dimensions=2))
    # Hardly anything is left of slopes and abilities, and nothing of use.
    assert np.abs(p - 0.5).mean() < 0.1
    assert accuracy(p) == pytest.approx(0.5, abs=0.03)


def test_early_stopping_stops_when_the_held_out_loss_does_not_fall() -> None:
    events: list[dict[str, Any]] = []
    history = fit("is_correct", log_event=lambda _, **values: events.append(values)).history
    losses = [loss for loss, _ in history]
    assert 3 <= len(history) < 30
    assert losses[-3] - losses[-1] < 1.25e-3 * losses[-3]
    assert all(
        losses[i - 2] - losses[i] >= 1.25e-3 * losses[i - 2] for i in range(2, len(losses) - 1)
    )
    assert losses[-1] < -np.log(0.5)
    assert [(values["held_out_loss"], values["held_out_accuracy"]) for values in events] == history
    assert [values["step"] for values in events] == list(range(1, len(history) + 1))


@pytest.mark.parametrize("n_steps", [None, 3])
def test_in_the_end_all_answers_are_learned_from(n_steps: int | None) -> None:
    """Those held out for early stopping too, which here are the only ones to their questions."""
    n = 2_000
    alone = TRAIN.student[:n], np.arange(n) + 10_000, TRAIN.is_correct[:n]
    own = TRAIN.student, TRAIN.question, TRAIN.is_correct
    columns = [np.concatenate(pair) for pair in zip(own, alone, strict=True)]
    model = item_response.fit(*columns, n_dimensions=1, n_steps=n_steps)
    assert (model.history == []) == (n_steps is not None)
    if n_steps:
        one_more = item_response.fit(*columns, n_dimensions=1, n_steps=n_steps + 1)
        assert (one_more.items.mean != model.items.mean).any()
    # The last one is a question without answers.
    *known, unknown = model.items.covariance[:, 1, 1]
    assert len(known) == N_QUESTIONS + n
    assert max(known) < unknown


@KINDS
def test_wrong_settings_and_no_answers_are_reported(predicts: str) -> None:
    for settings, message in (
        ({"n_dimensions": 0}, "n_dimensions is 0, expected at least 1"),
        ({"guessing": -0.1}, "guessing is -0.1, expected 0 to 0.9"),
        ({"guessing": 1.0}, "guessing is 1.0, expected 0 to 0.9"),
    ):
        with pytest.raises(InputError, match=message):
            fit(predicts, **settings)
    with pytest.raises(InputError, match="no answers"):
        fit(predicts, TRAIN.take(np.zeros(len(TRAIN), bool)))


def test_control_c_keeps_the_model_so_far(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: str, *, step: int, **__: object) -> None:
        if step == 2:
            raise KeyboardInterrupt

    model = fit("is_correct", log_event=interrupt)
    assert len(model.history) == 2
    assert capsys.readouterr().err == "interrupted: going on with the model after step 2\n"
    assert accuracy(predict(model)) > majority_accuracy("is_correct")
    # In the first step there is nothing to keep.
    monkeypatch.setattr(fitting, "run_step", lambda *_: interrupt("step", step=2))
    with pytest.raises(KeyboardInterrupt):
        fit("is_correct")
