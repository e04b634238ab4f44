"""From ids and answers to a fitted model; an outcome is the number of stages not passed."""

import sys
from dataclasses import replace

from common.answers import find_ids, number_ids
from common.arrays import FloatArray, IntArray
from common.errors import InputError
from common.item_response import blocks, model
from common.item_response.blocks import ItemResponseModel, Observations
from common.item_response.context import START_VARIANCE, SharedEffects
from common.item_response.model import Gaussians
from common.item_response.prediction import break_stick, find_effects, predict_stages
from common.run_log import LogEvent, ignore_event

import numpy as np
from tqdm import tqdm

DEFAULT_DIMENSIONS = 8
# Early stopping: share of the answers held out, but at most so many; fewer would tell nothing.
_HELD_OUT_SHARE, _MAX_HELD_OUT, _MIN_HELD_OUT = 0.05, 100_000, 50
# One more step with all answers follows if at least this share of them was held out.
_SHARE_WORTH_A_STEP = 0.01
# So many steps must gain such a share of held-out loss; steps at most, and without held-out ones.
_PATIENCE, _MIN_GAIN, _MAX_STEPS, _STEPS_WITHOUT_HELD_OUT = 2, 1.25e-3, 60, 20
# With more answers, and without contexts (which can make steps swing), a step is dear: from the
# third on it begins ahead of the last, by this share of what that changed, and must gain more.
_MANY, _MOMENTUM, _MIN_GAIN_OF_MANY = 2_000_000, np.float32(0.7), 3e-3
# About how many answers the start is found with, and in how many steps in one dimension.
_MAX_START_ANSWERS, _N_START_STEPS = 2_000_000, 4
# Rounds of the search for further dimensions: least, most, answers looked at; extra directions.
_MIN_ROUNDS, _MAX_ROUNDS, _LOOKED_AT, _OVERSAMPLING = 5, 30, 20_000_000, 10
# Residuals of a student or item with few answers count less: as if there were so many more.
_SHRINKAGE = 10
# Root mean square of the slopes in each dimension beyond the first, and their prior variance.
_SLOPE, _SLOPE_VARIANCE = 0.4, 0.1


def fit(
    student: IntArray,
    question: IntArray,
    is_correct: IntArray,
    *,
    n_dimensions: int = DEFAULT_DIMENSIONS,
    guessing: float = 0.0,
    seed: int = 0,
    n_steps: int | None = None,
    context: IntArray | None = None,
    start: ItemResponseModel | None = None,
    log_event: LogEvent = ignore_event,
    n_stages: int = 1,
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
        Number of abilities, at least 1. Those that the answers do not support shrink away.
    guessing
        Probability that a student who does not know the answer is right nevertheless, 0 to 0.9.
    seed
        Same seed, same model, whatever the number of threads.
    n_steps
        Number of steps, with all answers. Default: until the loss on some that are held out stops
        falling; these are learned from in the end, unless they are too few to matter.
    context
        In which context each answer was given, such as a quiz: labels of any whole numbers of at
        least 0, shape (answers, levels), the coarsest level first. Two answers of a student share
        a context of a level if they agree in its label and all before, those of two students if
        they agree in the label of the last level. `similarity.cluster_questions` finds some.
    start
        A model of some of these answers, fitted with the same settings, from which to go on: a few
        steps are then enough. Not with several stages.
    log_event
        From `run_log.open_log`: logs loss and accuracy on the held-out answers after each step.
    n_stages
        In how many stages questions are passed (see `options`). Then `is_correct` is this number
        less that of the stages not passed. Only the first stage can be guessed.

    Raises
    ------
    InputError
        If there are no answers, or a setting is out of its range.
    """
    if n_dimensions < 1:
        raise InputError(f"n_dimensions is {n_dimensions}, expected at least 1")
    if not 0 <= guessing <= 0.9:
        raise InputError(f"guessing is {guessing}, expected 0 to 0.9")
    if not len(question):
        raise InputError("there are no answers to learn from")
    if context is None:
        context = np.zeros((len(student), 0), np.int32)
    outcome = n_stages - np.asarray(is_correct)
    both = blocks.in_threads(number_ids, [student, question])
    (student_ids, of_student), (question_ids, of_question) = both
    n_students, n_questions = len(student_ids), len(question_ids) + 1
    rng = np.random.default_rng(seed)
    in_order = rng.permutation(n_students)
    share = min(_HELD_OUT_SHARE, _MAX_HELD_OUT / len(student))
    stops_early = n_steps is None and share * len(student) >= _MIN_HELD_OUT
    is_held_out = rng.random(len(student), np.float32) < (share if stops_early else 0)
    held_out = student[is_held_out], question[is_held_out], context[is_held_out]

    # Answers with an outcome of at least s reach stage s, an item with effects of its own, which
    # those who pass it get right: knowing the answer is one thing, preferring an option another.
    rows, stage = np.arange(len(student), dtype=np.int32), np.zeros(len(student), np.int32)
    for s in range(1, n_stages):
        reached = np.flatnonzero(outcome >= s).astype(np.int32)
        rows, stage = np.append(rows, reached), np.append(stage, np.full_like(reached, s))
    numbered = [number_ids(np.ascontiguousarray(level)) for level in context.T]
    labels = [label[rows] * np.int32(n_stages) + stage for _, label in numbered]
    context_ids = tuple(ids for ids, _ in numbered)
    order, first, levels = blocks.sort_answers(of_student[rows], labels, n_students)
    item = of_question[rows] + stage * np.int32(n_questions)
    columns = item, outcome[rows] == stage, ~is_held_out[rows]
    item, is_right, is_used = blocks.in_threads(lambda column: column.take(order), columns)
    observations = Observations(first, item, is_right, is_used, n_stages * n_questions, levels)

    n_leaves, n_labels = (len(levels[-1].label), len(context_ids[-1])) if levels else (0, 0)
    leaves = np.zeros((n_leaves, 2 + n_dimensions), np.float32)
    if start is None:
        students, items, prior = _find_start(observations, n_stages, n_dimensions, in_order, seed)
        variance = np.full((len(levels), n_stages), START_VARIANCE)
        unknown = np.full(n_stages * (1 + n_labels), START_VARIANCE, np.float32)
        shared = SharedEffects(0 * unknown, unknown, np.full(n_stages, START_VARIANCE))
        leaves[:, 1] = len(levels) * START_VARIANCE
    else:
        # Their places there; who or what is not known there comes last.
        place, known = find_ids(start.student_ids, student_ids), start.question_ids
        students = start.students.take(place)
        items = start.items.take(np.append(find_ids(known, question_ids), len(known)))
        prior, variance, shared = start.prior, start.variance, start.shared
        if levels:
            # The first answer of a leaf tells whose it is.
            row = order[levels[-1].start[:-1]]
            leaves, _ = find_effects(start, place[of_student[row]], context[row])
            known = start.context_ids[-1]
            label = np.append(find_ids(known, context_ids[-1]), len(known))
            shared = shared._replace(mean=shared.mean[label], variance=shared.variance[label])
    guess = np.where(np.arange(n_stages * n_questions) < n_questions, guessing, 0)
    state = ItemResponseModel(
        students=students,
        items=items,
        prior=prior,
        guessing=guess.astype(np.float32),
        student_ids=student_ids,
        question_ids=question_ids,
        # Only those at the leaves matter to a step.
        effects=(leaves,),
        variance=variance,
        shared=shared,
        context_ids=context_ids,
        levels=levels,
    )

    # Of the size of the answers and stages, and in nobody's way any more.
    del rows, stage, numbered, labels, of_student, of_question, columns
    n_max = n_steps or (_MAX_STEPS if stops_early else _STEPS_WITHOUT_HELD_OUT)
    n_done = 0
    are_many = len(student) > _MANY and not levels
    min_gain = _MIN_GAIN_OF_MANY if are_many else _MIN_GAIN
    before = state.items.mean
    is_hidden = None if start is None else True
    with tqdm(desc="item response", total=n_max, disable=is_hidden, leave=None) as bar:
        try:
            while n_done < n_max:
                losses = [loss for loss, _ in state.history[-1 - _PATIENCE :]]
                if len(losses) > _PATIENCE and losses[0] - losses[-1] < min_gain * losses[0]:
                    break
                now = state.items.mean
                if are_many and n_done >= 2:
                    ahead = now + _MOMENTUM * (now - before)
                    state = replace(state, items=replace(state.items, mean=ahead))
                before = now
                state = blocks.run_step(observations, state)
                n_done += 1
                if stops_early:
                    probability = break_stick(predict_stages(state, *held_out))
                    loss, accuracy = _score(probability, outcome[is_held_out])
                    state.history.append((loss, accuracy))
                    bar.set_postfix_str(f"loss={loss:.4f}", refresh=False)
                    log_event("step", step=n_done, held_out_loss=loss, held_out_accuracy=accuracy)
                bar.update()
            if n_done < n_max:
                bar.set_postfix_str("stopped early")
            if stops_early and share >= _SHARE_WORTH_A_STEP:
                everything = replace(observations, is_used=np.ones_like(observations.is_used))
                state = blocks.run_step(everything, state)
        except KeyboardInterrupt:
            if not n_done:
                raise
            bar.set_postfix_str("stopped early")
            bar.close()
            print(f"interrupted: going on with the model after step {n_done}", file=sys.stderr)
    nobody = model.standard_normal(1, n_dimensions)
    return replace(state, students=model.join([state.students, nobody]))


def _score(probability: FloatArray, outcome: IntArray) -> tuple[float, float]:
    chosen = probability[np.arange(len(outcome)), outcome]
    loss = -np.log(np.maximum(chosen, 1e-7)).mean()
    return float(loss), float((probability.argmax(axis=1) == outcome).mean())


# ---- A good start: from a random one, the fit takes many steps to turn towards what matters ------


def _find_start(
    observations: Observations, n_stages: int, k: int, order: IntArray, seed: int
) -> tuple[Gaussians, Gaussians, Gaussians]:
    """Return students, items and prior to begin with: one general ability is fitted, to the first
    students of a random `order`, and the other dimensions begin where its residuals vary most;
    without guessing, or the prior shrinks those away before they have turned.
    """
    n_students, n_items = len(order), observations.n_items
    n_answers = np.diff(observations.start)
    is_first = np.zeros(n_students, bool)
    n_first = np.searchsorted(np.cumsum(n_answers[order]), _MAX_START_ANSWERS) + 1
    is_first[order[:n_first]] = True
    rows = np.repeat(is_first, n_answers)
    columns = observations.item[rows], observations.is_right[rows], observations.is_used[rows]
    first = Observations(np.append(0, np.cumsum(n_answers[is_first])), *columns, n_items)
    stage = np.repeat(np.arange(n_stages), n_items // n_stages)
    prior = Gaussians(np.zeros((n_stages, 2)), np.tile(np.diag([0.3, 1.0]), (n_stages, 1, 1)))
    # Whether an answer is right depends on the ability; which distractor is chosen, rather not.
    prior.mean[0, 0] = 1
    state = ItemResponseModel(
        students=model.standard_normal(is_first.sum(), 1),
        items=Gaussians(prior.mean[stage].astype("f"), np.zeros((n_items, 2, 2), "f")),
        prior=prior,
        guessing=np.zeros(n_items, np.float32),
        student_ids=order,
        question_ids=stage,
    )
    for _ in range(_N_START_STEPS):
        state = blocks.run_step(first, state)

    # From (general slope, intercept) to (general slope, other slopes, intercept).
    ends = [0, k]
    mean, prior_mean = np.zeros((n_items, k + 1), np.float32), np.zeros((n_stages, k + 1))
    mean[:, ends], prior_mean[:, ends] = state.items.mean, state.prior.mean
    mean[:, 1:k] = _SLOPE * _find_residual_directions(first, state, k - 1, seed)
    covariance = np.zeros((n_items, k + 1, k + 1), np.float32)
    prior_covariance = np.tile(_SLOPE_VARIANCE * np.eye(k + 1), (n_stages, 1, 1))
    prior_covariance[np.ix_(range(n_stages), ends, ends)] = state.prior.covariance
    students = model.standard_normal(n_students, k)
    students.mean[is_first, 0] = state.students.mean[:, 0]
    return students, Gaussians(mean, covariance), Gaussians(prior_mean, prior_covariance)


def _find_residual_directions(
    observations: Observations, state: ItemResponseModel, n: int, seed: int
) -> FloatArray:
    """Return the leading right singular vectors of the residuals, (items, n), of mean square 1 over
    the answers, by randomised subspace iteration (Halko, Martinsson and Tropp 2011, algorithm 4.4).
    """
    if n == 0:
        return np.zeros((observations.n_items, 0))
    student, item = blocks.number_rows(observations.start), observations.item
    moments = blocks.logit_moments(state.students, state.items, student, item)
    residual = observations.is_right - model.expected_probability(*moments)
    residual *= observations.is_used
    # Rows and columns scaled by the root of their length: noise alone is then even.
    n_answers = np.bincount(item, minlength=observations.n_items)
    item_scale = 1 / np.sqrt(n_answers + np.float32(_SHRINKAGE))
    student_scale = 1 / np.sqrt(np.diff(observations.start) + np.float32(_SHRINKAGE))
    residual *= student_scale[student] * item_scale[item]
    matrix = observations.matrix(residual.astype(np.float32), observations.start)
    parts = [matrix[rows] for rows in observations.chunks()]

    size = min(n + _OVERSAMPLING, observations.n_items)
    basis = np.random.default_rng(seed).standard_normal((observations.n_items, size))
    for _ in range(np.clip(_LOOKED_AT // len(item), _MIN_ROUNDS, _MAX_ROUNDS)):
        basis = np.linalg.qr(basis)[0].astype(np.float32)
        images = blocks.in_threads(lambda part: part.T @ (part @ basis), parts)  # noqa: B023
        basis = sum(images, np.zeros(basis.shape))
    # The leading left singular vectors of the image, which spans the leading directions.
    directions = np.linalg.svd(basis, full_matrices=False)[0][:, :n] * item_scale[:, None]
    square = (n_answers[:, None] * directions**2).sum(axis=0) / n_answers.sum()
    directions /= np.sqrt(np.maximum(square, 1e-30))
    return np.pad(np.clip(directions, -3, 3), [(0, 0), (0, n - directions.shape[1])])
