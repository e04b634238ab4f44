"""In which context answers were given: a class's quiz, or similar questions.

What else a student answered in the same quiz, and what the class did, tells more about an answer
than anything but student and question themselves. `common.item_response` learns effects of both.
"""

from pathlib import Path

import numpy as np

from common import io, layout, metadata, schema
from common.answers import Answers, IntArray, number_ids
from common.item_response import cluster_questions
from common.submission import Template

# Quizzes are used if they are known for at least this share of the pairs to be predicted.
_MIN_SHARE_KNOWN = 0.5


def find_contexts(
    answers: Answers, template: Template, metadata_dir: Path | None
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
        Whole numbers from 0 on nested levels, for `item_response.fit` and `item_response.predict`.

    Raises
    ------
    InputError
        If the metadata are not as expected; see `metadata.read_circumstances`.
    """
    n = len(answers)
    quiz = _read_quizzes(answers, template, metadata_dir)
    if quiz is not None and (quiz[n:] >= 0).mean() >= _MIN_SHARE_KNOWN:
        unknown = np.flatnonzero(quiz < 0)
        quiz[unknown] = quiz.max() + 1 + np.arange(len(unknown))
        return quiz[:n, None], quiz[n:, None]
    question = np.concatenate([answers.question, template.question])
    student = np.concatenate([answers.student, template.student])
    question_ids, cluster = cluster_questions(student, question)
    context = cluster[np.searchsorted(question_ids, question)]
    return context[:n], context[n:]


def _read_quizzes(
    answers: Answers, template: Template, metadata_dir: Path | None
) -> IntArray | None:
    """Number the quizzes of classes; return that of all answers and then of all pairs.

    −1 where the quiz is not known, None without metadata.
    """
    path = metadata.find(metadata_dir, layout.ANSWER_METADATA_TASK_1_2)
    if path is None or answers.answer_id is None or template.answer_id is None:
        return None
    header = io.read_header(io.file_source(path))
    columns = [column for column in (schema.GROUP_ID, schema.QUIZ_ID) if column.name in header]
    answer_id = np.concatenate([answers.answer_id, template.answer_id])
    found = metadata.read_circumstances(path, answer_id, columns=columns)
    quizzes, quiz = number_ids(found.quiz + 1)
    _, group = number_ids(found.group + 1)
    _, quiz_of_group = number_ids(group * np.int64(len(quizzes)) + quiz)
    return np.where(found.quiz < 0, np.int32(-1), quiz_of_group)
