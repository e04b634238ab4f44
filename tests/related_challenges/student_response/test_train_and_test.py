"""Student responses: what is learned from and what is predicted."""

import argparse
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from question_files import FOLDER, ONE_ANSWER, Write

from common.errors import InputError

responses = import_module("responses")
train_and_test = import_module("train_and_test")


def join(write: Write, scenario: str, question: str, module: str, answer: str) -> Any:
    """Join training answers t.1, to question Q of module M, and a test set with one answer."""
    train = write("train/t.xml", ONE_ANSWER.format("Q", "M", "t.1", ' accuracy="correct"')).parent
    test = write(f"{scenario}/a.xml", ONE_ANSWER.format(question, module, answer, "")).parent
    return train_and_test.join(
        responses.read_responses(train), responses.read_responses(test, reads_labels=False)
    )


@pytest.mark.parametrize(
    ("scenario", "question", "module", "numbers"),
    [
        ("test-unseen-answers", "Q", "M", [0, 0]),
        ("test-unseen-questions", "R", "M", [0, 1]),
        ("test-unseen-domains", "Q", "N", [0, 1]),
        ("anything", "Q", "M", [0, 0]),
    ],
)
def test_join_numbers_questions(
    write: Write, scenario: str, question: str, module: str, numbers: list[int]
) -> None:
    answers: Any = join(write, scenario, question, module, "a.1")
    assert answers.question.tolist() == numbers
    assert answers.label.tolist() == [0, responses.UNKNOWN]


def test_no_label_of_what_is_predicted_is_given(write: Write) -> None:
    names = ["correct", "contradictory", "irrelevant"] * 8
    for number, name in enumerate(names):
        label = f' accuracy="{name}"'
        xml = write(f"xml/{number}.xml", ONE_ANSWER.format(number, "M", f"a.{number}", label))
    write("folds.csv", "id,fold\n" + "".join(f"a.{n},{n // 8}\n" for n in range(24)))
    flags = {"input_dir": xml.parent, "submission_template_dir": xml.parent.parent}
    flags |= {"submission_template_file": "folds.csv", "train_dir": None, "test_dir": None}
    known = responses.read_responses(xml.parent)
    answers, splits = train_and_test.read(argparse.Namespace(**flags))
    assert (answers.label == responses.UNKNOWN).all()
    assert len(splits) == 3
    for train, test, label in splits:
        assert (train == ~test).all() and test.sum() == 8
        assert (label[train] == known.label[train]).all()
        assert (label[test] == responses.UNKNOWN).all()
    # The same, of one folder and another.
    flags |= {"train_dir": xml.parent, "test_dir": write("test/b.xml", ONE_ANSWER.format(
        "Q", "M", "b.1", ' accuracy="correct"')).parent}  # fmt: skip
    answers, ((train, test, label),) = train_and_test.read(argparse.Namespace(**flags))
    assert label.tolist() == [*known.label.tolist(), responses.UNKNOWN] == answers.label.tolist()
    assert test.tolist() == [False] * 24 + [True] == (~train).tolist()


@pytest.mark.parametrize(
    ("scenario", "question", "module", "answer", "message"),
    [
        ("any", "R", "M", "t.1", r"a.xml: line 3: studentAnswer 't.1' is to be learned .*t.xml"),
        ("test-unseen-answers", "R", "M", "a.1", "question 'R' .* is not in the training files"),
        ("test-unseen-questions", "Q", "M", "a.1", "question 'Q' .* is in .*t.xml, expected a new"),
        ("test-unseen-domains", "R", "M", "a.1", "'R' of module 'M': the module is in the train"),
    ],
)
def test_refuses_test_sets_that_are_none(
    write: Write, scenario: str, question: str, module: str, answer: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        join(write, scenario, question, module, answer)


def test_refuses_a_question_twice_in_a_test_set(write: Write) -> None:
    write("test-unseen-questions/b.xml", ONE_ANSWER.format("R", "M", "b.1", ""))
    with pytest.raises(InputError, match=r"b.xml: question 'R' .* is in .*a.xml, expected a new"):
        join(write, "test-unseen-questions", "R", "M", "a.1")


def test_refuses_to_learn_from_a_test_set(write: Write) -> None:
    test = write(
        "test-unseen-answers/a.xml", ONE_ANSWER.format("Q", "M", "a.1", ' accuracy="correct"')
    )
    answers = responses.read_responses(test.parent)
    with pytest.raises(InputError, match=r"a.xml: is of a test set, expected files to learn"):
        train_and_test.join(answers, answers)


def test_refuses_training_files_without_a_test(fails: Callable[..., str], tmp_path: Path) -> None:
    line = fails([f"{FOLDER}/sample_model_majority.py", "--train_dir", tmp_path])
    assert "--train_dir needs --test_dir" in line


def test_refuses_to_learn_one_label(
    write: Write, fails: Callable[..., str], tmp_path: Path
) -> None:
    write("train/t.xml", ONE_ANSWER.format("Q", "M", "t.1", ' accuracy="correct"'))
    write("test/t.xml", ONE_ANSWER.format("Q", "M", "t.2", ""))
    flags = ["--train_dir", tmp_path / "train", "--test_dir", tmp_path / "test"]
    line = fails([f"{FOLDER}/sample_model_majority.py", *flags, "--output_dir", tmp_path])
    assert "train: all 1 answers to learn from are 'correct', expected at least two" in line
    assert not (tmp_path / "submission.csv").exists()


@pytest.mark.parametrize("name", ["lexical_similarity", "word_svm", "similarity_boosting"])
def test_few_answers_to_one_question(
    write: Write, succeeds: Callable[..., str], fails: Callable[..., str], tmp_path: Path, name: str
) -> None:
    write("test/t.xml", ONE_ANSWER.format("R", "M", "t.1", ""))
    answer = '<studentAnswer id="{}" accuracy="correct">it is lit</studentAnswer>'
    flags = ["--train_dir", tmp_path / "train", "--test_dir", tmp_path / "test"]
    script = [f"{FOLDER}/sample_model_{name}.py", *flags, "--output_dir", tmp_path]

    def write_answers(n_correct: int) -> None:
        own = "".join(answer.format(number) for number in range(n_correct))
        text = ONE_ANSWER.format("Q", "M", "t.2", ' accuracy="incorrect"')
        write("train/t.xml", text.replace("</studentAnswers>", f"{own}</studentAnswers>"))

    write_answers(5)
    succeeds(script)
    assert (tmp_path / "submission.csv").read_text().startswith("id,label\nt.1,")
    if name == "word_svm":
        write_answers(4)
        line = fails(script)
        assert "train: of 5 answers to learn from only 4 are 'correct', the most frequ" in line
