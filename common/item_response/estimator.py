"""The estimator of right and wrong answers."""

from dataclasses import dataclass
from typing import Self

from common.answers import find_ids
from common.arrays import FloatArray
from common.errors import InputError
from common.item_response import checks, prediction
from common.item_response.base import BaseItemResponse, as_answers
from common.item_response.fitting import Answers
from common.item_response.prediction import LogitParts, predict_stages
from common.item_response.steps import Posterior

import numpy as np
import numpy.typing as npt


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
    by variational Bayes. README.md in this folder explains the mathematics.

    Parameters
    ----------
    n_dimensions
        Number of abilities of a student, at least 1. Abilities that the answers do not support
        shrink to zero. The time of a fit grows with the square of the number.
    guessing
        Probability that a student who does not know the answer guesses it, 0 to 0.9.
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
        How much the effects of a student vary at each level of contexts.
    shared_variance_ : float
        How much the effects vary that all students share in a context of the last level.
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
        settings = self._check_settings()
        student, question = as_answers(student, question)
        is_right = checks.as_category("is_correct", is_correct, len(student), 0, 1)
        context = checks.as_context(context, len(student))
        answers = Answers(student, question, 1 - is_right, context, n_stages=1)
        start_posterior = None
        if start is not None:
            start_posterior = self._check_start(start, n_levels=context.shape[1])
        self._fit_and_set_attributes(answers, settings, start_posterior)
        self.discrimination_ = self.discrimination_[0]
        self.difficulty_ = self.difficulty_[0]
        self.context_variance_ = self.context_variance_[:, 0]
        self.shared_variance_ = float(self.posterior_.shared.prior[0])
        return self

    def predict_proba(
        self,
        student: npt.ArrayLike,
        question: npt.ArrayLike,
        *,
        context: npt.ArrayLike | None = None,
    ) -> FloatArray:
        """Return the probabilities that students answer questions wrong and right.

        An unknown student counts as an average student whose ability is as uncertain as abilities
        vary among all students. The same holds for an unknown question.

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

    def question_parameters(self, question: npt.ArrayLike) -> QuestionParameters:
        """Return the parameters of questions; unknown ones get the average.

        Parameters
        ----------
        question
            Ids, shape (questions,).
        """
        posterior = self._check_fitted()
        # `find_ids` gives unknown ids the position after the last id, which is the position of the
        # average question in `items`.
        position = find_ids(posterior.question_ids, checks.as_ids("question", question))
        items = posterior.items.mean[position]
        return QuestionParameters(discrimination=items[:, :-1], difficulty=-items[:, -1])

    def _check_start(self, start: "ItemResponse", n_levels: int) -> Posterior:
        """Return the posterior of `start`, the fitted estimator from which this fit continues.

        Raises `InputError` if `start` has other dimensions than this estimator, or other levels of
        contexts than the answers, which have `n_levels`.
        """
        posterior = start._check_fitted()
        if start.n_dimensions != self.n_dimensions:
            raise InputError(
                f"start has {start.n_dimensions} dimensions, expected {self.n_dimensions}, as this "
                "estimator has"
            )
        if len(posterior.levels) != n_levels:
            raise InputError(
                f"start has {len(posterior.levels)} levels of contexts, expected {n_levels}, as "
                "context has"
            )
        return posterior
