"""The base class of both estimators, of right and wrong answers and of options."""

from dataclasses import replace
from pathlib import Path
from typing import Self

from common.arrays import FloatArray, IntArray
from common.errors import InputError
from common.item_response import checks, saved
from common.item_response.choice import (
    DEFAULT_DIMENSIONS,
    DEFAULT_GUESSING,
    Choice,
    choose_settings,
)
from common.item_response.fitting import Answers, HeldOutScore, Settings, fit_posterior
from common.item_response.saved import Arrays, SavedEstimator
from common.item_response.steps import Posterior
from common.run_log import LogEvent, ignore_event

import numpy.typing as npt


class BaseItemResponse:
    """Settings and fitted attributes; see `ItemResponse` and `ItemResponseOptions`."""

    posterior_: Posterior
    n_dimensions_: int
    guessing_: float
    n_levels_: int
    history_: list[HeldOutScore]
    student_ids_: IntArray
    ability_: FloatArray
    ability_covariance_: FloatArray
    question_ids_: IntArray
    discrimination_: FloatArray
    difficulty_: FloatArray
    context_variance_: FloatArray
    shared_variance_: FloatArray

    def __init__(
        self,
        n_dimensions: int | None = DEFAULT_DIMENSIONS,
        *,
        guessing: float | None = DEFAULT_GUESSING,
        seed: int = 0,
        n_steps: int | None = None,
        log_event: LogEvent = ignore_event,
    ) -> None:
        """Keep the settings of the fit, which the docstring of the subclass explains."""
        self.n_dimensions = n_dimensions
        self.guessing = guessing
        self.seed = seed
        self.n_steps = n_steps
        self.log_event = log_event

    def _check_settings(self) -> None:
        """Raise `InputError` if a setting is out of its range."""
        checks.check_settings(self.n_dimensions, self.guessing, self.seed, self.n_steps)

    def _fit_and_set_attributes(
        self, answers: Answers, start: Posterior | None = None, choice: Choice | None = None
    ) -> Self:
        """Fit the posterior, and set the attributes that users read.

        If `start` is given, the fit continues from this posterior. `choice` holds the number of
        abilities, the guessing probability and the number of levels of contexts, if the caller has
        chosen them. Without `choice`, the settings that the user gave as None are chosen here, by
        how well they predict some of the answers.
        """
        if choice is None:
            choice = choose_settings(answers, self.n_dimensions, self.guessing)
        self.n_dimensions_ = choice.n_dimensions
        self.guessing_ = choice.guessing
        # The number of levels of contexts that the fit is given, even if `choice` leaves them out:
        # later calls must give the same number.
        self.n_levels_ = answers.context.shape[1]
        settings = self._fitted_settings()
        answers = replace(answers, context=answers.context[:, : choice.n_levels])
        posterior, self.history_ = fit_posterior(answers, settings, start)
        self._set_attributes(posterior)
        return self

    def _fitted_settings(self) -> Settings:
        """Return all settings of the fit: those that the user gave, and those that were chosen."""
        return Settings(self.n_dimensions_, self.guessing_, self.seed, self.n_steps, self.log_event)

    def _choice_of(self, other: "BaseItemResponse", n_given_levels: int, name: str) -> Choice:
        """Return the settings of this fit; a setting that is None is taken from `other`.

        A fit either uses all levels of contexts that it is given (MODEL.md explains levels), or
        none of them. This fit uses its levels if the fit of `other` used the levels that it was
        given.

        Parameters
        ----------
        other
            A fitted estimator that was given as many levels of contexts as this fit.
        n_given_levels
            The number of levels that this fit is given.
        name
            The name of `other` in errors.

        Raises
        ------
        InputError
            If `other` is not fitted, or was given another number of levels.
        """
        used_levels = other._check_fitted().levels
        if other.n_levels_ != n_given_levels:
            raise InputError(
                f"{name} has {other.n_levels_} levels of contexts, expected {n_given_levels}, as "
                "context has"
            )
        n_dimensions = other.n_dimensions_ if self.n_dimensions is None else self.n_dimensions
        guessing = other.guessing_ if self.guessing is None else self.guessing
        return Choice(n_dimensions, guessing, n_levels=len(used_levels))

    def _set_attributes(self, posterior: Posterior) -> None:
        """Set the attributes that users read, such as `ability_`, to the results of a fit.

        `discrimination_` gets the shape (stages, questions, dimensions), `difficulty_` the shape
        (stages, questions). Right and wrong answers have one stage; a choice among four options has
        three (see `ItemResponseOptions`).
        """
        self.posterior_ = posterior
        self.student_ids_ = posterior.student_ids
        self.question_ids_ = posterior.question_ids
        # Leave out the last student, who stands for unknown students.
        self.ability_ = posterior.students.mean[:-1]
        self.ability_covariance_ = posterior.students.covariance[:-1]
        # In each stage, a question has k slopes, then an intercept. Leave out the last question of
        # each stage, which stands for unknown questions.
        n_questions = len(posterior.question_ids)
        n_parameters = posterior.items.mean.shape[1]
        items = posterior.items.mean.reshape(posterior.n_stages, n_questions + 1, n_parameters)
        self.discrimination_ = items[:, :-1, :-1]
        self.difficulty_ = -items[:, :-1, -1]
        # A context, such as a quiz, adds two effects to a logit: one that differs between students,
        # and one that all students share. These are the prior variances of the two effects.
        self.context_variance_ = posterior.variance
        self.shared_variance_ = posterior.shared.prior

    @property
    def uses_context(self) -> bool:
        """Whether the item response model uses the contexts of answers, such as their quizzes.

        It does not if the fit was given no contexts. If `n_dimensions` is None, the fit may also
        leave out contexts that it was given: it does so if it predicts held-out answers better
        without them. `ItemResponseOptions` still finds the habits of students in these contexts,
        such as to click the first option.
        """
        return bool(self._check_fitted().levels)

    def _check_fitted(self) -> Posterior:
        """Return the posterior of the fit, or raise `InputError` if there was no fit."""
        if not hasattr(self, "posterior_"):
            raise InputError(f"this {type(self).__name__} is not fitted, call fit first")
        return self.posterior_

    def _check_pairs(
        self,
        student: npt.ArrayLike,
        question: npt.ArrayLike,
        context: npt.ArrayLike | None,
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Return the checked ids of the students, questions and contexts to predict."""
        student_ids = checks.as_ids("student", student)
        question_ids = checks.as_ids("question", question, len(student_ids))
        self._check_fitted()
        context_ids = checks.as_context(context, len(student_ids), self.n_levels_)
        return student_ids, question_ids, context_ids

    # ---- Save and load -------------------------------------------------------------------------

    def save(self, path: str | Path, *, record: str = "") -> None:
        """Write the fitted estimator to a file of NumPy arrays (.npz), whole or not at all.

        Parameters
        ----------
        path
            The file to write.
        record
            A text that the file keeps, such as one that says how the estimator was fitted.
        """
        content = SavedEstimator(
            estimator=type(self).__name__,
            posterior=self._check_fitted(),
            history=self.history_,
            settings=self._fitted_settings(),
            n_levels=self.n_levels_,
            class_arrays=self._class_arrays(),
            record=record,
        )
        saved.write(Path(path), content)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return the estimator that `save` wrote; it predicts exactly as before.

        Raises
        ------
        InputError
            If the file is missing, damaged, or not written by `save` of this class.
        """
        content = saved.read(Path(path))
        if content.estimator != cls.__name__:
            raise InputError(f"{path}: holds an {content.estimator}, expected an {cls.__name__}")
        return saved.restore(Path(path), content, cls.from_saved)

    @classmethod
    def from_saved(cls, content: SavedEstimator) -> Self:
        """Return the estimator that the content of a file describes."""
        estimator = cls(
            content.settings.n_dimensions,
            guessing=content.settings.guessing,
            seed=content.settings.seed,
            n_steps=content.settings.n_steps,
        )
        estimator.n_dimensions_ = content.settings.n_dimensions
        estimator.guessing_ = content.settings.guessing
        estimator.n_levels_ = content.n_levels
        estimator.history_ = content.history
        estimator._set_attributes(content.posterior)
        # Set the attributes that only this class has, such as `habits_` of `ItemResponseOptions`.
        estimator._set_class_arrays(content.class_arrays)
        return estimator

    def _class_arrays(self) -> Arrays:
        """Return the fitted arrays that only estimators of this class have, to be saved."""
        return {}

    def _set_class_arrays(self, arrays: Arrays) -> None:
        """Set the attributes of this class from the arrays that `_class_arrays` returned."""


def as_answers(student: npt.ArrayLike, question: npt.ArrayLike) -> tuple[IntArray, IntArray]:
    """Return the student and the question of each answer as arrays of ids.

    Raises `InputError` if there are no answers, or an argument has a wrong shape, dtype or value.
    """
    student_ids = checks.as_ids("student", student)
    question_ids = checks.as_ids("question", question, len(student_ids))
    if not len(student_ids):
        raise InputError("there are no answers to learn from")
    return student_ids, question_ids
