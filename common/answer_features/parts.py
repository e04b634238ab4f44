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

# About this many training answers are held out in all, so that features are computed for them. It
# may be a fifth more, since at least one part is held out. Boosted trees hardly learn more from
# more answers.
_MAX_HELD_OUT = 125_000
# Number of parts if there are at most `_MAX_HELD_OUT` answers. Every part is held out in turn, so
# the features are computed from nine tenths of the answers.
_N_PARTS = 10
# Smallest number of parts if there are more than `_MAX_HELD_OUT` answers.
_MIN_PARTS_OF_MANY = 5
# With more parts than this, only one part is held out, less than 2 % of the answers. The fit
# without this part serves the template too: a fit of all answers would hardly differ.
_MANY_PARTS = 50


@dataclass(frozen=True)
class Part:
    """Rows of the pairs, either held-out training answers or the template, with their features."""

    # The rows, shape (rows,).
    rows: IntArray
    # `Known.outcome_of_option` of the `Known` from which the features are computed.
    outcome_of_option: IntArray
    # A row for each of `rows`, a float32 column for each feature.
    table: pd.DataFrame


@dataclass(frozen=True)
class Split:
    """How training answers are cut into parts, and which parts are held out in turn."""

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
        n_parts = max(_MIN_PARTS_OF_MANY, n_answers // _MAX_HELD_OUT)
    part = np.random.default_rng(seed).permutation(n_answers) % n_parts
    # The number of parts that hold at most `_MAX_HELD_OUT` answers together.
    n_within_limit = _MAX_HELD_OUT * n_parts // max(n_answers, 1)
    return Split(part, n_parts, n_held_out=min(max(1, n_within_limit), n_parts))


def tables(pairs: Pairs, answers: pd.DataFrame, groups: Sequence[str], seed: int) -> Iterator[Part]:
    """Yield the held-out parts of the training answers with their features, then the template.

    The features of a held-out part use the outcomes of all other training answers. The features of
    the template use the outcomes of all training answers. There is one exception: if less than 2 %
    of the training answers are held out, the features of the template do not use the outcomes of
    the held-out answers either. One fit then serves the held-out part and the template. Shows a
    progress bar on a terminal.

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
    starts = _fit_starts(pairs, answers, groups, split)
    template = np.arange(len(answers), len(pairs))
    if split.n_parts > _MANY_PARTS:
        # One fit for both: it knows all answers but those of the held-out part.
        known = starts[0]
        held_out = np.flatnonzero(split.part < split.n_held_out)
        whole = table(pairs, known, np.append(held_out, template), groups)
        n = len(held_out)
        yield Part(held_out, known.outcome_of_option, whole[:n])
        yield Part(template, known.outcome_of_option, whole[n:])
        return

    def describe_part(number: int) -> Part:
        # This start has seen no outcome of the part, see `_fit_starts`.
        start = starts[number % len(starts)]
        if split.n_held_out == 1:
            # The start knows all answers but this part.
            known = start
        else:
            known = Known(pairs, answers, split.part == number, start.model)
        rows = np.flatnonzero(split.part == number)
        return Part(rows, known.outcome_of_option, table(pairs, known, rows, groups))

    parts = in_threads(describe_part, range(split.n_held_out))
    yield from tqdm(parts, "features", split.n_held_out, disable=None)
    known = Known(pairs, answers, None, starts[0].model)
    yield Part(template, known.outcome_of_option, table(pairs, known, template, groups))


def _fit_starts(
    pairs: Pairs, answers: pd.DataFrame, groups: Sequence[str], split: Split
) -> list[Known]:
    """Return one or two `Known` with fitted models, from which the fits for the parts continue.

    A fit for a part takes fewer steps if it continues from a model, a start, that has seen no
    outcome of the part. A single start, which knows no held-out answer, can serve all parts. If
    most answers are held out, such a start would know too little. Then there are two: start 0 knows
    no answer of the held-out even parts and serves these; start 1 does the same for the odd ones.
    Only the group `model` uses the starts. In the group `options`, starts lowered the accuracy by
    0.0007.
    """
    n_starts = 2 if split.n_held_out > split.n_parts / 2 else 1

    def fit_start(start: int) -> Known:
        is_unknown = (split.part < split.n_held_out) & (split.part % n_starts == start)
        known = Known(pairs, answers, is_unknown)
        if "model" in groups:
            known.fit_model(pairs)
        return known

    return list(in_threads(fit_start, range(n_starts)))


def table(pairs: Pairs, known: Known, rows: IntArray, groups: Sequence[str]) -> pd.DataFrame:
    """Compute the features of some rows of the pairs whose outcomes are not `known`.

    Parameters
    ----------
    pairs
        From `read_pairs`.
    known
        The outcomes that the features may use.
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

    # Compute the groups that take most memory early, while few columns are stored: the first one
    # (`model`), then the others from last to first.
    in_parallel = [name for name in groups if not GROUPS[name].uses_nearest]
    in_parallel = [*in_parallel[:1], *reversed(in_parallel[1:])]
    by_group = dict(zip(in_parallel, in_threads(compute, in_parallel), strict=True))
    # Compute these groups one after the other, since `asked.nearest` uses all threads by itself.
    for name in groups:
        if GROUPS[name].uses_nearest:
            by_group[name] = compute(name)
    columns = {key: column for name in groups for key, column in by_group[name].items()}
    # Without copy=False, pandas would copy all columns to one array, perhaps the largest of all.
    return pd.DataFrame(columns, copy=False)
