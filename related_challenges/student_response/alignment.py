"""Describe how well the words of an answer match those of its reference answers.

Rare words count more. No feature is about a certain word, so that a model can use the features for
new questions and domains too. `Matches` finds once which words match, and weighs them for every
fold anew, since only training answers say how rare a word is.
"""

import re
from collections.abc import Callable, Iterable
from functools import cache
from itertools import pairwise
from typing import Any

from common.arrays import BoolArray, FloatArray, IntArray

import numpy as np
import pandas as pd
import similarity
from scipy.sparse import csr_array, diags_array
from sklearn.feature_extraction.text import CountVectorizer

# An ending after at least three letters.
ENDING = re.compile(r"(?<=\w{3})(ations|ation|ings|ing|ed|es|s|ly)$")
# Weight of a function word, as a share of its rarity.
FUNCTION_WEIGHT = 0.3
# Words with less similar spelling do not match.
MIN_SPELLING = 0.55
# Words with at least this similar spelling count as the same when new words are sought.
SAME_SPELLING = 0.8

# Features of pairs whose smallest value over the references is a feature of the answer too.
SMALLEST = ["recall", "precision", "f1", "recall of what is new", "more negations"]


@cache
def stems(text: str) -> list[str]:
    """Split a text into lower-case words without their endings."""
    return [ENDING.sub("", word) for word in similarity.words(text)]


# Word lists are stemmed, since words are compared without their endings.
NEGATIONS = frozenset(
    stems(
        "no not none nothing never neither nor without cannot can't don't doesn't didn't isn't "
        "aren't wasn't weren't won't wouldn't couldn't shouldn't haven't hasn't"
    )
)
FUNCTION_WORDS = frozenset(
    stems(
        "a an the of in on at to for from by with and or is are was were be been it its this that "
        "these those as if then than there their they them he she i we you your my so do does did "
        "has have had will would can could because which who what when where how why into up out "
        "about not no"
    )
)


def count_terms(texts: Iterable[Iterable[str]]) -> tuple[csr_array, list[str]]:
    """Count how often each text has each term.

    Returns
    -------
    counts : csr_array of float64, shape (texts, terms)
    terms : list of str
        All terms, sorted.
    """
    vectorizer = CountVectorizer(analyzer=list, dtype=np.float64)
    # A further text with the empty term, since the vectorizer refuses an empty vocabulary.
    counts = csr_array(vectorizer.fit_transform([*texts, [""]]))[:-1]
    return counts, list(vectorizer.get_feature_names_out())


def compare_spelling(vocabulary: Iterable[str]) -> csr_array:
    """Return how similar the spellings of words are, from 0 to 1, shape (words, words).

    The similarity is Dice's coefficient of the words' letter pairs and triples, with marks for the
    begin and the end of a word. Values below `MIN_SPELLING` become 0.
    """
    has_piece, _ = count_terms(letter_pieces(f"^{word}$") for word in vocabulary)
    n_pieces = has_piece.sum(axis=1)
    similarity = (has_piece @ has_piece.T).tocoo()
    similarity.data = 2 * similarity.data / (n_pieces[similarity.row] + n_pieces[similarity.col])
    return csr_array(similarity.multiply(similarity >= MIN_SPELLING))


def letter_pieces(word: str) -> set[str]:
    """Return the letter pairs and triples of a word."""
    pieces = set()
    for n in (2, 3):
        for start in range(len(word) - n + 1):
            pieces.add(word[start : start + n])
    return pieces


def phrases(words: list[str], n: int) -> list[str]:
    """Return all runs of n words in a row."""
    return [" ".join(words[start : start + n]) for start in range(len(words) - n + 1)]


def find_nearest(has: csr_array, spelling: csr_array) -> csr_array:
    """Return how much the most similar word of each text resembles every word, (texts, words)."""
    text, word = has.nonzero()
    similar = spelling[word].tocoo()
    nearest = pd.Series(similar.data).groupby([text[similar.row], similar.col]).max()
    rows_and_columns = nearest.index.to_frame().to_numpy().T
    return csr_array((nearest.to_numpy(), rows_and_columns), shape=has.shape)


def match_words(words: csr_array, nearest: csr_array) -> tuple[csr_array, FloatArray]:
    """Return words with how much the nearest word of another text resembles each of them.

    Parameters
    ----------
    words : csr_array, shape (rows, words)
        Words of one text a row.
    nearest : csr_array, shape (rows, words)
        Result of `find_nearest` for the other text of each row.

    Returns
    -------
    words : csr_array, shape (rows, words)
        As given.
    matched : ndarray of float64, shape (stored values of `words`,)
        From 0 to 1, in the order of ``words.data``.
    """
    return words, nearest[words.nonzero()]


def of_words(words: csr_array, compute: Callable[[IntArray], FloatArray]) -> FloatArray:
    """Compute a value from the words of every row, shape (rows,); 0 for a row without words.

    Parameters
    ----------
    words : csr_array, shape (rows, words)
        Words of one text a row.
    compute : callable
        Takes the positions of words in ``words.data``, shape (n, words in a row), for n rows with
        equally many words; returns their n values.
    """
    result = np.zeros(words.shape[0])
    n_words = np.diff(words.indptr)
    for n in np.unique(n_words[n_words > 0]):
        rows = np.flatnonzero(n_words == n)
        result[rows] = compute(words.indptr[rows, None] + np.arange(n))
    return result


def share(words: csr_array, matched: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the matched share of the weight of every row's words, shape (rows,).

    Parameters
    ----------
    words, matched
        Result of `match_words`.
    weight : ndarray of float64, shape (words,)
        Weight of every word.
    """
    weights = weight[words.indices]

    def matched_share(at: IntArray) -> FloatArray:
        return np.asarray(np.vecdot(weights[at], matched[at]) / weights[at].sum(axis=1))

    return of_words(words, matched_share)


class TextWords:
    """The words of some different texts, as sparse matrices of shape (texts, words)."""

    def __init__(self, texts: Iterable[str]) -> None:
        # Words of every text in order, without endings.
        self.words = [stems(text) for text in texts]
        # How often a text has a word, and whether it does.
        self.counts, vocabulary = count_terms(self.words)
        self.n_words: FloatArray = self.counts.sum(axis=1)
        self.has = (self.counts > 0).astype(float)
        # Kinds of words, 1 or 0, shape (words,).
        self.is_function = np.array([word in FUNCTION_WORDS for word in vocabulary], float)
        self.is_negation = np.array([word in NEGATIONS for word in vocabulary], float)
        # A number or a single letter, such as a bulb's name.
        is_symbol = np.array([len(word) == 1 or word.isdigit() for word in vocabulary], float)
        self.is_symbol = is_symbol * (1 - self.is_function)
        self.content = self.has @ diags_array(1 - self.is_function)
        self.content.sort_indices()
        # How much the most similar word of a text resembles any word.
        spelling = compare_spelling(vocabulary)
        self.nearest = find_nearest(self.has, spelling)
        self.nearest_content = find_nearest(self.content, spelling)


class Matches:
    """How the words of answers match those of their reference answers and questions.

    The constructor finds which words match. `describe` weighs the matches by how rare the words are
    in the training answers, and so is called for each fold.
    """

    def __init__(self, answers: pd.DataFrame) -> None:
        """Match the words of answers.

        Parameters
        ----------
        answers : DataFrame
            Answers as in `responses.py`.
        """
        references = answers["references"].reset_index(drop=True).explode()
        texts = pd.concat([answers["text"], answers["question_text"], references])
        number, different_texts = texts.factorize()
        # Numbers of the texts of every answer, of its question, and of every pair's reference.
        answer, question, right = np.split(number, [len(answers), 2 * len(answers)])
        # A pair is an answer with one of its references; this is the answer's row.
        self.pair = references.index.to_numpy()
        left = answer[self.pair]
        self._words = TextWords(different_texts)
        self._match_words(answer, question, left, right)
        self.pair_features = pd.DataFrame(
            self._content_words(left, right)
            | self._phrases(left, right)
            | self._spelling_and_symbols(left, right)
        )
        self.answer_features = self._answer_features(answer, question, right)

    def _match_words(
        self, answer: IntArray, question: IntArray, left: IntArray, right: IntArray
    ) -> None:
        """Find the words of answers, references and questions that match, both ways."""
        has = self._words.has
        nearest = self._words.nearest
        pair = self.pair
        # Words of the answers, and those of them that are not in the question.
        self.own = has[answer]
        is_asked = nearest[question] >= SAME_SPELLING
        self.new = self.own - self.own.multiply(is_asked)
        # Words of the references that are not in the question; if all are, all of them.
        new_in_reference = has[right] - has[right].multiply(is_asked[pair])
        has_no_new = new_in_reference.sum(axis=1)[:, None] == 0
        new_in_reference += has[right].multiply(has_no_new)
        # Words of the references that no word of the answer resembles.
        self.missing = has[right] - has[right].multiply(nearest[left] > 0)
        # Words, and how much the nearest word of the other text resembles each of them.
        self.matched_pairs = [
            match_words(has[right], nearest[left]),
            match_words(has[left], nearest[right]),
        ]
        self.matched_new = [
            match_words(new_in_reference, nearest[left]),
            match_words(self.new[pair], nearest[right]),
        ]
        self.matched_questions = [
            match_words(has[question], nearest[answer]),
            match_words(self.own, nearest[question]),
        ]

    def _content_words(self, left: IntArray, right: IntArray) -> dict[str, FloatArray]:
        """Return features of pairs: which shares of the content words match."""
        content = self._words.content
        nearest = self._words.nearest_content
        weight = np.ones(content.shape[1])
        features = {}
        for name, text, other in (("recall", right, left), ("precision", left, right)):
            words, matched = match_words(content[text], nearest[other])
            features[f"{name} of content words"] = share(words, matched, weight)
        return features

    def _phrases(self, left: IntArray, right: IntArray) -> dict[str, FloatArray]:
        """Return features of pairs: which shares of two and three words in a row are the same."""
        features = {}
        for n, name in ((2, "pairs"), (3, "triples")):
            counts, _ = count_terms(phrases(words, n) for words in self._words.words)
            n_shared = counts[left].minimum(counts[right]).sum(axis=1)
            n_phrases = np.maximum(counts.sum(axis=1), 1)
            features[f"recall of {name}"] = n_shared / n_phrases[right]
            features[f"precision of {name}"] = n_shared / n_phrases[left]
        return features

    def _spelling_and_symbols(self, left: IntArray, right: IntArray) -> dict[str, FloatArray]:
        """Return features of pairs: words spelt the same, symbols, negations and lengths."""
        texts = self._words
        has = texts.has
        same = has[left].multiply(has[right])
        n_right = np.maximum(has[right].sum(axis=1), 1)
        features = {"recall of words as spelt": same.sum(axis=1) / n_right}
        n_same_symbols = same @ texts.is_symbol
        for name, text in (("recall", right), ("precision", left)):
            n_symbols = (has @ texts.is_symbol)[text]
            # Without symbols, none is missing.
            symbol_share = np.where(n_symbols, n_same_symbols / np.maximum(n_symbols, 1), 1)
            features[f"{name} of symbols"] = symbol_share
        negates = (has @ texts.is_negation > 0).astype(float)
        features["more negations"] = negates[left] - negates[right]
        n_words = texts.n_words
        length_ratio = (n_words[left] + 1) / (n_words[right] + 1)
        features["log of lengths' ratio"] = np.log(length_ratio)
        return features

    def _answer_features(
        self, answer: IntArray, question: IntArray, right: IntArray
    ) -> list[FloatArray]:
        """Return features of answers: lengths, and how many words are of which kind."""
        texts = self._words
        n_words = texts.n_words
        n_different = np.maximum(self.own.sum(axis=1), 1)
        n_new = self.new.sum(axis=1)
        n_references = np.bincount(self.pair)
        n_function_words = (texts.counts @ texts.is_function)[answer]
        return [
            n_words[answer],
            n_new,
            n_new / n_different,
            (texts.counts @ texts.is_negation)[answer],
            n_function_words / np.maximum(n_words[answer], 1),
            (texts.counts @ texts.is_symbol)[answer],
            n_references,
            np.bincount(self.pair, n_words[right]) / n_references,
            n_words[question],
        ]

    def describe(self, train: BoolArray) -> pd.DataFrame:
        """Describe every answer by features for a model.

        The features compare the answer with its best reference (by F1) and with all references
        (largest, mean and some smallest values), say how question and answer cover each other, and
        give lengths and kinds of words.

        Parameters
        ----------
        train : ndarray of bool, shape (answers,)
            Training answers. Only they say how rare a word is.

        Returns
        -------
        DataFrame of float, shape (answers, features)
            No NaN.
        """
        # At least 0.3, so that every word counts.
        n_with_word = self.own[train].sum(axis=0)
        rarity = np.log((train.sum() + 1) / (n_with_word + 1)) + 0.3
        weight = rarity * np.where(self._words.is_function, FUNCTION_WEIGHT, 1)

        def largest_weight(words: csr_array) -> FloatArray:
            return of_words(words, lambda at: weight[words.indices[at]].max(axis=1))

        def mean_weight(words: csr_array) -> FloatArray:
            return of_words(words, lambda at: weight[words.indices[at]].mean(axis=1))

        compared = pd.DataFrame(
            matched_shares(self.matched_pairs, weight, "")
            | matched_shares(self.matched_new, weight, " of what is new")
        )
        compared = compared.join(self.pair_features)
        compared["rarest word missing"] = largest_weight(self.missing)
        by_answer = compared.groupby(self.pair)
        best = compared.loc[by_answer["f1"].idxmax()].reset_index(drop=True)
        # In rows, so that means are summed from reference to reference on every machine.
        first_rows = np.flatnonzero(np.diff(self.pair, prepend=-1))
        values_by_answer = np.split(np.ascontiguousarray(compared), first_rows[1:])
        columns: list[Any] = [
            by_answer.max(),
            [values.mean(axis=0) for values in values_by_answer],
            by_answer[SMALLEST].min(),
            *[share(words, matched, weight) for words, matched in self.matched_questions],
            *self.answer_features[:4],
            largest_weight(self.new),
            mean_weight(self.own),
            *self.answer_features[4:],
        ]
        return best.join(pd.DataFrame(np.column_stack(columns)))


def matched_shares(
    matched_words: list[tuple[csr_array, FloatArray]], weight: FloatArray, suffix: str
) -> dict[str, FloatArray]:
    """Return recall, precision and F1 of weighed words, named with a suffix, (pairs,) each.

    `matched_words` holds those of the references and those of the answers; see `match_words`.
    """
    recall, precision = [share(words, matched, weight) for words, matched in matched_words]
    total = recall + precision
    f1 = 2 * recall * precision / np.where(total, total, 1)
    return {f"recall{suffix}": recall, f"precision{suffix}": precision, f"f1{suffix}": f1}


def mark_words(answers: pd.DataFrame) -> list[str]:
    """Return the words of every answer, marked by where else they occur, as one text an answer.

    A text holds

    - ``=word`` for a word of the answer that is in a reference too, ``?word`` for one that is only
      in the question, ``+word`` for one that is in neither;
    - ``-word`` for a word of the most similar reference that is not in the answer;
    - ``word_word`` for two words in a row, and every word without a mark.
    """
    texts = []
    for text, question, references in zip(
        answers["text"], answers["question_text"], answers["references"], strict=True
    ):
        words = stems(text)
        different_words = set(words)
        question_words = set(stems(question))
        reference_words = [set(stems(reference)) for reference in references]
        all_reference_words = set().union(*reference_words)

        terms = []
        for word in words:
            if word in all_reference_words:
                terms.append(f"={word}")
            elif word in question_words:
                terms.append(f"?{word}")
            else:
                terms.append(f"+{word}")
        most_similar = max(reference_words, key=lambda other: overlap(different_words, other))
        terms += [f"-{word}" for word in sorted(most_similar - different_words)]
        terms += [f"{first}_{second}" for first, second in pairwise(words)]
        texts.append(" ".join(terms + words))
    return texts


def overlap(left: set[str], right: set[str]) -> float:
    """Return the number of shared words divided by the sum of both numbers of words."""
    return len(left & right) / max(len(left) + len(right), 1)
