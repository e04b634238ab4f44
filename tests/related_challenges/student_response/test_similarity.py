"""Student responses: shared phrases, by hand and by trying all."""

from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

similarity = import_module("similarity")


def test_shared_phrases_by_hand() -> None:
    left = similarity.words("The bulb isn't in a closed path, so it is out.")
    assert " ".join(left) == "the bulb isnt in a closed path so it is out"
    right = similarity.words("it is not in a closed path")
    assert similarity.shared_phrases(left, right) == [4, 2]
    overlap, f1, lesk, cosine = similarity.measure(left, right)
    assert (overlap, lesk) == (6, 20)
    assert f1 == pytest.approx(2 * 6 / (11 + 7))
    assert cosine == pytest.approx(6 / 77**0.5)


def plain_phrases(left: list[str], right: list[str]) -> int:
    """Length of the longest shared phrase, by trying all."""
    spans = [(i, j) for i in range(len(left)) for j in range(i + 1, len(left) + 1)]
    inside = [
        j - i for i, j in spans if any(left[i:j] == right[k : k + j - i] for k in range(len(right)))
    ]
    return max(inside, default=0)


texts = st.lists(st.sampled_from("abcd"), max_size=8)


@given(texts, texts)
def test_properties_of_similarity(left: list[str], right: list[str]) -> None:
    lengths = similarity.shared_phrases(left, right)
    assert max(lengths, default=0) == plain_phrases(left, right)
    # As many words as appear in both; only phrases split by an earlier one change the rest.
    assert sum(lengths) == sum(min(left.count(word), right.count(word)) for word in set(left))
    overlap, f1, lesk, cosine = similarity.measure(left, right)
    assert overlap <= lesk <= overlap**2
    assert 0 <= f1 <= cosine + 1e-12 <= 1 + 2e-12
    if left:
        assert similarity.measure(left, left) == (len(left), 1, len(left) ** 2, 1)
