"""Student responses: files of questions, their labels, what is learned and what is predicted."""

import argparse
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from question_files import ONE_ANSWER, Write

from common.errors import InputError

responses = import_module("responses")
train_and_test = import_module("train_and_test")

CORRECT = ' accuracy="correct"'


def test_coarser_labels() -> None:
    names = (*responses.LABEL_SETS[5], responses.UNINTERPRETABLE)
    coarse = {ways: {name: responses.coarsen(name, ways) for name in names} for ways in (2, 3, 5)}
    assert coarse[5] == {name: name for name in names}
    wrong = {name: "incorrect" for name in names if name not in ("correct", names[-1])}
    assert coarse[2] == coarse[5] | wrong
    assert coarse[3] == coarse[2] | {"contradictory": "contradictory"}


def test_labels_are_read_only_where_they_are_needed(write: Write) -> None:
    folder = write("a.xml", ONE_ANSWER.format("a", "M", "a.1", "")).parent
    # Not at all; or, to check a submission, where all have one.
    answers = responses.read_responses(folder, reads_labels=None)
    assert answers.labels == ()
    for name in ("incorrect", "irrelevant"):  # Of two sets: which one is not known.
        good = write("submission.csv", f"id,label\na.1,{name}\n")
        assert responses.read_predictions(good, answers) == [name]
    with pytest.raises(InputError, match="row 2 is 'right', expected one of correct"):
        responses.read_predictions(write("submission.csv", "id,label\na.1,right\n"), answers)
    write("b.xml", ONE_ANSWER.format("b", "M", "b.1", CORRECT))
    for reads_labels in (None, True):
        with pytest.raises(InputError, match=r"a.xml: line 3: <studentAnswer> has no attribute"):
            responses.read_responses(folder, reads_labels=reads_labels)
    write("b.xml", ONE_ANSWER.format("b", "M", "b.1", ' accuracy="whatever"'))
    answers = responses.read_responses(folder, reads_labels=False)
    assert (answers.ids, answers.labels) == (["a.1", "b.1"], ())
    assert answers.label.tolist() == [responses.UNKNOWN] * 2


def test_finds_the_test_sets_of_a_folder(write: Write, tmp_path: Path) -> None:
    write("beetle/train/Core/t.xml", ONE_ANSWER.format("t", "M", "t.1", ""))
    write("beetle/test-unseen-questions/Core/b.xml", ONE_ANSWER.format("b", "M", "b.1", ""))
    write("beetle/test-unseen-answers/a.xml", ONE_ANSWER.format("a", "M", "a.1", ""))
    # One set alone is that of its folder's name.
    one = ["test-unseen-questions"]
    for folder, expected in (
        ("", ["test-unseen-answers", *one]),
        ("test-unseen-questions", one),
        ("test-unseen-questions/Core", one),
    ):
        answers = responses.read_responses(tmp_path / "beetle" / folder, reads_labels=False)
        assert [question.scenario for question in answers.questions] == expected


def join(write: Write, scenario: str, question: str, module: str, answer: str) -> Any:
    """Join a training answer t.1, to question Q of module M, and a test set with one answer."""
    train = write("train/t.xml", ONE_ANSWER.format("Q", "M", "t.1", CORRECT)).parent
    test = write(f"{scenario}/a.xml", ONE_ANSWER.format(question, module, answer, "")).parent
    return train_and_test.join(
        responses.read_responses(train), responses.read_responses(test, reads_labels=False)
    )


@pytest.mark.parametrize(
    ("scenario", "question", "answer", "found"),
    [
        ("test-unseen-answers", "Q", "a.1", [0, 0]),
        ("test-unseen-questions", "R", "a.1", [0, 1]),
        ("anything", "Q", "a.1", [0, 0]),
        ("any", "R", "t.1", r"a.xml: line 3: studentAnswer 't.1' is to be learned .*t.xml"),
        ("test-unseen-answers", "R", "a.1", "question 'R' .* is not in the training files"),
        ("test-unseen-questions", "Q", "a.1", "question 'Q' .* is in .*t.xml, expected a new"),
        ("test-unseen-domains", "R", "a.1", "'R' of module 'M': the module is in the train"),
    ],
)
def test_a_question_of_both_is_one_where_the_test_set_says_so(
    write: Write, scenario: str, question: str, answer: str, found: list[int] | str
) -> None:
    if isinstance(found, str):
        with pytest.raises(InputError, match=found):
            join(write, scenario, question, "M", answer)
    else:
        answers = join(write, scenario, question, "M", answer)
        assert answers.question.tolist() == found
        assert answers.label.tolist() == [0, responses.UNKNOWN]
    # Of another module it is another.
    domains = join(write, "test-unseen-domains", "Q", "N", "a.1")
    assert domains.question.tolist() == [0, 1]


def test_refuses_a_question_twice_in_a_test_set_and_learning_from_one(write: Write) -> None:
    test = write("test-unseen-questions/b.xml", ONE_ANSWER.format("R", "M", "b.1", CORRECT))
    answers = responses.read_responses(test.parent)
    with pytest.raises(InputError, match=r"b.xml: is of a test set, expected files to learn"):
        train_and_test.join(answers, answers)
    with pytest.raises(InputError, match=r"b.xml: question 'R' .* is in .*a.xml, expected a new"):
        join(write, "test-unseen-questions", "R", "M", "a.1")


def test_no_label_of_what_is_predicted_is_given(write: Write) -> None:
    names = ["correct", "contradictory", "irrelevant"] * 8
    for number, name in enumerate(names):
        label = f' accuracy="{name}"'
        xml = write(f"xml/{number}.xml", ONE_ANSWER.format(number, "M", f"a.{number}", label))
    write("folds.csv", "id,fold\n" + "".join(f"a.{n},{n // 8}\n" for n in range(24)))
    flags: dict[str, Any] = {"input_dir": xml.parent, "submission_template_dir": xml.parent.parent}
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
    other = write("test/b.xml", ONE_ANSWER.format("Q", "M", "b.1", CORRECT)).parent
    flags |= {"train_dir": xml.parent, "test_dir": other}
    answers, ((train, test, label),) = train_and_test.read(argparse.Namespace(**flags))
    assert label.tolist() == [*known.label.tolist(), responses.UNKNOWN] == answers.label.tolist()
    assert test.tolist() == [False] * 24 + [True] == (~train).tolist()
