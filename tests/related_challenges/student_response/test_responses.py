"""Student responses: files of questions, their labels, and submissions."""

from importlib import import_module
from pathlib import Path

import pytest
from question_files import GOOD, ONE_ANSWER, TWO_ANSWERS, Write

from common.errors import InputError

responses = import_module("responses")


@pytest.mark.parametrize(
    ("name", "ways", "coarse"),
    [
        ("irrelevant", 5, "irrelevant"),
        ("irrelevant", 3, "incorrect"),
        ("contradictory", 3, "contradictory"),
        ("contradictory", 2, "incorrect"),
        ("correct", 2, "correct"),
        ("uninterpretable", 2, "uninterpretable"),
    ],
)
def test_coarser_labels(name: str, ways: int, coarse: str) -> None:
    assert responses.coarsen(name, ways) == coarse


@pytest.mark.parametrize(
    ("labels", "ways"),
    [
        (("correct", "incorrect"), 2),
        (("contradictory", "incorrect"), 3),
        (("correct", "contradictory"), 5),
        (("correct", "non_domain"), 5),
    ],
)
def test_finds_the_label_set(write: Write, labels: tuple[str, str], ways: int) -> None:
    folder = write("a.xml", TWO_ANSWERS.format("a", *labels)).parent
    answers = responses.read_responses(folder)
    assert answers.labels == responses.LABEL_SETS[ways]
    assert [answers.labels[number] for number in answers.label] == list(labels)
    assert answers.texts == ["it is", ""]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (GOOD[:200], "is not XML.*is the file cut off"),
        ("<answers/>", "holds <answers>, expected <question>"),
        (GOOD.replace("Why?", ""), "<questionText> is missing or empty"),
        (
            GOOD.replace("referenceAnswer ", "other ").replace("/referenceAnswer>", "/other>"),
            "no referenceAnswer",
        ),
        (GOOD.replace("a.2", "a.1"), "studentAnswer 'a.1' is in .* already"),
        (GOOD.replace('accuracy="correct"', ""), "<studentAnswer> has no attribute 'accuracy'"),
        (GOOD.replace('"correct"', '"right"'), "studentAnswer 'a.1' is 'right', expected one of"),
        (GOOD.replace('"correct"', '"incorrect"'), "'a.1' is 'incorrect', expected one of"),
        (f'<?xml version="1.0" encoding="nothing"?>{GOOD}', "cannot be read as XML: unknown encod"),
        (f'<?xml version="1.0" encoding="shift_jis"?>{GOOD}', "cannot be read as XML: multi-byte"),
        (GOOD.replace('"correct"', '"\u202eevil"'), r"'a.1' is '\\u202eevil', expected one of"),
    ],
)
def test_refuses_wrong_questions(write: Write, content: str, message: str) -> None:
    folder = write("a.xml", content).parent
    with pytest.raises(InputError, match=message):
        responses.read_responses(folder)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,label\na.1,correct\n", "1 of 2 ids are missing, first 'a.2'"),
        ("id,label\na.1,correct\na.2,right\n", "row 3 is 'right', expected one of correct"),
        ("id,label\na.1,correct\na.1,correct\n", "row 3 repeats 'a.1'"),
        ("id,label\na.1,correct\na.3,correct\n", "row 3 is 'a.3', which is not in the answers"),
        ("id,label\na.1,correct\na.2,\n", "row 3 is empty"),
    ],
)
def test_refuses_a_wrong_submission(write: Write, content: str, message: str) -> None:
    answers = responses.read_responses(write("a.xml", GOOD).parent)
    with pytest.raises(InputError, match=message):
        responses.read_predictions(write("submission.csv", content), answers)


def test_labels_are_not_read_where_answers_are_only_predicted(write: Write) -> None:
    folder = write("a.xml", ONE_ANSWER.format("a", "M", "a.1", "")).parent
    write("b.xml", ONE_ANSWER.format("b", "M", "b.1", ' accuracy="whatever"'))
    answers = responses.read_responses(folder, reads_labels=False)
    assert (answers.ids, answers.labels) == (["a.1", "b.1"], ())
    assert answers.label.tolist() == [responses.UNKNOWN] * 2
    with pytest.raises(InputError, match=r"a.xml: line 3: <studentAnswer> has no attribute 'accu"):
        responses.read_responses(folder)


def test_submissions_for_answers_without_labels_are_checked(write: Write) -> None:
    folder = write("a.xml", ONE_ANSWER.format("a", "M", "a.1", "")).parent
    answers = responses.read_responses(folder, reads_labels=None)
    assert answers.labels == ()
    for name in ("incorrect", "irrelevant"):  # Of two sets: which one is not known.
        good = write("submission.csv", f"id,label\na.1,{name}\n")
        assert responses.read_predictions(good, answers) == [name]
    with pytest.raises(InputError, match="row 2 is 'right', expected one of correct"):
        responses.read_predictions(write("submission.csv", "id,label\na.1,right\n"), answers)
    write("b.xml", ONE_ANSWER.format("b", "M", "b.1", ' accuracy="correct"'))
    with pytest.raises(InputError, match=r"a.xml: line 3: <studentAnswer> has no attribute"):
        responses.read_responses(folder, reads_labels=None)


def test_finds_the_test_sets_of_a_folder(write: Write, tmp_path: Path) -> None:
    write("beetle/train/Core/t.xml", ONE_ANSWER.format("t", "M", "t.1", ""))
    write("beetle/test-unseen-questions/Core/b.xml", ONE_ANSWER.format("b", "M", "b.1", ""))
    write("beetle/test-unseen-answers/a.xml", ONE_ANSWER.format("a", "M", "a.1", ""))
    answers = responses.read_responses(tmp_path / "beetle", reads_labels=False)
    assert [question.scenario for question in answers.questions] == [
        "test-unseen-answers",
        "test-unseen-questions",
    ]
    for folder in ("test-unseen-questions", "test-unseen-questions/Core"):
        one = responses.read_responses(tmp_path / "beetle" / folder, reads_labels=False)
        # One set alone is that of its folder's name.
        assert [question.scenario for question in one.questions] == ["test-unseen-questions"]
