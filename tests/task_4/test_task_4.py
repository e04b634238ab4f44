"""Task 4, run as by a user: evaluation, package and training; rules that every package keeps."""

import json
import re
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common import layout, metadata, metrics
from common.adaptive.entry_files import ENTRY_FILE
from common.adaptive.game import LocalEntry, Rules, play, read_reference
from common.tasks import TASK_4

import numpy as np
import pandas as pd
import pytest
import toy_bundle
from ability import load_module
from conftest import Write, fails, run, succeeds
from page_reading import Page, read_page
from platforms import with_links
from run_scripts import ROOT
from sample_blocks import needs_blocks
from task_4_models import load_package

# The fixture `evaluate` is a function that scores the baseline. It returns the output, the score
# and the page.
Evaluate = Callable[..., tuple[str, float, Page]]
# The number of questions of the simulated kit; their ids are 0 to 79.
N_QUESTIONS = 80
EVALUATE = "task_4/numpy/local_evaluation.py"
TRAIN = "task_4/numpy/train_model.py"
# The names of the packages, and the files of weights that each package writes.
PACKAGES = {
    "numpy": {"model_task_4_most_popular.npy", "model_task_4_num_answers.npy"},
    "item_response": {"model_task_4_item_response.npz"},
    "matrix_factorization": {"model_task_4_matrix_factorization.npz"},
    "pytorch": {"model_task_4.pt"},
}
# The modules of a package that task_4/package.py packs, and the files that record its training.
CODE = {"model.py", "submission_model_task_4.py"}
RECORDS = {"model_task_4_students.npy", "model_task_4_training.json"}
# Parameters of a test that runs once for each package. A package is skipped if a user has edited
# its trainer.
PACKAGE_PARAMETERS = [
    pytest.param(name, marks=needs_blocks(f"task_4/{name}/train_model.py")) for name in PACKAGES
]
every_package = pytest.mark.parametrize("name", PACKAGE_PARAMETERS)


def published_score(entry: Any, answers: pd.DataFrame, n_questions: int) -> float:
    """Repeat the game of the evaluators that the organisers published, and return the accuracy.

    In each of ten rounds, the entry chooses a question for every student, and then sees the
    students' answers. At the end the entry predicts the targets: the answers with IsTarget 1. Any
    answered question may be asked, also a target. The arrays that the entry gets have the shape
    (students, questions) and hold 0 for each answer that is not yet revealed.
    """
    # For each answer, the row of its student. The dense rank numbers the UserIds 1, 2, 3, ...
    student = answers.UserId.rank(method="dense").astype(int) - 1
    question = answers.QuestionId
    n_students = student.max() + 1
    rows = np.arange(n_students)
    # The arrays have the same names as in the published evaluators: `data` holds the options that
    # the students chose, and `binary_data` whether the answers are right.
    shape = (n_students, n_questions)
    data = np.zeros(shape, int)
    binary_data = np.zeros(shape, int)
    targets = np.zeros(shape, int)
    can_query = np.zeros(shape, int)
    data[student, question] = answers.AnswerValue
    binary_data[student, question] = answers.IsCorrect
    targets[student, question] = answers.IsTarget
    can_query[student, question] = 1
    # The entry gets these copies of `data` and `binary_data`, which hold only the revealed answers.
    masked_data = np.zeros_like(data)
    masked_binary_data = np.zeros_like(data)
    for _ in range(10):
        selected = entry.select_feature(masked_data, masked_binary_data, can_query)
        # Indexed by this pair of arrays, an array gives the value at the question that each student
        # is asked.
        asked = (rows, selected)
        assert (can_query[asked] == 1).all()
        can_query[asked] = 0
        masked_data[asked] = data[asked]
        masked_binary_data[asked] = binary_data[asked]
        entry.update_model(masked_data, masked_binary_data, can_query)
    prediction = entry.predict(masked_data, masked_binary_data)
    is_target = targets == 1
    return float(np.mean(prediction[is_target] == binary_data[is_target]))


def most_popular_score(train: pd.DataFrame, valid: pd.DataFrame, mask: str = "IsTarget") -> float:
    """Compute the score of the baseline in plain pandas.

    The baseline predicts the more frequent outcome of a question: right (1) or wrong (0). If a
    question has as many right as wrong answers, it predicts 0. For a question without training
    answers, it predicts the more frequent outcome of all answers.
    """
    mostly_right = train.groupby("QuestionId").IsCorrect.mean() > 0.5
    targets = valid[valid[mask] == 1]
    prediction = targets.QuestionId.map(mostly_right).fillna(train.IsCorrect.mean() > 0.5)
    return float((prediction.astype(int) == targets.IsCorrect).mean())


def read_split(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the training answers and the validation answers of the local split of task 4."""
    train = pd.read_csv(folder / "train_task_4.csv")
    valid = pd.read_csv(folder / "valid_task_4.csv")
    return train, valid


def read_score(folder: Path, name: str = "task_4") -> float:
    """Return the score that an evaluation has written into a folder."""
    return float((folder / f"scores_{name}.txt").read_text().removeprefix("score:"))


@pytest.fixture(scope="module")
def kit(scored_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a kit in which the baseline, the package task_4/numpy, is trained on the local split.

    The fixture `scores` also trains the other packages in this kit.
    """
    return Path(shutil.copytree(scored_kit, tmp_path_factory.mktemp("task_4") / "kit"))


@pytest.fixture
def package(kit: Path, tmp_path: Path) -> Path:
    """Return a copy of the trained baseline that the test may change."""
    return Path(shutil.copytree(kit / "task_4/numpy", tmp_path / "package"))


@pytest.fixture
def evaluate(kit: Path, tmp_path: Path) -> Evaluate:
    """Return a function that scores the package task_4/numpy.

    It returns the output, the score and the page of the evaluation.
    """

    def run(*flags: object, script: object = EVALUATE, name: str = "task_4") -> Any:
        printed = succeeds([script, *flags, "--output_dir", tmp_path], kit=kit)
        page = read_page((tmp_path / f"scores_{name}.html").read_text())
        return printed, read_score(tmp_path, name), page

    return run


# ---- The evaluation ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Evaluated:
    """The evaluation of the baseline on the local split."""

    folder: Path
    output: str
    page: Page
    train: pd.DataFrame
    valid: pd.DataFrame

    def expected_sequences(self) -> pd.DataFrame:
        """Find, in plain pandas, the questions that the baseline must ask each student.

        Of the questions that may be asked, the baseline asks the ten with the most training
        answers.
        """
        n_answers_by_question = self.train.QuestionId.value_counts()
        askable = self.valid[self.valid.IsTarget == 0]
        # A question without training answers is missing in `n_answers_by_question`.
        n_answers = askable.QuestionId.map(n_answers_by_question).fillna(0)
        # For each student, the question with the most answers comes first. Among equal questions,
        # the one with the smaller QuestionId comes first.
        in_order = askable.assign(minus_n_answers=-n_answers).sort_values(
            ["UserId", "minus_n_answers", "QuestionId"]
        )
        asked = in_order.groupby("UserId").head(10).reset_index(drop=True)
        # A mask is a column that marks the answers to predict. The local split has only one mask.
        asked["Mask"] = "IsTarget"
        asked["Round"] = asked.groupby("UserId").cumcount() + 1
        return asked

    def expected_lines(self) -> list[str]:
        """Return the line that the evaluation must print for each student."""
        asked = self.expected_sequences()
        outcome = asked.IsCorrect.map({0: "wrong", 1: "right"})
        texts = asked.QuestionId.astype(str) + " " + outcome
        by_student = texts.groupby(asked.UserId).agg(", ".join)
        return [f"UserId {student}, IsTarget: {text}" for student, text in by_student.items()]


@pytest.fixture(scope="module")
def evaluated(kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Evaluated:
    """Score the package task_4/numpy on the local split."""
    folder = tmp_path_factory.mktemp("evaluated")
    output = succeeds([EVALUATE, "--output_dir", folder], kit=kit)
    page = read_page((folder / "scores_task_4.html").read_text())
    train, valid = read_split(kit / "data/test_input")
    return Evaluated(folder, output, page, train, valid)


def test_the_score_is_that_of_plain_pandas(evaluated: Evaluated) -> None:
    expected = most_popular_score(evaluated.train, evaluated.valid)
    assert read_score(evaluated.folder) == pytest.approx(expected)
    first_line, second_line, *_ = evaluated.output.splitlines()
    scored = f"scored: task_4/numpy, made by `python {TRAIN} --local` on 20"
    assert first_line.startswith(scored)
    assert second_line.startswith(f"score {expected:.4f} (one mask, targets may not be asked, ")


def test_an_entry_that_prints_nothing_has_no_file_of_output(evaluated: Evaluated) -> None:
    assert not (evaluated.folder / "entry_output_task_4.txt").exists()


def test_the_page_tells_what_was_scored_and_how(evaluated: Evaluated) -> None:
    assert "From simulated answers" in evaluated.page.text
    facts = dict(evaluated.page.tables[0].rows)
    assert facts["Phase"] == "local split"
    assert facts["Weights trained by"] == f"python {TRAIN} --local"
    assert facts["Students"] == f"{evaluated.valid.UserId.nunique()}"
    assert facts["Targets scored"] == f"{evaluated.valid.IsTarget.sum()}"
    assert facts["Rules"] == "targets may not be asked, unobserved = -1"
    assert "open" in facts["Isolation"] or "enforced" in facts["Isolation"]


def test_the_confusion_matrix_holds_all_targets(evaluated: Evaluated) -> None:
    """The matrix counts the targets by their outcome (rows) and their prediction (columns).

    Targets are the answers that the entry must predict. The diagonal counts the right predictions.
    Their share of all targets is the baseline's score, which `most_popular_score` computes in
    another way.
    """
    valid = evaluated.valid
    # The table's first row is a part of its heading.
    _, *rows = evaluated.page.table("Confusion matrix").rows
    outcomes = []
    counts_by_outcome = []
    for outcome, *cells in rows:
        outcomes.append(outcome)
        # A cell holds a share and a count, such as "25.0% 30".
        counts_by_outcome.append([int(cell.split("%")[1]) for cell in cells])
    assert outcomes == ["wrong", "right"]

    counts = np.array(counts_by_outcome)
    n_targets = valid.IsTarget.sum()
    n_right = valid[valid.IsTarget == 1].IsCorrect.sum()
    n_wrong = n_targets - n_right
    assert counts.sum(axis=1).tolist() == [n_wrong, n_right]
    # The trace is the sum of the diagonal.
    accuracy = np.trace(counts) / counts.sum()
    assert accuracy == pytest.approx(most_popular_score(evaluated.train, valid))


def test_the_baseline_asks_the_most_answered_questions(evaluated: Evaluated) -> None:
    written = pd.read_csv(evaluated.folder / "sequence_task_4.csv")
    columns = ["Mask", "UserId", "Round", "QuestionId", "IsCorrect"]
    expected = evaluated.expected_sequences()[columns]
    pd.testing.assert_frame_equal(written, expected, check_dtype=False)


def test_the_page_shows_the_questions_asked_of_three_students(
    kit: Path, evaluated: Evaluated
) -> None:
    """For each student, the page has a table with a row for each question that was asked.

    A row holds the round, the question, its subject, and whether the answer was right.
    """
    asked = evaluated.expected_sequences()
    # The list has the subject of question 0, then of question 1, and so on.
    subjects = metadata.name_subjects(kit / "data/metadata", np.arange(N_QUESTIONS))
    asked["subject"] = [subjects[question] for question in asked.QuestionId]
    asked["outcome"] = asked.IsCorrect.map({0: "wrong", 1: "right"})
    # The page shows all values as text.
    asked = asked.astype(str)
    # The page has a table for each of the three students. Its caption is, for example, "UserId 12".
    tables = [table for table in evaluated.page.tables if "UserId" in table.caption]
    assert len(tables) == 3
    for table in tables:
        student = table.caption.removeprefix("UserId ")
        expected = asked[asked.UserId == student][["Round", "QuestionId", "subject", "outcome"]]
        assert table.rows == expected.to_numpy().tolist()


def test_the_questions_asked_of_three_students_are_printed(evaluated: Evaluated) -> None:
    lines = evaluated.expected_lines()
    path = evaluated.folder / "sequence_task_4.csv"
    rest = f"and so on, of all {len(lines)} students: {path}"
    assert evaluated.output.splitlines()[-5:-1] == [*lines[:3], rest]


@pytest.mark.parametrize("n_shown", [0, 1000])
def test_flags_set_how_many_students_are_shown_and_skip_the_curve(
    evaluate: Evaluate, evaluated: Evaluated, n_shown: int
) -> None:
    output, _, page = evaluate("--skip_curve", "--show_sequences", n_shown)
    assert output.splitlines()[2:-1] == evaluated.expected_lines()[:n_shown]
    assert "No curve: not asked for." in page.text


def test_a_run_that_fails_removes_the_scores_of_the_last_run(
    kit: Path, evaluate: Evaluate, tmp_path: Path
) -> None:
    evaluate("--skip_curve")
    fails([EVALUATE, "--submission", tmp_path / "none", "--output_dir", tmp_path], kit=kit)
    assert not [*tmp_path.glob("sequence_*"), *tmp_path.glob("scores_*")]


# This method makes an entry return probabilities. P(right) is 0.75 if the entry predicts a right
# answer, and 0.25 otherwise.
PREDICT_PROBABILITIES = """
    def predict_probabilities(self, masked_data, masked_binary_data):
        return 0.25 + 0.5 * self.predict(masked_data, masked_binary_data)
"""


def test_probabilities_of_an_entry_are_written_and_scored(
    kit: Path, evaluate: Evaluate, package: Path, tmp_path: Path
) -> None:
    """With --probabilities, the evaluation writes P(right) of each target, and scores it.

    PREDICT_PROBABILITIES gives the entry the method that returns these probabilities.
    """
    path = tmp_path / "p.parquet"
    entry = package / ENTRY_FILE
    entry.write_text(entry.read_text() + PREDICT_PROBABILITIES)
    printed, score, page = evaluate(
        "--submission", package, "--skip_curve", "--probabilities", path
    )

    targets = pd.read_csv(kit / "data/test_input/valid_task_4.csv").query("IsTarget == 1")
    # The file holds a probability for each target, and for no other answer: in the outer join,
    # another answer would get a row of its own.
    joined = targets.merge(pd.read_parquet(path), how="outer", validate="one_to_one")
    assert len(joined) == len(targets)
    p_right = joined.ProbabilityCorrect
    is_predicted_right = p_right > 0.5
    accuracy = (is_predicted_right == joined.IsCorrect).mean()
    assert accuracy == pytest.approx(score)
    p_of_outcome = np.where(joined.IsCorrect == 1, p_right, 1 - p_right)
    log_loss = f"{-np.log(p_of_outcome).mean():.4f}"
    assert f"log loss {log_loss}, AUC" in printed
    assert page.headings[-1] == "Probabilities"
    assert log_loss in page.text


@dataclass(frozen=True)
class OddEvaluation:
    """The evaluation of an entry with faults that its user should learn about."""

    output: str
    page: Page
    # The file in which the evaluation keeps what the entry prints.
    entry_output: Path


@pytest.fixture(scope="module")
def odd_evaluation(kit: Path, tmp_path_factory: pytest.TempPathFactory) -> OddEvaluation:
    """Score an entry that does three odd things, none of which changes its predictions.

    The entry prints text, changes the arrays that it is given, and lets `predict` use an attribute
    that only `select_questions` sets.
    """
    # `select_questions` runs a command that prints a line. Python's sys.stdout does not see this
    # text, because another process prints it. `system` returns the exit code of the command, so
    # `self.asked` is 0.
    print_line = "self.asked = __import__('os').system('echo choosing')"
    # `update_model` overwrites two of the arrays that the entry is given.
    overwrite_arguments = "can_query[:] = seen[:] = 7"
    source = toy_bundle.entry(select=print_line, update=overwrite_arguments)[ENTRY_FILE]
    # `predict` adds `self.asked`, which is 0. If `select_questions` was never called, the attribute
    # does not exist, and `predict` fails.
    source = source.replace("return right", "return self.asked + right")
    folder = tmp_path_factory.mktemp("odd_entry")
    entry = folder / "entry"
    entry.mkdir()
    (entry / ENTRY_FILE).write_text(source)

    output = succeeds([EVALUATE, "--submission", entry, "--output_dir", folder], kit=kit)
    page = read_page((folder / "scores_task_4.html").read_text())
    return OddEvaluation(output, page, folder / "entry_output_task_4.txt")


def test_the_user_learns_that_an_entry_changes_its_arguments(odd_evaluation: OddEvaluation) -> None:
    note = "update_model changes can_query, masked_data: it got a copy, so that has no effect"
    assert f"note: {note}\n" in odd_evaluation.output
    assert note in odd_evaluation.page.text


def test_the_user_learns_why_there_is_no_curve(odd_evaluation: OddEvaluation) -> None:
    """The evaluation draws a curve of the accuracy after each question, if it can.

    To measure these accuracies, it plays the games again with the same questions, without calling
    `select_questions`. The method `predict` of this entry then fails, because `select_questions`
    has not set `self.asked`.
    """
    reason = "replaying the games without select_questions, after round 0, predict: raised Attr"
    assert f"no curve: {reason}" in odd_evaluation.output
    assert f"No curve: {reason}" in odd_evaluation.page.text


def test_the_output_of_an_entry_is_kept_in_a_file(odd_evaluation: OddEvaluation) -> None:
    """The file holds the line that the entry prints in each of ten rounds."""
    assert odd_evaluation.entry_output.read_text() == "choosing\n" * 10
    assert str(odd_evaluation.entry_output) in odd_evaluation.output


def test_the_page_says_that_the_training_of_an_entry_is_not_recorded(
    odd_evaluation: OddEvaluation,
) -> None:
    facts = dict(odd_evaluation.page.tables[0].rows)
    assert facts["Weights trained by"] == "not recorded"


MASKS = [f"IsTarget_{number}" for number in range(10)]


@dataclass(frozen=True)
class EvaluatedPhase:
    """The evaluation of the baseline, trained on all students, in the public phase."""

    output: str
    score: float
    page: Page
    # The table of all questions that were asked.
    sequences: pd.DataFrame
    # The answers of the students who play the games.
    answers: pd.DataFrame
    # For each mask (a column that marks the answers to predict), the score according to plain
    # pandas.
    expected_scores: list[float]

    @property
    def mean(self) -> str:
        """The mean of the expected scores over the masks, as the page shows it."""
        return f"{np.mean(self.expected_scores):.4f}"

    @property
    def deviation(self) -> str:
        """The standard deviation of the expected scores over the masks, as the page shows it."""
        return f"{np.std(self.expected_scores, ddof=1):.4f}"


@pytest.fixture(scope="module")
def evaluated_phase(kit: Path, tmp_path_factory: pytest.TempPathFactory) -> EvaluatedPhase:
    """Train a copy of the baseline on all students, and score it in the public phase.

    For an answer that is not revealed, the entry gets 0 instead of -1, by the flag --unobserved 0.
    It gets 6 GiB of memory. It plays ten games, each with another mask of `MASKS`. A mask is a
    column that marks the answers to predict.
    """
    folder = tmp_path_factory.mktemp("evaluated_phase")
    package = Path(shutil.copytree(kit / "task_4/numpy", folder / "package"))
    succeeds([package / "train_model.py"], kit=kit)
    script = package / "local_evaluation.py"
    flags = ["--phase", "public", "--unobserved", "0", "--memory_limit", "6"]
    output = succeeds([script, *flags, "--output_dir", folder], kit=kit)

    train = pd.read_csv(kit / "data/train_data/train_task_3_4.csv")
    answers = pd.read_csv(kit / "data/test_data/test_public_task_4_more_splits.csv")
    return EvaluatedPhase(
        output=output,
        score=read_score(folder, "task_4_public"),
        page=read_page((folder / "scores_task_4_public.html").read_text()),
        sequences=pd.read_csv(folder / "sequence_task_4_public.csv"),
        answers=answers,
        expected_scores=[most_popular_score(train, answers, mask) for mask in MASKS],
    )


def test_the_score_of_a_phase_is_the_mean_over_its_ten_masks(
    evaluated_phase: EvaluatedPhase,
) -> None:
    assert evaluated_phase.score == pytest.approx(np.mean(evaluated_phase.expected_scores))
    mean_and_deviation = f"{evaluated_phase.mean} ± {evaluated_phase.deviation}"
    shown = f"score {mean_and_deviation} (standard deviation over 10 masks; "
    assert shown in evaluated_phase.output


def test_the_page_of_a_phase_tells_the_phase_the_rules_and_the_limits(
    evaluated_phase: EvaluatedPhase,
) -> None:
    facts = dict(evaluated_phase.page.tables[0].rows)
    assert facts["Phase"] == "public test"
    assert facts["Rules"] == "targets may not be asked, unobserved = 0"
    assert facts["Limits"].startswith("600 s for one mask, 6 GiB of memory")
    assert facts["Deviation over masks"] == evaluated_phase.deviation


def test_the_page_of_a_phase_shows_the_score_with_each_mask(
    evaluated_phase: EvaluatedPhase,
) -> None:
    expected = []
    for mask, score in zip(MASKS, evaluated_phase.expected_scores, strict=True):
        expected.append(f"{mask}: {score:.4f}")
    assert evaluated_phase.page.chart("Accuracy with each mask").titles == expected


def test_the_accuracy_of_the_baseline_is_the_same_after_each_question(
    evaluated_phase: EvaluatedPhase,
) -> None:
    """The baseline does not use the revealed answers when it predicts.

    So its accuracy is the same after each question, whoever chooses the questions.
    """
    curve = evaluated_phase.page.table("Accuracy after each question")
    assert curve.columns == ["Questions", "entry's choice", "random choice"]
    mean = evaluated_phase.mean
    assert curve.rows == [[f"{n_questions}", mean, mean] for n_questions in range(11)]


@pytest.mark.parametrize("mask", MASKS)
def test_every_student_is_asked_ten_questions_that_the_mask_does_not_hide(
    evaluated_phase: EvaluatedPhase, mask: str
) -> None:
    answers = evaluated_phase.answers
    sequences = evaluated_phase.sequences
    asked = sequences[sequences.Mask == mask].merge(answers, validate="one_to_one")
    assert (asked[mask] == 0).all()
    assert len(asked) == 10 * answers.UserId.nunique()


def test_the_page_of_a_phase_shows_games_with_one_mask_alone(
    evaluated_phase: EvaluatedPhase,
) -> None:
    """The page shows only the games with the first mask, although there is a game for each mask."""
    tables = [table for table in evaluated_phase.page.tables if "UserId" in table.caption]
    assert {len(table.rows) for table in tables} == {10}


def test_an_entry_for_the_published_evaluator_is_scored_and_packed(
    kit: Path, evaluate: Evaluate, write: Write, tmp_path: Path
) -> None:
    """Entries written for the evaluator that the organisers published in 2020 run unchanged.

    The published evaluator calls the method that chooses questions select_feature, and the kit
    calls it select_questions. For an answer that is not revealed, the published evaluator passes 0
    to the entry. The kit passes -1, or 0 with the flag --unobserved 0.
    """
    # The method update_model of this entry fails if it sees a -1.
    source = toy_bundle.entry(update="assert seen.min() >= 0")[ENTRY_FILE]
    # Give the method that chooses questions the name that the published evaluator calls.
    source = source.replace("select_questions", "select_feature")
    entry = write(f"entry/{ENTRY_FILE}", source).parent

    printed, score, page = evaluate("--submission", entry, "--unobserved", "0")
    # The last row has the accuracies after the last question.
    _, own_accuracy, random_accuracy = page.table("Accuracy after each question").rows[-1]
    assert f"with questions chosen at random {random_accuracy}\n" in printed
    assert own_accuracy == f"{score:.4f}"
    # The predictions of this entry depend on the questions asked. So its accuracy differs from its
    # accuracy with random questions.
    assert own_accuracy != random_accuracy

    # package.py lets an entry play a short game. Without the flag --unobserved 0, this entry gets
    # -1 for answers that are not revealed, and fails.
    pack = ["task_4/package.py", entry, "--output_dir", tmp_path]
    assert "round 1, update_model: raised AssertionError" in fails(pack, kit=kit)
    assert "submission_task_4.zip" in succeeds([*pack, "--unobserved", "0"], kit=kit)


# ---- The package -------------------------------------------------------------------------------


# Files that task_4/package.py packs together with an entry.
TAKEN = ["notes/table.csv", "model_task_4_b/0.pt", "notes/common.py"]
# Files that task_4/package.py never packs: hidden, cached and partial files.
IGNORED = [".hidden", ".git/a", "notes/__pycache__/a.pyc", "__MACOSX/a", "a.npy.partial"]
IGNORED += ["._a.npy", "Thumbs.db", "notes/desktop.ini", "a.npy.bak", "a.npy~"]


def add_files(package: Path) -> None:
    """Add the empty files TAKEN and IGNORED to a package."""
    for name in TAKEN + IGNORED:
        path = package / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.touch()


@dataclass(frozen=True)
class Packed:
    """The baseline trained with --local, with the files of `add_files` in its folder, and two zips.

    Both zips are made from this folder.
    """

    # The package, which reads notes/table.csv when it starts.
    folder: Path
    # The zip that task_4/package.py has written, and what this script has written to stderr.
    zip_by_script: Path
    warning: str
    # A zip of all files in `folder`, made without the script.
    zip_by_hand: Path


@pytest.fixture(scope="module")
def packed(kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Packed:
    """Pack the baseline twice: with `task_4/package.py`, and by hand.

    The package also holds the files of `add_files`.
    """
    folder = tmp_path_factory.mktemp("packed")
    package = Path(shutil.copytree(kit / "task_4/numpy", folder / "package"))
    add_files(package)
    # Let the baseline read notes/table.csv when it starts. The baseline can then start only from a
    # folder or zip that also holds this file.
    entry = package / ENTRY_FILE
    entry.write_text(f"open('notes/table.csv').close()\n{entry.read_text()}")
    by_hand = Path(shutil.make_archive(f"{folder}/by_hand_task_4", "zip", package))

    # package.py warns on stderr that the baseline was trained with --local. `succeeds` would not
    # allow this, so `run` is called.
    done = run(["task_4/package.py", package, "--output_dir", folder], kit=kit)
    assert done.returncode == 0
    # package.py prints no list of the entry's files ("its files: ..."). Only tools.check_submission
    # does.
    assert "its files:" not in done.stdout
    return Packed(
        folder=package,
        zip_by_script=folder / "submission_task_4.zip",
        warning=done.stderr,
        zip_by_hand=by_hand,
    )


def test_packing_warns_of_a_model_that_was_trained_with_local(packed: Packed) -> None:
    assert packed.warning == (
        f"warning: {packed.folder}: its model was trained with --local and never saw the answers "
        f"of the validation students; `python {packed.folder}/train_model.py` learns from all\n"
    )


def test_only_files_that_are_needed_to_play_are_packed(packed: Packed) -> None:
    """The zip of a package holds only what the entry needs to play.

    The scripts, the kit's common.py, and hidden, cached and partial files are left out.
    """
    beside_entry = {
        path.relative_to(packed.folder).as_posix()
        for path in packed.folder.rglob("*")
        if path.is_file()
    }
    left_out = {*IGNORED, "train_model.py", "local_evaluation.py", "common.py"}
    assert left_out <= beside_entry
    with zipfile.ZipFile(packed.zip_by_script) as archive:
        assert set(archive.namelist()) == beside_entry - left_out


def test_a_package_and_zips_of_it_have_the_same_score(
    kit: Path, packed: Packed, tmp_path: Path
) -> None:
    """The entry can read a file beside its module, whether it is scored as a folder or as a zip."""
    evaluate = ["task_4/local_evaluation.py", "--skip_curve", "--output_dir", tmp_path]
    for entry in (packed.folder, packed.zip_by_script, packed.zip_by_hand):
        printed = succeeds([*evaluate, entry], kit=kit)
        # The evaluation prints no list of the entry's files ("its files: ..."). Only
        # tools.check_submission does.
        assert "its files:" not in printed
    # Each evaluation has added a line to results.jsonl.
    lines = (tmp_path / "results.jsonl").read_text().splitlines()
    results = [json.loads(line) for line in lines]
    assert len(results) == 3
    # The code of the entry has the same fingerprint in the folder and in both zips.
    assert len({result["code"] for result in results}) == 1
    assert len({result["score"] for result in results}) == 1


@pytest.mark.parametrize(
    "form", ["zip by script", "zip by hand", pytest.param("link to folder", marks=with_links)]
)
def test_the_checker_names_the_code_and_the_weights_of_an_entry(
    kit: Path, packed: Packed, tmp_path: Path, form: str
) -> None:
    """The checker lists two kinds of files of an entry: its two modules, and then its weights.

    Every file whose path begins with model_task_4 counts as weights. In this entry, these are the
    weights that train_model.py has written (`PACKAGES`), its records of the training (`RECORDS`),
    and a further file in the folder model_task_4_b (one of `TAKEN`). The entry may also be a link
    to a folder.
    """
    if form == "zip by script":
        entry = packed.zip_by_script
    elif form == "zip by hand":
        entry = packed.zip_by_hand
    else:
        entry = tmp_path / "link"
        entry.symlink_to(packed.folder)
    printed = succeeds(["-m", "tools.check_submission", entry], kit=kit)
    weights = sorted([*PACKAGES["numpy"], *RECORDS, "model_task_4_b/0.pt"])
    files = ", ".join([ENTRY_FILE, "model.py", *weights])
    assert f"\nits files: {files}\n" in printed


def test_package_says_what_it_has_left_out(kit: Path, package: Path, tmp_path: Path) -> None:
    shutil.rmtree(package / "__pycache__", ignore_errors=True)
    add_files(package)
    printed = run(["task_4/package.py", package, "--output_dir", tmp_path], kit=kit).stdout
    assert (
        "\nleft out, not needed to play: ._a.npy, .git/, .hidden, Thumbs.db, __MACOSX/, a.npy.bak, "
        "a.npy.partial, a.npy~, common.py, local_evaluation.py, notes/__pycache__/, "
        "notes/desktop.ini, train_model.py\n"
    ) in printed


def test_a_script_that_the_entry_imports_is_packed(
    kit: Path, package: Path, tmp_path: Path
) -> None:
    (package / "train_model.py").write_text("SHARE = 0.5\n")
    model = package / "model.py"
    model.write_text(model.read_text().replace("import numpy", "import train_model, numpy", 1))
    assert run(["task_4/package.py", package, "--output_dir", tmp_path], kit=kit).returncode == 0
    names = zipfile.ZipFile(tmp_path / "submission_task_4.zip").namelist()
    assert "train_model.py" in names
    assert "local_evaluation.py" not in names


# The error message about a saved model whose name does not begin with model_task_4_.
WRONG_NAME = (
    "weights/mine.PT seems to be a saved model, expected a name that begins with "
    "model_task_4_, as the challenge's guide asks"
)


@pytest.fixture
def misnamed(package: Path) -> Path:
    """Add a saved model with a wrong name, weights/mine.PT, to a trained package; return its path.

    The challenge's guide asks for names that begin with model_task_4_.
    """
    (package / "weights").mkdir()
    (package / "weights/mine.PT").touch()
    return package


@pytest.mark.parametrize("is_zipped", [False, True])
def test_the_evaluation_plays_a_saved_model_of_another_name_and_warns(
    kit: Path, misnamed: Path, tmp_path: Path, is_zipped: bool
) -> None:
    entry = Path(shutil.make_archive(f"{misnamed}", "zip", misnamed)) if is_zipped else misnamed
    evaluate = ["task_4/local_evaluation.py", "--skip_curve", "--output_dir", tmp_path]
    done = run([*evaluate, entry], kit=kit)
    assert done.returncode == 0
    assert done.stderr == f"warning: {entry}: {WRONG_NAME}\n"


@pytest.mark.parametrize("is_zipped", [False, True])
def test_a_saved_model_of_another_name_is_not_valid(
    kit: Path, misnamed: Path, is_zipped: bool
) -> None:
    entry = Path(shutil.make_archive(f"{misnamed}", "zip", misnamed)) if is_zipped else misnamed
    message = fails(["-m", "tools.check_submission", entry], kit=kit)
    assert message == f"{entry}: {WRONG_NAME}"


def test_a_saved_model_of_another_name_is_not_packed(
    kit: Path, misnamed: Path, tmp_path: Path
) -> None:
    message = fails(["task_4/package.py", misnamed, "--output_dir", tmp_path], kit=kit)
    assert message == f"{misnamed}: {WRONG_NAME}"
    assert not (tmp_path / "submission_task_4.zip").exists()


@pytest.fixture
def package_of_all_students(kit: Path, package: Path) -> Path:
    """Train the baseline on all students, also on those of the local split; return its package."""
    succeeds([package / "train_model.py", "--input_dir", kit / "data/train_data"], kit=kit)
    return package


def test_a_model_of_all_students_is_packed_without_a_warning(
    kit: Path, package_of_all_students: Path, tmp_path: Path
) -> None:
    succeeds(["task_4/package.py", package_of_all_students, "--output_dir", tmp_path], kit=kit)


def test_a_model_is_not_scored_on_students_that_it_was_trained_on(
    kit: Path, package_of_all_students: Path, tmp_path: Path
) -> None:
    flags = [package_of_all_students, "--output_dir", tmp_path]
    message = fails(["task_4/local_evaluation.py", *flags], kit=kit)
    assert re.search(r"trained on UserId \d+ of .*valid_task_4.csv.*`train_model.py --l", message)


def test_students_to_be_predicted_must_not_be_in_the_training_file(
    kit: Path, package_of_all_students: Path, tmp_path: Path
) -> None:
    shutil.copy(kit / "data/test_input/valid_task_4.csv", tmp_path)
    shutil.copy(kit / "data/train_data/train_task_3_4.csv", tmp_path / "train_task_4.csv")
    flags = [package_of_all_students, "--output_dir", tmp_path, "--input_dir", tmp_path]
    message = fails(["task_4/local_evaluation.py", *flags], kit=kit)
    assert re.search(r"train_task_4.csv: holds UserId \d+ of .*valid_task_4.csv", message)


def test_the_packages_own_script_trains_a_copy_and_scores_that(
    kit: Path, evaluate: Evaluate, package_of_all_students: Path
) -> None:
    """A package that is trained on all students may not be scored on students of the local split.

    Its own script local_evaluation.py therefore copies the package, trains the copy without the
    students of the local split, and scores the copy. The weights of the package itself stay as they
    are.
    """
    package = package_of_all_students
    weights_before = {path: path.read_bytes() for path in package.glob("model_task_4*")}

    printed, score, page = evaluate("--skip_curve", script=package / "local_evaluation.py")

    trained_by = f"python {package}/train_model.py --local"
    # The first output line says why a copy is trained: the package has been trained on answers of
    # the local split. The second line says what is scored and when it was trained, such as
    # 2026-05-04.
    why_a_copy = f"its weights know the local split: `{trained_by}` trains a copy\n"
    what_is_scored = f"scored: {package}, made by `{trained_by}` on 20"
    assert printed.startswith(why_a_copy + what_is_scored)
    assert f" UTC\nscore {score:.4f} (" in printed
    # The copy has the same score as a baseline that is trained without the students of the local
    # split.
    train, valid = read_split(kit / "data/test_input")
    assert score == pytest.approx(most_popular_score(train, valid))
    assert dict(page.tables[0].rows)["Weights trained by"] == trained_by
    weights_after = {path: path.read_bytes() for path in package.glob("model_task_4*")}
    assert weights_after == weights_before


# ---- Faults ------------------------------------------------------------------------------------


def test_without_weights_the_evaluation_names_the_command_that_trains_them(split_kit: Path) -> None:
    message = fails([EVALUATE], kit=split_kit)
    assert f"{split_kit}/task_4/numpy: holds no weights (model_task_4…)" in message
    assert f"`python {TRAIN}` writes (with --local for the local split)" in message


@pytest.mark.parametrize("folder", ["", "task_4"])
def test_without_an_entry_the_evaluation_names_the_packages(kit: Path, folder: str) -> None:
    """If no entry is named, the message lists the packages from which the user may choose.

    The guide tells users to run `python local_evaluation.py` in task_4, which names no entry.
    """
    message = fails(["task_4/local_evaluation.py"], kit=kit, cwd=kit / folder)
    names = sorted(path.parent.name for path in kit.glob(f"task_4/*/{ENTRY_FILE}"))
    assert {*PACKAGES} <= {*names}
    packages = ", ".join(name if folder else f"task_4/{name}" for name in names)
    expected = "no entry is named, expected a folder or zip; the packages here: "
    assert message == f"{expected}{packages}"


def test_a_missing_file_of_answers_is_named_with_the_files_that_are_there(
    kit: Path, tmp_path: Path
) -> None:
    message = fails([EVALUATE, "--ref_data", "none.csv", "--output_dir", tmp_path], kit=kit)
    assert re.search("none.csv: file not found; the folder holds .*, valid_task_", message)


def test_an_entry_that_cannot_start_is_neither_scored_nor_packed(
    kit: Path, package: Path, tmp_path: Path
) -> None:
    (package / "model_task_4_num_answers.npy").unlink()
    output = tmp_path / "output"
    message = fails([EVALUATE, "--submission", package, "--output_dir", output], kit=kit)
    assert "starting Submission: raised FileNotFoundError" in message
    message = fails(["task_4/package.py", package, "--output_dir", output], kit=kit)
    assert "dry run, starting Submission: raised FileNotFoundError" in message
    assert [path.name for path in output.iterdir()] == ["entry_output_task_4.txt"]


# ---- All packages ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scores(kit: Path) -> dict[str, float]:
    """Train every package on the local split; return the score of each package by its name."""
    score_by_name = {}
    for name in PACKAGES:
        printed = succeeds([f"task_4/{name}/train_model.py", "--local"], kit=kit)
        assert re.fullmatch(r"trained on \d,\d{3} answers, 80 questions\n", printed)
        evaluate = [f"task_4/{name}/local_evaluation.py", "--skip_curve"]
        printed = succeeds([*evaluate, "--output_dir", kit / name], kit=kit)
        score = read_score(kit / name)
        assert f"score {score:.4f} (one mask, targets may not be asked, " in printed
        # A note would give a reason to doubt the score.
        assert "note: " not in printed
        score_by_name[name] = score
    return score_by_name


def play_phases(kit: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Let a package's entry play with the first five masks of each of the two phases.

    A mask marks the answers to predict, the targets. The function returns two arrays with an
    element for each target of each game: whether the entry predicts the target right, and the
    UserId of its student.
    """
    _, entry_module = load_package(name, "submission_model_task_4", kit=kit)
    is_prediction_right = []
    students = []
    for phase in layout.PHASES:
        path = kit / "data/test_data" / TASK_4.answers_name(phase)
        reference = read_reference(path, N_QUESTIONS)
        # The keys of the dict `targets` are the names of the masks.
        first_five_masks = sorted(reference.targets)[:5]
        for mask in first_five_masks:
            game = play(LocalEntry(entry_module.Submission()), reference, mask)
            is_prediction_right.append(game.prediction == game.truth)
            # For each target, the row of its student. `nonzero` has the same order as the game's
            # predictions.
            row, _ = np.nonzero(reference.targets[mask])
            students.append(reference.student[row])
    return np.concatenate(is_prediction_right), np.concatenate(students)


@needs_blocks(*(f"task_4/{name}/train_model.py" for name in PACKAGES))
@pytest.mark.usefixtures("scores")
def test_learned_packages_beat_the_most_popular_answer(kit: Path) -> None:
    """Three packages predict better than the baseline, which predicts the most popular answer.

    They predict answers of the 50 students in the files of both phases. No package was trained on
    these students.
    """
    is_baseline_right, students = play_phases(kit, "numpy")
    for name in ("item_response", "matrix_factorization", "pytorch"):
        is_package_right, _ = play_phases(kit, name)
        # The difference is paired: all packages predict the same answers. The standard error is
        # clustered, because a student's answers are correlated. Over 50 students the gain is 0.08,
        # with a standard error of 0.017. On another machine rounding changes few predictions, so
        # the gain stays above three standard errors.
        gain = is_package_right.astype(float) - is_baseline_right
        assert gain.mean() > 3 * metrics.clustered_standard_error(gain, students), name


@pytest.mark.usefixtures("scores")
@every_package
def test_a_package_scores_the_same_in_the_loop_of_the_published_evaluators(
    kit: Path, tmp_path: Path, name: str
) -> None:
    """The kit and the evaluators that the organisers published give a package the same score.

    `published_score` repeats the loop of the published evaluators. In this loop, the entry may also
    ask the questions that it must predict, and it gets 0 for answers that are not revealed.
    """
    # package.py warns on stderr that the package was trained with --local. `succeeds` would not
    # allow this, so `run` is called.
    pack = ["task_4/package.py", kit / "task_4" / name, "--output_dir", tmp_path]
    assert run(pack, kit=kit).returncode == 0
    package_zip = tmp_path / "submission_task_4.zip"
    weights = PACKAGES[name]
    with zipfile.ZipFile(package_zip) as archive:
        assert set(archive.namelist()) == CODE | RECORDS | weights

    # Score the zip with the kit's evaluation. The flags set the rules of the published evaluators.
    evaluate = ["task_4/local_evaluation.py", package_zip, "--skip_curve", "--output_dir", tmp_path]
    printed = succeeds([*evaluate, "--unobserved", "0", "--targets_queryable"], kit=kit)
    assert "(one mask, targets may be asked, unobserved = 0)" in printed

    # Score the package again with the loop of the published evaluators.
    _, entry_module = load_package(name, "submission_model_task_4", kit=kit)
    _, valid = read_split(kit / "data/test_input")
    expected = published_score(entry_module.Submission(), valid, N_QUESTIONS)
    assert read_score(tmp_path) == expected


def test_select_feature_is_select_questions_in_the_template() -> None:
    entry = load_module(ROOT / "submission_templates/submission_model_task_4.py", "template")
    assert entry.Submission.select_feature is entry.Submission.select_questions


@dataclass(frozen=True)
class Trained:
    """The output of a training, and the package that it has written."""

    output: str
    # The contents of the package's files of weights.
    weights: list[bytes]
    # The UserIds of the training answers, according to the package.
    students: set[int]
    # The data files that the training has read, according to the package.
    data_files: set[str]


@dataclass(frozen=True)
class Trainings:
    """Trainings of a package on one file, and on two files with thirty other students each."""

    name: str
    first_answers: pd.DataFrame
    second_answers: pd.DataFrame
    on_first: Trained
    # The same training as `on_first`, but run after the training on both files.
    on_first_again: Trained
    on_both: Trained
    # A training on the first file with another seed; None if the package uses no seed.
    with_other_seed: Trained | None
    # The error message if the second file also holds an answer of a student of the first file.
    message_for_known_student: str


def write_training_files(kit: Path, folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Write first.csv and second.csv, and return the two tables.

    Each file has the answers of thirty students. No student is in both files. The files have only
    the three columns that training needs.
    """
    columns = ["QuestionId", "UserId", "IsCorrect"]
    answers = pd.read_csv(kit / "data/train_data/train_task_3_4.csv", usecols=columns)
    students = answers.UserId.unique()
    first = answers[answers.UserId.isin(students[:30])]
    second = answers[answers.UserId.isin(students[30:60])]
    first.to_csv(folder / "first.csv", index=False)
    second.to_csv(folder / "second.csv", index=False)
    return first, second


@pytest.fixture(scope="module", params=PACKAGE_PARAMETERS)
def trainings(
    kit: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Trainings:
    """Train a package on a first file, then on two files, then on the first file again.

    Each training replaces the weights in the same folder. After the first training, a package that
    uses a seed is also trained with another seed. The last training must fail, because a student of
    the first file is also in the second file.
    """
    name = request.param
    folder = tmp_path_factory.mktemp(name)
    first, second = write_training_files(kit, folder)
    package = Path(shutil.copytree(kit / "task_4" / name, folder / "package"))
    script = [package / "train_model.py", "--input_dir", folder, "--train_data", "first.csv"]

    def train(*flags: object) -> Trained:
        """Train the package on first.csv; `flags` may add a second file or a seed."""
        output = succeeds([*script, *flags], kit=kit)
        record = json.loads((package / "model_task_4_training.json").read_text())
        return Trained(
            output=output,
            weights=[(package / weights).read_bytes() for weights in sorted(PACKAGES[name])],
            students=set(np.load(package / "model_task_4_students.npy")),
            data_files=set(record["made_from"]),
        )

    on_first = train()
    uses_seed = name in ("matrix_factorization", "pytorch")
    with_other_seed = train("--seed", 1) if uses_seed else None
    on_both = train("--more_train_data", "second.csv")
    on_first_again = train()
    answer_of_known_student = first.iloc[[0]]
    pd.concat([second, answer_of_known_student]).to_csv(folder / "second.csv", index=False)
    message = fails([*script, "--more_train_data", "second.csv"], kit=kit)
    return Trainings(
        name=name,
        first_answers=first,
        second_answers=second,
        on_first=on_first,
        on_first_again=on_first_again,
        on_both=on_both,
        with_other_seed=with_other_seed,
        message_for_known_student=message,
    )


def test_training_on_the_same_file_gives_the_same_weights(trainings: Trainings) -> None:
    """Training again on the first file gives the same weights.

    In between, the package was trained on both files, so older weights must have no effect.
    """
    assert trainings.on_first_again.weights == trainings.on_first.weights


def test_another_seed_gives_other_weights_where_training_is_random(trainings: Trainings) -> None:
    if trainings.with_other_seed is None:
        pytest.skip(f"the training of {trainings.name} draws no random numbers")
    assert trainings.with_other_seed.weights != trainings.on_first.weights


def test_training_on_two_files_learns_from_the_students_of_both(trainings: Trainings) -> None:
    both = pd.concat([trainings.first_answers, trainings.second_answers])
    n_questions = both.QuestionId.max() + 1
    counts = f"trained on {len(both):,} answers, {n_questions} questions"
    assert counts in trainings.on_both.output
    assert trainings.on_both.students == set(both.UserId)
    assert trainings.on_both.weights != trainings.on_first.weights
    assert {"../first.csv", "../second.csv"} <= trainings.on_both.data_files


def test_training_says_that_it_replaces_weights_of_other_students(trainings: Trainings) -> None:
    note = "replaced weights that were trained on other students (30)"
    assert note in trainings.on_both.output


def test_a_student_must_not_be_in_two_training_files(trainings: Trainings) -> None:
    known = f"UserId {trainings.first_answers.UserId.iloc[0]} appears in another training file"
    assert re.search(f"second.csv: .*{known}", trainings.message_for_known_student)


@needs_blocks(*(f"task_4/{name}/train_model.py" for name in PACKAGES))
@pytest.mark.usefixtures("scores")
@pytest.mark.parametrize("targets_queryable", [False, True])
@pytest.mark.parametrize("name", ["item_response", "matrix_factorization", "pytorch"])
def test_both_values_of_unobserved_answers_lead_to_the_same_games(
    kit: Path, name: str, targets_queryable: bool
) -> None:
    """An entry plays the same games whether unrevealed answers are marked by -1 or by 0.

    The entry gets an array of answers, in which 1 is right and 0 is wrong. If the file has options,
    the entry also gets an array of the options that the students chose. Without options, an
    unrevealed answer that is marked by 0 looks like a wrong answer. The entry can still tell the
    two apart by `can_query`, the questions that may still be asked.
    """
    model_module, entry_module = load_package(name, "submission_model_task_4")
    model = model_module.Model.load(kit / "task_4" / name)
    with_options = read_reference(kit / "data/test_input/valid_task_4.csv", N_QUESTIONS)
    # The number -1 stands for an unknown option.
    no_options = np.full_like(with_options.option, -1)
    without_options = replace(with_options, option=no_options)
    games = []
    for reference in (with_options, without_options):
        for unobserved in (-1, 0):
            rules = Rules(targets_queryable=targets_queryable, unobserved=unobserved)
            entry = LocalEntry(entry_module.Submission(model))
            games.append(play(entry, reference, "IsTarget", rules))

    first_game, *other_games = games
    for game in other_games:
        assert np.array_equal(game.chosen, first_game.chosen)
        assert np.array_equal(game.prediction, first_game.prediction)

    # If a target was asked, the prediction must be the revealed answer. `prediction` and `truth`
    # have an element for each target, in the order of `np.nonzero`.
    student_rows, target_questions = np.nonzero(with_options.targets["IsTarget"])
    # A row of `chosen` holds the questions that one student was asked.
    is_target_asked = np.array(
        [
            question in first_game.chosen[row]
            for row, question in zip(student_rows, target_questions, strict=True)
        ]
    )
    assert is_target_asked.any() == targets_queryable
    assert np.array_equal(first_game.prediction[is_target_asked], first_game.truth[is_target_asked])
