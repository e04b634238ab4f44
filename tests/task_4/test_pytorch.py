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

from common.models.partial_vae import gaussian_kl

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "task_4/pytorch"
WEIGHTS = "model_task_4_partial_vae.pt"
EVIDENCE = ("more_score", "more_precision")


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
    """Give a model with random weights."""
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
        pattern_mean=0.1 * normal(n_questions),
        pattern_weights=normal(n_questions, k),
        completion=0.1 * normal(n_questions, n_questions),
    )


def some_board(
    n_students: int = 6, n_questions: int = 40, seed: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Give right (1) or wrong (0), and which answers may be asked."""
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


def test_zip_proves_itself(kit: Path, run: Run, tmp_path: Path) -> None:
    run_all(run, kit, ["task_4/package.py", kit / PACKAGE, "--output_dir", tmp_path])
    with zipfile.ZipFile(tmp_path / "submission_task_4.zip") as archive:
        assert set(archive.namelist()) == {
            "model.py",
            "submission_model_task_4.py",
            "model_task_4_students.npy",
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
    truth, askable = some_board(n_questions=n_questions)
    chosen, prediction = play(entry.Submission(model), truth, askable, -1)
    assert prediction.shape == truth.shape
    assert chosen.max() < 40
    wide = model.fit_width(n_questions)
    assert len(wide.intercept) == n_questions
    assert torch.equal(wide.loading[:25], model.loading[:25])
    assert (wide.intercept[40:] == model.intercept.mean()).all()
    assert not wide.precision[40:].any()


@pytest.mark.parametrize("options", [True, False])
def test_both_readings_of_unobserved_are_the_same(options: bool) -> None:
    truth, askable = some_board()
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


def some_students(seed: int = 3) -> dict[str, torch.Tensor]:
    """Give arguments of the reward: 4 students, 5 questions each, 3 dimensions."""
    generator = torch.Generator().manual_seed(seed)

    def uniform(*shape: int) -> torch.Tensor:
        return torch.rand(shape, generator=generator, dtype=torch.float64)

    factor = uniform(4, 3, 3) - 0.3
    return {
        "score": 4 * uniform(4, 3) - 2,
        "precision": 1 + uniform(4, 3),
        "more_score": 2 * uniform(4, 5, 2, 3) - 1,
        "more_precision": uniform(4, 5, 2, 3),
        "right": uniform(4, 5),
        "of_targets": factor @ factor.transpose(1, 2),
    }


def divergence_with_targets(
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
        mean = score / precision + sign * 3**0.5 * step[:, axis]
        later = after.inverse() @ (before @ mean + more_score)
        total += torch.distributions.kl_divergence(
            torch.distributions.MultivariateNormal(later, precision_matrix=after),
            torch.distributions.MultivariateNormal(mean, precision_matrix=before),
        )
    return total / 6


def test_reward_equals_a_plain_loop_over_posteriors() -> None:
    """Over students, questions and outcomes: how far x_i moves z in the targets' directions."""
    given = some_students()
    expected = torch.zeros(4, 5, dtype=torch.float64)
    for student, question, outcome in itertools.product(range(4), range(5), range(2)):
        score, precision = given["score"][student], given["precision"][student]
        more = [given[name][student, question, outcome] for name in EVIDENCE]
        move = (score + more[0]) / (precision + more[1]) - score / precision
        right = given["right"][student, question]
        share = right if outcome else 1 - right
        expected[student, question] += share * move @ given["of_targets"][student] @ move / 2
    torch.testing.assert_close(pytorch.information_reward(**given), expected)


def test_reward_is_the_first_order_of_the_difference_of_divergences() -> None:
    """EDDI's two expectations, by the closed forms between Gaussians, where evidence is little."""
    given, little = some_students(), 1e-4
    given["more_score"] *= little**0.5
    given["more_precision"] *= little
    # So that an answer moves only the mean of z at this order.
    given["more_score"] += (
        given["more_precision"] * (given["score"] / given["precision"])[:, None, None]
    )
    expected = torch.zeros(4, 5, dtype=torch.float64)
    for student, question, outcome in itertools.product(range(4), range(5), range(2)):
        score, precision = given["score"][student], given["precision"][student]
        more = [given[name][student, question, outcome] for name in EVIDENCE]
        first = gaussian_kl(
            (score + more[0]) / (precision + more[1]),
            1 / (precision + more[1]),
            score / precision,
            1 / precision,
        )
        of_targets = little * given["of_targets"][student]
        second = divergence_with_targets(score, precision, more[0], more[1], of_targets)
        right = given["right"][student, question]
        share = right if outcome else 1 - right
        expected[student, question] += share * (first - second) / little
    reward = pytorch.information_reward(**given)
    torch.testing.assert_close(reward, expected, rtol=2e-3, atol=0)


def test_divergence_of_an_answer_equals_monte_carlo() -> None:
    """The yardstick of the test above, without targets: E KL of the posteriors, by draws."""
    given = some_students()
    generator = torch.Generator().manual_seed(0)
    n = 40_000
    for student, question, outcome in itertools.product(range(4), range(2), range(2)):
        score, before = given["score"][student], given["precision"][student]
        more = [given[name][student, question, outcome] for name in EVIDENCE]
        after = before + more[1]
        mean = (score + more[0]) / after
        z = mean + torch.randn(n, 3, generator=generator, dtype=torch.float64) / after.sqrt()
        distance = before * (z - score / before) ** 2 - after * (z - mean) ** 2
        log_ratio = ((after / before).log() + distance).sum(dim=1) / 2
        none = torch.full((3, 3), 0.0, dtype=torch.float64) + 1e-12 * torch.eye(3)
        exact = divergence_with_targets(score, before, more[0], more[1], none)
        assert abs(log_ratio.mean() - exact) < 5 * log_ratio.std() / n**0.5


def test_choice_of_a_student_does_not_depend_on_the_others() -> None:
    """Students are worked on in blocks, and in another order: none is mixed up."""
    model = some_model()
    _, askable = some_board(n_students=150)
    pattern = torch.from_numpy(askable)
    together = pytorch.Examination(model, pattern)
    together_chosen = together.choose(pattern)
    for row in range(0, 150, 30):
        alone = pytorch.Examination(model, pattern)
        only = torch.zeros_like(pattern)
        only[row] = pattern[row]
        assert alone.choose(only)[row] == together_chosen[row]
