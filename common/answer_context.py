"""Group answers into contexts, for `ItemResponse`.

A context is a quiz that one class takes, or a cluster of similar questions.
"""

from pathlib import Path

from common import layout, metadata, reading, schema
from common.answers import number_ids, small_keys
from common.arrays import IntArray
from common.item_response.similarity import cluster_questions

import numpy as np
import pandas as pd

# Quizzes are used as contexts if the quiz is known for at least this share of the pairs to be
# predicted.
_MIN_SHARE_KNOWN = 0.5


def find_contexts(
    answers: pd.DataFrame, template: pd.DataFrame, metadata_dir: Path | None
) -> tuple[IntArray, IntArray]:
    """Find the contexts of the training answers, and of the pairs to be predicted.

    If the answer metadata give the quiz of at least half of the pairs to be predicted, each
    combination of QuizId and GroupId (the class) is a context. A row whose quiz is unknown gets a
    context of its own. There is one level.

    Otherwise contexts are clusters of questions that the same students answer. On each further
    level, these clusters are divided into smaller ones.

    Parameters
    ----------
    answers
        The training answers, with QuestionId and UserId. Quizzes are looked up by AnswerId.
    template
        The pairs to be predicted, with the same columns.
    metadata_dir
        Folder that may hold the answer metadata. None if there is no such folder.

    Returns
    -------
    context, context_to_predict : array of int32, shape (answers, levels) and (pairs, levels)
        The context of each row on each level, numbered from 0. Column 0 is the level with the
        largest contexts.

    Raises
    ------
    InputError
        If the metadata are not as expected; see `metadata.read_circumstances`.
    """
    path = metadata.find(metadata_dir, layout.ANSWER_METADATA_TASK_1_2)
    circumstances = None
    if path is not None and "AnswerId" in answers and "AnswerId" in template:
        header = reading.read_header(reading.file_source(path))
        columns = [column for column in (schema.GROUP_ID, schema.QUIZ_ID) if column.name in header]
        answer_id = np.concatenate([answers["AnswerId"], template["AnswerId"]])
        circumstances = metadata.read_circumstances(path, answer_id, columns=columns)
    student = np.concatenate([answers["UserId"], template["UserId"]])
    question = np.concatenate([answers["QuestionId"], template["QuestionId"]])
    context = number_contexts(student, question, len(answers), circumstances)
    return context[: len(answers)], context[len(answers) :]


def number_contexts(
    student: IntArray, question: IntArray, n_answers: int, circumstances: pd.DataFrame | None
) -> IntArray:
    """Number the contexts of rows whose metadata have been read; see `find_contexts`.

    Parameters
    ----------
    student, question
        Ids, shape (rows,): first of the training answers, then of the pairs to be predicted.
    n_answers
        The number of training answers.
    circumstances
        QuizId and GroupId of each row, -1 where unknown. None if there are no metadata.

    Returns
    -------
    array of int32, shape (rows, levels)
        Numbers of contexts, from 0 on each level.
    """
    if circumstances is not None:
        quiz = circumstances["QuizId"].to_numpy()
        group = circumstances["GroupId"].to_numpy()
        if (quiz[n_answers:] >= 0).mean() >= _MIN_SHARE_KNOWN:
            # Unknown ids are -1, but `small_keys` needs numbers from 0.
            _, context = number_ids(small_keys(group + 1, quiz + 1))
            # Every row whose quiz is unknown gets a context of its own.
            unknown = np.flatnonzero(quiz < 0)
            context[unknown] = context.max() + 1 + np.arange(len(unknown))
            return context[:, None]
    question_ids, cluster = cluster_questions(student, question)
    return cluster[np.searchsorted(question_ids, question)]
