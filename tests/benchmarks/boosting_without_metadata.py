"""Score three sample models side by side where nothing but the answers is known.

Run:     python tests/benchmarks/boosting_without_metadata.py
         KIT_REAL_DATA=… … --sat12 --splits 6
Writes:  a table for each task to the terminal

Ten sets of 300 to 3,000 students and 15 to 100 questions are simulated: every student answers every
question, and one to three abilities decide the outcome. There are no quizzes and no metadata, so
the item response model knows all that there is to know, and trees can only fall behind.

With --sat12 the answers are those of a real test, SAT12, instead: 600 students, 32 questions. In
task 2, questions of SAT12 with a key above 4, and answers above 4, are left out.

Matrix factorisation, item response and gradient boosting run as a user runs them, with default
flags. Each set is split at random, 80 % for training and 20 % for scoring.
"""

from pathlib import Path

from common import cli, layout
from common.arrays import BoolArray, FloatArray, IntArray
from common.schema import N_OPTIONS
from common.splits import hold_out_answers

import numpy as np
import pandas as pd
from real_answers import HELD_OUT_SHARE, real_data_dir
from sample_models_on_real_answers import score
from tqdm import tqdm

# The models, in the order of the columns of the table that `print_task` prints.
MODELS = ("matrix_factorization", "item_response", "gradient_boosting")
# The numbers of students and of questions in the ten simulated sets. Both grow by equal ratios:
# students from 300 to 3,000, questions from 15 to 100. The numbers of questions are in mixed order,
# so that some sets have many students but few questions.
N_STUDENTS = (300, 387, 500, 646, 835, 1078, 1392, 1798, 2323, 3000)
N_QUESTIONS = (15, 43, 23, 66, 100, 19, 35, 81, 28, 53)
# The probability that a student who does not know the answer guesses it right.
GUESSING = 0.2
COLUMNS = ["QuestionId", "UserId", "IsCorrect", "CorrectAnswer", "AnswerValue"]


def simulate(n_students: int, n_questions: int, seed: int) -> pd.DataFrame:
    """Simulate a test in which all students answer all questions.

    Students have one, two or three abilities: 1 + `seed` modulo 3.
    """
    rng = np.random.default_rng(seed)
    n_abilities = 1 + seed % 3
    ability = rng.standard_normal((n_students, n_abilities))
    is_correct = simulate_outcomes(rng, ability, n_questions)
    # The right option of each question, counted from 0.
    key = rng.integers(0, N_OPTIONS, n_questions)
    wrong_option = simulate_wrong_options(rng, ability[:, 0], key)
    option = np.where(is_correct, key, wrong_option)

    student, question = np.divmod(np.arange(n_students * n_questions), n_questions)
    return pd.DataFrame(
        {
            "QuestionId": question,
            "UserId": student,
            "IsCorrect": is_correct.ravel().astype(np.int8),
            "CorrectAnswer": key[question] + 1,
            "AnswerValue": option.ravel() + 1,
        }
    )


def simulate_outcomes(rng: np.random.Generator, ability: FloatArray, n_questions: int) -> BoolArray:
    """Simulate which students answer which questions correctly, shape (students, questions).

    `ability` has the shape (students, abilities). Each question has a slope for each ability and an
    intercept, the logit of a student whose abilities are all 0.
    """
    n_abilities = ability.shape[1]
    slope = 1.2 * np.exp(rng.normal(0, 0.4, (n_questions, n_abilities)))
    # Without this division, the logits would vary more with three abilities than with one. With it,
    # the logits of students have a standard deviation of about 1.3 for any number of abilities.
    slope = slope / np.sqrt(n_abilities)
    intercept = rng.normal(0.5, 1.2, n_questions)
    p_known = 1 / (1 + np.exp(-(ability @ slope.T + intercept)))
    p_right = GUESSING + (1 - GUESSING) * p_known
    is_correct: BoolArray = rng.random(p_right.shape) < p_right
    return is_correct


def simulate_wrong_options(
    rng: np.random.Generator, ability: FloatArray, key: IntArray
) -> IntArray:
    """Simulate the option that each student chooses if the answer is wrong, counted from 0.

    The result has the shape (students, questions). `key` holds the right option of each question.
    Some wrong options attract more students than others. The ability, shape (students,), has a
    small influence on which wrong option attracts a student.
    """
    n_wrong = N_OPTIONS - 1
    attraction = rng.normal(0, 0.8, (len(key), n_wrong))
    attraction_slope = rng.normal(0, 0.4, (len(key), n_wrong))
    # Shape (students, questions, wrong options).
    utility = attraction + ability[:, np.newaxis, np.newaxis] * attraction_slope
    # The largest utility plus Gumbel noise is a random choice by the multinomial logit model.
    drawn = (utility + rng.gumbel(size=utility.shape)).argmax(axis=2)
    # Wrong option 0 is the next option after the right one, and so on. After the last option comes
    # option 0.
    places_after_key = drawn + 1
    wrong_option: IntArray = (key + places_after_key) % N_OPTIONS
    return wrong_option


def read_sat12(task: int) -> pd.DataFrame:
    """Read the answers to the test SAT12.

    For task 2, only answers are kept whose chosen option and right option are among 1 to 4.
    """
    answers = pd.read_csv(real_data_dir() / "sat12" / "sat12_600x32.csv")[COLUMNS]
    if task == 1:
        return answers
    has_four_options = (answers["CorrectAnswer"] <= 4) & (answers["AnswerValue"] <= 4)
    return answers[has_four_options].reset_index(drop=True)


def write_no_metadata(_folder: Path) -> None:
    """Write no file: `score` calls this function to write metadata, but these answers have none."""


def score_models(answers: pd.DataFrame, task: int, seed: int) -> list[list[float]]:
    """Return [accuracy, log loss] for each of `MODELS`, on one split."""
    # In task 1, the models learn from right and wrong answers without the chosen options, because
    # most tests outside the challenge record no options.
    columns = COLUMNS[:3] if task == 1 else COLUMNS
    is_held_out = hold_out_answers(len(answers), HELD_OUT_SHARE, seed)
    parts = (answers.loc[~is_held_out, columns], answers.loc[is_held_out, COLUMNS])
    scripts = [layout.ROOT / f"task_{task}/sample_model_{name}.py" for name in MODELS]
    figures = [
        score([script], task, parts, write_metadata=write_no_metadata, flags=[])
        for script in scripts
    ]
    # The first two figures of a model are its accuracy and its log loss.
    return [figures_of_model[:2] for figures_of_model in figures]


def print_difference(name: str, differences: FloatArray) -> None:
    """Print the mean differences between two models, and the lowest difference in accuracy.

    Each row of `differences` belongs to a set of answers. It holds the difference in accuracy and
    the difference in log loss.
    """
    accuracy, log_loss = differences.mean(axis=0)
    lowest = differences[:, 0].min()
    print(f"{name}: mean {accuracy:+.4f}, {log_loss:+.4f}; lowest accuracy {lowest:+.4f}")


def main() -> None:
    """Score the models on every set and split; print the tables."""
    p = cli.parser(__doc__)
    p.add_argument("--tasks", nargs="+", type=int, choices=(1, 2), default=(1, 2))
    p.add_argument("--splits", type=int, default=1, help="splits of each set")
    p.add_argument("--sat12", action="store_true", help="score SAT12, not the simulated sets")
    options = p.parse_args()
    for task in options.tasks:
        sets = {"SAT12": read_sat12(task)} if options.sat12 else simulate_sets()
        print_task(task, sets, options.splits)


def simulate_sets() -> dict[str, pd.DataFrame]:
    """Simulate the sets of answers; the key of a set is its size, such as "300 × 15".

    The sizes are the pairs of N_STUDENTS and N_QUESTIONS.
    """
    sets = {}
    for seed, (n_students, n_questions) in enumerate(zip(N_STUDENTS, N_QUESTIONS, strict=True)):
        sets[f"{n_students:,} × {n_questions}"] = simulate(n_students, n_questions, seed)
    return sets


def print_task(task: int, sets: dict[str, pd.DataFrame], n_splits: int) -> None:
    """Score the models of a task on each set; print a table and the differences of the models."""
    print(f"\ntask {task}, accuracy and log loss, {n_splits} splits of each set")
    print("| students × questions | matrix factorisation | item response | boosting |")
    print("|---|---|---|---|")
    # For each set, the mean accuracy and mean log loss of each model over the splits of the set,
    # shape (models, 2).
    means = []
    for name, answers in sets.items():
        seeds = tqdm(range(n_splits), name, disable=None)
        scores = [score_models(answers, task, seed) for seed in seeds]
        means_of_set = np.mean(scores, axis=0)
        means.append(means_of_set)
        cells = [f"{accuracy:.4f}, {log_loss:.4f}" for accuracy, log_loss in means_of_set]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    # Shape (models, sets, 2).
    factorisation, item_response, boosting = np.stack(means, axis=1)
    print_difference("item response − matrix factorisation", item_response - factorisation)
    print_difference("boosting − item response", boosting - item_response)


if __name__ == "__main__":
    cli.run(main)
