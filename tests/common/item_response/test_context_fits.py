"""What a fit finds in contexts: planted effects, of students and of classes; names, extremes."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from calibration import bin_means, loss, over_gaussian
from numpy.testing import assert_allclose, assert_array_equal

from common import item_response
from common.errors import InputError
from common.item_response import ItemResponseModel as Model
from common.item_response import context

RNG = np.random.default_rng
KINDS = pytest.mark.parametrize("predicts", ["is_correct", "option"])
N_CLASSES, CLASS_SIZE, N_QUIZZES, QUIZ_SIZE = 20, 30, 30, 10
OWN_VARIANCE = 0.3
UNKNOWN = 1_000_000


class Planted(NamedTuple):
    """Answers of classes that each take half of the quizzes, in whole."""

    student: np.ndarray
    question: np.ndarray
    quiz: np.ndarray
    of_class: np.ndarray  # The quiz of the class.
    p_right: np.ndarray
    known: np.ndarray  # The logit, but for ability and effects of the student.
    ability: np.ndarray
    is_right: np.ndarray
    is_train: np.ndarray
    is_new: np.ndarray  # The student has no training answers.
    knows_few: np.ndarray  # One in ten of the student's answers in the quiz is a training answer.

    def take(self, rows: np.ndarray) -> "Planted":
        return Planted(*(column[rows] for column in self))

    def train(self) -> "Planted":
        return self.take(self.is_train)

    def test(self) -> "Planted":
        return self.take(~self.is_train & ~self.is_new)

    def groups(self) -> np.ndarray:
        """Return nested contexts, three quizzes in a group."""
        return np.stack([self.quiz // 3, self.quiz], axis=1)


def plant(
    of_quiz: float, of_group: float = 0, of_class: float = 0, few: float = 0.5
) -> tuple[Planted, np.ndarray]:
    """Return answers, and the effect of each quiz of a class; given are the effects' variances."""
    rng = RNG(5)
    n = N_CLASSES * CLASS_SIZE
    ability = rng.standard_normal(n)
    easiness = rng.normal(0.2, 0.8, N_QUIZZES * QUIZ_SIZE)
    own = rng.normal(0, np.sqrt(of_quiz), (n, N_QUIZZES))
    own += np.repeat(rng.normal(0, np.sqrt(of_group), (n, N_QUIZZES // 3)), 3, axis=1)
    shared = rng.normal(0, np.sqrt(of_class), N_CLASSES * N_QUIZZES)
    taken = np.repeat(rng.random((N_CLASSES, N_QUIZZES)) < 0.5, QUIZ_SIZE, axis=1)
    student, question = np.nonzero(taken[np.arange(n) // CLASS_SIZE])
    quiz = question // QUIZ_SIZE
    label = student // CLASS_SIZE * N_QUIZZES + quiz
    known = easiness[question] + shared[label]
    p = 1 / (1 + np.exp(-known - ability[student] - own[student, quiz]))
    knows_few = (rng.random((n, N_QUIZZES)) < few)[student, quiz]
    new = student % CLASS_SIZE >= 25
    answers = Planted(
        # Ids in no order, and with gaps.
        student * 3,
        rng.permutation(N_QUIZZES * QUIZ_SIZE)[question] * 2,
        quiz,
        label,
        p,
        known,
        ability[student],
        (rng.random(len(p)) < p).astype(np.int8),
        (rng.random(len(p)) < np.where(knows_few, 0.1, 0.8)) & ~new,
        new,
        knows_few,
    )
    return answers, shared


def fit(answers: Planted, contexts: np.ndarray | None) -> Model:
    if contexts is not None and contexts.ndim == 1:
        contexts = contexts[:, None]
    columns = answers.student, answers.question, answers.is_right
    return item_response.fit(*columns, n_dimensions=2, context=contexts)


def predict(fitted: Model, asked: Planted, contexts: np.ndarray | None) -> np.ndarray:
    if contexts is not None and contexts.ndim == 1:
        contexts = contexts[:, None]
    return item_response.predict(fitted, asked.student, asked.question, contexts)


def accuracy(p: np.ndarray, answers: Planted) -> float:
    """Return the accuracy expected of answers with their true probabilities."""
    return float(np.where(p > 0.5, answers.p_right, 1 - answers.p_right).mean())


# ---- Effects of each student --------------------------------------------------------------------

QUIZ_EFFECTS, _ = plant(1.0, few=0.1)
TRAIN, TEST = QUIZ_EFFECTS.train(), QUIZ_EFFECTS.test()


@pytest.fixture(scope="module")
def fitted() -> Model:
    return fit(TRAIN, TRAIN.quiz)


def test_planted_effects_are_recovered(fitted: Model) -> None:
    assert fitted.effects is not None
    assert fitted.effects.variance[0, 0] == pytest.approx(1, abs=0.15)
    without = predict(fit(TRAIN, None), TEST, None)
    p = predict(fitted, TEST, TEST.quiz)
    assert loss(p, TEST.p_right) < loss(without, TEST.p_right) - 0.02
    assert accuracy(p, TEST) > accuracy(without, TEST) + 0.02
    assert_allclose(*bin_means(p, TEST.p_right), atol=0.025)


@pytest.mark.parametrize("contexts", ["at random", "quizzes", "classes"])
def test_contexts_without_effect_cost_nothing(contexts: str) -> None:
    answers, _ = plant(0.0)
    labels = {
        "at random": RNG(0).integers(0, 10, len(answers.quiz)),
        "quizzes": answers.groups(),
        "classes": answers.of_class,
    }[contexts]
    train = answers.train()
    one, other = fit(train, labels[answers.is_train]), fit(train, None)
    assert one.effects is not None
    assert one.effects.variance.max() < 0.06
    assert one.effects.shared.prior.max() < 0.06
    for rows in (~answers.is_train & ~answers.is_new, answers.is_new):
        test = answers.take(rows)
        p, without = predict(one, test, labels[rows]), predict(other, test, None)
        assert loss(p, test.p_right) < loss(without, test.p_right) + 2e-3
        assert accuracy(p, test) > accuracy(without, test) - 2e-3


@pytest.mark.parametrize("level", [0, 1])
def test_the_level_that_has_the_effect_gets_the_variance(level: int) -> None:
    answers, _ = plant(float(level == 1), float(level == 0))
    train = answers.train()
    found = fit(train, train.groups())
    assert found.effects is not None
    assert found.effects.variance[level, 0] == pytest.approx(1, abs=0.2)
    assert found.effects.variance[1 - level, 0] < 0.2


def test_unknown_contexts_are_calibrated(fitted: Model) -> None:
    p = predict(fitted, TEST, np.full_like(TEST.quiz, UNKNOWN))
    truth = over_gaussian(TEST.ability + TEST.known, 1)
    assert_allclose(*bin_means(p, truth, n_bins=8), atol=0.02)


def test_new_students_are_predicted_without_contexts(fitted: Model) -> None:
    rows = TRAIN.take(np.arange(50))
    with pytest.raises(InputError, match="had contexts, expected those of the pairs as well"):
        predict(fitted, rows, None)
    new = item_response.student_posterior(fitted, rows.student, rows.question, rows.is_right)
    assert new.effects is None
    assert np.isfinite(predict(new, rows, None)).all()


# ---- Effects that a class shares ----------------------------------------------------------------

CLASSES, SHARED = plant(OWN_VARIANCE, of_class=1.0)


@pytest.fixture(scope="module")
def by_class() -> Model:
    train = CLASSES.train()
    return fit(train, train.of_class)


@pytest.fixture(scope="module")
def alone() -> Model:
    """Each student in a context of their own."""
    train = CLASSES.train()
    return fit(train, train.quiz)


def test_what_a_class_shares_is_recovered(by_class: Model) -> None:
    assert by_class.effects is not None
    labels, shared = by_class.effects.labels[-1], by_class.effects.shared
    assert_array_equal(labels, np.unique(CLASSES.train().of_class))
    planted, found = SHARED[labels], shared.mean[:-1]
    assert shared.prior[0] == pytest.approx(planted.var(), abs=0.25)
    assert by_class.effects.variance[0, 0] == pytest.approx(OWN_VARIANCE, abs=0.1)
    assert np.corrcoef(found, planted)[0, 1] > 0.88
    assert np.mean((found - planted) ** 2) < 0.2 * planted.var()
    # Neither shrunk too much nor too little.
    slope = np.cov(found, planted)[0, 1] / found.var()
    assert slope == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(("knows_few", "gain"), [(True, 0.03), (False, 0.005)])
def test_students_gain_most_where_they_have_few_answers(
    by_class: Model, alone: Model, knows_few: bool, gain: float
) -> None:
    test = CLASSES.test()
    test = test.take(test.knows_few == knows_few)
    p, other = predict(by_class, test, test.of_class), predict(alone, test, test.quiz)
    assert loss(p, test.p_right) < loss(other, test.p_right) - gain
    assert_allclose(*bin_means(p, test.p_right, n_bins=8), atol=0.04)


def test_new_students_gain_from_their_class(by_class: Model, alone: Model) -> None:
    new = CLASSES.take(CLASSES.is_new)
    assert not np.isin(new.student, by_class.student_ids).any()
    p = predict(by_class, new, new.of_class)
    unknown = np.full_like(new.of_class, UNKNOWN)
    for other in (predict(alone, new, new.quiz), predict(by_class, new, unknown)):
        assert loss(p, new.p_right) < loss(other, new.p_right) - 0.03
    # No other information is there, so that it is as good as it can be, but for estimation.
    of_class = over_gaussian(new.known, 1 + OWN_VARIANCE)
    assert loss(p, new.p_right) < loss(of_class, new.p_right) + 0.012
    assert_allclose(*bin_means(p, of_class), atol=0.025)


def test_a_class_without_answers_in_the_quiz_is_only_known_to_vary(by_class: Model) -> None:
    """Predictions are as uncertain as that of a class of which the effect is not known."""
    test = CLASSES.test()
    assert by_class.effects is not None
    # A class that has not taken the quiz, and one that nobody has heard of.
    no_answers = np.setdiff1d(np.arange(N_CLASSES * N_QUIZZES), by_class.effects.labels[-1])
    p = predict(by_class, test, RNG(0).choice(no_answers, len(test.student)))
    assert_array_equal(p, predict(by_class, test, np.full_like(test.quiz, UNKNOWN)))
    known = predict(by_class, test, test.of_class)
    assert np.abs(p - 0.5).mean() < np.abs(known - 0.5).mean() - 0.02


# ---- Right or wrong, or options: names, degenerate answers --------------------------------------


def fit_either(predicts: str, answers: Planted, contexts: np.ndarray) -> Any:
    """Fit right or wrong, or options: the first is right, the student's favourite the others."""
    options: dict[str, Any] = {"n_dimensions": 2, "context": contexts}
    if predicts == "is_correct":
        return item_response.fit(answers.student, answers.question, answers.is_right, **options)
    option = np.where(answers.is_right == 1, 1, 2 + answers.student // 3 % 3)
    columns = answers.student, answers.question, option, np.ones_like(option)
    return item_response.fit_options(*columns, **options)


def predict_either(fitted: Any, *asked: np.ndarray) -> np.ndarray:
    is_right = isinstance(fitted, Model)
    function: Any = item_response.predict if is_right else item_response.predict_options
    result: np.ndarray = function(fitted, *asked)
    return result


def test_effects_of_pairs_are_those_of_the_last_node_on_the_way() -> None:
    """For every stage of the options; further down, effects are only known to vary."""
    rng = RNG(3)
    rows = TRAIN.take(rng.permutation(len(TRAIN.student))[:150])
    rows = rows._replace(student=rng.integers(0, 8, 150) * 3)
    labels = rng.integers(0, 3, (150, 2)) * 5 + 2
    stages = fit_either("option", rows, labels).stages
    learned, n_kinds = stages.effects, 3
    ways: list[tuple[int, ...]] = [()] * 9
    for student, place in enumerate(learned.root):
        ways[place] = (student,)
    nodes: dict[tuple[int, ...], tuple[int, int]] = {}
    for depth, level in enumerate(learned.levels):
        place, kind = np.divmod(level.label, n_kinds)
        ids = learned.labels[depth][place]
        pairs = zip(level.parent, ids, kind, strict=True)
        ways = [(*ways[parent][: depth + 1], label, kind) for parent, label, kind in pairs]
        nodes |= {way: (depth, node) for node, way in enumerate(ways)}
    known = np.searchsorted(stages.student_ids, rows.student)
    assert {way[:-1] for way in nodes if len(way) == 4} == {*zip(known, *labels.T, strict=True)}

    asked = np.stack(np.meshgrid(np.arange(9), *[[2, 7, 12, 13]] * 2), axis=-1).reshape(-1, 3)
    for kind in range(n_kinds):
        found = context.find_effects(learned, asked[:, 0], asked[:, 1:], kind)
        for row, way in enumerate(asked.tolist()):
            mean, variance, with_ability = 0.0, 0.0, np.zeros(2)
            for depth in range(2):
                _, node = nodes.get((*way[: depth + 2], kind), (depth, None))
                if node is None:
                    variance += learned.variance[depth, kind]
                else:
                    mean, variance, with_ability = (x[node] for x in learned.effects[depth])
            # Last what is known of a label without answers.
            shared = [2, 7, 12, 13].index(way[-1]) * n_kinds + kind
            mean += float(learned.shared.mean[shared])
            variance += float(learned.shared.variance[shared])
            assert found.mean[row] == pytest.approx(mean, abs=1e-6)
            assert found.variance[row] == pytest.approx(variance)
            assert_allclose(found.with_ability[row], with_ability)


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
@pytest.mark.parametrize("n_levels", [0, 3])
@pytest.mark.parametrize("what", ["one", "one student", "one question", "alone", "right", "wrong"])
def test_degenerate_answers(predicts: str, n_levels: int, what: str) -> None:
    n = 1 if what == "one" else 400
    rows = TRAIN.take(np.linspace(0, len(TRAIN.student) - 1, n).astype(int))
    labels = np.stack([rows.quiz // 4, rows.quiz // 2, rows.quiz], axis=1)[:, :n_levels]
    if what == "one student":
        rows = rows._replace(student=np.full(n, 2_000_000_000))
    elif what == "one question":
        rows = rows._replace(student=np.arange(n), question=np.full(n, 7))
        labels = np.zeros_like(labels)
    elif what == "alone":
        labels = np.repeat(np.arange(n), n_levels).reshape(n, n_levels) + 2_000_000_000
    elif what in ("right", "wrong"):
        rows = rows._replace(is_right=np.full(n, int(what == "right"), np.int8))
    fitted = fit_either(predicts, rows, labels)
    # The last ones are of a student or a question without answers, in a context without any.
    student = np.append(rows.student, [123_456, rows.student[0], 123_456])
    question = np.append(rows.question, [rows.question[0], 9_999_998, 9_999_998])
    asked = np.concatenate([labels, np.full((3, n_levels), UNKNOWN)])
    p = predict_either(fitted, student, question, asked)
    assert np.isfinite(p).all()
    right = p[:n] if predicts == "is_correct" else p[:n, 0]
    tolerance = 0.5 / np.sqrt(n) + 0.05
    assert right.mean() == pytest.approx(rows.is_right.mean(), abs=tolerance)
    if predicts == "option":
        assert_allclose(p.sum(axis=1), 1, atol=1e-5)
