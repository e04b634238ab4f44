"""Fit the posterior to answers: sort the answers, find a start, make steps until they gain little.

MODEL.md in this folder explains the words: items, stages, outcomes, contexts, levels, nodes,
leaves.
"""

from dataclasses import dataclass, replace

from common import progress
from common.answers import find_ids, number_ids
from common.arrays import BoolArray, FloatArray, IntArray
from common.item_response import model
from common.item_response.context import (
    EFFECT_VARIANCE,
    START_VARIANCE,
    Level,
    SharedEffects,
    make_label,
)
from common.item_response.observations import Observations, sort_answers
from common.item_response.prediction import find_effects, outcome_probability, predict_stages
from common.item_response.start import find_start
from common.item_response.steps import Posterior, run_step
from common.run_log import LogEvent
from common.threads import in_threads

import numpy as np
from tqdm import tqdm

# Share of the answers that early stopping holds out.
_HELD_OUT_SHARE = 0.05
# Largest number of answers that early stopping holds out.
_MAX_HELD_OUT = 100_000
# Early stopping judges the fit by the loss on held-out answers. If fewer than `_MIN_HELD_OUT`
# answers can be held out, this loss would be too noisy: the fit then takes a fixed number of steps,
# `_STEPS_WITHOUT_HELD_OUT`.
_MIN_HELD_OUT = 50
_STEPS_WITHOUT_HELD_OUT = 20
# Largest number of steps with early stopping.
_MAX_STEPS = 60
# The fit ends if the loss on held-out answers has fallen by a smaller share than `_MIN_GAIN` over
# the last `_PATIENCE` steps.
_PATIENCE = 2
_MIN_GAIN = 1.25e-3
# The steps do not learn from the answers that are held out. If at least this share of all answers
# is held out, the fit ends with one more step, which learns from all answers.
_SHARE_WORTH_A_STEP = 0.01
# With more answers than this, a step takes long, so the fit uses momentum to need fewer steps. A
# fit with contexts never uses momentum, because momentum can make its steps oscillate.
_MANY_ANSWERS = 2_000_000
# With momentum, the parameters of the questions move on before each step: by this factor times
# their latest change. The first two steps have no momentum.
_MOMENTUM = np.float32(0.7)
# A fit with momentum uses this number instead of `_MIN_GAIN`. It is larger, so the fit ends
# earlier.
_MIN_GAIN_WITH_MOMENTUM = 3e-3
# Smaller probabilities of an outcome are raised to this one, so that the held-out loss is finite.
_MIN_PROBABILITY = 1e-7


@dataclass(frozen=True)
class Settings:
    """The settings of a fit; `ItemResponse` explains them."""

    n_dimensions: int
    guessing: float
    seed: int
    n_steps: int | None
    log_event: LogEvent


@dataclass(frozen=True)
class Answers:
    """Answers to learn from, in any order."""

    # Ids of the students and the questions, shape (answers,). They need not be consecutive.
    student: IntArray
    question: IntArray
    # Shape (answers,). If answers are right or wrong, a right answer has the outcome 0 and a wrong
    # one 1. If answers are options, the right option has the outcome 0, the most popular wrong
    # option 1, the next wrong option 2, and so on.
    outcome: IntArray
    # Ids of contexts, shape (answers, levels), the coarsest level first.
    context: IntArray
    # The largest number of stages that a question has: 1 if answers are right or wrong, else the
    # largest number of wrong options. It is also the highest possible outcome.
    n_stages: int
    # How many outcomes each answer can have, shape (answers,): one more than its question has
    # stages. None if all questions have `n_stages` stages.
    n_outcomes: IntArray | None = None

    @classmethod
    def of_right_or_wrong(
        cls, student: IntArray, question: IntArray, is_right: IntArray, context: IntArray
    ) -> "Answers":
        """Return answers that are right (`is_right` is 1) or wrong (`is_right` is 0)."""
        return cls(student, question, outcome=1 - is_right, context=context, n_stages=1)

    def take(self, rows: BoolArray) -> "Answers":
        """Return the answers for which `rows` is True."""
        return Answers(
            self.student[rows],
            self.question[rows],
            self.outcome[rows],
            self.context[rows],
            self.n_stages,
            None if self.n_outcomes is None else self.n_outcomes[rows],
        )


@dataclass(frozen=True)
class HeldOutScore:
    """How well the state after a step predicts the answers held out for early stopping."""

    # Mean of −log P(outcome).
    loss: float
    # Share of answers whose most probable outcome is the true one.
    accuracy: float


def fit_posterior(
    answers: Answers,
    settings: Settings,
    start: Posterior | None = None,
    *,
    is_trial: bool = False,
) -> tuple[Posterior, list[HeldOutScore]]:
    """Fit the model; return the posterior, and the score on held-out answers after each step.

    If a posterior `start` is given, the fit continues from this posterior, which must have been
    fitted to some of these answers with the same settings. Only fits of right and wrong answers can
    continue from another fit. A progress bar is shown on a terminal, unless the fit continues from
    `start` or is a trial, which only tries out settings.

    Control-C ends the fit early, with the state after the last complete step. If no step is
    complete, or if the fit is a trial, Control-C stops the program.
    """
    rng = np.random.default_rng(settings.seed)
    (student_ids, student), (question_ids, question) = in_threads(
        number_ids, [answers.student, answers.question]
    )
    student_order = rng.permutation(len(student_ids))
    shows_progress = start is None and not is_trial
    # The plan says after how many steps the fit ends at the latest, by which rule it may end
    # earlier, and which share of the answers is held out for this rule.
    plan = _make_plan(answers, settings, shows_progress=shows_progress, is_trial=is_trial)
    is_held_out = rng.random(len(student), np.float32) < plan.held_out_share
    held_out = answers.take(is_held_out)
    data = _sort(answers, student, question, ~is_held_out, student_ids, question_ids)
    # Free the memory of large arrays.
    del student, question, is_held_out
    if start is None:
        state = _begin(data, settings, student_order)
    else:
        # In `data`, each context has a number that only this fit knows. So `_continue` also gets
        # the ids of the contexts, to find their effects in the earlier fit, `start`.
        state = _continue(data, settings, start, answers.context)
    state, history = _run_steps(data.observations, state, plan, held_out, settings.log_event)
    # Add an average student after the last one: predictions for unknown students use this row.
    average_student = model.standard_normal(1, settings.n_dimensions)
    students = model.join([state.students, average_student])
    return replace(state, students=students), history


# ---- The answers as steps need them ------------------------------------------------------------


@dataclass(frozen=True)
class _SortedAnswers:
    """Answers as steps need them, with the ids of their students, questions and contexts."""

    observations: Observations
    n_stages: int
    # Distinct ids, in increasing order.
    student_ids: IntArray
    # Distinct ids, in increasing order.
    question_ids: IntArray
    # For each level of contexts, the distinct ids of the contexts that have answers, in increasing
    # order.
    context_ids: tuple[IntArray, ...]
    # A leaf is a student in a context of the last level. All answers of a leaf have the same
    # contexts. To look them up, `leaf_row` holds the row of one of these answers in `Answers`, for
    # each leaf.
    leaf_row: IntArray
    # For each leaf, the position of its student in `student_ids`.
    leaf_student: IntArray


def _sort(
    answers: Answers,
    student: IntArray,
    question: IntArray,
    is_used: BoolArray,
    student_ids: IntArray,
    question_ids: IntArray,
) -> _SortedAnswers:
    """Sort answers by student and context. An answer gets a row for each stage that it reaches.

    Right and wrong answers have one stage, options have several (see `_reached_stages`). A context
    has an effect of its own in each stage: what makes a student answer rightly in a context may
    have nothing to do with which wrong option the student prefers there.

    `student` and `question` are numbers, the positions of ids in `student_ids` and `question_ids`.
    """
    n_stages = answers.n_stages
    answer_row, stage = _reached_stages(answers.outcome, n_stages, answers.n_outcomes)
    context_ids = []
    labels = []
    for level in answers.context.T:
        ids, context_number = number_ids(np.ascontiguousarray(level))
        context_ids.append(ids)
        labels.append(make_label(context_number[answer_row], stage, n_stages))
    order, start, levels = sort_answers(student[answer_row], labels, len(student_ids))
    del labels

    # An item is a question in one stage. Each stage has one more item after its questions, which
    # stands for unknown questions in predictions.
    n_questions = len(question_ids) + 1
    item = question[answer_row] + stage * np.int32(n_questions)
    is_passed = answers.outcome[answer_row] == stage
    columns = item, is_passed, is_used[answer_row]
    item, is_passed, is_used = in_threads(lambda column: column.take(order), columns)
    observations = Observations(
        start=start,
        item=item,
        is_right=is_passed,
        is_used=is_used,
        n_items=n_stages * n_questions,
        levels=levels,
    )
    if levels:
        first_of_leaf = levels[-1].start[:-1]
        leaf_row = answer_row[order[first_of_leaf]]
    else:
        leaf_row = np.zeros(0, np.int32)
    return _SortedAnswers(
        observations=observations,
        n_stages=n_stages,
        student_ids=student_ids,
        question_ids=question_ids,
        context_ids=tuple(context_ids),
        leaf_row=leaf_row,
        leaf_student=student[leaf_row],
    )


def _reached_stages(
    outcome: IntArray, n_stages: int, n_outcomes: IntArray | None
) -> tuple[IntArray, IntArray]:
    """Return all pairs of an answer and a stage that the answer reaches.

    The result has two arrays of int32 with an element for each pair: the row of the answer, and the
    stage.

    The possible outcomes of an answer are numbered from 0. Stage 0 asks whether the outcome is 0,
    stage 1 whether it is 1, and so on. An answer reaches the stages up to that of its outcome, and
    passes this one. The last outcome needs no stage: a question with n outcomes has n − 1 stages.
    An answer with the last outcome reaches all of them, and passes none.
    """
    # Every answer reaches stage 0.
    answer_row = np.arange(len(outcome), dtype=np.int32)
    stage = np.zeros(len(outcome), np.int32)
    for later_stage in range(1, n_stages):
        is_reached = outcome >= later_stage
        if n_outcomes is not None:
            has_stage = later_stage < n_outcomes - 1
            is_reached &= has_stage
        reached = np.flatnonzero(is_reached).astype(np.int32)
        answer_row = np.append(answer_row, reached)
        stage = np.append(stage, np.full_like(reached, later_stage))
    return answer_row, stage


# ---- The state that the steps begin with -------------------------------------------------------


def _begin(data: _SortedAnswers, settings: Settings, student_order: IntArray) -> Posterior:
    """Return the state before the first step of a fit that does not continue from another fit.

    `find_start` derives abilities and parameters of questions from the answers. All effects of
    contexts, such as quizzes, begin with the mean 0 and the variance `START_VARIANCE`. There are
    effects of a single student in a context (`effects`, with the prior variances `variance`), and
    effects that all students share in a context (`shared`).

    `student_order` is a random order of the students. To save time, `find_start` looks only at the
    first students of this order.
    """
    start = find_start(
        data.observations, data.n_stages, settings.n_dimensions, student_order, settings.seed
    )
    levels = data.observations.levels
    return Posterior(
        students=start.students,
        items=start.items,
        prior=start.prior,
        guessing=_guessing_by_item(data, settings.guessing),
        student_ids=data.student_ids,
        question_ids=data.question_ids,
        effects=(_leaf_effects_at_start(levels, settings.n_dimensions),),
        variance=np.full((len(levels), data.n_stages), START_VARIANCE),
        shared=_shared_effects_at_start(data),
        context_ids=data.context_ids,
        levels=levels,
    )


def _leaf_effects_at_start(levels: tuple[Level, ...], n_dimensions: int) -> FloatArray:
    """Return the effects of students in contexts before the first step.

    A leaf is a student in a context of the last level (MODEL.md explains levels). On every level,
    the student has an effect in the context that holds the leaf. The sum of these effects, the
    total effect, is added to the logits of the answers in the leaf.

    The result has a row for each leaf: mean of the total effect, its variance, and its covariances
    with the abilities.
    """
    n_leaves = len(levels[-1].label) if levels else 0
    effects = np.zeros((n_leaves, 2 + n_dimensions), np.float32)
    # The effects of different levels are independent, so their variances add up.
    effects[:, EFFECT_VARIANCE] = len(levels) * START_VARIANCE
    return effects


def _shared_effects_at_start(data: _SortedAnswers) -> SharedEffects:
    """Return the effects that all students share in a context, before the first step.

    In each stage, there is one effect for each context of the last level, and one more for unknown
    contexts. Right and wrong answers have one stage; options have several (see MODEL.md).
    """
    n_contexts = len(data.context_ids[-1]) if data.context_ids else 0
    n_effects = (n_contexts + 1) * data.n_stages
    return SharedEffects(
        mean=np.zeros(n_effects, np.float32),
        variance=np.full(n_effects, START_VARIANCE, np.float32),
        prior=np.full(data.n_stages, START_VARIANCE),
    )


def _continue(
    data: _SortedAnswers, settings: Settings, start: Posterior, context: IntArray
) -> Posterior:
    """Return the state before the first step of a fit that continues from the posterior `start`.

    The answers must be right and wrong answers, not options. Students, questions and contexts that
    `start` does not know begin as average ones.

    Parameters
    ----------
    data
        The answers of the fit, sorted.
    settings
        The settings of the fit.
    start
        The posterior of an earlier fit.
    context
        The ids of the contexts of the answers before they were sorted, shape (answers, levels).
    """
    # For an id that `start` does not know, `find_ids` returns the number of known ids. At this
    # position, just after the known ones, `start` keeps an average student and an average question.
    student_position = find_ids(start.student_ids, data.student_ids)
    question_position = find_ids(start.question_ids, data.question_ids)
    # The result needs an average question after its last question too, which stands for unknown
    # questions in predictions.
    average_question = len(start.question_ids)
    item_position = np.append(question_position, average_question)
    levels = data.observations.levels
    if levels:
        # A leaf is a student in a context of the last level, such as a quiz. All answers in a leaf
        # have the same contexts, so the contexts of one answer are enough to look up its effects.
        leaf_effects, _ = find_effects(
            start, student_position[data.leaf_student], context[data.leaf_row]
        )
        shared = start.shared_effects_in(data.context_ids[-1])
    else:
        leaf_effects = _leaf_effects_at_start(levels, settings.n_dimensions)
        shared = start.shared
    return Posterior(
        students=start.students.take(student_position),
        items=start.items.take(item_position),
        prior=start.prior,
        guessing=_guessing_by_item(data, settings.guessing),
        student_ids=data.student_ids,
        question_ids=data.question_ids,
        effects=(leaf_effects,),
        variance=start.variance,
        shared=shared,
        context_ids=data.context_ids,
        levels=levels,
    )


def _guessing_by_item(data: _SortedAnswers, guessing: float) -> FloatArray:
    """Return each item's probability that a student who does not know the answer passes the item.

    An item is a question in one stage. To pass the first stage means to answer rightly, which a
    guess does with the probability `guessing`. In later stages, which tell wrong options apart, the
    probability is 0.
    """
    by_item = np.zeros(data.observations.n_items, np.float32)
    by_item[: len(data.question_ids) + 1] = guessing
    return by_item


# ---- The steps -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Plan:
    """Settings of the steps of a fit."""

    max_steps: int
    # Share of the answers that early stopping holds out; 0 without early stopping.
    held_out_share: float
    # The fit ends if the last `_PATIENCE` steps together have lowered the held-out loss by a
    # smaller share than this.
    min_gain: float
    uses_momentum: bool
    # Whether the fit ends with one more step, which learns from the held-out answers too.
    learns_from_held_out: bool
    shows_progress: bool
    # Whether the fit only tries out settings. If the user interrupts such a fit by Control-C, its
    # result is useless, so the program stops.
    is_trial: bool


def _make_plan(
    answers: Answers, settings: Settings, *, shows_progress: bool, is_trial: bool
) -> _Plan:
    """Choose the settings of the steps, depending on the number of answers and on contexts.

    A fit stops early if the user sets no number of steps, and enough answers can be held out: it
    ends once its steps hardly improve the predictions of the held-out answers any more.
    """
    n_answers = len(answers.student)
    share = min(_HELD_OUT_SHARE, _MAX_HELD_OUT / n_answers)
    stops_early = settings.n_steps is None and share * n_answers >= _MIN_HELD_OUT
    default_steps = _MAX_STEPS if stops_early else _STEPS_WITHOUT_HELD_OUT
    # With very many answers, a step takes long. Momentum saves steps, but it can make the steps of
    # a fit with contexts oscillate.
    has_contexts = answers.context.shape[1] > 0
    uses_momentum = n_answers > _MANY_ANSWERS and not has_contexts
    # The steps do not learn from the held-out answers. If these are numerous enough to be worth one
    # more step, the fit ends with a step that learns from all answers.
    learns_from_held_out = stops_early and share >= _SHARE_WORTH_A_STEP
    return _Plan(
        max_steps=settings.n_steps or default_steps,
        held_out_share=share if stops_early else 0.0,
        min_gain=_MIN_GAIN_WITH_MOMENTUM if uses_momentum else _MIN_GAIN,
        uses_momentum=uses_momentum,
        learns_from_held_out=learns_from_held_out,
        shows_progress=shows_progress,
        is_trial=is_trial,
    )


def _run_steps(
    observations: Observations,
    state: Posterior,
    plan: _Plan,
    held_out: Answers,
    log_event: LogEvent,
) -> tuple[Posterior, list[HeldOutScore]]:
    """Make the steps of a fit; return the last state, and the held-out score after each step.

    The steps end at `plan.max_steps`, or when they hardly lower the held-out loss any more.
    """
    history: list[HeldOutScore] = []
    n_done = 0
    items_before = state.items.mean
    # With disable=None, tqdm shows the bar on a terminal only. With leave=None, the bar stays on
    # the screen at the end, unless it is inside another bar.
    disable = None if plan.shows_progress else True
    with tqdm(desc="item response", total=plan.max_steps, disable=disable, leave=None) as bar:
        try:
            while n_done < plan.max_steps and not _gains_too_little(history, plan.min_gain):
                items_now = state.items.mean
                # The step starts from `begin`. `state` changes only when the step is complete: if
                # the user interrupts the step, `state` is still the result of the previous step.
                begin = state
                if plan.uses_momentum and n_done >= 2:
                    ahead = items_now + _MOMENTUM * (items_now - items_before)
                    begin = replace(state, items=replace(state.items, mean=ahead))
                items_before = items_now
                state = run_step(observations, begin)
                n_done += 1
                if plan.held_out_share > 0:
                    score = _score(state, held_out)
                    history.append(score)
                    bar.set_postfix_str(f"loss={score.loss:.4f}", refresh=False)
                    log_event(
                        "step",
                        step=n_done,
                        held_out_loss=score.loss,
                        held_out_accuracy=score.accuracy,
                    )
                bar.update()
            if n_done < plan.max_steps:
                bar.set_postfix_str("stopped early")
            if plan.learns_from_held_out:
                all_used = np.ones_like(observations.is_used)
                state = run_step(replace(observations, is_used=all_used), state)
        except KeyboardInterrupt:
            if n_done == 0 or plan.is_trial:
                raise
            progress.stop_early(bar, f"going on with the model after step {n_done}")
    return state, history


def _gains_too_little(history: list[HeldOutScore], min_gain: float) -> bool:
    """Return whether the last `_PATIENCE` steps have hardly lowered the held-out loss."""
    if len(history) <= _PATIENCE:
        return False
    before = history[-1 - _PATIENCE].loss
    return before - history[-1].loss < min_gain * before


def _score(state: Posterior, held_out: Answers) -> HeldOutScore:
    """Return loss and accuracy of the predictions of held-out answers."""
    probability = _predict_outcomes(state, held_out)
    loss = _losses(probability, held_out).mean()
    accuracy = (probability.argmax(axis=1) == held_out.outcome).mean()
    return HeldOutScore(float(loss), float(accuracy))


def outcome_losses(state: Posterior, held_out: Answers) -> FloatArray:
    """Return −log P(outcome) of each held-out answer by the posterior `state`, shape (answers,)."""
    return _losses(_predict_outcomes(state, held_out), held_out)


def _predict_outcomes(state: Posterior, held_out: Answers) -> FloatArray:
    """Return the probability of each possible outcome of the answers, shape (answers, outcomes)."""
    passing = predict_stages(state, held_out.student, held_out.question, held_out.context)
    return outcome_probability(passing, held_out.n_outcomes)


def _losses(probability: FloatArray, held_out: Answers) -> FloatArray:
    p_outcome = probability[np.arange(len(probability)), held_out.outcome]
    losses: FloatArray = -np.log(np.maximum(p_outcome, _MIN_PROBABILITY))
    return losses
