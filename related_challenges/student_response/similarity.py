"""What texts have in common: four measures of the phrases that two share, and weighted terms."""

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from functools import cache
from typing import Any

from common.arrays import BoolArray, FloatArray

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfVectorizer


def words(text: str) -> list[str]:
    """Split a text into lower-case words; apostrophes are dropped, other signs separate words."""
    return re.sub(r"[^a-z0-9_]+", " ", text.lower().replace("'", "")).split()


def shared_phrases(left: Sequence[str], right: Sequence[str]) -> list[int]:
    """Return lengths of shared phrases, longest first; none reaches across what was taken out."""
    left, right, lengths = [*left], [*right], []
    while (run := SequenceMatcher(None, left, right, autojunk=False).find_longest_match()).size:
        # No word is empty, and none is another text's gap.
        left[run.a : run.a + run.size] = [" "] * run.size
        right[run.b : run.b + run.size] = [""] * run.size
        lengths.append(run.size)
    return lengths


def measure(left: Sequence[str], right: Sequence[str]) -> tuple[float, float, float, float]:
    """Return overlap (words in shared phrases), F1, Lesk (Banerjee and Pedersen 2003), cosine."""
    lengths = shared_phrases(left, right)
    overlap = sum(lengths)
    if not overlap:
        return 0.0, 0.0, 0.0, 0.0
    f1 = 2 * overlap / (len(left) + len(right))
    lesk = sum(length**2 for length in lengths)
    return overlap, f1, lesk, overlap / (len(left) * len(right)) ** 0.5


def describe(answers: pd.DataFrame) -> FloatArray:
    """Measure answers against the question, and best against the references, (answers, 8)."""

    @cache
    def compare(text: str, *others: str) -> FloatArray:
        measured = [measure(words(text), words(other)) for other in others]
        return np.asarray(np.max(measured, axis=0))

    return np.array(
        [
            [*compare(text, question), *compare(text, *references)]
            for text, question, references in zip(
                answers["text"], answers["question_text"], answers["references"], strict=True
            )
        ]
    )


def weigh_terms(texts: Iterable[str], train: BoolArray, **terms: Any) -> csr_array:
    """Weigh terms, named as by `TfidfVectorizer`, by TF-IDF fitted to the training texts alone."""
    vectorizer = TfidfVectorizer(sublinear_tf=True, **terms)
    vectorizer.fit([text for text, is_train in zip(texts, train, strict=True) if is_train])
    return csr_array(vectorizer.transform(texts))
