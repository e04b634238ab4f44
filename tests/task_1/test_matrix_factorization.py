"""Matrix factorisation of tasks 1 and 2, on answers with known truth."""

from pathlib import Path

import numpy as np
import pandas as pd
from planted_answers import BEST, TASKS, TRAIN, accuracy, predict


@TASKS
def test_nearly_as_good_as_possible_in_any_order_of_answers(tmp_path: Path, task: int) -> None:
    script = f"task_{task}/sample_model_matrix_factorization.py"
    predicted = predict(script, tmp_path)
    assert accuracy(task, predicted) > BEST[task] - 0.04
    shuffled = TRAIN.sample(frac=1, random_state=0)
    assert np.array_equal(predicted, predict(script, tmp_path, train=shuffled))


def test_one_answer_says_little_and_many_say_much(tmp_path: Path) -> None:
    """Student 1 answered one question, wrongly; student 2 all but the easiest."""
    by_question = TRAIN.groupby("QuestionId").IsCorrect.mean().sort_values()
    *others, easy = (int(question) for question in by_question.index)
    wrong = pd.DataFrame({"QuestionId": [others[-1], *others], "UserId": [1] + [2] * len(others)})
    train = pd.concat([TRAIN[["QuestionId", "UserId", "IsCorrect"]], wrong.assign(IsCorrect=0)])
    asked = pd.DataFrame({"UserId": [1, 2], "QuestionId": [easy, easy]})
    script = "task_1/sample_model_matrix_factorization.py"
    assert list(predict(script, tmp_path, train=train, pairs=asked)) == [1, 0]
