"""What a fit finds in contexts: planted effects, none where none are; names, degenerate answers."""

import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest
from calibration import bin_means, loss, over_gaussian
from numpy.testing import assert_allclose, assert_array_equal

from common import item_response
from common.item_response import blocks, context, observations

RNG = np.random.default_rng
KINDS = pytest.mark.parametrize("predicts", ["is_correct", "option"])


class Planted(NamedTuple):
    """Answers of which some are held out, with the probabilities that they were drawn from."""

    student: np.ndarray
    question: np.ndarray
    quiz: np.ndarray
    p_right: np.ndarray
    is_right: np.ndarray
    is_train: np.ndarray
    ability: np.ndarray
    easiness: np.ndarray

    def take(self, rows: np.ndarray) -> "Planted":
        return Planted(*(column[rows] for column in self))

    def groups(self) -> np.ndarray:
        """Return nested contexts, three quizzes in a group."""
        return np.stack([self.quiz // 3, self.quiz], axis=1)


N_QUIZZES, QUIZ_SIZE = 30, 10


def plant(variance_of_quiz: float, variance_of_group: float = 0, n_students: int = 600) -> Planted:
    """Answers of students who each take half of the quizzes, in whole."""
    rng = RNG(5)
    ability = rng.standard_normal(n_students)
    easiness = rng.normal(0.2, 0.8, N_QUIZZES * QUIZ_SIZE)
    effect = rng.normal(0, np.sqrt(variance_of_quiz), (n_students, N_QUIZZES))
    of_group = rng.normal(0, np.sqrt(variance_of_group), (n_students, N_QUIZZES // 3))
    effect += np.repeat(of_group, 3, axis=1)
    taken = np.repeat(rng.random((n_students, N_QUIZZES)) < 0.5, QUIZ_SIZE, axis=1)
    student, question = np.nonzero(taken)
    quiz = question // QUIZ_SIZE
    p = 1 / (1 + np.exp(-ability[student] - easiness[question] - effect[student, quiz]))
    right, train = rng.random(len(p)) < p, rng.random(len(p)) < 0.7
    # Ids in no order, and with gaps; the last students are left for tests of unknown ones.
    place = rng.permutation(N_QUIZZES * QUIZ_SIZE)
    train &= student < n_students - 100
    return Planted(
        student * 3,
        place[question] * 2,
        quiz,
        p,
        right.astype(np.int8),
        train,
        ability[student],
        easiness[question],
    )


def fit(answers: Planted, contexts: np.ndarray | None) -> item_response.ItemResponseModel:
    return item_response.fit(
        answers.student, answers.question, answers.is_right, n_dimensions=2, context=contexts
    )


QUIZ_EFFECTS = plant(1.0)
TRAIN = QUIZ_EFFECTS.take(QUIZ_EFFECTS.is_train)
NOT_NEW = QUIZ_EFFECTS.student < 500 * 3
TEST = QUIZ_EFFECTS.take(~QUIZ_EFFECTS.is_train & NOT_NEW)


@pytest.fixture(scope="module")
def fitted() -> item_response.ItemResponseModel:
    return fit(TRAIN, TRAIN.quiz[:, None])


def test_planted_effects_are_recovered(fitted: item_response.ItemResponseModel) -> None:
    assert fitted.effects is not None
    assert fitted.effects.variance[0, 0] == pytest.approx(1, abs=0.15)
    without = item_response.predict(fit(TRAIN, None), TEST.student, TEST.question)
    p = item_response.predict(fitted, TEST.student, TEST.question, TEST.quiz[:, None])
    assert loss(p, TEST.p_right) < loss(without, TEST.p_right) - 0.02
    right = [np.mean((q > 0.5) == TEST.is_right) for q in (p, without)]
    assert right[0] > right[1] + 0.02
    assert_allclose(*bin_means(p, TEST.p_right), atol=0.02)


@pytest.mark.parametrize("contexts", ["at random", "quizzes"])
def test_contexts_without_effect_cost_nothing(contexts: str) -> None:
    answers = plant(0.0)
    labels = answers.groups()
    if contexts == "at random":
        labels = RNG(0).integers(0, 10, (len(labels), 1))
    held_out = ~answers.is_train & (answers.student < 500 * 3)
    train, test = answers.take(answers.is_train), answers.take(held_out)
    one = fit(train, labels[answers.is_train])
    assert one.effects is not None
    assert one.effects.variance.max() < 0.06
    assert one.effects.shared.prior.max() < 0.06
    p = item_response.predict(one, test.student, test.question, labels[held_out])
    without = item_response.predict(fit(train, None), test.student, test.question)
    assert loss(p, test.p_right) < loss(without, test.p_right) + 1e-3
    # Accuracy expected of answers with these true probabilities.
    right = [np.where(q > 0.5, test.p_right, 1 - test.p_right).mean() for q in (p, without)]
    assert right[0] > right[1] - 1e-3


@pytest.mark.parametrize("level", [0, 1])
def test_the_level_that_has_the_effect_gets_the_variance(level: int) -> None:
    answers = plant(float(level == 1), float(level == 0))
    train = answers.take(answers.is_train)
    found = fit(train, train.groups())
    assert found.effects is not None
    assert found.effects.variance[level, 0] == pytest.approx(1, abs=0.2)
    assert found.effects.variance[1 - level, 0] < 0.2


# ---- What is not known --------------------------------------------------------------------------


def test_unknown_students_are_calibrated(fitted: item_response.ItemResponseModel) -> None:
    new = QUIZ_EFFECTS.take(~NOT_NEW)
    assert not np.isin(new.student, fitted.student_ids).any()
    p = item_response.predict(fitted, new.student, new.question, new.quiz[:, None])
    assert_allclose(*bin_means(p, over_gaussian(new.easiness, 2), n_bins=7), atol=0.02)


def test_unknown_contexts_are_calibrated(fitted: item_response.ItemResponseModel) -> None:
    unknown = np.full((len(TEST.quiz), 1), 1_000_000)
    p = item_response.predict(fitted, TEST.student, TEST.question, unknown)
    truth = over_gaussian(TEST.ability + TEST.easiness, 1)
    assert_allclose(*bin_means(p, truth, n_bins=8), atol=0.02)


def test_effects_of_pairs_are_those_of_the_last_node_on_the_way() -> None:
    rng = RNG(3)
    student, question = rng.integers(0, 8, 60), rng.integers(0, 10, 60)
    labels = rng.integers(0, 3, (60, 3)) * 5 + 2
    fitted = item_response.fit(student, question, question % 2, n_dimensions=2, context=labels)
    learned = fitted.effects
    assert learned is not None
    # The answers as the fit has sorted them tell which node is which.
    nodes: list[dict[tuple[int, ...], int]] = []
    place_of = {
        int(place): int(i) for i, place in zip(fitted.student_ids, learned.root, strict=False)
    }
    above: list[tuple[int, ...]] = [(place_of.get(place, -1),) for place in range(9)]
    for ids, level in zip(learned.labels, learned.levels, strict=True):
        above = [
            (*above[parent], int(ids[label]))
            for parent, label in zip(level.parent, level.label, strict=True)
        ]
        nodes.append({way: node for node, way in enumerate(above)})
        assert len(nodes[-1]) == len(level)
    assert set(nodes[-1]) == {
        (int(s), *map(int, way)) for s, way in zip(student, labels, strict=True)
    }

    asked = np.stack(np.meshgrid(np.arange(9), *[[2, 7, 12, 13]] * 3), axis=-1).reshape(-1, 4)
    place = np.searchsorted(fitted.student_ids, asked[:, 0])
    found = context.find_effects(learned, place, asked[:, 1:], 0)
    for row, way in enumerate(asked.tolist()):
        mean, variance, with_ability = 0.0, 0.0, np.zeros(2)
        for depth in range(3):
            node = nodes[depth].get(tuple(way[: depth + 2]))
            if node is None:
                variance += learned.variance[depth, 0]
            else:
                effects = learned.effects[depth]
                mean, variance = float(effects.mean[node]), float(effects.variance[node])
                with_ability = effects.with_ability[node]
        # Last what is known of a label without answers.
        shared = [2, 7, 12, 13].index(way[-1])
        mean += float(learned.shared.mean[shared])
        variance += float(learned.shared.variance[shared])
        assert found.mean[row] == pytest.approx(mean)
        assert found.variance[row] == pytest.approx(variance)
        assert_allclose(found.with_ability[row], with_ability)


@KINDS
def test_nothing_known_gives_finite_uncertain_predictions(predicts: str) -> None:
    known = TRAIN.take(np.arange(3_000))
    fitted = fit_either(predicts, known, known.groups())
    for student, question, label in [(10**6, 2, 3), (3, 10**6, 3), (3, 2, 99), (10**6, 10**6, 99)]:
        p = predict_either(
            fitted, *(np.full(1, i) for i in (student, question)), np.full((1, 2), label)
        )
        assert np.isfinite(p).all()
        assert 0.02 < p.flat[0] < 0.98
    stages = fitted if predicts == "is_correct" else fitted.stages
    unknown = np.full(1, len(stages.student_ids))
    shared, labels = stages.effects.shared, stages.effects.labels[-1]
    n_kinds = len(shared.prior)
    for kind, label in itertools.product(range(n_kinds), (known.quiz[0], 99)):
        effects = context.find_effects(stages.effects, unknown, np.full((1, 2), label), kind)
        mean, variance = 0.0, shared.prior[kind]
        if label != 99:
            place = np.searchsorted(labels, label) * n_kinds + kind
            mean, variance = shared.mean[place], shared.variance[place]
            assert mean
        assert effects.mean[0] == pytest.approx(mean)
        variance += stages.effects.variance[:, kind].sum()
        assert effects.variance[0] == pytest.approx(variance)
        assert not effects.with_ability.any()


def test_new_students_are_predicted_without_contexts(
    fitted: item_response.ItemResponseModel,
) -> None:
    new = item_response.student_posterior(fitted, *(TRAIN[column][:50] for column in (0, 1, 4)))
    assert new.effects is None
    p = item_response.predict(new, TRAIN.student[:50], TRAIN.question[:50])
    assert np.isfinite(p).all()


# ---- Names, threads, degenerate answers ---------------------------------------------------------


def fit_either(predicts: str, answers: Planted, contexts: np.ndarray, **options: Any) -> Any:
    """Fit right or wrong, or options: the first is right, the student's favourite the others."""
    options = {"n_dimensions": 2, "context": contexts, **options}
    if predicts == "is_correct":
        return item_response.fit(answers.student, answers.question, answers.is_right, **options)
    option = np.where(answers.is_right == 1, 1, 2 + answers.student // 3 % 3)
    columns = answers.student, answers.question, option, np.ones_like(option)
    return item_response.fit_options(*columns, **options)


def predict_either(fitted: Any, student: Any, question: Any, contexts: Any) -> np.ndarray:
    is_right = isinstance(fitted, item_response.ItemResponseModel)
    predict: Any = item_response.predict if is_right else item_response.predict_options
    result: np.ndarray = predict(fitted, student, question, contexts)
    return result


@KINDS
def test_labels_are_only_names(predicts: str) -> None:
    rows = TRAIN.take(np.arange(3_000))
    asked = rows.student[:500], rows.question[:500]
    one = predict_either(fit_either(predicts, rows, rows.groups()), *asked, rows.groups()[:500])
    far = rows.groups() * 1_000_003 + 17
    assert_array_equal(predict_either(fit_either(predicts, rows, far), *asked, far[:500]), one)
    # In another order, and the groups of all quizzes numbered anew; sums are rounded differently.
    other = np.stack([90 - rows.quiz // 3, (rows.quiz * 7 + 3) % N_QUIZZES], axis=1)
    p = predict_either(fit_either(predicts, rows, other), *asked, other[:500])
    assert_allclose(p, one, atol=2e-3)


@KINDS
def test_the_number_of_threads_changes_no_result(
    predicts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observations, "_MIN_CHUNK", 1000)
    rows, found = TRAIN.take(np.arange(6_000)), []
    asked = rows.student, rows.question, rows.groups()
    for n_threads in (1, 3):
        monkeypatch.setattr(blocks, "N_THREADS", n_threads)
        found.append(predict_either(fit_either(predicts, rows, rows.groups()), *asked))
    assert_array_equal(*found)


def test_no_levels_are_no_contexts() -> None:
    rows = TRAIN.take(np.arange(5_000))
    without = fit(rows, None)
    none = fit(rows, np.zeros((5_000, 0), np.int32))
    assert none.effects is None
    asked = rows.student[:100], rows.question[:100]
    assert_array_equal(
        item_response.predict(none, *asked, np.zeros((100, 0), np.int32)),
        item_response.predict(without, *asked),
    )


@KINDS
@pytest.mark.parametrize("n_levels", [0, 3])
@pytest.mark.parametrize("n", [1, 400])
@pytest.mark.parametrize(
    "what", ["as it is", "one student", "one question", "one context", "alone", "right", "wrong"]
)
def test_degenerate_answers(predicts: str, n_levels: int, n: int, what: str) -> None:
    rows = TRAIN.take(np.arange(0, len(TRAIN.student), len(TRAIN.student) // n)[:n])
    labels = np.stack([rows.quiz // 4, rows.quiz // 2, rows.quiz], axis=1)[:, :n_levels]
    if what == "one student":
        rows = rows._replace(student=np.full(n, 2_000_000_000))
    elif what == "one question":
        rows = rows._replace(student=np.arange(n), question=np.full(n, 7))
    elif what == "one context":
        labels = np.zeros_like(labels)
    elif what == "alone":
        labels = np.repeat(np.arange(n), n_levels).reshape(n, n_levels) + 2_000_000_000
    elif what in ("right", "wrong"):
        rows = rows._replace(is_right=np.full(n, int(what == "right"), np.int8))
    fitted = fit_either(predicts, rows, labels)
    student, question = np.append(rows.student, 123_456), np.append(rows.question, 9_999_998)
    asked = np.concatenate([labels, np.full((1, n_levels), 1_000_000)])
    p = predict_either(fitted, student, question, asked)
    assert np.isfinite(p).all()
    right = p[:-1] if predicts == "is_correct" else p[:-1, 0]
    tolerance = 0.5 / np.sqrt(n) + 0.05
    assert right.mean() == pytest.approx(rows.is_right.mean(), abs=tolerance)
