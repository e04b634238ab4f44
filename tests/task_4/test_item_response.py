"""The item response package of task 4: run as a user does, and checked by known answers."""

import importlib.util
import re
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT, run_python
from hypothesis import given, settings
from hypothesis import strategies as st

from common.adaptive.game import LocalEntry, Rules, choose_at_random, make_reference, play, replay
from common.answers import Answers

Fails = Callable[..., str]
PACKAGE = ROOT / "task_4" / "item_response"
NAMES = ("model", "submission_model_task_4", "train_model")
WEIGHTS = "model_task_4_item_response.npz"
OUTPUT = "data/test_output"


@pytest.fixture(scope="module")
def package() -> Iterator[dict[str, ModuleType]]:
    """The package's modules, which find the one beside them; gone afterwards."""
    before = {name: sys.modules.pop(name, None) for name in NAMES}
    modules = {}
    for name in NAMES:
        spec = importlib.util.spec_from_file_location(name, PACKAGE / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        modules[name] = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(modules[name])
    yield modules
    for name, module in before.items():
        del sys.modules[name]
        if module is not None:
            sys.modules[name] = module


@pytest.fixture(scope="module")
def model(package: dict[str, ModuleType]) -> ModuleType:
    return package["model"]


@pytest.fixture(scope="module")
def train(package: dict[str, ModuleType]) -> ModuleType:
    return package["train_model"]


@pytest.fixture(scope="module")
def submission(package: dict[str, ModuleType]) -> ModuleType:
    return package["submission_model_task_4"]


def run_all(kit: Path, *commands: list[object]) -> str:
    printed = ""
    for command in commands:
        done = run_python(command, kit=kit)
        assert done.returncode == 0, done.stderr
        assert not done.stderr
        printed += done.stdout
    return printed


def read_score(folder: Path) -> float:
    return float((folder / "scores_task_4.txt").read_text().removeprefix("score:"))


# ---- Run as a user runs it ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def kit(simulated_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kit with a local split, trained on it and scored: tests only read from it."""
    kit = Path(shutil.copytree(simulated_kit, tmp_path_factory.mktemp("item_response") / "kit"))
    folder = "task_4/item_response"
    printed = run_all(
        kit,
        ["task_4/local_data_split.py"],
        [f"{folder}/train_model.py", "--local"],
        [f"{folder}/local_evaluation.py"],
    )
    assert re.search(r"trained on [\d,]+ answers, \d+ questions", printed)
    score = read_score(kit / OUTPUT)
    assert f"score {score:.4f} (one mask, targets may not be asked, " in printed
    assert "with questions chosen at random" in printed
    return kit


@pytest.fixture
def trained(kit: Path, tmp_path: Path) -> Path:
    """A copy of the trained package, which a test may change."""
    return Path(shutil.copytree(kit / "task_4/item_response", tmp_path / "package"))


def test_beats_most_popular(kit: Path) -> None:
    train, valid = (
        pd.read_csv(kit / f"data/test_input/{name}_task_4.csv") for name in ("train", "valid")
    )
    mostly_right = train.groupby("QuestionId").IsCorrect.mean() > 0.5
    targets = valid[valid.IsTarget == 1]
    prediction = targets.QuestionId.map(mostly_right).fillna(True).astype(int)
    most_popular = (prediction == targets.IsCorrect).mean()
    assert read_score(kit / OUTPUT) > most_popular + 0.02


def test_repeats_exactly(kit: Path, trained: Path, tmp_path: Path) -> None:
    weights = (trained / WEIGHTS).read_bytes()
    (trained / WEIGHTS).unlink()
    evaluate = [trained / "local_evaluation.py", "--skip_curve", "--output_dir", tmp_path]
    run_all(kit, [trained / "train_model.py", "--local"], evaluate)
    assert (trained / WEIGHTS).read_bytes() == weights
    assert read_score(tmp_path) == read_score(kit / OUTPUT)


def test_files_without_options_and_more_files(
    kit: Path, fails: Fails, trained: Path, tmp_path: Path
) -> None:
    """QuestionId, UserId, IsCorrect are enough; a second file must hold other students."""
    answers = pd.read_csv(kit / "data/train_data/train_task_3_4.csv")
    answers = answers[["QuestionId", "UserId", "IsCorrect"]]
    students = answers.UserId.unique()
    first, second = (answers[answers.UserId.isin(part)] for part in np.array_split(students, 2))
    first.to_csv(tmp_path / "first.csv", index=False)
    second.to_csv(tmp_path / "second.csv", index=False)
    command = [trained / "train_model.py", "--input_dir", tmp_path, "--train_data", "first.csv"]
    printed = run_all(kit, [*command, "--more_train_data", "second.csv"])
    assert f"trained on {len(answers):,} answers, {answers.QuestionId.max() + 1} " in printed
    learned = np.load(trained / "model_task_4_students.npy")
    assert set(learned) == set(students)

    both = pd.concat([second, first.iloc[[0]]])
    both.to_csv(tmp_path / "second.csv", index=False)
    message = fails([*command, "--more_train_data", "second.csv"], kit=kit)
    assert "second.csv: " in message
    assert f"UserId {first.UserId.iloc[0]} appears in another training file" in message


def test_package_runs_in_an_empty_folder(kit: Path, trained: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    done = run_python(["task_4/package.py", trained, "--output_dir", output], kit=kit)
    assert done.returncode == 0, done.stderr
    path = output / "submission_task_4.zip"
    with zipfile.ZipFile(path) as archive:
        assert set(archive.namelist()) == {
            "model.py",
            "model_task_4_students.npy",
            "model_task_4_training.json",
            "submission_model_task_4.py",
            WEIGHTS,
        }
    evaluate = ["task_4/numpy/local_evaluation.py", "--submission", path, "--skip_curve"]
    run_all(kit, [*evaluate, "--output_dir", tmp_path])
    assert read_score(tmp_path) == read_score(kit / OUTPUT)


# ---- Simulated students ------------------------------------------------------------------------


def simulate(model: ModuleType, n_students: int, seed: int) -> tuple[Any, Answers]:
    """A true model in two dimensions and answers of students who have answered all questions."""
    rng = np.random.default_rng(seed)
    n_questions = 60
    weights = model.Model(
        intercept=rng.normal(0.3, 0.8, n_questions).astype(np.float32),
        slopes=(rng.exponential(0.9, (n_questions, 1)) * rng.normal(1, 0.5, (n_questions, 2)))
        .astype(np.float32)
        .clip(-2.5, 2.5),
        quiz_covariance=np.zeros((n_questions, n_questions), np.float32),
        guessing=np.array(0.2, np.float32),
        mask_mean=np.zeros(n_questions, np.float32),
        mask_weights=np.zeros((n_questions, 2), np.float32),
        completion=np.zeros((n_questions, n_questions), np.float32),
    )
    logit = rng.normal(size=(n_students, 2)) @ weights.slopes.T + weights.intercept
    right = rng.random(logit.shape) < 0.2 + 0.8 / (1 + np.exp(-logit))
    student, question = np.indices(right.shape, np.int32)
    return weights, Answers(student.ravel(), question.ravel(), right.ravel().astype(np.int8))


def test_choices_beat_chance(model: ModuleType, submission: ModuleType) -> None:
    weights, answers = simulate(model, 300, seed=1)
    targets = {"mask": np.random.default_rng(2).random(len(answers)) < 0.3}
    reference = make_reference("simulated", answers, targets)
    for rules in (Rules(), Rules(targets_queryable=True)):
        entry = LocalEntry(submission.Submission(weights))
        adaptive = play(entry, reference, "mask", rules).accuracy
        chosen = choose_at_random(reference, "mask", rules, 3)
        entry = LocalEntry(submission.Submission(weights))
        random = replay(entry, reference, "mask", chosen, rules)
        assert adaptive > random[-1] + 0.01
        # After each answer more is known.
        assert random[-1] > random[0] + 0.01


@pytest.mark.parametrize("targets_queryable", [False, True])
def test_both_readings_of_unobserved_are_learned_alike(
    model: ModuleType, submission: ModuleType, targets_queryable: bool
) -> None:
    """Without options, where 0 means a wrong answer as well as one not revealed."""
    weights, answers = simulate(model, 40, seed=4)
    rng = np.random.default_rng(5)
    targets = {"mask": rng.random(len(answers)) < 0.3}
    option = rng.integers(1, 5, len(answers)).astype(np.int8)
    games = []
    for told in (None, option):
        reference = make_reference("simulated", replace(answers, option=told), targets)
        for unobserved in (-1, 0):
            rules = Rules(targets_queryable=targets_queryable, unobserved=unobserved)
            entry = LocalEntry(submission.Submission(weights))
            games.append(play(entry, reference, "mask", rules))
    for game in games[1:]:
        assert np.array_equal(game.chosen, games[0].chosen)
        assert np.array_equal(game.prediction, games[0].prediction)


def test_training_finds_the_questions(model: ModuleType, train: ModuleType) -> None:
    """Predictions for students of whom nothing is known come near the true ones."""
    weights, answers = simulate(model, 1000, seed=6)
    fitted = train.fit(answers, len(weights.intercept))
    nobody = np.zeros((1, len(weights.intercept)), bool)
    found, truth = (model.StudentPosterior(m, nobody).probability()[0] for m in (fitted, weights))
    assert np.abs(found - truth).max() < 0.06
    # The covariance of two logits that the dimensions of ability give, up to sampling error.
    found, truth = (m.slopes @ m.slopes.T for m in (fitted, weights))
    assert np.corrcoef(found.ravel(), truth.ravel())[0, 1] > 0.95


# ---- Known answers -----------------------------------------------------------------------------


@given(
    mean=st.floats(-3, 3),
    variance=st.floats(0.05, 3),
    guessing=st.sampled_from([0.0, 0.2]),
    is_right=st.integers(0, 1),
)
@settings(max_examples=50, deadline=None)
def test_moments_against_numerical_integration(
    model: ModuleType, mean: float, variance: float, guessing: float, is_right: int
) -> None:
    slope, curvature, probability = (
        float(array[0])
        for array in model._match_moments(
            np.array([mean]), np.array([variance]), np.array([is_right]), np.array(guessing)
        )
    )
    x = np.linspace(mean - 10 * variance**0.5, mean + 10 * variance**0.5, 20_001)
    right = guessing + (1 - guessing) / (1 + np.exp(-x))
    density = np.exp(-((x - mean) ** 2) / (2 * variance)) * (right if is_right else 1 - right)
    scale = (2 * np.pi * variance) ** 0.5 / (x[1] - x[0])
    new_mean = (x * density).sum() / density.sum()
    new_variance = ((x - new_mean) ** 2 * density).sum() / density.sum()
    assert probability == pytest.approx(density.sum() / scale, abs=1e-3)
    assert mean + variance * slope == pytest.approx(new_mean, abs=5e-3)
    # A right answer that looks guessed would make it larger.
    expected = min(new_variance, variance)
    assert variance - variance**2 * curvature == pytest.approx(expected, abs=1e-2)


def test_posterior_against_brute_force(model: ModuleType) -> None:
    """Two answers; the ability and a quiz effect on a fine grid give the exact probabilities."""
    slopes = np.array([[1.2], [0.8], [1.5], [0.5]], np.float32)
    in_quiz = np.array([1, 0, 1, 0])
    weights = model.Model(
        intercept=np.array([0.5, -0.4, 0.1, 1.0], np.float32),
        slopes=slopes,
        quiz_covariance=0.6 * np.outer(in_quiz, in_quiz).astype(np.float32),
        guessing=np.array(0.2, np.float32),
        mask_mean=np.zeros(4, np.float32),
        mask_weights=np.zeros((4, 1), np.float32),
        completion=np.zeros((4, 4), np.float32),
    )
    posterior = model.StudentPosterior(weights, np.ones((4, 4), bool))
    outcomes = np.array([[1, 1], [1, 0], [0, 1], [0, 0]])
    for question, is_right in enumerate(outcomes.T):
        posterior.observe(np.arange(4), np.full(4, question), is_right)

    grid = np.linspace(-6, 6, 401)
    ability, effect = np.meshgrid(grid, grid)
    prior = np.exp(-(ability**2 + effect**2) / 2)
    probability = [
        0.2
        + 0.8 / (1 + np.exp(-(slopes[q, 0] * ability + 0.6**0.5 * effect * in_quiz[q] + intercept)))
        for q, intercept in enumerate(weights.intercept)
    ]
    expected = np.empty((4, 4))
    for row, (first, second) in enumerate(outcomes):
        density = prior * (probability[0] if first else 1 - probability[0])
        density = density * (probability[1] if second else 1 - probability[1])
        expected[row] = [(density * p).sum() / density.sum() for p in probability]
    assert np.abs(posterior.probability() - expected).max() < 0.01
    assert np.array_equal(posterior.predict()[:, :2], outcomes)
    assert np.array_equal(posterior.predict()[:, 2:], posterior.probability()[:, 2:])


def test_weights_are_saved_and_loaded(model: ModuleType, tmp_path: Path) -> None:
    weights, _ = simulate(model, 1, seed=9)
    weights.save(tmp_path)
    loaded = asdict(model.Model.load(tmp_path))
    for name, array in asdict(weights).items():
        assert loaded[name].dtype == array.dtype == np.float32
        assert np.array_equal(loaded[name], array)


def test_other_widths(model: ModuleType) -> None:
    """What is known of the questions that stay does not change; a new one is independent."""
    weights, _ = simulate(model, 1, seed=10)
    n_questions = len(weights.intercept)
    probabilities = []
    for width in (n_questions, n_questions - 5, n_questions + 5):
        posterior = model.StudentPosterior(weights.pad_questions(width), np.ones((1, width), bool))
        new = posterior.probability()[0, n_questions:]
        posterior.observe(np.array([0]), np.array([3]), np.array([1]))
        probabilities.append(posterior.probability()[0])
        assert len(probabilities[-1]) == width
        assert probabilities[-1][n_questions:] == pytest.approx(new, abs=1e-5)
    middle = 0.2 + 0.8 / (1 + np.exp(-weights.intercept.mean()))
    assert probabilities[2][n_questions:] == pytest.approx(middle, abs=1e-5)
    for other in probabilities[1:]:
        n = min(n_questions, len(other))
        assert other[:n] == pytest.approx(probabilities[0][:n], abs=1e-5)


def some_model(model: ModuleType, n_questions: int, seed: int) -> Any:
    """A model of which every part matters: quizzes, and what the answered mask reveals."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(n_questions, 3)) * (rng.random((n_questions, 3)) < 0.4)
    weights = model.Model(
        intercept=rng.normal(0.3, 0.8, n_questions),
        slopes=rng.normal(0.8, 0.5, (n_questions, 2)),
        quiz_covariance=0.5 * factors @ factors.T,
        guessing=np.array(0.2),
        mask_mean=rng.random(n_questions) / n_questions**0.5,
        mask_weights=rng.normal(0, 0.5, (n_questions, 2)),
        completion=rng.uniform(0, 1.4 / n_questions, (n_questions, n_questions)),
    )
    return replace(
        weights, **{name: array.astype(np.float32) for name, array in asdict(weights).items()}
    )


def promise_by_hand(
    posterior: Any, student: int, question: int, answers: Any, rounds_left: int
) -> float:
    """The promise of a question, from whole covariance matrices and sums over one target at a time.

    `answers` are those observed so far, in order: pairs of a question and right or wrong. At most
    two of them: later ones change the estimate of the population.
    """
    weights, guessing = posterior.model, 0.2
    mean = posterior._expected[student].astype(float)
    covariance = weights.slopes.astype(float) @ weights.slopes.T + weights.quiz_covariance
    grid = np.linspace(-12, 12, 4001)
    p = guessing + (1 - guessing) / (1 + np.exp(-grid))
    for asked, is_right in answers:
        # The mean and variance of this logit given the answer, by integration; the others follow.
        variance = covariance[asked, asked]
        density = np.exp(-((grid - mean[asked]) ** 2) / (2 * variance)) * (p if is_right else 1 - p)
        density /= density.sum()
        new_mean = (density * grid).sum()
        new_variance = min((density * (grid - new_mean) ** 2).sum(), variance)
        row = covariance[asked] / variance
        mean = mean + row * (new_mean - mean[asked])
        covariance = covariance - np.outer(row, row) * (variance - new_variance)

    variance = np.diagonal(covariance)
    knows = 1 / (1 + np.exp(-mean / np.sqrt(1 + np.pi / 8 * variance)))
    right = guessing + (1 - guessing) * knows
    noise = right * (1 - right) / ((1 - guessing) * knows * (1 - knows)) ** 2
    total = 0.0
    for target, weight in enumerate(posterior.target_weight[student]):
        spread = 0.7 * rounds_left / 10 * variance[target] + 0.05
        distance = mean[target] - np.log((0.5 - guessing) / 0.5)
        importance = weight * np.exp(-(distance**2) / (2 * spread)) / np.sqrt(spread)
        taken = covariance[question, target] ** 2 / (variance[question] + noise[question])
        total += importance * taken
    if posterior.targets_may_be_asked:
        total += 20 * min(right[question], 1 - right[question])
    return float(total)


@pytest.mark.parametrize("targets_may_be_asked", [False, True])
def test_selection_against_the_equation(model: ModuleType, targets_may_be_asked: bool) -> None:
    """Of all questions, the selected one has the largest promise; no other student plays a part."""
    rng = np.random.default_rng(11)
    weights = some_model(model, 30, seed=12)
    answered_mask = rng.random((6, 30)) < (0.97 if targets_may_be_asked else 0.5)
    answered_mask[3] = True
    posterior = model.StudentPosterior(weights, answered_mask)
    assert posterior.targets_may_be_asked == targets_may_be_asked
    askable, answers = answered_mask.copy(), [[] for _ in range(6)]  # type: ignore[var-annotated]
    rows = np.arange(6)
    seen = set()
    for rounds_left in (10, 9, 1):
        # As if the others had been answered: late in the game only what is left to learn counts.
        posterior.n_answers[:] = 10 - rounds_left
        selected = posterior.select(askable)
        for student in rows:
            promise = {
                question: promise_by_hand(
                    posterior, student, question, answers[student], rounds_left
                )
                for question in np.flatnonzero(askable[student])
            }
            best = max(promise.values())
            assert promise[selected[student]] == pytest.approx(best, rel=0.02)
            # So that a wrong choice would show.
            assert np.median(list(promise.values())) < 0.8 * best
        seen |= set(selected)
        is_right = rng.integers(2, size=6)
        if len(answers[0]) < 2:
            posterior.observe(rows, selected, is_right)
            askable[rows, selected] = False
            for student in rows:
                answers[student].append((selected[student], is_right[student]))
    assert len(seen) > 3
    # A student with nothing to be asked gets some column, and disturbs nobody.
    askable[2] = False
    again = posterior.select(askable)
    assert np.array_equal(np.delete(again, 2), np.delete(selected, 2))
