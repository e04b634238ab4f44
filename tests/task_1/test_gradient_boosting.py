"""Gradient boosting on features, tasks 1 and 2: features that are used, and what they predict."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from common import metrics

import numpy as np
import pandas as pd
import planted_answers as planted
import pytest
from ability import load_module
from conftest import fails, run
from planted_answers import COLUMN, TASKS, accuracy, plant_quizzes, split
from run_scripts import ROOT
from sample_blocks import needs_blocks
from sklearn.ensemble import HistGradientBoostingClassifier

SCRIPT = "task_{}/sample_model_gradient_boosting.py"
pytestmark = needs_blocks(SCRIPT.format(1), SCRIPT.format(2))
# The names of the groups of features that are made from answer metadata.
GROUPS_OF_ANSWER_METADATA = "quiz, order, classes, time, confidence"
TRAIN, TEST = split(plant_quizzes(6, 0.7), 7_000)


def predict(folder: Path, task: int, *flags: object, **files: pd.DataFrame) -> Any:
    """Run the script; return its predictions and the groups of features that it says it uses.

    `files` may hold `train`, the training answers, and `pairs`, the pairs of student and question
    to predict. The default is TRAIN and TEST.
    """
    files = {"train": TRAIN, "pairs": TEST, **files}
    script = SCRIPT.format(task)
    done = run([*planted.command(script, folder, **files), *flags])
    assert (done.returncode, done.stderr) == (0, "")
    used = done.stdout.splitlines()[0].removeprefix("features: ")
    return planted.read_prediction(script, folder, files["pairs"]), used


def write_student_metadata(folder: Path) -> None:
    """Write student metadata with two useless columns, which must not break a fit.

    Gender is the same for all students. PremiumPupil is known for one student only.
    """
    students = pd.DataFrame({"UserId": range(300), "Gender": 1, "PremiumPupil": np.nan})
    students.loc[3, "PremiumPupil"] = 1.0
    students.to_csv(folder / "student_metadata_task_1_2.csv", index=False)


@TASKS
def test_context_helps_in_task_1_and_habits_help_in_task_2(tmp_path: Path, task: int) -> None:
    """Each group of features raises the accuracy of the task that it can help.

    "context" says how the student did on the most similar questions, those of the same quiz.
    "habits" says which options the student prefers. In the planted answers, a student is better in
    some quizzes than in others, and has a favourite among the wrong options of each quiz.
    """
    write_student_metadata(tmp_path)

    def accuracy_with(*groups: str) -> float:
        """Return the accuracy of the predictions from these groups of features."""
        flags = ["--metadata_dir", tmp_path, "--features", *groups]
        prediction, used = predict(tmp_path, task, *flags)
        assert used == ", ".join(groups)
        return accuracy(task, prediction, TEST)

    with_students = accuracy_with("rates", "students")
    with_context = accuracy_with("rates", "context")
    with_habits = accuracy_with("rates", "context", "habits")

    # The accuracy of predicting the most frequent value for all pairs.
    of_one_value = TEST[COLUMN[task]].value_counts(normalize=True).max()
    # Two models differ in at most a third of the 5,390 predictions. So the difference of their
    # accuracies has a standard error of at most √(1 / 3 / 5,390) = 0.008. With these answers, the
    # gains exceed the limits in the assertions below by 2.5 to 20 standard errors.
    assert with_students > of_one_value + 0.03
    if task == 1:
        assert with_students > planted.majority_accuracy(task, TRAIN, TEST) + 0.02
        assert with_context > with_students + 0.05
        # The group "habits" does not help to predict whether an answer is right. So it should
        # change the accuracy only by chance: a loss of two standard errors, 0.015, is allowed.
        assert with_habits > with_context - 0.015
    else:
        # The option of a wrong answer can be predicted only from the group "habits".
        assert with_habits > with_context + 0.03


# The fixtures `train` and `pairs` keep only this many questions, from 0 on, so that a question has
# about 30 training answers.
N_QUESTIONS = 30


@pytest.fixture
def train(split_kit: Path) -> pd.DataFrame:
    """Return answers in which every wrong answer is the option after the correct one.

    Two options of every question are therefore never chosen. With fewer than 1,000 answers, an item
    response model takes its default settings. To choose settings would take most of the time.
    """
    answers = pd.read_csv(split_kit / "data/test_input/train_task_1_2.csv")
    answers = answers[answers.QuestionId < N_QUESTIONS][:900]
    is_wrong = answers.IsCorrect == 0
    answers.loc[is_wrong, "AnswerValue"] = answers.CorrectAnswer[is_wrong] % 4 + 1
    return answers


@pytest.fixture
def pairs(split_kit: Path) -> pd.DataFrame:
    """Return 50 pairs of student and question to predict.

    The student of the first pair and the question of the second pair are unknown.
    """
    table = pd.read_csv(split_kit / "data/test_input/test_submission_task_1_2.csv")
    table = table[table.QuestionId < N_QUESTIONS][:50].reset_index(drop=True)
    table.loc[0, "UserId"] = planted.UNKNOWN_STUDENT
    table.loc[1, "QuestionId"] = planted.UNKNOWN_QUESTION
    return table


@pytest.fixture
def few_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut the training answers into three parts instead of ten, to save time.

    The features of each part are computed while this part is held out.
    """
    monkeypatch.setattr("common.answer_features.parts._N_PARTS", 3)


@TASKS
@pytest.mark.usefixtures("few_parts")
def test_all_groups_of_features_are_used_if_all_metadata_are_there(
    split_kit: Path, tmp_path: Path, train: pd.DataFrame, pairs: pd.DataFrame, task: int
) -> None:
    """The script prints which groups of features it uses: here all of them.

    The test also checks the probabilities that the script writes. Options that nobody chose get a
    small one, not 0.
    """
    flags = ["--metadata_dir", split_kit / "data/metadata"]
    flags += ["--probabilities", tmp_path / "p.parquet"]
    _, groups = predict(tmp_path, task, *flags, train=train, pairs=pairs)
    # Task 2 has two groups that describe the options of a question.
    first_groups = "model, rates" if task == 1 else "model, options, rates, distractors"
    other_groups = f"subjects, context, habits, students, {GROUPS_OF_ANSWER_METADATA}"
    assert groups == f"{first_groups}, {other_groups}"

    p = read_probabilities(tmp_path)
    assert 0 < p.min() <= p.max() < 1
    if task == 2:
        # In the answers of the fixture `train`, nobody chooses two of the four options of a
        # question. So in each row, two probabilities must be small.
        second_smallest = np.sort(p, axis=1)[:, 1]
        assert (second_smallest < 0.01).all()


@TASKS
def test_groups_that_are_asked_for_need_only_their_own_metadata(
    split_kit: Path, tmp_path: Path, train: pd.DataFrame, pairs: pd.DataFrame, task: int
) -> None:
    for name in ("question_metadata_task_1_2.csv", "student_metadata_task_1_2.csv"):
        shutil.copy(split_kit / "data/metadata" / name, tmp_path)
    flags = ["--metadata_dir", tmp_path, "--features", "rates", "students", "subjects"]
    _, groups = predict(tmp_path, task, *flags, train=train, pairs=pairs)
    assert groups == "rates, students, subjects"


NO_OPTIONS = ["QuestionId", "UserId", "IsCorrect"]
ONLY_IDS_OF_ANSWERS = ["QuestionId", "UserId", "AnswerId", "IsCorrect"]
WITHOUT_ANSWER_METADATA = "model, rates, subjects, context, students"


@pytest.mark.usefixtures("few_parts")
@pytest.mark.parametrize(
    ("columns", "has_metadata", "expected"),
    [
        (NO_OPTIONS, False, "model, rates, context"),
        # The groups that come from answer metadata need the column AnswerId.
        (NO_OPTIONS, True, WITHOUT_ANSWER_METADATA),
        (ONLY_IDS_OF_ANSWERS, True, f"{WITHOUT_ANSWER_METADATA}, {GROUPS_OF_ANSWER_METADATA}"),
    ],
)
def test_groups_that_need_missing_columns_are_left_out(
    split_kit: Path,
    tmp_path: Path,
    train: pd.DataFrame,
    pairs: pd.DataFrame,
    columns: list[str],
    has_metadata: bool,
    expected: str,
) -> None:
    """The script uses only those groups of features that can be computed from its files.

    `columns` are the columns of the training answers. A group may also need metadata. `expected`
    holds the names of the groups, as the script prints them.
    """
    flags = ["--metadata_dir", split_kit / "data/metadata"] if has_metadata else []
    _, groups = predict(tmp_path, 1, *flags, train=train[columns], pairs=pairs)
    assert groups == expected


def test_a_group_that_is_asked_for_and_needs_missing_columns_is_an_error(
    tmp_path: Path, train: pd.DataFrame, pairs: pd.DataFrame
) -> None:
    command = planted.command(SCRIPT.format(1), tmp_path, train[ONLY_IDS_OF_ANSWERS], pairs)
    error = fails([*command, "--features", "habits"])
    assert "'habits' need AnswerValue and CorrectAnswer of the training ans" in error


@dataclass(frozen=True)
class Calls:
    """The predictions that trees make in a run of the script: the calls of `predict_proba`.

    Each list has an element for each call, in the order of the calls.
    """

    # The predicted probabilities of class 1.
    probabilities: list[np.ndarray] = field(default_factory=list)
    # Whether no probability falls if the first feature rises by 1. The first feature is the
    # prediction of the item response model, if this model is used.
    never_falls: list[bool] = field(default_factory=list)
    # Whether at least one probability rises if the first feature rises by 1.
    rises: list[bool] = field(default_factory=list)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Return an empty record of the predictions of trees, which fills up when the script runs.

    For this, scikit-learn's class of trees is replaced by a class that records each call of
    `predict_proba`. To see how the first feature acts on a prediction, it predicts once more with
    this feature raised by 1, and compares the probabilities.
    """
    recorded = Calls()

    class RecordingTrees(HistGradientBoostingClassifier):
        """Trees that record the predicted probabilities, and their change if a feature rises."""

        def predict_proba(self, features: np.ndarray) -> np.ndarray:
            """Predict as scikit-learn does, and add this call to `recorded`."""
            prediction: np.ndarray = super().predict_proba(features)
            raised_features = features.copy()
            raised_features[:, 0] += 1
            # The second column holds the probability of class 1.
            before = prediction[:, 1]
            after = super().predict_proba(raised_features)[:, 1]
            recorded.probabilities.append(before)
            recorded.never_falls.append(bool(np.all(after >= before)))
            recorded.rises.append(bool(np.any(after > before)))
            return prediction

    monkeypatch.setattr("sklearn.ensemble.HistGradientBoostingClassifier", RecordingTrees)
    return recorded


def read_probabilities(folder: Path) -> np.ndarray:
    """Return the probabilities that a script has written to p.parquet, without ids."""
    return pd.read_parquet(folder / "p.parquet").filter(like="Probability").to_numpy()


@TASKS
def test_the_probability_of_the_trees_is_the_mean_of_two_fits(
    tmp_path: Path, calls: Calls, task: int
) -> None:
    """The trees are fitted twice with different seeds, and the script writes the mean prediction.

    The features chosen here do not include the item response model. So the script does not mix its
    predictions with those of the trees: the trees alone predict.
    """
    flags = ["--features", "rates", "context", "--probabilities", tmp_path / "p.parquet"]
    predict(tmp_path, task, *flags)

    first_fit, second_fit = calls.probabilities[:2]
    # Because of the different seeds, the probabilities differ, but only a little.
    assert 0.001 < np.abs(first_fit - second_fit).mean() < 0.1
    mean_of_fits = (first_fit + second_fit) / 2
    # The two fits predict class 1. In task 1, this is a right answer. In task 2, it is a wrong
    # answer, whose option the script predicts afterwards.
    p_right = mean_of_fits if task == 1 else 1 - mean_of_fits
    # The file of task 1 has one column, the probability of a right answer. The file of task 2 has a
    # column for each of four options, and the right option differs from row to row. So in each row
    # `p_right` must be the probability in one of the columns.
    written = read_probabilities(tmp_path)
    is_p_right = np.isclose(written, p_right[:, np.newaxis], atol=1e-6)
    assert is_p_right.any(axis=1).all()


def test_the_trees_of_task_1_never_fall_if_the_item_response_model_rises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: Calls
) -> None:
    # Let the item response model take its default settings, as it does for more answers than this
    # limit. To choose settings would take long.
    monkeypatch.setattr("common.item_response.choice._MAX_ANSWERS", 0)
    predict(tmp_path, 1, "--features", "model", "rates")
    # There are three calls of `predict_proba`. Two fits of trees predict the pairs to predict.
    # Another fit predicts answers that were held out from it, to choose the weight of the trees.
    assert calls.never_falls == [True, True, True]
    assert calls.rises == [True, True, True]


def plant_one_ability() -> pd.DataFrame:
    """Return answers of 300 students to 40 questions, which depend on one ability alone.

    Every student answers every question.
    """
    n_students, n_questions = 300, 40
    rng = np.random.default_rng(0)
    student, question = planted.pair_all(n_students, n_questions)
    ability = rng.normal(0, 1.3, n_students)[student]
    easiness = rng.normal(0, 1, n_questions)[question]
    # Students guess right with probability 0.2.
    p_right = 0.2 + 0.8 * planted.sigmoid(ability + easiness)
    is_correct = (rng.random(len(p_right)) < p_right).astype(int)
    columns = {"UserId": student, "QuestionId": question, "IsCorrect": is_correct}
    return pd.DataFrame(columns).sample(frac=1, random_state=0, ignore_index=True)


def test_the_sample_of_task_1_is_not_worse_than_item_response_where_trees_can_add_nothing(
    tmp_path: Path, calls: Calls
) -> None:
    """The sample gradient_boosting must not predict worse than the sample item_response.

    The prediction of the sample gradient_boosting is a weighted mean: of the predictions of trees
    and of an item response model. Here the simulated answers depend on one ability alone, which the
    item response model describes exactly. So the trees alone predict worse, although the prediction
    of the item response model is one of their features. The sample must give them little weight.
    """
    train, test = split(plant_one_ability(), 8_000)
    is_correct = test["IsCorrect"].to_numpy()
    flags = ["--probabilities", tmp_path / "p.parquet"]

    def run_sample(name: str) -> np.ndarray:
        """Run a sample model of task 1, and return its probabilities of right answers."""
        script = f"task_1/sample_model_{name}.py"
        planted.predict(script, tmp_path, *flags, train=train, pairs=test)
        return read_probabilities(tmp_path)[:, 0]

    def log_loss(p_right: np.ndarray) -> np.ndarray:
        """Return the log loss of each test answer."""
        p_of_outcome = np.where(is_correct, p_right, 1 - p_right)
        return np.asarray(-np.log(p_of_outcome))

    loss_of_item_response = log_loss(run_sample("item_response"))
    loss_of_boosting = log_loss(run_sample("gradient_boosting"))
    # `calls` has recorded all predictions of trees. The first two predictions come from the two
    # fits that predict `test`. The prediction of the trees is the mean of these two predictions.
    loss_of_trees = log_loss((calls.probabilities[0] + calls.probabilities[1]) / 2)

    # Answers of one student are correlated, so standard errors are clustered by student.
    student_of_test = test["UserId"].to_numpy()
    # Without the item response model, the trees have a higher log loss than the sample
    # item_response, by more than two standard errors.
    more_loss = loss_of_trees - loss_of_item_response
    assert more_loss.mean() > 2 * metrics.clustered_standard_error(more_loss, student_of_test)
    # But the sample gradient_boosting must not have a higher log loss than the sample
    # item_response. Two standard errors are allowed for chance.
    more_loss = loss_of_boosting - loss_of_item_response
    assert more_loss.mean() < 2 * metrics.clustered_standard_error(more_loss, student_of_test)


# ---- The weight of the trees -------------------------------------------------------------------


@pytest.fixture(params=[1, 2])
def sample(request: pytest.FixtureRequest) -> ModuleType:
    """Return the script sample_model_gradient_boosting.py of task 1 or 2 as a module."""
    path = ROOT / SCRIPT.format(request.param)
    module: ModuleType = load_module(path, f"boosting_of_task_{request.param}")
    return module


def draw_outcomes(true_weight: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Draw outcomes whose true logit is a weighted mean of two models' logits.

    The first model is an item response model with the logits `start`, the second model is trees.
    The true logit is (1 - true_weight) · start + true_weight · logit of the trees. Returns `start`,
    the probabilities that the trees predict, the outcomes, and the standard error of a weight that
    is estimated from these outcomes.
    """
    rng = np.random.default_rng(0)
    start = rng.normal(0, 1, 20_000)
    difference = rng.normal(0, 1, 20_000)
    trees_logit = start + difference
    # This equals (1 - true_weight) · start + true_weight · trees_logit.
    true_logit = start + true_weight * difference
    true_p = planted.sigmoid(true_logit)
    outcome = (rng.random(len(true_p)) < true_p).astype(np.int8)
    # An outcome has the Fisher information p (1 − p) about its logit. The derivative of the logit
    # by the weight is `difference`, so the information about the weight is
    # Σ p (1 − p) · difference². The standard error is 1 / √information.
    information = np.sum(true_p * (1 - true_p) * difference**2)
    standard_error = float(1 / np.sqrt(information))
    return start, planted.sigmoid(trees_logit), outcome, standard_error


def test_the_chosen_weight_lies_two_standard_errors_below_the_best_weight(
    sample: ModuleType,
) -> None:
    true_weight = 0.3
    start, p_trees, outcome, standard_error = draw_outcomes(true_weight)
    weight = sample.choose_weight(start, p_trees, outcome)
    # The best weight for the drawn outcomes is not known here. It is the true weight plus a random
    # error, whose standard deviation is the standard error, 0.017. `choose_weight` tries only some
    # weights, 0.02 apart. So the tolerance is three standard errors plus 0.02.
    expected = true_weight - 2 * standard_error
    assert weight == pytest.approx(expected, abs=3 * standard_error + 0.02)
    assert weight < true_weight


@pytest.mark.parametrize(("true_weight", "expected"), [(0.0, 0.0), (-0.5, 0.0), (0.7, 1.0)])
def test_the_weight_is_0_without_gain_and_1_if_the_trees_are_better_than_the_start(
    sample: ModuleType, true_weight: float, expected: float
) -> None:
    # If the trees alone predict clearly better than the start, the chosen weight is 1. Otherwise it
    # lies two standard errors below the best weight, or is 0. So if the true weight is 0.0, about
    # one of fifty draws of outcomes gives a weight above 0. The draw here gives 0.
    start, p_trees, outcome, _ = draw_outcomes(true_weight)
    assert sample.choose_weight(start, p_trees, outcome) == expected


def test_the_ends_of_a_mix_are_the_start_and_the_trees(sample: ModuleType) -> None:
    start = np.array([-2.0, 0.0, 3.0])
    p_trees = np.array([0.1, 0.7, 0.5])
    assert sample.mix(start, p_trees, 0.0) == pytest.approx(planted.sigmoid(start))
    assert sample.mix(start, p_trees, 1.0) == pytest.approx(p_trees)
    # With the weight 0.5, the logit of the mix is the mean of the two logits. In the first row,
    # these are −2 (start) and log(0.1 / 0.9) = −log(9) (trees, which predict 0.1).
    expected = planted.sigmoid((-2 - np.log(9)) / 2)
    assert sample.mix(start, p_trees, 0.5)[0] == pytest.approx(expected)


def test_the_weight_is_chosen_by_rows_from_which_the_trees_have_not_learned(
    sample: ModuleType,
) -> None:
    """Trees that have only memorised their training rows get the weight 0.

    Features and outcomes are random. So trees learn the outcomes of their training rows, and
    predict other rows no better than a guess. If the training rows decided the weight, it would be
    above 0.
    """
    n_rows = 4_000
    rng = np.random.default_rng(0)
    features = rng.random((n_rows, 30), dtype=np.float32)
    outcome = rng.integers(0, 2, n_rows)
    # `start` holds the logits of the other model, with which the trees are mixed. It predicts 1/2
    # for all rows, so its logits are 0.
    start = np.zeros(n_rows)
    more_settings: dict[str, object] = {}
    if "max_iter" not in sample.SETTINGS:
        # The sample of task 2 has no number of trees in its settings: each fit sets the number.
        more_settings["max_iter"] = 50
    weight = sample.weigh_trees(start, features, outcome, seed=0, **more_settings)
    assert weight == 0
