"""How well the words of an answer match those of each reference answer, rare words counting more.

None of it knows the words of a question beforehand, so that it serves for questions and domains
that no answer has been learned from.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from common.folds import BoolArray

import numpy as np
import similarity
from responses import FloatArray, IntArray, Responses
from scipy.sparse import csr_array

ENDINGS = ("ations", "ation", "ings", "ing", "ed", "es", "s", "ly")
FUNCTION_WEIGHT = 0.3  # Of a function word, as a share of its rarity.
MIN_SPELLING = 0.55  # Below this similarity of spelling, two words are different ones.
SAME_SPELLING = 0.8  # From this on, a word counts as one of the question.

# Columns of `compare`, for one reference answer.
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


@dataclass(frozen=True)
class Words:
    """What is known about the words of a question, its reference answers and its answers.

    Attributes
    ----------
    spelling
        Similarity of every two words, from 0 to 1, shape (words, words).
    weight
        Rarity of every word, at least 0, shape (words,); so are the others.
    is_function_word, is_in_question, is_negation, is_symbol
        What kind of word it is; a symbol is a number or a single letter, such as a bulb's name.
    """

    spelling: FloatArray
    weight: FloatArray
    is_function_word: BoolArray
    is_in_question: BoolArray
    is_negation: BoolArray
    is_symbol: BoolArray


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
    """Compare the spelling of every two words by their pairs and triples of letters.

    Returns
    -------
    array of float64, shape (words, words)
        Dice's coefficient of the two sets of pairs and triples, word ends included, from 0 to 1.
    """
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


def know_words(
    vocabulary: Sequence[str], question: Sequence[str], n_texts: int, n_with: Counter[str]
) -> Words:
    """Gather what is known about words.

    Parameters
    ----------
    vocabulary
        Stems, each once.
    question
        Those of the question.
    n_texts, n_with
        Number of training answers, and of those with each word: the rarity of a word is
        log((n_texts + 1) / (n_with + 1)), plus 0.3 so that no word counts nothing.
    """
    spelling = compare_spelling(vocabulary)
    spelling = np.where(spelling >= MIN_SPELLING, spelling, 0)
    n_having = np.array([n_with[word] for word in vocabulary])
    is_function_word = np.isin(vocabulary, sorted(FUNCTION_WORDS))
    is_asked = np.isin(vocabulary, sorted(set(question)))
    return Words(
        spelling,
        (np.log((n_texts + 1) / (n_having + 1)) + 0.3)
        * np.where(is_function_word, FUNCTION_WEIGHT, 1),
        is_function_word,
        spelling[:, is_asked].max(axis=1, initial=0) >= SAME_SPELLING,
        np.isin(vocabulary, sorted(NEGATIONS)),
        np.array([len(w) == 1 or w.isdigit() for w in vocabulary], bool) & ~is_function_word,
    )


def covered(words: IntArray, by: IntArray, spelling: FloatArray, weight: FloatArray) -> float:
    """Return which share of the weight of some words is found among others.

    Each word counts as much as its best match resembles it. No words at all are covered by 0.

    Parameters
    ----------
    words, by
        Numbers of the words, each once.
    spelling, weight
        As in `Words`.
    """
    if not len(words) or not len(by):
        return 0.0
    best = spelling[np.ix_(words, by)].max(axis=1)
    return float(weight[words] @ best / weight[words].sum())


def shared_runs(left: IntArray, right: IntArray, n: int) -> tuple[float, float]:
    """Return the shares of the right and of the left text's runs of n words that both have."""
    runs = [
        Counter(zip(*(text[start:] for start in range(n)), strict=False))
        for text in (left.tolist(), right.tolist())
    ]
    shared = (runs[0] & runs[1]).total()
    return shared / max(runs[1].total(), 1), shared / max(runs[0].total(), 1)


def compare(answer: IntArray, reference: IntArray, words: Words) -> list[float]:
    """Compare an answer with a reference answer; the result is in the order of `COMPARED`.

    Parameters
    ----------
    answer, reference
        Numbers of their words, in order.
    words
        What is known about these.
    """
    spelling, weight, equal = words.spelling, words.weight, np.ones(len(words.weight))
    own, other = np.unique(answer), np.unique(reference)
    recall = covered(other, own, spelling, weight)
    precision = covered(own, other, spelling, weight)
    own_new, other_new = own[~words.is_in_question[own]], other[~words.is_in_question[other]]
    new_recall = covered(other_new, own, spelling, weight) if len(other_new) else recall
    new_precision = covered(own_new, other, spelling, weight)
    own_content, other_content = (x[~words.is_function_word[x]] for x in (own, other))
    own_symbols, other_symbols = (x[words.is_symbol[x]] for x in (own, other))
    is_own, is_other = np.zeros((2, len(weight)), bool)
    is_own[own], is_other[other] = True, True
    is_missing = spelling[np.ix_(other, own)].max(axis=1, initial=0) == 0
    return [
        *(recall, precision, _harmonic(recall, precision)),
        *(new_recall, new_precision, _harmonic(new_recall, new_precision)),
        covered(other_content, own_content, spelling, equal),
        covered(own_content, other_content, spelling, equal),
        *shared_runs(answer, reference, 2),
        *shared_runs(answer, reference, 3),
        float(is_own[other].mean()) if len(other) else 0.0,
        float(is_own[other_symbols].mean()) if len(other_symbols) else 1.0,
        float(is_other[own_symbols].mean()) if len(own_symbols) else 1.0,
        float(words.is_negation[own].any()) - float(words.is_negation[other].any()),
        float(np.log((len(answer) + 1) / (len(reference) + 1))),
        float(weight[other][is_missing].max(initial=0)),
    ]


def _harmonic(left: float, right: float) -> float:
    return 2 * left * right / (left + right) if left + right else 0.0


def describe_answer(
    answer: IntArray, references: Sequence[IntArray], question: IntArray, words: Words
) -> FloatArray:
    """Describe an answer beside its question and reference answers.

    Returns
    -------
    array of float64, shape (features,)
        `compare` with the best reference answer (by F1), its largest, mean and, of some, smallest
        value over all; how far question and answer cover each other; lengths and kinds of words.
    """
    compared = np.array([compare(answer, reference, words) for reference in references])
    own, asked = np.unique(answer), np.unique(question)
    new = own[~words.is_in_question[own]]
    itself = [
        covered(asked, own, words.spelling, words.weight),
        covered(own, asked, words.spelling, words.weight),
        *(len(answer), len(new), len(new) / max(len(own), 1)),
        words.is_negation[answer].sum(),
        words.weight[new].max(initial=0),
        words.weight[own].mean() if len(own) else 0,
        words.is_function_word[answer].mean() if len(answer) else 0,
        words.is_symbol[answer].sum(),
        *(len(references), np.mean([len(reference) for reference in references]), len(question)),
    ]
    best = compared[compared[:, 2].argmax()]
    smallest = compared.min(axis=0)[_SMALLEST]
    return np.concatenate([best, compared.max(axis=0), compared.mean(axis=0), smallest, itself])


def describe(answers: Responses, train: BoolArray) -> FloatArray:
    """Describe every answer as `describe_answer` does, words weighed by training answers alone.

    Parameters
    ----------
    answers
        All answers.
    train
        Which of them to count words in, shape (answers,).

    Returns
    -------
    array of float64, shape (answers, features)
    """
    texts = [stems(text) for text in answers.texts]
    n_with = Counter(word for row in np.flatnonzero(train) for word in set(texts[row]))
    features: list[FloatArray] = [np.empty(0)] * len(answers)
    for number, question in enumerate(answers.questions):
        rows = np.flatnonzero(answers.question == number)
        asked = stems(question.text)
        references = [stems(text) for text in question.references]
        vocabulary = sorted(set(asked).union(*references, *(texts[row] for row in rows)))
        words = know_words(vocabulary, asked, int(train.sum()), n_with)
        number_of = {word: n for n, word in enumerate(vocabulary)}

        def number_words(text: Sequence[str], number_of: dict[str, int] = number_of) -> IntArray:
            return np.array([number_of[word] for word in text], int)

        numbered = [number_words(text) for text in references]
        numbered_question = number_words(asked)
        known: dict[tuple[str, ...], FloatArray] = {}
        for row in rows:
            key = tuple(texts[row])
            if key not in known:
                answer = number_words(key)
                known[key] = describe_answer(answer, numbered, numbered_question, words)
            features[row] = known[key]
    return np.array(features)


def mark_words(answers: Responses) -> list[str]:
    """Return every answer's words, each with where else it occurs, as one text for each answer.

    ``=word`` is in a reference answer too, ``?word`` only in the question, ``+word`` in neither,
    and ``-word`` is what the most similar reference answer has and the answer lacks; besides, words
    and pairs of words as they are. ``+not`` says the same thing about answers to any question.
    """
    asked = [set(stems(question.text)) for question in answers.questions]
    references = [[set(stems(text)) for text in q.references] for q in answers.questions]
    marked = []
    for number, text in zip(answers.question, answers.texts, strict=True):
        answer = stems(text)
        own, known = set(answer), set().union(*references[number])
        best = max(references[number], key=lambda other: _dice(own, other))
        signs = ["=" if w in known else "?" if w in asked[number] else "+" for w in answer]
        terms = [sign + word for sign, word in zip(signs, answer, strict=True)]
        terms += [f"-{word}" for word in sorted(best - own)]
        terms += [f"{a}_{b}" for a, b in pairwise(answer)]
        marked.append(" ".join(terms + answer))
    return marked


def _dice(left: set[str], right: set[str]) -> float:
    return len(left & right) / max(len(left) + len(right), 1)
