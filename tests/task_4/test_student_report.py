"""Task 4's page about a student: figures compared with known ones, and whole runs."""

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
# The ends of a 90 % range, as quantiles: 5 % of the values lie below the range and 5 % above it.
ENDS = (0.05, 0.95)
(MODEL,) = load_package("item_response")


def bank_of(slopes: Any, **changes: Any) -> Bank:
    """Return a bank of questions with these slopes (discriminations)."""
    return Bank(MODEL, plain_model(MODEL, slopes, **changes))


# In the next tests, all questions have P(right) = 0.2 + 0.8 · sigmoid(SLOPE · ability), and the
# prior of a student's ability is standard normal. So Bayes' rule on a grid of abilities gives the
# posterior after some answers. The tests compare it with the one that the report computes.
SLOPE = 1.5
ABILITIES = np.linspace(-6, 6, 2001)
P_RIGHT = 0.2 + 0.8 / (1 + np.exp(-SLOPE * ABILITIES))
# The answers of three students (rows) to 40 questions (columns): 1 if right, else 0. The first
# student is wrong on every second question (0, 2, 4, ...), the second student on every third
# question, and the third student on every fifth question.
RIGHT = (np.arange(40) % np.array([[2], [3], [5]]) > 0).astype(int)


def posterior_mean(values: Any, density: Any) -> Any:
    """Return the mean of a function of the ability, given its values on the grid `ABILITIES`.

    The last axis of `values` is the grid; `values` may have further axes before it. The density of
    the ability on the grid need not add up to 1.
    """
    return np.average(values, axis=-1, weights=density)


def density_after(answers: Any) -> Any:
    """Return the posterior density of a student's ability on the grid `ABILITIES`.

    The student has given `answers` (1 if right, else 0). The density is not scaled: it does not add
    up to 1.
    """
    density = np.exp(-(ABILITIES**2) / 2)
    for is_right in answers:
        density *= P_RIGHT if is_right else 1 - P_RIGHT
    return density


@pytest.fixture(scope="module")
def sessions() -> dict[int, Session]:
    """Ask each of the three students two questions; the last ten answers of each are hidden.

    Only two questions are asked. After the third, the model would use the answers of all students
    to estimate another prior of the ability than the standard normal one, unlike the grid.
    """
    bank = bank_of(np.full((40, 1), SLOPE), guessing=0.2)
    # `logit_deviation` is the standard deviation over students of the mean logit of the bank. Each
    # of the 40 questions has the logit SLOPE · ability, and the ability has the standard deviation
    # 1. So the result is SLOPE.
    assert bank.logit_deviation == pytest.approx(SLOPE)
    reference = as_reference(RIGHT, np.tile(np.arange(40) >= 30, (3, 1)))
    return ability.ask(bank, reference, "mask", rows=[0, 1, 2], n_questions=2)


@pytest.mark.parametrize("student", [0, 1, 2])
def test_the_ability_after_each_answer_agrees_with_numerical_integration(
    sessions: dict[int, Session], student: int
) -> None:
    """A session's table `steps` has a row for each number of answers so far: 0, 1 and 2.

    A row holds the posterior mean of the ability, its standard error, and the share of the
    questions that the student is expected to answer correctly.
    """
    steps = sessions[student].steps
    assert len(steps) == 3
    answers = steps.is_right[1:]
    # The index of the table `steps` is the number of answers so far.
    for n_answers, step in steps.iterrows():
        density = density_after(answers[:n_answers])
        mean = posterior_mean(ABILITIES, density)
        variance = posterior_mean((ABILITIES - mean) ** 2, density)
        share = posterior_mean(P_RIGHT, density)
        # The model approximates the posterior by a normal distribution. So allow small differences.
        assert step.ability == pytest.approx(mean, abs=0.03)
        assert step.error == pytest.approx(np.sqrt(variance), abs=0.03)
        assert step.share == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize("student", [0, 1, 2])
def test_the_answer_expected_agrees_with_numerical_integration(
    sessions: dict[int, Session], student: int
) -> None:
    asked = sessions[student].steps[1:]
    for n_earlier, step in enumerate(asked.itertuples()):
        assert step.is_right == RIGHT[student, int(step.QuestionId)]
        density_before = density_after(asked.is_right[:n_earlier])
        assert step.expected == pytest.approx(posterior_mean(P_RIGHT, density_before), abs=0.01)


@pytest.mark.parametrize("student", [0, 1, 2])
def test_the_draws_of_p_right_have_the_quantiles_of_the_posterior(
    sessions: dict[int, Session], student: int
) -> None:
    session = sessions[student]
    density = density_after(session.steps.is_right[1:])
    share_below = np.cumsum(density) / density.sum()
    expected = np.interp(ENDS, share_below, P_RIGHT)
    drawn = np.quantile(session.draws.mean(axis=1), ENDS)
    assert drawn == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("student", [0, 1, 2])
def test_the_number_of_right_hidden_answers_is_binomial_given_the_ability(
    sessions: dict[int, Session], student: int
) -> None:
    """Given the ability, the number of right answers among ten hidden ones is binomial.

    `session.hidden_counts` holds many random draws of this number from the posterior. They must be
    distributed like the mean of the binomial distributions, weighted by the posterior of the
    ability.
    """
    session = sessions[student]
    density = density_after(session.steps.is_right[1:])
    n_hidden = 10
    # A row for each possible number of right answers: 0, 1, ..., 10.
    n_right = np.arange(n_hidden + 1)[:, None]
    # The probability of each number of right answers (rows), at each ability of the grid (columns).
    p_by_ability = binom.pmf(n_right, n_hidden, P_RIGHT)
    expected_shares = posterior_mean(p_by_ability, density)
    # `hidden_counts` has one number of right hidden answers for each posterior draw. Compute the
    # share of the draws with 0, 1, ..., 10 right hidden answers.
    n_draws_by_count = np.bincount(session.hidden_counts, minlength=n_hidden + 1)
    drawn_shares = n_draws_by_count / ability.N_DRAWS
    assert drawn_shares == pytest.approx(expected_shares, abs=0.03)


def test_a_test_that_ends_early_is_the_beginning_of_a_longer_one() -> None:
    """A test of a student may end early: when the standard error of the ability is small enough.

    Up to its end, it must equal a test of twelve questions with the same student. A test is a
    session in the code. Its table `steps` has a row for the time before the first question, and a
    row for the time after each question.
    """
    n_students, n_questions = 25, 60
    rng = np.random.default_rng(2)
    bank = bank_of(rng.exponential(1, (n_questions, 1)))
    # About 60 % of the answers are right, and about 20 % are hidden.
    is_right = rng.random((n_students, n_questions)) < 0.6
    is_hidden = rng.random((n_students, n_questions)) < 0.2
    reference = as_reference(is_right, is_hidden)
    rows = range(n_students)

    whole = ability.ask(bank, reference, "mask", rows, n_questions=12)
    stopped = ability.ask(bank, reference, "mask", rows, n_questions=12, stop_at_error=0.45)

    # The tests of the students have different lengths.
    assert len({len(session.steps) for session in stopped.values()}) > 1
    for row, session in stopped.items():
        # The test ends at the first standard error of at most 0.45, or after twelve questions.
        *earlier_errors, last_error = session.steps.error
        n_asked = len(session.steps) - 1
        assert n_asked == 12 or last_error <= 0.45
        assert min(earlier_errors) > 0.45

        beginning_of_whole = whole[row].steps[: len(session.steps)]
        pd.testing.assert_frame_equal(session.steps, beginning_of_whole)
        # `probability` holds P(right) of each question at the end of the test. Its mean over the
        # questions is the column `share` in the last row, which follows the last answer.
        assert session.probability.mean() == pytest.approx(session.steps.share.iloc[-1])


@pytest.mark.parametrize(
    ("n_questions_of_file", "hidden_questions"),
    [
        # The file has questions 0 to 25. The bank has only 0 to 19. Hidden are 18 and 19, which are
        # in the bank, and 20 and 21, which are not. All other questions of the file are asked.
        (26, [18, 19, 20, 21]),
        # The file has questions 0 to 9. It lacks questions 10 to 19 of the bank.
        (10, [8, 9]),
    ],
)
def test_the_ability_is_the_mean_over_the_whole_bank(
    n_questions_of_file: int, hidden_questions: list[int]
) -> None:
    """A student's ability and share are means over the questions of the bank, here 0 to 19.

    The share is the expected share of right answers. The bank is the set of questions that the
    model knows. The file of answers has more questions or fewer. The answers to the
    `hidden_questions` are hidden, and these questions are never asked.
    """
    rng = np.random.default_rng(0)
    slopes = rng.normal(size=(20, 2))
    # Any matrix times its transpose is a valid covariance of the effects of quizzes.
    quiz = rng.normal(size=(20, 20)) / 5
    bank = bank_of(slopes, intercept=rng.normal(size=20), quiz_covariance=quiz @ quiz.T)
    # Two students have answered all questions of the file correctly.
    is_right = np.ones((2, n_questions_of_file), bool)
    # Both students have the same hidden answers.
    is_hidden = np.tile(np.isin(np.arange(n_questions_of_file), hidden_questions), (2, 1))
    reference = as_reference(is_right, is_hidden)

    # Ask the first student all questions whose answers are not hidden.
    askable = set(range(n_questions_of_file)) - set(hidden_questions)
    # `ask` returns the session (the record of the test) of each student in `rows`. These are rows
    # of `reference`.
    sessions = ability.ask(bank, reference, "mask", rows=[0], n_questions=len(askable))
    session = sessions[0]
    # `steps` has a row for the time before the test, then a row for each question asked.
    assert set(session.steps.QuestionId[1:]) == askable

    # Before any answer, a student counts as any one of the training students. The estimate of the
    # ability is the mean of their abilities (0), and its standard error is the standard deviation
    # of their abilities (1). The expected share of right answers is the mean of their shares.
    before_answers = session.steps.loc[0, ["ability", "error", "share"]].tolist()
    assert before_answers == pytest.approx([0, 1, bank.share.mean()], abs=1e-3)

    # `probability` has P(right) of each of the 20 questions of the bank. Each row of `draws` has
    # such probabilities, too, drawn at random from the posterior.
    assert session.probability.shape == (20,)
    assert session.draws.shape[1:] == (20,)
    # All hidden answers count, even answers to questions that the bank lacks. `hidden_counts` has a
    # number for each random draw: how many hidden answers are right. In some draws, all are right.
    assert len(session.hidden_truth) == len(hidden_questions)
    assert session.hidden_counts.max() == len(hidden_questions)


@pytest.fixture(scope="module")
def kit(split_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a kit with the package trained on its local split and scored; tests only read it."""
    kit = Path(shutil.copytree(split_kit, tmp_path_factory.mktemp("student_report") / "kit"))
    succeeds([f"{PACKAGE}/train_model.py", "--local"], kit=kit)
    succeeds([f"{PACKAGE}/local_evaluation.py", "--skip_curve"], kit=kit)
    return kit


@dataclass(frozen=True)
class Played:
    """The trained bank of questions, and the session (test) of every student of the local split."""

    bank: Bank
    session_by_student: dict[int, Session]


@pytest.fixture(scope="module")
def played(kit: Path) -> Played:
    """Let the trained model ask every student of the local split ten questions."""
    bank = ability.load_bank(kit / PACKAGE)
    reference = read_reference(kit / "data/test_input/valid_task_4.csv", bank.n_questions)
    rows = range(len(reference.student))
    sessions = ability.ask(bank, reference, "IsTarget", rows, n_questions=10).values()
    return Played(bank, dict(zip(reference.student.tolist(), sessions, strict=True)))


def test_the_report_asks_what_the_evaluation_asks(kit: Path, played: Played) -> None:
    """The report asks a student the same questions as the evaluation of the package, in this order.

    The evaluation has written its questions to a CSV file.
    """
    sequences = pd.read_csv(kit / "data/test_output/sequence_task_4.csv")
    asked: list[int] = []
    for session in played.session_by_student.values():
        asked += session.steps.QuestionId[1:].tolist()
    assert asked == sequences.QuestionId.tolist()


def test_the_report_predicts_what_the_evaluation_scores(kit: Path, played: Played) -> None:
    """The share of the report's right predictions is the score of the package's evaluation.

    The fixture `kit` has run the evaluation, which has written the score to scores_task_4.txt.
    """
    sessions = played.session_by_student.values()
    is_prediction_right = [
        (session.hidden_probability > 0.5) == session.hidden_truth for session in sessions
    ]
    score = (kit / "data/test_output/scores_task_4.txt").read_text().removeprefix("score:")
    assert np.concatenate(is_prediction_right).mean() == pytest.approx(float(score))


def with_minus_signs(text: str) -> str:
    """Return a text with minus signs (−) in place of hyphens, as in the numbers on the page."""
    return text.replace("-", "−")


def shown_range(draws: Any) -> str:
    """Return the 90 % range of the draws as the page shows it, such as "40% to 62%"."""
    low, high = np.quantile(draws, ENDS)
    return f"{low:.0%} to {high:.0%}"


@dataclass(frozen=True)
class Report:
    """The report on a student of the local split, and the figures that it must show."""

    student: int
    # The line that the script prints about the student.
    line: str
    page: Page
    session: Session
    bank: Bank
    # The table mastery.csv, which the script has written in the run for two students.
    mastery: pd.DataFrame

    @property
    def asked(self) -> pd.DataFrame:
        """The questions asked, in order."""
        return self.session.steps[1:]

    @property
    def is_prediction_right(self) -> Any:
        """Whether each hidden answer is predicted right.

        The prediction is the more probable outcome.
        """
        return (self.session.hidden_probability > 0.5) == self.session.hidden_truth


@pytest.fixture(scope="module")
def report(kit: Path, played: Played, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Return the report on one student.

    The script runs twice, first for two students and then for this student alone. It must write
    the same page of the student both times.
    """
    sessions = played.session_by_student
    # Choose any two students.
    _, student, _, other_student, *_ = sessions
    folder = tmp_path_factory.mktemp("report")
    path = folder / f"student_{student}.html"
    command = [REPORT, "--output_dir", folder, "--student"]

    printed = succeeds([*command, other_student, student], kit=kit)
    page_beside_other = path.read_bytes()
    mastery = pd.read_csv(folder / "mastery.csv")
    succeeds([*command, student], kit=kit)
    page_alone = path.read_bytes()
    assert page_alone == page_beside_other

    # A line is printed for each student: first for `other_student`, then for `student`.
    line_of_student = printed.splitlines()[1]
    return Report(
        student=student,
        line=line_of_student,
        page=read_page(page_alone.decode()),
        session=sessions[student],
        bank=played.bank,
        mastery=mastery,
    )


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
    """The page tells what share of the training students has a lower ability than the student.

    It also tells the student's ability, with its standard error before and after the test.
    """
    last = report.session.steps.iloc[-1]
    # The student's 90 % range of ability reaches from 1.645 standard errors below the mean to 1.645
    # standard errors above it. Put its lower end, the mean and its upper end into an array.
    low_mean_high = last.ability + np.array([-1.645, 0, 1.645]) * last.error
    # The abilities of the training students are standard normal. So the normal distribution
    # function gives the share of the training students whose ability is lower.
    low, share_below, high = norm.cdf(low_mean_high)
    ability_and_error = f"is {last.ability:+.2f} with a standard error of {last.error:.2f}"
    error_before_test = report.session.steps.error[0]
    for part_of_sentence in (
        f"that of about {share_below:.0%} of the training students "
        f"(90% range {low:.0%} to {high:.0%})",
        with_minus_signs(ability_and_error),
        f"before the first, it was {error_before_test:.2f}",
    ):
        assert part_of_sentence in report.page.text, part_of_sentence


def test_the_page_tells_how_the_hidden_answers_came_out(report: Report) -> None:
    """The page tells how many hidden answers of the student the model has predicted right.

    It also counts these among the unsure predictions, with probabilities between 40 % and 60 %.
    """
    p_right = report.session.hidden_probability
    is_prediction_right = report.is_prediction_right
    n_as_expected = is_prediction_right.sum()
    share_as_expected = is_prediction_right.mean()
    n_right = (report.session.hidden_truth == 1).sum()
    n_expected_right = p_right.sum()
    is_unsure = np.abs(p_right - 0.5) < 0.1
    n_unsure_as_expected = (is_prediction_right & is_unsure).sum()
    for part_of_sentence in (
        f"{len(p_right)} further answers of this student were kept back",
        f"{n_as_expected} of them ({share_as_expected:.0%}) came out as expected. {n_right} are",
        f"{n_expected_right:.1f} were expected to be",
        f"For {is_unsure.sum()} the probability was between 40% and 60%",
        f"{n_unsure_as_expected} of these came out as expected",
    ):
        assert part_of_sentence in report.page.text, part_of_sentence


def test_the_page_counts_the_hidden_answers_by_prediction_and_outcome(report: Report) -> None:
    is_right = report.session.hidden_truth == 1
    is_expected = report.session.hidden_probability > 0.5
    counts = []
    for expected in (is_expected, ~is_expected):
        # A row of the table: the number of right answers, of wrong answers, and of all answers.
        cells = [(expected & is_right).sum(), (expected & ~is_right).sum(), expected.sum()]
        counts.append([f"{cell}" for cell in cells])
    rows = report.page.table("How the hidden").rows
    assert [row[1:] for row in rows] == counts


def test_the_page_shows_every_question_asked(kit: Path, report: Report) -> None:
    """The chart has a mark for each question asked, and the table has a row for each.

    Both show the ability after the answer. The table also shows the subject, P(right) before the
    answer, the outcome, and the share of the bank that the student is expected to answer correctly.
    """
    subjects = metadata.name_subjects(kit / "data/metadata", np.arange(report.bank.n_questions))
    # In the formats below, z writes a rounded -0.00 as 0.00, as the page does.
    expected_titles = []
    expected_rows = []
    for number, step in enumerate(report.asked.itertuples(), start=1):
        outcome = "right" if step.is_right else "wrong"
        expected_titles.append(with_minus_signs(f"{number}, {outcome}: {step.ability:z.2f}"))
        # The 90 % range of the ability after the answer reaches this far to both sides.
        half_range = 1.645 * step.error
        cells = [
            f"{number}",
            subjects[step.QuestionId],
            f"{step.QuestionId}",
            f"{step.expected:.0%}",
            outcome,
            with_minus_signs(f"{step.ability:+z.2f} ± {half_range:.2f}"),
            f"{step.share:.0%}",
        ]
        expected_rows.append(cells)
    # The first mark of the chart is the ability before any question.
    assert report.page.chart("Ability").titles[1:] == expected_titles
    assert report.page.table("The questions, in the order asked").rows == expected_rows


@dataclass(frozen=True)
class Subject:
    """A subject, and the shares of its questions that students are expected to answer correctly."""

    name: str
    # The QuestionIds of the subject's questions.
    questions: np.ndarray
    # The share of these questions that the student of the report is expected to answer correctly.
    share_of_student: float
    # The same share for an average training student.
    share_of_average: float


def expected_subjects(kit: Path, report: Report, level: int, fewest: int) -> list[Subject]:
    """Return the subjects of one level that have at least `fewest` questions.

    Subjects form a tree, and `level` is a level of this tree. The subjects are in the order of the
    page, by the share of their questions that the student is expected to answer correctly, the
    smallest share first. If these shares are equal, the share of the average student decides, and
    then the name.
    """
    questions = pd.read_csv(kit / "data/metadata/question_metadata_task_3_4.csv")
    # The SubjectId of a question is a list, such as "[3, 71]". Make a row for each question and
    # subject.
    questions["SubjectId"] = questions.SubjectId.str.findall(r"\d+")
    question_subjects = questions.explode("SubjectId").astype(int)
    subjects = pd.read_csv(kit / "data/metadata/subject_metadata.csv")
    question_subjects = question_subjects.merge(subjects, on="SubjectId")
    of_level = question_subjects[question_subjects.Level == level]
    found = []
    for name, rows_of_subject in of_level.groupby("Name"):
        question_ids = rows_of_subject.QuestionId.unique()
        if len(question_ids) < fewest:
            continue
        found.append(
            Subject(
                name=str(name),
                questions=question_ids,
                share_of_student=report.session.probability[question_ids].mean(),
                share_of_average=report.bank.share[question_ids].mean(),
            )
        )

    def rank(subject: Subject) -> tuple[float, float, str]:
        return subject.share_of_student, subject.share_of_average, subject.name

    return sorted(found, key=rank)


@pytest.mark.parametrize(
    ("heading", "level", "fewest"), [("Areas of mathematics", 1, 1), ("Topics", 2, 5)]
)
def test_the_page_shows_what_is_expected_by_subject(
    kit: Path, report: Report, heading: str, level: int, fewest: int
) -> None:
    """Each subject has two marks in the chart.

    The first mark is for the average training student, and the second for the student.
    """
    titles = []
    for subject in expected_subjects(kit, report, level, fewest):
        titles.append(f"{subject.name}: {subject.share_of_average:.2f}")
        titles.append(f"{subject.name}: {subject.share_of_student:.2f}")
    assert report.page.chart(heading).titles == titles


def test_the_page_tells_how_many_topics_were_asked_about(kit: Path, report: Report) -> None:
    topics = expected_subjects(kit, report, level=2, fewest=5)
    n_asked = 0
    for topic in topics:
        if np.isin(topic.questions, report.asked.QuestionId).any():
            n_asked += 1
    assert f"{n_asked} of the {len(topics)} topics were asked about" in report.page.text


def test_the_page_names_the_topics_with_the_least_certain_shares(kit: Path, report: Report) -> None:
    """The page names the three topics for which the 90 % range of the share is widest.

    The share of a topic is the share of its questions that the student is expected to answer
    correctly. A row of `session.draws` is a draw from the posterior: P(right) of each question.
    `ENDS` are the quantiles at the ends of the range, 0.05 and 0.95.
    """
    topics = expected_subjects(kit, report, level=2, fewest=5)
    # Each draw from the posterior gives a share of each topic.
    drawn_shares = {}
    for topic in topics:
        drawn_shares[topic.name] = report.session.draws[:, topic.questions].mean(axis=1)

    def width_of_range(name: str) -> float:
        low, high = np.quantile(drawn_shares[name], ENDS)
        return float(high - low)

    widest = sorted(drawn_shares, key=width_of_range, reverse=True)[:3]
    # Such as "Algebra, 40% to 62%; Angles, 51% to 70%; ...".
    least_known = "; ".join(f"{name}, {shown_range(drawn_shares[name])}" for name in widest)
    assert f"Least is known about: {least_known}." in report.page.text


def test_a_table_has_the_shares_of_all_students(kit: Path, report: Report) -> None:
    """The report on two students writes a table with a row for each student and each subject.

    A row holds the share of the subject's questions that the student is expected to answer
    correctly, the 90 % range of this share (Low, High), and how many of the questions were asked.
    """
    table = report.mastery
    assert table.UserId.nunique() == 2
    rows_of_student = table[table.UserId == report.student]
    # The table has all areas of mathematics (level 1), and the topics (level 2) with at least 5
    # questions.
    subjects = expected_subjects(kit, report, level=1, fewest=1)
    subjects += expected_subjects(kit, report, level=2, fewest=5)
    subject_by_name = {subject.name: subject for subject in subjects}
    assert sorted(rows_of_student.Name) == sorted(subject_by_name)
    for row in rows_of_student.itertuples():
        subject = subject_by_name[row.Name]
        assert row.Share == pytest.approx(subject.share_of_student, abs=1e-4)
        # Each draw of P(right) from the posterior gives a share; ENDS are the ends of its range.
        drawn_shares = report.session.draws[:, subject.questions].mean(axis=1)
        low, high = np.quantile(drawn_shares, ENDS)
        assert (row.Low, row.High) == pytest.approx((low, high), abs=1e-4)
        is_asked = np.isin(subject.questions, report.asked.QuestionId)
        assert row.Answers == is_asked.sum()
    # Each row has the name and the level that the metadata give to its SubjectId.
    metadata_by_subject = pd.read_csv(
        kit / "data/metadata/subject_metadata.csv", index_col="SubjectId"
    )
    expected = metadata_by_subject.loc[rows_of_student.SubjectId]
    assert (expected["Name"].to_numpy() == rows_of_student.Name).all()
    assert (expected["Level"].to_numpy() == rows_of_student.Level).all()


@dataclass(frozen=True)
class PrivateStudent:
    """A student of the private phase, with the flags that ask for the report on this student."""

    student: int
    # The answers of the private phase.
    answers: pd.DataFrame
    # The script and its flags. One flag names the mask IsTarget_4, a column of the answers that
    # says which of them are hidden.
    command: list[Any]
    # The page that the script writes.
    page: Path


@pytest.fixture
def private_student(kit: Path, tmp_path: Path) -> PrivateStudent:
    """Copy the answers of the private phase to a folder without metadata; choose one student."""
    name = "test_private_task_4_more_splits.csv"
    shutil.copy(kit / f"data/test_data/{name}", tmp_path)
    answers = pd.read_csv(tmp_path / name)
    student = answers.UserId.iloc[0]
    command = [REPORT, "--student", student, "--phase", "private", "--mask", "IsTarget_4"]
    command += ["--input_dir", tmp_path, "--output_dir", tmp_path]
    return PrivateStudent(student, answers, command, tmp_path / f"student_{student}.html")


def test_flags_set_the_phase_the_mask_and_the_number_of_questions(
    kit: Path, private_student: PrivateStudent
) -> None:
    """The page follows the flags --phase private, --mask IsTarget_4 and --questions 6.

    The command of `private_student` has the first two flags. A mask is a column of the file of
    answers. It says which answers are hidden from the model.

    The file of answers lies in a folder without metadata, so the script does not know the subjects
    of the questions. It cannot write the table of subjects, mastery.csv, and therefore removes the
    table that an earlier run has left.
    """
    # Act as if an earlier run had left its table of subjects beside the page.
    table = private_student.page.parent / "mastery.csv"
    table.write_text("UserId,Level,SubjectId,Name,Answers,Share,Low,High\n")

    printed = succeeds([*private_student.command, "--questions", 6], kit=kit)
    page = read_page(private_student.page.read_text())

    answers = private_student.answers
    own_answers = answers[answers.UserId == private_student.student]
    n_hidden = own_answers.IsTarget_4.sum()
    assert f"{n_hidden} further answers" in page.text
    # Six questions are asked. Without metadata, the page knows no subjects.
    assert page.table("The questions").column("subject") == ["unknown"] * 6
    assert "there are no metadata of the questions" in page.text
    assert f"removed: {table}, of an earlier run; there are no subjects now\n" in printed
    assert not table.exists()
    # The kit recognises simulated answers by their rows, wherever the file lies.
    assert "From simulated answers" in page.text


def test_a_test_may_end_by_precision(kit: Path, private_student: PrivateStudent) -> None:
    printed = succeeds([*private_student.command, "--stop_at_error", 0.97], kit=kit)
    # The standard error is 1 before the test, so it soon falls to 0.97. The number of questions
    # until then depends on the trained model.
    assert re.search(r": (1 question|[23] questions), ", printed)
    page = read_page(private_student.page.read_text())
    assert "until the standard error is at most 0.97, at most 10 questions" in page.text


@pytest.fixture(scope="module")
def first_student(kit: Path) -> int:
    """Return the smallest UserId of the local split."""
    return int(pd.read_csv(kit / "data/test_input/valid_task_4.csv").UserId.min())


# In the flags and patterns, FIRST stands for the smallest UserId of the local split.
@pytest.mark.parametrize(
    ("flags", "pattern"),
    [
        pytest.param(
            "",
            "^--student: names nobody, expected UserIds of .*valid_task_4.csv, such as FIRST, ",
            id="no student",
        ),
        pytest.param(
            "--student FIRST 99999",
            "--student 99999: no such student, expected UserIds of .*valid_task_4.csv, such as "
            "FIRST, ",
            id="no such student",
        ),
        pytest.param(
            "--student FIRST --mask IsTarget_3",
            "^--mask IsTarget_3: is not a mask of ",
            id="no such mask",
        ),
        pytest.param(
            "--student FIRST --questions 500",
            r"UserId FIRST has \d+ answers that may be .* at least 500",
            id="too many questions",
        ),
    ],
)
def test_faults_of_the_flags_are_refused_in_one_line(
    kit: Path, first_student: int, tmp_path: Path, flags: str, pattern: str
) -> None:
    words = flags.replace("FIRST", str(first_student)).split()
    message = fails([REPORT, "--output_dir", tmp_path / "output", *words], kit=kit)
    assert re.search(pattern.replace("FIRST", str(first_student)), message), message
    assert not (tmp_path / "output").exists()


@pytest.fixture
def package(kit: Path, tmp_path: Path) -> Path:
    """Return a copy of the trained package that the test may change."""
    return Path(shutil.copytree(kit / PACKAGE, tmp_path / "package"))


def expect_refusal(kit: Path, package: Path, student: int, pattern: str) -> None:
    """Run the script with a package whose model it must refuse; check that it writes no report.

    The script is to report on the student `student`. `pattern` is a regular expression for the
    message that it must print.
    """
    output = package.with_name("output")
    flags = ["--package", package, "--student", student, "--output_dir", output]
    message = fails([REPORT, *flags], kit=kit)
    assert re.search(pattern, message), message
    assert not output.exists()


def test_a_package_with_the_model_of_another_one_is_refused(
    kit: Path, package: Path, first_student: int
) -> None:
    shutil.copy(kit / "task_4/numpy/model.py", package)
    fault = "model.py: has no StudentPosterior, expected the model of task_4/item_response"
    expect_refusal(kit, package, first_student, fault)


def test_a_package_with_damaged_weights_is_refused(
    kit: Path, package: Path, first_student: int
) -> None:
    (package / "model_task_4_item_response.npz").write_bytes(b"damaged")
    expect_refusal(kit, package, first_student, "its weights cannot be read")


def test_a_package_that_knows_the_student_is_refused(
    kit: Path, package: Path, first_student: int
) -> None:
    """A report is refused if the model has learned from answers of the student.

    Here the package is trained on all students, including those of the local split.
    """
    succeeds([package / "train_model.py"], kit=kit)
    fault = r"its model is trained on UserId .*`train_model.py --local`"
    expect_refusal(kit, package, first_student, fault)


def test_a_package_that_was_never_trained_is_refused(
    kit: Path, package: Path, first_student: int
) -> None:
    for path in package.glob("model_task_4*"):
        path.unlink()
    fault = f"`python {package}/train_model.py` writes"
    expect_refusal(kit, package, first_student, fault)
