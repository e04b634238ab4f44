"""The groups of features: functions that return columns with a value for each row asked.

The rows asked are the pairs of student and question whose features are to be computed. A group may
use everything that is known about the rows asked except their outcomes. Their order and the
confidence that students stated are allowed. To add a group, write a function with the decorator
`@group`, which adds it to `GROUPS` and says which data it needs. Groups are used in the order of
this file.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from common.answer_features.asked import Asked, Columns
from common.answer_features.known import shrunk_mean
from common.answer_features.nearest_answers import PRIOR_WEIGHT_BY_POWER
from common.answer_features.pairs import MINUTES_PER_NUMBER, SUBJECT_LEVELS, Pairs
from common.arrays import Array, BoolArray, FloatArray, IntArray
from common.errors import InputError
from common.item_response import ItemResponse

import numpy as np
import pandas as pd

# The features of the group `order` describe this many known answers before a row, and as many after
# it.
_N_BEFORE_AND_AFTER = 2
# The feature `age` is a student's age on this date: the start of the year in which most answers
# were given.
_AGE_DATE = np.datetime64("2019-01-01")
_DAYS_PER_YEAR = 365.25
# A probability below this number is raised to it before its logarithm is taken. Before a logit is
# taken, a probability above 1 minus this number is lowered likewise.
_MIN_PROBABILITY = np.float32(1e-6)
# Number of steps in the fit of the item response model that the group `distractors` uses.
_STEPS_OF_DISTRACTORS = 8


# ---- The register of groups ------------------------------------------------------------------


@dataclass(frozen=True)
class Need:
    """Data that some groups of features need, and that may be missing, such as metadata."""

    # The name of the data in messages.
    title: str
    # A function of the pairs and the training answers that returns whether the data are there.
    is_met: Callable[[Pairs, pd.DataFrame], bool]


OPTIONS = Need(
    "AnswerValue and CorrectAnswer of the training answers",
    lambda pairs, answers: "AnswerValue" in answers,
)
QUESTION_METADATA = Need(
    "the question metadata", lambda pairs, answers: SUBJECT_LEVELS[0] in pairs.numbers
)
STUDENT_METADATA = Need("the student metadata", lambda pairs, answers: pairs.students is not None)
ANSWER_METADATA = Need(
    "the answer metadata, and AnswerId in the training answers and the template",
    lambda pairs, answers: pairs.circumstances is not None,
)


GroupFunction = Callable[[Asked], Columns]


@dataclass(frozen=True)
class Group:
    """A group of features."""

    # The function that computes the columns of the group.
    compute: GroupFunction
    # The data that the group needs besides UserId, QuestionId and IsCorrect. None if these suffice.
    need: Need | None
    # Whether the group needs `Asked.nearest`, a summary of the answers to similar questions.
    uses_nearest: bool


GROUPS: dict[str, Group] = {}


def group(
    *, need: Need | None = None, uses_nearest: bool = False
) -> Callable[[GroupFunction], GroupFunction]:
    """Decorate a function to add it to `GROUPS` under its name; see `Group` for the arguments."""

    def add(compute: GroupFunction) -> GroupFunction:
        GROUPS[compute.__name__] = Group(compute, need, uses_nearest)
        return compute

    return add


def available_groups(
    pairs: Pairs,
    answers: pd.DataFrame,
    wanted: Sequence[str] | None = None,
    leave_out: Sequence[str] = (),
) -> tuple[str, ...]:
    """Choose the groups of features for which all needed data are there.

    A group, such as "options", is a set of features that are computed together. It may need data
    that not all users have, for example metadata.

    Parameters
    ----------
    pairs
        From `read_pairs`.
    answers
        The training answers.
    wanted
        Names of groups in `GROUPS`. All data that these groups need must be there. By default,
        every group is chosen for which the data are there, except for `leave_out`.
    leave_out
        Names of groups that are not chosen by default.

    Returns
    -------
    tuple of str
        Names of groups.

    Raises
    ------
    InputError
        If a group that is `wanted` needs data that are not there.
    """
    if wanted:
        for name in wanted:
            need = _find_unmet_need(name, pairs, answers)
            if need is not None:
                raise InputError(f"the features '{name}' need {need.title}, which are not there")
        return tuple(wanted)
    candidates = [name for name in GROUPS if name not in leave_out]
    return tuple(name for name in candidates if _find_unmet_need(name, pairs, answers) is None)


def _find_unmet_need(name: str, pairs: Pairs, answers: pd.DataFrame) -> Need | None:
    """Return the data that a group needs and that are missing; None if nothing is missing."""
    need = GROUPS[name].need
    if need is None or need.is_met(pairs, answers):
        return None
    return need


# ---- From the training file ------------------------------------------------------------------


@group()
def model(asked: Asked) -> Columns:
    """Logit of P(right) by an item response model, and the parts that make up this logit.

    The parts, such as the student's ability and the question's easiness, are the fields of
    `LogitParts`. `Known.fit_model` fits the model.
    """
    fitted = asked.known.fit_model(asked.pairs)
    student = asked.student
    question = asked.question
    context = asked.context
    p_right = fitted.predict_proba(student, question, context=context)[:, 1]
    parts = fitted.explain(student, question, context=context)
    # `vars` returns a dict from the names of the parts to the parts.
    columns = {f"model_{name}": part for name, part in vars(parts).items()}
    return {"model": _logit(p_right)} | columns


@group(need=OPTIONS)
def options(asked: Asked) -> Columns:
    """Log probability of each option by an item response model of the options chosen.

    Column model_0 belongs to the right option, model_1 to the most popular wrong one, and so on.
    The fit (`Known.fit_options`) takes far longer than the fit for the group `model`, which
    distinguishes only right and wrong answers.
    """
    fitted = asked.known.fit_options(asked.pairs)
    probability = fitted.predict_proba(asked.student, asked.question, context=asked.context)
    log_probability = np.log(np.maximum(probability, _MIN_PROBABILITY))
    return _columns_by_rank("model", log_probability, asked)


@group()
def rates(asked: Asked) -> Columns:
    """The question's rate, the student's rate, and from how many known answers each was computed.

    The question's rate is the share of right answers. The student's rate says how much more often
    the student is right than other students on the same questions (see `Known`).
    """
    known = asked.known
    student = asked.student
    question = asked.question
    question_count = np.bincount(known.question, minlength=asked.pairs.n_questions)
    student_count = np.bincount(known.student, minlength=asked.pairs.n_students)
    return {
        "question_rate": known.question_rate[question],
        "question_count": question_count[question],
        "student_rate": known.student_rate[student],
        "student_count": student_count[student],
    }


@group(need=OPTIONS)
def distractors(asked: Asked) -> Columns:
    """How often the question's options are chosen, and which wrong option the student prefers.

    The columns are

    - share_0, share_1 and so on: the share of the right option, of the most popular wrong option,
      and so on, among the known answers to the question;
    - distractor: the logit of the probability that the student chooses the question's most popular
      wrong option, given that the student's answer is wrong.

    The probability comes from an item response model that is fitted to the known wrong answers.
    Answers to a question with only one wrong option are not used, since the student could not
    choose between wrong options. If there is no answer to fit the model to, the column distractor
    is 0.
    """
    known = asked.known
    columns = _columns_by_rank("share", known.option_share[asked.question], asked)
    # The rank of the option chosen in each known answer: 0 for the right option, 1 for the most
    # popular wrong one, and so on. Options count from 1.
    rank = known.outcome_of_option[known.question, known.option - 1]
    is_wrong = rank > 0
    has_several_wrong_options = known.n_options_of_question[known.question] > 2
    wrong = np.flatnonzero(is_wrong & has_several_wrong_options)
    columns["distractor"] = np.zeros(len(asked))
    if len(wrong):
        chose_most_popular = rank[wrong] == 1
        # `ItemResponse` usually predicts whether an answer is right. Here it predicts whether a
        # student whose answer is wrong chose the most popular wrong option.
        fitted = ItemResponse(n_dimensions=1, guessing=0.0, n_steps=_STEPS_OF_DISTRACTORS)
        fitted.fit(known.student[wrong], known.question[wrong], chose_most_popular)
        probability = fitted.predict_proba(asked.student, asked.question)[:, 1]
        columns["distractor"] = _logit(probability)
    return columns


# ---- From the question metadata ----------------------------------------------------------------


@group(need=QUESTION_METADATA)
def subjects(asked: Asked) -> Columns:
    """How much better than expected the student is on each of the question's three subjects.

    A question has a subject at each of three levels of the subject tree (`SUBJECT_LEVELS`). For
    each level, `rates_of` averages `Known.residual`, which is right (1) or wrong (0) minus the
    expected rate, over the student's known answers to questions of the same subject.
    """
    return rates_of(asked, [("student", level) for level in SUBJECT_LEVELS])


# ---- From the answers to similar questions -----------------------------------------------------


@group(uses_nearest=True)
def context(asked: Asked) -> Columns:
    """How well the student did on the most similar questions, and how similar these questions are.

    The columns are, for each power in `PRIOR_WEIGHT_BY_POWER`,

    - near_2 and so on: the mean residual of the student's answers to the most similar questions. A
      residual is 1 for a right answer or 0 for a wrong one, minus the expected rate
      (`Known.residual`). The number in the column's name is the power. Each answer has the weight
      similarity**power;
    - nearness_2 and so on: the sum of these weights.
    """
    columns: Columns = {}
    for power in PRIOR_WEIGHT_BY_POWER:
        columns[f"near_{power}"] = asked.nearest.residual[power]
        columns[f"nearness_{power}"] = asked.nearest.weight[power]
    return columns


@group(need=OPTIONS, uses_nearest=True)
def habits(asked: Asked) -> Columns:
    """How much more often than usual the student chooses each position.

    Students who do not know an answer often click at one position, the first option for instance.
    In the question asked, each option has a rank: the right one has rank 0, the most popular wrong
    one rank 1, and so on. The columns are

    - place_0, place_1 and so on: the position of the option of rank 0, of rank 1, and so on;
    - habit_0, habit_1 and so on: how much more often than usual the student chooses the position
      place_0, place_1 and so on, in all known answers of the student;
    - habit_2_0, habit_2_1 and so on: the same, in the student's answers to similar questions, each
      weighted by the power 2 of its similarity. The columns habit_6_0 and habit_15_0 belong to the
      powers 6 and 15;
    - near_option_0 to near_option_3: a column for each of the four answers to the most similar
      questions. If the student chose the third option there, for instance, the column holds the
      rank of the third option of the question asked.
    """
    columns = _numbered("place", _option_by_rank(asked))
    columns |= _columns_by_rank("habit", _habits_in(("student",), asked), asked)
    for power in PRIOR_WEIGHT_BY_POWER:
        columns |= _numbered(f"habit_{power}", asked.nearest.habit[power])
    return columns | _numbered("near_option", asked.nearest.outcome)


# ---- From the student metadata -----------------------------------------------------------------


@group(need=STUDENT_METADATA)
def students(asked: Asked) -> Columns:
    """Gender, age in years at the start of 2019, and entitlement to pupil premium (1 or 0)."""
    assert asked.pairs.students is not None
    student_rows = asked.pairs.students.iloc[asked.student]
    columns = {
        "gender": student_rows["Gender"],
        "age": (_AGE_DATE - student_rows["DateOfBirth"]).dt.days / _DAYS_PER_YEAR,
        "premium": student_rows["PremiumPupil"],
    }
    # -1 stands for unknown. A student's age below 0 is a mistake in the data: it is unknown, too.
    return {name: column.where(column >= 0).to_numpy() for name, column in columns.items()}


# ---- From the answer metadata ------------------------------------------------------------------


@group(need=ANSWER_METADATA)
def quiz(asked: Asked) -> Columns:
    """Mean residuals in the quiz, its size, and the positions that the student prefers in the quiz.

    Residuals are averaged over three sets of answers in the quiz: the student's answers, the
    answers to the question, and all answers. The size is the number of the student's answers in the
    quiz, known or to be predicted. The preference for a position is how much more often than usual
    the student chose the option at this position.
    """
    columns = rates_of(asked, [("student", "quiz"), ("question", "quiz"), ("quiz",)])
    number = asked.pairs.combined_number("student", "quiz")
    size = np.bincount(number[number >= 0]).astype(np.float32)
    columns["quiz_size"] = _look_up(size, number[asked.rows])
    if asked.known.has_options:
        columns |= _columns_by_rank("quiz_habit", _habits_in(("student", "quiz"), asked), asked)
    return columns


@group(need=ANSWER_METADATA)
def order(asked: Asked) -> Columns:
    """The student's two known answers before the answer to predict, and two after it, in its quiz.

    These four answers are the neighbours. The columns are, for each neighbour,

    - before_2, before_1, after_1 and after_2: the residual of the neighbour, which is right (1) or
      wrong (0) minus the expected rate (`Known.residual`);
    - before_2_option and so on: in the neighbour, the student chose an option, the third one for
      instance. The column holds the rank of the third option of the question asked: 0 if this is
      the right option, 1 if it is the most popular wrong one, and so on.

    A column is NaN if the answer to predict has no such neighbour.
    """
    known = asked.known
    question = asked.question
    columns: Columns = {}
    for name, has_neighbour, neighbour in _neighbours_in_quiz(asked):
        columns[name] = _nan_elsewhere(has_neighbour, known.residual[neighbour])
        if known.has_options:
            position_chosen = known.option[neighbour] - 1
            rank = known.outcome_of_option[question[has_neighbour], position_chosen]
            columns[f"{name}_option"] = _nan_elsewhere(has_neighbour, rank)
    return columns


def _neighbours_in_quiz(asked: Asked) -> Iterator[tuple[str, BoolArray, IntArray]]:
    """Find the student's known answers shortly before and after each row asked, in its quiz.

    A known answer that was given in the same minute as the row's answer counts as given after it.

    Yields
    ------
    name : str
        before_2 for the second answer before the row, then before_1, after_1 and after_2.
    has_neighbour : array of bool, shape (rows,)
        Whether a row has this neighbour.
    neighbour : array of int32
        The position in `asked.known` of the neighbour, for each row that has it.
    """
    asked_moment, known_moment, by_time = _sort_known_by_moment(asked)
    # A moment is a number that sorts answers by student, then by quiz, then by minute. For each
    # row, count the known answers with an earlier moment. In `known_moment`, which is sorted, this
    # count is the position of the first answer that is not earlier.
    n_earlier = _count_less(known_moment, asked_moment)
    # Add two elements at each end of the arrays, so that two elements lie before each row and two
    # after it. The added elements have the moment -1, which belongs to no quiz. The loop leaves out
    # elements of another student or quiz, and so the added ones too.
    known_moment = np.pad(known_moment, _N_BEFORE_AND_AFTER, constant_values=-1)
    by_time = np.pad(by_time, _N_BEFORE_AND_AFTER)
    # The position of the first answer that is not earlier, in the longer arrays.
    first_later = n_earlier + _N_BEFORE_AND_AFTER

    student_and_quiz = _combined_number_of(asked_moment)
    # The two answers before the row are at the positions first_later - 2 and first_later - 1. The
    # two answers after it are at the positions first_later and first_later + 1.
    for step in range(-_N_BEFORE_AND_AFTER, _N_BEFORE_AND_AFTER):
        name = f"before_{-step}" if step < 0 else f"after_{step + 1}"
        position = first_later + step
        is_same_quiz = _combined_number_of(known_moment[position]) == student_and_quiz
        # A row whose quiz or time is unknown has the moment -1, like the added elements: make sure
        # that it gets no neighbour.
        has_neighbour = (asked_moment >= 0) & is_same_quiz
        yield name, has_neighbour, by_time[position[has_neighbour]]


def _sort_known_by_moment(asked: Asked) -> tuple[IntArray, IntArray, IntArray]:
    """Sort the known answers by student and quiz, then by minute.

    Known answers whose quiz or time is unknown are left out.

    Returns
    -------
    asked_moment : array of int64, shape (rows,)
        The moment of each row asked: an integer that sorts by student and quiz, then by minute (see
        `Pairs.moments`). -1 where the quiz or the time is unknown.
    known_moment : array of int64, shape (known answers with a moment,)
        The moments of the known answers, in increasing order.
    by_time : array of int32, shape (known answers with a moment,)
        Where each element of `known_moment` comes from: the index of the answer in `asked.known`.
    """
    # `moment` has an element for each pair. `asked.rows` and `asked.known.rows` are positions of
    # pairs.
    moment = asked.pairs.moments("student", "quiz")
    asked_moment = moment[asked.rows]
    known_moment = moment[asked.known.rows]
    # Free this large array.
    del moment
    # Answers whose moment is unknown (-1) come first in the sorted order: leave them out.
    n_unknown = np.sum(known_moment < 0)
    by_time = np.argsort(known_moment, kind="stable").astype(np.int32)[n_unknown:]
    return asked_moment, known_moment[by_time], by_time


def _nan_elsewhere(is_given: BoolArray, values: Array) -> FloatArray:
    """Return a float32 column that holds the values where `is_given`, and NaN elsewhere."""
    column: FloatArray = np.full(len(is_given), np.nan, np.float32)
    column[is_given] = values
    return column


@group(need=ANSWER_METADATA)
def classes(asked: Asked) -> Columns:
    """Mean residuals of the class (`group`) and of the scheme of work, which is a plan of lessons.

    A residual is right (1) or wrong (0) minus the expected rate. The residuals of a class are
    averaged over all its answers, its answers to the question, and its answers in the quiz. The
    residuals of a scheme of work are averaged over all its answers, and its answers to the
    question.
    """
    return rates_of(
        asked,
        [
            ("group",),
            ("question", "group"),
            ("group", "quiz"),
            ("scheme",),
            ("question", "scheme"),
        ],
    )


@group(need=ANSWER_METADATA)
def time(asked: Asked) -> Columns:
    """When the answer was given, and how well the student did on that day.

    The columns are

    - hour and weekday of the answer;
    - student_day_rate and student_day_count: the student's mean residual in the known answers of
      that day, and the number of these answers (`rates_of`). A residual is right (1) or wrong (0)
      minus the expected rate;
    - place_in_quiz: how many of the student's answers in the quiz, known or not, were earlier;
    - gap: the minutes since the student's previous answer, known or not;
    - age_then: the student's age in years, if there are student metadata.
    """
    assert asked.pairs.circumstances is not None
    date = asked.pairs.circumstances["DateAnswered"].iloc[asked.rows]
    hour = (date.dt.hour * 60 + date.dt.minute) / 60
    columns: Columns = {"hour": hour.to_numpy(), "weekday": date.dt.day_of_week.to_numpy()}
    columns |= rates_of(asked, [("student", "day")])
    columns["place_in_quiz"] = _count_earlier_in_quiz(asked)
    columns["gap"] = _minutes_since_last_pair(asked)
    if asked.pairs.students is not None:
        birth = asked.pairs.students["DateOfBirth"].to_numpy()[asked.student]
        columns["age_then"] = (date.to_numpy() - birth) / np.timedelta64(1, "D") / _DAYS_PER_YEAR
    return columns


def _count_earlier_in_quiz(asked: Asked) -> FloatArray:
    """Count the student's earlier answers in the quiz, known or not; NaN if the time is unknown."""
    moment, ordered = _moments_asked_and_sorted(asked, "student", "quiz")
    # The moment of a pair is n · MINUTES_PER_NUMBER + minute, where each student in each quiz has a
    # number n. So n · MINUTES_PER_NUMBER lies before all moments of this student in this quiz, and
    # after those of smaller n.
    start_of_quiz = _combined_number_of(moment) * MINUTES_PER_NUMBER
    n_earlier = _count_less(ordered, moment) - _count_less(ordered, start_of_quiz)
    return np.where(moment < 0, np.nan, n_earlier)


def _minutes_since_last_pair(asked: Asked) -> FloatArray:
    """Return the minutes since the student's previous answer, known or not; NaN without one."""
    moment, ordered = _moments_asked_and_sorted(asked, "student")
    # For each row, `last` is the latest moment before the row's moment. It may belong to another
    # student. It is the element before position `n_earlier` of `ordered`. If no moment is earlier,
    # `last` is the -1 that is put in front of `ordered`.
    n_earlier = _count_less(ordered, moment)
    last = np.append(-1, ordered)[n_earlier]
    is_same_student = (moment >= 0) & (_combined_number_of(last) == _combined_number_of(moment))
    # The difference of two moments of the same student is in minutes.
    return np.where(is_same_student, moment - last, np.nan)


@group(need=ANSWER_METADATA)
def confidence(asked: Asked) -> Columns:
    """The confidence that the student stated for this answer, compared with the student's mean.

    Confidence is 0 to 100. The columns are

    - confidence: the confidence stated for this answer; NaN if none was stated, which is the case
      for most answers;
    - usual_confidence: the mean of the confidences that the student stated, shrunk towards the mean
      of all stated confidences (`shrunk_mean`); NaN if the student stated none;
    - confidence_above_usual: the difference of the two;
    - confidence_count: the number of confidences that the student stated.
    """
    assert asked.pairs.circumstances is not None
    # `stated` holds the confidence of each of `asked.pairs`, NaN where none was stated. The
    # features are computed only for the pairs at the positions `asked.rows`.
    stated = asked.pairs.circumstances["Confidence"].to_numpy()
    student = asked.pairs.numbers["student"]
    is_stated = ~np.isnan(stated)
    overall = float(stated[is_stated].mean()) if is_stated.any() else 0.0
    # For each student, the mean of the stated confidences, and their number, shape (students,).
    mean, count = shrunk_mean(
        student[is_stated], stated[is_stated], asked.pairs.n_students, overall
    )
    usual_of_student = np.where(count > 0, mean, np.nan)
    usual = usual_of_student[asked.student]
    return {
        "confidence": stated[asked.rows],
        "usual_confidence": usual,
        "confidence_above_usual": stated[asked.rows] - usual,
        "confidence_count": count[asked.student],
    }


# ---- Mean residuals ----------------------------------------------------------------------------


def rates_of(asked: Asked, keys: Sequence[tuple[str, ...]]) -> Columns:
    """Return two columns for each key: the mean residual of some known answers, and their number.

    A key is one or two names of `Pairs.numbers`. It selects, for each row, the known answers that
    agree with the row in the named values. The key ("student", "quiz") selects the known answers of
    the row's student in the row's quiz. The columns are then

    - student_quiz_rate: the mean residual of these answers, shrunk towards 0. A residual is 1 for a
      right answer or 0 for a wrong one, minus the rate that is expected of the student on the
      question (`Known.residual`);
    - student_quiz_count: the number of these answers.
    """
    columns: Columns = {}
    for key in keys:
        name = "_".join(key)
        mean, count = _mean_by_key(key, asked, asked.known.residual)
        columns[f"{name}_rate"] = mean
        columns[f"{name}_count"] = count
    return columns


def _habits_in(key: tuple[str, ...], asked: Asked) -> FloatArray:
    """Return for each row asked how much more often than usual each position was chosen.

    Only the known answers that agree with the row in the key count. For the key
    ("student", "quiz"), these are the answers of the row's student in the row's quiz. In each of
    these answers, the usual frequency of a position is its share among all known answers to the
    same question. Returns an array of shape (rows, positions).
    """
    known = asked.known
    habit_by_position = []
    for position in range(known.n_options):
        is_chosen = known.option == position + 1
        # The excess of a known answer is 1 if the student chose the position, else 0, minus the
        # share of the students who chose it in this question.
        excess = is_chosen - known.option_share[known.question, position]
        habit, _ = _mean_by_key(key, asked, excess)
        habit_by_position.append(habit)
    return np.column_stack(habit_by_position)


def _mean_by_key(
    key: tuple[str, ...], asked: Asked, value: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """For each row asked, return the mean of `value` over the known answers with the row's key.

    For the key ("student", "quiz"), a row gets the mean over the known answers of the row's student
    in the row's quiz.

    Parameters
    ----------
    key
        One or two names of `Pairs.numbers`.
    asked
        The rows asked, and the known answers.
    value
        The value of each known answer, shape (known answers,).

    Returns
    -------
    mean : array of float32, shape (rows,)
        The means, shrunk towards 0 (`shrunk_mean`). NaN for a row whose key is unknown, for
        instance without a quiz.
    count : array of float32, shape (rows,)
        The number of known answers in each mean. NaN for a row whose key is unknown.
    """
    # Two pairs have the same number if they agree in all names of the key.
    number = asked.pairs.combined_number(*key)
    n_numbers = int(number.max(initial=-1)) + 1
    known_number = number[asked.known.rows]
    asked_number = number[asked.rows]
    # Free the memory of this array, which is large: it has an element for each pair. If `pairs`
    # keeps the array too, this frees nothing.
    del number
    mean, count = shrunk_mean(known_number, value, n_numbers)
    return _look_up(mean, asked_number), _look_up(count, asked_number)


def _look_up(values: FloatArray, number: IntArray) -> FloatArray:
    """Return the element of `values` at each index in `number`; NaN where the index is -1."""
    # The index -1 reads the last element of an array, so make NaN the last element.
    return np.append(values, np.float32(np.nan))[number]


# ---- Options -----------------------------------------------------------------------------------


def _option_by_rank(asked: Asked) -> IntArray:
    """Return the position of the option of each rank, for each row asked: shape (rows, options).

    Rank 0 is the right option, rank 1 the most popular wrong one, and so on. Positions count from
    0.
    """
    # A row of `outcome_of_option` holds the rank of the option at each position. The row is a
    # permutation of the ranks, so `argsort` inverts it: the result holds the position of the option
    # of each rank.
    position_of_rank = np.argsort(asked.known.outcome_of_option, axis=1)
    return position_of_rank[asked.question]


def _columns_by_rank(name: str, values: FloatArray, asked: Asked) -> Columns:
    """Return columns with a value for each option: first the right option, then the wrong ones.

    `values` has shape (rows, options), in the order in which the question shows its options. The
    column name_0 belongs to the right option, name_1 to the most popular wrong option, and so on.
    """
    return _numbered(name, np.take_along_axis(values, _option_by_rank(asked), 1))


def _numbered(name: str, columns: Array) -> Columns:
    """Return the columns of an array in a dict, with the keys name_0, name_1 and so on."""
    return {f"{name}_{number}": column for number, column in enumerate(columns.T)}


# ---- Time and numbers --------------------------------------------------------------------------


def _moments_asked_and_sorted(asked: Asked, *names: str) -> tuple[IntArray, IntArray]:
    """Return the moment of each row asked, and the sorted moments of all pairs.

    A moment is an integer: pairs in the order of their moments are sorted by the named
    `Pairs.numbers`, such as student and quiz, then by minute. It is -1 if one of these facts is
    unknown (see `Pairs.moments`). The sorted moments contain no -1.
    """
    moment = asked.pairs.moments(*names)
    asked_moment = moment[asked.rows]
    moment.sort()
    first_known = np.searchsorted(moment, 0)
    return asked_moment, moment[first_known:]


def _combined_number_of(moment: IntArray) -> IntArray:
    """Return the combined number from which each moment was made; -1 for the unknown moment -1.

    A moment is n · `MINUTES_PER_NUMBER` + minute. Its combined number n stands, for instance, for a
    student and a quiz (`Pairs.combined_number`).
    """
    return moment // MINUTES_PER_NUMBER


def _count_less(ordered: IntArray, wanted: IntArray) -> IntArray:
    """Return, for each number in `wanted`, how many numbers in `ordered` (sorted) are less."""
    # Sort `wanted` first: `searchsorted` finds millions of numbers much faster in increasing order.
    order = np.argsort(wanted)
    count = np.empty(len(wanted), np.int64)
    count[order] = np.searchsorted(ordered, wanted[order])
    return count


def _logit(p: FloatArray) -> FloatArray:
    """Return log(p / (1 - p)), with p clipped away from 0 and 1."""
    p = np.clip(p, _MIN_PROBABILITY, 1 - _MIN_PROBABILITY)
    return np.log(p / (1 - p))
