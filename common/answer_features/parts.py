"""Features of held-out parts of the training answers, and of the template."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from common.answer_features.asked import Asked, Columns
from common.answer_features.groups import GROUPS
from common.answer_features.known import Known
from common.answer_features.pairs import Pairs
from common.arrays import IntArray
from common.threads import in_threads

import numpy as np
import pandas as pd
from tqdm import tqdm

# Features are computed for about this many held-out training answers in all, since boosted trees
# hardly learn more from more answers. Only whole parts are held out, and at least one. A part may
# be up to a fifth larger than this number, since the number of parts is rounded down.
_MAX_HELD_OUT = 125_000
# Number of parts if there are at most `_MAX_HELD_OUT` answers. Every part is held out in turn, and
# its features are computed from the other nine tenths of the answers.
_N_PARTS = 10
# Smallest number of parts if there are more than `_MAX_HELD_OUT` answers.
_MIN_PARTS_OF_MANY_ANSWERS = 5
# With more parts than this, only one part is held out, which has less than 2 % of the training
# answers. The features of this part come from a model fitted to the other training answers. To save
# time, the features of the pairs to be predicted come from the same model. They could come from a
# model fitted to all training answers, but that model would hardly differ.
_MANY_PARTS = 50


@dataclass(frozen=True)
class Part:
    """Rows of the pairs, either held-out training answers or the template, with their features."""

    # The rows, shape (rows,).
    rows: IntArray
    # Rank of each option in its question: the right option has rank 0, the most popular wrong one
    # rank 1, and so on. Popularity is measured in the answers from which the features are computed.
    # Shape (questions, options).
    outcome_of_option: IntArray
    # A row for each of `rows`, a float32 column for each feature.
    table: pd.DataFrame


@dataclass(frozen=True)
class Split:
    """A split of the training answers into parts, some of which are held out, one at a time."""

    # The part of each answer, from 0, shape (answers,).
    part: IntArray
    n_parts: int
    # Parts 0 to `n_held_out` - 1 are held out.
    n_held_out: int


def cut_into_parts(n_answers: int, seed: int) -> Split:
    """Cut answers into parts at random, and choose how many of the parts are held out."""
    if n_answers <= _MAX_HELD_OUT:
        n_parts = _N_PARTS
    else:
        n_parts = max(_MIN_PARTS_OF_MANY_ANSWERS, n_answers // _MAX_HELD_OUT)
    part = np.random.default_rng(seed).permutation(n_answers) % n_parts
    # How many parts together have at most `_MAX_HELD_OUT` answers.
    n_within_limit = _MAX_HELD_OUT * n_parts // max(n_answers, 1)
    return Split(part, n_parts, n_held_out=min(max(1, n_within_limit), n_parts))


def tables(pairs: Pairs, answers: pd.DataFrame, groups: Sequence[str], seed: int) -> Iterator[Part]:
    """Yield the held-out parts of the training answers with their features, then the template.

    The template holds the pairs to be predicted. The features of a held-out part use the outcomes
    of all other training answers. The features of the template use the outcomes of all training
    answers. There is one exception: if less than 2 % of the training answers are held out, the
    features of the template do not use the outcomes of the held-out answers either. Then one fit
    gives the features of both the held-out part and the template. Shows a progress bar on a
    terminal.

    Parameters
    ----------
    pairs
        From `read_pairs`.
    answers
        The training answers that `read_pairs` got.
    groups
        From `available_groups`.
    seed
        The same seed holds out the same answers.

    Yields
    ------
    Part
        Its table has the columns of the groups, in their order.
    """
    split = cut_into_parts(len(answers), seed)
    first_known = _make_first_known(pairs, answers, groups, split)
    template = np.arange(len(answers), len(pairs))
    if split.n_parts > _MANY_PARTS:
        # Only one part is held out. Compute the features of this part and of the template in one
        # go, from the same known answers: all training answers outside the part.
        known = first_known[0]
        held_out = np.flatnonzero(split.part < split.n_held_out)
        whole = table(pairs, known, np.append(held_out, template), groups)
        n = len(held_out)
        yield Part(held_out, known.outcome_of_option, whole[:n])
        yield Part(template, known.outcome_of_option, whole[n:])
        return

    def describe_part(number: int) -> Part:
        # The fit for a part continues from a first model. If there are two first models, model 0
        # serves the parts with even numbers, and model 1 the parts with odd numbers.
        first = first_known[number % len(first_known)]
        if split.n_held_out == 1:
            # This is the only held-out part, and `first` has been fitted to all answers outside it.
            # So no further fit is needed.
            known = first
        else:
            known = Known(pairs, answers, split.part == number, first)
        rows = np.flatnonzero(split.part == number)
        return Part(rows, known.outcome_of_option, table(pairs, known, rows, groups))

    parts = in_threads(describe_part, range(split.n_held_out))
    yield from tqdm(parts, "features", split.n_held_out, disable=None)
    # With contexts, a new fit of the model takes long: continue from the first one. Otherwise begin
    # anew and choose the settings from all answers, as the item response samples do. With the group
    # `options`, begin anew too, since boosting then starts from the model of options. This group is
    # used for few answers only, so that a new fit is quick even with contexts.
    first = first_known[0]
    has_contexts = first.model is not None and first.model.uses_context
    continues = has_contexts and first.options_model is None
    known = Known(pairs, answers, first=first if continues else None)
    yield Part(template, known.outcome_of_option, table(pairs, known, template, groups))


def _make_first_known(
    pairs: Pairs, answers: pd.DataFrame, groups: Sequence[str], split: Split
) -> list[Known]:
    """Fit one or two first models, from which the fits for the held-out parts continue.

    The training answers are split into parts, numbered from 0, and the first `split.n_held_out`
    parts are held out. For each of them, a model is later fitted to all other answers. This takes
    fewer steps if the fit continues from a first model, which must not have seen any outcome of the
    part.

    Usually there is one first model, which serves all held-out parts. It is fitted to the answers
    that are in no held-out part. If more than half of the parts are held out, too few answers are
    left for such a model. Then there are two first models. Model 0 serves the held-out parts with
    even numbers, and is fitted to all answers outside these parts. Model 1 serves the held-out
    parts with odd numbers, and is fitted to all answers outside these parts.

    Returns a `Known` for each first model, with the answers that the model was fitted to. If the
    group `model` is in `groups`, the `Known` holds the fitted model of this group, and likewise for
    the group `options`. A fit for the group `options` does not continue from the parameters of the
    first model, since that lowered the accuracy by 0.0007. The fit only takes settings from the
    first model, such as the number of dimensions.
    """
    n_models = 2 if split.n_held_out > split.n_parts / 2 else 1

    def fit_first_model(number: int) -> Known:
        is_in_held_out_part = split.part < split.n_held_out
        # Whether each answer is in a part that this first model serves. If there are two models,
        # model 0 serves the parts with even numbers, and model 1 the others. A single model serves
        # all parts.
        is_served_by_model = split.part % n_models == number
        known = Known(pairs, answers, held_out=is_in_held_out_part & is_served_by_model)
        if "model" in groups:
            known.fit_model(pairs)
        if "options" in groups:
            known.fit_options(pairs)
        return known

    return list(in_threads(fit_first_model, range(n_models)))


def table(pairs: Pairs, known: Known, rows: IntArray, groups: Sequence[str]) -> pd.DataFrame:
    """Compute the features of some rows of the pairs, from the outcomes of other rows.

    Parameters
    ----------
    pairs
        From `read_pairs`.
    known
        The answers whose outcomes the features may use. None of `rows` may be among them.
    rows
        The rows of `pairs`, shape (rows,).
    groups
        Names of groups of features, keys of `GROUPS`.

    Returns
    -------
    DataFrame
        A row for each of `rows`. The columns, float32, depend only on `groups` and on which files
        there are.
    """
    asked = Asked(pairs, known, rows)

    def compute(name: str) -> Columns:
        """Return the columns of a group as float32."""
        columns = GROUPS[name].compute(asked)
        return {key: np.asarray(column, np.float32) for key, column in columns.items()}

    # Computing `asked.nearest` uses all threads by itself. So compute the groups that need it one
    # after the other, when all other groups are done.
    one_by_one = [name for name in groups if GROUPS[name].uses_nearest]
    in_parallel = [name for name in groups if not GROUPS[name].uses_nearest]
    # The computed columns are kept, so memory fills up over time. So start with the groups whose
    # computation takes most memory. In the order of `GROUPS`, these are the first group, `model`,
    # and the groups at the end. So compute the first group, then the last, the second to last, and
    # so on.
    in_parallel = [*in_parallel[:1], *reversed(in_parallel[1:])]
    columns_of_group = dict(zip(in_parallel, in_threads(compute, in_parallel), strict=True))
    for name in one_by_one:
        columns_of_group[name] = compute(name)
    columns: Columns = {}
    for name in groups:
        columns |= columns_of_group[name]
    # Without copy=False, pandas would copy all columns into one new array, which may need more
    # memory than anything else.
    return pd.DataFrame(columns, copy=False)
