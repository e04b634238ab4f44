"""What answers say about the quality of a question: one function for each feature.

Every function takes `QuestionAnswers` and returns two arrays with one element for each question, in
the order of ``question_id``: the value of the feature, NaN where the answers do not determine it,
and the number of answers that it rests on. `FEATURES` names them all and says which direction is
taken to be better; values that rest on few answers are shrunk towards the mean by `shrink`. There
may be any number of options, not only four.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from common import io, item_response, layout, metadata, schema
from common.answers import find_repeats, pair_keys, read_answers
from common.errors import InputError

import numpy as np
import numpy.typing as npt
import pandas as pd

IntArray = npt.NDArray[np.integer[Any]]
FloatArray = npt.NDArray[np.float64]
Values = tuple[FloatArray, IntArray]

# A wrong option works as a distractor if it draws at least this share of the answers
# (Haladyna & Downing 1993, "How many options is enough for a multiple-choice test item?").
WORKING_SHARE = 0.05
# Steps of the fit of the two-parameter model; the slopes hardly change after the first few.
N_SLOPE_STEPS = 20


@dataclass(frozen=True)
class QuestionAnswers:
    """Answers whose ids are replaced by row numbers, and what is known besides the answers.

    Attributes
    ----------
    question_id, student_id
        The ids, increasing.
    question, student
        For each answer a row number of `question_id` and of `student_id`.
    is_correct
        For each answer 1 right, 0 wrong, int8.
    option
        For each answer the option chosen, counted from 0; None where unknown.
    key
        For each question its right option, counted from 0, -1 where no answer shows it; where
        the answers name several, the most frequent. None where the options are unknown.
    n_options
        Largest number of options.
    confidence
        For each answer 0 to 100, NaN where the student stated none; None where unknown.
    group, quiz
        For each answer GroupId and QuizId, -1 where missing; None where unknown.
    n_subjects
        For each question how many subjects it has, NaN where it is not listed; None where unknown.
    """

    question_id: IntArray
    student_id: IntArray
    question: IntArray
    student: IntArray
    is_correct: IntArray
    option: IntArray | None = None
    key: IntArray | None = None
    n_options: int = 0
    confidence: npt.NDArray[np.float32] | None = None
    group: IntArray | None = None
    quiz: IntArray | None = None
    n_subjects: FloatArray | None = None

    @property
    def n_questions(self) -> int:
        """Count the questions, answered or not."""
        return len(self.question_id)

    def take(self, rows: npt.NDArray[np.bool_]) -> "QuestionAnswers":
        """Return some of the answers; the questions and students stay numbered as they are."""
        columns = ("question", "student", "is_correct", "option", "confidence", "group", "quiz")
        taken = {
            name: getattr(self, name)[rows] for name in columns if getattr(self, name) is not None
        }
        return replace(self, **taken)


def number_answers(answers: pd.DataFrame, question_id: IntArray) -> QuestionAnswers:
    """Replace the ids of answers by row numbers.

    Parameters
    ----------
    answers
        Answers with or without options; options may have any value of at least 1.
    question_id
        Questions that get a row even if nobody answered them.

    Returns
    -------
    QuestionAnswers
        Without metadata; add them with `dataclasses.replace`.
    """
    questions = np.union1d(answers["QuestionId"].to_numpy(), question_id)
    students, student = np.unique(answers["UserId"].to_numpy(), return_inverse=True)
    data = QuestionAnswers(
        question_id=questions,
        student_id=students,
        question=np.searchsorted(questions, answers["QuestionId"].to_numpy()),
        student=student,
        is_correct=answers["IsCorrect"].to_numpy(),
    )
    if "AnswerValue" not in answers or "CorrectAnswer" not in answers:
        return data
    n_options = int(answers[["AnswerValue", "CorrectAnswer"]].to_numpy().max())
    right = answers["CorrectAnswer"].to_numpy() - 1
    key = _count(data.question, right, (data.n_questions, n_options))
    return replace(
        data,
        option=answers["AnswerValue"].to_numpy(np.int64) - 1,
        key=np.where(key.any(axis=1), key.argmax(axis=1), -1),
        n_options=n_options,
    )


def read_for_features(
    names: Sequence[str], train: Sequence[Path], question_id: IntArray, metadata_dir: Path | None
) -> QuestionAnswers:
    """Read training answers, and exactly the metadata that some features need.

    Parameters
    ----------
    names
        Names of the features to be computed, as in `FEATURES`.
    train
        Files of answers with AnswerValue and CorrectAnswer; several are joined.
    question_id
        Questions that get a row even if nobody answered them.
    metadata_dir
        Folder with the official metadata of tasks 3 and 4; None where there is none.

    Raises
    ------
    InputError
        If a file is missing or not as expected.
    """
    files: dict[str, Path] = {}
    for name in names:
        file = _METADATA_FILE.get(FEATURES[name].needs)
        if file is not None and metadata_dir is None:
            raise InputError(
                f"{train[0]}: the feature {name} needs {file} of the same data, expected its "
                "folder by --metadata_dir"
            )
        if file is not None and metadata_dir is not None:
            files[file] = metadata_dir / file
    with_metadata = layout.ANSWER_METADATA_TASK_3_4 in files
    parts = [read_answers(path, options=True, ids=with_metadata) for path in train]
    for path, part in zip(train, parts, strict=True):
        if with_metadata and "AnswerId" not in part:
            raise InputError(f"{path}: column 'AnswerId' is missing, but the metadata need it")
    answers = pd.concat(parts, ignore_index=True)
    repeats = find_repeats(pair_keys(answers["UserId"], answers["QuestionId"]))
    if len(repeats):
        # Each file by itself has been checked.
        twice = answers.loc[repeats[0]]
        raise InputError(
            f"{' and '.join(map(str, train))}: both hold UserId {twice['UserId']} and QuestionId "
            f"{twice['QuestionId']} ({len(repeats)} such pairs), expected each once"
        )
    data = number_answers(answers, question_id)
    if with_metadata:
        path = files[layout.ANSWER_METADATA_TASK_3_4]
        columns = (schema.CONFIDENCE, schema.GROUP_ID, schema.QUIZ_ID)
        told = metadata.read_circumstances(path, answers["AnswerId"].to_numpy(), columns=columns)
        data = replace(data, confidence=told.confidence, group=told.group, quiz=told.quiz)
    if layout.QUESTION_METADATA_TASK_3_4 in files:
        path = files[layout.QUESTION_METADATA_TASK_3_4]
        count = metadata.read_question_subjects(path, data.question_id).count
        data = replace(data, n_subjects=np.where(count > 0, count, np.nan))
    return data


# ---- How the answers spread -------------------------------------------------------------------


def option_entropy(data: QuestionAnswers) -> Values:
    """Entropy of the options chosen, -sum_k p_k log2 p_k, in bits, 0 to log2(options).

    Source: Shannon (1948); the organisers' baseline for task 3.
    """
    counts = option_counts(data)
    n = counts.sum(axis=1)
    return entropy(counts), n


def correct_entropy(data: QuestionAnswers) -> Values:
    """Entropy of right and wrong, -p log2 p - (1 - p) log2(1 - p), in bits, 0 to 1.

    p is the correct rate. Source: Shannon (1948); a feature of several winners of 2020.
    """
    rate, n = correct_rate(data)
    return binary_entropy(rate), n


def correct_rate(data: QuestionAnswers) -> Values:
    """Share of right answers, 0 to 1: the classical item difficulty (Lord & Novick 1968)."""
    n = np.bincount(data.question, minlength=data.n_questions)
    return _question_mean(data, data.is_correct), n


def entropy_within_quiz(data: QuestionAnswers) -> Values:
    """Entropy of the options chosen given the quiz, sum_g (n_g / n) H_g, in bits.

    H_g is the entropy among the n_g answers given in quiz g; small quizzes bias it downwards.
    Answers of no known quiz do not count. Source: TAL's entry of 2020.
    """
    assert data.quiz is not None
    return _entropy_within(data, data.quiz)


def entropy_within_group(data: QuestionAnswers) -> Values:
    """Entropy of the options chosen given the group of students, as `entropy_within_quiz`.

    Source: TAL's entry of 2020.
    """
    assert data.group is not None
    return _entropy_within(data, data.group)


# ---- How the answers depend on ability --------------------------------------------------------


def mean_absolute_residual(data: QuestionAnswers) -> Values:
    """Mean distance |r_s - x| of the answer x (0 or 1) from the student's own correct rate r_s.

    High where students do better or worse than usual for them. Source: called "difficulty", feature
    3, in the winning report of 2020.
    """
    rate = student_rate(data)[data.student]
    n = np.bincount(data.question, minlength=data.n_questions)
    return _question_mean(data, np.abs(rate - data.is_correct)), n


def point_biserial(data: QuestionAnswers) -> Values:
    """Discrimination: Pearson's correlation of right or wrong with the student's rest score.

    The rest score is the student's correct rate on all other questions. -1 to 1; NaN where all
    answers are alike. Source: Lord & Novick (1968), chapter 15; corrected for overlap (Henrysson
    1963).
    """
    has_score, score = _rest_score(data)
    x = data.is_correct[has_score].astype(np.float64)
    return _correlation(data.question[has_score], x, score[has_score], data.n_questions)


def irt_slope(data: QuestionAnswers) -> Values:
    """Discrimination a of the two-parameter logistic model, P(right) = sigmoid(a theta + b).

    theta is the student's ability, standard normal over the students. The model estimates how
    slopes vary over the questions and so shrinks those with few answers by itself. Source: Birnbaum
    (1968), in Lord & Novick, chapter 17; fitted by `common.item_response`.
    """
    model = item_response.fit(
        data.student, data.question, data.is_correct, n_dimensions=1, n_steps=N_SLOPE_STEPS
    )
    slope = np.full(data.n_questions, np.nan)
    slope[model.question_ids] = model.items.mean[:-1, 0]
    return slope, np.bincount(data.question, minlength=data.n_questions)


def working_distractors(data: QuestionAnswers) -> Values:
    """Number of wrong options that draw at least 5 % of the answers, 0 to options - 1.

    Source: Haladyna & Downing (1993).
    """
    counts = option_counts(data)
    n = counts.sum(axis=1)
    return np.where(n > 0, _works(data, counts).sum(axis=1), np.nan), n


def worst_distractor(data: QuestionAnswers) -> Values:
    """Largest point-biserial of a working distractor: do able students avoid each wrong option?

    Negative where they do; positive where a wrong option draws the able rather than the weak, as a
    wrong key does. NaN where no wrong option draws 5 % of the answers. Source: Attali & Fraenkel
    (2000), "The point-biserial as a discrimination index for distractors".
    """
    counts = option_counts(data)
    correlation = np.where(_works(data, counts), option_point_biserial(data), -np.inf)
    worst = correlation.max(axis=1, initial=-np.inf)
    return np.where(np.isfinite(worst), worst, np.nan), counts.sum(axis=1)


# ---- What students and authors say ------------------------------------------------------------


def mean_confidence(data: QuestionAnswers) -> Values:
    """Mean of the confidence that students stated, 0 to 100.

    Source: the University of Sydney's winning ranking of 2020 was this alone.
    """
    assert data.confidence is not None
    stated = ~np.isnan(data.confidence)
    rows = data.question[stated]
    n = np.bincount(rows, minlength=data.n_questions)
    total = np.bincount(rows, data.confidence[stated], minlength=data.n_questions)
    return _ratio(total, n), n


def confidence_missing(data: QuestionAnswers) -> Values:
    """Share of the answers whose confidence is missing, 0 to 1."""
    assert data.confidence is not None
    n = np.bincount(data.question, minlength=data.n_questions)
    return _question_mean(data, np.isnan(data.confidence)), n


def number_of_subjects(data: QuestionAnswers) -> Values:
    """Number of subjects in the question's list, from the root of the subject tree to its leaves.

    A question on one skill has one branch, four subjects in the official tree.
    """
    assert data.n_subjects is not None
    return data.n_subjects, np.bincount(data.question, minlength=data.n_questions)


# ---- All features -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Feature:
    """A feature and what is taken to be good about it.

    Attributes
    ----------
    values
        The function.
    better
        1 where more is taken to be better, -1 where less is; fixed from what diagnostic questions
        are for, never from the experts' judgements.
    why
        The reason for the direction, in a few words.
    needs
        Attribute of `QuestionAnswers` that must be there; empty where answers alone do.
    is_sampled
        Whether chance moves the value where answers are few, so that `shrink` has work to do.
    """

    values: Callable[[QuestionAnswers], Values] = field(repr=False)
    better: int
    why: str
    needs: str = ""
    is_sampled: bool = True


FEATURES = {
    "option_entropy": Feature(option_entropy, 1, "every option is informative", "option"),
    "correct_entropy": Feature(correct_entropy, 1, "neither trivial nor hopeless"),
    "correct_rate": Feature(correct_rate, 1, "clear, and quickly answered"),
    "mean_absolute_residual": Feature(
        mean_absolute_residual, 1, "misconceptions surprise: they catch good students too"
    ),
    "point_biserial": Feature(point_biserial, 1, "separates able from weak students"),
    "irt_slope": Feature(irt_slope, 1, "separates able from weak students", is_sampled=False),
    "working_distractors": Feature(
        working_distractors, 1, "each wrong option has its misconception", "option"
    ),
    "worst_distractor": Feature(
        worst_distractor, -1, "able students avoid every wrong option", "option"
    ),
    "mean_confidence": Feature(mean_confidence, 1, "clear and unambiguous", "confidence"),
    "confidence_missing": Feature(
        confidence_missing, -1, "students care to state it", "confidence"
    ),
    "entropy_within_quiz": Feature(
        entropy_within_quiz, 1, "separates students who take the same quiz", "quiz"
    ),
    "entropy_within_group": Feature(
        entropy_within_group, 1, "separates students who learn together", "group"
    ),
    "number_of_subjects": Feature(
        number_of_subjects, -1, "tests one skill", "n_subjects", is_sampled=False
    ),
}


# The metadata file that holds what a feature needs beside the answers.
_METADATA_FILE = {
    "confidence": layout.ANSWER_METADATA_TASK_3_4,
    "group": layout.ANSWER_METADATA_TASK_3_4,
    "quiz": layout.ANSWER_METADATA_TASK_3_4,
    "n_subjects": layout.QUESTION_METADATA_TASK_3_4,
}


def available_features(metadata_dir: Path) -> list[str]:
    """Name the features that can be computed with the metadata files of a folder."""
    return [
        name
        for name, feature in FEATURES.items()
        if feature.needs not in _METADATA_FILE
        or io.is_there(metadata_dir / _METADATA_FILE[feature.needs])
    ]


def shrink(feature: Feature, data: QuestionAnswers, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Compute a feature, with values that rest on few answers shrunk towards the mean of all.

    Empirical Bayes for a normal mean: a value x resting on n answers becomes m + w (x - m) with
    w = t / (t + s / n) (Morris 1983, "Parametric empirical Bayes inference", section 1). The
    variance s of one answer is measured, not assumed: the students are halved at random, the
    feature is computed from each half, and the squared difference of the two values has the mean s
    (1 / n_1 + 1 / n_2). The variance t between questions and their mean m follow by the method of
    moments (DerSimonian & Laird 1986, equations 8 to 10).

    Parameters
    ----------
    feature
        The feature.
    data
        The answers.
    seed
        Seed of the halves.

    Returns
    -------
    value : array of float64, shape (questions,)
        The shrunk feature; NaN where the feature is NaN.
    weight : array of float64, shape (questions,)
        Weight w of the question's own value, 0 to 1; NaN where the feature is NaN.
    """
    value, n = feature.values(data)
    weight = np.where(np.isnan(value), np.nan, 1.0)
    if not feature.is_sampled:
        return value, weight
    first = np.random.default_rng(seed).permutation(len(data.student_id)) % 2 == 0
    in_first = first[data.student]
    (value_1, n_1), (value_2, n_2) = (
        feature.values(data.take(half)) for half in (in_first, ~in_first)
    )
    # Below ten answers a half many features are no longer near normal.
    compared = ~np.isnan(value_1) & ~np.isnan(value_2) & (n_1 >= 10) & (n_2 >= 10)
    if compared.sum() < 2:
        return value, weight
    harmonic = n_1[compared] * n_2[compared] / (n_1[compared] + n_2[compared])
    answer_variance = float(np.mean(harmonic * (value_1 - value_2)[compared] ** 2))
    known = ~np.isnan(value)
    if answer_variance == 0 or known.sum() < 2:
        return value, weight
    x, precision = value[known], n[known] / answer_variance
    spread = np.sum(precision * (x - np.average(x, weights=precision)) ** 2)
    scale = precision.sum() - np.sum(precision**2) / precision.sum()
    between = max(0.0, (spread - (len(x) - 1)) / scale)
    weight[known] = between / (between + 1 / precision)
    mean = np.average(x, weights=1 / (between + 1 / precision))
    return mean + weight * (value - mean), weight


def average_ranks(quality: FloatArray) -> FloatArray:
    """Rank questions, 1 the best; questions of equal quality share their mean rank, NaN ranks last.

    Parameters
    ----------
    quality
        Shape (questions,); higher is better.
    """
    _, place, n_equal = np.unique(-quality, return_inverse=True, return_counts=True)
    last = np.cumsum(n_equal)
    return np.asarray((last - (n_equal - 1) / 2)[place])


# ---- Building blocks --------------------------------------------------------------------------


def entropy(counts: npt.NDArray[Any]) -> FloatArray:
    """Entropy in bits of every row of counts, shape (rows, categories); NaN for a row of zeros."""
    total = counts.sum(axis=1)
    share = _ratio(counts, total[:, None])
    # A category that never occurs adds nothing: p log p goes to 0 with p.
    bits = np.log2(share, out=np.zeros_like(share), where=share > 0)
    result: FloatArray = np.where(total > 0, -(share * bits).sum(axis=1) + 0.0, np.nan)
    return result


def binary_entropy(rate: FloatArray) -> FloatArray:
    """Entropy in bits of an event that happens with each rate; NaN stays NaN."""
    known = np.isfinite(rate)
    both = np.stack([np.where(known, rate, 0), np.where(known, 1 - rate, 0)], axis=1)
    return entropy(both)


def option_counts(data: QuestionAnswers) -> IntArray:
    """Count the choices of every option, int64, shape (questions, options)."""
    assert data.option is not None
    return _count(data.question, data.option, (data.n_questions, data.n_options))


def student_rate(data: QuestionAnswers) -> FloatArray:
    """Share of right answers of every student, shape (students,); NaN for one without answers."""
    n_students = len(data.student_id)
    n = np.bincount(data.student, minlength=n_students)
    return _ratio(np.bincount(data.student, data.is_correct, minlength=n_students), n)


def option_point_biserial(data: QuestionAnswers) -> FloatArray:
    """Correlation of choosing each option with the rest score, shape (questions, options).

    -1 to 1; NaN where nobody or everybody chose the option. The rest score is that of
    `point_biserial`.
    """
    assert data.option is not None
    has_score, score = _rest_score(data)
    question, option, score = data.question[has_score], data.option[has_score], score[has_score]
    return np.stack(
        [
            _correlation(question, (option == k).astype(np.float64), score, data.n_questions)[0]
            for k in range(data.n_options)
        ],
        axis=1,
    )


def option_counts_by_ability(data: QuestionAnswers, row: int, n_groups: int = 4) -> IntArray:
    """Count the options chosen, from the weakest to the ablest group of students.

    Parameters
    ----------
    data
        The answers, with options.
    row
        Row number of the question.
    n_groups
        How many groups of equal size, by the students' rest scores, ties by UserId.

    Returns
    -------
    array of int64, shape (groups, options)
        Of the students who gave other answers too.
    """
    assert data.option is not None
    has_score, score = _rest_score(data)
    rows = np.flatnonzero(has_score & (data.question == row))
    rows = rows[np.lexsort((data.student[rows], score[rows]))]
    group = np.arange(len(rows)) * n_groups // max(len(rows), 1)
    return _count(group, data.option[rows], (n_groups, data.n_options))


def _works(data: QuestionAnswers, counts: IntArray) -> npt.NDArray[np.bool_]:
    """Return which options are wrong and draw enough answers, shape (questions, options)."""
    assert data.key is not None
    is_wrong = np.arange(data.n_options) != data.key[:, None]
    n = counts.sum(axis=1, keepdims=True)
    return np.asarray(is_wrong & (counts >= WORKING_SHARE * n) & (counts > 0))


def _rest_score(data: QuestionAnswers) -> tuple[npt.NDArray[np.bool_], FloatArray]:
    """Return for each answer whether its student gave others, and the correct rate on those."""
    n_students = len(data.student_id)
    n = np.bincount(data.student, minlength=n_students)[data.student] - 1
    right = np.bincount(data.student, data.is_correct, minlength=n_students)[data.student]
    return n > 0, _ratio(right - data.is_correct, n)


def _correlation(question: IntArray, x: FloatArray, y: FloatArray, n_questions: int) -> Values:
    """Pearson's correlation of x and y within each question; NaN where one does not vary."""

    def total(value: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(question, value, minlength=n_questions), np.float64)

    n = np.bincount(question, minlength=n_questions)
    # Centred first, so that no digits are lost.
    x = x - _ratio(total(x), n)[question]
    y = y - _ratio(total(y), n)[question]
    variances = total(x * x) * total(y * y)
    varies = variances > 1e-18
    value = total(x * y) / np.sqrt(np.where(varies, variances, 1))
    return np.where(varies, value, np.nan), n


def _entropy_within(data: QuestionAnswers, group: IntArray) -> Values:
    assert data.option is not None
    known = group >= 0
    question, option = data.question[known], data.option[known]
    n_groups = int(group.max(initial=0)) + 1
    cells, cell = np.unique(question * np.int64(n_groups) + group[known], return_inverse=True)
    counts = _count(cell, option, (len(cells), data.n_options))
    size = counts.sum(axis=1)
    of_question = cells // n_groups
    n = np.bincount(of_question, size, minlength=data.n_questions).astype(np.int64)
    total = np.bincount(of_question, size * entropy(counts), minlength=data.n_questions)
    return _ratio(total, n), n


def _count(row: IntArray, column: IntArray, shape: tuple[int, int]) -> IntArray:
    cell = row.astype(np.int64) * shape[1] + column
    return np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)


def _question_mean(data: QuestionAnswers, value: npt.NDArray[Any]) -> FloatArray:
    total = np.bincount(data.question, value, minlength=data.n_questions)
    return _ratio(total, np.bincount(data.question, minlength=data.n_questions))


def _ratio(total: npt.NDArray[Any], n: IntArray) -> FloatArray:
    """Divide; NaN where there is nothing to divide by."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(n > 0, total / np.maximum(n, 1), np.nan)
