"""How well the words of an answer match those of each reference answer, rare words counting more.

None of it knows the words of a question beforehand, so that it serves for questions and domains
that no answer has been learned from. `Matches` finds once which words match; how rare they are is
told by training answers alone, so that it weighs them for every fold anew.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain, pairwise

from common.folds import BoolArray

import numpy as np
import pandas as pd
import similarity
from responses import FloatArray, IntArray
from scipy.sparse import csr_array

# Behind at least three letters.
ENDING = re.compile(r"(?<=\w{3})(ations|ation|ings|ing|ed|es|s|ly)$")
FUNCTION_WEIGHT = 0.3  # Of a function word, as a share of its rarity.
MIN_SPELLING = 0.55  # Below this similarity of spelling, two words are different ones.
SAME_SPELLING = 0.8  # From this on, a word counts as one of the question.

# What an answer and a reference answer are compared by.
COMPARED = (
    *("recall", "precision", "f1"),
    *("recall of what the question lacks", "precision of that", "f1 of that"),
    *("recall of content words", "precision of content words"),
    *("recall of pairs", "precision of pairs", "recall of triples", "precision of triples"),
    *("recall of words as spelt", "recall of symbols", "precision of symbols"),
    *("more negations", "log of lengths' ratio", "rarest word missing"),
)
# Of these, the smallest value over the reference answers is a feature as well.
_SMALLEST = [0, 1, 2, 3, 15]

# A set of words, and how well another text matches each, from 0 to 1.
Matched = tuple[IntArray, FloatArray]


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


def compare_spelling(vocabulary: Sequence[str]) -> FloatArray:
    """Return Dice's coefficient of every two words' pairs and triples of letters, ends included."""
    pieces = [
        {padded[i : i + n] for n in (2, 3) for i in range(len(padded) - n + 1)}
        for padded in (f"^{word}$" for word in vocabulary)
    ]
    number_of = {piece: n for n, piece in enumerate(sorted(set().union(*pieces)))}
    sizes = np.array([len(own) for own in pieces], int)
    columns = [number_of[piece] for own in pieces for piece in own]
    rows = np.repeat(np.arange(len(sizes)), sizes)
    has = csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(sizes), len(number_of)))
    return np.asarray(2 * (has @ has.T).toarray() / (sizes[:, None] + sizes))


class Words:
    """Stems: the similarity of every two, from 0 to 1, shape (words, words), and the kind of each.

    A symbol is a number or a single letter, such as a bulb's name.
    """

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self.number_of = {word: number for number, word in enumerate(vocabulary)}
        self.spelling = compare_spelling(vocabulary)
        self.spelling[self.spelling < MIN_SPELLING] = 0
        self.is_function_word = np.isin(vocabulary, sorted(FUNCTION_WORDS))
        self.is_negation = np.isin(vocabulary, sorted(NEGATIONS))
        is_short = np.array([len(word) == 1 or word.isdigit() for word in vocabulary], bool)
        self.is_symbol = is_short & ~self.is_function_word

    def numbers(self, text: str) -> IntArray:
        """Return the number of each word of a text, in order."""
        return np.array([self.number_of[word] for word in stems(text)], int)

    def match(self, *pairs: tuple[IntArray, IntArray]) -> list[Matched]:
        """Return, for some words each, how much the most similar of others resembles them."""
        spelling = self.spelling
        return [(own, spelling[np.ix_(own, by)].max(axis=1, initial=0)) for own, by in pairs]


def compare(answer: IntArray, reference: IntArray, words: Words) -> list[float]:
    """Compare two texts, given as numbers of words, by what in `COMPARED` needs no weights."""
    own, other = np.unique(answer), np.unique(reference)
    own_content, other_content = (x[~words.is_function_word[x]] for x in (own, other))
    own_symbols, other_symbols = (x[words.is_symbol[x]] for x in (own, other))
    of_content = words.match((other_content, own_content), (own_content, other_content))
    return [
        *share(of_content, np.ones(len(words.number_of))),
        *shared_runs(answer, reference, 2),
        *shared_runs(answer, reference, 3),
        mean(np.isin(other, own)),
        mean(np.isin(other_symbols, own), 1.0),
        mean(np.isin(own_symbols, other), 1.0),
        float(words.is_negation[own].any()) - float(words.is_negation[other].any()),
        float(np.log((len(answer) + 1) / (len(reference) + 1))),
    ]


def shared_runs(left: IntArray, right: IntArray, n: int) -> tuple[float, float]:
    """Return the shares of the right and of the left text's runs of n words that both have."""
    runs = [
        Counter(zip(*(text[start:] for start in range(n)), strict=False))
        for text in (left.tolist(), right.tolist())
    ]
    shared = (runs[0] & runs[1]).total()
    return shared / max(runs[1].total(), 1), shared / max(runs[0].total(), 1)


def mean(values: FloatArray | BoolArray, of_none: float = 0.0) -> float:
    """Return the mean of values, or another one of none."""
    return float(values.mean()) if len(values) else of_none


def share(sets: Sequence[Matched], weight: FloatArray) -> FloatArray:
    """Return which share of the weight of every set's words is matched, (sets,); of no word, 0."""
    totals = ((weight[own] @ matched, weight[own].sum()) for own, matched in sets)
    return np.array([part / whole if whole else 0.0 for part, whole in totals])


def harmonic(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the harmonic means of two arrays, 0 where both are."""
    total = left + right
    return np.asarray(2 * left * right / np.where(total, total, 1))


class Matches:
    """How the words of all answers match those of questions and references; weighed later.

    An answer makes a pair with each reference answer. The sets of every pair are the words of the
    reference answer, matched in the answer, the other way round, and both again of what the
    question lacks; those of every answer the words of the question, matched in it, and the other
    way round. Features are what needs no weights, shape (pairs, 11) and (answers, 9).
    """

    def __init__(self, answers: pd.DataFrame) -> None:
        asked = answers.drop_duplicates("question")[["question", "question_text", "references"]]
        texts = chain(answers["text"], asked["question_text"], *asked["references"])
        words = Words(sorted({stem for text in texts for stem in stems(text)}))
        questions = {
            number: (words.numbers(text), [words.numbers(reference) for reference in references])
            for number, text, references in asked.itertuples(index=False)
        }
        pairs: list[list[Matched]] = []
        with_question: list[list[Matched]] = []
        first_pair, pair_features, features = [], [], []
        for question, text in zip(answers["question"], answers["text"], strict=True):
            answer, (of_question, references) = words.numbers(text), questions[question]
            is_asked = words.spelling[:, of_question].max(axis=1, initial=0) >= SAME_SPELLING
            own = np.unique(answer)
            own_new = own[~is_asked[own]]
            first_pair.append(len(pairs))
            for reference in references:
                other = np.unique(reference)
                # Where the question lacks nothing of it, the whole reference answer.
                other_new = other if is_asked[other].all() else other[~is_asked[other]]
                both_ways = (other, own), (own, other), (other_new, own), (own_new, other)
                pairs.append(words.match(*both_ways))
                pair_features.append(compare(answer, reference, words))
            unique = np.unique(of_question)
            with_question.append(words.match((unique, own), (own, unique)))
            lengths = [len(reference) for reference in references]
            features.append(
                [
                    *(len(answer), len(own_new), len(own_new) / max(len(own), 1)),
                    words.is_negation[answer].sum(),
                    mean(words.is_function_word[answer]),
                    words.is_symbol[answer].sum(),
                    *(len(lengths), np.mean(lengths), len(of_question)),
                ]
            )
        self.is_function_word = words.is_function_word
        self.pair_sets, self.sets = ([*zip(*sets, strict=True)] for sets in (pairs, with_question))
        self.first_pair, self.pair_features, self.features = map(
            np.array, (first_pair, pair_features, features)
        )

    def describe(self, train: BoolArray) -> FloatArray:
        """Describe every answer, words weighed by how rare they are in the training answers alone.

        The features are `COMPARED` with the best reference answer (by F1), its largest, mean and,
        of some, smallest value over all; how far question and answer cover each other; lengths and
        kinds of words. The shape is (answers, features).
        """
        of_reference, _, _, new_of_answer = self.pair_sets
        of_question, of_answer = self.sets
        own_words = [words for words, _ in of_answer]
        is_train = np.repeat(train, [len(words) for words in own_words])
        n_with = np.bincount(np.concatenate(own_words), is_train, len(self.is_function_word))
        # Plus 0.3, so that no word counts nothing.
        rarity = np.log((train.sum() + 1) / (n_with + 1)) + 0.3
        weight = rarity * np.where(self.is_function_word, FUNCTION_WEIGHT, 1)

        recall, precision, new_recall, new_precision = (share(s, weight) for s in self.pair_sets)
        compared = np.column_stack(
            [
                *(recall, precision, harmonic(recall, precision)),
                *(new_recall, new_precision, harmonic(new_recall, new_precision)),
                self.pair_features,
                [weight[words[by == 0]].max(initial=0) for words, by in of_reference],
            ]
        )
        first = self.first_pair
        n_pairs = np.diff(first, append=len(compared))
        largest = np.maximum.reduceat(compared, first)
        # The first of the best.
        rows = np.flatnonzero(compared[:, 2] == np.repeat(largest[:, 2], n_pairs))
        best = rows[np.searchsorted(rows, first)]
        return np.column_stack(
            [
                compared[best],
                largest,
                [pairs.mean(axis=0) for pairs in np.split(compared, first[1:])],
                np.minimum.reduceat(compared, first)[:, _SMALLEST],
                *(share(of_question, weight), share(of_answer, weight)),
                self.features[:, :4],
                [weight[new_of_answer[pair][0]].max(initial=0) for pair in first],
                [mean(weight[words]) for words in own_words],
                self.features[:, 4:],
            ]
        )


def mark_words(answers: pd.DataFrame) -> list[str]:
    """Return every answer's words, each with where else it occurs, as one text for each answer.

    ``=word`` is in a reference answer too, ``?word`` only in the question, ``+word`` in neither,
    and ``-word`` is what the most similar reference answer has and the answer lacks; besides, words
    and pairs of words as they are. ``+not`` says the same thing about answers to any question.
    """
    marked = []
    asked = answers.drop_duplicates("question").set_index("question")
    of_question = asked["question_text"].map(lambda text: {*stems(text)})
    of_references = asked["references"].map(lambda texts: [{*stems(text)} for text in texts])
    for number, text in zip(answers["question"], answers["text"], strict=True):
        answer, references = stems(text), of_references[number]
        own, known = {*answer}, set().union(*references)
        best = max(references, key=lambda other: len(own & other) / max(len(own) + len(other), 1))
        signs = ["=" if w in known else "?" if w in of_question[number] else "+" for w in answer]
        terms = [sign + word for sign, word in zip(signs, answer, strict=True)]
        terms += [f"-{word}" for word in sorted(best - own)]
        terms += [f"{a}_{b}" for a, b in pairwise(answer)]
        marked.append(" ".join(terms + answer))
    return marked
