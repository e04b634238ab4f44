"""How well the words of an answer match those of each reference answer, rare words counting more.

None of it knows the words of a question beforehand, so that it serves for questions and domains
that no answer has been learned from. `Matches` finds once which words match; how rare they are is
told by training answers alone, so that it weighs them for every fold anew.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import chain, pairwise
from typing import Any

from common.folds import BoolArray

import numpy as np
import numpy.typing as npt
import similarity
from responses import FloatArray, IntArray, Responses
from scipy.sparse import csr_array

ENDINGS = ("ations", "ation", "ings", "ing", "ed", "es", "s", "ly")
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

# Words, and how well each is matched.
Matched = tuple[IntArray, FloatArray]


def stems(text: str) -> list[str]:
    """Split a text into lower-case words without their endings."""
    return [_stem(word) for word in similarity.words(text)]


def _stem(word: str) -> str:
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) >= len(ending) + 3:
            return word.removesuffix(ending)
    return word


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

    def best_match(self, some: IntArray, others: IntArray) -> FloatArray:
        """Return for each of some words how much the most similar of others resembles it."""
        return np.asarray(self.spelling[np.ix_(some, others)].max(axis=1, initial=0))


def shared_runs(left: IntArray, right: IntArray, n: int) -> tuple[float, float]:
    """Return the shares of the right and of the left text's runs of n words that both have."""
    runs = [
        Counter(zip(*(text[start:] for start in range(n)), strict=False))
        for text in (left.tolist(), right.tolist())
    ]
    shared = (runs[0] & runs[1]).total()
    return shared / max(runs[1].total(), 1), shared / max(runs[0].total(), 1)


def compare(answer: IntArray, reference: IntArray, words: Words) -> list[float]:
    """Compare two texts, given as numbers of words, by what in `COMPARED` needs no weights."""
    own, other = np.unique(answer), np.unique(reference)
    own_symbols, other_symbols = (x[words.is_symbol[x]] for x in (own, other))
    return [
        *shared_runs(answer, reference, 2),
        *shared_runs(answer, reference, 3),
        _mean(np.isin(other, own)),
        _mean(np.isin(other_symbols, own), 1.0),
        _mean(np.isin(own_symbols, other), 1.0),
        float(words.is_negation[own].any()) - float(words.is_negation[other].any()),
        float(np.log((len(answer) + 1) / (len(reference) + 1))),
    ]


def _mean(values: npt.NDArray[Any], of_none: float = 0.0) -> float:
    return float(values.mean()) if len(values) else of_none


class Sets:
    """Sets of words, every word with how well another text matches it, from 0 to 1."""

    def __init__(self, sets: Sequence[Matched]) -> None:
        sizes = [len(words) for words, _ in sets]
        self.n_sets, self.set = len(sets), np.repeat(np.arange(len(sets)), sizes)
        self.slices = [slice(*bounds) for bounds in pairwise(np.cumsum([0, *sizes]).tolist())]
        self.word = np.concatenate([words for words, _ in sets])
        self.matched = np.concatenate([matched for _, matched in sets])

    def share(self, weight: FloatArray) -> FloatArray:
        """Return which share of every set's weight is matched, shape (sets,); of no word, 0."""
        own = weight[self.word]
        totals = ((own[s] @ self.matched[s], own[s].sum()) for s in self.slices)
        return np.array([matched / whole if whole else 0.0 for matched, whole in totals])

    def mean(self, weight: FloatArray) -> FloatArray:
        """Return the mean weight of every set's words, shape (sets,); of no word, 0."""
        own = weight[self.word]
        return np.array([_mean(own[s]) for s in self.slices])

    def heaviest(self, weight: FloatArray, *, unmatched: bool = False) -> FloatArray:
        """Return the largest weight of every set's words, or of the unmatched ones; of none, 0."""
        result = np.zeros(self.n_sets)
        counts = self.matched == 0 if unmatched else True
        np.maximum.at(result, self.set, np.where(counts, weight[self.word], 0))
        return result


class Matches:
    """How the words of all answers match those of questions and references; weighed later.

    Answers of the same words to the same question are one case, and a case makes a pair with each
    reference answer. The sets of every pair are the words of the reference answer, matched in the
    answer, the other way round, and both again of what the question lacks; those of every case the
    words of the question, matched in the answer, and the other way round. Features are what needs
    no weights, shape (pairs, 11) and (cases, 9).
    """

    def __init__(self, answers: Responses) -> None:
        questions = answers.questions
        texts = chain(answers.texts, questions["text"], *questions["references"])
        words = Words(sorted({stem for text in texts for stem in stems(text)}))
        asked = [words.numbers(text) for text in questions["text"]]
        references = [[words.numbers(text) for text in texts] for texts in questions["references"]]
        is_asked_in = [
            words.spelling[:, own].max(axis=1, initial=0) >= SAME_SPELLING for own in asked
        ]
        number_of: dict[tuple[int, ...], int] = {}
        case = [
            number_of.setdefault((question, *words.numbers(text).tolist()), len(number_of))
            for question, text in zip(answers.question, answers.texts, strict=True)
        ]
        pairs: list[list[Matched]] = []
        cases: list[list[Matched]] = []
        first_pair, pair_features, case_features = [], [], []
        for question, *spoken in number_of:
            answer, of_question = np.array(spoken, int), np.unique(asked[question])
            is_asked = is_asked_in[question]
            own = np.unique(answer)
            own_new = own[~is_asked[own]]
            first_pair.append(len(pairs))
            for reference in references[question]:
                other = np.unique(reference)
                # Where the question lacks nothing of it, the whole reference answer.
                other_new = other if is_asked[other].all() else other[~is_asked[other]]
                contents = [x[~words.is_function_word[x]] for x in (other, own)]
                both_ways = [
                    *((other, own), (own, other), (other_new, own), (own_new, other)),
                    *(contents, contents[::-1]),
                ]
                pairs.append([(some, words.best_match(some, by)) for some, by in both_ways])
                pair_features.append(compare(answer, reference, words))
            both_ways = [(of_question, own), (own, of_question)]
            cases.append([(some, words.best_match(some, by)) for some, by in both_ways])
            lengths = [len(reference) for reference in references[question]]
            case_features.append(
                [
                    *(len(answer), len(own_new), len(own_new) / max(len(own), 1)),
                    words.is_negation[answer].sum(),
                    _mean(words.is_function_word[answer]),
                    words.is_symbol[answer].sum(),
                    *(len(lengths), np.mean(lengths), len(asked[question])),
                ]
            )
        pair_sets = [Sets(sets) for sets in zip(*pairs, strict=True)]
        of_content = [sets.share(np.ones(len(words.number_of))) for sets in pair_sets[4:]]
        self.is_function_word = words.is_function_word
        self.case, self.first_pair = np.array(case), np.array(first_pair)
        self.pair_sets = pair_sets[:4]
        self.case_sets = [Sets(sets) for sets in zip(*cases, strict=True)]
        self.pair_features = np.column_stack([*of_content, pair_features])
        self.case_features = np.array(case_features)

    def describe(self, train: BoolArray) -> FloatArray:
        """Describe every answer, words weighed by how rare they are in the training answers alone.

        The features are `COMPARED` with the best reference answer (by F1), its largest, mean and,
        of some, smallest value over all; how far question and answer cover each other; lengths and
        kinds of words. The shape is (answers, features).
        """
        n_answers = np.bincount(self.case[train], minlength=len(self.first_pair))
        of_reference, _, _, new_of_answer = self.pair_sets
        of_question, own = self.case_sets
        n_with = np.bincount(own.word, n_answers[own.set], len(self.is_function_word))
        # Plus 0.3, so that no word counts nothing.
        rarity = np.log((train.sum() + 1) / (n_with + 1)) + 0.3
        weight = rarity * np.where(self.is_function_word, FUNCTION_WEIGHT, 1)

        recall, precision, new_recall, new_precision = (s.share(weight) for s in self.pair_sets)
        compared = np.column_stack(
            [
                *(recall, precision, _harmonic(recall, precision)),
                *(new_recall, new_precision, _harmonic(new_recall, new_precision)),
                self.pair_features,
                of_reference.heaviest(weight, unmatched=True),
            ]
        )
        first = self.first_pair
        n_pairs = np.diff(first, append=len(compared))
        largest = np.maximum.reduceat(compared, first)
        # The first of the best.
        rows = np.flatnonzero(compared[:, 2] == np.repeat(largest[:, 2], n_pairs))
        best = rows[np.searchsorted(rows, first)]
        features = np.column_stack(
            [
                compared[best],
                largest,
                [pairs.mean(axis=0) for pairs in np.split(compared, first[1:])],
                np.minimum.reduceat(compared, first)[:, _SMALLEST],
                *(of_question.share(weight), own.share(weight)),
                self.case_features[:, :4],
                new_of_answer.heaviest(weight)[first],
                own.mean(weight),
                self.case_features[:, 4:],
            ]
        )
        return np.asarray(features[self.case])


def _harmonic(left: FloatArray, right: FloatArray) -> FloatArray:
    total = left + right
    return np.asarray(2 * left * right / np.where(total, total, 1))


def mark_words(answers: Responses) -> list[str]:
    """Return every answer's words, each with where else it occurs, as one text for each answer.

    ``=word`` is in a reference answer too, ``?word`` only in the question, ``+word`` in neither,
    and ``-word`` is what the most similar reference answer has and the answer lacks; besides, words
    and pairs of words as they are. ``+not`` says the same thing about answers to any question.
    """
    asked = [set(stems(text)) for text in answers.questions["text"]]
    references = [[set(stems(text)) for text in own] for own in answers.questions["references"]]
    marked = []
    for number, text in zip(answers.question, answers.texts, strict=True):
        answer = stems(text)
        own, known = set(answer), set().union(*references[number])
        best = max(
            references[number], key=lambda other: len(own & other) / max(len(own) + len(other), 1)
        )
        signs = ["=" if w in known else "?" if w in asked[number] else "+" for w in answer]
        terms = [sign + word for sign, word in zip(signs, answer, strict=True)]
        terms += [f"-{word}" for word in sorted(best - own)]
        terms += [f"{a}_{b}" for a, b in pairwise(answer)]
        marked.append(" ".join(terms + answer))
    return marked
