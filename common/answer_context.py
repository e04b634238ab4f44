"""In which context answers were given: the same quiz, or similar questions.

What else a student answered in the same quiz tells more about an answer than anything but student
and question themselves. `common.item_response` learns effects of such contexts.
"""

from pathlib import Path

import numpy as np

from common import layout, metadata, schema
from common.answers import Answers, IntArray
from common.item_response.similarity import cluster_questions
from common.submission import Template

# Quizzes are used if they are known for at least this share of the pairs to be predicted.
_MIN_SHARE_KNOWN = 0.5


def find_contexts(
    answers: Answers, template: Template, metadata_dir: Path | None
) -> tuple[IntArray, IntArray]:
    """Find the contexts of the training answers, and of the pairs to be predicted.

    Clusters of questions that the same students answer, the largest first; within them the quiz,
    where the answer metadata tell it for most pairs to be predicted.

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
        Labels from 0 on nested levels, for `item_response.fit` and `item_response.predict`.

    Raises
    ------
    InputError
        If the metadata are not as expected; see `metadata.read_circumstances`.
    """
    question = np.concatenate([answers.question, template.question])
    question_ids, cluster = cluster_questions(
        np.concatenate([answers.student, template.student]), question
    )
    levels = list(cluster[np.searchsorted(question_ids, question)].T)
    quiz = _read_quizzes(answers, template, metadata_dir)
    if quiz is not None:
        levels.append(quiz)
    context = np.array(levels, np.int32).reshape(len(levels), len(question)).T
    return context[: len(answers)], context[len(answers) :]


def _read_quizzes(
    answers: Answers, template: Template, metadata_dir: Path | None
) -> IntArray | None:
    """Return the quiz of every pair, if most of those to be predicted are known."""
    path = metadata.find(metadata_dir, layout.ANSWER_METADATA_TASK_1_2)
    if path is None or answers.answer_id is None or template.answer_id is None:
        return None
    answer_id = np.concatenate([answers.answer_id, template.answer_id])
    quiz = metadata.read_circumstances(path, answer_id, columns=[schema.QUIZ_ID]).quiz
    if (quiz[len(answers) :] >= 0).mean() < _MIN_SHARE_KNOWN:
        return None
    # No quiz is a context as well: that of the pairs whose quiz is not known.
    return quiz + np.int32(1)
