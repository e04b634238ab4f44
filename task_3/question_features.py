"""What answers say about the quality of a question: one function for each feature.

Every function takes `QuestionAnswers` and returns a value for each question: float64, in the order
of ``questions``, NaN where the answers do not determine the value. `FEATURES` holds all features
and says whether high or low values are taken to be better. `shrink` shrinks values that rest on few
answers towards the mean. Questions may have any number of options, not only four.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from common import layout, metadata, reading, schema
from common.answers import number_ids, read_answers
from common.arrays import Array, BoolArray, FloatArray, IntArray
from common.errors import InputError
from common.item_response import ItemResponse

import numpy as np
import numpy.typing as npt
import pandas as pd

# A wrong option works as a distractor if it draws at least this share of the answers
# (Haladyna & Downing 1993, "How many options is enough for a multiple-choice test item?").
WORKING_SHARE = 0.05
_ANSWER_METADATA = layout.ANSWER_METADATA_TASK_3_4
_QUESTION_METADATA = layout.QUESTION_METADATA_TASK_3_4
# Number of steps in the fit of the two-parameter model for `irt_slope`. The slopes hardly change
# after the first few steps.
N_SLOPE_STEPS = 20


class QuestionAnswers(NamedTuple):
    """Answers to questions, and what is known besides the answers."""

    # A row for each answer, with the columns of the file and two more. `question_code` is the row
    # of the question in `questions`, `student_code` the position of the student in sorted UserIds.
    # Three columns come from the metadata of the answers, if they are read: Confidence, 0 to 100 or
    # NaN if the student stated none, and GroupId and QuizId, -1 where missing.
    answers: pd.DataFrame
    # A row for each QuestionId in increasing order, answered or not. CorrectAnswer is the number of
    # the right option, 0 if the question has no answers. If the answers name different right
    # options, CorrectAnswer is the most frequent one. The metadata of the questions add n_subjects,
    # NaN for a question that is not in the metadata.
    questions: pd.DataFrame
    # The largest number of options of a question.
    n_options: int

    @property
    def n_answers(self) -> IntArray:
        """Count the answers to every question, int64, shape (questions,)."""
        return np.bincount(self.answers["question_code"], minlength=len(self.questions))

    def sums(self, value: npt.ArrayLike) -> FloatArray:
        """For each question, return the sum of the `value` of its answers, shape (questions,)."""
        n_questions = len(self.questions)
        total = np.bincount(self.answers["question_code"], np.asarray(value), n_questions)
        return np.asarray(total, np.float64)

    def means(self, value: npt.ArrayLike) -> FloatArray:
        """For each question, return the mean of the `value` of its answers; NaN if it has none."""
        return _ratio(self.sums(value), self.n_answers)

    def take(self, rows: "pd.Series | BoolArray") -> "QuestionAnswers":
        """Return a copy with only these rows of `answers`; `questions` stays the same."""
        return self._replace(answers=self.answers[rows])


def number_answers(answers: pd.DataFrame, question_id: IntArray) -> QuestionAnswers:
    """Give questions and students the codes 0, 1, … in increasing order of their ids.

    The table ``questions`` of the result has a row for each question in the answers and for each of
    `question_id`, even if nobody answered it.
    """
    ids, codes = number_ids(np.concatenate([answers["QuestionId"].to_numpy(), question_id]))
    # `codes` has an element for each answer, then an element for each of `question_id`.
    question_code = codes[: len(answers)]
    _, student_code = number_ids(answers["UserId"])
    n_options = int(answers[["AnswerValue", "CorrectAnswer"]].to_numpy().max())
    # Each answer names the question's right option, CorrectAnswer. Count how many answers name each
    # option, shape (questions, options from 0). If the answers to a question disagree, `argmax`
    # below takes the option that most of them name. For a question without answers, it takes 0.
    n_named = _count(question_code, answers["CorrectAnswer"], (len(ids), n_options + 1))
    return QuestionAnswers(
        answers=answers.assign(question_code=question_code, student_code=student_code),
        questions=pd.DataFrame({"CorrectAnswer": n_named.argmax(axis=1)}, index=ids),
        n_options=n_options,
    )


def read_for_features(
    names: Sequence[str], train: Path, question_id: IntArray, metadata_dir: Path | None
) -> QuestionAnswers:
    """Read the training answers, and the metadata that the features of these names need.

    The table ``questions`` of the result has a row for each question in the answers and for each of
    `question_id`, even if nobody answered it.
    """
    # The metadata files that the features need, by name of the file.
    files: dict[str, Path] = {}
    for name in names:
        file_name = FEATURES[name].metadata_file
        if not file_name:
            continue
        if metadata_dir is None:
            raise InputError(
                f"{train}: the feature {name} needs {file_name} of the same data; give its folder "
                "with --metadata_dir"
            )
        files[file_name] = metadata_dir / file_name
    answer_metadata = files.get(_ANSWER_METADATA)
    answers = read_answers(train, options=True, ids=answer_metadata is not None)
    if answer_metadata:
        if "AnswerId" not in answers:
            raise InputError(f"{train}: column 'AnswerId' is missing, but the metadata need it")
        columns = (schema.CONFIDENCE, schema.GROUP_ID, schema.QUIZ_ID)
        ids = answers["AnswerId"].to_numpy()
        circumstances = metadata.read_circumstances(answer_metadata, ids, columns=columns)
        # `circumstances` has further columns, which were not read and hold no values: do not add
        # them.
        names_read = [column.name for column in columns]
        answers = answers.assign(**circumstances[names_read])
    data = number_answers(answers, question_id)
    if _QUESTION_METADATA in files:
        ids = data.questions.index.to_numpy()
        # Each row of `subject_lines` holds a question and one of its subjects; the column `row` is
        # the question's position in `ids`. Count the rows of each question: NaN if there are none.
        subject_lines = metadata.read_question_subjects(files[_QUESTION_METADATA], ids)
        n_subjects = subject_lines["row"].value_counts().reindex(range(len(ids)))
        data.questions["n_subjects"] = n_subjects.to_numpy(np.float64)
    return data


class Feature(NamedTuple):
    """A feature, and which of its values are taken to be good."""

    values: Callable[[QuestionAnswers], FloatArray]
    # `HIGH` (1) if high values are taken to be better, `LOW` (-1) if low values are. This follows
    # from the purpose of diagnostic questions, never from the experts' judgements.
    better: int
    # The reason why high or low values are taken to be better.
    why: str
    # Name of the metadata file that the feature needs; "" for none.
    metadata_file: str = ""
    # Whether `shrink` shrinks the values of this feature. False if the values do not depend on
    # chance, or if the function that computes them has shrunk them already.
    is_shrunk: bool = True
    # The feature uses only the answers that have a value in this column. "": it uses all answers.
    required_column: str = ""

    def relevant_answers(self, data: QuestionAnswers) -> QuestionAnswers:
        """Return the answers that count for this feature."""
        if not self.required_column:
            return data
        # A missing value is -1 or NaN. For both, the comparison is False.
        return data.take(data.answers[self.required_column] >= 0)


# Values of `Feature.better`.
HIGH = 1
LOW = -1

FEATURES: dict[str, Feature] = {}
Function = Callable[[QuestionAnswers], FloatArray]


def feature(better: int, why: str, **options: Any) -> Callable[[Function], Function]:
    """Return a decorator that adds a function to `FEATURES`, under the function's name.

    The arguments are the fields of the `Feature`.
    """

    def add(values: Function) -> Function:
        FEATURES[values.__name__] = Feature(values, better, why, **options)
        return values

    return add


def available_features(metadata_dir: Path) -> list[str]:
    """Name the features that can be computed with the metadata files of a folder."""
    names = []
    for name, feature in FEATURES.items():
        needs_file = feature.metadata_file != ""
        if not needs_file or reading.is_there(metadata_dir / feature.metadata_file):
            names.append(name)
    return names


# ---- How the answers spread -------------------------------------------------------------------


@feature(better=HIGH, why="every option is informative")
def option_entropy(data: QuestionAnswers) -> FloatArray:
    """Entropy of the options, -sum_k p_k log2 p_k, where p_k is the share of the answers that chose
    option k (Shannon 1948): the organisers' baseline.
    """
    return entropy(option_counts(data))


@feature(better=HIGH, why="neither trivial nor hopeless")
def correct_entropy(data: QuestionAnswers) -> FloatArray:
    """Entropy of whether answers are right or wrong, in bits (Shannon 1948): a feature of several
    winners of 2020.
    """
    rate = correct_rate(data)
    return entropy(np.stack([rate, 1 - rate], axis=1))


@feature(better=HIGH, why="an easy question is clear")
def correct_rate(data: QuestionAnswers) -> FloatArray:
    """Share of right answers, 0 to 1: the classical item difficulty (Lord & Novick 1968)."""
    return data.means(data.answers["IsCorrect"])


# ---- How the answers depend on ability --------------------------------------------------------


@feature(better=HIGH, why="a misconception makes good students fail unexpectedly")
def mean_absolute_residual(data: QuestionAnswers) -> FloatArray:
    """Mean distance between an answer (1 if right, 0 if wrong) and the student's share of right
    answers. The winning report of 2020 calls it difficulty.
    """
    is_correct = data.answers["IsCorrect"]
    rate = is_correct.groupby(data.answers["student_code"]).transform("mean")
    return data.means((rate - is_correct).abs())


@feature(better=HIGH, why="separates able from weak students")
def point_biserial(data: QuestionAnswers) -> FloatArray:
    """Discrimination: Pearson's correlation, over the answers to a question, of being right (1 or
    0) with the rest score. The rest score is the student's correct rate on all other questions
    (Lord & Novick 1968, chapter 15; corrected for overlap, Henrysson 1963). NaN where all answers
    or all rest scores are alike.
    """
    data = _with_rest_score(data)
    return _correlation(data, data.answers["IsCorrect"])


@feature(better=HIGH, why="separates able from weak students", is_shrunk=False)
def irt_slope(data: QuestionAnswers) -> FloatArray:
    """Discrimination a in the model P(right) = sigmoid(a · theta + b), where the students' ability
    theta is standard normal (Birnbaum 1968). The fit shrinks slopes that rest on few answers.
    """
    model = ItemResponse(n_dimensions=1, guessing=0.0, n_steps=N_SLOPE_STEPS).fit(
        data.answers["student_code"], data.answers["question_code"], data.answers["IsCorrect"]
    )
    slope = np.full(len(data.questions), np.nan)
    slope[model.question_ids_] = model.discrimination_[:, 0]
    return slope


@feature(better=HIGH, why="each wrong option has its misconception")
def working_distractors(data: QuestionAnswers) -> FloatArray:
    """Number of wrong options that draw 5 % or more of the answers (Haladyna & Downing 1993)."""
    return np.where(data.n_answers > 0, _is_working_distractor(data).sum(axis=1), np.nan)


@feature(better=LOW, why="able students avoid every wrong option")
def worst_distractor(data: QuestionAnswers) -> FloatArray:
    """Largest correlation with ability (`option_point_biserial`) of a wrong option that 5 % or more
    of the answers choose, NaN if there is no such option. The correlation is positive if able
    students prefer the wrong option, for instance because the answer key is wrong (Attali &
    Fraenkel 2000).
    """
    correlation = np.where(_is_working_distractor(data), option_point_biserial(data), -np.inf)
    worst = correlation.max(axis=1, initial=-np.inf)
    return np.where(np.isfinite(worst), worst, np.nan)


# ---- What metadata tell -----------------------------------------------------------------------


@feature(
    better=HIGH,
    why="clear and unambiguous",
    metadata_file=_ANSWER_METADATA,
    required_column="Confidence",
)
def mean_confidence(data: QuestionAnswers) -> FloatArray:
    """Mean stated confidence, 0 to 100. The University of Sydney's winning entry of 2020 ranked by
    this feature alone.
    """
    return data.means(data.answers["Confidence"])


@feature(better=LOW, why="students bother to state it", metadata_file=_ANSWER_METADATA)
def confidence_missing(data: QuestionAnswers) -> FloatArray:
    """Share of the answers whose confidence is missing, 0 to 1."""
    return data.means(data.answers["Confidence"].isna())


@feature(
    better=HIGH,
    why="separates students who take the same quiz",
    metadata_file=_ANSWER_METADATA,
    required_column="QuizId",
)
def entropy_within_quiz(data: QuestionAnswers) -> FloatArray:
    """Entropy of the options within quizzes, in bits: the mean over the quizzes, weighted by their
    numbers of answers (entry of the team TAL in 2020). Entropy that rests on few answers is too
    small on average.
    """
    return _entropy_within(data, "QuizId")


@feature(
    better=HIGH,
    why="separates students who learn together",
    metadata_file=_ANSWER_METADATA,
    required_column="GroupId",
)
def entropy_within_group(data: QuestionAnswers) -> FloatArray:
    """Entropy of the options within groups of students, such as classes, in bits: the mean over the
    groups, weighted by their numbers of answers (entry of the team TAL in 2020).
    """
    return _entropy_within(data, "GroupId")


@feature(better=LOW, why="tests one skill", metadata_file=_QUESTION_METADATA, is_shrunk=False)
def number_of_subjects(data: QuestionAnswers) -> FloatArray:
    """Number of subjects listed for the question. According to the challenge's description, a
    question on one skill has four, one for each level of the tree.
    """
    return data.questions["n_subjects"].to_numpy()


# ---- Few answers ------------------------------------------------------------------------------


def shrink(feature: Feature, data: QuestionAnswers, seed: int = 0) -> FloatArray:
    """Compute a feature, float64 (questions,), and shrink values of few answers towards the mean.

    A value that rests on n answers becomes (Morris 1983, section 1)

        mean + weight · (value - mean)    with    weight = variance / (variance + noise / n).

    - mean and variance are the mean and the variance of the questions' true values.
    - noise / n is the variance that chance gives to a value that rests on n answers.

    NaN stays NaN. If the answers are too few to estimate the noise, all values stay as they are.
    """
    # Count the students now: the next line may leave out answers, and with them students.
    n_students = data.answers["student_code"].max() + 1
    data = feature.relevant_answers(data)
    value = feature.values(data)
    # Some features must not be shrunk here: their values do not depend on chance, or `values` has
    # shrunk them already.
    if not feature.is_shrunk:
        return value
    noise = _estimate_noise(feature, data, n_students, seed)
    known = ~np.isnan(value)
    if noise == 0 or known.sum() < 2:
        return value

    raw = value[known]
    # Chance gives a value the variance noise / n. The precision is 1 divided by this variance.
    precision = data.n_answers[known] / noise
    # The variance of the questions' true values.
    variance = _variance_of_true_values(raw, precision)
    # Values vary for two reasons: the true values vary (`variance`), and chance (1 / precision).
    total_variance = variance + 1 / precision
    mean = np.average(raw, weights=1 / total_variance)
    weight = variance / total_variance
    value[known] = mean + weight * (raw - mean)
    return value


def _variance_of_true_values(value: FloatArray, precision: FloatArray) -> float:
    """Estimate how much the true values of questions vary, without the variance due to chance.

    The true value of a question is the value that infinitely many answers would give. Chance gives
    each value the variance 1 / precision. The method of moments (DerSimonian & Laird 1986,
    equations 8 to 10) starts from Cochran's Q, the sum of precision · (value − mean)². The
    expectation of Q is

        number of values − 1 + scale · variance,

    where scale = Σ precision − Σ precision² / Σ precision. The estimate is the variance for which
    this expectation equals Q, or 0 if it is negative.
    """
    mean = np.average(value, weights=precision)
    cochran_q = np.sum(precision * (value - mean) ** 2)
    scale = precision.sum() - np.sum(precision**2) / precision.sum()
    return max(0.0, float((cochran_q - (len(value) - 1)) / scale))


def _estimate_noise(feature: Feature, data: QuestionAnswers, n_students: int, seed: int) -> float:
    """Estimate the noise of a feature: chance gives a value of n answers the variance noise / n.

    The students are divided at random into two halves. A question's values in the two halves, from
    n_1 and n_2 answers, differ only by chance. So the expectation of their squared difference is
    noise · (1 / n_1 + 1 / n_2).

    Returns 0 if fewer than two questions have enough answers in both halves.
    """
    student = data.answers["student_code"].to_numpy()
    # Every second student of a random order is in the first half.
    is_first_half = np.random.default_rng(seed).permutation(n_students) % 2 == 0
    in_first = is_first_half[student]
    first = data.take(in_first)
    second = data.take(~in_first)
    value_1 = feature.values(first)
    value_2 = feature.values(second)
    n_1 = first.n_answers
    n_2 = second.n_answers
    has_values = ~np.isnan(value_1) & ~np.isnan(value_2)
    # With fewer than ten answers in a half, many features are far from normally distributed.
    has_answers = (n_1 >= 10) & (n_2 >= 10)
    compared = has_values & has_answers
    if compared.sum() < 2:
        return 0.0
    n_1 = n_1[compared]
    n_2 = n_2[compared]
    difference = (value_1 - value_2)[compared]
    # The expectation of a squared difference is noise · (1 / n_1 + 1 / n_2) = noise / weight. So
    # the mean of weight · (squared difference) over the questions estimates the noise.
    weight = n_1 * n_2 / (n_1 + n_2)
    return float(np.mean(weight * difference**2))


# ---- Building blocks --------------------------------------------------------------------------


def entropy(counts: Array) -> FloatArray:
    """Entropy in bits of every row of counts, shape (rows, categories); NaN for a row of zeros."""
    total = counts.sum(axis=1)
    share = _ratio(counts, total[:, None])
    # A category with the share p = 0 adds 0 to the entropy, since p log p goes to 0 as p goes to 0.
    log_share = np.log2(share, out=np.zeros_like(share), where=share > 0)
    # Adding 0.0 turns -0.0 into 0.0.
    bits = -(share * log_share).sum(axis=1) + 0.0
    result: FloatArray = np.where(total > 0, bits, np.nan)
    return result


def option_counts(data: QuestionAnswers) -> IntArray:
    """Count the choices of every option, int64, shape (questions, options)."""
    shape = (len(data.questions), data.n_options)
    return _count(data.answers["question_code"], data.answers["AnswerValue"] - 1, shape)


def option_point_biserial(data: QuestionAnswers) -> FloatArray:
    """Correlate choosing each option with the student's correct rate on all other questions.

    Returns an array of shape (questions, options). It is NaN where all students choose the option,
    none chooses it, or all have the same correct rate.
    """
    data = _with_rest_score(data)
    options = range(1, data.n_options + 1)
    chosen = data.answers["AnswerValue"]
    return np.stack([_correlation(data, chosen == option) for option in options], axis=1)


def option_counts_by_ability(data: QuestionAnswers, question: int, n_groups: int = 4) -> IntArray:
    """Count how often students of each ability choose each option of a question.

    The students who have answered the question are divided by ability into groups of equal size.
    The result has a row for each group, the weakest students first, and a column for each option.
    """
    answers = _with_rest_score(data).answers
    answers = answers[answers["QuestionId"] == question].sort_values(["rest_score", "UserId"])
    # The answers are in increasing order of the student's ability (rest score). If there are four
    # groups, the first quarter of the answers is in group 0, the next quarter in group 1, and so
    # on.
    group = np.arange(len(answers)) * n_groups // max(len(answers), 1)
    return _count(group, answers["AnswerValue"] - 1, shape=(n_groups, data.n_options))


def _is_working_distractor(data: QuestionAnswers) -> BoolArray:
    """Return which options are working distractors, shape (questions, options).

    These are the wrong options that draw at least `WORKING_SHARE` of the answers.
    """
    counts = option_counts(data)
    n = data.n_answers[:, None]
    right = data.questions["CorrectAnswer"].to_numpy()[:, None]
    is_wrong = np.arange(1, data.n_options + 1) != right
    is_chosen_enough = (counts >= WORKING_SHARE * n) & (counts > 0)
    return np.asarray(is_wrong & is_chosen_enough)


def _with_rest_score(data: QuestionAnswers) -> QuestionAnswers:
    """Add the rest score of each answer: the student's correct rate on all other questions.

    Answers of students who gave no other answer are left out.
    """
    student = data.answers["student_code"]
    is_correct = data.answers["IsCorrect"]
    # For each answer, the number of the student's other answers, and how many of these are right.
    n_others = np.bincount(student)[student] - 1
    n_others_right = np.bincount(student, is_correct)[student] - is_correct
    scored = data.answers.assign(rest_score=_ratio(n_others_right.to_numpy(), n_others))
    return data._replace(answers=scored[n_others > 0])


def _correlation(data: QuestionAnswers, x: "pd.Series") -> FloatArray:
    """Compute Pearson's correlation of `x` and the rest score in each question.

    `x` has a value for each answer. The rest score of an answer is the student's correct rate on
    all other questions. The correlation is NaN where `x` or the rest score is constant in the
    question. `data.means` and `data.sums` compute a value for each question, from the values of its
    answers.
    """
    question = data.answers["question_code"]
    y = data.answers["rest_score"].to_numpy()
    # Centre x and y: subtract from each value the mean over the answers to the same question. The
    # sums of products of centred values lose fewer digits by rounding.
    x_centred = x.to_numpy() - data.means(x)[question]
    y_centred = y - data.means(y)[question]
    # The correlation is Σ x y / sqrt(Σ x² · Σ y²), with centred x and y. The sums are over the
    # question's answers.
    product_of_squares = data.sums(x_centred**2) * data.sums(y_centred**2)
    # If x or y is constant, the product is 0, or a little more by rounding.
    varies = product_of_squares > 1e-18
    value = data.sums(x_centred * y_centred) / np.sqrt(np.where(varies, product_of_squares, 1))
    return np.where(varies, value, np.nan)


def _entropy_within(data: QuestionAnswers, column: str) -> FloatArray:
    """Average the entropy of the options over groups of answers, for each question.

    `column` names the column that holds the group of each answer. A group is weighted by its number
    of answers.
    """
    # A row for each question and group, with the number of answers that chose each option.
    cells = data.answers.groupby(["question_code", column, "AnswerValue"]).size().unstack()
    counts = cells.fillna(0).to_numpy()
    question = cells.index.get_level_values("question_code")
    weighted = counts.sum(axis=1) * entropy(counts)
    total = np.bincount(question, weighted, minlength=len(data.questions))
    return _ratio(total, data.n_answers)


def _count(row: npt.ArrayLike, column: npt.ArrayLike, shape: tuple[int, int]) -> IntArray:
    """Count how often each pair of a row and a column occurs, in a matrix of this shape."""
    n_rows, n_columns = shape
    # Number the cells of the matrix row by row.
    cell = np.asarray(row, np.int64) * n_columns + np.asarray(column)
    return np.bincount(cell, minlength=n_rows * n_columns).reshape(shape)


def _ratio(total: Array, n: Array) -> FloatArray:
    """Divide totals by counts n; NaN where n is 0."""
    return np.where(n > 0, total / np.maximum(n, 1), np.nan)
