"""Refuse ids of an organiser's answers that a spreadsheet has damaged.

Ids are texts here, and different students must keep different ids. A spreadsheet takes some ids for
numbers or dates when it opens a CSV, and saves them in another form:

    123456789012       1.23457E+11       the last digits are lost
    9912140633506421   9912140633506420  digits after the fifteenth become zeros
    007                7                 leading zeros are lost
    1-2                2-Jan             becomes a date
    3                  3,0               gets a decimal comma
    1000               1.000             gets a separator of thousands
"""

import re

from common.errors import InputError, quote
from common.reading import SHOWN, Source

import numpy as np
import pandas as pd

_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_SHORTENED = re.compile(r"\d([.,]\d+)?[eE]\+\d+", re.ASCII)
_DATE = re.compile(
    rf"""
    \d{{1,2}}-({_MONTHS})(-\d{{2,4}})? | ({_MONTHS})-\d{{1,4}}
    | \d{{1,2}}([/.])\d{{1,2}}\4(19|20)\d{{2}}
    | (19|20)\d{{2}}-\d{{2}}-\d{{2}}([ ]00:00:00)?
    """,
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)
_WITH_COMMA = re.compile(r"\d+,\d+", re.ASCII)
_THOUSANDS = re.compile(r"\d{1,3}(\.\d{3})+", re.ASCII)
_WHOLE_THOUSANDS = re.compile(r"\d{1,3}\.000", re.ASCII)
# A long number that a spreadsheet has rounded: it kept the first six digits, or the first fifteen,
# and wrote zeros for the others.
_ROUNDED = re.compile(r"[1-9]\d{5}0{4,}|[1-9]\d{14}0+", re.ASCII)
# A long number, which a spreadsheet may have rounded. One in ten numbers of 16 digits ends in 0
# without rounding. A column therefore counts as rounded only if it has at least `_MIN_LONG` long
# numbers, and if at least half of the long numbers look rounded.
_LONG = re.compile(r"\d{10,}", re.ASCII)
_MIN_LONG = 10

_REMEDY = (
    "export the answers again, with this column as text (if the ids are right, write a letter "
    "before each)"
)


def require_undamaged(source: Source, column: str, ids: pd.Series) -> None:
    """Raise `InputError` if a spreadsheet seems to have changed some ids of a column.

    The docstring of this module lists the changes that a spreadsheet makes.

    Parameters
    ----------
    source
        The file, whose rows the message names.
    column
        The name of the column.
    ids
        The texts of the column, in the order of the rows, without blanks around them.
    """
    distinct = pd.Series(ids.unique())
    # A spreadsheet has cut the last digits of an id such as 1.23457E+11.
    shortened = _full_matches(distinct, _SHORTENED)
    if len(shortened):
        _refuse(source, column, ids, shortened, "has shortened long numbers")
    dates = _full_matches(distinct, _DATE)
    # Some dates among other ids: a spreadsheet has changed ids into dates. If all ids are dates,
    # the organiser may have chosen dates as ids.
    if len(dates) and len(dates) < len(distinct):
        _refuse(source, column, ids, dates, "has made dates of some ids")
    # Some numbers with a comma, such as 3,0, among whole numbers without one: a spreadsheet has
    # added the commas. If all numbers have commas, they may belong to the ids.
    with_comma = _full_matches(distinct, _WITH_COMMA)
    if len(with_comma) and distinct.str.fullmatch(r"\d+").any():
        _refuse(source, column, ids, with_comma, "has put commas into some numbers")
    # The point in 7.000 or 7.512 may separate thousands, or be a decimal point. If the column holds
    # both kinds of numbers, those that end in .000 and others, the points separate thousands: a
    # spreadsheet has added them. Otherwise they may be decimal points.
    with_point = _full_matches(distinct, _THOUSANDS)
    ending_in_000 = _full_matches(with_point, _WHOLE_THOUSANDS)
    has_both_kinds = 0 < len(ending_in_000) < len(with_point)
    if has_both_kinds:
        _refuse(source, column, ids, with_point, "has put points into some numbers")
    _refuse_dropped_zeros(source, column, ids, distinct)


def _full_matches(texts: pd.Series, pattern: re.Pattern[str]) -> pd.Series:
    """Return the texts that match a pattern from their beginning to their end."""
    is_match = [pattern.fullmatch(text) is not None for text in texts]
    return texts[is_match]


def _refuse_dropped_zeros(source: Source, column: str, ids: pd.Series, distinct: pd.Series) -> None:
    """Raise `InputError` if two ids differ only in leading zeros, such as 007 and 7.

    A spreadsheet has then probably dropped the zeros of one id. `distinct` holds each id of the
    column once.
    """
    numbers = distinct[distinct.str.fullmatch(r"[0-9]+")]
    without_zeros = numbers.str.lstrip("0")
    is_repeated = without_zeros.duplicated(keep=False)
    if is_repeated.any():
        # The message shows one number only: the first that is written in more than one way.
        first_number = without_zeros[is_repeated].iloc[0]
        spellings = numbers[without_zeros == first_number]
        _refuse(source, column, ids, spellings, "has dropped zeros before some numbers")


def require_unmerged(source: Source, column: str, ids: pd.Series, is_repeated: pd.Series) -> None:
    """Raise `InputError` if a spreadsheet seems to have rounded different ids to the same id.

    A spreadsheet keeps only the first digits of a long number and writes zeros for the other
    digits. Two signs together show such rounding: at least half of the long ids end in zeros, and
    in rows with a rounded id, a student seems to answer the same question twice.

    Parameters
    ----------
    source
        The file, whose rows the message names.
    column
        The name of the column.
    ids
        The texts of the column, in the order of the rows.
    is_repeated
        For each row, whether another row has the same student and the same question.
    """
    distinct = pd.Series(ids.unique())
    long_ids = _full_matches(distinct, _LONG)
    rounded = _full_matches(long_ids, _ROUNDED)
    has_few_long_ids = len(long_ids) < _MIN_LONG
    has_few_rounded_ids = len(rounded) < len(long_ids) / 2
    if has_few_long_ids or has_few_rounded_ids:
        return
    # `merged` holds the rounded ids in rows where a student seems to answer a question again. Such
    # an id has probably replaced several ids.
    merged = rounded[rounded.isin(ids[is_repeated])]
    if len(merged):
        fault = "has probably rounded long numbers, as many end in zeros and pairs of ids repeat"
        _refuse(source, column, ids, merged, fault)


def _refuse(source: Source, column: str, ids: pd.Series, damaged: pd.Series, fault: str) -> None:
    """Raise `InputError`, because a spreadsheet has damaged some ids of a column.

    The message shows the first rows with a damaged id, and says what to do. `ids` holds all texts
    of the column, `damaged` holds each damaged text once. `fault` says what the spreadsheet has
    done, such as "has made dates of some ids".
    """
    # Show each damaged id once, in its first row.
    is_first_row_of_id = ~ids.duplicated()
    rows = np.flatnonzero(ids.isin(damaged) & is_first_row_of_id)
    shown = []
    for row in rows[:SHOWN].tolist():
        shown.append(f"row {source.row_number(row)} is {quote(ids.iloc[row])}")
    more = f" and {len(damaged) - SHOWN} more ids" if len(damaged) > SHOWN else ""
    raise InputError(
        f"{source.name}: column '{column}': {'; '.join(shown)}{more}: a spreadsheet {fault}, so "
        f"that ids may have become equal; {_REMEDY}"
    )
