"""The estimator of right and wrong answers."""

from copy import copy
from dataclasses import dataclass
from typing import Literal, Self

from common.answers import find_ids
from common.arrays import FloatArray
from common.errors import InputError
from common.item_response import checks, model, prediction
from common.item_response.base import BaseItemResponse, as_answers
from common.item_response.choice import DEFAULT_DIMENSIONS, DEFAULT_GUESSING
from common.item_response.fitting import Answers
from common.item_response.further_answers import (
    Abilities,
    find_ability,
    find_students,
    learn_answers,
)
from common.item_response.mastery import find_mastery
from common.item_response.prediction import LogitParts, predict_stages
from common.item_response.steps import Posterior
from common.item_response.table import FittedTable, fit_table
from common.item_response.unknown_contexts import add_subjects, without_contexts

import numpy as np
import numpy.typing as npt
import pandas as pd


@dataclass(frozen=True)
class QuestionParameters:
    """The parameters of questions, posterior means, float32."""

    # Shape (questions, n_dimensions).
    discrimination: FloatArray
    # Shape (questions,).
    difficulty: FloatArray


class ItemResponse(BaseItemResponse):
    """Multidimensional item response theory; answers in one context share an effect.

        P(right) = guessing + (1 − guessing) sigmoid(discrimination · ability − difficulty + effect)

    The effect is what a student's answers in one context, such as a quiz, have in common. The
    posteriors of all parameters but the guessing, and their priors, are estimated from the answers
    by variational Bayes. MODEL.md in this folder explains the mathematics, and how settings that
    are None are chosen.

    Parameters
    ----------
    n_dimensions
        Number of abilities of a student, at least 1. Abilities that the answers do not support
        shrink to zero. The time of a fit grows with the square of the number. If None, held-out
        answers choose the number, and whether contexts are used.
    guessing
        Probability that a student who does not know the answer guesses it right, 0 to 0.9. If None,
        held-out answers choose it.
    seed
        Seed of the random start, at least 0. The same seed gives the same results.
    n_steps
        If a number, at least 1, the fit takes this many steps, all with all answers. By default
        (None), some answers are held out, and the fit ends when the loss on these answers stops
        falling. If they are at least 1 % of all answers, one more step then learns from all
        answers. With fewer than some 1,000 answers, none are held out, and the fit takes 20 steps.
    log_event
        Function that is called as ``log_event("step", step=1, held_out_loss=0.6,
        held_out_accuracy=0.7)`` after each step with held-out answers.

    Attributes
    ----------
    n_dimensions_, guessing_ : int, float
        The settings of the fit, given or chosen. `uses_context` tells whether contexts were used.
    student_ids_, question_ids_ : array of int, shape (students,) and (questions,)
        Ids with answers, increasing.
    ability_ : array of float32, shape (students, n_dimensions)
        Posterior means. Over all students, abilities have mean 0 and covariance I.
    ability_covariance_ : array of float32, shape (students, n_dimensions, n_dimensions)
        Posterior covariances.
    discrimination_ : array of float32, shape (questions, n_dimensions)
        Posterior means of the slopes.
    difficulty_ : array of float32, shape (questions,)
        Posterior means. An average student knows the answer with probability
        sigmoid(−difficulty).
    context_variance_ : array of float64, shape (levels,)
        Variance of a student's effects at each level of contexts.
    shared_variance_ : float
        Variance of the effects that all students share in a context of the last level.
    history_ : list of HeldOutScore
        `loss` and `accuracy` on the held-out answers after each step.
    posterior_ : Posterior
        All posteriors and priors, see `steps.Posterior`.

    Examples
    --------
    >>> model = ItemResponse(n_dimensions=2).fit(student, question, is_correct)
    >>> p_right = model.predict_proba(student, question)[:, 1]
    """

    shared_variance_: float  # type: ignore[assignment]

    def fit(
        self,
        student: npt.ArrayLike,
        question: npt.ArrayLike,
        is_correct: npt.ArrayLike,
        *,
        context: npt.ArrayLike | None = None,
        start: "ItemResponse | None" = None,
    ) -> Self:
        """Learn from right and wrong answers.

        Shows a progress bar on a terminal. After the first step, Control-C ends the fit early with
        the result of the last complete step.

        Parameters
        ----------
        student, question
            Ids, shape (answers,), whole numbers of at least 0, with gaps of any size.
        is_correct
            Shape (answers,), 1 or True is right, 0 or False wrong.
        context
            The id of the context in which each answer was given, such as a quiz. Ids are whole
            numbers of at least 0, shape (answers, levels), the coarsest level first; shape
            (answers,) for one level. Two answers of a student share a context of a level if they
            agree in the ids of this level and of all levels before. Effects that all students share
            exist at the last level only: answers of different students share an effect if they
            agree in the id of this level. `similarity.cluster_questions` finds contexts if none are
            known.
        start
            An estimator fitted to some of these answers, with as many dimensions and levels. The
            fit continues from its posterior, so that a few steps are enough.

        Returns
        -------
        ItemResponse
            This estimator.

        Raises
        ------
        InputError
            If there are no answers, or an argument or a setting has a wrong shape, dtype or value.
            `InputError` is a `ValueError`.
        """
        self._check_settings()
        student, question = as_answers(student, question)
        is_right = checks.as_category("is_correct", is_correct, len(student), 0, 1)
        context = checks.as_context(context, len(student))
        answers = Answers.of_right_or_wrong(student, question, is_right, context)
        if start is None:
            return self._fit_and_set_attributes(answers)
        start_posterior = self._check_start(start)
        choice = self._choice_of(start, n_given_levels=context.shape[1], name="start")
        return self._fit_and_set_attributes(answers, start_posterior, choice)

    def _set_attributes(self, posterior: Posterior) -> None:
        """Set the attributes that users read, such as `difficulty_`."""
        super()._set_attributes(posterior)
        # These attributes have an element for each stage of an answer (see MODEL.md). Right and
        # wrong answers have only one stage: drop this dimension.
        self.discrimination_ = self.discrimination_[0]
        self.difficulty_ = self.difficulty_[0]
        self.context_variance_ = self.context_variance_[:, 0]
        self.shared_variance_ = float(posterior.shared.prior[0])

    def predict_proba(
        self,
        student: npt.ArrayLike,
        question: npt.ArrayLike,
        *,
        context: npt.ArrayLike | None = None,
    ) -> FloatArray:
        """Return the probabilities that students answer questions wrong and right.

        An unknown student counts as an average student. The uncertainty of the student's ability is
        then the variance of the abilities of all students. Likewise, an unknown question counts as
        an average question, with the variance of the parameters of all questions.

        Parameters
        ----------
        student, question
            Ids of each pair, shape (pairs,), unknown ones too.
        context
            Ids of the contexts of each pair, shape (pairs, levels), unknown ones too. Needed if the
            fit had contexts.

        Returns
        -------
        array of float32, shape (pairs, 2)
            P(wrong), then P(right).

        Raises
        ------
        InputError
            If the estimator is not fitted, or an argument has a wrong shape, dtype or value.
        """
        posterior = self._check_fitted()
        pairs = self._check_pairs(student, question, context)
        p_right = predict_stages(posterior, *pairs)[:, 0]
        return np.stack([1 - p_right, p_right], axis=1)

    def explain(
        self,
        student: npt.ArrayLike,
        question: npt.ArrayLike,
        *,
        context: npt.ArrayLike | None = None,
    ) -> LogitParts:
        """Return the parts of the logits behind `predict_proba`, which has the same arguments."""
        posterior = self._check_fitted()
        return prediction.explain(posterior, *self._check_pairs(student, question, context))

    def mastery(self, subject: npt.ArrayLike) -> pd.DataFrame:
        """Return how much of each subject each student is expected to know.

        A student gets a row for each subject in which the student has answers. The model must know
        effects of subjects: in the call of `fit`, the argument `context` must have been the
        subjects of the questions, or this estimator must be the result of `with_subjects`.

        Parameters
        ----------
        subject
            The subjects of the questions in `question_ids_`, whole numbers of at least 0, shape
            (questions, levels), the widest subjects first. In all rows that name a subject, the
            wider subjects before it must be the same.

        Returns
        -------
        DataFrame
            A row for each student and each subject at each level, sorted by student and level:

            - student: the id of the student;
            - level: 0 for the widest subjects;
            - subject: the number in `subject`;
            - n_answers: the number of the student's answers;
            - share: the share of the subject's questions that the student is expected to answer
              correctly;
            - low, high: the ends of the 90 % interval of that share. The interval says how well
              the share is known, not how luck in single answers moves it.

        Raises
        ------
        InputError
            If the estimator is not fitted, was fitted without contexts, `subject` has a wrong
            shape, dtype or value, or a subject in which students have answers is missing from it.
        """
        posterior = self._check_fitted()
        if not posterior.levels:
            raise InputError(
                "this estimator uses no contexts, expected the subjects of the questions: call "
                "with_subjects first, or fit with n_dimensions given and the subjects as context"
            )
        n_questions = len(posterior.question_ids)
        subjects = checks.as_context(subject, n_questions, len(posterior.levels), "subject")
        return find_mastery(posterior, subjects)

    def question_parameters(self, question: npt.ArrayLike) -> QuestionParameters:
        """Return the parameters of questions; unknown questions get those of the average question.

        Parameters
        ----------
        question
            Ids, shape (questions,).
        """
        posterior = self._check_fitted()
        # `find_ids` returns the number of known ids for an unknown id. In `items`, the average
        # question has this position, just after the last known question.
        position = find_ids(posterior.question_ids, checks.as_ids("question", question))
        items = posterior.items.mean[position]
        return QuestionParameters(discrimination=items[:, :-1], difficulty=-items[:, -1])

    @classmethod
    def from_table(
        cls,
        table: pd.DataFrame,
        *,
        student: str = "UserId",
        question: str = "QuestionId",
        correct: str = "IsCorrect",
        n_dimensions: int | None = DEFAULT_DIMENSIONS,
        guessing: float | None = DEFAULT_GUESSING,
        seed: int = 0,
    ) -> FittedTable:
        """Fit an estimator to a table with a row for each answer; ids may be of any type.

        Parameters
        ----------
        table
            The answers. Other columns than the three do not matter.
        student, question
            Names of the columns that say who answered which question.
        correct
            Name of the column that says whether the answer is right: True or False, 1 or 0.
        n_dimensions, guessing, seed
            Settings of the estimator.

        Returns
        -------
        FittedTable
            The fitted estimator, which predicts tables and describes students and questions.

        Raises
        ------
        InputError
            If the table has no such column or no rows, an id is missing, or an outcome is neither
            right nor wrong.
        """
        model = cls(n_dimensions, guessing=guessing, seed=seed)
        return fit_table(model, table, student, question, correct)

    # ---- Without the contexts of the fit -------------------------------------------------------

    def without_contexts(self) -> "ItemResponse":
        """Return an estimator that predicts answers whose contexts are not known.

        A context is where an answer was given, such as a quiz. The result predicts as this
        estimator does for contexts that the fit does not know. If the fit had no contexts, the
        result equals this estimator.
        """
        return self._with_posterior(without_contexts(self._check_fitted()), n_levels=0)

    def with_subjects(self, student: npt.ArrayLike, subject: npt.ArrayLike) -> "ItemResponse":
        """Return an estimator that knows the subjects of answers, as the method `mastery` needs.

        A context of an answer is, for instance, the quiz in which it was given. In the result, the
        contexts of an answer are the subjects of its question. Call this method if the contexts of
        the fit were not subjects, or if there were none. The effects of the subjects in the result
        are 0: students differ in a subject only by their abilities.

        Parameters
        ----------
        student
            The student of each answer that `mastery` counts, shape (answers,).
        subject
            The subjects of the question of each answer, shape (answers, levels), the widest
            subjects first.

        Raises
        ------
        InputError
            If the estimator is not fitted, a student is unknown, or an argument has a wrong shape,
            dtype or value.
        """
        posterior = without_contexts(self._check_fitted())
        student_ids = checks.as_ids("student", student)
        subjects = checks.as_context(subject, len(student_ids), name="subject")
        position = find_ids(posterior.student_ids, student_ids)
        is_unknown = position == len(posterior.student_ids)
        if is_unknown.any():
            raise InputError(
                f"student holds {student_ids[is_unknown][0]}, whom the fit does not know, expected "
                "students of the fit"
            )
        posterior = add_subjects(posterior, position, subjects)
        return self._with_posterior(posterior, n_levels=subjects.shape[1])

    def _with_posterior(self, posterior: Posterior, n_levels: int) -> "ItemResponse":
        """Return an estimator with the settings of this one and another posterior.

        `n_levels` is how many ids of contexts a prediction needs for each pair of a student and a
        question: two, for instance, if the contexts are a group of quizzes and a quiz of the group.
        """
        estimator = copy(self)
        estimator.n_levels_ = n_levels
        estimator._set_attributes(posterior)
        return estimator

    # ---- Answers that come after the fit ------------------------------------------------------

    def transform(
        self,
        student: npt.ArrayLike,
        question: npt.ArrayLike,
        is_correct: npt.ArrayLike,
        *,
        context: npt.ArrayLike | None = None,
    ) -> Abilities:
        """Return the abilities of students from their answers; this estimator does not change.

        An ability depends on the given answers of the student only, even if the fit has learned
        from other answers of the student. The students of the result are in the order of their ids.
        The arguments and the errors are those of `for_students`.
        """
        return self.for_students(student, question, is_correct, context=context).abilities()

    def ability_of(
        self,
        question: npt.ArrayLike,
        is_correct: npt.ArrayLike,
        *,
        context: npt.ArrayLike | None = None,
    ) -> Abilities:
        """Return the ability of one student from the student's answers.

        This is the ability that `transform` finds, up to a small numerical error. The only student
        of the result has the id 0. A student without answers has the average ability, whose
        uncertainty is the variance of the abilities of all students.
        """
        posterior = self._check_fitted()
        n_answers = len(np.atleast_1d(question))
        student_ids = np.zeros(1, np.int32)
        if n_answers == 0 and len(np.atleast_1d(is_correct)) == 0:
            average_student = model.standard_normal(1, self.n_dimensions_)
            return Abilities(student_ids, average_student.mean, average_student.covariance)
        student_of_answer = np.zeros(n_answers, np.int32)
        if posterior.levels:
            # The fit used contexts, which `find_ability` below cannot take.
            return self.transform(student_of_answer, question, is_correct, context=context)
        answers = self._as_further_answers(student_of_answer, question, is_correct, context)
        # In `answers`, the outcome 0 means right, and 1 wrong.
        is_right = answers.outcome == 0
        # `find_ability` finds the ability that `transform` would find, up to a small numerical
        # error, but is faster for a single student.
        ability = find_ability(posterior, answers.question, is_right)
        return Abilities(student_ids, ability.mean, ability.covariance)

    def abilities(self) -> Abilities:
        """Return the abilities of all students of the fit."""
        self._check_fitted()
        return Abilities(self.student_ids_, self.ability_, self.ability_covariance_)

    def for_students(
        self,
        student: npt.ArrayLike,
        question: npt.ArrayLike,
        is_correct: npt.ArrayLike,
        *,
        context: npt.ArrayLike | None = None,
    ) -> "ItemResponse":
        """Return an estimator for other students, with the question parameters of this estimator.

        The abilities of the students are estimated from the given answers. If the fit had contexts,
        such as quizzes, so is how much better or worse each student does in each context. The
        question parameters stay as they are, so this takes milliseconds. `predict_proba` of the
        result predicts further answers of these students.

        Parameters
        ----------
        student, question, is_correct, context
            All answers of the students, as in `fit`. A question that the fit does not know counts
            as average, and so does an effect that students share in an unknown context.

        Raises
        ------
        InputError
            If the estimator is not fitted, or an argument has a wrong shape, dtype or value.
        """
        posterior = self._check_fitted()
        answers = self._as_further_answers(student, question, is_correct, context)
        return self._with_posterior(find_students(posterior, answers), self.n_levels_)

    def partial_fit(
        self,
        student: npt.ArrayLike,
        question: npt.ArrayLike,
        is_correct: npt.ArrayLike,
        *,
        learn: Literal["both", "students", "questions"] = "both",
    ) -> Self:
        """Learn from further answers; the answers of the fit are not needed.

        The present posteriors of students and questions serve as priors for the further answers.
        New students and new questions begin as average ones. Give only answers from which this
        estimator has not learned yet: an answer that is given again counts twice.

        Parameters
        ----------
        student, question, is_correct
            The further answers, as in `fit`.
        learn
            Whether the abilities of students, the parameters of questions, or both change.

        Raises
        ------
        InputError
            If the estimator is not fitted or was fitted with contexts, or if an argument has a
            wrong shape, dtype or value.
        """
        posterior = self._check_fitted()
        if learn not in ("both", "students", "questions"):
            raise InputError(f"learn is {learn!r}, expected 'both', 'students' or 'questions'")
        if posterior.levels:
            raise InputError(
                "this estimator was fitted with contexts, expected none: give all answers of the "
                "students to for_students, or fit all answers with start=this estimator"
            )
        answers = self._as_further_answers(student, question, is_correct, None)
        posterior = learn_answers(
            posterior,
            answers,
            learns_students=learn != "questions",
            learns_questions=learn != "students",
        )
        self._set_attributes(posterior)
        return self

    def _as_further_answers(
        self,
        student: npt.ArrayLike,
        question: npt.ArrayLike,
        is_correct: npt.ArrayLike,
        context: npt.ArrayLike | None,
    ) -> Answers:
        """Check answers that come after the fit; return them with the contexts that the fit used.

        A context is where an answer was given, such as a quiz. A fit may get contexts and yet not
        use them (see `uses_context`). Then `context` may be None. If it is given, it is checked,
        but not returned. Raises `InputError` if an argument has a wrong shape, dtype or value.
        """
        student, question = as_answers(student, question)
        is_right = checks.as_category("is_correct", is_correct, len(student), 0, 1)
        is_left_out = not self.uses_context
        may_be_missing = is_left_out and context is None
        # Contexts must have as many levels as those that the fit got, even if it did not use them.
        n_expected_levels = 0 if may_be_missing else self.n_levels_
        context_ids = checks.as_context(context, len(student), n_expected_levels)
        if is_left_out:
            # Drop all columns: each column holds the contexts of one level.
            context_ids = context_ids[:, :0]
        return Answers.of_right_or_wrong(student, question, is_right, context_ids)

    def _check_start(self, start: "ItemResponse") -> Posterior:
        """Return the posterior of `start`, the fitted estimator from which this fit continues.

        Raises `InputError` if `start` has other dimensions than this estimator.
        """
        posterior = start._check_fitted()
        if self.n_dimensions not in (None, start.n_dimensions_):
            raise InputError(
                f"start has {start.n_dimensions_} dimensions, expected {self.n_dimensions}, as "
                "this estimator has"
            )
        return posterior
