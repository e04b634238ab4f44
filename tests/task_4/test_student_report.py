"""Task 4's page on a student: its figures by known answers, the script as a user runs it."""

import re
import shutil
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
from page_reading import read_page
from scipy.stats import binom, norm
from task_4_models import as_reference, load_package, plain_model

PACKAGE = "task_4/item_response"
REPORT = "task_4/student_report.py"
ENDS = (0.05, 0.95)
(MODEL,) = load_package("item_response")


def bank_of(slopes: Any, **changes: Any) -> Bank:
    return Bank(MODEL, plain_model(MODEL, slopes, **changes))


def test_ability_agrees_with_numerical_integration() -> None:
    """In one dimension, with the same slope everywhere, the mean logit is slope times ability."""
    slope = 1.5
    bank = bank_of(np.full((40, 1), slope), guessing=0.2)
    assert bank.logit_deviation == pytest.approx(slope)
    right = (np.arange(40) % np.array([[2], [3], [5]]) > 0).astype(int)
    targets = np.tile(np.arange(40) >= 30, (3, 1))
    # Two answers: after three, the difference between the students is estimated as well.
    sessions = ability.ask(bank, as_reference(right, targets), "mask", [0, 1, 2], 2)
    grid = np.linspace(-6, 6, 2001)
    p = 0.2 + 0.8 / (1 + np.exp(-slope * grid))
    for row, session in sessions.items():
        assert len(session.steps) == 3
        density = np.exp(-(grid**2) / 2)
        for n, step in session.steps.iterrows():
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
        drawn = np.quantile(session.draws.mean(axis=1), ENDS)
        assert drawn == pytest.approx(np.interp(ENDS, below, p), abs=0.03)
        counts = np.bincount(session.hidden_counts, minlength=11) / ability.N_DRAWS
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
    assert len({len(session.steps) for session in stopped.values()}) > 1
    for row, session in stopped.items():
        *before, error = session.steps.error
        assert len(before) == 12 or error <= 0.45
        assert min(before) > 0.45
        known = whole[row].steps[: len(session.steps)]
        pd.testing.assert_frame_equal(session.steps, known)
        assert session.probability.mean() == pytest.approx(session.steps.share.iloc[-1])


@pytest.mark.parametrize(("n_columns", "targets"), [(26, [18, 19, 20, 21]), (10, [8, 9])])
def test_questions_that_the_bank_or_the_file_lacks(n_columns: int, targets: list[int]) -> None:
    """The former may be asked and hidden; the ability is that over the whole bank, nothing else.

    A student of whom nothing is known is a training student: at the mean, with their deviation.
    """
    rng = np.random.default_rng(0)
    slopes, quiz = rng.normal(size=(20, 2)), rng.normal(size=(20, 20)) / 5
    bank = bank_of(slopes, intercept=rng.normal(size=20), quiz_covariance=quiz @ quiz.T)
    columns = np.tile(np.arange(n_columns), (2, 1))
    reference = as_reference(columns >= 0, np.isin(columns, targets))
    askable = set(range(n_columns)) - set(targets)
    session = ability.ask(bank, reference, "mask", [0], len(askable))[0]
    assert set(session.steps.QuestionId[1:]) == askable
    first = session.steps.loc[0, ["ability", "error", "share"]].tolist()
    assert first == pytest.approx([0, 1, bank.share.mean()], abs=1e-3)
    assert session.probability.shape == session.draws.shape[1:] == (20,)
    assert len(session.hidden_truth) == session.hidden_counts.max() == len(targets)


@pytest.fixture(scope="module")
def kit(split_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kit with the package trained on its local split and scored: tests only read from it."""
    kit = Path(shutil.copytree(split_kit, tmp_path_factory.mktemp("student_report") / "kit"))
    succeeds([f"{PACKAGE}/train_model.py", "--local"], kit=kit)
    succeeds([f"{PACKAGE}/local_evaluation.py", "--skip_curve"], kit=kit)
    return kit


@pytest.fixture(scope="module")
def played(kit: Path) -> tuple[Bank, dict[int, Session]]:
    """The trained bank, and how the questions went for all students of the local split."""
    bank = ability.load_bank(kit / PACKAGE)
    reference = read_reference(kit / "data/test_input/valid_task_4.csv", bank.n_questions)
    rows = range(len(reference.student))
    sessions = ability.ask(bank, reference, "IsTarget", rows, 10).values()
    return bank, dict(zip(reference.student.tolist(), sessions, strict=True))


def test_asks_and_predicts_what_the_evaluation_scores(kit: Path, played: Any) -> None:
    """The same questions of every student, and the same share of hidden answers right."""
    sessions = played[1].values()
    sequences = pd.read_csv(kit / "data/test_output/sequence_task_4.csv")
    asked = [question for session in sessions for question in session.steps.QuestionId[1:]]
    assert asked == sequences.QuestionId.tolist()
    hits = np.concatenate([(c.hidden_probability > 0.5) == c.hidden_truth for c in sessions])
    score = (kit / "data/test_output/scores_task_4.txt").read_text().removeprefix("score:")
    assert hits.mean() == pytest.approx(float(score))


def minus(text: str) -> str:
    return text.replace("-", "−")


def middle(draws: Any) -> str:
    """Return the range of the middle 90%."""
    return "{:.0%} to {:.0%}".format(*np.quantile(draws, ENDS))


def test_the_page_says_what_the_figures_say(kit: Path, played: Any, tmp_path: Path) -> None:
    bank, sessions = played
    student, other = list(sessions)[1], list(sessions)[3]
    report = [REPORT, "--output_dir", tmp_path, "--student"]
    printed = succeeds([*report, other, student], kit=kit)
    path = tmp_path / f"student_{student}.html"
    before, page, session = path.read_bytes(), read_page(path.read_text()), sessions[student]
    # Who else is asked for changes nothing.
    succeeds([*report, student], kit=kit)
    assert path.read_bytes() == before
    assert "From simulated answers" in page.text
    assert dict(page.tables[0].rows) == {
        "Students": "data/test_input/valid_task_4.csv, IsTarget",
        "Test": "10 questions",
        "Weights trained by": f"python {PACKAGE}/train_model.py --local",
    }

    asked, last = session.steps[1:], session.steps.iloc[-1]
    assert printed.splitlines()[1] == (
        f"UserId {student}: 10 questions, ability {last.ability:+.2f} ± {last.error:.2f} "
        f"(standard error), {last.share:.0%} of the bank expected right"
    )
    low, below, high = norm.cdf(last.ability + np.array([-1.645, 0, 1.645]) * last.error)
    p, truth = session.hidden_probability, session.hidden_truth
    is_hit, is_unsure = (p > 0.5) == truth, np.abs(p - 0.5) < 0.1
    for sentence in (
        f"10 questions asked, {asked.is_right.sum()} answered correctly",
        f"to answer {last.share:.0%} correctly, with a probability of 90% between "
        + middle(session.draws.mean(axis=1)).replace("to", "and"),
        f"a training student of whom nothing is known, {bank.share.mean():.0%}",
        f"that of about {below:.0%} of the training students (90% range {low:.0%} to {high:.0%})",
        minus(f"is {last.ability:+.2f} with a standard error of {last.error:.2f}"),
        f"before the first, it was {session.steps.error[0]:.2f}",
        f"{len(p)} further answers of this student were kept back",
        f"{is_hit.sum()} of them ({is_hit.mean():.0%}) came out as expected. {truth.sum()} are",
        f"{p.sum():.1f} were expected to be",
        f"For {is_unsure.sum()} the probability was between 40% and 60%",
        f"{(is_hit & is_unsure).sum()} of these came out as expected",
    ):
        assert sentence in page.text, sentence
    names = metadata.name_subjects(kit / "data/metadata", np.arange(bank.n_questions))
    titles, rows = [], []
    for n, step in enumerate(asked.itertuples(), 1):
        outcome = ("wrong", "right")[step.is_right]
        titles.append(minus(f"{n}, {outcome}: {step.ability:z.2f}"))
        ability_after = minus(f"{step.ability:+z.2f} ± {1.645 * step.error:.2f}")
        question = f"{n}", names[step.QuestionId], f"{step.QuestionId}", f"{step.expected:.0%}"
        rows.append([*question, outcome, ability_after, f"{step.share:.0%}"])
    assert page.chart("Ability").titles[1:] == titles
    assert page.table("The questions, in the order asked").rows == rows
    outcomes = pd.crosstab(p <= 0.5, truth == 0, margins=True).astype(str).to_numpy().tolist()
    assert [row[1:] for row in page.table("How the hidden").rows] == outcomes[:2]

    # By subject, least expected first, each after the diamond of a training student.
    listed = pd.read_csv(kit / "data/metadata/question_metadata_task_3_4.csv")
    listed["SubjectId"] = listed.SubjectId.str.findall(r"\d+")
    listed = listed.explode("SubjectId").astype(int)
    listed = listed.merge(pd.read_csv(kit / "data/metadata/subject_metadata.csv"), on="SubjectId")
    for heading, level, fewest in (("Areas of mathematics", 1, 1), ("Topics", 2, 5)):
        dots = []
        for name, rows in listed[listed.Level == level].groupby("Name").QuestionId:
            members = rows.unique()
            share, mark = (of[members].mean() for of in (session.probability, bank.share))
            if len(members) >= fewest:
                dots.append((share, mark, name, members))
        titles = []
        for share, mark, name, _ in sorted(dots):
            titles += [f"{name}: {mark:.2f}", f"{name}: {share:.2f}"]
        assert page.chart(heading).titles == titles
    n_asked = sum(np.isin(members, asked.QuestionId).any() for *_, members in dots)
    assert f"{n_asked} of the {len(dots)} topics were asked about" in page.text
    draws = {name: session.draws[:, members].mean(axis=1) for *_, name, members in dots}
    widest = sorted(draws, key=lambda name: -np.ptp(np.quantile(draws[name], ENDS)))[:3]
    least = "; ".join(f"{name}, {middle(draws[name])}" for name in widest)
    assert f"Least is known about: {least}." in page.text


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
    assert "there are no metadata of the questions" in page.text
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
    expect(rf"--student 99999: no such student, {examples}", "--student", first, 99999)
    expect("^--mask IsTarget_3: is not a mask of ", "--mask", "IsTarget_3")
    expect(rf"UserId {first} has \d+ answers that may be .* at least 500", "--questions", 500)
    shutil.copy(kit / "task_4/numpy/model.py", package)
    expect("model.py: has no StudentPosterior, expected the model of task_4/item_response")
    shutil.copy(kit / PACKAGE / "model.py", package)
    (package / "model_task_4_item_response.npz").write_bytes(b"damaged")
    expect("its weights cannot be read")
    succeeds([package / "train_model.py"], kit=kit)
    expect(r"its model is trained on UserId .*`train_model.py --local`")
    for path in package.glob("model_task_4*"):
        path.unlink()
    expect(f"`python {package}/train_model.py` writes")
    assert not (tmp_path / "output").exists()
