"""Describe how well the words of an answer match those of its reference answers.

Rare words count more. No feature stands for a particular word, so that a model can use the features
for new questions and domains too.

The matching words do not depend on the fold, so the constructor of `Matches` finds them once. How
rare a word is may be learned from training answers only, so `Matches.describe` weighs the matches
anew for each fold.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from common.arrays import BoolArray, FloatArray, IntArray

import numpy as np
import pandas as pd
import similarity
from scipy.sparse import csr_array, diags_array
from sklearn.feature_extraction.text import CountVectorizer

# Endings of English words, which are cut off if at least three letters remain.
ENDING = re.compile(r"(?<=\w{3})(ations|ation|ings|ing|ed|es|s|ly)$")
# Added to the rarity of each word, so that a word in every answer still counts.
MIN_RARITY = 0.3
# The weight of a function word ("the", "of", ...) is its rarity times this.
FUNCTION_WEIGHT = 0.3
# Two words match if the similarity of their spelling (`compare_spelling`, 0 to 1) is at least this.
MIN_SPELLING = 0.55
# A word of an answer or of a reference is called new if the question has no word with at least this
# similarity of spelling.
SAME_SPELLING = 0.8

# These are features of a pair (answer, reference). The smallest values over an answer's references
# are also features of the answer.
FEATURES_WITH_SMALLEST = [
    "recall",
    "precision",
    "f1",
    "recall of what is new",
    "negated unlike the reference",
]


@cache
def stems(text: str) -> list[str]:
    """Split a text into lower-case words without their endings."""
    return [ENDING.sub("", word) for word in similarity.words(text)]


# Negations and function words are stemmed, since they are compared with stemmed words.
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
    """Count how often each term occurs in each text, which is given as a list of terms.

    Returns
    -------
    counts : csr_array of float64, shape (texts, terms)
    terms : list of str
        All terms, sorted.
    """
    vectorizer = CountVectorizer(analyzer=list, dtype=np.float64)
    # The vectorizer refuses an empty vocabulary, so add a text that has the empty term. Its row is
    # dropped; the column of the empty term stays and holds zeros.
    counts = csr_array(vectorizer.fit_transform([*texts, [""]]))[:-1]
    return counts, list(vectorizer.get_feature_names_out())


def compare_spelling(vocabulary: Iterable[str]) -> csr_array:
    """Return how similar the spellings of words are, from 0 to 1, shape (words, words).

    The similarity is Dice's coefficient of the words' letter pairs and triples, where ^ and $ mark
    the beginning and the end of a word. Values below `MIN_SPELLING` become 0.
    """
    # `letter_ngrams` returns a set, so each count is 0 or 1.
    has_ngram, _ = count_terms(letter_ngrams(f"^{word}$") for word in vocabulary)
    n_ngrams = has_ngram.sum(axis=1)
    # How many letter pairs and triples two words (row and column) share.
    n_shared = (has_ngram @ has_ngram.T).tocoo()
    row = n_shared.row
    column = n_shared.col
    dice = 2 * n_shared.data / (n_ngrams[row] + n_ngrams[column])
    is_similar = dice >= MIN_SPELLING
    rows_and_columns = (row[is_similar], column[is_similar])
    return csr_array((dice[is_similar], rows_and_columns), shape=n_shared.shape)


def letter_ngrams(word: str) -> set[str]:
    """Return the letter pairs and triples of a word."""
    ngrams = set()
    for n in (2, 3):
        for start in range(len(word) - n + 1):
            ngrams.add(word[start : start + n])
    return ngrams


def word_ngrams(words: list[str], n: int) -> list[str]:
    """Return all runs of n consecutive words."""
    return [" ".join(words[start : start + n]) for start in range(len(words) - n + 1)]


def similarity_to_nearest(is_in_text: csr_array, spelling: csr_array) -> csr_array:
    """Compare each word of the vocabulary with the nearest word (by spelling) of each text.

    Parameters
    ----------
    is_in_text : csr_array, shape (texts, words)
        1 where a word is in a text.
    spelling : csr_array, shape (words, words)
        Result of `compare_spelling`.

    Returns
    -------
    csr_array, shape (texts, words)
        The largest similarity of spelling between the word and any word of the text; 0 if no word
        of the text is similar.
    """
    text, word = is_in_text.nonzero()
    # `similar` has a row for each word of each text. The row holds the similarity of this word to
    # every word of the vocabulary (column).
    similar = spelling[word].tocoo()
    text_and_column = [text[similar.row], similar.col]
    largest = pd.Series(similar.data).groupby(text_and_column).max()
    rows_and_columns = largest.index.to_frame().to_numpy().T
    return csr_array((largest.to_numpy(), rows_and_columns), shape=is_in_text.shape)


@dataclass(frozen=True)
class MatchedWords:
    """Words of texts, each with its similarity to the nearest word of another text."""

    # Shape (texts, words of the vocabulary). A value is stored, and is not 0, where the text has
    # the word.
    words: csr_array
    # For each stored value, in the order of ``words.data``, the similarity of its word to the
    # nearest word of the other text, from 0 to 1.
    similarity: FloatArray


@dataclass(frozen=True)
class BothWays:
    """Two texts compared in both directions."""

    # Words of the reference, compared with the answer.
    recall: MatchedWords
    # Words of the answer, compared with the reference.
    precision: MatchedWords


def match_words(words: csr_array, nearest: csr_array) -> MatchedWords:
    """For each word of each text, look up its similarity to the nearest word of another text.

    Parameters
    ----------
    words : csr_array, shape (texts, words)
        The words that each text has, as stored values that are not 0.
    nearest : csr_array, shape (texts, words)
        For each text, the similarity of every word to the nearest word of the other text. These are
        rows of the result of `similarity_to_nearest`.
    """
    return MatchedWords(words, nearest[words.nonzero()])


def reduce_rows(words: csr_array, compute: Callable[[IntArray], FloatArray]) -> FloatArray:
    """Compute a value for each row from its words, shape (rows,); 0 for a row without words.

    Rows with the same number of words are computed together.

    Parameters
    ----------
    words : csr_array, shape (rows, words of the vocabulary)
        A value is stored where a row has a word.
    compute : callable
        Computes the values of m rows that have the same number of words, k. Its argument has a line
        for each of these rows: the k positions in ``words.data`` of the row's words. It returns m
        values.
    """
    result = np.zeros(words.shape[0])
    # The number of words of each row.
    n_words = np.diff(words.indptr)
    for k in np.unique(n_words[n_words > 0]):
        rows = np.flatnonzero(n_words == k)
        # A row's words are stored one after the other in ``words.data``, from this position on.
        first_position = words.indptr[rows]
        # Line i of `positions` holds the k positions of the words of the row rows[i].
        positions = first_position[:, None] + np.arange(k)
        result[rows] = compute(positions)
    return result


def mean_similarity(matched: MatchedWords, weight: FloatArray) -> FloatArray:
    """Return the mean similarity of each row's words, weighted by `weight`, shape (rows,).

    Parameters
    ----------
    matched
        Result of `match_words`.
    weight : ndarray of float64, shape (words,)
        Weight of every word.
    """
    weights = weight[matched.words.indices]
    similarities = matched.similarity

    def weighted_mean(positions: IntArray) -> FloatArray:
        row_weights = weights[positions]
        sums = np.vecdot(row_weights, similarities[positions])
        return np.asarray(sums / row_weights.sum(axis=1))

    return reduce_rows(matched.words, weighted_mean)


class TextWords:
    """The words of different texts, as sparse matrices of shape (texts, words)."""

    def __init__(self, texts: Iterable[str]) -> None:
        # The words of every text, in the order of the text, with their endings cut off.
        self.words = [stems(text) for text in texts]
        # How often each text (row) has each word (column).
        self.counts, vocabulary = count_terms(self.words)
        # Number of words of each text, shape (texts,).
        self.n_words: FloatArray = self.counts.sum(axis=1)
        # 1 where a text has a word.
        self.is_in_text = (self.counts > 0).astype(float)
        # Kinds of words: 1 for the words of the kind, 0 for others, shape (words,).
        self.is_function = np.array([word in FUNCTION_WORDS for word in vocabulary], float)
        self.is_negation = np.array([word in NEGATIONS for word in vocabulary], float)
        # A symbol is a number, or a single letter that names something, such as "B" in "bulb B".
        # The function word "a" is no symbol.
        looks_like_symbol = [len(word) == 1 or word.isdigit() for word in vocabulary]
        self.is_symbol = np.array(looks_like_symbol, float) * (1 - self.is_function)
        # 1 where a text has a content word, which is any word but a function word.
        self.content = self.is_in_text @ diags_array(1 - self.is_function)
        # The product leaves the column indices of each row unsorted. Sort them, as they are sorted
        # in the other matrices.
        self.content.sort_indices()
        # `nearest` and `nearest_content` have the shape (texts, words). A value is the similarity
        # of a word of the vocabulary to the nearest word of a text: in `nearest` among all words of
        # the text, in `nearest_content` among its content words.
        spelling = compare_spelling(vocabulary)
        self.nearest = similarity_to_nearest(self.is_in_text, spelling)
        self.nearest_content = similarity_to_nearest(self.content, spelling)


class Matches:
    """How the words of answers match those of their reference answers and questions.

    The constructor finds which words match. `describe` weighs the matches by how rare the words are
    in the training answers, and must therefore be called for each fold.
    """

    def __init__(self, answers: pd.DataFrame) -> None:
        """Match the words of answers with the words of their references and questions.

        Parameters
        ----------
        answers : DataFrame
            Answers, as described at the top of `responses.py`.
        """
        # A pair is an answer with one of its references. `explode` makes a row for each pair, and
        # gives it the position of its answer in `answers` as the index.
        references = answers["references"].reset_index(drop=True).explode()
        # For each pair, the position of its answer in `answers`, shape (pairs,).
        self.answer_of_pair = references.index.to_numpy()
        # Each different text is a row in the matrices of `TextWords`, even if several answers share
        # it.
        texts = pd.concat([answers["text"], answers["question_text"], references])
        text_row, different_texts = texts.factorize()
        # `text_row` holds the row of each answer's text, shape (answers,), then the row of each
        # answer's question, shape (answers,), then the row of each pair's reference, shape
        # (pairs,). Cut `text_row` into these three parts.
        n_answers = len(answers)
        answer, question, pair_reference = np.split(text_row, [n_answers, 2 * n_answers])
        # For each pair, the row of its answer's text.
        pair_answer = answer[self.answer_of_pair]
        self._words = TextWords(different_texts)
        # This sets `answer_words`, `new_words`, `missing_words` and the attributes `matched_…`.
        self._match_words(answer, question, pair_answer, pair_reference)
        self.pair_features = pd.DataFrame(
            self._content_word_features(pair_answer, pair_reference)
            | self._ngram_features(pair_answer, pair_reference)
            | self._same_word_features(pair_answer, pair_reference)
            | self._negation_and_length_features(pair_answer, pair_reference)
        )
        self.answer_features = self._length_and_kind_features(answer, question, pair_reference)

    def _match_words(
        self,
        answer: IntArray,
        question: IntArray,
        pair_answer: IntArray,
        pair_reference: IntArray,
    ) -> None:
        """Find the words of answers, references and questions that match, in both directions.

        The parameters are rows in the matrices of `TextWords`. For each answer, `answer` and
        `question` are the rows of its text and of its question's text. For each pair (answer,
        reference), `pair_answer` and `pair_reference` are the rows of these two texts.
        """
        # Both matrices have a row for each text and a column for each word of the vocabulary.
        # `is_in_text` is 1 where the text has the word. `nearest` is the similarity of the word to
        # the nearest word of the text, from 0 to 1.
        is_in_text = self._words.is_in_text
        nearest = self._words.nearest
        nearest_in_answer = nearest[pair_answer]
        nearest_in_reference = nearest[pair_reference]
        # 1 where the text of an answer has a word of the vocabulary, shape (answers, words).
        self.answer_words = is_in_text[answer]
        # Whether the answer's question has the word, or a word spelt almost alike, shape (answers,
        # words).
        is_in_question = nearest[question] >= SAME_SPELLING
        # 1 where an answer has a new word: a word that the question does not have.
        self.new_words = self.answer_words - self.answer_words.multiply(is_in_question)
        # 1 where the reference of a pair has a word, shape (pairs, words).
        reference_words = is_in_text[pair_reference]
        # 1 where the reference of a pair has a new word. If a reference has no new word, all of its
        # words count as new.
        words_in_question = reference_words.multiply(is_in_question[self.answer_of_pair])
        new_in_reference = reference_words - words_in_question
        has_no_new_word = new_in_reference.sum(axis=1)[:, None] == 0
        new_in_reference += reference_words.multiply(has_no_new_word)
        # 1 where the reference of a pair has a word that resembles no word of the answer.
        is_matched = nearest_in_answer > 0
        self.missing_words = reference_words - reference_words.multiply(is_matched)
        # Compare the words of the answer and of the reference of each pair, in both directions.
        self.matched_words = BothWays(
            recall=match_words(reference_words, nearest_in_answer),
            precision=match_words(is_in_text[pair_answer], nearest_in_reference),
        )
        # Compare the new words of each text with all words of the other text.
        self.matched_new_words = BothWays(
            recall=match_words(new_in_reference, nearest_in_answer),
            precision=match_words(self.new_words[self.answer_of_pair], nearest_in_reference),
        )
        # Compare each answer with its question, as if the question were a reference.
        self.matched_with_question = BothWays(
            recall=match_words(is_in_text[question], nearest[answer]),
            precision=match_words(self.answer_words, nearest[question]),
        )

    def _content_word_features(
        self, pair_answer: IntArray, pair_reference: IntArray
    ) -> dict[str, FloatArray]:
        """Return features of pairs: how well the content words of both texts match.

        Recall is the mean similarity of the reference's content words to their nearest content
        words in the answer. Precision is the mean similarity of the answer's content words to their
        nearest content words in the reference.
        """
        # 1 where a text has a content word, shape (texts, words).
        content = self._words.content
        # For each pair, the similarity of every word of the vocabulary to the nearest content word
        # of the answer and to the nearest content word of the reference, shape (pairs, words) each.
        nearest_in_answer = self._words.nearest_content[pair_answer]
        nearest_in_reference = self._words.nearest_content[pair_reference]
        # Look up the similarities of each reference's content words to the answer, and of each
        # answer's content words to the reference.
        for_recall = match_words(content[pair_reference], nearest_in_answer)
        for_precision = match_words(content[pair_answer], nearest_in_reference)
        # All content words have the same weight.
        weight = np.ones(content.shape[1])
        return {
            "recall of content words": mean_similarity(for_recall, weight),
            "precision of content words": mean_similarity(for_precision, weight),
        }

    def _ngram_features(
        self, pair_answer: IntArray, pair_reference: IntArray
    ) -> dict[str, FloatArray]:
        """Return features of pairs: shared runs of two and of three consecutive words (n-grams).

        Recall is the share of the reference's n-grams that the answer has. Precision is the share
        of the answer's n-grams that the reference has.
        """
        features = {}
        for n, name in ((2, "word pairs"), (3, "word triples")):
            # How often each text (row) has each n-gram (column).
            counts, _ = count_terms(word_ngrams(words, n) for words in self._words.words)
            # If one text has an n-gram twice and the other text has it once, it is shared once.
            n_shared = counts[pair_answer].minimum(counts[pair_reference]).sum(axis=1)
            # The number of n-grams of each text, at least 1, since it is a divisor below.
            n_ngrams = np.maximum(counts.sum(axis=1), 1)
            features[f"recall of {name}"] = n_shared / n_ngrams[pair_reference]
            features[f"precision of {name}"] = n_shared / n_ngrams[pair_answer]
        return features

    def _same_word_features(
        self, pair_answer: IntArray, pair_reference: IntArray
    ) -> dict[str, FloatArray]:
        """Return features of pairs: words and symbols that both texts spell the same.

        Symbols are numbers and single letters. Recall is the share of the reference's words or
        symbols that the answer has. Precision is the share of the answer's symbols that the
        reference has.
        """
        texts = self._words
        is_in_text = texts.is_in_text
        # 1 where both texts of a pair have a word, shape (pairs, words).
        same_words = is_in_text[pair_answer].multiply(is_in_text[pair_reference])
        # Number of different words of each reference, at least 1: the next line divides by it.
        n_reference_words = np.maximum(is_in_text[pair_reference].sum(axis=1), 1)
        features = {"recall of words as spelt": same_words.sum(axis=1) / n_reference_words}
        # The vector `is_symbol` is 1 for a symbol and 0 for any other word, so a product with it
        # counts symbols: first those that both texts of a pair have, then all symbols of each text.
        n_same_symbols = same_words @ texts.is_symbol
        n_symbols = is_in_text @ texts.is_symbol
        for name, pair_text in (("recall", pair_reference), ("precision", pair_answer)):
            share = n_same_symbols / np.maximum(n_symbols[pair_text], 1)
            # The share is 1 for a text without symbols, since none of its symbols is missing.
            has_symbols = n_symbols[pair_text] > 0
            features[f"{name} of symbols"] = np.where(has_symbols, share, 1)
        return features

    def _negation_and_length_features(
        self, pair_answer: IntArray, pair_reference: IntArray
    ) -> dict[str, FloatArray]:
        """Return features of pairs: whether only one text is negated, and the ratio of lengths."""
        texts = self._words
        has_negation = (texts.is_in_text @ texts.is_negation > 0).astype(float)
        # 1 if only the answer has a negation, -1 if only the reference has a negation, otherwise 0.
        negation_difference = has_negation[pair_answer] - has_negation[pair_reference]
        # Adding 1 keeps the ratio and its logarithm finite for texts without words.
        length = texts.n_words + 1
        length_ratio = length[pair_answer] / length[pair_reference]
        return {
            "negated unlike the reference": negation_difference,
            "log of the ratio of lengths": np.log(length_ratio),
        }

    def _length_and_kind_features(
        self, answer: IntArray, question: IntArray, pair_reference: IntArray
    ) -> dict[str, FloatArray]:
        """Return features of answers: lengths, and numbers and shares of words of some kinds.

        The kinds are new words (words that the question does not have), negations, function words
        and symbols.

        The parameters are rows in the matrices of `TextWords`. For each answer, `answer` and
        `question` are the rows of its text and of its question's text. For each pair (answer,
        reference), `pair_reference` is the row of the reference.
        """
        texts = self._words
        n_words = texts.n_words
        n_answer_words = n_words[answer]
        # Number of different words of each answer, at least 1, since it is a divisor below.
        n_different_words = np.maximum(self.answer_words.sum(axis=1), 1)
        n_new_words = self.new_words.sum(axis=1)
        # `texts.is_function` is 1 for function words and 0 for other words. So the product counts
        # the function words of each text. The products below count negations and symbols.
        n_function_words = (texts.counts @ texts.is_function)[answer]
        # An answer has a pair for each of its references, and `self.answer_of_pair` holds the
        # answer of each pair. So the number of pairs of an answer is its number of references.
        n_references = np.bincount(self.answer_of_pair)
        n_words_of_references = np.bincount(self.answer_of_pair, n_words[pair_reference])
        return {
            "words": n_answer_words,
            "new words": n_new_words,
            "share of new words": n_new_words / n_different_words,
            "negations": (texts.counts @ texts.is_negation)[answer],
            "share of function words": n_function_words / np.maximum(n_answer_words, 1),
            "symbols": (texts.counts @ texts.is_symbol)[answer],
            "references": n_references.astype(float),
            "mean words of a reference": n_words_of_references / n_references,
            "words of the question": n_words[question],
        }

    def describe(self, train: BoolArray) -> pd.DataFrame:
        """Describe every answer by features for a model.

        Each answer is compared with each of its references. The features are

        - the results of the comparison (recall, precision, F1 and others) with the best reference,
          the one with the largest F1;
        - the largest and the mean of each result over all references of the answer;
        - for the results in `FEATURES_WITH_SMALLEST`, the smallest over all references, too;
        - how well the answer matches the question;
        - the answer's lengths, and numbers and weights of its words of certain kinds.

        Parameters
        ----------
        train : ndarray of bool, shape (answers,)
            Training answers. Only they say how rare a word is.

        Returns
        -------
        DataFrame of float, shape (answers, features)
            Without NaN. The features of the best reference come first.
        """
        # The weight of a word is its rarity (inverse document frequency). Function words, such as
        # "the", get a smaller weight.
        n_answers_with_word = self.answer_words[train].sum(axis=0)
        rarity = np.log((train.sum() + 1) / (n_answers_with_word + 1)) + MIN_RARITY
        weight = rarity * np.where(self._words.is_function, FUNCTION_WEIGHT, 1)
        # For each pair of an answer and a reference: recall, precision and F1 of all words, then
        # recall, precision and F1 of the new words, which are not in the question.
        pairs = pd.DataFrame(
            recall_precision_f1(self.matched_words, weight, suffix="")
            | recall_precision_f1(self.matched_new_words, weight, suffix=" of what is new")
        )
        pairs = pairs.join(self.pair_features)
        pairs["largest weight of a missing word"] = largest_weights(self.missing_words, weight)
        by_answer = pairs.groupby(self.answer_of_pair)
        best = pairs.loc[by_answer["f1"].idxmax()].reset_index(drop=True)
        smallest = by_answer[FEATURES_WITH_SMALLEST].min()
        # Do not change the order of the features: some models draw features at random by their
        # positions, so another order would give other results.
        parts = [
            best,
            by_answer.max().add_prefix("largest "),
            self._mean_over_references(pairs).add_prefix("mean "),
            smallest.add_prefix("smallest "),
            pd.DataFrame(self._weighted_answer_features(weight)),
        ]
        return pd.concat(parts, axis=1)

    def _mean_over_references(self, pairs: pd.DataFrame) -> pd.DataFrame:
        """Return the mean of each feature over the pairs (answer, reference) of each answer."""
        # `ascontiguousarray` stores the rows one after the other. NumPy then adds up row by row, so
        # that rounding is the same on every machine. pandas does not promise this.
        values = np.ascontiguousarray(pairs)
        # The pairs of an answer are consecutive. So a pair is the first pair of its answer if
        # `answer_of_pair` changes there. The -1 makes the very first pair count as a change.
        is_first_pair = np.diff(self.answer_of_pair, prepend=-1) != 0
        first_rows = np.flatnonzero(is_first_pair)
        values_by_answer = np.split(values, first_rows[1:])
        means = [values_of_answer.mean(axis=0) for values_of_answer in values_by_answer]
        return pd.DataFrame(means, columns=pairs.columns)

    def _weighted_answer_features(self, weight: FloatArray) -> dict[str, FloatArray]:
        """Return all features of answers that do not compare an answer with a reference.

        Some features depend on `weight`, the weight of every word, shape (words,): how well the
        answer matches its question, and how large the weights of the answer's words are. The other
        features are `answer_features`, which do not depend on the weights.
        """
        # The question takes the place of a reference. So `recall` has the words of the question,
        # with their similarities to the answer, and `precision` has the words of the answer, with
        # their similarities to the question.
        matched = self.matched_with_question
        features = {
            "recall of the question": mean_similarity(matched.recall, weight),
            "precision of the question": mean_similarity(matched.precision, weight),
        }
        # These four features are in `answer_features` too. They are added before the other features
        # because the order of the features affects the results of models (see `describe`).
        for name in ("words", "new words", "share of new words", "negations"):
            features[name] = self.answer_features[name]
        features["largest weight of a new word"] = largest_weights(self.new_words, weight)
        features["mean weight of a word"] = mean_weights(self.answer_words, weight)
        # `|` joins the two dicts: the four features keep their places in `features`, and the other
        # features of `answer_features` are appended.
        return features | self.answer_features


def largest_weights(words: csr_array, weight: FloatArray) -> FloatArray:
    """Return the largest weight of each row's words, shape (rows,)."""
    return reduce_rows(words, lambda positions: weight[words.indices[positions]].max(axis=1))


def mean_weights(words: csr_array, weight: FloatArray) -> FloatArray:
    """Return the mean weight of each row's words, shape (rows,)."""
    return reduce_rows(words, lambda positions: weight[words.indices[positions]].mean(axis=1))


def recall_precision_f1(
    matched: BothWays, weight: FloatArray, suffix: str
) -> dict[str, FloatArray]:
    """Return recall, precision and F1 of weighted words, each of shape (pairs,).

    `suffix` is added to the names of these features.
    """
    recall = mean_similarity(matched.recall, weight)
    precision = mean_similarity(matched.precision, weight)
    total = recall + precision
    f1 = 2 * recall * precision / np.where(total, total, 1)
    return {f"recall{suffix}": recall, f"precision{suffix}": precision, f"f1{suffix}": f1}


def mark_words(answers: pd.DataFrame) -> list[str]:
    """For each answer, return a text of its words, with marks that say where else they occur.

    A model that counts the terms of these texts can tell words that match from words that do not. A
    text holds

    - ``=word`` for a word of the answer that is in a reference too, ``?word`` for a word that is in
      the question but in no reference, ``+word`` for a word that is in neither;
    - ``-word`` for a word of the most similar reference that is not in the answer;
    - ``word_word`` for two consecutive words;
    - each word of the answer once more, unmarked.
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
        overlaps = [overlap(different_words, other) for other in reference_words]
        most_similar = reference_words[int(np.argmax(overlaps))]
        terms += [f"-{word}" for word in sorted(most_similar - different_words)]
        terms += [f"{first}_{second}" for first, second in pairwise(words)]
        texts.append(" ".join(terms + words))
    return texts


def overlap(left: set[str], right: set[str]) -> float:
    """Return half of Dice's coefficient: shared words / (words of left + words of right)."""
    return len(left & right) / max(len(left) + len(right), 1)
