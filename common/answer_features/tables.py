"""The table that groups of features make together, for parts of the training answers."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from common.answer_features.groups import FROM_ANSWER_METADATA, FROM_OPTIONS, GROUPS, fit_model
from common.answer_features.known import Columns, Known, cut
from common.answer_features.pairs import SUBJECT_LEVELS, Pairs
from common.answers import IntArray
from common.errors import InputError
from common.item_response import ItemResponseModel
from common.item_response.blocks import in_threads

import numpy as np
import pandas as pd
from tqdm import tqdm


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
    missing: dict[str, str] = {}
    if "AnswerValue" not in answers:
        needs = "AnswerValue and CorrectAnswer of the training answers"
        missing |= dict.fromkeys(FROM_OPTIONS, needs)
    if SUBJECT_LEVELS[0] not in pairs.numbers:
        missing["subjects"] = "the question metadata"
    if pairs.students is None:
        missing["students"] = "the student metadata"
    if pairs.circumstances is None:
        needs = "the answer metadata, and AnswerId in the training answers and the template"
        missing |= dict.fromkeys(FROM_ANSWER_METADATA, needs)
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


def tables(
    pairs: Pairs, answers: pd.DataFrame, groups: Sequence[str], seed: int, n_parts: int = 10
) -> Iterator[Part]:
    """Yield parts of the training answers with their features, which no outcome of theirs is in.

    Last comes the template, with all training answers known. Shows a progress bar on a terminal.

    The model of `model` begins where one has got that knows neither this part's outcomes nor those
    of every other part; so there are two of these, each for half of the parts. That of `options` is
    fitted anew each time: going on from another cost 0.0007 of accuracy.

    Parameters
    ----------
    pairs
        From `read_pairs`.
    answers
        The training answers, from which `pairs` come.
    groups
        From `available_groups`.
    seed
        The same seed holds out the same answers.
    n_parts
        Into how many parts to cut the training answers, at least.
    """
    part, n_held_out = cut(len(answers), seed, n_parts)

    def learn(half: int) -> ItemResponseModel | None:
        if "model" not in groups:
            return None
        return fit_model(pairs, Known(pairs, answers, (part < n_held_out) & (part % 2 == half)))

    def describe(number: int) -> Part:
        known = Known(pairs, answers, part == number, starts[number % 2])
        return tell(np.flatnonzero(part == number), known)

    def tell(rows: IntArray, known: Known) -> Part:
        return Part(rows, known.outcome_of_option, table(pairs, known, rows, groups))

    starts = list(in_threads(learn, range(min(n_held_out, 2))))
    yield from tqdm(in_threads(describe, range(n_held_out)), "features", n_held_out, disable=None)
    yield tell(np.arange(len(answers), len(pairs)), Known(pairs, answers, None, starts[0]))


def table(pairs: Pairs, known: Known, asked: IntArray, groups: Sequence[str]) -> pd.DataFrame:
    """Return the columns of some groups, float32, for rows of the pairs that are not `known`.

    Which columns there are, and in which order, depends on the groups only.
    """
    columns: Columns = {}
    for name in groups:
        found = GROUPS[name](pairs, known, asked)
        columns |= {key: np.asarray(column, np.float32) for key, column in found.items()}
    return pd.DataFrame(columns)
