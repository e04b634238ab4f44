"""Science exam: evaluation by hand, and models that do not see the answers they predict."""

import argparse
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

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


class Question(NamedTuple):
    """A question of the exam, and how it is predicted."""

    number: int
    # The label of the right option.
    right: str
    # The labels that are predicted, the most probable first.
    prediction: str
    points: float


# The numbers are not in order, since the rows of a submission may be in another order than the
# questions.
EXAM = [
    # The right label is in place 4. Only the first three places count.
    Question(1, right="B", prediction="A C D B", points=0),
    Question(0, right="A", prediction="C A B D E", points=1 / 2),
    Question(3, right="E", prediction="A B E", points=1 / 3),
    Question(2, right="E", prediction="B E A", points=1 / 2),
    Question(4, right="C", prediction="", points=0),
    # A repeated wrong label takes up two places.
    Question(5, right="E", prediction="A A E", points=1 / 3),
    # A repeated right label scores once.
    Question(6, right="A", prediction="A A B", points=1),
    Question(7, right="A", prediction="A", points=1),
]


def write_exam(write: Write) -> Path:
    """Write the questions and the predictions of `EXAM`, and return their folder."""
    questions = [f"{each.number},Which?,a,b,c,d,e,{each.right}\n" for each in sorted(EXAM)]
    predictions = [f"{each.number},{each.prediction}\n" for each in EXAM]
    write("submission.csv", "id,prediction\n" + "".join(predictions))
    return write("train.csv", HEADER + "".join(questions)).parent


def test_predictions_with_too_many_labels_or_none_are_reported(write: Write) -> None:
    """The evaluation warns of such predictions, and the check prints how many there are.

    In EXAM, two predictions hold more than three labels ("A C D B" and "C A B D E"), and one
    prediction is empty.
    """
    folder = write_exam(write)
    done = run(evaluation("science_exam", folder))
    assert done.stderr.splitlines() == [
        "warning: 2 predictions hold more than 3 labels; only the first 3 count",
        "warning: 1 predictions hold no label and score 0",
    ]

    files = [folder / "submission.csv", "--input_dir", folder, "--test_data", "train.csv"]
    checked = run([f"{FOLDER}/check_submission.py", *files]).stdout
    assert checked.splitlines()[-2:] == [
        "2 rows hold more than 3 labels; only the first 3 count",
        "1 rows hold no label and score 0",
    ]


def test_an_evaluation_by_hand(write: Write) -> None:
    """The mean points of the questions are the score, which is shown and recorded.

    A prediction has up to three labels. The right label gains 1 point in place 1, 1/2 in place 2
    and 1/3 in place 3. The eight questions of EXAM gain 0, 1/2, 1/3, 1/2, 0, 1/3, 1 and 1, which is
    11/3 points in all and 11/24 = 0.4583 on average. The page also tells how often each place has
    the right label: place 1 in two of the eight questions, and likewise places 2 and 3.
    """
    folder = write_exam(write)
    done = run(evaluation("science_exam", folder))

    points = np.array([question.points for question in EXAM])
    standard_error = points.std(ddof=1) / len(points) ** 0.5
    low = points.mean() - 1.96 * standard_error
    high = points.mean() + 1.96 * standard_error
    interval = f"{low:.4f} to {high:.4f}"
    assert f"score 0.4583, 95 % interval {interval} (MAP@3 on 8 questions" in done.stdout
    expected = {"score": 11 / 24, "interval_low": low, "interval_high": high}
    assert scores_in(folder) == pytest.approx(expected)
    assert last_record(folder)["score"] == pytest.approx(11 / 24)
    # The first two rows, which name the files of the submission and of the answers, are skipped.
    _, _, *facts = page_in(folder).tables[0].rows
    assert facts == [
        ["Origin", "answers of unknown origin"],
        ["Questions", "8"],
        ["95 % interval", interval],
        ["Right answer in place 1", "25.0%"],
        ["Right answer in place 2", "25.0%"],
        ["Right answer in place 3", "25.0%"],
        # A random guess has the right label, one of five, in each place with probability 1/5. So
        # it gains (1 + 1/2 + 1/3) / 5 on average.
        ["Random guesses score", "0.3667"],
        # The submission was written by the test, so no record tells how it was made.
        ["Doubt", "may have seen these answers: no record says what it has learned from"],
    ]


def predict(folder: Path, model: str, train: list[str], test: list[str], *flags: object) -> str:
    """Train a model on the questions `train`, and return the submission that it writes for `test`.

    `train` and `test` are lines of CSV files, without the header.
    """
    for name, lines in (("train", train), ("test", test)):
        (folder / f"{name}.csv").write_text("\n".join([HEADER.strip(), *lines]))
    folders = ["--input_dir", folder, "--output_dir", folder]
    succeeds([f"{FOLDER}/sample_model_{model}.py", *folders, *flags])
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
    """A question is predicted from the answers to other questions only.

    The training file has fifty copies of the predicted question and twenty other questions. With
    so many copies, a model that saw the answer to the question would predict this answer.
    """
    first_question = lines[0]
    other_questions = lines[1:21]

    def predict_first(answer: str, other_answer: str) -> str:
        """Return the prediction of the first question.

        The training file has `answer` as the right answer of this question, and `other_answer` as
        the right answer of all other questions.
        """
        # A line holds the id, the texts and the right answer. The right answer is the last letter.
        _id, _comma, texts_and_answer = first_question.partition(",")
        texts = texts_and_answer[:-1]
        copies = [f"x{number},{texts}{answer}" for number in range(50)]
        others = []
        for line in other_questions:
            line_without_answer = line[:-1]
            others.append(f"{line_without_answer}{other_answer}")
        return predict(tmp_path, model, train=copies + others, test=copies[:1])

    prediction = predict_first(answer="A", other_answer="A")
    assert predict_first(answer="E", other_answer="A") == prediction
    assert predict_first(answer="A", other_answer="E") != prediction


@needs_blocks(f"{FOLDER}/sample_model_ranker.py", f"{FOLDER}/sample_model_ensemble.py")
def test_the_seed_of_the_folds_and_each_member_change_the_predictions(
    lines: list[str], tmp_path: Path
) -> None:
    """The predictions of "ranker" depend on its seed, those of "ensemble" on its members.

    The model "ranker" predicts its own training questions in folds: a fold is predicted by a model
    that has learned from the other folds. The seed decides which questions make a fold. The model
    "ensemble" combines the predictions of several simple models, its members.
    """
    questions = lines[:24]
    new_questions = lines[24:48]
    # The ranker learns from the same questions that it predicts, so it predicts them in folds.
    with_seed_0 = predict(tmp_path, "ranker", questions, questions, "--seed", 0)
    with_seed_1 = predict(tmp_path, "ranker", questions, questions, "--seed", 1)
    assert with_seed_0 != with_seed_1
    # The ensemble learns from the questions and predicts the new questions.
    lists_of_members = (
        ["length"],
        ["length", "overlap"],
        ["length", "cosine"],
        ["length", "words"],
    )
    different_predictions = set()
    for members in lists_of_members:
        flags = ["--members", *members]
        different_predictions.add(predict(tmp_path, "ensemble", questions, new_questions, *flags))
    assert len(different_predictions) == len(lists_of_members)


@pytest.mark.parametrize(
    ("model", "score"), [("constant", 0.3783), ("longest_option", 0.5825), ("tfidf", 0.2967)]
)
def test_scores_on_real_questions_are_the_measured_ones(
    real_data: Path, tmp_path: Path, model: str, score: float
) -> None:
    input_dir = ["--input_dir", real_data / "related/llm_science_exam"]
    succeeds([f"{FOLDER}/sample_model_{model}.py", *input_dir, "--output_dir", tmp_path])
    succeeds(evaluation("science_exam", tmp_path, *input_dir))
    assert scores_in(tmp_path)["score"] == pytest.approx(score, abs=1e-4)
