"""How many options questions have: four in the challenge, two to eight in other tests.

This module alone decides the number. A file of answers states it in the column NumberOfOptions,
with the same number in all rows of a question. Without this column,

- a file with AnswerId, as the challenge's files have it, is about questions with four options;
- in any other file, all questions have as many options as the highest option that the file names.

A template names no options: without the column, its questions have four. A file of true answers
counts as having at least four, since perhaps nobody has chosen the highest option.
Answers in memory have the column NumberOfOptions too, unless all questions have four options.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from common import reading, schema
from common.arrays import FloatArray, IntArray
from common.errors import InputError
from common.schema import Column

import numpy as np
import pandas as pd

_NUMBER_COLUMN = schema.NUMBER_OF_OPTIONS.name
_OPTION_COLUMNS = (schema.CORRECT_ANSWER, schema.ANSWER_VALUE)
OPTION_NAMES = [column.name for column in _OPTION_COLUMNS]


# ---- In files ------------------------------------------------------------------------------------


def columns_of_answers(header: Sequence[str]) -> list[Column]:
    """Return the columns of options that a file of answers has, given the names of its columns.

    These are CorrectAnswer and AnswerValue, and NumberOfOptions if it is there. The highest option
    that is valid depends on the header, see the module's docstring.
    """
    columns = [replace(column, high=_highest_valid_option(header)) for column in _OPTION_COLUMNS]
    return [*columns, schema.NUMBER_OF_OPTIONS] if _NUMBER_COLUMN in header else columns


def column_in(source: reading.Source, column: Column) -> Column:
    """Return a copy of a column whose highest valid value, `high`, fits a file of answers.

    The copy is used to read options from the file, and predictions of these options. A column that
    holds no options is returned unchanged. In a column of options, `high` becomes the largest
    number of options of the file's questions:

    - If the file has the column NumberOfOptions, the maximum of this column.
    - In a file like the files of the challenge (`is_of_challenge`), four.
    - In any other file, the highest option in the file, but at least four.

    Raises `InputError` if the options or their numbers are not valid.
    """
    if column.name not in OPTION_NAMES:
        return column
    header = reading.read_header(source)
    if is_of_challenge(header):
        # The columns in `schema` describe the files of the challenge, so `high` is four already.
        return column
    # `column.high` is four, but options in this file may be higher. To read them, raise `high` to
    # the largest number of options that the kit allows.
    column_to_read = replace(column, high=_highest_valid_option(header))
    if _NUMBER_COLUMN not in header:
        options = reading.read_table(source, [column_to_read])[column.name]
        return replace(column, high=max(int(options.max()), column.high))
    columns = [schema.QUESTION_ID, schema.NUMBER_OF_OPTIONS, column_to_read]
    table = reading.read_table(source, columns)
    require_consistent(source, table)
    return replace(column, high=count_options(table))


def column_for(template: pd.DataFrame, column: Column) -> Column:
    """Return a copy of a column, to read predictions for the pairs of a template.

    A column that holds no options is returned unchanged. In a column of options, the highest valid
    option, `high`, becomes the largest number of options of the template's questions. It is four if
    the template lacks the column NumberOfOptions. `template` is the table that was read from the
    template's file.
    """
    if column.name not in OPTION_NAMES:
        return column
    return replace(column, high=count_options(template))


def _highest_valid_option(header: Sequence[str]) -> int:
    """Return the highest option that is valid in a file, given the names of the file's columns."""
    return schema.N_OPTIONS if is_of_challenge(header) else schema.NUMBER_OF_OPTIONS.high


def is_of_challenge(header: Sequence[str]) -> bool:
    """Return whether a file has the challenge's form, with four options for every question.

    A file has this form if it has the column AnswerId and not the column NumberOfOptions.
    """
    return schema.ANSWER_ID.name in header and _NUMBER_COLUMN not in header


def require_consistent(source: reading.Source, table: pd.DataFrame) -> None:
    """Raise `InputError` if the numbers of options in a table of answers contradict each other.

    There are two kinds of contradictions: two rows of a question have different numbers, or a row
    names an option above the number of options that it states, such as option 5 of four.

    `table` has the columns QuestionId, NumberOfOptions and perhaps CorrectAnswer and AnswerValue.
    """
    number = table[_NUMBER_COLUMN].to_numpy()
    for name in OPTION_NAMES:
        if name not in table:
            continue
        option = table[name].to_numpy()
        is_above = option > number
        if is_above.any():
            row = int(is_above.argmax())
            raise InputError(
                f"{source.name}: column '{name}': row {source.row_number(row)} is "
                f"{option[row]} ({int(is_above.sum())} such rows), expected a whole number from 1 "
                f"to {number[row]}, the {_NUMBER_COLUMN} of the row"
            )
    first_number = table.groupby("QuestionId")[_NUMBER_COLUMN].transform("first").to_numpy()
    differs = number != first_number
    if differs.any():
        row = int(differs.argmax())
        raise InputError(
            f"{source.name}: column '{_NUMBER_COLUMN}': row {source.row_number(row)} is "
            f"{number[row]}, but QuestionId {table['QuestionId'].iloc[row]} has "
            f"{first_number[row]} in an earlier row, expected one number for each question"
        )


def add_number_of_options(
    source: reading.Source, answers: pd.DataFrame, header: Sequence[str]
) -> pd.DataFrame:
    """Return answers with the column NumberOfOptions; without it, all questions have four options.

    - If the file has the column, it is checked and kept.
    - In a file like those of the challenge (`is_of_challenge`), all questions have four options:
      no column is added.
    - In any other file, every question gets the same number: the highest option that a student
      chose or that is correct, but at least two. If this number is four, no column is added.

    `answers` were read from `source`, with AnswerValue (the option chosen) and CorrectAnswer.
    `header` holds the names of the file's columns. Raises `InputError` if the file's column has two
    numbers for one question, or a number below an option of the question.
    """
    if _NUMBER_COLUMN in answers:
        require_consistent(source, answers)
        return answers
    if is_of_challenge(header):
        return answers
    highest = answers[OPTION_NAMES].to_numpy().max()
    number = max(int(highest), schema.NUMBER_OF_OPTIONS.low)
    if number == schema.N_OPTIONS:
        return answers
    return answers.assign(**{_NUMBER_COLUMN: np.int8(number)})


# ---- In memory -----------------------------------------------------------------------------------


def count_options(answers: pd.DataFrame) -> int:
    """Return the number of options of the questions, or of the question that has most options."""
    return int(answers[_NUMBER_COLUMN].max()) if _NUMBER_COLUMN in answers else schema.N_OPTIONS


def number_of_each(answers: pd.DataFrame) -> IntArray:
    """Return how many options the question of each answer has, int8, shape (answers,)."""
    if _NUMBER_COLUMN in answers:
        return answers[_NUMBER_COLUMN].to_numpy()
    return np.broadcast_to(np.int8(schema.N_OPTIONS), len(answers))


def for_template(p_option: FloatArray, template: pd.DataFrame) -> FloatArray:
    """Return probabilities of the options that the questions of a template have.

    The questions of the training answers may have more options than the questions of the template,
    or fewer. An option that a question of the template does not have gets the probability 0. An
    option that has no column in `p_option` gets the probability 1 / number of options. Then all
    probabilities of a question are divided by their sum. Without the column NumberOfOptions in the
    template, `p_option` is returned unchanged.

    Parameters
    ----------
    p_option
        Probabilities of the options, from 1, shape (rows, options).
    template
        The pairs to predict, with a row for each row of `p_option`.

    Returns
    -------
    array of float, shape (rows, options of the template)
        Rows sum to 1.
    """
    if _NUMBER_COLUMN not in template:
        return p_option
    number = template[_NUMBER_COLUMN].to_numpy()[:, np.newaxis]
    n_options = count_options(template)
    p: FloatArray = np.repeat(1 / number, n_options, axis=1)
    p[:, : p_option.shape[1]] = p_option[:, :n_options]
    p[np.arange(n_options) >= number] = 0
    p /= p.sum(axis=1, keepdims=True)
    return p


def number_by_question(answers: pd.DataFrame, question: IntArray, n_questions: int) -> IntArray:
    """Return the number of options of each question, int8, shape (n_questions,).

    `question` is the question of each answer, 0 to `n_questions` − 1. A question without answers
    counts as having the largest number of options of any question.
    """
    number: IntArray = np.full(n_questions, count_options(answers), np.int8)
    number[question] = number_of_each(answers)
    return number


def number_by_id(answers: pd.DataFrame, question_ids: IntArray | pd.Index) -> IntArray:
    """Return the number of options of questions, given their QuestionIds, int8, shape (ids,).

    A question without answers counts as having the largest number of options of any question.
    """
    if _NUMBER_COLUMN not in answers:
        return np.full(len(question_ids), schema.N_OPTIONS, np.int8)
    stated = answers.drop_duplicates("QuestionId").set_index("QuestionId")[_NUMBER_COLUMN]
    return stated.reindex(question_ids, fill_value=count_options(answers)).to_numpy()
