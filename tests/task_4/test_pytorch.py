"""The partial VAE of task 4: run as a user runs it, and its reward against a plain loop."""

import importlib.util
import itertools
import shutil
import sys
import zipfile
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from conftest import Run, run_python

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "task_4/pytorch"
WEIGHTS = "model_task_4_partial_vae.pt"


def load(name: str, folder: Path = ROOT / PACKAGE) -> ModuleType:
    """Import a module of the package, which finds its own model.py and no other package's."""
    others = {other: sys.modules.pop(other, None) for other in ("model",)}
    sys.path.insert(0, str(folder))
    try:
        spec = importlib.util.spec_from_file_location(f"pytorch_{name}", folder / f"{name}.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # A dataclass looks up its module.
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("model", None)
        sys.modules.update({other: module for other, module in others.items() if module})
    return module


entry = load("submission_model_task_4")
pytorch = load("model")


def run_all(run: Run, kit: Path, *commands: list[object]) -> None:
    for command in commands:
        done = run(command, kit=kit)
        assert done.returncode == 0, done.stderr
        assert not done.stderr


def read_score(folder: Path) -> float:
    return float((folder / "scores_task_4.txt").read_text().removeprefix("score:"))


@pytest.fixture(scope="module")
def kit(simulated_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kit with a local split and the package trained on it: tests only read from it."""
    kit = Path(shutil.copytree(simulated_kit, tmp_path_factory.mktemp("pytorch") / "kit"))
    run_all(
        run_python,
        kit,
        ["task_4/local_data_split.py"],
        [f"{PACKAGE}/train_model.py", "--local"],
    )
    return kit


def some_model(n_questions: int = 40, k: int = 3, seed: int = 0) -> Any:
    """Return a model with random weights."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator)

    return entry.Model(
        intercept=normal(n_questions),
        loading=normal(n_questions, k),
        guessing=torch.tensor(0.2),
        score=normal(n_questions, 2, k),
        precision=0.1 + normal(n_questions, 2, k).square(),
        prior_precision=0.5 + normal(k).square(),
        mask_mean=0.1 * normal(n_questions),
        mask_weights=normal(n_questions, k),
        completion=0.1 * normal(n_questions, n_questions),
    )


def some_students(
    n_students: int = 6, n_questions: int = 40, seed: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Return right (1) or wrong (0), and which answers may be asked."""
    rng = np.random.default_rng(seed)
    shape = n_students, n_questions
    return rng.integers(2, size=shape), rng.random(shape) < 0.6


def play(
    submission: Any, truth: np.ndarray, askable: np.ndarray, unobserved: int, options: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Play five rounds; the questions chosen and the predictions."""
    option = np.full_like(truth, unobserved)
    is_correct = np.full_like(truth, unobserved)
    askable, chosen = askable.copy(), []
    rows = np.arange(len(truth))
    for _ in range(5):
        question = submission.select_questions(
            option.copy(), is_correct.copy(), askable.astype(np.int64)
        )
        assert askable[rows, question].all()
        is_correct[rows, question] = truth[rows, question]
        option[rows, question] = 1 + question % 4 if options else unobserved
        askable[rows, question] = False
        submission.update_model(option.copy(), is_correct.copy(), askable.astype(np.int64))
        chosen.append(question)
    return np.stack(chosen, axis=1), submission.predict(option, is_correct)


def test_trains_plays_and_beats_the_most_popular(kit: Path, run: Run, tmp_path: Path) -> None:
    run_all(
        run,
        kit,
        ["task_4/numpy/train_model.py", "--local"],
        ["task_4/numpy/local_evaluation.py", "--skip_curve", "--output_dir", tmp_path / "numpy"],
        [f"{PACKAGE}/local_evaluation.py", "--skip_curve", "--output_dir", tmp_path / "pytorch"],
    )
    assert read_score(tmp_path / "pytorch") > read_score(tmp_path / "numpy") + 0.01


def test_zip_holds_what_the_entry_needs(kit: Path, run: Run, tmp_path: Path) -> None:
    done = run(["task_4/package.py", kit / PACKAGE, "--output_dir", tmp_path], kit=kit)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(tmp_path / "submission_task_4.zip") as archive:
        assert set(archive.namelist()) == {
            "model.py",
            "submission_model_task_4.py",
            "model_task_4_students.npy",
            "model_task_4_training.json",
            WEIGHTS,
        }


def test_a_second_run_is_the_same_bit_by_bit(kit: Path, run: Run, tmp_path: Path) -> None:
    again = shutil.copytree(kit / PACKAGE, tmp_path / "again")
    (again / WEIGHTS).unlink()
    run_all(run, kit, [again / "train_model.py", "--local"])
    first, second = (asdict(entry.Model.load(folder)) for folder in (kit / PACKAGE, again))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_save_and_load(tmp_path: Path) -> None:
    model = some_model()
    model.save(tmp_path)
    loaded = asdict(entry.Model.load(tmp_path))
    assert all(torch.equal(value, loaded[name]) for name, value in asdict(model).items())


@pytest.mark.parametrize("n_questions", [25, 60])
def test_other_widths(n_questions: int) -> None:
    """Columns that training did not know tell nothing and are predicted like a mean question."""
    model = some_model()
    truth, askable = some_students(n_questions=n_questions)
    chosen, prediction = play(entry.Submission(model), truth, askable, -1)
    assert prediction.shape == truth.shape
    assert chosen.max() < 40
    wide = model.pad_questions(n_questions)
    assert len(wide.intercept) == n_questions
    assert torch.equal(wide.loading[:25], model.loading[:25])
    assert (wide.intercept[40:] == model.intercept.mean()).all()
    assert not wide.precision[40:].any()


@pytest.mark.parametrize("options", [True, False])
def test_both_readings_of_unobserved_are_the_same(options: bool) -> None:
    truth, askable = some_students()
    games = [
        play(entry.Submission(some_model()), truth, askable, unobserved, options)
        for unobserved in (-1, 0)
    ]
    assert np.array_equal(games[0][0], games[1][0])
    rows = np.arange(len(truth))[:, None]
    for chosen, prediction in games:
        # What was revealed is predicted as it was.
        assert np.array_equal(prediction[rows, chosen], truth[rows, chosen])
    assert np.array_equal(games[0][1], games[1][1])


def some_rewards(seed: int = 3) -> dict[str, torch.Tensor]:
    """Return what makes up the reward: one student, 5 questions, 4 targets, 3 dimensions."""
    generator = torch.Generator().manual_seed(seed)

    def uniform(*shape: int) -> torch.Tensor:
        return torch.rand(shape, generator=generator, dtype=torch.float64)

    return {
        "score": 4 * uniform(3) - 2,
        "precision": 1 + uniform(3),
        "more_score": 2 * uniform(5, 2, 3) - 1,
        "more_precision": uniform(5, 2, 3),
        "right": uniform(5),
        "loading": 2 * uniform(4, 3) - 1,
        "weight": uniform(4),
    }


def reward(given: dict[str, torch.Tensor]) -> torch.Tensor:
    later = (given["score"] + given["more_score"]) / (given["precision"] + given["more_precision"])
    move = later - given["score"] / given["precision"]
    value: torch.Tensor = pytorch.information_reward(
        move, given["right"], given["loading"], given["weight"]
    )
    return value


def gaussian(score: torch.Tensor, precision: torch.Tensor) -> torch.distributions.Distribution:
    return torch.distributions.MultivariateNormal(
        torch.linalg.solve(precision, score), precision_matrix=precision
    )


def expected_divergence(
    score: torch.Tensor,
    precision: torch.Tensor,
    more_score: torch.Tensor,
    more_precision: torch.Tensor,
    of_targets: torch.Tensor,
) -> torch.Tensor:
    """E KL(p(z | x_φ, x_i, x_o) ‖ p(z | x_φ, x_o)), both with full covariances.

    The targets' answers move the mean by a Gaussian step, in which the divergence is a quadratic
    form: points on the principal axes of the step, up and down, give its expectation exactly.
    """
    before = precision.diag() + of_targets
    after = before + more_precision.diag()
    step = torch.linalg.cholesky((1 / precision).diag() - before.inverse())
    total = torch.zeros((), dtype=torch.float64)
    for axis, sign in itertools.product(range(3), (-1, 1)):
        moved = before @ (score / precision + sign * 3**0.5 * step[:, axis])
        total += torch.distributions.kl_divergence(
            gaussian(moved + more_score, after), gaussian(moved, before)
        )
    return total / 6


def test_reward_equals_a_plain_loop_over_logits() -> None:
    """Over questions, outcomes and targets: how far the answer moves the logit of the target."""
    given = some_rewards()
    expected = torch.zeros(5, dtype=torch.float64)
    for question, outcome, target in itertools.product(range(5), range(2), range(4)):
        mean = given["score"] / given["precision"]
        later = (given["score"] + given["more_score"][question, outcome]) / (
            given["precision"] + given["more_precision"][question, outcome]
        )
        moved = float(given["loading"][target] @ later) - float(given["loading"][target] @ mean)
        right = float(given["right"][question])
        share = right if outcome else 1 - right
        expected[question] += share * float(given["weight"][target]) * moved**2 / 2
    torch.testing.assert_close(reward(given), expected)


def test_reward_is_the_first_order_of_the_difference_of_divergences() -> None:
    """EDDI's two expectations, by the closed forms between Gaussians, where evidence is little."""
    given, little = some_rewards(), 1e-4
    given["more_score"] *= little**0.5
    given["more_precision"] *= little
    # So that an answer moves only the mean of z at this order.
    given["more_score"] += given["more_precision"] * (given["score"] / given["precision"])
    loading = given["loading"]
    of_targets = little * loading.T @ given["weight"].diag() @ loading
    before = given["score"], given["precision"]
    expected = torch.zeros(5, dtype=torch.float64)
    for question, outcome in itertools.product(range(5), range(2)):
        more = given["more_score"][question, outcome], given["more_precision"][question, outcome]
        first = torch.distributions.kl_divergence(
            gaussian(before[0] + more[0], (before[1] + more[1]).diag()),
            gaussian(before[0], before[1].diag()),
        )
        second = expected_divergence(*before, *more, of_targets)
        right = given["right"][question]
        share = right if outcome else 1 - right
        expected[question] += share * (first - second) / little
    torch.testing.assert_close(reward(given), expected, rtol=2e-3, atol=0)


def test_selection_against_the_reward_of_each_question_by_itself() -> None:
    """No question and no student plays a part in the value of another."""
    model = some_model()
    _, askable = some_students(n_students=20)
    answered_mask = torch.from_numpy(askable.copy())
    posterior = pytorch.StudentPosterior(model, answered_mask)
    first = posterior.select(answered_mask)
    rows = torch.arange(20)
    posterior.observe(rows, first, rows % 2)
    askable[rows, first] = False
    selected = posterior.select(torch.from_numpy(askable))
    for row in range(20):
        alone = pytorch.StudentPosterior(model, answered_mask[row : row + 1])
        assert bool(alone._targets_may_be_asked) == posterior._targets_may_be_asked
        alone.observe(torch.tensor([0]), first[row : row + 1], rows[row : row + 1] % 2)
        values = {}
        for question in np.flatnonzero(askable[row]):
            only = torch.zeros(1, 40, dtype=torch.bool)
            only[0, question] = True
            assert alone.select(only)[0] == question
            values[question] = reward_by_hand(model, alone, question)
        best = max(values.values())
        assert values[int(selected[row])] == pytest.approx(best, rel=1e-4)
        assert np.median(list(values.values())) < 0.9 * best


def reward_by_hand(model: Any, posterior: Any, question: int) -> float:
    """The value of a question for the only student, summed over targets and outcomes."""
    score, precision = posterior._score[0].double(), posterior._precision[0].double()

    def right(q: int) -> tuple[float, float, float]:
        loading = model.loading[q].double()
        mean = float(loading @ (score / precision) + model.intercept[q])
        variance = float(loading.square() @ (1 / precision))
        knows = 1 / (1 + np.exp(-mean / np.sqrt(1 + np.pi / 8 * variance)))
        return 0.2 + 0.8 * knows, mean, variance

    total = 0.0
    p = right(question)[0]
    for target, outcome in itertools.product(range(len(model.intercept)), range(2)):
        _, mean, variance = right(target)
        spread = 0.5 * variance + 0.05
        density = np.exp(-((mean - np.log(0.3 / 0.5)) ** 2) / (2 * spread)) / spread**0.5
        later = (score + model.score[question, outcome]) / (
            precision + model.precision[question, outcome]
        )
        moved = float(model.loading[target].double() @ (later - score / precision))
        share = p if outcome else 1 - p
        total += share * float(posterior._target_weight[0, target]) * density * moved**2 / 2
    return total + 20 * min(p, 1 - p) * posterior._targets_may_be_asked
