"""Task 2 on questions with two to eight options: split, samples, scores, the page of the data."""

import json
import re
import shutil
from pathlib import Path

from common.probabilities import read_probabilities

import mixed_options
import numpy as np
import pandas as pd
import pytest
from conftest import fails, succeeds
from page_reading import read_page

N_QUESTIONS = 21
SPLIT_FILES = {
    "train": "train_task_1_2.csv",
    "valid": "valid_task_1_2.csv",
    "template": "test_submission_task_1_2.csv",
}
# A file with 900 of the training answers.
FEW_TRAIN = "few_train.csv"
# The sample models, with flags that make them quick.
MODELS = {
    "majority": [],
    "matrix_factorization": ["--iterations", 5, "--dimensions", 2],
    "partial_vae": ["--steps", 60],
    "item_response": ["--dimensions", 2],
    "gradient_boosting": ["--features", "rates", "distractors"],
    # The blend gets only 900 training answers. With 1,000 or more, its item response model would
    # try several settings, which would take most of the time of the test.
    "blend": ["--models", "item_response", "--train_data", FEW_TRAIN],
}


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the local split of a test that has questions of two to eight options."""
    folder = tmp_path_factory.mktemp("mixed")
    answers = mixed_options.simulate(160, N_QUESTIONS)
    (folder / "train_data").mkdir()
    answers.to_csv(folder / "train_data" / "train_task_1_2.csv", index=False)
    flags = ["--input_dir", folder / "train_data", "--output_dir", folder]
    succeeds(["task_2/local_data_split.py", *flags])
    train = pd.read_csv(folder / SPLIT_FILES["train"])
    train.sample(900, random_state=0).to_csv(folder / FEW_TRAIN, index=False)
    return folder


def test_the_split_keeps_the_number_of_options(split: Path) -> None:
    for name in SPLIT_FILES.values():
        part = pd.read_csv(split / name)
        number = np.resize(mixed_options.NUMBERS, N_QUESTIONS)[part["QuestionId"]]
        assert part["NumberOfOptions"].tolist() == number.tolist()


def fit_sample_model(split: Path, model: str) -> tuple[Path, Path]:
    """Run a sample model of task 2 on the split; return its submission and its probabilities."""
    submission = split / f"{model}.csv"
    probabilities = split / f"{model}.parquet"
    flags = ["--input_dir", split, "--submission_template_dir", split, "--output_dir", split]
    flags += ["--submission_template_file", SPLIT_FILES["template"]]
    flags += ["--output_file", submission.name, "--probabilities", probabilities]
    succeeds([f"task_2/sample_model_{model}.py", *flags, *MODELS[model]])
    return submission, probabilities


def check_evaluation(split: Path, submission: Path, probabilities: Path) -> None:
    """Assert that the local evaluation computes the right score and the right log loss.

    The score is the share of right predictions. The log loss is -log of the probability of the
    chosen option, on average over the answers.
    """
    valid = pd.read_csv(split / SPLIT_FILES["valid"])
    chosen_option = valid["AnswerValue"].to_numpy()
    predicted = pd.read_csv(submission)["AnswerValue"].to_numpy()
    expected_score = (predicted == chosen_option).mean()
    # A model that always predicts the right option scores about 0.5, since about half of the
    # answers are right. Random predictions would score 1 / m on questions with m options, which is
    # 0.25 on average over m = 2 to 8. With 672 answers, a score has a standard error of 0.02.
    assert expected_score > 0.4
    p = read_probabilities(probabilities, 2).at(valid, submission)
    # Column 0 is option 1, so an option minus 1 is its column.
    p_of_chosen_option = p[np.arange(len(p)), chosen_option - 1]
    log_loss = -np.log(p_of_chosen_option).mean()

    flags = ["--input_dir", split, "--submission_dir", split, "--output_dir", split]
    flags += ["--submit_data", submission.name, "--probabilities", probabilities]
    printed = succeeds(["task_2/local_evaluation.py", *flags])
    score = float(re.search(r"score (0\.\d+)", printed)[1])
    # The score is printed with four decimals.
    assert score == pytest.approx(expected_score, abs=5e-5)
    assert f"log loss {log_loss:.4f}" in printed
    # The evaluation also records, for each of the eight options, the share of right predictions
    # among the answers that chose this option.
    last_line = (split / "results.jsonl").read_text(encoding="utf-8").splitlines()[-1]
    shares_by_option = json.loads(last_line)["parts"]
    assert list(shares_by_option) == [f"option {option}" for option in range(1, 9)]


@pytest.mark.parametrize("model", MODELS)
def test_probabilities_and_predictions_respect_each_questions_number_of_options(
    split: Path, model: str
) -> None:
    """Each sample model gives a probability to the options that a question has, and to no others.

    A question has two to eight options. The file of probabilities has a column for each of the
    options 1 to 8.
    """
    submission, probabilities = fit_sample_model(split, model)

    valid = pd.read_csv(split / SPLIT_FILES["valid"])
    p = read_probabilities(probabilities, 2).at(valid, submission)
    n_options = valid["NumberOfOptions"].to_numpy()
    assert p.shape == (len(valid), 8)
    # Whether the question of an answer (row) has an option (column).
    exists = np.arange(8) < n_options[:, None]
    assert (p[~exists] == 0).all()
    assert (p[exists] > 0).all()
    predicted = pd.read_csv(submission)["AnswerValue"].to_numpy()
    assert (predicted <= n_options).all()
    check_evaluation(split, submission, probabilities)


def test_an_option_above_all_questions_is_refused_in_a_submission(split: Path) -> None:
    submission = pd.read_csv(split / SPLIT_FILES["template"]).assign(AnswerValue=9)
    submission.to_csv(split / "above.csv", index=False)
    flags = ["--input_dir", split, "--submission_dir", split, "--output_dir", split]
    message = fails(["task_2/local_evaluation.py", *flags, "--submit_data", "above.csv"])
    assert "column 'AnswerValue'" in message
    assert "expected a whole number from 1 to 8" in message


def test_the_page_about_the_data_shows_all_options(split: Path, tmp_path: Path) -> None:
    shutil.copytree(split / "train_data", tmp_path / "train_data")
    succeeds(["data/explore.py", "--data_dir", tmp_path, "--output_dir", tmp_path])
    text = read_page((tmp_path / "explore.html").read_text(encoding="utf-8")).text
    assert "The options" in text
    assert "The four options" not in text
    assert "Up to 7 distractors" in text


@pytest.mark.parametrize("part_with_eight_options", ["train", "template"])
def test_training_answers_and_template_may_differ_in_their_largest_number_of_options(
    split: Path, tmp_path: Path, part_with_eight_options: str
) -> None:
    """Sample models run if only one of the files that they read has questions with eight options.

    This file, `part_with_eight_options`, is the training answers or the template. All other files
    have questions with at most seven options. The file of probabilities has a column for each
    option up to the largest number of options in the template.
    """
    for part, name in SPLIT_FILES.items():
        table = pd.read_csv(split / name)
        if part != part_with_eight_options:
            table = table[table["NumberOfOptions"] < 8]
        table.to_csv(tmp_path / name, index=False)
    template = pd.read_csv(tmp_path / SPLIT_FILES["template"])
    n_options = template["NumberOfOptions"].to_numpy()

    inputs = ["--input_dir", tmp_path, "--submission_template_dir", tmp_path]
    inputs += ["--submission_template_file", SPLIT_FILES["template"]]
    # The flag --guessing saves time: without it, the model tries several guessing probabilities.
    models: dict[str, list[object]] = {
        "majority": [],
        "item_response": ["--dimensions", 2, "--guessing", 0.2],
    }
    for model, flags in models.items():
        submission = tmp_path / f"{model}.csv"
        probabilities = tmp_path / f"{model}.parquet"
        outputs = ["--output_dir", tmp_path, "--output_file", submission.name]
        outputs += ["--probabilities", probabilities]
        succeeds([f"task_2/sample_model_{model}.py", *inputs, *outputs, *flags])
        predicted = pd.read_csv(submission)["AnswerValue"].to_numpy()
        assert (predicted <= n_options).all()
        n_columns = read_probabilities(probabilities, 2).value.shape[1]
        assert n_columns == n_options.max()
