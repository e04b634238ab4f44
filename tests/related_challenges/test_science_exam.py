"""Science exam: predictions, an evaluation by hand, models that see no answer they predict."""

import argparse
from importlib import import_module
from pathlib import Path

from common.errors import InputError

import numpy as np
import pandas as pd
import pytest
from conftest import Write, run, succeeds
from question_files import Kits, evaluation, last_record, page_in, scores_in
from sample_blocks import needs_blocks

exam = import_module("exam")

FOLDER = "related_challenges/science_exam"
HEADER = "id,prompt,A,B,C,D,E,answer\n"


def test_the_three_options_with_the_highest_scores_are_written(tmp_path: Path) -> None:
    """Options with equal scores come in alphabetical order; NaN is refused."""
    questions = pd.DataFrame({"id": ["7", "x"]})
    options = argparse.Namespace(output_dir=tmp_path, output_file="mine.csv", local=False)
    exam.write_predictions(options, questions, np.array([[0, 2, 1, 2, 3], [1, 1, 1, 1, 1.0]]))
    assert (tmp_path / "mine.csv").read_text() == "id,prediction\n7,E B D\nx,A B C\n"
    wrong = np.array([[0, 2, 1, 2, np.nan], [1, 1, 1, 1, 1]])
    with pytest.raises(InputError, match="1 NaN"):
        exam.write_predictions(options, questions, wrong)


def test_an_evaluation_by_hand(write: Write) -> None:
    """The score, its interval and the places of the right answers are shown and recorded.

    Predictions with too many labels, or without any, are reported.
    """
    rows = (f"{n},Which?,a,b,c,d,e,{answer}\n" for n, answer in enumerate("ABEECEAA"))
    folder = write("train.csv", HEADER + "".join(rows)).parent
    guesses = "1,A C D B\n0,C A B D E\n3,A B E\n2,B E A\n4,\n5,A A E\n6,A A B\n7,A\n"
    write("submission.csv", f"id,prediction\n{guesses}")
    done = run(evaluation("science_exam", folder))
    notes = (
        "2 {} hold more than 3 labels; only the first 3 count",
        "1 {} hold no label and score 0",
    )
    assert done.stderr == "".join(f"warning: {note.format('predictions')}\n" for note in notes)
    given = [folder / "submission.csv", "--input_dir", folder, "--test_data", "train.csv"]
    checked = run([f"{FOLDER}/check_submission.py", *given]).stdout
    assert checked.splitlines()[-2:] == [note.format("rows") for note in notes]
    # The points of questions 0 to 7. Question 5 repeats a wrong label, which takes up two places;
    # question 6 repeats the right label, which scores once.
    points = np.array([1 / 2, 0, 1 / 2, 1 / 3, 0, 1 / 3, 1, 1])
    margin = 1.96 * points.std(ddof=1) / 8**0.5
    low, high = points.mean() - margin, points.mean() + margin
    shown = f"{low:.4f} to {high:.4f}"
    assert f"score 0.4583, 95 % interval {shown} (MAP@3 on 8 questions" in done.stdout
    expected = {"score": 11 / 24, "interval_low": low, "interval_high": high}
    assert scores_in(folder) == pytest.approx(expected)
    assert last_record(folder)["score"] == pytest.approx(11 / 24)
    assert page_in(folder).tables[0].rows[2:] == [
        ["Questions", "8"],
        ["95 % interval", shown],
        ["Right answer in place 1", "25.0%"],
        ["Right answer in place 2", "25.0%"],
        ["Right answer in place 3", "25.0%"],
        ["Random guesses score", "0.3667"],
        ["Doubt", "may have seen these answers: no record says what it has learned from"],
    ]


def predict(folder: Path, model: str, train: list[str], test: list[str], *flags: object) -> str:
    """Let a model learn from lines of questions; return its submission for other lines."""
    for name, lines in (("train", train), ("test", test)):
        (folder / f"{name}.csv").write_text("\n".join([HEADER.strip(), *lines]))
    own = ["--input_dir", folder, "--output_dir", folder, *flags]
    succeeds([f"{FOLDER}/sample_model_{model}.py", *own])
    return (folder / "submission.csv").read_text()


@pytest.fixture
def lines(challenge_kit: Kits) -> list[str]:
    """Return the lines of the sample's questions."""
    path = challenge_kit("science_exam") / FOLDER / "data/train_data/train.csv"
    return path.read_text().splitlines()[1:]


@needs_blocks(f"{FOLDER}/sample_model_ranker.py", f"{FOLDER}/sample_model_ensemble.py")
@pytest.mark.parametrize("model", ["ranker", "ensemble"])
def test_models_do_not_see_the_answers_they_predict(
    model: str, lines: list[str], tmp_path: Path
) -> None:
    """A question that is in the file fifty times is predicted from the answers to others only."""
    # A line without its id and without its last letter, the answer.
    question = lines[0].partition(",")[2][:-1]

    def predict_first(answer: str, answer_of_others: str) -> str:
        copies = [f"x{number},{question}{answer}" for number in range(50)]
        others = [f"{line[:-1]}{answer_of_others}" for line in lines[1:21]]
        return predict(tmp_path, model, copies + others, copies[:1])

    prediction = predict_first("A", "A")
    assert predict_first("E", "A") == prediction
    assert predict_first("A", "E") != prediction


@needs_blocks(f"{FOLDER}/sample_model_ranker.py", f"{FOLDER}/sample_model_ensemble.py")
def test_a_seed_of_folds_and_each_member_have_an_effect(lines: list[str], tmp_path: Path) -> None:
    first, others = lines[:24], lines[24:48]
    of_seeds = [predict(tmp_path, "ranker", first, first, "--seed", seed) for seed in (0, 1)]
    assert of_seeds[0] != of_seeds[1]
    # The ensemble learns from the first questions and predicts the others.
    choices = [["--members", "length", *more] for more in ([], ["overlap"], ["cosine"], ["words"])]
    predictions = {predict(tmp_path, "ensemble", first, others, *members) for members in choices}
    assert len(predictions) == len(choices)


@pytest.mark.parametrize(
    ("model", "score"), [("constant", 0.3783), ("longest_option", 0.5825), ("tfidf", 0.2967)]
)
def test_scores_on_real_questions_are_the_measured_ones(
    real_data: Path, tmp_path: Path, model: str, score: float
) -> None:
    given = ["--input_dir", real_data / "related/llm_science_exam"]
    succeeds([f"{FOLDER}/sample_model_{model}.py", *given, "--output_dir", tmp_path])
    succeeds(evaluation("science_exam", tmp_path, *given))
    assert scores_in(tmp_path)["score"] == pytest.approx(score, abs=1e-4)
