"""What is known about an answer before it is given, as a table of features: one row, one answer.

    pairs = read_pairs(answers, template, metadata)     whom was asked what, and when; no outcomes
    *parts, asked = tables(pairs, answers, groups, seed)

Each of the parts holds training answers with features (`GROUPS`) from all outcomes but its own; the
last one is the template. A success rate that counts the answer itself would leak its outcome, so no
function is ever given the outcomes of the rows it is asked for: they are held out of `Known`. A
share of 10 or 20 % at a time, since features of rows for which much less is known would be another
distribution than those of the template: a model that learned from them would trust them too little.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from common.answer_features.groups import GROUPS, NEEDS, fit_model, look_near
from common.answer_features.known import Columns, Known, cut
from common.answer_features.pairs import SUBJECT_LEVELS, Pairs, read_pairs
from common.arrays import IntArray
from common.errors import InputError
from common.threads import in_threads

import numpy as np
import pandas as pd
from tqdm import tqdm

__all__ = ["GROUPS", "Known", "Pairs", "available_groups", "read_pairs", "table", "tables"]
# Of so few training answers, held out of all, nobody misses the outcomes.
_FEW = 0.02


def available_groups(
    pairs: Pairs,
    answers: pd.DataFrame,
    wanted: Sequence[str] | None = None,
    leave_out: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return the names of the groups whose files are there: all but those to `leave_out`.

    Raises
    ------
    InputError
        If a group that is `wanted` needs a file, or a column, that is not there.
    """
    is_there = (
        "AnswerValue" in answers,
        SUBJECT_LEVELS[0] in pairs.numbers,
        pairs.students is not None,
        pairs.circumstances is not None,
    )
    absent = [need for need, found in zip(NEEDS.items(), is_there, strict=True) if not found]
    missing = {name: needs for needs, names in absent for name in names}
    for name in wanted or ():
        if name in missing:
            raise InputError(f"the features '{name}' need {missing[name]}, which are not there")
    chosen = wanted or [name for name in GROUPS if name not in leave_out]
    return tuple(name for name in chosen if name not in missing)


class Part(NamedTuple):
    """Answers that are held out, or the template, and what is known about them without outcomes."""

    rows: IntArray  # Their places in the pairs.
    outcome_of_option: IntArray  # Of `Known`, by all other answers.
    table: pd.DataFrame  # A row for each, a column of float32 for each feature.


def tables(pairs: Pairs, answers: pd.DataFrame, groups: Sequence[str], seed: int) -> Iterator[Part]:
    """Yield parts of the training answers with their features, which no outcome of theirs is in.

    Last comes the template, with all training answers known; where hardly any are held out, with
    all others known, so that both are told at once. Shows a progress bar on a terminal.

    The model of `model` begins where one has got that knows none of the parts' outcomes; where
    these are most of the answers, one that knows neither this part's nor those of every other part,
    so that there are two, each for half of the parts. That of `options` is fitted anew each time:
    going on from another cost 0.0007 of accuracy.

    Parameters
    ----------
    pairs, answers
        From `read_pairs`, and the training answers that it was given.
    groups
        From `available_groups`.
    seed
        The same seed holds out the same answers.
    """
    part, n_held_out = cut(len(answers), seed)
    n_starts = 2 if n_held_out > part.max(initial=0) / 2 else 1
    template = np.arange(len(answers), len(pairs))

    def learn(own: int) -> Known:
        known = Known(pairs, answers, (part < n_held_out) & (part % n_starts == own))
        if "model" in groups:
            fit_model(pairs, known)
        return known

    def describe(number: int) -> Part:
        held_out, known = part == number, starts[number % n_starts]
        if n_held_out > 1:
            known = Known(pairs, answers, held_out, known.model)
        rows = np.flatnonzero(held_out)
        return Part(rows, known.outcome_of_option, table(pairs, known, rows, groups))

    starts = list(in_threads(learn, range(n_starts)))
    known = starts[0]
    if n_held_out <= _FEW * part.max(initial=0):
        rows = np.append(np.flatnonzero(part < n_held_out), template)
        whole = table(pairs, known, rows, groups)
        n = len(rows) - len(template)
        yield Part(rows[:n], known.outcome_of_option, whole[:n])
        yield Part(template, known.outcome_of_option, whole[n:])
        return
    yield from tqdm(in_threads(describe, range(n_held_out)), "features", n_held_out, disable=None)
    known = Known(pairs, answers, None, known.model)
    yield Part(template, known.outcome_of_option, table(pairs, known, template, groups))


def table(pairs: Pairs, known: Known, asked: IntArray, groups: Sequence[str]) -> pd.DataFrame:
    """Return the columns of groups, float32, for rows not `known`; the groups alone say which."""

    def tell(name: str) -> Columns:
        found = GROUPS[name](pairs, known, asked)
        return {key: np.asarray(column, np.float32) for key, column in found.items()}

    near = [name for name in groups if name in ("context", "habits")]
    others = [name for name in groups if name not in near]
    # What takes most memory comes while there are few columns: the model, then the last groups.
    in_order = [*others[:1], *reversed(others[1:])]
    found = dict(zip(in_order, in_threads(tell, in_order), strict=True))
    if near:
        known.near = look_near(pairs, known, asked)
        found |= {name: tell(name) for name in near}
    columns = {key: column for name in groups for key, column in found[name].items()}
    # Put together only where it is used, a block of rows at a time: it may be the largest array.
    return pd.DataFrame(columns, copy=False)
