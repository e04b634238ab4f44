"""Task 4's page on a student: its figures compared with known ones, the script run as by a user."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import metadata
from common.adaptive.game import read_reference

import ability
import numpy as np
import pandas as pd
import pytest
from ability import Bank, Session
from conftest import fails, succeeds
from page_reading import Page, read_page
from scipy.stats import binom, norm
from task_4_models import as_reference, load_package, plain_model

PACKAGE = "task_4/item_response"
REPORT = "task_4/student_report.py"
# Quantiles at the ends of an interval that holds the truth with a probability of 90 %.
ENDS = (0.05, 0.95)
(MODEL,) = load_package("item_response")


def bank_of(slopes: Any, **changes: Any) -> Bank:
    """Return a bank of questions with these slopes (discriminations)."""
    return Bank(MODEL, plain_model(MODEL, slopes, **changes))


def test_ability_agrees_with_numerical_integration() -> None:
    """All 40 questions have P(right) = 0.2 + 0.8 · sigmoid(slope · ability).

    The prior of the ability is standard normal. Bayes' rule on a grid of abilities gives the
    posterior after each answer.
    """
    slope = 1.5
    grid = np.linspace(-6, 6, 2001)
    p_right = 0.2 + 0.8 / (1 + np.exp(-slope * grid))
    bank = bank_of(np.full((40, 1), slope), guessing=0.2)
    # The mean logit of the bank is slope · ability.
    assert bank.logit_deviation == pytest.approx(slope)

    # Three students, who are wrong on every second, third and fifth question. The answers to the
    # last ten questions are hidden.
    right = (np.arange(40) % np.array([[2], [3], [5]]) > 0).astype(int)
    targets = np.tile(np.arange(40) >= 30, (3, 1))
    # Only two questions are asked: from the third answer on, the model also estimates the
    # population of students anew, which the integration does not do.
    reference = as_reference(right, targets)
    sessions = ability.ask(bank, reference, "mask", rows=[0, 1, 2], n_questions=2)

    for row, session in sessions.items():
        assert len(session.steps) == 3
        density = np.exp(-(grid**2) / 2)
        for n_asked, step in session.steps.iterrows():
            # The first step is before any answer.
            if n_asked > 0:
                is_right = right[row, int(step.QuestionId)]
                expected = np.average(p_right, weights=density)
                assert step.is_right == is_right
                assert step.expected == pytest.approx(expected, abs=0.01)
                density *= p_right if is_right else 1 - p_right
            mean = np.average(grid, weights=density)
            deviation = np.sqrt(np.average((grid - mean) ** 2, weights=density))
            assert (step.ability, step.error) == pytest.approx((mean, deviation), abs=0.03)
            assert step.share == pytest.approx(np.average(p_right, weights=density), abs=0.01)

        # The quantiles of P(right) over the draws are those of the posterior.
        share_below = np.cumsum(density) / density.sum()
        quantiles = np.interp(ENDS, share_below, p_right)
        drawn = np.quantile(session.draws.mean(axis=1), ENDS)
        assert drawn == pytest.approx(quantiles, abs=0.03)

        # The number of right answers among the ten hidden ones is binomial, given the ability.
        shares = np.bincount(session.hidden_counts, minlength=11) / ability.N_DRAWS
        p_count = binom.pmf(np.arange(11)[:, None], 10, p_right)
        assert shares == pytest.approx(np.average(p_count, axis=1, weights=density), abs=0.03)


def test_a_test_that_ends_by_precision_is_the_beginning_of_a_longer_one() -> None:
    """The figures of the test are those of the longer one up to the question at which it ended."""
    rng = np.random.default_rng(2)
    bank = bank_of(rng.exponential(1, (60, 1)))
    right = rng.random((25, 60)) < 0.6
    reference = as_reference(right, rng.random(right.shape) < 0.2)
    rows = range(25)

    whole = ability.ask(bank, reference, "mask", rows, n_questions=12)
    stopped = ability.ask(bank, reference, "mask", rows, n_questions=12, stop_at_error=0.45)

    # The lengths differ between students.
    assert len({len(session.steps) for session in stopped.values()}) > 1
    for row, session in stopped.items():
        # The test ends at the first standard error of at most 0.45, or after twelve questions.
        *earlier_errors, last_error = session.steps.error
        assert len(earlier_errors) == 12 or last_error <= 0.45
        assert min(earlier_errors) > 0.45

        beginning = whole[row].steps[: len(session.steps)]
        pd.testing.assert_frame_equal(session.steps, beginning)
        # `share` is the mean probability of a right answer to all questions, after each answer. The
        # single probabilities must be those after the last answer.
        assert session.probability.mean() == pytest.approx(session.steps.share.iloc[-1])


@pytest.mark.parametrize(("n_columns", "targets"), [(26, [18, 19, 20, 21]), (10, [8, 9])])
def test_the_ability_is_the_mean_over_the_whole_bank(n_columns: int, targets: list[int]) -> None:
    """The bank has 20 questions, the file of students more (26) or fewer (10).

    Students may be asked questions that the bank lacks. Answers to such questions may be hidden.
    """
    rng = np.random.default_rng(0)
    slopes = rng.normal(size=(20, 2))
    quiz = rng.normal(size=(20, 20)) / 5
    bank = bank_of(slopes, intercept=rng.normal(size=20), quiz_covariance=quiz @ quiz.T)
    # Two students have answered all questions of the file correctly.
    columns = np.tile(np.arange(n_columns), (2, 1))
    right = np.ones(columns.shape, bool)
    reference = as_reference(right, np.isin(columns, targets))

    # Ask one of them all questions whose answers are not hidden.
    askable = set(range(n_columns)) - set(targets)
    session = ability.ask(bank, reference, "mask", rows=[0], n_questions=len(askable))[0]
    assert set(session.steps.QuestionId[1:]) == askable

    # A student of whom nothing is known has the mean and the deviation of the training students.
    first = session.steps.loc[0, ["ability", "error", "share"]].tolist()
    assert first == pytest.approx([0, 1, bank.share.mean()], abs=1e-3)

    # The probabilities and their draws are those of the questions of the bank.
    assert session.probability.shape == (20,)
    assert session.draws.shape[1:] == (20,)
    # All hidden answers count, also those to questions that the bank lacks. In some draws, all of
    # them are right.
    assert len(session.hidden_truth) == len(targets)
    assert session.hidden_counts.max() == len(targets)


@pytest.fixture(scope="module")
def kit(split_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a kit with the package trained on its local split and scored; tests only read it."""
    kit = Path(shutil.copytree(split_kit, tmp_path_factory.mktemp("student_report") / "kit"))
    succeeds([f"{PACKAGE}/train_model.py", "--local"], kit=kit)
    succeeds([f"{PACKAGE}/local_evaluation.py", "--skip_curve"], kit=kit)
    return kit


@pytest.fixture(scope="module")
def played(kit: Path) -> tuple[Bank, dict[int, Session]]:
    """Return the trained bank, and by UserId the session of every student of the local split."""
    bank = ability.load_bank(kit / PACKAGE)
    reference = read_reference(kit / "data/test_input/valid_task_4.csv", bank.n_questions)
    rows = range(len(reference.student))
    sessions = ability.ask(bank, reference, "IsTarget", rows, n_questions=10).values()
    return bank, dict(zip(reference.student.tolist(), sessions, strict=True))


def test_the_report_asks_and_predicts_what_the_evaluation_scores(kit: Path, played: Any) -> None:
    """The evaluation of the same package has written its questions and its score."""
    sessions = played[1].values()

    sequences = pd.read_csv(kit / "data/test_output/sequence_task_4.csv")
    asked = [question for session in sessions for question in session.steps.QuestionId[1:]]
    assert asked == sequences.QuestionId.tolist()

    is_hit = [(one.hidden_probability > 0.5) == one.hidden_truth for one in sessions]
    score = (kit / "data/test_output/scores_task_4.txt").read_text().removeprefix("score:")
    assert np.concatenate(is_hit).mean() == pytest.approx(float(score))


def with_minus_signs(text: str) -> str:
    """Return a text with minus signs instead of hyphens, as the page shows numbers."""
    return text.replace("-", "−")


def shown_range(draws: Any) -> str:
    """Return the 90 % range of the draws as the page shows it, such as "40% to 62%"."""
    low, high = np.quantile(draws, ENDS)
    return f"{low:.0%} to {high:.0%}"


@dataclass(frozen=True)
class Report:
    """The report on a student of the local split, and the figures that it must show."""

    student: int
    # The line that is printed about the student.
    line: str
    page: Page
    session: Session
    bank: Bank

    @property
    def asked(self) -> pd.DataFrame:
        """The questions asked, in order."""
        return self.session.steps[1:]

    @property
    def is_hit(self) -> Any:
        """Whether each hidden answer came out as expected."""
        return (self.session.hidden_probability > 0.5) == self.session.hidden_truth


@pytest.fixture(scope="module")
def report(kit: Path, played: Any, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Return the report on one student.

    The page of the student is written twice: together with the page of another student, then alone.
    It must be the same both times.
    """
    bank, sessions = played
    student = list(sessions)[1]
    other = list(sessions)[3]
    folder = tmp_path_factory.mktemp("report")
    path = folder / f"student_{student}.html"
    command = [REPORT, "--output_dir", folder, "--student"]

    printed = succeeds([*command, other, student], kit=kit)
    content = path.read_bytes()
    succeeds([*command, student], kit=kit)
    assert path.read_bytes() == content

    _, line, *_ = printed.splitlines()
    return Report(student, line, read_page(content.decode()), sessions[student], bank)


def test_the_report_tells_the_data_the_test_and_the_weights(report: Report) -> None:
    assert "From simulated answers" in report.page.text
    assert dict(report.page.tables[0].rows) == {
        "Students": "data/test_input/valid_task_4.csv, IsTarget",
        "Test": "10 questions",
        "Weights trained by": f"python {PACKAGE}/train_model.py --local",
    }


def test_the_ability_is_printed_in_a_line(report: Report) -> None:
    last = report.session.steps.iloc[-1]
    assert report.line == (
        f"UserId {report.student}: 10 questions, ability {last.ability:+.2f} ± {last.error:.2f} "
        f"(standard error), {last.share:.0%} of the bank expected right"
    )


def test_the_page_tells_what_share_of_the_bank_is_expected_right(report: Report) -> None:
    last = report.session.steps.iloc[-1]
    share_range = shown_range(report.session.draws.mean(axis=1)).replace("to", "and")
    for sentence in (
        f"10 questions asked, {report.asked.is_right.sum()} answered correctly",
        f"to answer {last.share:.0%} correctly, with a probability of 90% between {share_range}",
        f"a training student of whom nothing is known, {report.bank.share.mean():.0%}",
    ):
        assert sentence in report.page.text, sentence


def test_the_page_compares_the_ability_with_the_training_students(report: Report) -> None:
    last = report.session.steps.iloc[-1]
    # The abilities of the training students are standard normal. The 90 % range of the student's
    # ability ends 1.645 standard errors from its mean.
    abilities = last.ability + np.array([-1.645, 0, 1.645]) * last.error
    low, below, high = norm.cdf(abilities)
    ability_and_error = f"is {last.ability:+.2f} with a standard error of {last.error:.2f}"
    for sentence in (
        f"that of about {below:.0%} of the training students (90% range {low:.0%} to {high:.0%})",
        with_minus_signs(ability_and_error),
        f"before the first, it was {report.session.steps.error[0]:.2f}",
    ):
        assert sentence in report.page.text, sentence


def test_the_page_tells_how_the_hidden_answers_came_out(report: Report) -> None:
    p = report.session.hidden_probability
    is_right = report.session.hidden_truth == 1
    is_hit = report.is_hit
    is_unsure = np.abs(p - 0.5) < 0.1
    for sentence in (
        f"{len(p)} further answers of this student were kept back",
        f"{is_hit.sum()} of them ({is_hit.mean():.0%}) came out as expected. {is_right.sum()} are",
        f"{p.sum():.1f} were expected to be",
        f"For {is_unsure.sum()} the probability was between 40% and 60%",
        f"{(is_hit & is_unsure).sum()} of these came out as expected",
    ):
        assert sentence in report.page.text, sentence


def test_the_page_counts_the_hidden_answers_by_prediction_and_outcome(report: Report) -> None:
    is_right = report.session.hidden_truth == 1
    is_expected = report.session.hidden_probability > 0.5
    counts = []
    for expected in (is_expected, ~is_expected):
        # How many of these answers are right, are wrong, and in all.
        cells = [(expected & is_right).sum(), (expected & ~is_right).sum(), expected.sum()]
        counts.append([f"{cell}" for cell in cells])
    rows = report.page.table("How the hidden").rows
    assert [row[1:] for row in rows] == counts


def test_the_page_shows_every_question_asked(kit: Path, report: Report) -> None:
    names = metadata.name_subjects(kit / "data/metadata", np.arange(report.bank.n_questions))
    titles = []
    rows = []
    for number, step in enumerate(report.asked.itertuples(), 1):
        outcome = ("wrong", "right")[step.is_right]
        titles.append(with_minus_signs(f"{number}, {outcome}: {step.ability:z.2f}"))
        # The ability after the answer, and half of its 90 % range.
        ability_after = with_minus_signs(f"{step.ability:+z.2f} ± {1.645 * step.error:.2f}")
        question = f"{number}", names[step.QuestionId], f"{step.QuestionId}", f"{step.expected:.0%}"
        rows.append([*question, outcome, ability_after, f"{step.share:.0%}"])
    # The first mark of the chart is the ability before any question.
    assert report.page.chart("Ability").titles[1:] == titles
    assert report.page.table("The questions, in the order asked").rows == rows


def shares_by_subject(
    kit: Path, report: Report, level: int, fewest: int
) -> list[tuple[float, float, str, np.ndarray]]:
    """Return the subjects of a level with at least `fewest` questions.

    For each subject: the shares of right answers that are expected of the student and of an average
    training student, its name, and its questions. The subject with the smallest share that is
    expected of the student comes first.
    """
    questions = pd.read_csv(kit / "data/metadata/question_metadata_task_3_4.csv")
    questions["SubjectId"] = questions.SubjectId.str.findall(r"\d+")
    questions = questions.explode("SubjectId").astype(int)
    subjects = pd.read_csv(kit / "data/metadata/subject_metadata.csv")
    questions = questions.merge(subjects, on="SubjectId")
    shares = []
    for name, numbers in questions[questions.Level == level].groupby("Name").QuestionId:
        members = numbers.unique()
        if len(members) >= fewest:
            of_student = report.session.probability[members].mean()
            of_training_student = report.bank.share[members].mean()
            shares.append((of_student, of_training_student, name, members))
    return sorted(shares, key=lambda share: share[:3])


@pytest.mark.parametrize(
    ("heading", "level", "fewest"), [("Areas of mathematics", 1, 1), ("Topics", 2, 5)]
)
def test_the_page_shows_what_is_expected_by_subject(
    kit: Path, report: Report, heading: str, level: int, fewest: int
) -> None:
    """Each subject has two marks: the average training student's, and then the student's."""
    titles = []
    for of_student, of_training_student, name, _ in shares_by_subject(kit, report, level, fewest):
        titles += [f"{name}: {of_training_student:.2f}", f"{name}: {of_student:.2f}"]
    assert report.page.chart(heading).titles == titles


def test_the_page_tells_which_topics_were_asked_about_and_least_is_known_about(
    kit: Path, report: Report
) -> None:
    topics = shares_by_subject(kit, report, level=2, fewest=5)
    n_asked = sum(np.isin(members, report.asked.QuestionId).any() for *_, members in topics)
    assert f"{n_asked} of the {len(topics)} topics were asked about" in report.page.text
    draws = {name: report.session.draws[:, members].mean(axis=1) for *_, name, members in topics}
    widest = sorted(draws, key=lambda name: -np.ptp(np.quantile(draws[name], ENDS)))[:3]
    least = "; ".join(f"{name}, {shown_range(draws[name])}" for name in widest)
    assert f"Least is known about: {least}." in report.page.text


def test_flags_set_the_phase_the_mask_and_the_length_of_the_test(kit: Path, tmp_path: Path) -> None:
    """The report is on a student of the private phase, with the mask IsTarget_4.

    The answers are copied to a folder without metadata, so the page knows no subjects.
    """
    name = "test_private_task_4_more_splits.csv"
    shutil.copy(kit / f"data/test_data/{name}", tmp_path)
    private = pd.read_csv(tmp_path / name)
    student = private.UserId.iloc[0]
    flags = [REPORT, "--student", student, "--phase", "private", "--mask", "IsTarget_4"]
    flags += ["--input_dir", tmp_path, "--output_dir", tmp_path]

    # A test of six questions.
    succeeds([*flags, "--questions", 6], kit=kit)
    page = read_page((tmp_path / f"student_{student}.html").read_text())
    targets = private[(private.UserId == student) & (private.IsTarget_4 == 1)].QuestionId
    assert f"{len(targets)} further answers" in page.text
    assert page.table("The questions").column("subject") == ["unknown"] * 6
    assert "there are no metadata of the questions" in page.text
    # Simulated answers are recognised by their rows, wherever the file lies.
    assert "From simulated answers" in page.text

    # A test that ends by precision.
    printed = succeeds([*flags, "--stop_at_error", 0.97], kit=kit)
    # The standard error begins at 1, so 0.97 is soon reached. After how many questions exactly,
    # depends on the trained model.
    assert re.search(r": (1 question|[23] questions), ", printed)
    page = read_page((tmp_path / f"student_{student}.html").read_text())
    assert "until the standard error is at most 0.97, at most 10 questions" in page.text


def test_faults_of_the_flags_are_refused_in_one_line(kit: Path, tmp_path: Path) -> None:
    first = int(pd.read_csv(kit / "data/test_input/valid_task_4.csv").UserId.min())
    examples = rf"expected UserIds of .*valid_task_4.csv, such as {first}, "
    student = ["--student", first]

    def expect(pattern: str, *flags: object) -> None:
        """Run the script with these flags; it must fail with a message that matches the pattern."""
        message = fails([REPORT, "--output_dir", tmp_path / "output", *flags], kit=kit)
        assert re.search(pattern, message), message

    expect(rf"^--student: names nobody, {examples}")
    # 99999 is a second student.
    expect(rf"--student 99999: no such student, {examples}", *student, 99999)
    expect("^--mask IsTarget_3: is not a mask of ", *student, "--mask", "IsTarget_3")
    too_few = rf"UserId {first} has \d+ answers that may be .* at least 500"
    expect(too_few, *student, "--questions", 500)
    assert not (tmp_path / "output").exists()


def test_faults_of_the_package_are_refused_in_one_line(kit: Path, tmp_path: Path) -> None:
    student = int(pd.read_csv(kit / "data/test_input/valid_task_4.csv").UserId.min())
    package = Path(shutil.copytree(kit / PACKAGE, tmp_path / "package"))
    command = [REPORT, "--output_dir", tmp_path / "output", "--student", student]

    def expect(pattern: str) -> None:
        """Run the script with the package as it is now; it must fail with this message."""
        message = fails([*command, "--package", package], kit=kit)
        assert re.search(pattern, message), message

    # The model of another package.
    shutil.copy(kit / "task_4/numpy/model.py", package)
    expect("model.py: has no StudentPosterior, expected the model of task_4/item_response")
    shutil.copy(kit / PACKAGE / "model.py", package)

    (package / "model_task_4_item_response.npz").write_bytes(b"damaged")
    expect("its weights cannot be read")

    # A model that was trained on all students, also those of the report.
    succeeds([package / "train_model.py"], kit=kit)
    expect(r"its model is trained on UserId .*`train_model.py --local`")

    # A model that was never trained.
    for path in package.glob("model_task_4*"):
        path.unlink()
    expect(f"`python {package}/train_model.py` writes")
    assert not (tmp_path / "output").exists()
