"""Measure how similar texts are: by the phrases that two texts share, and by weighted terms."""

import re
from collections.abc import Callable, Iterable, Sequence
from difflib import SequenceMatcher
from functools import cache
from typing import Any

from common.arrays import BoolArray, FloatArray

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfVectorizer


def words(text: str) -> list[str]:
    """Split a text into lower-case words; apostrophes are dropped, other signs split words."""
    return re.sub(r"[^a-z0-9_]+", " ", text.lower().replace("'", "")).split()


def shared_phrases(left: Sequence[str], right: Sequence[str]) -> list[int]:
    """Return the lengths of the phrases that two texts share, longest first.

    Each phrase found is removed from both texts before the next one is searched. A phrase does not
    reach across the gap of a removed one.

    Parameters
    ----------
    left, right : sequence of str
        Words of the texts.
    """
    left = list(left)
    right = list(right)
    lengths: list[int] = []
    while True:
        match = SequenceMatcher(None, left, right, autojunk=False).find_longest_match()
        if match.size == 0:
            return lengths
        # The gaps differ from all words and from those of the other text, so that none match.
        left[match.a : match.a + match.size] = [" "] * match.size
        right[match.b : match.b + match.size] = [""] * match.size
        lengths.append(match.size)


def measure(left: Sequence[str], right: Sequence[str]) -> tuple[float, float, float, float]:
    """Measure the similarity of two texts by the phrases they share.

    Parameters
    ----------
    left, right : sequence of str
        Words of the texts.

    Returns
    -------
    overlap : float
        Number of words in shared phrases.
    f1 : float
        F1 of the shares of both texts' words in shared phrases.
    lesk : float
        Sum of the squared lengths of shared phrases (Banerjee and Pedersen 2003).
    cosine : float
        Overlap divided by the root of the product of both lengths.
    """
    lengths = shared_phrases(left, right)
    overlap = sum(lengths)
    if not overlap:
        return 0.0, 0.0, 0.0, 0.0
    f1 = 2 * overlap / (len(left) + len(right))
    lesk = sum(length**2 for length in lengths)
    cosine = overlap / (len(left) * len(right)) ** 0.5
    return overlap, f1, lesk, cosine


def describe(answers: pd.DataFrame) -> FloatArray:
    """Measure how similar answers are to their question and to their reference answers.

    Parameters
    ----------
    answers : DataFrame
        Answers as in `responses.py`.

    Returns
    -------
    ndarray of float64, shape (answers, 8)
        The four values of `measure` for the question, then the largest of each for the references.
    """

    @cache
    def largest_measures(text: str, *others: str) -> FloatArray:
        measures = [measure(words(text), words(other)) for other in others]
        return np.asarray(np.max(measures, axis=0))

    rows = []
    for text, question, references in zip(
        answers["text"], answers["question_text"], answers["references"], strict=True
    ):
        rows.append([*largest_measures(text, question), *largest_measures(text, *references)])
    return np.array(rows)


def words_by_question(answers: pd.DataFrame, split: Callable[[str], list[str]]) -> list[str]:
    """Return the words of each answer marked with their question, such as ``3_bulb 3_lit``.

    A linear model on these words learns what a word means for each question.

    Parameters
    ----------
    answers : DataFrame
        Answers as in `responses.py`.
    split : callable
        Splits a text into words.
    """
    texts = []
    for question, text in zip(answers["question"], answers["text"], strict=True):
        texts.append(" ".join(f"{question}_{word}" for word in split(text)))
    return texts


def weigh_terms(texts: Iterable[str], train: BoolArray, **options: Any) -> csr_array:
    """Weigh the terms of texts by TF-IDF, fitted to the training texts alone.

    Parameters
    ----------
    texts : iterable of str
        All texts.
    train : ndarray of bool, shape (texts,)
        Whether a text is a training text.
    **options
        Options of `TfidfVectorizer`; they say what a term is.

    Returns
    -------
    csr_array of float64, shape (texts, terms)
    """
    vectorizer = TfidfVectorizer(sublinear_tf=True, **options)
    vectorizer.fit([text for text, is_train in zip(texts, train, strict=True) if is_train])
    return csr_array(vectorizer.transform(texts))
