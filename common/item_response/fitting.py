"""From ids and answers to a fitted model.

A question whose answers are right or wrong is one item. In `options`, a question with more outcomes
is several items, its stages. So an answer's outcome is here the number of stages not passed.
"""

import sys
from dataclasses import replace
from typing import TypedDict, Unpack

from common.answers import find_ids, number_ids
from common.errors import InputError
from common.item_response import context as contexts
from common.item_response.blocks import in_threads, run_step
from common.item_response.model import BoolArray, FloatArray, IntArray, join, standard_normal
from common.item_response.observations import Observations, sort_answers
from common.item_response.prediction import (
    ItemResponseModel,
    break_stick,
    find_effects,
    predict_places,
)
from common.item_response.start import find_start
from common.run_log import LogEvent, ignore_event

import numpy as np
from tqdm import tqdm

DEFAULT_DIMENSIONS = 8
# Early stopping: this share of the answers is held out, but never more than so many; fewer than so
# many would tell nothing.
_HELD_OUT_SHARE, _MAX_HELD_OUT, _MIN_HELD_OUT = 0.05, 100_000, 50
# One more step with all answers follows if at least this share of them was held out.
_SHARE_WORTH_A_STEP = 0.01
# The fit stops when so many steps together lower the held-out log loss by less than such a share,
# or after so many steps; without held-out answers it makes fewer.
_PATIENCE, _MIN_GAIN, _MAX_STEPS, _STEPS_WITHOUT_HELD_OUT = 2, 1.25e-3, 60, 20
# With more answers than this, and without contexts (which can make steps swing), a step is dear:
# each one but the first two begins ahead of the last, by this share of what that changed, and must
# gain more.
_MANY, _MOMENTUM, _MIN_GAIN_OF_MANY = 2_000_000, np.float32(0.7), 2.5e-3


class Settings(TypedDict, total=False):
    """Settings of a fit; `fit` explains them."""

    n_dimensions: int
    guessing: float
    seed: int
    n_steps: int | None
    context: IntArray | None
    start: ItemResponseModel | None
    log_event: LogEvent


def fit(
    student: IntArray, question: IntArray, is_correct: IntArray, **settings: Unpack[Settings]
) -> ItemResponseModel:
    """Fit the item response model to right and wrong answers.

    Shows a progress bar on a terminal. Control-C ends the fit early with what it has so far, once
    there is something.

    Parameters
    ----------
    student, question
        Ids, shape (answers,), whole numbers of at least 0.
    is_correct
        Shape (answers,), 1 right, 0 wrong.
    n_dimensions
        Number of abilities, at least 1, by default 8. Those that the answers do not support shrink
        away.
    guessing
        Probability that a student who does not know the answer is right nevertheless, 0 to 0.9; by
        default 0.
    seed
        Same seed, same model, whatever the number of threads. By default 0.
    n_steps
        Number of steps, with all answers. Default: until the loss on some that are held out stops
        falling; these are learned from in the end, unless they are too few to matter.
    context
        In which context each answer was given, such as a quiz: labels of any whole numbers of at
        least 0, shape (answers, levels), the coarsest level first. Two answers of a student share
        a context of a level if they agree in its label and all before, those of two students if
        they agree in the label of the last level. `cluster_questions` finds some.
    start
        A model of some of these answers, fitted with the same settings, from which to go on: a few
        steps are then enough.
    log_event
        From `run_log.open_log`: logs loss and accuracy on the held-out answers after each step.

    Raises
    ------
    InputError
        If there are no answers, or a setting is out of its range.
    """
    return fit_stages(student, question, np.asarray(is_correct) == 0, 1, **settings)


def fit_stages(
    student: IntArray,
    question: IntArray,
    outcome: IntArray | BoolArray,
    n_stages: int,
    *,
    n_dimensions: int = DEFAULT_DIMENSIONS,
    guessing: float = 0.0,
    seed: int = 0,
    n_steps: int | None = None,
    context: IntArray | None = None,
    start: ItemResponseModel | None = None,
    log_event: LogEvent = ignore_event,
) -> ItemResponseModel:
    """Fit questions that are passed in stages; `fit` is this with one stage.

    `outcome`, shape (answers,), is the number of stages not passed, 0 to `n_stages`. Only the first
    stage can be guessed. A fit with several stages cannot have a `start`.
    """
    if n_dimensions < 1:
        raise InputError(f"n_dimensions is {n_dimensions}, expected at least 1")
    if not 0 <= guessing <= 0.9:
        raise InputError(f"guessing is {guessing}, expected 0 to 0.9")
    require_answers(question)
    (student_ids, student), (question_ids, question) = in_threads(number_ids, [student, question])
    n_students, n_questions = len(student_ids), len(question_ids) + 1
    if context is None:
        context = np.zeros((len(student), 0), np.int32)
    numbered = [number_ids(np.ascontiguousarray(level)) for level in context.T]
    context_ids = tuple(ids for ids, _ in numbered)

    rng = np.random.default_rng(seed)
    in_order = rng.permutation(n_students)
    share = min(_HELD_OUT_SHARE, _MAX_HELD_OUT / len(student))
    stops_early = n_steps is None and share * len(student) >= _MIN_HELD_OUT
    is_held_out = rng.random(len(student), np.float32) < (share if stops_early else 0)
    held_out = student[is_held_out], question[is_held_out], context[is_held_out]

    # Every answer reaches the first stage, the item of its question; those with an outcome of at
    # least s reach stage s, an item of its own. It is answered right by those who pass it. A stage
    # has effects of its own: knowing the answer is one thing, preferring an option another.
    rows, stage = np.arange(len(student), dtype=np.int32), np.zeros(len(student), np.int32)
    for s in range(1, n_stages):
        reached = np.flatnonzero(outcome >= s).astype(np.int32)
        rows, stage = np.append(rows, reached), np.append(stage, np.full_like(reached, s))
    labels = [label[rows] * np.int32(n_stages) + stage for _, label in numbered]
    order, first, levels = sort_answers(student[rows], labels, n_students)
    item = question[rows] + stage * np.int32(n_questions)
    columns = item, outcome[rows] == stage, ~is_held_out[rows]
    item, is_right, is_used = in_threads(lambda column: column.take(order), columns)
    observations = Observations(first, item, is_right, is_used, n_stages * n_questions, levels)
    n_labels = n_stages * len(context_ids[-1]) if levels else 0
    leaves, variance, shared = contexts.begin(levels, n_labels, n_stages, n_dimensions)
    if start is None:
        students, items, prior = find_start(observations, n_stages, n_dimensions, in_order, seed)
    else:
        # Their places there; who or what is not known there comes last.
        of_student = find_ids(start.student_ids, student_ids)
        of_question = _find_or_last(start.question_ids, question_ids)
        students, items = start.students.take(of_student), start.items.take(of_question)
        prior, variance, shared = start.prior, start.variance, start.shared
        if levels:
            # The first answer of a leaf tells whose it is.
            first = rows[order[levels[-1].start[:-1]]]
            pairs = of_student[student[first]], context[first]
            leaves = find_effects(start, *pairs, with_shared=False)
            label = _find_or_last(start.context_ids[-1], context_ids[-1])
            shared = shared._replace(mean=shared.mean[label], variance=shared.variance[label])
    guess = np.where(np.arange(n_stages * n_questions) < n_questions, guessing, 0)
    state = ItemResponseModel(
        students=students,
        items=items,
        prior=prior,
        guessing=guess.astype(np.float32),
        # Only those at the leaves matter to a step.
        effects=(leaves,),
        variance=variance,
        shared=shared,
        student_ids=student_ids,
        question_ids=question_ids,
        context_ids=context_ids,
        levels=levels,
        history=[],
    )

    n_max = n_steps or (_MAX_STEPS if stops_early else _STEPS_WITHOUT_HELD_OUT)
    n_done = 0
    are_many = len(student) > _MANY and not levels
    min_gain = _MIN_GAIN_OF_MANY if are_many else _MIN_GAIN
    before = state.items.mean
    try:
        with tqdm(
            desc="item response", total=n_max, disable=None if start is None else True, leave=None
        ) as bar:
            try:
                while n_done < n_max and not _has_converged(state.history, min_gain):
                    now = state.items.mean
                    if are_many and n_done >= 2:
                        ahead = now + _MOMENTUM * (now - before)
                        state = replace(state, items=replace(state.items, mean=ahead))
                    before = now
                    state = run_step(observations, state)
                    n_done += 1
                    if stops_early:
                        passing = predict_places(state, *held_out)
                        loss, accuracy = _score(break_stick(passing), outcome[is_held_out])
                        state.history.append((loss, accuracy))
                        bar.set_postfix_str(f"loss={loss:.4f}", refresh=False)
                        log_event(
                            "step", step=n_done, held_out_loss=loss, held_out_accuracy=accuracy
                        )
                    bar.update()
            finally:
                if n_done < n_max:
                    bar.set_postfix_str("stopped early")
        if stops_early and share >= _SHARE_WORTH_A_STEP:
            everything = replace(observations, is_used=np.ones_like(observations.is_used))
            state = run_step(everything, state)
    except KeyboardInterrupt:
        if not n_done:
            raise
        print(f"interrupted: going on with the model after step {n_done}", file=sys.stderr)
    # The student after the last one has no answers.
    return replace(state, students=join([state.students, standard_normal(1, n_dimensions)]))


def require_answers(answers: IntArray) -> None:
    """Raise `InputError` if there are none."""
    if len(answers) == 0:
        raise InputError("there are no answers to learn from")


def _find_or_last(ids: IntArray, wanted: IntArray) -> IntArray:
    """Return places of ids, and at the end that of an unknown one."""
    return np.append(find_ids(ids, wanted), len(ids))


def _score(probability: FloatArray, outcome: IntArray | BoolArray) -> tuple[float, float]:
    """Return log loss and accuracy of predicted outcomes."""
    outcome = outcome.astype(np.intp)
    chosen = probability[np.arange(len(outcome)), outcome]
    loss = -np.log(np.maximum(chosen, 1e-7)).mean()
    return float(loss), float((probability.argmax(axis=1) == outcome).mean())


def _has_converged(history: list[tuple[float, float]], min_gain: float) -> bool:
    if len(history) <= _PATIENCE:
        return False
    before, now = history[-1 - _PATIENCE][0], history[-1][0]
    return before - now < min_gain * before
