"""Science exam: the metric by known answers and a second implementation, bad input, the scripts."""

import itertools
import subprocess
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InputError

exam = import_module("exam")

Write = Callable[[str, str | bytes], Path]
FOLDER = "related_challenges/science_exam"
MODELS = ("constant", "longest_option", "word_overlap", "tfidf", "ensemble", "ranker")
HEADER = "id,prompt,A,B,C,D,E,answer\n"
ROWS = "0,Which?,a,b,c,d,e,A\n1,Why?,a,b,c,d,e,B\n"


@pytest.mark.parametrize(
    ("predicted", "score"),
    [
        ("A B C D E", 1),
        ("A A A A A", 1),
        ("A B A C A", 1),
        ("A", 1),
        ("B A", 1 / 2),
        ("B B A", 1 / 3),
        ("B C A", 1 / 3),
        ("B C D A", 0),
        ("B B B A", 0),
    ],
)
def test_worked_examples(predicted: str, score: float) -> None:
    assert exam.average_precision("A", predicted.split()) == pytest.approx(score)


def plain_average_precision(answer: str, predicted: list[str]) -> float:
    """Average precision at 3 with one relevant label, from its general definition."""
    relevant, n_found, total = {answer}, 0, 0.0
    for place in (1, 2, 3):
        if place <= len(predicted) and predicted[place - 1] in relevant:
            relevant.remove(predicted[place - 1])
            n_found += 1
            total += n_found / place
    return total


label = st.sampled_from("ABCDE")


@given(st.lists(st.tuples(label, st.lists(label, max_size=6)), min_size=1))
def test_metric_agrees_with_a_plain_one(pairs: list[tuple[str, list[str]]]) -> None:
    answers, predicted = zip(*pairs, strict=True)
    expected = np.mean([plain_average_precision(*pair) for pair in pairs])
    assert exam.mean_average_precision(answers, predicted) == pytest.approx(expected)


def test_random_guesses_score_as_stated() -> None:
    orders = list(itertools.permutations("ABCDE"))
    assert exam.mean_average_precision("C" * len(orders), orders) == pytest.approx(11 / 30)
    assert pytest.approx(11 / 30) == exam.RANDOM_SCORE


def test_writes_the_three_highest_scores(tmp_path: Path) -> None:
    questions = exam.ExamQuestions(["7", "x"], ["", ""], [("",) * 5] * 2)
    path = tmp_path / "submission.csv"
    exam.write_predictions(path, questions, np.array([[0, 2, 1, 2, 3], [1, 1, 1, 1, 1.0]]))
    assert path.read_text() == "id,prediction\n7,E B D\nx,A B C\n"
    with pytest.raises(InputError, match="1 NaN"):
        exam.write_predictions(path, questions, np.array([[0, 2, 1, 2, np.nan], [1, 1, 1, 1, 1]]))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,prediction\n0,A\n1,F\n", "row 3 is 'F', expected up to 3 of A, B, C, D, E"),
        ("id,prediction\n0,A\n1,AB\n", "row 3 is 'AB'"),
        ("id,prediction\n0,A\n1,\n", "row 3 is empty"),
        ("id,prediction\n0,A\n", "1 of 2 ids are missing, first '1'"),
        ("id,prediction\n0,A\n1,A\n0,B\n", "row 4 repeats '0' of row 2"),
        ("id,prediction\n0,A\n1,A\n2,B\n", "row 4 is '2', which is not in the questions"),
        ("id,predictions\n0,A\n1,A\n", "column 'prediction' is missing"),
        ("id,prediction\n0,A\n1\n", "row 3 has 1 columns"),
        ("", "is empty"),
    ],
)
def test_refuses_a_wrong_submission(
    write: Write, fails: Callable[..., str], content: str, message: str
) -> None:
    path = write("submission.csv", content)
    with pytest.raises(InputError) as error:
        exam.read_predictions(path, ["0", "1"])
    assert message in str(error.value)
    if "ids are missing" in message:  # Once as a user does it: one line, no score.
        write("train.csv", HEADER + ROWS)
        flags = ["--input_dir", path.parent, "--submission_dir", path.parent]
        line = fails([f"{FOLDER}/local_evaluation.py", *flags, "--output_dir", path.parent])
        assert message in line
        assert not (path.parent / "scores_science_exam.txt").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (HEADER + "0,Which?,a,b,c,d,e,F\n", "column 'answer': row 2 is 'F'"),
        (HEADER + "0,Which?,a,b,,d,e,A\n", "column 'C': row 2 is empty"),
        (HEADER + ROWS + "0,Who?,a,b,c,d,e,A\n", "row 4 repeats '0'"),
        (HEADER, "no rows"),
        ("id,prompt,A,B,C,D,answer\n0,Which?,a,b,c,d,A\n", "column 'E' is missing"),
    ],
)
def test_refuses_wrong_questions(write: Write, content: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        exam.read_questions(write("train.csv", content), answers=True)


def test_missing_file_names_the_command(fails: Callable[..., str], tmp_path: Path) -> None:
    assert "file not found" in fails([f"{FOLDER}/local_evaluation.py", "--input_dir", tmp_path])


def score_of(folder: Path) -> float:
    return figures_of(folder)["score"]


def figures_of(folder: Path) -> dict[str, float]:
    lines = (folder / "scores_science_exam.txt").read_text().splitlines()
    return {name: float(value) for name, _, value in (line.partition(":") for line in lines)}


def test_scripts(
    challenge_kit: Callable[[str], Path],
    succeeds: Callable[..., str],
    run: Callable[..., "subprocess.CompletedProcess[str]"],
) -> None:
    kit = challenge_kit("science_exam")
    output = kit / FOLDER / "data/test_output"
    scores = {}
    for model in MODELS:
        succeeds([f"{FOLDER}/sample_model_{model}.py"], kit=kit)
        questions = exam.read_questions(kit / FOLDER / "data/train_data/train.csv", answers=True)
        predicted = exam.read_predictions(output / "submission.csv", questions.ids)
        answers = [exam.LABELS[option] for option in questions.answer]
        scores[model] = exam.mean_average_precision(answers, predicted)
    done = run([f"{FOLDER}/local_evaluation.py"], kit=kit)  # In a process of its own, as users do.
    assert f"score {scores['ranker']:.4f}" in done.stdout
    low, high = (figures_of(output)[name] for name in ("interval_low", "interval_high"))
    assert 0.05 < high - low < 0.15
    assert low < score_of(output) < high
    assert score_of(output) == pytest.approx(scores["ranker"])
    assert f"95 % interval {low:.4f} to {high:.4f}" in done.stdout
    page = (output / "scores_science_exam.html").read_text()
    assert f"{low:.4f} to {high:.4f}" in page
    assert "simulated" in (output / "scores_science_exam.html").read_text()
    assert scores["constant"] == pytest.approx(exam.RANDOM_SCORE, abs=0.06)
    assert scores["longest_option"] > 0.55
    assert scores["ranker"] > 0.55
    assert scores["ensemble"] > 0.55
    assert scores["tfidf"] < exam.RANDOM_SCORE


def test_the_published_sample_submission_is_taken(
    challenge_kit: Callable[[str], Path], succeeds: Callable[..., str], tmp_path: Path
) -> None:
    kit = challenge_kit("science_exam")
    train = kit / FOLDER / "data/train_data"
    lines = (train / "sample_submission.csv").read_text().splitlines()
    assert lines[:2] == ["id,prediction", "0,A B C"]
    succeeds([f"{FOLDER}/sample_model_constant.py", "--output_dir", tmp_path], kit=kit)
    assert (tmp_path / "submission.csv").read_text().splitlines() == lines
    flags = ["--submission_dir", train, "--submit_data", "sample_submission.csv"]
    succeeds([f"{FOLDER}/local_evaluation.py", *flags, "--output_dir", tmp_path], kit=kit)
    assert score_of(tmp_path) == pytest.approx(exam.RANDOM_SCORE, abs=0.06)


def test_the_interval_is_that_of_a_mean() -> None:
    points = np.array([1.0, 0.0, 0.5, 0.5])
    # Standard deviation √(1/6), standard error half of that.
    assert exam.interval_95(points) == pytest.approx((0.5 - 0.98 / 6**0.5, 0.5 + 0.98 / 6**0.5))
    assert exam.interval_95(np.ones(3)) == (1.0, 1.0)
    assert exam.interval_95(np.array([1.0, 1, 1, 0]))[1] == 1.0
    assert exam.interval_95(np.ones(1)) == (0.0, 1.0)


def test_more_than_three_labels_warn(
    write: Write, run: Callable[..., "subprocess.CompletedProcess[str]"]
) -> None:
    folder = write("train.csv", HEADER + ROWS).parent
    write("submission.csv", "id,prediction\n1,A C D B\n0,A B C D E\n")
    flags = ["--input_dir", folder, "--submission_dir", folder, "--output_dir", folder]
    done = run([f"{FOLDER}/local_evaluation.py", *flags])
    assert "warning: 2 predictions hold more than 3 labels" in done.stderr
    assert score_of(folder) == 0.5


@pytest.mark.parametrize("model", ["ranker", "ensemble"])
def test_a_learned_model_scores_at_chance_on_random_answers(
    model: str, tmp_path: Path, challenge_kit: Callable[[str], Path], succeeds: Callable[..., str]
) -> None:
    kit = challenge_kit("science_exam")
    lines = (kit / FOLDER / "data/train_data/train.csv").read_text().splitlines()
    rng = np.random.default_rng(1)
    answers = rng.choice(list("ABCDE"), len(lines) - 1)
    shuffled = [f'{line[:-3]}"{answer}"' for line, answer in zip(lines[1:], answers, strict=True)]
    (tmp_path / "train.csv").write_text("\n".join([lines[0], *shuffled]) + "\n")
    flags = ["--input_dir", tmp_path, "--test_data", "train.csv", "--output_dir", tmp_path]
    succeeds([f"{FOLDER}/sample_model_{model}.py", *flags], kit=kit)
    predicted = exam.read_predictions(tmp_path / "submission.csv", [str(n) for n in range(200)])
    # Four standard errors; a model that had seen the answers to what it predicts scores more.
    score = exam.mean_average_precision(list(answers), predicted)
    assert score == pytest.approx(exam.RANDOM_SCORE, abs=0.11)


def test_each_member_of_the_ensemble_changes_what_it_predicts(
    tmp_path: Path, challenge_kit: Callable[[str], Path], succeeds: Callable[..., str]
) -> None:
    kit = challenge_kit("science_exam")
    for name in ("train.csv", "test.csv"):  # A part of them is quicker.
        lines = (kit / FOLDER / "data/train_data" / name).read_text().splitlines()
        (tmp_path / name).write_text("\n".join(lines[:25]))
    found = set()
    for members in (["length"], ["length", "overlap"], ["length", "cosine"], ["length", "words"]):
        flags = ["--input_dir", tmp_path, "--output_dir", tmp_path, "--members", *members]
        succeeds([f"{FOLDER}/sample_model_ensemble.py", *flags], kit=kit)
        found.add((tmp_path / "submission.csv").read_text())
    assert len(found) == 4


@pytest.mark.parametrize(
    ("model", "score"), [("constant", 0.3783), ("longest_option", 0.5825), ("tfidf", 0.2967)]
)
def test_real_questions(
    real_data: Path, tmp_path: Path, succeeds: Callable[..., str], model: str, score: float
) -> None:
    folder = real_data / "related/llm_science_exam"
    flags = ["--input_dir", folder, "--output_dir", tmp_path]
    succeeds([f"{FOLDER}/sample_model_{model}.py", *flags])
    succeeds([f"{FOLDER}/local_evaluation.py", *flags, "--submission_dir", tmp_path])
    assert score_of(tmp_path) == pytest.approx(score, abs=1e-4)
