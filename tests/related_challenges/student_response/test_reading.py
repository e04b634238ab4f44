"""Student responses: files of questions, their labels, what is learned and what is predicted."""

import argparse
from importlib import import_module
from pathlib import Path
from typing import Any

from common.errors import InputError

import pytest
from question_files import Write, one_answer

responses = import_module("responses")


def test_coarser_labels() -> None:
    names = (*responses.LABEL_SETS[5], responses.UNINTERPRETABLE)
    coarse = {ways: {name: responses.coarsen(name, ways) for name in names} for ways in (2, 3, 5)}
    assert coarse[5] == {name: name for name in names}
    wrong = {name: "incorrect" for name in names if name not in ("correct", names[-1])}
    assert coarse[2] == coarse[5] | wrong
    assert coarse[3] == coarse[2] | {"contradictory": "contradictory"}


def test_labels_are_read_only_where_they_are_needed(write: Write) -> None:
    folder = write("a.xml", one_answer("a", "a.1")).parent
    # Not at all; or, to check a submission, where all have one.
    answers = responses.read_responses(folder, reads_labels=None)
    assert responses.labels_of(answers) == []
    for name in ("incorrect", "irrelevant"):  # Of two sets: which one is not known.
        good = write("submission.csv", f"id,label\na.1,{name}\n")
        assert responses.read_predictions(good, answers) == [name]
    with pytest.raises(InputError, match="row 2 is 'right', expected one of correct"):
        responses.read_predictions(write("submission.csv", "id,label\na.1,right\n"), answers)
    write("b.xml", one_answer("b", "b.1", "correct"))
    for reads_labels in (None, True):
        with pytest.raises(InputError, match=r"a.xml: line 3: <studentAnswer> has no attribute"):
            responses.read_responses(folder, reads_labels=reads_labels)
    write("b.xml", one_answer("b", "b.1", "whatever"))
    answers = responses.read_responses(folder, reads_labels=False)
    assert (answers["id"].tolist(), responses.labels_of(answers)) == (["a.1", "b.1"], [])
    assert answers["label"].isna().all()


def test_finds_the_test_sets_of_a_folder(write: Write, tmp_path: Path) -> None:
    write("beetle/train/Core/t.xml", one_answer("t", "t.1"))
    write("beetle/test-unseen-questions/Core/b.xml", one_answer("b", "b.1"))
    write("beetle/test-unseen-answers/a.xml", one_answer("a", "a.1"))
    # One set alone is that of its folder's name.
    one = "test-unseen-questions"
    for folder, expected in (
        ("", ["test-unseen-answers", one]), (one, [one]), (f"{one}/Core", [one])
    ):  # fmt: skip
        answers = responses.read_responses(tmp_path / "beetle" / folder, reads_labels=False)
        assert answers["scenario"].tolist() == expected


def join(write: Write, scenario: str, question: str, module: str, answer: str) -> Any:
    """Join a training answer t.1, to question Q of module M, and a test set with one answer."""
    train = write("train/t.xml", one_answer("Q", "t.1", "correct")).parent
    test = write(f"{scenario}/a.xml", one_answer(question, answer, module=module)).parent
    return responses.join(
        responses.read_responses(train), responses.read_responses(test, reads_labels=False)
    )


@pytest.mark.parametrize(
    ("scenario", "question", "module", "found"),
    [
        ("test-unseen-answers", "Q", "M", [0, 0]),
        ("test-unseen-questions", "R", "M", [0, 1]),
        ("test-unseen-domains", "Q", "N", [0, 1]),  # Of another module it is another.
        ("anything", "Q", "M", [0, 0]),
    ],
)
def test_a_question_of_both_is_one_where_the_test_set_says_so(
    write: Write, scenario: str, question: str, module: str, found: list[int]
) -> None:
    answers = join(write, scenario, question, module, "a.1")
    assert answers["question"].tolist() == found
    assert answers["label"].cat.codes.tolist() == [0, -1]


def test_wrong_test_sets_are_refused(write: Write) -> None:
    for scenario, question, answer, message in (
        ("any", "R", "t.1", r"a.xml: line 3: studentAnswer 't.1' is to be learned .*t.xml"),
        ("test-unseen-answers", "R", "a.1", "question 'R' .* is not in the training files"),
        ("test-unseen-questions", "Q", "a.1", "question 'Q' .* is in .*t.xml, expected a new"),
        ("test-unseen-domains", "R", "a.1", "'R' of module 'M': the module is in the train"),
    ):
        with pytest.raises(InputError, match=message):
            join(write, scenario, question, "M", answer)
    test = write("test-unseen-questions/b.xml", one_answer("R", "b.1", "correct"))
    (test.parent / "a.xml").unlink()
    answers = responses.read_responses(test.parent)
    with pytest.raises(InputError, match=r"b.xml: is of a test set, expected files to learn"):
        responses.join(answers, answers)
    with pytest.raises(InputError, match=r"b.xml: question 'R' .* is in .*a.xml, expected a new"):
        join(write, "test-unseen-questions", "R", "M", "a.1")


def test_no_label_of_what_is_predicted_is_given(write: Write, tmp_path: Path) -> None:
    for number, name in enumerate(["correct", "contradictory", "irrelevant"] * 8):
        write(f"xml/{number}.xml", one_answer(number, f"a.{number}", name))
    write("folds.csv", "id,fold\n" + "".join(f"a.{n},{n // 8}\n" for n in range(24)))
    flags: dict[str, Any] = {"input_dir": tmp_path / "xml", "submission_template_dir": tmp_path}
    flags |= {"submission_template_file": "folds.csv", "train_dir": None, "test_dir": None}
    known = responses.read_responses(tmp_path / "xml")["label"].cat.codes.to_numpy()
    answers, splits = responses.read(argparse.Namespace(**flags))
    assert answers["label"].isna().all()
    assert len(splits) == 3
    for train, test, label in splits:
        assert (train == ~test).all() and test.sum() == 8
        assert (label[train] == known[train]).all()
        assert (label[test] == responses.UNKNOWN).all()
    # The same, of one folder and another.
    other = write("test/b.xml", one_answer("Q", "b.1", "correct")).parent
    flags |= {"train_dir": tmp_path / "xml", "test_dir": other}
    answers, ((train, test, label),) = responses.read(argparse.Namespace(**flags))
    assert (
        label.tolist()
        == [*known.tolist(), responses.UNKNOWN]
        == answers["label"].cat.codes.tolist()
    )
    assert test.tolist() == [False] * 24 + [True] == (~train).tolist()
