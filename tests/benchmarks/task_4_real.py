"""Score the models of task 4 on real answers: by cross-validation, or on the public test set.

Run:     KIT_REAL_DATA=… python tests/benchmarks/task_4_real.py item_response
         KIT_REAL_DATA=… python tests/benchmarks/task_4_real.py matrix_factorization
         KIT_REAL_DATA=… python tests/benchmarks/task_4_real.py pytorch
         KIT_REAL_DATA=… python tests/benchmarks/task_4_real.py item_response --few_answers
         KIT_REAL_DATA=… python tests/benchmarks/task_4_real.py item_response --public
Writes:  a table to the terminal

Without --public the script scores five folds of training students and never opens the test set, so
that settings can be chosen by these folds. Training students have three times as many answers as
test students. To make the 1,170 scored students like test students, their answers are reduced to
some whole quizzes. With --few_answers, only students with few answers are scored, with all their
answers.
"""

import time
from dataclasses import replace
from types import ModuleType
from typing import Any

from common import cli, layout
from common.adaptive import answered_mask
from common.adaptive.game import (
    LocalEntry,
    Reference,
    Rules,
    choose_at_random,
    make_reference,
    play,
    read_reference,
    replay,
)
from common.answers import read_students

import numpy as np
import numpy.typing as npt
import pandas as pd
from real_answers import real_data_dir
from running import load_module

# Folders in task_4/.
PACKAGES = ("item_response", "matrix_factorization", "pytorch")
N_QUESTIONS = 948
N_FOLDS = 5
N_MASKS = 4
# The mean and the smallest number of answers of a student in the public test set.
MEAN_ANSWERS = 122
MIN_ANSWERS = 50
# Students with at most this many answers are scored with --few_answers.
FEW_ANSWERS = 250


def main() -> None:
    """Score one package of task 4 by each rule and choice of questions; print a row for each.

    In a game, an entry asks a student questions, and then predicts the targets, hidden answers of
    the student. The rule says whether targets may be asked too. The entry chooses the questions
    ("adaptive"), or they are drawn at random. A model may also use the answered mask: which
    questions the student has answered at all, right or wrong. Such a model is scored with and
    without the mask.
    """
    p = cli.parser(__doc__)
    p.add_argument("package", choices=PACKAGES, help="folder in task_4/")
    group = p.add_mutually_exclusive_group()
    group.add_argument("--public", action="store_true", help="score the public test set, once")
    group.add_argument(
        "--few_answers",
        action="store_true",
        help=f"score training students with at most {FEW_ANSWERS} answers, none of them left out",
    )
    options = p.parse_args()
    package = layout.ROOT / "task_4" / options.package
    train = load_module(package / "train_model.py")
    submission = load_module(package / "submission_model_task_4.py")
    games = read_games(is_public=options.public, few_answers=options.few_answers)
    started = time.perf_counter()
    models = [train.fit(train_answers, N_QUESTIONS) for train_answers, _ in games]
    print(f"{len(models)} fits in {time.perf_counter() - started:.1f} s")
    # The matrix factorisation never uses which questions a student has answered. The other models
    # are also scored without this information. The keys are cells of the table.
    if options.package == "matrix_factorization":
        models_by_use = {"not used": models}
    else:
        without_mask = [forget_answered_mask(model) for model in models]
        models_by_use = {"used": models, "not used": without_mask}
    references = [reference for _, reference in games]
    print_scores(models_by_use, references, submission)


def print_scores(
    models_by_use: dict[str, list[Any]], references: list[Reference], submission: ModuleType
) -> None:
    """Print a row for each rule, choice of questions and use of the answered mask."""
    print("| rule | choice | answered mask | accuracy | deviation | seconds per mask |")
    print("|---|---|---|---|---|---|")
    for rules in (Rules(), Rules(targets_queryable=True)):
        rule = "targets may be asked" if rules.targets_queryable else "strict"
        for choice in ("adaptive", "random"):
            for use_of_mask, models in models_by_use.items():
                accuracies, seconds = score(models, references, rules, choice, submission)
                print(
                    f"| {rule} | {choice} | {use_of_mask} | {accuracies.mean():.4f} "
                    f"| {accuracies.std(ddof=1):.4f} | {seconds:.2f} |",
                    flush=True,
                )


def read_games(*, is_public: bool, few_answers: bool) -> list[tuple[pd.DataFrame, Reference]]:
    """Return pairs of training answers and of answers of other students, who play the games.

    In a game, a model asks these other students questions and predicts some of their answers. There
    is one pair for the public test set, or a pair for each of five folds.
    """
    folder = real_data_dir() / "eedi_tasks_3_4"
    names = ("train_task_3_4.csv", "train_task_3_4_right_wrong_only.csv")
    answers = read_students([folder / "train_data" / name for name in names])
    if is_public:
        path = folder / "test_data" / "test_public_task_4_more_splits.csv"
        return [(answers, read_reference(path, N_QUESTIONS))]
    return split_folds(answers, few_answers=few_answers)


def forget_answered_mask(model: Any) -> Any:
    """Return a copy of a model that does not use which questions a student has answered.

    The model has the coefficients of two regressions on these questions: `mask_weights` predicts
    abilities, and `completion` predicts which further questions the student has answered. Zeros in
    their place switch both regressions off.
    """
    return replace(model, mask_weights=0 * model.mask_weights, completion=0 * model.completion)


def split_folds(
    answers: pd.DataFrame, *, few_answers: bool
) -> list[tuple[pd.DataFrame, Reference]]:
    """Return for each of five folds the training answers, and the answers of the held-out students.

    All students here are training students, who have more answers than the test students of the
    official data. The held-out students must have about as many answers as test students. So either
    only those with few answers are kept (`few_answers`), or each of them keeps only some answers.
    """
    rng = np.random.default_rng(7)
    student_ids, student = np.unique(answers["UserId"].to_numpy(), return_inverse=True)
    fold_of_student = rng.integers(N_FOLDS, size=len(student_ids))
    fold_of_answer = fold_of_student[student]
    games = []
    for fold in range(N_FOLDS):
        train_answers = answers[fold_of_answer != fold]
        held_out = answers[fold_of_answer == fold]
        if few_answers:
            held_out = keep_students_with_few_answers(held_out)
        else:
            held_out = reduce_to_size_of_test_students(held_out, rng)
        # Each mask marks a fifth of the answers as targets, which are predicted.
        masks = {f"mask {number}": rng.random(len(held_out)) < 0.2 for number in range(N_MASKS)}
        reference = make_reference(f"fold {fold}", held_out, masks, N_QUESTIONS)
        games.append((train_answers, reference))
    return games


def keep_students_with_few_answers(answers: pd.DataFrame) -> pd.DataFrame:
    """Return all answers of the students with at most `FEW_ANSWERS` answers."""
    _, student, n_answers_of_student = np.unique(
        answers["UserId"].to_numpy(), return_inverse=True, return_counts=True
    )
    return answers[n_answers_of_student[student] <= FEW_ANSWERS]


def reduce_to_size_of_test_students(
    answers: pd.DataFrame, rng: np.random.Generator
) -> pd.DataFrame:
    """Keep whole quizzes of each student: about as many answers as test students have.

    The data do not name quizzes. But the questions of a quiz are mostly answered by the same
    students, so two questions count as similar if the same students answered them. For each
    student, one answered question is drawn at random. The student keeps the answers to the
    questions that are most similar to the drawn one.
    """
    # Students and questions of the answers, both numbered from 0.
    student_ids, student = np.unique(answers["UserId"].to_numpy(), return_inverse=True)
    question = answers["QuestionId"].to_numpy()
    answered = np.zeros((len(student_ids), N_QUESTIONS), np.float32)
    answered[student, question] = 1
    # The similarity of each question (row) to each other question (column): the cosine of who
    # answered them.
    _n_together, similarity = answered_mask.count_together(answered)
    # Draw how many answers each student keeps: MIN_ANSWERS plus a random number that has an
    # exponential distribution. The mean is the same as in the public test set.
    n_kept = MIN_ANSWERS + rng.exponential(MEAN_ANSWERS - MIN_ANSWERS, len(student_ids))
    is_kept = np.zeros(len(answers), bool)
    for number in range(len(student_ids)):
        student_rows = np.flatnonzero(student == number)
        drawn_question = question[rng.choice(student_rows)]
        similarity_to_drawn = similarity[drawn_question, question[student_rows]]
        most_similar_first = student_rows[np.argsort(-similarity_to_drawn, kind="stable")]
        kept_rows = most_similar_first[: int(n_kept[number])]
        is_kept[kept_rows] = True
    return answers[is_kept]


def score(
    models: list[Any],
    references: list[Reference],
    rules: Rules,
    choice: str,
    submission: ModuleType,
) -> tuple[npt.NDArray[np.float64], float]:
    """Play all games; return the accuracy with each mask, and the median seconds of a game.

    For each fold, `models` has the model, and `references` has the answers of the held-out students
    with their masks. A mask says which answers are to be predicted (targets). There is a game for
    each fold and mask, see `play_game`. The accuracy with a mask counts the targets of all folds.
    """
    accuracies = []
    seconds = []
    for seed, mask in enumerate(references[0].targets):
        n_right = 0.0
        n_targets = 0
        for model, reference in zip(models, references, strict=True):
            entry = LocalEntry(submission.Submission(model))
            started = time.perf_counter()
            accuracy = play_game(entry, reference, mask, rules, choice, seed)
            seconds.append(time.perf_counter() - started)
            n_targets_of_fold = int(reference.targets[mask].sum())
            n_right += accuracy * n_targets_of_fold
            n_targets += n_targets_of_fold
        accuracies.append(n_right / n_targets)
    return np.array(accuracies), float(np.median(seconds))


def play_game(
    entry: LocalEntry, reference: Reference, mask: str, rules: Rules, choice: str, seed: int
) -> float:
    """Let an entry ask all students of a fold, and predict their targets; return the accuracy.

    `mask` marks the targets. Targets are hidden, unless `rules` lets the entry ask for them. If
    `choice` is "adaptive", the entry chooses its questions; otherwise they are drawn at random.
    """
    if choice == "adaptive":
        game = play(entry, reference, mask, rules)
        return float(np.mean(game.truth == game.prediction))
    chosen = choose_at_random(reference, mask, rules, seed)
    accuracy_by_round = replay(entry, reference, mask, chosen, rules)
    return float(accuracy_by_round[-1])


if __name__ == "__main__":
    cli.run(main)
