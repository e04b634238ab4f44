"""Simulated answers with known effects, and the sample models of tasks 1 and 2 run on them.

The models run as scripts, as a user runs them.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import answers_frame
from run_scripts import run_script

# The column that a model predicts, by task.
COLUMN = {1: "IsCorrect", 2: "AnswerValue"}
# The columns that name the student and the question of an answer.
KEYS = ["UserId", "QuestionId"]
# The columns that name its quiz, and the class of its student.
CONTEXTS = ["QuizId", "GroupId"]
# Ids that no planted answer has.
UNKNOWN_QUESTION = 9_999_999
UNKNOWN_STUDENT = 2_000_000_001
# A decorator that runs a test twice: for task 1 and for task 2.
TASKS = pytest.mark.parametrize("task", [1, 2])
# The number of questions in a quiz of `plant_quizzes`.
QUIZ_SIZE = 10


def pair_all(n_students: int, n_questions: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the student and the question of each answer if all students answer all questions.

    Both are numbered from 0. All answers of student 0 come first.
    """
    student = np.repeat(np.arange(n_students), n_questions)
    question = np.tile(np.arange(n_questions), n_students)
    return student, question


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def plant_abilities() -> tuple[pd.DataFrame, dict[int, float]]:
    """Return answers of students who differ in two abilities, and the best possible accuracies.

    Questions with an even number need the first ability, the others need the second one. A model
    that knows the probability of every answer has the best possible accuracy. The dict holds it for
    task 1 (is the answer right?) and for task 2 (which option was chosen?).
    """
    n_students, n_questions = 300, 60
    rng = np.random.default_rng(0)
    # A student answers each question with probability 0.6.
    is_answered = rng.random((n_students, n_questions)) < 0.6
    # From here on, an element of `student` or `question` belongs to one answer.
    student, question = np.nonzero(is_answered)
    ability = rng.normal(0, 1.8, (n_students, 2))[student, question % 2]
    easiness = rng.normal(0.5, 0.7, n_questions)[question]
    p_right = sigmoid(easiness + ability)
    p_rank = rank_probabilities(p_right, ability)
    rank = draw_ranks(rng, p_rank)
    # The number of the option (1 to 4) at each rank, shuffled anew for each question.
    options_in_order = np.tile(np.arange(1, 5), (n_questions, 1))
    option_by_rank = rng.permuted(options_in_order, axis=1)
    # The ids are large and have gaps. So a model that takes ids for positions gets wrong results.
    student_id = 2_000_000_000 - 1_000 * student
    question_id = 70_000 * question + 3
    is_correct = (rank == 0).astype(int)
    option = option_by_rank[question, rank]
    correct_option = option_by_rank[question, 0]
    answers = answers_frame(student_id, question_id, is_correct, option, correct_option)
    # The best model predicts the most probable outcome.
    best_accuracy = {
        1: float(np.maximum(p_right, 1 - p_right).mean()),
        2: float(p_rank.max(axis=1).mean()),
    }
    return answers.sample(frac=1, random_state=0, ignore_index=True), best_accuracy


def rank_probabilities(p_right: np.ndarray, ability: np.ndarray) -> np.ndarray:
    """Return the probabilities of the four options of each answer, shape (answers, 4).

    The first column is the correct option (rank 0), the others are the wrong ones (ranks 1 to 3).
    A row sums to 1. If the answer is wrong, the ability also decides which wrong option is likely.
    """
    # The probability of the first wrong option, given that the answer is wrong.
    p_first = sigmoid(1 + 1.5 * ability)
    p_if_wrong = np.column_stack([p_first, 0.6 * (1 - p_first), 0.4 * (1 - p_first)])
    p_wrong = 1 - p_right[:, np.newaxis]
    return np.column_stack([p_right, p_wrong * p_if_wrong])


def draw_ranks(rng: np.random.Generator, p_rank: np.ndarray) -> np.ndarray:
    """Draw a rank (0 to 3) for each row of `p_rank`, which holds the probabilities of the ranks."""
    draw = rng.random((len(p_rank), 1))
    # The drawn rank is the number of cumulative probabilities that a uniform draw exceeds. The last
    # cumulative probability is 1, which no draw exceeds.
    cumulative = p_rank.cumsum(axis=1)[:, :3]
    return np.asarray((draw > cumulative).sum(axis=1))


def split(answers: pd.DataFrame, n_train: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the first `n_train` answers to train on, and the remaining ones to test on."""
    return answers[:n_train], answers[n_train:].reset_index(drop=True)


ANSWERS, BEST = plant_abilities()
TRAIN, TEST = split(ANSWERS, 8_500)


@dataclass(frozen=True)
class Places:
    """The student, the question and the quiz of each answer."""

    student: np.ndarray
    question: np.ndarray
    quiz: np.ndarray


def take_quizzes(
    rng: np.random.Generator, n_students: int, n_quizzes: int, share: float, *, is_shuffled: bool
) -> Places:
    """Return the student, the question and the quiz of each answer.

    A student takes each quiz with the probability `share`, and answers its ten questions. These are
    questions 0 to 9 in quiz 0, 10 to 19 in quiz 1, and so on. If `is_shuffled`, the questions are
    dealt at random to the quizzes instead, anew for each student.
    """
    # First pair every student with every question: (0, 0), (0, 1), …, (1, 0), …
    n_questions = n_quizzes * QUIZ_SIZE
    student = np.repeat(np.arange(n_students), n_questions)
    questions_by_student = np.tile(np.arange(n_questions), (n_students, 1))
    if is_shuffled:
        questions_by_student = rng.permuted(questions_by_student, axis=1)
    question = questions_by_student.ravel()
    # Divide each student's questions into quizzes: the first ten form quiz 0, the next ten quiz 1,
    # and so on.
    quiz_by_position = np.repeat(np.arange(n_quizzes), QUIZ_SIZE)
    quiz = np.tile(quiz_by_position, n_students)
    # Keep only the pairs in quizzes that the student takes.
    takes_quiz = rng.random(n_students * n_quizzes) < share
    is_answered = np.repeat(takes_quiz, QUIZ_SIZE)
    return Places(student[is_answered], question[is_answered], quiz[is_answered])


def plant_quizzes(n_quizzes: int, share: float = 1, *, by_class: bool = False) -> pd.DataFrame:
    """Return answers of 300 students with an effect and a favourite option in each quiz.

    A quiz has ten questions. A student takes each quiz with the probability `share`. In each quiz,
    a student has an effect, which is added to the logit of a right answer, and an option that is
    the favourite among the wrong ones.

    With `by_class`, the students form six classes, and all students of a class have the same effect
    in a quiz. The questions of a quiz then differ from student to student. So only the ids of quiz
    and class tell a model which answers share an effect; the questions do not tell it. Favourite
    options still differ from student to student.
    """
    n_students = 300
    n_classes = 6
    rng = np.random.default_rng(0)
    places = take_quizzes(rng, n_students, n_quizzes, share, is_shuffled=by_class)
    student = places.student
    question = places.question
    quiz = places.quiz
    n_answers = len(student)

    n_questions = n_quizzes * QUIZ_SIZE
    easiness = rng.normal(0, 0.5, n_questions)
    # Options are counted from 0 here. `correct_option` and `favourite` have an element for each
    # answer.
    correct_option = rng.integers(0, 4, n_questions)[question]
    effect = rng.normal(0, 1.6, (n_students, n_quizzes))
    favourite = rng.integers(0, 4, (n_students, n_quizzes))[student, quiz]
    # Students 0, 6, 12, … form class 0 of the six classes, students 1, 7, 13, … class 1, and so on.
    class_of_student = np.arange(n_students) % n_classes
    if by_class:
        # All students of a class get the effects of its first student. The class and this student
        # have the same number.
        effect = effect[class_of_student]
    ability = rng.normal(0, 0.5, n_students)
    logit = ability[student] + easiness[question] + effect[student, quiz]
    is_right = rng.random(n_answers) < sigmoid(logit)
    wrong_option = draw_wrong_options(rng, correct_option, favourite)
    option = np.where(is_right, correct_option, wrong_option)

    answers = answers_frame(student, question, is_right.astype(int), option + 1, correct_option + 1)
    # The ids of quizzes, classes and answers do not begin at 0, and the ids of answers have gaps.
    # So a model that takes ids for positions gets wrong results.
    answers["QuizId"] = quiz + 1_000
    if by_class:
        answers["GroupId"] = class_of_student[student] + 50
    answers = answers.sample(frac=1, random_state=0, ignore_index=True)
    return answers.assign(AnswerId=answers.index * 3 + 5)


def draw_wrong_options(
    rng: np.random.Generator, correct_option: np.ndarray, favourite: np.ndarray
) -> np.ndarray:
    """Draw a wrong option (0 to 3) for each answer.

    With probability 0.7 it is the favourite option, unless the favourite is the correct one.
    """
    n_answers = len(correct_option)
    some_wrong_option = (correct_option + rng.integers(1, 4, n_answers)) % 4
    is_favourite = (favourite != correct_option) & (rng.random(n_answers) < 0.7)
    return np.where(is_favourite, favourite, some_wrong_option)


def command(
    script: str, folder: Path, train: pd.DataFrame = TRAIN, pairs: pd.DataFrame = TEST
) -> list[object]:
    """Write into a folder the files that a sample model reads; return the model's command."""
    train.drop(columns=CONTEXTS, errors="ignore").to_csv(folder / "train.csv", index=False)
    pairs.filter([*KEYS, "AnswerId"]).to_csv(folder / "template.csv", index=False)
    return [
        *(script, "--input_dir", folder, "--train_data", "train.csv", "--output_dir", folder),
        *("--submission_template_dir", folder, "--submission_template_file", "template.csv"),
    ]


def read_prediction(script: str, folder: Path, pairs: pd.DataFrame = TEST) -> Any:
    """Return the predictions in a submission; check that it is valid and has these pairs."""
    # The path of the script begins with "task_1/" or "task_2/".
    task = int(script[len("task_")])
    submission = pd.read_csv(folder / f"submission_task_{task}.csv")
    expected = pairs.filter([*KEYS, "AnswerId"]).reset_index(drop=True)
    pd.testing.assert_frame_equal(submission[[*expected.columns]], expected)
    prediction = submission[COLUMN[task]]
    assert prediction.isin([0, 1] if task == 1 else [1, 2, 3, 4]).all()
    return prediction.to_numpy()


def predict(script: str, folder: Path, *flags: object, **files: pd.DataFrame) -> Any:
    """Run a sample model and return its predictions.

    For instance, `predict("task_1/…", tmp_path, "--seed", 1, train=…, pairs=…)` learns from the
    answers `train` and predicts `pairs`. Without these two arguments, it learns from TRAIN and
    predicts TEST.
    """
    done = run_script([*command(script, folder, **files), *flags])
    assert (done.returncode, done.stderr) == (0, "")
    return read_prediction(script, folder, files.get("pairs", TEST))


def accuracy(task: int, prediction: Any, truth: pd.DataFrame = TEST) -> float:
    """Return the share of correct predictions."""
    return float(np.mean(prediction == truth[COLUMN[task]]))


def most_common(task: int, train: pd.DataFrame = TRAIN) -> "pd.Series[int]":
    """Return the most frequent value of each question, by QuestionId.

    The value is the one that the task predicts: the outcome in task 1, the option in task 2.
    """
    return train.groupby("QuestionId")[COLUMN[task]].agg(lambda values: values.mode()[0])


def majority_accuracy(task: int, train: pd.DataFrame = TRAIN, truth: pd.DataFrame = TEST) -> float:
    """Return the accuracy of a model that predicts the most frequent value of each question."""
    return accuracy(task, truth.QuestionId.map(most_common(task, train)), truth)


def partition(labels: Any) -> np.ndarray:
    """Return, for each element, the index of the first element with the same label.

    If two arrays of labels put the elements into the same groups, the function returns the same
    result for both arrays, even if the labels differ. Otherwise the results differ.
    """
    _, first_member, group = np.unique(labels, return_index=True, return_inverse=True)
    return np.asarray(first_member[group])


def has_level(context: np.ndarray, expected: Any) -> bool:
    """Return whether some column of `context` groups the answers in the same way as `expected`.

    `context` has a row for each answer, and a column for each way of grouping (each level). For
    example, column 0 holds the group of quizzes of each answer, and column 1 holds the quiz.
    """
    return any(np.array_equal(partition(level), partition(expected)) for level in context.T)
