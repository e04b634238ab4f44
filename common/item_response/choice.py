"""Choose the settings of a fit by how well they predict answers that are held out of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from common.arrays import FloatArray, IntArray
from common.item_response.fitting import Answers, Settings, fit_posterior, outcome_losses
from common.run_log import ignore_event
from common.threads import in_threads

import numpy as np

DEFAULT_DIMENSIONS = 8
DEFAULT_GUESSING = 0.2
# The numbers of abilities and the guessing probabilities to choose from.
_DIMENSIONS = (1, 2, 4, 8)
_GUESSING = (0.0, 0.1, 0.2, 0.3)
# Settings are chosen if there are at least `_MIN_ANSWERS` and at most `_MAX_ANSWERS` answers. With
# fewer answers, the held-out answers say too little about the settings. With more answers, fits
# take long, and the settings hardly matter.
_MIN_ANSWERS = 1_000
_MAX_ANSWERS = 200_000
# Each of the `_N_FOLDS` folds is held out in turn, until enough answers have been held out.
_N_FOLDS = 4
_ENOUGH_HELD_OUT = 6_000
# If the fit uses contexts, a guessing probability replaces the default only if it lowers the mean
# loss by more than this number of standard errors. The default was chosen on answers with
# contexts. So it is likely to suit such answers, and is kept without clear evidence against it.
_MIN_GAIN_WITH_CONTEXTS = 3.0


@dataclass(frozen=True)
class Choice:
    """The settings of a fit that are chosen by the loss of held-out answers."""

    # Number of abilities of a student.
    n_dimensions: int
    # Probability that a student who does not know the answer guesses it right.
    guessing: float
    # The context of an answer is, for instance, the quiz in which it was given. Contexts may be
    # nested in several levels (see MODEL.md). This is the number of levels that the fit uses:
    # either all, or 0.
    n_levels: int


def choose_settings(answers: Answers, n_dimensions: int | None, guessing: float | None) -> Choice:
    """Choose the settings that predict held-out answers best.

    The settings are chosen one after the other:

    1. Contexts are used or left out.
    2. The guessing probability is chosen. If contexts are used, the default is kept unless another
       value is clearly better. The default was chosen on answers with contexts, so it is
       likely to suit such answers.
    3. The number of abilities is chosen. If contexts are used, the default is kept.

    The first two steps compare fits with one ability, because these fits are the fastest.

    Parameters
    ----------
    answers
        The answers of the fit. With fewer than 1,000 or more than 200,000, all settings have their
        defaults, and contexts are used.
    n_dimensions, guessing
        Settings that the user gives. None stands for a setting to choose. If `n_dimensions` is
        given, contexts are used, and the first step is skipped.
    """
    n_levels = answers.context.shape[1]
    given_or_default = Choice(
        n_dimensions=DEFAULT_DIMENSIONS if n_dimensions is None else n_dimensions,
        guessing=DEFAULT_GUESSING if guessing is None else guessing,
        n_levels=n_levels,
    )
    if not _MIN_ANSWERS <= len(answers.student) <= _MAX_ANSWERS:
        return given_or_default

    comparison = _Comparison(answers)
    # Step 1: the contexts.
    choice = replace(given_or_default, n_dimensions=1)
    if n_dimensions is None and n_levels > 0:
        without_contexts = replace(choice, n_levels=0)
        choice = comparison.find_best([choice, without_contexts])
    uses_contexts = choice.n_levels > 0
    # Step 2: the guessing probability.
    if guessing is None:
        best = comparison.find_best([replace(choice, guessing=value) for value in _GUESSING])
        if not uses_contexts or comparison.gain(choice, best) > _MIN_GAIN_WITH_CONTEXTS:
            choice = best
    # Step 3: the number of abilities.
    if n_dimensions is not None or uses_contexts:
        return replace(choice, n_dimensions=given_or_default.n_dimensions)
    return comparison.find_best([replace(choice, n_dimensions=k) for k in _DIMENSIONS])


class _Comparison:
    """Compares settings by the losses of held-out answers."""

    def __init__(self, answers: Answers) -> None:
        """Assign the answers to folds at random, and choose how many folds are held out."""
        n_answers = len(answers.student)
        self._answers = answers
        # The fold of each answer.
        self._fold: IntArray = np.random.default_rng(0).permutation(n_answers) % _N_FOLDS
        n_needed = int(np.ceil(_ENOUGH_HELD_OUT * _N_FOLDS / n_answers))
        self._n_held_out_folds = min(_N_FOLDS, n_needed)
        self._losses: dict[Choice, FloatArray] = {}

    def find_best(self, choices: Sequence[Choice]) -> Choice:
        """Return the settings with the smallest mean loss; the first if several have this loss."""
        return min(choices, key=lambda choice: float(self._find_losses(choice).mean()))

    def gain(self, before: Choice, after: Choice) -> float:
        """Return how much lower the mean loss is with `after`, in standard errors of the change."""
        gains = self._find_losses(before) - self._find_losses(after)
        standard_error = gains.std() / np.sqrt(len(gains))
        return float(gains.mean() / standard_error) if standard_error > 0 else 0.0

    def _find_losses(self, choice: Choice) -> FloatArray:
        """Return the loss −log P(outcome) of each held-out answer; the outcome is right or wrong.

        The order of the answers is the same for all settings.
        """
        if choice not in self._losses:
            folds = range(self._n_held_out_folds)
            parts = in_threads(lambda fold: self._find_losses_of_fold(fold, choice), folds)
            self._losses[choice] = np.concatenate(list(parts))
        return self._losses[choice]

    def _find_losses_of_fold(self, fold: int, choice: Choice) -> FloatArray:
        """Fit to the answers of the other folds; return the losses of the answers of this fold."""
        context = self._answers.context[:, : choice.n_levels]
        answers = replace(self._answers, context=context)
        is_held_out = self._fold == fold
        settings = Settings(
            choice.n_dimensions, choice.guessing, seed=0, n_steps=None, log_event=ignore_event
        )
        posterior, _ = fit_posterior(answers.take(~is_held_out), settings, is_trial=True)
        return outcome_losses(posterior, answers.take(is_held_out))
