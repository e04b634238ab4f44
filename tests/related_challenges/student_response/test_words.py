"""Student responses: how words of texts match, by hand, as properties, and without a leak."""

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from question_files import GOOD, Write

alignment = import_module("alignment")
responses = import_module("responses")
similarity = import_module("similarity")


def words_of(vocabulary: list[str], question: list[str]) -> Any:
    return alignment.know_words(vocabulary, question, 9, alignment.Counter({"the": 9}))


def test_shared_phrases_by_hand() -> None:
    left = similarity.words("The bulb isn't in a closed path, so it is out.")
    assert " ".join(left) == "the bulb isnt in a closed path so it is out"
    right = similarity.words("it is not in a closed path")
    assert similarity.shared_phrases(left, right) == [4, 2]
    assert similarity.measure(left, right) == pytest.approx((6, 12 / (11 + 7), 20, 6 / 77**0.5))


def test_alignment_by_hand() -> None:
    assert alignment.stems("The switches connected it") == ["the", "switch", "connect", "it"]
    spelling = alignment.compare_spelling(["bulb", "bulbs", "cat"])
    # ^bulb$ has 5 pairs and 4 triples, ^bulbs$ 6 and 5; they share ^b bu ul lb ^bu bul ulb.
    assert spelling[0].tolist() == pytest.approx([1, 2 * 7 / (9 + 11), 0])
    weight = np.array([1.0, 1.0, 3.0])
    covered = alignment.covered(np.array([0, 2]), np.array([1]), spelling, weight)
    assert covered == pytest.approx(0.7 / 4)
    runs = alignment.shared_runs(np.array([0, 1, 2]), np.array([0, 1, 0, 1]), 2)
    assert runs == (1 / 3, 1 / 2)


def test_words_are_weighed_and_told_apart() -> None:
    words = words_of(["the", "bulb", "not", "b", "12", "bulbz"], ["bulb"])
    usual = np.log(10) + 0.3
    assert words.weight.tolist() == pytest.approx([0.09, usual, 0.3 * usual, *[usual] * 3])
    assert words.is_negation.tolist() == [False, False, True, False, False, False]
    assert words.is_symbol.tolist() == [False, False, False, True, True, False]
    assert words.is_in_question.tolist() == [False, True, False, False, False, False]
    for text, kinds in (("nothing", "NEGATIONS"), ("does this", "FUNCTION_WORDS")):
        assert set(alignment.stems(text)) <= getattr(alignment, kinds), text


def test_an_answer_is_compared_with_a_reference() -> None:
    words = words_of(["the", "bulb", "not", "b", "light", "lights"], ["bulb"])

    def compare(left: list[int], right: list[int]) -> dict[str, float]:
        values = alignment.compare(np.array(left, int), np.array(right, int), words)
        return dict(zip(alignment.COMPARED, values, strict=True))

    compared, swapped = compare([0, 1, 2, 4], [1, 5]), compare([1, 5], [0, 1, 2, 4])
    # What an answer covers of a reference is what the reference covers of the answer, swapped.
    assert compared["precision"] == swapped["recall"] < compared["recall"] == swapped["precision"]
    assert compared["more negations"] == -swapped["more negations"] != 0
    same = compare([0, 1, 2], [0, 1, 2])
    assert (same["f1"], same["recall of words as spelt"]) == pytest.approx((1, 1))
    assert same["rarest word missing"] == 0 < swapped["rarest word missing"]
    assert np.isfinite([*compare([], [1]).values(), *compare([1], []).values()]).all()


def test_features_know_neither_labels_nor_other_answers_to_predict(write: Write) -> None:
    def read(last: str) -> Any:
        text = GOOD.replace("it is", "the bulb is lit").replace("></studentA", f">{last}</studentA")
        return responses.read_responses(write("a.xml", text).parent, reads_labels=False)

    train = np.array([True, False])
    features = [alignment.describe(read(last), train) for last in ("because", "no", "")]
    assert np.isfinite(features).all()
    for other in features[1:]:
        np.testing.assert_array_equal(features[0][0], other[0])
        assert (features[0][1] != other[1]).any()
    # Only the words of training answers are counted.
    assert (alignment.describe(read("because"), ~train) != features[0]).any()
    marked = alignment.mark_words(read("because lamp"))
    assert marked[1] == "=because +lamp because_lamp because lamp"


def test_texts_without_a_word_have_features_too(write: Write) -> None:
    text = GOOD.replace("Because.", "!").replace("Why?", "?").replace("it is", "...")
    answers = responses.read_responses(write("a.xml", text).parent)
    assert np.isfinite(alignment.describe(answers, np.array([True, False]))).all()
    assert alignment.mark_words(answers) == ["", ""]
