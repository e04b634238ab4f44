"""Student responses: how words of texts match, by hand, as properties, and without a leak."""

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from question_files import GOOD, Write

alignment = import_module("alignment")
responses = import_module("responses")
similarity = import_module("similarity")


def compared(write: Write, question: str, reference: str, *answers: str) -> Any:
    """Return how answers to a question compare with its reference answer, all answers known."""
    elements = (
        f'<studentAnswer id="{number}" accuracy="correct">{text}</studentAnswer>'
        for number, text in enumerate(answers)
    )
    own = GOOD.replace("Why?", question).replace("Because.", reference)
    head, tail = own.split("<studentAnswers>")[0], "</studentAnswers></question>"
    path = write("a.xml", f"{head}<studentAnswers>{''.join(elements)}{tail}")
    found = responses.read_responses(path.parent)
    features = alignment.Matches(found).describe(np.ones(len(found), bool))
    return [dict(zip(alignment.COMPARED, row, strict=False)) for row in features]


def test_shared_phrases_by_hand() -> None:
    left = similarity.words("The bulb isn't in a closed path, so it is out.")
    assert " ".join(left) == "the bulb isnt in a closed path so it is out"
    right = similarity.words("it is not in a closed path")
    assert similarity.shared_phrases(left, right) == [4, 2]
    assert similarity.measure(left, right) == pytest.approx((6, 12 / (11 + 7), 20, 6 / 77**0.5))


def test_alignment_by_hand(write: Write) -> None:
    assert alignment.stems("The switches connected it") == ["the", "switch", "connect", "it"]
    spelling = alignment.compare_spelling(["bulb", "bulbs", "cat"])
    # ^bulb$ has 5 pairs and 4 triples, ^bulbs$ 6 and 5; they share ^b bu ul lb ^bu bul ulb.
    assert spelling.toarray()[0].tolist() == pytest.approx([1, 2 * 7 / (9 + 11), 0])
    (row,) = compared(write, "Why?", "bulb cat", "bulbz the")
    names = ("recall of content words", "precision of content words")
    assert [row[name] for name in names] == pytest.approx([0.7 / 2, 0.7])
    (row,) = compared(write, "Why?", "x y x y", "x y z")
    names = ("recall of pairs", "precision of pairs", "recall of triples", "log of lengths' ratio")
    assert [row[name] for name in names] == pytest.approx([1 / 3, 1 / 2, 0, np.log(4 / 5)])


def test_words_are_told_apart_and_weighed(write: Write) -> None:
    rows = compared(write, "Why?", "the bulb b 12 bulbz", "b", "the not bulb")
    names = ("recall of symbols", "precision of symbols", "more negations")
    assert [[row[name] for name in names] for row in rows] == [[0.5, 1, 0], [0, 1, 1]]
    for text, kinds in (("nothing", "NEGATIONS"), ("does this", "FUNCTION_WORDS")):
        assert set(alignment.stems(text)) <= getattr(alignment, kinds), text

    # Of three answers all have "the", one "zebra" and none "quiz" or "not".
    answers = ("the", "the zebra", "the")
    rarest = "rarest word missing"
    for reference, weight in (
        ("quiz", np.log(4) + 0.3), ("not", 0.3 * (np.log(4) + 0.3)), ("zebra", np.log(2) + 0.3),
        ("the", 0),
    ):  # fmt: skip
        assert compared(write, "Why?", reference, *answers)[0][rarest] == pytest.approx(weight)
    features = compared(write, "Why?", "the zebra", *answers)[0]
    assert features["recall"] == pytest.approx(0.09 / (0.09 + np.log(2) + 0.3))
    # Of a reference answer, "bulb" is the question's own, "bulbz" is not.
    lacking = "recall of what the question lacks"
    rows = compared(write, "Which bulb?", "bulb zebra", "bulb", "zebra")
    assert [row[lacking] for row in rows] == [0, 1]
    assert compared(write, "Which bulb?", "bulbz zebra", "zebra")[0][lacking] < 1


def test_an_answer_is_compared_with_a_reference(write: Write) -> None:
    left, right = "the bulb not light", "bulb lightz"
    others = ("", "x", "x")
    (first, *_) = compared(write, "Which bulb?", right, left, right, *others)
    (_, swapped, *_) = compared(write, "Which bulb?", left, left, right, *others)
    # What an answer covers of a reference is what the reference covers of the answer, swapped.
    assert first["precision"] == swapped["recall"] < first["recall"] == swapped["precision"]
    assert first["more negations"] == -swapped["more negations"] != 0
    same = compared(write, "Which bulb?", left, left, *others)[0]
    assert (same["f1"], same["recall of words as spelt"]) == pytest.approx((1, 1))
    assert same["rarest word missing"] == 0 < swapped["rarest word missing"]
    empty = compared(write, "Which bulb?", right, *others)[0]
    assert np.isfinite([*empty.values()]).all() and empty["recall"] == 0


def test_features_know_neither_labels_nor_other_answers_to_predict(write: Write) -> None:
    def read(last: str) -> Any:
        text = GOOD.replace("it is", "the bulb is lit").replace("></studentA", f">{last}</studentA")
        return responses.read_responses(write("a.xml", text).parent, reads_labels=False)

    train = np.array([True, False])

    def describe(last: str, train: Any = train) -> Any:
        return alignment.Matches(read(last)).describe(train)

    features = [describe(last) for last in ("because", "no", "")]
    assert np.isfinite(features).all()
    for other in features[1:]:
        np.testing.assert_array_equal(features[0][0], other[0])
        assert (features[0][1] != other[1]).any()
    # Only the words of training answers are counted.
    assert (describe("because", ~train) != features[0]).any()
    marked = alignment.mark_words(read("because lamp"))
    assert marked[1] == "=because +lamp because_lamp because lamp"
    # Texts without a word have features too.
    text = GOOD.replace("Because.", "!").replace("Why?", "?").replace("it is", "...")
    answers = responses.read_responses(write("a.xml", text).parent)
    assert np.isfinite(alignment.Matches(answers).describe(train)).all()
    assert alignment.mark_words(answers) == ["", ""]
