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

# Features are computed for about this many held-out training answers in all. Boosted trees hardly
# learn more from more answers. Whole parts are held out, and at least one: a part may have up to a
# fifth more answers than this.
_MAX_HELD_OUT = 125_000
# Number of parts if there are at most `_MAX_HELD_OUT` answers. Every part is held out in turn, so
# the features are computed from nine tenths of the answers.
_N_PARTS = 10
# Smallest number of parts if there are more than `_MAX_HELD_OUT` answers.
_MIN_PARTS_OF_MANY_ANSWERS = 5
# With more parts than this, only one part is held out, less than 2 % of the training answers. The
# features of this part come from a model fitted to the other training answers. To save time, the
# features of the pairs to be predicted come from the same model, although these pairs could use all
# training answers: a model fitted to all of them would hardly differ.
_MANY_PARTS = 50


@dataclass(frozen=True)
class Part:
    """Rows of the pairs, either held-out training answers or the template, with their features."""

    # The rows, shape (rows,).
    rows: IntArray
    # Rank of each option of each question: 0 the right option, 1 the wrong one that is most popular
    # in the answers from which the features are computed, and so on. Shape (questions, options).
    outcome_of_option: IntArray
    # A row for each of `rows`, a float32 column for each feature.
    table: pd.DataFrame


@dataclass(frozen=True)
class Split:
    """The part of each training answer, and how many of the parts are held out, one at a time."""

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
    # The largest number of parts that have at most `_MAX_HELD_OUT` answers in total.
    n_within_limit = _MAX_HELD_OUT * n_parts // max(n_answers, 1)
    return Split(part, n_parts, n_held_out=min(max(1, n_within_limit), n_parts))


def tables(pairs: Pairs, answers: pd.DataFrame, groups: Sequence[str], seed: int) -> Iterator[Part]:
    """Yield the held-out parts of the training answers with their features, then the template.

    The features of a held-out part use the outcomes of all other training answers. The features of
    the template use the outcomes of all training answers. There is one exception: if less than 2 %
    of the training answers are held out, the features of the template do not use the outcomes of
    the held-out answers either. Then the same fit gives the features of the held-out part and those
    of the template. Shows a progress bar on a terminal.

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
        # Only one part is held out. Compute its features and those of the template in one go, from
        # the same known answers: all training answers outside the part.
        known = first_known[0]
        held_out = np.flatnonzero(split.part < split.n_held_out)
        whole = table(pairs, known, np.append(held_out, template), groups)
        n = len(held_out)
        yield Part(held_out, known.outcome_of_option, whole[:n])
        yield Part(template, known.outcome_of_option, whole[n:])
        return

    def describe_part(number: int) -> Part:
        # Answers that are not in the part, with models that are fitted to them (see
        # `_make_first_known`).
        first = first_known[number % len(first_known)]
        if split.n_held_out == 1:
            # `first` knows all other answers already, so no further fit is needed.
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
    """Fit one or two models from which the fits for the held-out parts continue.

    For each held-out part, a model is fitted to all other answers. This takes fewer steps if the
    fit continues from a first model. The first model must not have seen any outcome of the part.

    Usually one first model, which knows no held-out answer, serves all parts. If more than half of
    the parts are held out, such a model would know too little. Then there are two models: model 0
    serves the parts with even numbers and knows none of their answers, model 1 serves the parts
    with odd numbers and knows none of their answers.

    Returns, for each first model, the `Known` with the answers that the model was fitted to. It
    holds the fitted models of those of the groups `model` and `options` that are in `groups`. A fit
    for the group `options` does not continue from the first model, which lowered the accuracy by
    0.0007: it only takes settings from this model, such as the number of dimensions.
    """
    n_models = 2 if split.n_held_out > split.n_parts / 2 else 1

    def fit_first_model(number: int) -> Known:
        is_unknown = (split.part < split.n_held_out) & (split.part % n_models == number)
        known = Known(pairs, answers, is_unknown)
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
        Names of groups.

    Returns
    -------
    DataFrame
        A row for each of `rows`. The columns, float32, depend only on `groups` and on which files
        there are.
    """
    asked = Asked(pairs, known, rows)

    def compute(name: str) -> Columns:
        columns = GROUPS[name].compute(asked)
        return {key: np.asarray(column, np.float32) for key, column in columns.items()}

    one_by_one = [name for name in groups if GROUPS[name].uses_nearest]
    in_parallel = [name for name in groups if not GROUPS[name].uses_nearest]
    # The computed columns are kept, so memory fills up over time. Therefore start with the groups
    # whose computation takes most memory: the first group (`model`), then the last ones.
    in_parallel = [*in_parallel[:1], *reversed(in_parallel[1:])]
    by_group = dict(zip(in_parallel, in_threads(compute, in_parallel), strict=True))
    # `asked.nearest` uses all threads by itself.
    for name in one_by_one:
        by_group[name] = compute(name)
    # The columns of the result are in the order of `groups`.
    columns = {key: column for name in groups for key, column in by_group[name].items()}
    # Without copy=False, pandas would copy all columns to one array, perhaps the largest of all.
    return pd.DataFrame(columns, copy=False)
