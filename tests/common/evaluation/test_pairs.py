"""The evaluations of tasks 1 and 2 as a user runs them: scores, pages, probabilities, faults."""

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import fails, succeeds
from page_reading import Page, read_page
from planted_answers import COLUMN, KEYS, TASKS
from sample_blocks import needs_blocks
from sklearn.metrics import log_loss, roc_auc_score

# Names of the columns of probabilities, by task.
COLUMNS_OF_PROBABILITIES = {
    1: ["ProbabilityCorrect"],
    2: ["ProbabilityOption1", "ProbabilityOption2", "ProbabilityOption3", "ProbabilityOption4"],
}


@pytest.fixture(scope="module")
def predicted(split_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a kit with the predictions and probabilities of the majority model.

    In task 1, the probabilities of three pairs are changed so that the predicted outcome is not the
    most probable one. The rows of the probabilities are in another order than those of the
    predictions. Tests share the kit and must not change it.
    """
    kit = Path(shutil.copytree(split_kit, tmp_path_factory.mktemp("predicted") / "kit"))
    for task in (1, 2):
        flags = ["--local", "--probabilities", kit / f"p{task}.parquet"]
        succeeds([f"task_{task}/sample_model_majority.py", *flags], kit=kit)
    table = pd.read_parquet(kit / "p1.parquet")
    p = table["ProbabilityCorrect"].to_numpy(copy=True)
    p[:3] = 1 - p[:3]
    # With a probability of 0.5, both outcomes would be equally probable.
    assert (p[:3] != 0.5).all()
    shuffled = table.assign(ProbabilityCorrect=p).sample(frac=1, random_state=0)
    shuffled.to_parquet(kit / "p1.parquet")
    return kit


def page_in(folder: Path, name: str) -> Page:
    """Read the page of a score."""
    return read_page((folder / f"scores_{name}.html").read_text())


@dataclass(frozen=True)
class Evaluated:
    """The output and the files of the evaluation of the majority model's predictions of a task."""

    task: int
    kit: Path
    # File of the probabilities.
    probabilities: Path
    # Lines that the evaluation prints. The first one names what is scored.
    lines: list[str]
    page: Page

    @property
    def majority_line(self) -> str:
        """The printed line with the score of the majority model."""
        return self.lines[2]

    @property
    def probabilities_line(self) -> str:
        """The printed line with the scores of the probabilities."""
        return self.lines[3]

    @property
    def score_and_error(self) -> tuple[str, str]:
        """The score and its standard error as they are printed."""
        pattern = r"score (0\.\d{4}) ± (0\.\d{4}) \(standard error; accuracy on [\d,]+ pairs\)"
        printed = re.fullmatch(pattern, self.lines[1])
        assert printed
        return printed[1], printed[2]

    @property
    def facts(self) -> dict[str, str]:
        """The table at the beginning of the page, which tells facts about the submission.

        The keys are the names of the facts, such as "Entry".
        """
        return {row[0]: row[1] for row in self.page.tables[0].rows}

    def read_truth(self) -> pd.DataFrame:
        return pd.read_csv(self.kit / "data/test_input/valid_task_1_2.csv")

    def read_predictions(self) -> pd.DataFrame:
        """Return the true values, and beside them the predicted ones."""
        path = self.kit / f"data/test_output/test_submission_task_{self.task}.csv"
        return self.read_truth().merge(pd.read_csv(path), on=KEYS, suffixes=("", "_predicted"))


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(task, marks=needs_blocks(f"task_{task}/sample_model_majority.py"))
        for task in (1, 2)
    ],
)
def evaluated(
    request: pytest.FixtureRequest, predicted: Path, tmp_path_factory: pytest.TempPathFactory
) -> Evaluated:
    task = request.param
    output = tmp_path_factory.mktemp("evaluated")
    probabilities = predicted / f"p{task}.parquet"
    flags = ["--probabilities", probabilities, "--output_dir", output]
    printed = succeeds([f"task_{task}/local_evaluation.py", *flags], kit=predicted)
    page = page_in(output, f"task_{task}")
    return Evaluated(task, predicted, probabilities, printed.splitlines(), page)


def test_the_page_has_a_heading_for_each_part(evaluated: Evaluated) -> None:
    """The title of the page is its first heading, and each part has another one."""
    by_option = ["By which option is right"] if evaluated.task == 2 else []
    _, *headings_of_parts = evaluated.page.headings
    assert headings_of_parts == [
        "Confusion matrix",
        "Probabilities",
        "Where predictions are right",
        "By difficulty of the question",
        "By number of known answers of the student",
        "By number of known answers to the question",
        *by_option,
        "By subject",
        "By subject, one level further down",
        "By known or unknown quiz",
        "Where most is lost",
        "Questions",
        "Subjects",
        "Groups of students",
        "Gender",
        "Pupil premium",
        "Age in years on 2019-09-01",
    ]
    # The page has a chart of the score, one of the calibration of the probabilities, and one below
    # each heading that begins with "By".
    n_groupings = sum(heading.startswith("By ") for heading in headings_of_parts)
    assert len(evaluated.page.charts) == 2 + n_groupings


def test_the_page_says_what_made_the_submission(evaluated: Evaluated) -> None:
    facts = evaluated.facts
    assert facts["Entry"] == "majority"
    command = f"majority.py --local --probabilities {evaluated.probabilities}"
    assert facts["Made by"].endswith(command)
    assert re.fullmatch(r"\d+\.\d s, memory \d\.\d\d GB", facts["Fit and predict"])


def test_the_score_is_shown_beside_those_of_the_majority_and_the_best_possible(
    evaluated: Evaluated,
) -> None:
    """The entry is the majority model here, so its score equals the majority's.

    The best possible score is the accuracy that is expected if the true probabilities are known. A
    simulation knows them, and writes this accuracy to SIMULATED.json.
    """
    score, _ = evaluated.score_and_error
    assert evaluated.majority_line == f"majority {score}"
    simulated = json.loads((evaluated.kit / "data/SIMULATED.json").read_text())
    # Tasks 1 and 2 share their answers, so SIMULATED.json has a key for both ("1_2"). Below it are
    # the best accuracy for right or wrong (task 1) and for the chosen option (task 2).
    of_both_tasks = simulated["best_expected_accuracy"]["1_2"]
    predicted_value = {1: "right_or_wrong", 2: "option"}[evaluated.task]
    best = of_both_tasks[predicted_value]
    chart_of_scores = evaluated.page.charts[0]
    assert chart_of_scores.titles == [
        f"this entry: {score}",
        f"majority: {score}",
        f"best possible: {best:.4f}",
    ]


def test_the_output_shows_the_scores_of_probabilities(evaluated: Evaluated) -> None:
    """The log loss and the Brier score are printed, and for task 1 the AUC, too."""
    task = evaluated.task
    joined = evaluated.read_truth().merge(pd.read_parquet(evaluated.probabilities), on=KEYS)
    truth = joined[COLUMN[task]].to_numpy()
    p = joined[COLUMNS_OF_PROBABILITIES[task]].to_numpy()
    if task == 1:
        # The only column holds the probability that an answer is right, that is, has the value 1.
        p_right = p[:, 0]
        loss = log_loss(truth, np.column_stack([1 - p_right, p_right]))
        auc = f"AUC {roc_auc_score(truth, p_right):.4f}, "
        brier = np.mean((p_right - truth) ** 2)
    else:
        # There is a column of probabilities for each option, 1 to 4.
        loss = log_loss(truth, p)
        auc = ""
        # Whether the student chose each option, shape (answers, options).
        is_chosen = truth[:, None] == np.arange(1, 5)
        brier = np.mean(((p - is_chosen) ** 2).sum(axis=1))

    expected = f"log loss {loss:.4f}, {auc}Brier score {brier:.4f}, "
    assert evaluated.probabilities_line.startswith(expected)


def test_the_page_shows_the_printed_scores_of_probabilities(evaluated: Evaluated) -> None:
    table = evaluated.page.table("Probabilities")
    for part in evaluated.probabilities_line.split(", "):
        # A part is a name and a figure, such as "log loss 0.6123".
        name, figure = part.rsplit(" ", 1)
        # The names of the rows begin with a capital letter.
        name_of_row = name[0].upper() + name[1:]
        assert table.row(name_of_row)[1] == figure


def test_predictions_that_are_not_the_most_probable_value_are_counted(
    evaluated: Evaluated,
) -> None:
    """A prediction should be the most probable outcome. Three predictions of task 1 are not.

    The evaluation counts such predictions, in its output and on the page.
    """
    expected = {1: ["3 predictions are not the most probable value"], 2: []}[evaluated.task]
    assert [line for line in evaluated.lines if " predictions " in line] == expected
    says_so = "In 3 pairs the submission does not predict" in evaluated.page.text
    assert says_so == (evaluated.task == 1)


def test_the_score_is_the_share_of_right_predictions(evaluated: Evaluated) -> None:
    predictions = evaluated.read_predictions()
    column = COLUMN[evaluated.task]
    accuracy = (predictions[column] == predictions[f"{column}_predicted"]).mean()
    score, _ = evaluated.score_and_error
    assert score == f"{accuracy:.4f}"


def test_the_page_explains_the_standard_error(evaluated: Evaluated) -> None:
    """The page shows the standard error beside the score, and again in a table of facts.

    The table also has the 95 % interval of the score and the number of students.
    """
    score, error = evaluated.score_and_error
    pattern = r"(\S+), 95 % interval (\S+) to (\S+): (\d+) students, .*"
    fact = re.fullmatch(pattern, evaluated.facts["Standard error"])
    assert fact
    error_of_fact, low_text, high_text, n_students = fact.groups()
    assert error_of_fact == error
    assert int(n_students) == evaluated.read_predictions().UserId.nunique()
    low = float(low_text)
    high = float(high_text)
    assert low < float(score) < high
    # The interval on the page is not exactly the score ± 1.96 standard errors, but nearly as wide.
    assert high - low == pytest.approx(2 * 1.96 * float(error), rel=0.1)
    assert f" {score} ± {error} standard error " in evaluated.page.text


def test_the_confusion_matrix_has_a_row_for_each_true_value(evaluated: Evaluated) -> None:
    predictions = evaluated.read_predictions()
    column = COLUMN[evaluated.task]
    counts = pd.crosstab(predictions[column], predictions[f"{column}_predicted"]).to_numpy()
    rows = evaluated.page.table("Of the answers").rows[1:]
    expected = [[f"{count / sum(row):.1%}{count:,}" for count in row] for row in counts]
    assert [row[1:] for row in rows] == expected


@TASKS
def test_with_wrong_probabilities_there_is_no_score_not_even_of_an_earlier_run(
    predicted: Path, tmp_path: Path, task: int
) -> None:
    """The evaluation fails, because the file of probabilities lacks the row of one pair.

    The evaluation then removes the scores that an earlier run has left in the output folder.
    """
    path = tmp_path / "mine.parquet"
    probabilities = pd.read_parquet(predicted / f"p{task}.parquet")
    without_last_pair = probabilities[:-1]
    without_last_pair.to_parquet(path)
    for end in ("txt", "html"):
        (tmp_path / f"scores_task_{task}.{end}").write_text("of an earlier run")
    flags = ["--probabilities", path, "--output_dir", tmp_path]
    line = fails([f"task_{task}/local_evaluation.py", *flags], kit=predicted)
    assert line.startswith(f"{path}: ")
    assert " pairs are missing, first UserId" in line
    assert [*tmp_path.iterdir()] == [path]


def evaluate_given(folder: Path, task: int, truth: str, predicted: str) -> tuple[list[str], Page]:
    """Score predictions in a folder that holds only the predictions and the true answers.

    `truth` and `predicted` are the rows of two files with the columns QuestionId, UserId, IsCorrect
    and AnswerValue. Returns the lines printed, and the page. The name of the page ends with "own",
    because the true answers are a user's own: they belong to no phase of the challenge.
    """
    given = folder / "given"
    given.mkdir()
    header = "QuestionId,UserId,IsCorrect,AnswerValue\n"
    (given / "answers.csv").write_text(header + truth)
    (given / "mine.csv").write_text(header + predicted)
    evaluation = [f"task_{task}/local_evaluation.py", "--output_dir", folder]
    evaluation += ["--input_dir", given, "--ref_data", "answers.csv"]
    evaluation += ["--submission_dir", given, "--submit_data", "mine.csv"]
    lines = succeeds(evaluation).splitlines()
    return lines, page_in(folder, f"task_{task}_own")


@TASKS
def test_a_score_needs_nothing_but_the_answers(tmp_path: Path, task: int) -> None:
    """A score needs no training answers, no metadata, and no record of the submission's origin."""
    # Student 7 answers question 1 right with option 2, and question 2 wrong with option 3. The
    # prediction is right for question 1 only.
    truth = "1,7,1,2\n2,7,0,3\n"
    predicted = "1,7,1,2\n2,7,1,2\n"
    lines, page = evaluate_given(tmp_path, task, truth, predicted)
    # The last line names the files that the evaluation has written.
    scored, score, note, _ = lines
    assert scored == f"scored: {tmp_path}/given/mine.csv"
    # With one student, the variation between students is unknown: there is no standard error.
    assert score == "score 0.5000 (accuracy on 2 pairs of one student)"
    assert note.startswith("note: may have seen these answers")
    assert (tmp_path / f"scores_task_{task}_own.txt").read_text() == "score:0.5\n"
    assert "Entry not known" in page.text
    assert "Standard error not known: all answers are of one student" in page.text
    # The page says of four files that they are missing: the training answers and three files of
    # metadata.
    assert page.text.count("is not there.") == 4
    assert "By difficulty" not in page.text


@TASKS
@pytest.mark.parametrize("n_students", [9, 10])
def test_below_ten_students_neither_terminal_nor_page_shows_a_standard_error_beside_the_score(
    tmp_path: Path, task: int, n_students: int
) -> None:
    """A standard error that is estimated from few students says little, so it is not shown."""
    truth = ""
    predicted = ""
    # The cells IsCorrect and AnswerValue of an answer. Option 2 is right, option 3 is wrong.
    right, wrong = "1,2", "0,3"
    for user in range(n_students):
        # Both answers of each student, to questions 1 and 2, are right.
        truth += f"1,{user},{right}\n2,{user},{right}\n"
        # For students of odd UserIds, the second prediction is false. So students differ in how
        # many predictions are true, and there is a standard error to estimate.
        is_odd = user % 2 == 1
        second_prediction = wrong if is_odd else right
        predicted += f"1,{user},{right}\n2,{user},{second_prediction}\n"
    lines, page = evaluate_given(tmp_path, task, truth, predicted)
    has_error = n_students >= 10
    printed_score = lines[1]
    assert ("±" in printed_score) == has_error
    # On the page, "± 0.1234 standard error" stands between the score and the word "Accuracy".
    assert ("± " in page.text) == has_error
    assert ("standard error Accuracy" in page.text) == has_error


def test_the_score_is_the_same_without_valid_metadata_and_training_answers(
    predicted: Path, tmp_path: Path
) -> None:
    """A score does not depend on metadata and training answers. They only serve for further tables.

    If one of these files is faulty, the page lacks the tables that need it. The page and the
    terminal name what is left out. Here these are the majority's predictions, which need the
    training answers, and the table of groups of students, which needs the students' metadata.
    """
    kit = Path(shutil.copytree(predicted, tmp_path / "kit"))
    # Remove the record of the submission's origin. It names the training answers, which are changed
    # below, so the submission would be refused.
    (kit / "data/test_output/test_submission_task_1.json").unlink()
    evaluation = ["task_1/local_evaluation.py", "--output_dir", tmp_path]
    scored_before, score_before, *_ = succeeds(evaluation, kit=kit).splitlines()

    metadata = kit / "data/metadata/student_metadata_task_1_2.csv"
    metadata.write_text("UserId,Gender\n1,x\n")
    # Cut off the last byte of the training answers. So the evaluation refuses to use the file.
    train = kit / "data/test_input/train_task_1_2.csv"
    train.write_bytes(train.read_bytes()[:-1])
    scored, score, *others = succeeds(evaluation, kit=kit).splitlines()

    assert scored == scored_before
    assert score == score_before
    no_majority, no_students = [line for line in others if line.startswith("left out: ")]
    assert f"{train}: is not the file that" in no_majority
    assert f"{metadata}: column 'Gender': row 2 is 'x'" in no_students
    page = page_in(tmp_path, "task_1")
    assert "Left out The majority" in page.text
    assert "By subject" in page.headings
    # The chart explains its diamonds only if it has some. They mark the majority's accuracy, which
    # is not known here.
    assert "Diamond" not in page.text


def test_without_the_true_answers_of_the_split_there_is_no_score_not_even_of_an_earlier_run(
    predicted: Path, tmp_path: Path
) -> None:
    kit = Path(shutil.copytree(predicted, tmp_path / "kit"))
    evaluation = ["task_1/local_evaluation.py", "--output_dir", tmp_path]
    for name in ("scores_task_1.txt", "scores_task_1.html"):
        (tmp_path / name).write_text("of an earlier run")
    valid = kit / "data/test_input/valid_task_1_2.csv"
    valid.write_bytes(valid.read_bytes()[:-1])
    assert f"{valid}: is not the file that" in fails(evaluation, kit=kit)
    assert not list(tmp_path.glob("scores_*"))
