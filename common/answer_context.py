"""In which context answers were given: a class's quiz, or similar questions."""

from pathlib import Path

from common import layout, metadata, reading, schema
from common.answers import number_ids, small_keys
from common.arrays import IntArray
from common.item_response.similarity import cluster_questions

import numpy as np
import pandas as pd

# Quizzes are used if they are known for at least this share of the pairs to be predicted.
_MIN_SHARE_KNOWN = 0.5


def find_contexts(
    answers: pd.DataFrame, template: pd.DataFrame, metadata_dir: Path | None
) -> tuple[IntArray, IntArray]:
    """Find the contexts of the training answers, and of the pairs to be predicted.

    The quiz of a class (QuizId and GroupId), where the answer metadata tell it for most pairs to be
    predicted; a pair whose quiz is not known is then alone. Else clusters of questions that the
    same students answer, on several levels.

    Parameters
    ----------
    answers
        The training answers; with their AnswerIds, if there may be metadata.
    template
        The pairs to be predicted.
    metadata_dir
        Folder that may hold the answer metadata; None if there are none.

    Returns
    -------
    context, context_to_predict : array of int32, shape (answers, levels) and (pairs, levels)
        Whole numbers from 0 on nested levels, the coarsest first, for `ItemResponse`.

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
    both = contexts_of_pairs(student, question, len(answers), circumstances)
    return both[: len(answers)], both[len(answers) :]


def contexts_of_pairs(
    student: IntArray, question: IntArray, n_answers: int, circumstances: pd.DataFrame | None
) -> IntArray:
    """Return contexts as `find_contexts`, (rows, levels); ids, (rows,), of answers, then pairs."""
    if circumstances is not None:
        quiz, group = (circumstances[name].to_numpy() for name in ("QuizId", "GroupId"))
        if (quiz[n_answers:] >= 0).mean() >= _MIN_SHARE_KNOWN:
            _, number = number_ids(small_keys(group + 1, quiz + 1))
            # Every answer whose quiz is not known has one of its own.
            unknown = np.flatnonzero(quiz < 0)
            number[unknown] = number.max() + 1 + np.arange(len(unknown))
            return number[:, None]
    question_ids, cluster = cluster_questions(student, question)
    return cluster[np.searchsorted(question_ids, question)]
