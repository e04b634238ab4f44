"""Task 4's page on a student: its figures by known answers, the script as a user runs it."""

import re
import shutil
import sys
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from types import ModuleType
from typing import Any

import ability
import numpy as np
import pandas as pd
import pytest
from ability import Bank, Course
from conftest import ROOT, Run, run_python
from page_reading import read_page as check_page
from student_page import Report, interval, share_below, student_page

from common.adaptive.game import Reference, make_reference, read_reference
from common.answers import Answers
from common.source_code import load_module

Fails = Callable[..., str]
PACKAGE = "task_4/item_response"
REPORT = "task_4/student_report.py"
WEIGHTS = "model_task_4_item_response.npz"


@pytest.fixture(scope="module")
def module() -> Iterator[ModuleType]:
    yield load_module(ROOT / PACKAGE / "model.py", "task_4_model")
    del sys.modules["task_4_model"]


def make_bank(module: ModuleType, folder: Path, slopes: np.ndarray, **changes: Any) -> Bank:
    """A package of a model without guessing, quizzes or masks, of which these are the slopes."""
    n_questions, n_dimensions = slopes.shape
    weights = {
        "intercept": np.zeros(n_questions, np.float32),
        "slopes": slopes.astype(np.float32),
        "quiz_covariance": np.zeros((n_questions, n_questions), np.float32),
        "guessing": np.array(0, np.float32),
        "mask_mean": np.zeros(n_questions, np.float32),
        "mask_weights": np.zeros((n_questions, n_dimensions), np.float32),
        "completion": np.zeros((n_questions, n_questions), np.float32),
    }
    module.Model(**{**weights, **changes}).save(folder)
    shutil.copy(ROOT / PACKAGE / "model.py", folder)
    return ability.load_bank(folder)


def everything_asked(right: np.ndarray, targets: np.ndarray) -> Reference:
    student, question = np.indices(right.shape, np.int32)
    answers = Answers(student.ravel(), question.ravel(), right.ravel().astype(np.int8))
    return make_reference("simulated", answers, {"mask": targets.ravel()})


# ---- Known answers -----------------------------------------------------------------------------


def test_scale_of_the_training_students(module: ModuleType, tmp_path: Path) -> None:
    """The mean logit has the mean of the intercepts and the variance of the mean covariance."""
    rng = np.random.default_rng(0)
    slopes, root = rng.normal(size=(30, 2)), rng.normal(size=(30, 30)) / 10
    intercept = rng.normal(size=30).astype(np.float32)
    quizzes = (root @ root.T).astype(np.float32)
    bank = make_bank(module, tmp_path, slopes, intercept=intercept, quiz_covariance=quizzes)
    drawn = rng.normal(size=(200_000, 2)) @ slopes.T + intercept
    drawn += rng.normal(size=drawn.shape) @ root.T
    mean = drawn.mean(axis=1)
    assert bank.mean == pytest.approx(mean.mean(), abs=0.01)
    assert bank.deviation == pytest.approx(mean.std(), rel=0.01)
    right = 1 / (1 + np.exp(-drawn))
    assert np.abs(bank.share - right.mean(axis=0)).max() < 0.02


def test_ability_agrees_with_numerical_integration(module: ModuleType, tmp_path: Path) -> None:
    """In one dimension, with the same slope everywhere, the mean logit is slope times ability."""
    slope = 1.5
    bank = make_bank(module, tmp_path, np.full((40, 1), slope))
    assert bank.deviation == pytest.approx(slope)
    right = (np.arange(40) % np.array([[2], [3], [5]]) > 0).astype(int)
    targets = np.zeros(right.shape, bool)
    targets[:, 30:] = True
    # Two answers: after three, the difference between the students is estimated as well.
    courses = ability.ask(bank, everything_asked(right, targets), "mask", [0, 1, 2], 2)
    grid = np.linspace(-6, 6, 2001)
    p = 1 / (1 + np.exp(-slope * grid))
    for row, course in courses.items():
        density = np.exp(-(grid**2) / 2)
        for n in range(3):
            if n:
                is_right = right[row, course.chosen[n - 1]]
                assert course.is_right[n - 1] == is_right
                expected = (density * p).sum() / density.sum()
                assert course.expected[n - 1] == pytest.approx(expected, abs=0.01)
                density *= p if is_right else 1 - p
            mean = (density * grid).sum() / density.sum()
            deviation = np.sqrt((density * (grid - mean) ** 2).sum() / density.sum())
            assert course.ability[n] == pytest.approx(mean, abs=0.03)
            assert course.deviation[n] == pytest.approx(deviation, abs=0.03)
            share = (density * p).sum() / density.sum()
            assert course.share[n] == pytest.approx(share, abs=0.01)
        assert len(course.chosen) == 2
        # The draws are those of the posterior.
        assert course.draws.mean() == pytest.approx(share, abs=0.02)
        middle = interval(course.draws.mean(axis=1))
        below = np.cumsum(density) / density.sum()
        for end, quantile in zip(middle, (0.05, 0.95), strict=True):
            assert end == pytest.approx(np.interp(quantile, below, p), abs=0.03)


def test_intervals_hold_the_truth_as_often_as_they_say(module: ModuleType, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    slopes = rng.exponential(0.9, (80, 1)) * rng.normal(1, 0.5, (80, 2))
    intercept = rng.normal(0.3, 0.8, 80).astype(np.float32)
    guessing = np.array(0.2, np.float32)
    bank = make_bank(module, tmp_path, slopes, intercept=intercept, guessing=guessing)
    logit = rng.normal(size=(400, 2)) @ slopes.T + intercept
    p = 0.2 + 0.8 / (1 + np.exp(-logit))
    right = rng.random(p.shape) < p
    targets = rng.random(p.shape) < 0.3
    courses = ability.ask(bank, everything_asked(right, targets), "mask", range(400), 10)
    truth = (logit.mean(axis=1) - bank.mean) / bank.deviation
    last = np.array([(c.ability[-1], c.deviation[-1]) for c in courses.values()])
    error = (truth - last[:, 0]) / last[:, 1]
    assert 0.85 < (np.abs(error) < 1.645).mean() < 0.95
    # The first 20 questions as a subject, and the hidden answers.
    shares = [interval(c.draws[:, :20].mean(axis=1)) for c in courses.values()]
    counts = [interval(c.hidden_counts) for c in courses.values()]
    for ends, values in (
        (shares, p[:, :20].mean(axis=1)),
        (counts, (right & targets).sum(axis=1)),
    ):
        low, high = np.transpose(ends)
        assert 0.85 < ((low <= values) & (values <= high)).mean() < 0.96


def test_a_test_ends_by_precision(module: ModuleType, tmp_path: Path) -> None:
    """As the first questions of the longer test; what is said afterwards knows no more."""
    rng = np.random.default_rng(2)
    bank = make_bank(module, tmp_path, rng.exponential(1, (60, 1)))
    right = rng.random((25, 60)) < 0.6
    reference = everything_asked(right, rng.random(right.shape) < 0.2)
    whole = ability.ask(bank, reference, "mask", range(25), 12)
    stopped = ability.ask(bank, reference, "mask", range(25), 12, 0.45)
    lengths = {len(course.chosen) for course in stopped.values()}
    assert len(lengths) > 1
    for row, course in stopped.items():
        n = len(course.chosen)
        assert n == 12 or course.deviation[-1] <= 0.45
        assert (course.deviation[:-1] > 0.45).all()
        for name in ("chosen", "is_right", "expected"):
            assert np.array_equal(getattr(course, name), getattr(whole[row], name)[:n])
        for name in ("ability", "deviation", "share"):
            assert np.array_equal(getattr(course, name), getattr(whole[row], name)[: n + 1])
        assert course.probability.mean() == pytest.approx(course.share[-1])


def test_questions_that_the_bank_lacks(module: ModuleType, tmp_path: Path) -> None:
    """They may be asked and hidden, but the ability is that over the bank."""
    bank = make_bank(module, tmp_path, np.ones((20, 1)))
    right = np.ones((2, 26), int)
    targets = np.zeros(right.shape, bool)
    targets[:, 18:22] = True
    course = ability.ask(bank, everything_asked(right, targets), "mask", [0], 20)[0]
    assert set(course.chosen) > set(range(22, 24))
    assert course.draws.shape == (ability.N_DRAWS, 20)
    assert len(course.hidden_truth) == 4
    assert course.hidden_counts.max() == 4


def test_questions_that_the_file_lacks(module: ModuleType, tmp_path: Path) -> None:
    """The ability is that over the whole bank, not over the part that the students know."""
    intercept = np.repeat([2, -2], 10).astype(np.float32)
    bank = make_bank(module, tmp_path, np.ones((20, 1)), intercept=intercept)
    right = np.arange(20).reshape(2, 10) % 2
    targets = np.zeros(right.shape, bool)
    targets[:, 8:] = True
    reference = everything_asked(right, targets)
    assert reference.is_correct.shape == (2, 10)
    course = ability.ask(bank, reference, "mask", [0], 8)[0]
    assert course.ability[0] == pytest.approx(0, abs=1e-3)
    assert course.deviation[0] == pytest.approx(1, abs=1e-3)
    assert course.share[0] == pytest.approx(0.5, abs=1e-3)
    assert course.probability.shape == (20,)
    assert course.draws.shape == (ability.N_DRAWS, 20)


def test_share_of_the_training_students_below() -> None:
    assert share_below(0) == 0.5
    assert share_below(1.645) == pytest.approx(0.95, abs=1e-4)
    assert share_below(-1.645) == pytest.approx(0.05, abs=1e-4)


# ---- The page ----------------------------------------------------------------------------------


def course(**changes: Any) -> Course:
    values = {
        "chosen": np.array([2, 0]),
        "is_right": np.array([1, 0]),
        "expected": np.array([0.25, 0.5]),
        "ability": np.array([0.1, 1, -0.5]),
        "deviation": np.array([1, 0.5, 0.4]),
        "share": np.array([0.5, 0.7, 0.3]),
        "probability": np.array([0.2, 0.3, 0.4]),
        "draws": np.linspace(0, 1, 101)[:, None] * np.ones(3),
        "hidden_probability": np.array([0.9, 0.55, 0.45, 0.2]),
        "hidden_truth": np.array([1, 0, 1, 0]),
        "hidden_counts": np.arange(5),
    }
    return Course(**{**values, **changes})


def page_of(bank: Bank, course: Course) -> str:
    """The page's text, without tags."""
    report = Report(7, bank, course, ["A & B", ""], [], [("Test", "<short>")], simulated=False)
    page = student_page(report)
    check_page(page)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", page)))


def test_the_page_says_what_the_figures_say(module: ModuleType, tmp_path: Path) -> None:
    bank = make_bank(module, tmp_path, np.ones((3, 1)))
    text = page_of(bank, course())
    assert "2 questions asked, 1 answered correctly" in text
    assert "of 90% between 5% and 95%" in text
    assert "a training student of whom nothing is known, 50%" in text
    assert "above that of about 31% of the training students (90% range 12% to 56%)" in text
    assert "is −0.50 with a standard error of 0.40; before the first, it was 1.00" in text
    assert "1 A & B 2 25% right +1.00 ± 0.82 70% 2 unknown 0 50% wrong −0.50 ± 0.66 30%" in text
    assert "Test <short>" in text
    assert "there are no metadata of the questions" in text
    assert "4 further answers of this student were kept back" in text
    assert "2 of them (50%) came out as expected. 2 are right; 2.1 were expected to be" in text
    assert "For 2 the probability was between 40% and 60%" in text
    assert "0 of these came out as expected" in text
    assert "expected right 1 1 2 expected wrong 1 1 2" in text
    nothing = np.array([], int)
    text = page_of(bank, course(hidden_probability=nothing, hidden_truth=nothing))
    assert "None of this student’s answers is hidden with this mask" in text


# ---- Run as a user runs it ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def kit(simulated_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kit with a local split, trained on it and scored: tests only read from it."""
    kit = Path(shutil.copytree(simulated_kit, tmp_path_factory.mktemp("student_report") / "kit"))
    for command in (
        ["task_4/local_data_split.py"],
        [f"{PACKAGE}/train_model.py", "--local"],
        [f"{PACKAGE}/local_evaluation.py", "--skip_curve"],
    ):
        done = run_python(command, kit=kit)
        assert done.returncode == 0, done.stderr
    return kit


def test_asks_and_predicts_what_the_evaluation_scores(kit: Path) -> None:
    """The same questions of every student, and the same share of hidden answers right."""
    bank = ability.load_bank(kit / PACKAGE)
    reference = read_reference(kit / "data/test_input/valid_task_4.csv", bank.n_questions)
    courses = ability.ask(bank, reference, "IsTarget", range(len(reference.student)), 10)
    sequences = pd.read_csv(kit / "data/test_output/sequence_task_4.csv")
    asked = np.concatenate([course.chosen for course in courses.values()])
    assert np.array_equal(asked, sequences.QuestionId)
    hits = np.concatenate(
        [(c.hidden_probability > 0.5) == c.hidden_truth for c in courses.values()]
    )
    score = (kit / "data/test_output/scores_task_4.txt").read_text().removeprefix("score:")
    assert hits.mean() == pytest.approx(float(score))


def test_pages_of_students(kit: Path, run: Run, tmp_path: Path) -> None:
    valid = pd.read_csv(kit / "data/test_input/valid_task_4.csv")
    students = valid.UserId.unique()[[3, 1]].tolist()
    done = run([REPORT, "--student", *students, "--output_dir", tmp_path], kit=kit)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    sequences = pd.read_csv(kit / "data/test_output/sequence_task_4.csv")
    for student, line in zip(students, done.stdout.splitlines(), strict=False):
        assert line.startswith(f"UserId {student}: 10 questions, ability ")
        page = (tmp_path / f"student_{student}.html").read_text()
        # The ability, the areas, the topics.
        assert len(check_page(page).charts) == 3
        assert "From simulated answers" in page
        assert "IsTarget" in page
        rows = re.findall(
            r'<th scope="row">\d+</th><td data-label="subject">(.+?)</td>'
            r'<td data-label="QuestionId">(\d+)</td>.*?data-label="answer">(\w+)<',
            page,
        )
        asked = sequences[sequences.UserId == student]
        assert [int(question) for _, question, _ in rows] == asked.QuestionId.tolist()
        assert [answer == "right" for *_, answer in rows] == (asked.IsCorrect == 1).tolist()
        assert "unknown" not in [subject for subject, *_ in rows]
        n_hidden = int(valid[valid.UserId == student].IsTarget.sum())
        assert f"{n_hidden} further answers" in page
    again = tmp_path / "again"
    run([REPORT, "--student", students[0], "--output_dir", again], kit=kit)
    name = f"student_{students[0]}.html"
    assert (again / name).read_bytes() == (tmp_path / name).read_bytes()


def test_flags_of_the_test(kit: Path, run: Run, tmp_path: Path) -> None:
    """A phase, a mask, another length, an end by precision, another package; no metadata."""
    test_data = tmp_path / "data/test_data"
    test_data.mkdir(parents=True)
    name = "test_private_task_4_more_splits.csv"
    private = pd.read_csv(kit / f"data/test_data/{name}")
    private.to_csv(test_data / name, index=False)
    student = private.UserId.iloc[0]
    package = Path(shutil.copytree(kit / PACKAGE, tmp_path / "package"))
    flags = [REPORT, "--student", student, "--phase", "private", "--input_dir", test_data,
             "--mask", "IsTarget_4", "--package", package, "--output_dir", tmp_path]  # fmt: skip
    done = run([*flags, "--questions", 6], kit=kit)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / f"student_{student}.html").read_text()
    targets = private[(private.UserId == student) & (private.IsTarget_4 == 1)].QuestionId
    asked = [int(q) for q in re.findall(r'data-label="QuestionId">(\d+)<', page)]
    assert len(asked) == 6
    assert not set(asked) & set(targets)
    assert f"{len(targets)} further answers" in page
    assert "unknown" in page
    assert "there are no metadata of the questions" in page
    assert "From simulated answers" not in page
    done = run([*flags, "--stop_at_error", 0.97], kit=kit)
    assert re.search(r": [1-3] questions, ", done.stdout)
    page = (tmp_path / f"student_{student}.html").read_text()
    assert "until the standard error is at most 0.97, at most 10 questions" in page


def test_faults_are_one_line(kit: Path, fails: Fails, tmp_path: Path) -> None:
    valid = pd.read_csv(kit / "data/test_input/valid_task_4.csv")
    first = int(valid.UserId.min())
    report = [REPORT, "--output_dir", tmp_path / "output"]
    one = [*report, "--student", first]
    message = fails(report, kit=kit)
    assert re.search(rf"--student: names nobody, expected UserIds of .*such as {first}, ", message)
    message = fails([*one, 99999], kit=kit)
    assert re.search(rf"--student 99999: is not there, .* such as {first}, ", message)
    message = fails([*one, "--mask", "IsTarget_3"], kit=kit)
    assert message.startswith("--mask IsTarget_3: is not a mask of ")
    message = fails([*one, "--questions", 500], kit=kit)
    assert re.search(rf"UserId {first} has \d+ answers that may be asked .* at least 500", message)
    message = fails([*one, "--package", kit / "task_4/pytorch"], kit=kit)
    assert "holds no weights" in message
    message = fails([*one, "--package", tmp_path], kit=kit)
    assert "file not found" in message

    package = Path(shutil.copytree(kit / PACKAGE, tmp_path / "package"))
    (package / WEIGHTS).write_bytes(b"damaged")
    assert "its weights cannot be read" in fails([*one, "--package", package], kit=kit)
    (package / "model.py").write_text("class Model:\n    pass\n")
    message = fails([*one, "--package", package], kit=kit)
    assert "model.py: has no StudentPosterior, expected the model of task_4/item" in message
    for path in package.glob("model_task_4*"):
        path.unlink()
    message = fails([*one, "--package", package], kit=kit)
    assert f"`python {package}/train_model.py` writes" in message
    assert not (tmp_path / "output").exists()


def test_nobody_is_reported_who_was_trained_on(kit: Path, fails: Fails, tmp_path: Path) -> None:
    package = Path(shutil.copytree(kit / PACKAGE, tmp_path / "package"))
    assert run_python([package / "train_model.py"], kit=kit).returncode == 0
    student = pd.read_csv(kit / "data/test_input/valid_task_4.csv").UserId.iloc[0]
    message = fails([REPORT, "--student", student, "--package", package], kit=kit)
    assert "its model is trained on UserId" in message
    assert "`train_model.py --local`" in message


@pytest.mark.parametrize("flag", ["--stop_at_error=0", "--stop_at_error=1", "--questions=0"])
def test_flags_out_of_range(kit: Path, run: Run, flag: str) -> None:
    done = run([REPORT, "--student", 1, flag], kit=kit)
    assert done.returncode == 2
    assert flag.split("=")[0] in done.stderr
