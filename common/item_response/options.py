r"""The estimator of the options chosen: a choice is a series of stages, and students have habits.

Is the answer right? If not, is it the most popular distractor? If not, the next one? Each of these
stages is an item with slopes of its own on the same abilities, so that the fit for right and wrong
answers works here too (Linderman, Johnson and Adams 2015, "Dependent multinomial models made
easy"). Only the first stage can be guessed: choosing a distractor means not knowing the answer.

Students also have habits of position, such as to click the first option: see `habits`.
"""

from typing import Self

from common import schema
from common.answers import find_ids, number_ids
from common.arrays import FloatArray, IntArray
from common.errors import InputError
from common.item_response import checks
from common.item_response.base import BaseItemResponse, as_answers
from common.item_response.estimator import ItemResponse
from common.item_response.fitting import Answers
from common.item_response.habits import Habits, add_habits, fit_habits
from common.item_response.prediction import outcome_probability, predict_stages
from common.item_response.saved import Arrays, from_levels, to_levels
from common.item_response.unknown_contexts import without_contexts

import numpy as np
import numpy.typing as npt

# The model predicts outcomes: outcome 0 is the right option, outcome 1 the most popular wrong one,
# and so on. A prediction returns options in the order in which the question shows them. The columns
# are rearranged for this number of pairs at a time.
_BLOCK = 1 << 16


class ItemResponseOptions(BaseItemResponse):
    """Item response theory for the options chosen in multiple choice questions.

    In the descriptions below, K is the largest number of options of a question, usually 4.

    Parameters
    ----------
    n_dimensions, guessing, seed, n_steps, log_event
        As in `ItemResponse`. Only the right option can be guessed.

    Attributes
    ----------
    student_ids_, question_ids_, ability_, ability_covariance_, history_, posterior_
        As in `ItemResponse`.
    n_options_ : array of int8, shape (questions,)
        Number of options of each question.
    discrimination_ : array of float32, shape (K − 1, questions, n_dimensions)
        Posterior means of the slopes of each stage: right, else the most popular distractor, else
        the next one.
    difficulty_ : array of float32, shape (K − 1, questions)
        Posterior means. An average student passes a stage with probability sigmoid(−difficulty).
    context_variance_ : array of float64, shape (levels, K − 1)
        Variance of a student's effects at each level of contexts, in each stage.
    shared_variance_ : array of float64, shape (K − 1,)
        Variance of the effects that all students share in a context of the last level.
    outcome_of_option_ : array of int8, shape (questions, K)
        Rank of each option of a question: 0 the right one, 1 the most popular distractor, and so
        on. Options that the question does not have rank last.
    option_share_ : array of float32, shape (K,)
        Share of each option among all answers.
    habits_ : Habits or None
        The students' habits of position. None without contexts.
    """

    n_options_: IntArray
    outcome_of_option_: IntArray
    option_share_: FloatArray
    habits_: Habits | None

    def fit(
        self,
        student: npt.ArrayLike,
        question: npt.ArrayLike,
        option: npt.ArrayLike,
        correct_option: npt.ArrayLike,
        *,
        n_options: npt.ArrayLike = schema.N_OPTIONS,
        context: npt.ArrayLike | None = None,
        like: "ItemResponseOptions | None" = None,
    ) -> Self:
        """Learn from the options that students chose.

        Parameters
        ----------
        student, question
            Ids, shape (answers,), whole numbers of at least 0.
        option, correct_option
            The option chosen and the right one, from 1, shape (answers,).
        n_options
            How many options the question of each answer has, 2 to 8, shape (answers,). A single
            number if all questions have as many.
        context
            As in `ItemResponse.fit`.
        like
            A fitted estimator with as many levels of contexts. Its settings take the place of those
            that are None, and nothing is chosen from the answers.

        Returns
        -------
        ItemResponseOptions
            This estimator.

        Raises
        ------
        InputError
            If there are no answers, or an argument or a setting has a wrong shape, dtype or value.
            `InputError` is a `ValueError`.
        """
        self._check_settings()
        student, question = as_answers(student, question)
        n_answers = len(student)
        n_options = _as_numbers_of_options(n_options, n_answers)
        most_options = int(n_options.max())
        option = checks.as_category("option", option, n_answers, 1, most_options)
        correct_option = checks.as_category(
            "correct_option", correct_option, n_answers, 1, most_options
        )
        _require_existing("option", option, n_options)
        _require_existing("correct_option", correct_option, n_options)
        context = checks.as_context(context, n_answers)

        question_ids, question_number = number_ids(question)
        self.n_options_ = np.empty(len(question_ids), np.int8)
        self.n_options_[question_number] = n_options
        _require_one_number(question, n_options, self.n_options_[question_number])
        self.outcome_of_option_ = order_options(
            question_number, option, correct_option, len(question_ids), most_options
        )
        outcome = self.outcome_of_option_[question_number, option - 1]
        # The number of outcomes is the number of options. If it is the same for all questions, it
        # need not be stored for each answer.
        n_outcomes = None if (n_options == most_options).all() else n_options
        answers = Answers(student, question, outcome, context, most_options - 1, n_outcomes)
        choice = None if like is None else self._choice_of(like, context.shape[1], "like")
        self._fit_and_set_attributes(answers, choice=choice)
        # Count each option once more, so that the share of an option that nobody chose is not 0.
        count = np.bincount(option - 1, minlength=most_options) + 1
        self.option_share_ = (count / (n_answers + most_options)).astype(np.float32)
        self.habits_ = None
        if context.shape[1]:
            probability = self._predict_without_habits(student, question, context)
            self.habits_ = fit_habits(student, _context_of_habits(context), option - 1, probability)
        return self

    def predict_proba(
        self,
        student: npt.ArrayLike,
        question: npt.ArrayLike,
        *,
        context: npt.ArrayLike | None = None,
    ) -> FloatArray:
        """Return the probability of every option.

        If the estimator was fitted with contexts, the habits of the students count too, such as to
        click the first option.

        Parameters
        ----------
        student, question, context
            As in `ItemResponse.predict_proba`.

        Returns
        -------
        array of float32, shape (pairs, K)
            The probabilities of options 1 to K, where K is the largest number of options of a
            question; rows sum to 1. An option that a question does not have gets 0. An unknown
            question has the shares of the options among all answers.

        Raises
        ------
        InputError
            If the estimator is not fitted, or an argument has a wrong shape, dtype or value.
        """
        self._check_fitted()
        student, question, context = self._check_pairs(student, question, context)
        probability = self._predict_without_habits(student, question, context)
        if self.habits_ is None:
            return probability
        # Habits belong to the contexts of one level. Find the context at this level for each pair.
        habit_context = _context_of_habits(context)
        return add_habits(self.habits_, student, habit_context, probability)

    def right_or_wrong(self) -> ItemResponse:
        """Return an estimator of right and wrong answers that predicts without contexts.

        The returned estimator has the abilities of this estimator. From each question it has only
        the first stage: is the answer right? It has no habits.
        """
        # `without_contexts` also drops all stages of the questions except the first.
        posterior = without_contexts(self._check_fitted())
        estimator = ItemResponse(
            self.n_dimensions_, guessing=self.guessing_, seed=self.seed, n_steps=self.n_steps
        )
        # Set the attributes that a fit would set. There are no levels of contexts. `history_` is
        # empty, since this estimator has made no steps of a fit.
        estimator.n_dimensions_ = self.n_dimensions_
        estimator.guessing_ = self.guessing_
        estimator.n_levels_ = 0
        estimator.history_ = []
        estimator._set_attributes(posterior)
        return estimator

    def _class_arrays(self) -> Arrays:
        """Return the arrays that `save` writes for this class only: the options and the habits.

        The keys are the names of the arrays in the file, without the prefix that `saved` puts
        before them. `save` itself adds the posterior and the settings.
        """
        arrays = {
            "n_options": self.n_options_,
            "outcome_of_option": self.outcome_of_option_,
            "option_share": self.option_share_,
        }
        # A habit is, for example, to click the first option. There are no habits if the fit was
        # given no contexts.
        habits = self.habits_
        if habits is not None:
            arrays["habit_variance"] = habits.variance
            arrays["habit_student_ids"] = habits.student_ids
            arrays["habit_context_ids"] = habits.context_ids
            # Habits have two levels. Level 0 has the habit that each student has everywhere, level
            # 1 the habit of each student in each context.
            arrays |= from_levels("habit_level", habits.levels)
            # The arrays "habit_total_0" and "habit_total_1" hold what each habit of level 0 or 1
            # adds to the log probabilities of the options.
            for number, habits_of_level in enumerate(habits.total):
                arrays[f"habit_total_{number}"] = habits_of_level
        return arrays

    def _set_class_arrays(self, arrays: Arrays) -> None:
        """Set the attributes of this class from the arrays that `_class_arrays` has returned.

        They are the options of each question, how often each option is chosen, and the habits.
        """
        self.n_options_ = arrays["n_options"]
        self.outcome_of_option_ = arrays["outcome_of_option"]
        self.option_share_ = arrays["option_share"]
        # A habit is, for example, to click the first option. There are no habits if the fit was
        # given no contexts.
        self.habits_ = None
        if "habit_variance" in arrays:
            # Habits have two levels. Level 0 has the habit that each student has everywhere, level
            # 1 the habit of each student in each context. "habit_variance" has an element for each
            # level. "habit_total_0" and "habit_total_1" hold what each habit of level 0 or 1 adds
            # to the log probabilities of the options.
            n_levels = len(arrays["habit_variance"])
            self.habits_ = Habits(
                student_ids=arrays["habit_student_ids"],
                context_ids=arrays["habit_context_ids"],
                # The names of the arrays of levels begin with "habit_level".
                levels=to_levels("habit_level", arrays, n_levels),
                total=tuple(arrays[f"habit_total_{number}"] for number in range(n_levels)),
                variance=arrays["habit_variance"],
            )

    def _predict_without_habits(
        self, student: IntArray, question: IntArray, context: IntArray
    ) -> FloatArray:
        """Return the probabilities of the options by the item response model, without habits.

        The model predicts outcomes, one stage after the other (see MODEL.md): outcome 0 is the
        right option, outcome 1 the most popular wrong one, and so on.

        A habit is, for example, to click the first option. The arguments are ids, one for each
        pair. The result has the shape (pairs, options).
        """
        # For each stage, the probability that an answer passes it, given that it has not passed the
        # stages before. An answer passes stage 0 if it is right, stage 1 if it is the most popular
        # wrong option, and so on.
        passing = predict_stages(self.posterior_, student, question, context)
        # An unknown question has the position after the last question. There, mode="clip" reads the
        # values of the last question. The probabilities of unknown questions are replaced at the
        # end.
        position = find_ids(self.posterior_.question_ids, question)
        # The number of outcomes that are possible for each pair, which is the number of options of
        # the pair's question. None if all questions have the largest number of options.
        most_options = len(self.option_share_)
        if (self.n_options_ == most_options).all():
            n_outcomes = None
        else:
            n_outcomes = self.n_options_.take(position, mode="clip")
        # At first, column 0 of `probability` belongs to the right option, column 1 to the most
        # popular wrong option, and so on. The loop rearranges the columns of each pair, so that
        # they belong to options 1, 2 and so on. It does this in blocks of pairs, to save memory.
        probability = outcome_probability(passing, n_outcomes)
        for begin in range(0, len(position), _BLOCK):
            block = slice(begin, begin + _BLOCK)
            # The rank of each option of each pair's question: 0 for the right option, 1 for the
            # most popular wrong one, and so on. This is the column of `probability` that holds the
            # option so far. Shape (pairs, options).
            column_of_option = self.outcome_of_option_.take(position[block], axis=0, mode="clip")
            probability[block] = np.take_along_axis(probability[block], column_of_option, axis=1)
        is_unknown = position == len(self.posterior_.question_ids)
        probability[is_unknown] = self.option_share_
        return probability


def _as_numbers_of_options(n_options: npt.ArrayLike, n_answers: int) -> npt.NDArray[np.int8]:
    """Return the number of options of each answer's question, or raise `InputError`."""
    if np.ndim(n_options) == 0:
        n_options = np.broadcast_to(n_options, n_answers)
    valid = schema.NUMBER_OF_OPTIONS
    return checks.as_category("n_options", n_options, n_answers, valid.low, valid.high)


def _require_one_number(question: IntArray, n_options: IntArray, last_number: IntArray) -> None:
    """Raise `InputError` if two answers to a question state different numbers of options.

    `n_options` is the number that each answer states. `last_number` is, for each answer, the number
    that the last answer to the same question states.
    """
    differs = n_options != last_number
    if differs.any():
        row = int(differs.argmax())
        raise InputError(
            f"n_options holds {n_options[row]} at position {row} and {last_number[row]} for "
            f"another answer to question {question[row]}, expected one number for each question"
        )


def _require_existing(name: str, option: IntArray, n_options: IntArray) -> None:
    """Raise `InputError` if an option is above the number of options of its question."""
    is_above = option > n_options
    if is_above.any():
        row = int(is_above.argmax())
        raise InputError(
            f"{name} holds {option[row]} at position {row}, expected 1 to {n_options[row]}, the "
            "number of options of the question"
        )


def order_options(
    question: IntArray,
    option: IntArray,
    correct_option: IntArray,
    n_questions: int,
    n_options: int,
) -> IntArray:
    """Rank each question's options, the right one first, then by popularity.

    Parameters
    ----------
    question
        The question of each answer, 0 to `n_questions` − 1.
    option, correct_option
        The option chosen and the right one, 1 to `n_options`.
    n_questions
        Number of questions.
    n_options
        Largest number of options of a question.

    Returns
    -------
    array of int8, shape (questions, n_options)
        The rank of each option: 0 for the right one, 1 for the most popular wrong one, and so on.
        Options that a question does not have rank last, since nobody chose them and they have the
        highest numbers.
    """
    n_choices = count_options(question, option, n_questions, n_options)
    # Each answer states which option of its question is right. In the data, the answers to a few
    # questions disagree: take the option that most of them state.
    n_statements = count_options(question, correct_option, n_questions, n_options)
    right = n_statements.argmax(axis=1)
    # Make the count of the right option larger than all other counts, so that it gets rank 0.
    n_choices[np.arange(n_questions), right] = len(option) + 1
    # `option_by_rank` lists the options of each question in the order of their ranks. The rank of
    # an option is its position in this list. The second `argsort` finds these positions.
    option_by_rank = np.argsort(-n_choices, axis=1, kind="stable")
    return np.argsort(option_by_rank, axis=1).astype(np.int8)


def count_options(
    question: IntArray, option: IntArray, n_questions: int, n_options: int
) -> IntArray:
    """Count how often each option is named in answers to each question, shape (questions, options).

    `question` is 0 to `n_questions` − 1, `option` is 1 to `n_options`.
    """
    # The result has a row for each question and a column for each option. Number its cells row by
    # row, so that `bincount` can count them.
    cells = question * np.int32(n_options) + (option - 1)
    return np.bincount(cells, minlength=n_questions * n_options).reshape(-1, n_options)


def _context_of_habits(context: IntArray) -> IntArray:
    """Return the ids of the contexts in which students have habits, shape (pairs,).

    A habit of a student is, for example, to click the first option. `context` has the ids of the
    contexts at all levels, such as quizzes, the coarsest level first. Habits belong to the contexts
    of the level in the middle; if two levels are in the middle, to the coarser of the two.
    """
    n_levels = context.shape[1]
    middle = (n_levels - 1) // 2
    return np.ascontiguousarray(context[:, middle])
