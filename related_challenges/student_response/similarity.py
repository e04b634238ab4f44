"""Measures of the similarity of texts by shared phrases, and TF-IDF weights of terms."""

import re
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from functools import cache
from typing import Any

from common.arrays import BoolArray, FloatArray

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfVectorizer

# Characters that split words in the package Text::Similarity.
SEPARATORS = str.maketrans(dict.fromkeys('.;:,?!(){}"`$%@<>_', " "))


def words(text: str) -> list[str]:
    """Split a text into lower-case words.

    Apostrophes are dropped. Every other character that is not a letter a to z, a digit or an
    underscore splits words.
    """
    return re.sub(r"[^a-z0-9_]+", " ", text.lower().replace("'", "")).split()


def words_as_in_package(text: str) -> list[str]:
    """Split a text into lower-case words as the package Text::Similarity does.

    Unlike `words`, the package keeps apostrophes and hyphens inside words, and most other symbols.

    Parameters
    ----------
    text : str
        A text, such as ``The bulb isn't burnt-out.``, whose words are the, bulb, isn't, burnt-out.
    """
    text = text.lower().translate(SEPARATORS)
    # Remove apostrophes that do not stand between two letters or digits.
    text = re.sub(r"(?<!\w)'|'(?!\w)", " ", text)
    # Two hyphens are a dash, which separates words.
    return text.replace("--", " ").split()


def shared_phrases(left: Sequence[str], right: Sequence[str]) -> list[int]:
    """Return the lengths in words of the phrases that two texts share, longest first.

    The first phrase is the longest run of words that both texts share. It is removed from both
    texts, and the longest run that they still share is the next phrase, and so on. Words from
    before and after a removed phrase are never in the same run.

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
        # Replace the phrase by placeholders, which match nothing: neither " " nor "" is a word, and
        # the two placeholders differ from each other.
        left[match.a : match.a + match.size] = [" "] * match.size
        right[match.b : match.b + match.size] = [""] * match.size
        lengths.append(match.size)


def phrase_measures(left: Sequence[str], right: Sequence[str]) -> tuple[float, float, float, float]:
    """Measure the similarity of two texts by the phrases they share.

    The measures are those of Text::Similarity (https://metacpan.org/dist/Text-Similarity) with its
    default parameters: without a list of stop words. Dzikovska et al. (2012) use this package.

    Parameters
    ----------
    left, right : sequence of str
        Words of the texts.

    Returns
    -------
    overlap : float
        Number of words in shared phrases.
    f1 : float
        Harmonic mean of two shares: of the words of `left`, and of the words of `right`, that are
        in shared phrases.
    lesk : float
        Sum of the squared lengths of shared phrases (Banerjee and Pedersen 2003), divided by the
        product of both lengths.
    cosine : float
        Overlap divided by the root of the product of both lengths.
    """
    lengths = shared_phrases(left, right)
    overlap = sum(lengths)
    if not overlap:
        return 0.0, 0.0, 0.0, 0.0
    f1 = 2 * overlap / (len(left) + len(right))
    product = len(left) * len(right)
    lesk = sum(length**2 for length in lengths) / product
    cosine = overlap / product**0.5
    return float(overlap), f1, lesk, cosine


def describe(answers: pd.DataFrame) -> FloatArray:
    """Measure how similar answers are to their question and to their reference answers.

    Parameters
    ----------
    answers : DataFrame
        Answers, as described at the top of `responses.py`.

    Returns
    -------
    ndarray of float64, shape (answers, 8)
        The values of `phrase_measures` (overlap, F1, Lesk and cosine) for the question, then the
        largest value of each over the references.
    """

    # Cached, since many students give the same answer.
    @cache
    def largest_measures(text: str, *others: str) -> FloatArray:
        """Compare a text with each of the others; return the largest value of each measure."""
        own_words = words_as_in_package(text)
        measures = [phrase_measures(own_words, words_as_in_package(other)) for other in others]
        return np.asarray(np.max(measures, axis=0))

    rows = []
    for text, question, references in zip(
        answers["text"], answers["question_text"], answers["references"], strict=True
    ):
        # Four measures for the question, then four for the references.
        rows.append([*largest_measures(text, question), *largest_measures(text, *references)])
    return np.array(rows)


def words_with_question(answers: pd.DataFrame, split: Callable[[str], list[str]]) -> list[str]:
    """For each answer, return its words marked with their question, such as ``3_bulb 3_lit``.

    A linear model on these words learns what a word means for each question.

    Parameters
    ----------
    answers : DataFrame
        Answers, as described at the top of `responses.py`.
    split : callable
        Splits a text into words.
    """
    texts = []
    for question, text in zip(answers["question"], answers["text"], strict=True):
        texts.append(" ".join(f"{question}_{word}" for word in split(text)))
    return texts


def tfidf_matrix(texts: Sequence[str], train: BoolArray, **options: Any) -> csr_array:
    """Return the TF-IDF weights of the terms of texts, fitted to the training texts alone.

    Parameters
    ----------
    texts : sequence of str
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
