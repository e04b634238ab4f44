"""Task 4's page on a student: its figures by known answers, the script as a user runs it."""

import re
import shutil
from pathlib import Path
from typing import Any

from common.adaptive.game import read_reference

import ability
import numpy as np
import pandas as pd
import pytest
from ability import Bank, Course
from conftest import fails, succeeds
from page_reading import Page, read_page
from scipy.stats import binom
from student_report import Subjects, interval, student_page
from task_4_models import as_reference, load_package, plain_model

PACKAGE = "task_4/item_response"
REPORT = "task_4/student_report.py"
(MODEL,) = load_package("item_response")


def bank_of(slopes: Any, **changes: Any) -> Bank:
    return Bank(MODEL, plain_model(MODEL, slopes, **changes))


def test_scale_of_the_training_students() -> None:
    """The mean logit has the mean of the intercepts and the variance of the mean covariance."""
    rng = np.random.default_rng(0)
    slopes, root = rng.normal(size=(30, 2)), rng.normal(size=(30, 30)) / 10
    intercept = rng.normal(size=30)
    bank = bank_of(slopes, intercept=intercept, quiz_covariance=root @ root.T)
    drawn = rng.normal(size=(50_000, 2)) @ slopes.T + intercept
    drawn += rng.normal(size=drawn.shape) @ root.T
    mean = drawn.mean(axis=1)
    assert bank.mean == pytest.approx(mean.mean(), abs=0.02)
    assert bank.deviation == pytest.approx(mean.std(), rel=0.02)
    assert np.abs(bank.share - (1 / (1 + np.exp(-drawn))).mean(axis=0)).max() < 0.02


def test_ability_agrees_with_numerical_integration() -> None:
    """In one dimension, with the same slope everywhere, the mean logit is slope times ability."""
    slope = 1.5
    bank = bank_of(np.full((40, 1), slope), guessing=0.2)
    assert bank.deviation == pytest.approx(slope)
    right = (np.arange(40) % np.array([[2], [3], [5]]) > 0).astype(int)
    targets = np.tile(np.arange(40) >= 30, (3, 1))
    # Two answers: after three, the difference between the students is estimated as well.
    courses = ability.ask(bank, as_reference(right, targets), "mask", [0, 1, 2], 2)
    grid = np.linspace(-6, 6, 2001)
    p = 0.2 + 0.8 / (1 + np.exp(-slope * grid))
    for row, course in courses.items():
        assert len(course.steps) == 3
        density = np.exp(-(grid**2) / 2)
        for n, step in course.steps.iterrows():
            if n:
                is_right = right[row, int(step.QuestionId)]
                assert step.is_right == is_right
                assert step.expected == pytest.approx(np.average(p, weights=density), abs=0.01)
                density *= p if is_right else 1 - p
            mean = np.average(grid, weights=density)
            deviation = np.sqrt(np.average((grid - mean) ** 2, weights=density))
            assert (step.ability, step.error) == pytest.approx((mean, deviation), abs=0.03)
            assert step.share == pytest.approx(np.average(p, weights=density), abs=0.01)
        # The draws are those of the posterior.
        below = np.cumsum(density) / density.sum()
        ends = np.interp((0.05, 0.95), below, p)
        assert interval(course.draws.mean(axis=1)) == pytest.approx(ends, abs=0.03)
        counts = np.bincount(course.hidden_counts, minlength=11) / ability.N_DRAWS
        chance = binom.pmf(np.arange(11)[:, None], 10, p)
        assert counts == pytest.approx(np.average(chance, axis=1, weights=density), abs=0.03)


def test_a_test_ends_by_precision() -> None:
    """As the first questions of the longer test; what is said afterwards knows no more."""
    rng = np.random.default_rng(2)
    bank = bank_of(rng.exponential(1, (60, 1)))
    right = rng.random((25, 60)) < 0.6
    reference = as_reference(right, rng.random(right.shape) < 0.2)
    whole = ability.ask(bank, reference, "mask", range(25), 12)
    stopped = ability.ask(bank, reference, "mask", range(25), 12, 0.45)
    assert len({len(course.steps) for course in stopped.values()}) > 1
    for row, course in stopped.items():
        *before, error = course.steps.error
        assert len(before) == 12 or error <= 0.45
        assert min(before) > 0.45
        known = whole[row].steps[: len(course.steps)]
        pd.testing.assert_frame_equal(course.steps, known)
        assert course.probability.mean() == pytest.approx(course.steps.share.iloc[-1])


@pytest.mark.parametrize(("n_columns", "targets"), [(26, [18, 19, 20, 21]), (10, [8, 9])])
def test_questions_that_the_bank_or_the_file_lacks(n_columns: int, targets: list[int]) -> None:
    """The former may be asked and hidden; the ability is that over the whole bank, nothing else."""
    bank = bank_of(np.ones((20, 1)), intercept=np.repeat([2, -2], 10))
    columns = np.tile(np.arange(n_columns), (2, 1))
    reference = as_reference(columns >= 0, np.isin(columns, targets))
    askable = set(range(n_columns)) - set(targets)
    course = ability.ask(bank, reference, "mask", [0], len(askable))[0]
    assert set(course.steps.QuestionId[1:]) == askable
    first = course.steps.loc[0, ["ability", "error", "share"]].tolist()
    assert first == pytest.approx([0, 1, 0.5], abs=1e-3)
    assert course.probability.shape == course.draws.shape[1:] == (20,)
    assert len(course.hidden_truth) == course.hidden_counts.max() == len(targets)


STEPS = pd.DataFrame(
    [(-1, 0, np.nan, 0.1, 1, 0.5), (2, 1, 0.25, 1, 0.5, 0.7), (0, 0, 0.5, -0.5, 0.4, 0.3)],
    columns=["QuestionId", "is_right", "expected", "ability", "error", "share"],
)
COURSE = Course(
    steps=STEPS,
    probability=np.array([0.5, 0.1, 0.7, 0.3]),
    # Of some questions more is known than of others.
    draws=0.5 + np.linspace(-0.5, 0.5, 101)[:, None] * [1.0, 0.2, 0.8, 0.6],
    hidden_probability=np.array([0.9, 0.55, 0.45, 0.2]),
    hidden_truth=np.array([1, 0, 1, 0]),
    hidden_counts=np.arange(5),
)


def page_of(subjects: Subjects, course: Course = COURSE) -> Page:
    bank, facts = bank_of(np.ones((4, 1))), [("Test", "<short>")]
    return read_page(student_page(7, bank, course, ["", "", "A & B"], subjects, facts, False))


def test_the_page_says_what_the_figures_say() -> None:
    page = page_of({})
    for sentence in (
        "2 questions asked, 1 answered correctly",
        "to answer 30% correctly, with a probability of 90% between 21% and 79%",
        "a training student of whom nothing is known, 50%",
        "above that of about 31% of the training students (90% range 12% to 56%)",
        "is −0.50 with a standard error of 0.40; before the first, it was 1.00",
        "there are no metadata of the questions",
        "4 further answers of this student were kept back",
        "2 of them (50%) came out as expected. 2 are right; 2.1 were expected to be",
        "For 2 the probability was between 40% and 60%",
        "0 of these came out as expected",
    ):
        assert sentence in page.text
    assert page.tables[0].rows == [["Test", "<short>"]]
    assert page.table("The questions, in the order asked").rows == [
        ["1", "A & B", "2", "25%", "right", "+1.00 ± 0.82", "70%"],
        ["2", "unknown", "0", "50%", "wrong", "−0.50 ± 0.66", "30%"],
    ]
    titles = ["before: 0.10", "1, right: 1.00", "2, wrong: −0.50"]
    assert page.chart("Ability").titles == titles
    outcomes = page.table("How the hidden answers came out")
    assert outcomes.columns == ["", "right", "wrong", "together"]
    assert outcomes.rows == [["expected right", "1", "1", "2"], ["expected wrong", "1", "1", "2"]]
    nothing = np.array([], int)
    hidden = {"hidden_probability": nothing, "hidden_truth": nothing}
    page = page_of({}, COURSE._replace(steps=STEPS[:2], **hidden))
    assert "1 question asked, 1 answered" in page.text and "After 1 answer much" in page.text
    assert "None of this student’s answers is hidden with this mask" in page.text


def test_subjects_by_what_is_expected_and_the_least_known_topics() -> None:
    members = {"Beta & more": [1], "Delta": [3], "Alpha": [0], "Gamma": [2]}
    subjects = {
        "Areas of mathematics": [("All", np.arange(4)), ("Three", np.arange(1, 4))],
        "Topics": [(name, np.array(rows)) for name, rows in members.items()][::-1],
    }
    page = page_of(subjects)
    # Least expected first, each after the diamond of a training student.
    areas = ["Three: 0.50", "Three: 0.37", "All: 0.50", "All: 0.40"]
    assert page.chart("Areas of mathematics").titles == areas
    shares = dict(zip(members, ("0.10", "0.30", "0.50", "0.70"), strict=True))
    expected = [f"{name}: {value}" for name in members for value in ("0.50", shares[name])]
    assert page.chart("Topics").titles == expected
    assert "2 of the 4 topics were asked about" in page.text
    least = "Least is known about: Alpha, 5% to 95%; Gamma, 14% to 86%; Delta, 23% to 77%."
    assert least in page.text


@pytest.fixture(scope="module")
def kit(split_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kit with the package trained on its local split and scored: tests only read from it."""
    kit = Path(shutil.copytree(split_kit, tmp_path_factory.mktemp("student_report") / "kit"))
    succeeds([f"{PACKAGE}/train_model.py", "--local"], kit=kit)
    succeeds([f"{PACKAGE}/local_evaluation.py", "--skip_curve"], kit=kit)
    return kit


def test_asks_and_predicts_what_the_evaluation_scores(kit: Path) -> None:
    """The same questions of every student, and the same share of hidden answers right."""
    bank = ability.load_bank(kit / PACKAGE)
    reference = read_reference(kit / "data/test_input/valid_task_4.csv", bank.n_questions)
    rows = range(len(reference.student))
    courses = ability.ask(bank, reference, "IsTarget", rows, 10).values()
    sequences = pd.read_csv(kit / "data/test_output/sequence_task_4.csv")
    asked = [question for course in courses for question in course.steps.QuestionId[1:]]
    assert asked == sequences.QuestionId.tolist()
    hits = np.concatenate([(c.hidden_probability > 0.5) == c.hidden_truth for c in courses])
    score = (kit / "data/test_output/scores_task_4.txt").read_text().removeprefix("score:")
    assert hits.mean() == pytest.approx(float(score))


def test_pages_of_students(kit: Path, tmp_path: Path) -> None:
    valid = pd.read_csv(kit / "data/test_input/valid_task_4.csv")
    students = valid.UserId.unique()[[3, 1]].tolist()
    report = [REPORT, "--output_dir", tmp_path, "--student"]
    printed = succeeds([*report, *students], kit=kit)
    tree = pd.read_csv(kit / "data/metadata/subject_metadata.csv").set_index("SubjectId")
    lists = pd.read_csv(kit / "data/metadata/question_metadata_task_3_4.csv").SubjectId
    tree["n"] = lists.str.findall(r"\d+").explode().astype(int).value_counts()
    for student, line in zip(students, printed.splitlines(), strict=False):
        path = tmp_path / f"student_{student}.html"
        page = read_page(path.read_text())
        assert "From simulated answers" in page.text
        assert dict(page.tables[0].rows) == {
            "Students": "data/test_input/valid_task_4.csv, IsTarget",
            "Test": "10 questions",
            "Weights trained by": f"python {PACKAGE}/train_model.py --local",
        }
        questions = page.table("The questions")
        assert "unknown" not in questions.column("subject")
        *_, last, share = questions.rows[-1]
        mean, _, _ = last.replace("−", "-").split()
        error = re.search(r"standard error of (\d\.\d\d); before", page.text)
        assert error and line == (
            f"UserId {student}: 10 questions, ability {mean} ± {error[1]} (standard error), "
            f"{share} of the bank expected right"
        )
        n_hidden = int(valid[valid.UserId == student].IsTarget.sum())
        assert f"{n_hidden} further answers" in page.text
        # Areas of mathematics, and topics of at least five questions.
        for key, level, least in (("Areas", 1, 1), ("Topics", 2, 5)):
            drawn = {title.rpartition(":")[0] for title in page.chart(key).titles}
            assert drawn == set(tree[(tree.Level == level) & (tree.n >= least)].Name)
    before = path.read_bytes()
    succeeds([*report, students[1]], kit=kit)
    assert path.read_bytes() == before


def test_flags_of_the_test(kit: Path, tmp_path: Path) -> None:
    """A phase, a mask, another length, an end by precision; no metadata."""
    name = "test_private_task_4_more_splits.csv"
    shutil.copy(kit / f"data/test_data/{name}", tmp_path)
    private = pd.read_csv(tmp_path / name)
    student = private.UserId.iloc[0]
    flags = [REPORT, "--student", student, "--phase", "private", "--mask", "IsTarget_4"]
    flags += ["--input_dir", tmp_path, "--output_dir", tmp_path]
    succeeds([*flags, "--questions", 6], kit=kit)
    page = read_page((tmp_path / f"student_{student}.html").read_text())
    targets = private[(private.UserId == student) & (private.IsTarget_4 == 1)].QuestionId
    assert f"{len(targets)} further answers" in page.text
    assert page.table("The questions").column("subject") == ["unknown"] * 6
    assert "From simulated answers" not in page.text
    printed = succeeds([*flags, "--stop_at_error", 0.97], kit=kit)
    assert re.search(r": (1 question|[23] questions), ", printed)
    page = read_page((tmp_path / f"student_{student}.html").read_text())
    assert "until the standard error is at most 0.97, at most 10 questions" in page.text


def test_faults_are_one_line(kit: Path, tmp_path: Path) -> None:
    first = int(pd.read_csv(kit / "data/test_input/valid_task_4.csv").UserId.min())
    package = Path(shutil.copytree(kit / PACKAGE, tmp_path / "package"))
    report = [REPORT, "--output_dir", tmp_path / "output"]
    one = [*report, "--student", first, "--package", package]

    def expect(pattern: str, *flags: object) -> None:
        message = fails([*one, *flags], kit=kit)
        assert re.search(pattern, message), message

    examples = rf"expected UserIds of .*valid_task_4.csv, such as {first}, "
    assert re.search(rf"^--student: names nobody, {examples}", fails(report, kit=kit))
    expect(rf"--student 99999: is not there, {examples}", "--student", first, 99999)
    expect("^--mask IsTarget_3: is not a mask of ", "--mask", "IsTarget_3")
    expect(rf"UserId {first} has \d+ answers that may be .* at least 500", "--questions", 500)
    succeeds([package / "train_model.py"], kit=kit)
    expect(r"its model is trained on UserId .*`train_model.py --local`")
    shutil.copytree(kit / PACKAGE, package, dirs_exist_ok=True)
    (package / "model_task_4_item_response.npz").write_bytes(b"damaged")
    expect("its weights cannot be read")
    (package / "model.py").write_text("class Model:\n    pass\n")
    expect("model.py: has no StudentPosterior, expected the model of task_4/item")
    for path in package.glob("model_task_4*"):
        path.unlink()
    expect(f"`python {package}/train_model.py` writes")
    assert not (tmp_path / "output").exists()
