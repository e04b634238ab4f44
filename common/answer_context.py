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
    """Find the context of each training answer, and of each pair to be predicted.

    Answers of one student in one context are more alike than the student's other answers.
    `ItemResponse` allows for that. Contexts may be nested in several levels: each level divides the
    contexts of the level before into smaller ones.

    If the answer metadata give the quiz of at least half of the pairs to be predicted, each
    combination of QuizId and GroupId (the class) is a context, and there is one level. A row whose
    quiz is unknown gets a context that holds no other row.

    Otherwise contexts are clusters of questions that the same students answer, usually on several
    levels.

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
        The number of each row's context, from 0, on each level. Column 0 is the level with the
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
    """Return the number of each row's context, given the metadata that the caller has read.

    If QuizId is known for at least half of the pairs to be predicted, a context is a combination of
    a quiz and a class, and the result has one column. Otherwise a context is a cluster of questions
    that the same students answer. Then the result has a column for each level of clusters, from the
    largest clusters to the smallest: each cluster of a level is a part of one of the level before.

    Parameters
    ----------
    student, question
        The ids of the training answers, followed by those of the pairs to be predicted; shape
        (rows,).
    n_answers
        The number of training answers.
    circumstances
        The answer metadata: QuizId and GroupId of each row, -1 where unknown. None if there are no
        metadata.

    Returns
    -------
    array of int32, shape (rows, levels)
        Numbers of contexts, from 0 on each level.
    """
    if circumstances is not None:
        quiz = circumstances["QuizId"].to_numpy()
        group = circumstances["GroupId"].to_numpy()
        quiz_to_predict = quiz[n_answers:]
        share_known = (quiz_to_predict >= 0).mean()
        if share_known >= _MIN_SHARE_KNOWN:
            # One level: an array of one column.
            return _number_quizzes_of_classes(quiz, group)[:, None]
    # `clusters` has a row for each of the sorted `question_ids`, and a column for each level.
    question_ids, clusters = cluster_questions(student, question)
    row_of_question = np.searchsorted(question_ids, question)
    return clusters[row_of_question]


def _number_quizzes_of_classes(quiz: IntArray, group: IntArray) -> IntArray:
    """Number the combinations of quiz and class from 0: int32, shape (rows,).

    `quiz` and `group` hold the QuizId and the GroupId (the class) of each row, -1 where unknown.
    Every row whose quiz is unknown gets a number that no other row has.
    """
    # `small_keys` encodes each combination as one integer. It needs numbers from 0, but an unknown
    # id is -1: add 1 to all ids.
    keys = small_keys(group + 1, quiz + 1)
    _, number = number_ids(keys)
    unknown = np.flatnonzero(quiz < 0)
    number[unknown] = number.max() + 1 + np.arange(len(unknown))
    return number
