"""How well the words of an answer match those of each reference answer, rare words counting more.

None of it knows the words of a question beforehand, so that it serves for questions and domains
that no answer has been learned from. `Matches` finds once which words match; how rare they are is
told by training answers alone, so that it weighs them for every fold anew. Words of texts are
sparse matrices, (texts, words); of those of pairs, each answer has a row with each reference.
"""

import re
from collections.abc import Callable, Iterable
from functools import cache
from itertools import pairwise

from common.arrays import BoolArray, FloatArray, IntArray

import numpy as np
import pandas as pd
import similarity
from scipy.sparse import csr_array, diags_array
from sklearn.feature_extraction.text import CountVectorizer

# Behind at least three letters.
ENDING = re.compile(r"(?<=\w{3})(ations|ation|ings|ing|ed|es|s|ly)$")
FUNCTION_WEIGHT = 0.3  # Of a function word, as a share of its rarity.
MIN_SPELLING = 0.55  # Below this similarity of spelling, two words are different ones.
SAME_SPELLING = 0.8  # From this on, a word counts as one of the question.

# Of how an answer compares, the smallest value over the reference answers is a feature as well.
SMALLEST = ["recall", "precision", "f1", "recall of what is new", "more negations"]


@cache
def stems(text: str) -> list[str]:
    """Split a text into lower-case words without their endings."""
    return [ENDING.sub("", word) for word in similarity.words(text)]


# As stems: words are compared without their endings.
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
    """Count the terms of texts, (texts, terms); return all terms too, in order."""
    vectorizer = CountVectorizer(analyzer=list, dtype=np.float64)
    # With a text more than there are: a matrix needs a column.
    counts = csr_array(vectorizer.fit_transform([*texts, [""]]))[:-1]
    return counts, list(vectorizer.get_feature_names_out())


def compare_spelling(vocabulary: Iterable[str]) -> csr_array:
    """Return Dice's coefficient of words' letter pairs and triples, 0 if small, (words, words)."""
    padded = [f"^{word}$" for word in vocabulary]
    has, _ = count_terms(
        {word[i : i + n] for n in (2, 3) for i in range(len(word) - n + 1)} for word in padded
    )
    size, alike = has.sum(axis=1), (has @ has.T).tocoo()
    alike.data = 2 * alike.data / (size[alike.row] + size[alike.col])
    return csr_array(alike.multiply(alike >= MIN_SPELLING))


def find_nearest(has: csr_array, spelling: csr_array) -> csr_array:
    """Return how much the most similar word of each text resembles any word, (texts, words)."""
    text, word = has.nonzero()
    similar = spelling[word].tocoo()
    nearest = pd.Series(similar.data).groupby([text[similar.row], similar.col]).max()
    places = nearest.index.to_frame().to_numpy().T
    return csr_array((nearest.to_numpy(), places), shape=has.shape)


def of_words(words: csr_array, compute: Callable[[IntArray], FloatArray]) -> FloatArray:
    """Compute a value of every row's words, (rows,), 0 of none, from their places in the data."""
    result, n_words = np.zeros(words.shape[0]), np.diff(words.indptr)
    for n in np.unique(n_words[n_words > 0]):
        rows = np.flatnonzero(n_words == n)
        result[rows] = compute(words.indptr[rows, None] + np.arange(n))
    return result


def share(words: csr_array, matched: FloatArray, weight: FloatArray) -> FloatArray:
    """Return which share of the weight of every row's words is matched, each from 0 to 1."""
    own = weight[words.indices]
    return of_words(words, lambda at: np.vecdot(own[at], matched[at]) / own[at].sum(axis=1))


class Matches:
    """How words of answers match those of references and questions, both ways; weighed later."""

    def __init__(self, answers: pd.DataFrame) -> None:
        references = answers["references"].reset_index(drop=True).explode()
        texts = pd.concat([answers["text"], answers["question_text"], references])
        number, different = texts.factorize()
        answer, question, reference = np.split(number, [len(answers), 2 * len(answers)])
        self.pair = pair = references.index.to_numpy()
        left, right = answer[pair], reference

        words = [stems(text) for text in different]
        counts, vocabulary = count_terms(words)
        self.is_function = np.array([word in FUNCTION_WORDS for word in vocabulary], float)
        is_negation = np.array([word in NEGATIONS for word in vocabulary], float)
        # A number or a single letter, such as a bulb's name.
        is_symbol = np.array([len(word) == 1 or word.isdigit() for word in vocabulary], float)
        is_symbol *= 1 - self.is_function
        has, spelling = (counts > 0).astype(float), compare_spelling(vocabulary)
        content = has @ diags_array(1 - self.is_function)
        content.sort_indices()
        near, near_content = find_nearest(has, spelling), find_nearest(content, spelling)

        self.own, is_asked = has[answer], near[question] >= SAME_SPELLING
        self.new = self.own - self.own.multiply(is_asked)
        lacking = has[right] - has[right].multiply(is_asked[pair])
        # Where the question lacks nothing of it, the whole reference answer.
        lacking += has[right].multiply(lacking.sum(axis=1)[:, None] == 0)
        self.missing = has[right] - has[right].multiply(near[left] > 0)
        of_pairs = (has[right], near[left]), (has[left], near[right])
        of_new = (lacking, near[left]), (self.new[pair], near[right])
        of_answers = (has[question], near[answer]), (self.own, near[question])
        sets = (*of_pairs, *of_new, *of_answers)
        self.matched = [(words, nearest[words.nonzero()]) for words, nearest in sets]

        n_words, every, found = counts.sum(axis=1), np.ones(len(vocabulary)), {}
        for name, one, other in (("recall", right, left), ("precision", left, right)):
            matched = near_content[other][content[one].nonzero()]
            found[f"{name} of content words"] = share(content[one], matched, every)
        for n, name in ((2, "pairs"), (3, "triples")):
            runs, _ = count_terms(
                [" ".join(own[i : i + n]) for i in range(len(own) - n + 1)] for own in words
            )
            shared = runs[left].minimum(runs[right]).sum(axis=1)
            n_runs = np.maximum(runs.sum(axis=1), 1)
            found[f"recall of {name}"] = shared / n_runs[right]
            found[f"precision of {name}"] = shared / n_runs[left]
        same, negates = has[left].multiply(has[right]), (has @ is_negation > 0).astype(float)
        n_spelt = np.maximum(has[right].sum(axis=1), 1)
        found["recall of words as spelt"] = same.sum(axis=1) / n_spelt
        for name, one in (("recall", right), ("precision", left)):
            n_symbols = (has @ is_symbol)[one]
            symbols = np.where(n_symbols, same @ is_symbol / np.maximum(n_symbols, 1), 1)
            found[f"{name} of symbols"] = symbols
        found["more negations"] = negates[left] - negates[right]
        found["log of lengths' ratio"] = np.log((n_words[left] + 1) / (n_words[right] + 1))
        self.compared = pd.DataFrame(found)
        n_own, n_new = np.maximum(self.own.sum(axis=1), 1), self.new.sum(axis=1)
        self.of_answers = [
            *(n_words[answer], n_new, n_new / n_own),
            (counts @ is_negation)[answer],
            (counts @ self.is_function)[answer] / np.maximum(n_words[answer], 1),
            (counts @ is_symbol)[answer],
            np.bincount(pair),
            np.bincount(pair, n_words[right]) / np.bincount(pair),
            n_words[question],
        ]

    def describe(self, train: BoolArray) -> pd.DataFrame:
        """Describe every answer, words weighed by rarity in the training answers alone: how it
        compares with the best reference (by F1) and with all (largest, mean, some smallest), how
        question and answer cover each other, lengths and kinds of words.
        """
        # Plus 0.3, so that no word counts nothing.
        rarity = np.log((train.sum() + 1) / (self.own[train].sum(axis=0) + 1)) + 0.3
        weight = rarity * np.where(self.is_function, FUNCTION_WEIGHT, 1)

        def rarest(words: csr_array) -> FloatArray:
            return of_words(words, lambda at: weight[words.indices[at]].max(axis=1))

        mean_rarity = of_words(self.own, lambda at: weight[self.own.indices[at]].mean(axis=1))
        shares = [share(words, matched, weight) for words, matched in self.matched]
        weighed: dict[str, FloatArray] = {}
        for of, (recall, precision) in (("", shares[:2]), (" of what is new", shares[2:4])):
            total = recall + precision
            f1 = 2 * recall * precision / np.where(total, total, 1)
            weighed |= {f"recall{of}": recall, f"precision{of}": precision, f"f1{of}": f1}
        compared = pd.DataFrame(weighed).join(self.compared)
        compared["rarest word missing"] = rarest(self.missing)
        by_answer = compared.groupby(self.pair)
        best = compared.loc[by_answer["f1"].idxmax()].reset_index(drop=True)
        first = np.flatnonzero(np.diff(self.pair, prepend=-1))
        # Row by row, so that sums go from reference to reference.
        split = np.split(np.ascontiguousarray(compared), first[1:])
        others = [
            by_answer.max(),
            [pairs.mean(axis=0) for pairs in split],
            by_answer[SMALLEST].min(),
            *shares[4:],
            *self.of_answers[:4],
            rarest(self.new),
            mean_rarity,
            *self.of_answers[4:],
        ]
        return best.join(pd.DataFrame(np.column_stack(others)))


def mark_words(answers: pd.DataFrame) -> list[str]:
    """Return every answer's words and pairs of words, and the words marked alike for all questions:
    ``=word`` is in a reference too, ``?word`` only in the question, ``+word`` in neither, and
    ``-word`` in the most similar reference, but not in the answer.
    """
    marked = []
    for text, question, references in zip(
        *(answers[name] for name in ("text", "question_text", "references")), strict=True
    ):
        answer, in_question = stems(text), stems(question)
        known = [{*stems(reference)} for reference in references]
        own, all_known = {*answer}, set().union(*known)
        best = max(known, key=lambda other: len(own & other) / max(len(own) + len(other), 1))
        signs = ["=" if w in all_known else "?" if w in in_question else "+" for w in answer]
        terms = [sign + word for sign, word in zip(signs, answer, strict=True)]
        terms += [f"-{word}" for word in sorted(best - own)]
        terms += [f"{a}_{b}" for a, b in pairwise(answer)]
        marked.append(" ".join(terms + answer))
    return marked
