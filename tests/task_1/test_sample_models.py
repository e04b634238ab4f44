"""Rules for every sample model of tasks 1 to 3, tested on all scripts except blends."""

import json
import re
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from common import metrics
from tools.kit_files import glob_kit
from tools.quickstart.steps import is_blend

import numpy as np
import pandas as pd
import planted_answers as planted
import pytest
from conftest import fails, succeeds
from planted_answers import COLUMN, KEYS, TASKS, TEST, TRAIN, accuracy, predict
from run_scripts import ROOT
from sample_blocks import each_script, needs_blocks
from terminal import run_on_terminal


def find_scripts(*tasks: int) -> list[str]:
    """Return the sample models of these tasks except the blends, as paths from the kit's folder.

    A blend runs other sample models, and has tests in `test_blend_sample.py`.
    """
    paths = [path for task in tasks for path in glob_kit(f"task_{task}/sample_model_*.py")]
    return [str(path.relative_to(ROOT)) for path in paths if not is_blend(path)]


def task_number(script: str) -> int:
    """Return the number of the task of a sample model, such as 1 for `task_1/…`."""
    return int(Path(script).parent.name.removeprefix("task_"))


def short_name(script: str) -> str:
    """Return the name of a sample model, such as `majority`."""
    return Path(script).stem.removeprefix("sample_model_")


SCRIPTS = find_scripts(1, 2)
RANKINGS = find_scripts(3)
LEARNED = [script for script in SCRIPTS if short_name(script) != "majority"]
# Models of task 1 that predict a question without answers by the ability of the student.
MODELS_OF_ABILITY = [script for script in LEARNED if task_number(script) == 1]
# These models can learn from a single answer. Gradient boosting needs 100 right and 100 wrong
# answers.
ACCEPTS_FEW_ANSWERS = [script for script in SCRIPTS if short_name(script) != "gradient_boosting"]
# Models that learn in steps. Control-C ends such a fit after the current step.
STEPWISE = [script for script in ACCEPTS_FEW_ANSWERS if short_name(script) != "majority"]
# Flags that save time and still let a model learn enough of the planted effects.
ENOUGH: dict[str, list[object]] = {
    "partial_vae": ["--steps", 150],
    "gradient_boosting": ["--features", "rates", "context"],
}
# Flags that save more time than those of ENOUGH, for tests that do not need good predictions.
SHORT = {**ENOUGH, "partial_vae": ["--steps", 30], "matrix_factorization": ["--iterations", 2]}


class Fit(NamedTuple):
    """A model that was fitted once, and its predictions."""

    task: int
    name: str
    script: str
    # The folder of the model's files: submission, probabilities and log.
    folder: Path
    # The pairs of student and question to predict: first the pairs of TEST, then pairs with unknown
    # ids.
    asked: pd.DataFrame
    # The predicted answers to the pairs in `asked`, in the same order.
    predicted: Any
    # Those of the pairs with unknown ids alone: a series with the index (UserId, QuestionId).
    predicted_by_unknown_pair: Any


# The answer with the smallest number, by task: 0 (wrong) in task 1, option 1 in task 2.
FIRST_ANSWER = {1: 0, 2: 1}
# The student of each answer in TEST, numbered from 0.
STUDENT = TEST.UserId.factorize()[0]
RATE_BY_STUDENT = TRAIN.groupby("UserId").IsCorrect.mean()
ABLEST = int(RATE_BY_STUDENT.idxmax())
WEAKEST = int(RATE_BY_STUDENT.idxmin())


@pytest.fixture(scope="module", params=each_script(SCRIPTS))
def fit(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Fit:
    """Fit a model once for all tests, and predict the pairs of TEST and pairs with unknown ids.

    In the pairs with unknown ids, an unknown student is paired with every question and with an
    unknown question, and the unknown question also with the ablest and the weakest student.
    """
    script = request.param
    questions = [*TRAIN.QuestionId.unique(), planted.UNKNOWN_QUESTION]
    unknown_pairs = [(planted.UNKNOWN_STUDENT, question) for question in questions]
    unknown_pairs += [(ABLEST, planted.UNKNOWN_QUESTION), (WEAKEST, planted.UNKNOWN_QUESTION)]
    asked_unknown = pd.DataFrame(unknown_pairs, columns=KEYS)
    asked = pd.concat([TEST[KEYS], asked_unknown], ignore_index=True)

    folder = tmp_path_factory.mktemp("fit")
    flags = [*ENOUGH.get(short_name(script), []), "--probabilities", folder / "p.parquet"]
    if script in LEARNED:
        flags += ["--log", folder / "fit.jsonl"]
    predicted = predict(script, folder, *flags, pairs=asked)
    predicted_of_unknown = predicted[len(TEST) :]
    return Fit(
        task=task_number(script),
        name=short_name(script),
        script=script,
        folder=folder,
        asked=asked,
        predicted=predicted,
        predicted_by_unknown_pair=pd.Series(
            predicted_of_unknown, pd.MultiIndex.from_frame(asked_unknown)
        ),
    )


def read_probabilities(fit: Fit) -> np.ndarray:
    """Return the probabilities that the model has written.

    The array has a row for each pair in `fit.asked` and a column for each possible answer: wrong
    and right in task 1, options 1 to 4 in task 2.
    """
    p = pd.read_parquet(fit.folder / "p.parquet").filter(like="Probability").to_numpy()
    if fit.task == 1:
        # The file of task 1 holds the probability of a right answer alone.
        p = np.column_stack([1 - p, p])
    return p


def probability_of_truth(fit: Fit) -> np.ndarray:
    """Return the probability that the model gave to each actual answer in TEST."""
    column = TEST[COLUMN[fit.task]] - FIRST_ANSWER[fit.task]
    result: np.ndarray = read_probabilities(fit)[np.arange(len(TEST)), column]
    return result


def test_it_learns_what_is_planted(fit: Fit) -> None:
    """The model predicts better than a rule that knows the question but not the student.

    The rule predicts each question's most frequent training answer, and its probabilities are the
    shares of the answers to the question. The model's probabilities must have a lower log loss than
    these shares, and its predictions a higher accuracy than the most frequent answers. The sample
    model "majority" is this rule, so it must be as accurate.
    """
    predicted_test = fit.predicted[: len(TEST)]
    score = accuracy(fit.task, predicted_test)
    gain = score - planted.majority_accuracy(fit.task)
    if fit.name == "majority":
        assert abs(gain) < 0.01
        return
    check_log_loss_below_shares(fit)
    assert gain > least_gain(fit)

    if fit.name == "matrix_factorization":
        # An accuracy over 2,268 answers has a standard error of 0.01. The tolerance is four such
        # standard errors.
        assert score > planted.BEST[fit.task] - 0.04


def least_gain(fit: Fit) -> float:
    """Return by how much a model's accuracy must exceed the accuracy of the majority rule."""
    if fit.name == "gradient_boosting":
        # Gradient boosting uses only two groups of features here, rates and context (see `ENOUGH`).
        # With these groups, its gain in task 1 is 0.09. In task 2 only its probabilities are better
        # than the majority model's, not its predictions.
        return {1: 0.05, 2: -0.02}[fit.task]
    # The gains are 0.15 in task 1 and 0.05 in task 2. If a model differs from the majority in a
    # share d of n predictions, the gain has a standard error of √(d / n). Here d is at most a
    # third, so the standard error is at most √(1 / 3 / 2,268) = 0.012.
    return {1: 0.1, 2: 0.02}[fit.task]


def check_log_loss_below_shares(fit: Fit) -> None:
    """Assert that the model's probabilities have a lower log loss than shares of training answers.

    The share of an answer is counted among the training answers to the same question.
    """
    column = COLUMN[fit.task]
    # A row for each question, a column for each answer. Adding 1 to each count keeps the
    # shares above 0, so that they have logarithms.
    counts = pd.crosstab(TRAIN.QuestionId, TRAIN[column]) + 1
    shares = counts.div(counts.sum(axis=1), axis=0)
    # The share of each actual answer in TEST.
    share_by_question_and_answer = shares.stack()
    actual = pd.MultiIndex.from_frame(TEST[["QuestionId", column]])
    share_of_truth = share_by_question_and_answer[actual].to_numpy()
    # For each answer, compare the probability that the model gave to it with the share of this
    # answer in the training answers. Answers of one student are correlated, so the standard error
    # is clustered by student.
    log_gain = np.log(probability_of_truth(fit)) - np.log(share_of_truth)
    error = metrics.clustered_standard_error(log_gain, STUDENT)
    assert log_gain.mean() > 4 * error


# For each model, flags that must lower the accuracy of its predictions. Each flag is tested alone.
LESS: dict[str, list[tuple[object, ...]]] = {
    "matrix_factorization": [("--iterations", 1), ("--dimensions", 1)],
    "item_response": [("--dimensions", 1)],
    "partial_vae": [("--dimensions", 1), ("--steps", 5), ("--learning_rate", 1e-9)],
}


def test_fewer_dimensions_or_steps_lower_the_accuracy(fit: Fit, tmp_path: Path) -> None:
    """The answers depend on two abilities: one dimension or a few steps are not enough."""
    enough = ENOUGH.get(fit.name, [])
    full_accuracy = accuracy(fit.task, fit.predicted[: len(TEST)])
    for flags in LESS.get(fit.name, []):
        predicted = predict(fit.script, tmp_path, *enough, *flags)
        # Without these flags, the accuracy is 0.03 to 0.08 higher. The two models differ in a fifth
        # of the 2,268 predictions, so the gain has a standard error of √(1 / 5 / 2,268) = 0.009.
        assert full_accuracy > accuracy(fit.task, predicted) + 0.015, flags


def test_probabilities_belong_to_the_predictions(fit: Fit) -> None:
    """Each pair of `fit.asked` has its probabilities, and the most probable answer is predicted."""
    written = pd.read_parquet(fit.folder / "p.parquet")
    pd.testing.assert_frame_equal(written[KEYS], fit.asked, check_dtype=False)
    p = read_probabilities(fit)
    assert np.allclose(p.sum(axis=1), 1, atol=1e-5)

    # In task 1, the majority model gives the probabilities 1/2 and 1/2 to a question with as many
    # right as wrong training answers, and to a question without training answers. Then both answers
    # are valid predictions, and the prediction is called undecided.
    is_decided = (np.abs(p - 0.5) > 1e-6).any(axis=1)
    # Column 0 of `p` is the answer 0 (wrong) in task 1, and option 1 in task 2.
    most_probable_column = p.argmax(axis=1)
    most_probable = FIRST_ANSWER[fit.task] + most_probable_column
    assert np.array_equal(most_probable[is_decided], fit.predicted[is_decided])
    # Few questions have as many right as wrong training answers, so nearly all predictions of
    # answers in TEST are decided.
    assert is_decided[: len(TEST)].mean() > 0.9


def test_probabilities_beat_the_shares_over_all_answers(fit: Fit) -> None:
    """The probabilities predict the answers in TEST better than the shares of the answers do.

    The shares are counted over all answers in TEST, and are the same for every question.
    """
    truth = TEST[COLUMN[fit.task]]
    share_of_truth = truth.map(truth.value_counts(normalize=True)).to_numpy()
    gain = np.log(probability_of_truth(fit)) - np.log(share_of_truth)
    # The gain must exceed three standard errors, so that it is hardly due to chance. The smallest
    # gain of all models, that of the majority model in task 1, is four standard errors.
    assert gain.mean() > 3 * metrics.clustered_standard_error(gain, STUDENT)


def test_learned_models_log_their_steps(fit: Fit) -> None:
    if fit.name == "majority":
        return
    start, *steps = map(json.loads, (fit.folder / "fit.jsonl").read_text().splitlines())
    assert start["event"] == "start"
    assert len(steps) > 2
    first = 0 if fit.name == "gradient_boosting" else 1
    assert [step["step"] for step in steps] == list(range(first, first + len(steps)))
    loss = "held_out_loss" if fit.name == "item_response" else "loss"
    assert steps[-1][loss] < steps[0][loss]


def lead_of_most_frequent_answers(task: int) -> np.ndarray:
    """Return how far the most frequent training answer to each question is ahead.

    The lead is the share of the most frequent answer minus the share of the second most frequent.
    The questions are in the order of `planted.most_common`.
    """
    # A row for each question, a column for each answer.
    shares = pd.crosstab(TRAIN.QuestionId, TRAIN[COLUMN[task]], normalize="index").to_numpy()
    increasing_shares = np.sort(shares, axis=1)
    lead: np.ndarray = increasing_shares[:, -1] - increasing_shares[:, -2]
    return lead


def test_an_unknown_student_is_predicted_to_answer_like_the_majority(fit: Fit) -> None:
    """A student without training answers is predicted to give each question's most frequent answer.

    If the question is unknown too, the prediction is the most frequent of all answers.
    """
    # The most frequent answer to each question, by QuestionId.
    most_frequent = planted.most_common(fit.task)
    # The share of this answer minus the share of the second most frequent answer.
    lead = lead_of_most_frequent_answers(fit.task)
    # The index of `predicted_by_unknown_pair` is (UserId, QuestionId). So these are the predictions
    # for the unknown student, with the index QuestionId.
    predicted = fit.predicted_by_unknown_pair[planted.UNKNOWN_STUDENT]
    if fit.name == "gradient_boosting":
        # The trees of this model may treat similar questions as one, and so miss a small lead. A
        # question has 140 answers, so its lead has a standard error of 1 / √140 = 0.085. Compare
        # only questions with a lead of more than four standard errors, and allow that the
        # prediction differs for one in ten of them.
        expected = most_frequent[lead > 0.34]
        assert np.mean(predicted[expected.index] == expected) >= 0.9
    else:
        expected = most_frequent[lead > 0.2]
        assert (predicted[expected.index] == expected).all()

    most_frequent_of_all = TRAIN[COLUMN[fit.task]].mode()[0]
    assert predicted[planted.UNKNOWN_QUESTION] == most_frequent_of_all


@pytest.mark.parametrize("fit", each_script(MODELS_OF_ABILITY), indirect=True)
def test_an_unknown_question_is_predicted_by_the_ability_of_the_student(fit: Fit) -> None:
    """In task 1, the ablest student is predicted to be right, and the weakest to be wrong."""
    assert fit.predicted_by_unknown_pair[ABLEST, planted.UNKNOWN_QUESTION] == 1
    assert fit.predicted_by_unknown_pair[WEAKEST, planted.UNKNOWN_QUESTION] == 0


@pytest.mark.parametrize("fit", each_script(LEARNED), indirect=True)
def test_one_seed_gives_the_same_bytes_and_another_seed_a_similar_model(
    fit: Fit, tmp_path: Path
) -> None:
    """The default seed is 0: a run without --seed writes the same file as a run with --seed 0."""
    # Fewer steps or iterations save time.
    flags = SHORT.get(fit.name, [])
    folder_of_default_seed = fit.folder
    # The fixture `fit` has run the model without --seed, so it need not run again, unless it ran
    # with other flags.
    if flags != ENOUGH.get(fit.name, []):
        folder_of_default_seed = tmp_path / "default_seed"
        folder_of_default_seed.mkdir()
        predict(fit.script, folder_of_default_seed, *flags, pairs=fit.asked)
    name = f"submission_task_{fit.task}.csv"
    with_seed_0 = predict(fit.script, tmp_path, *flags, "--seed", 0, pairs=fit.asked)
    assert (folder_of_default_seed / name).read_bytes() == (tmp_path / name).read_bytes()
    with_seed_1 = predict(fit.script, tmp_path, *flags, "--seed", 1, pairs=fit.asked)
    # A model makes 2,331 predictions with each of the two seeds. The share of equal predictions is
    # 0.87 for gradient boosting, with a standard error of 0.007. For other models, it is at least
    # 0.96, with a standard error of 0.004. The limits lie four standard errors below the shares.
    least = 0.84 if fit.name == "gradient_boosting" else 0.94
    agreement = np.mean(with_seed_0 == with_seed_1)
    assert least < agreement < 1


def draw_random_answers() -> pd.DataFrame:
    """Return random answers of all 300 students to all 60 questions, in a random order.

    Option 3 is chosen with probability 2/5, each other option with 1/5. The right option of a
    question is the same as in TRAIN.
    """
    rng = np.random.default_rng(0)
    right_option = TRAIN.groupby("QuestionId").CorrectAnswer.first()
    students = TRAIN.UserId.unique()
    pairs = [(student, question) for student in students for question in right_option.index]
    answers = pd.DataFrame(pairs, columns=KEYS).sample(frac=1, random_state=0, ignore_index=True)
    answers["CorrectAnswer"] = answers.QuestionId.map(right_option)
    answers["AnswerValue"] = rng.choice([1, 2, 3, 3, 4], len(answers))
    answers["IsCorrect"] = (answers.AnswerValue == answers.CorrectAnswer).astype(int)
    return answers


@pytest.mark.parametrize("script", each_script(SCRIPTS))
def test_random_answers_are_predicted_at_chance(script: str, tmp_path: Path) -> None:
    """A model can learn only that option 3 is chosen most and that most answers are wrong."""
    task = task_number(script)
    # 8,500 of the 18,000 answers are for training, the other 9,500 are predicted.
    train, test = planted.split(draw_random_answers(), len(TRAIN))
    # The probability of an answer depends only on the right option of the question. So the best
    # prediction is the most frequent answer to the questions with the same right option.
    best = train.groupby("CorrectAnswer")[COLUMN[task]].agg(lambda values: values.mode()[0])
    chance = accuracy(task, test.CorrectAnswer.map(best), test)

    # Some models get flags that save time and still let them learn enough.
    flags = ENOUGH.get(short_name(script), [])
    predicted = predict(script, tmp_path, *flags, train=train, pairs=test)

    # At most a third of the predictions differ from the best predictions, so the difference of the
    # accuracies has a standard error of √(1 / 3 / 9,500) = 0.006. No model can be better than the
    # best predictions except by chance: three standard errors are less than 0.02. A model may be a
    # little worse, but one that learns from noise would lose more than 0.06.
    assert chance - 0.06 < accuracy(task, predicted, test) < chance + 0.02


SOME = TRAIN[:300]
TO_ONE_QUESTION = TRAIN[TRAIN.QuestionId == TRAIN.QuestionId[0]][:10]
FEW_OR_UNIFORM_ANSWERS = {
    "one answer": TRAIN[:1],
    "ten answers to one question": TO_ONE_QUESTION.assign(
        AnswerValue=4, CorrectAnswer=2, IsCorrect=0
    ),
    "all right": SOME.assign(IsCorrect=1, AnswerValue=SOME.CorrectAnswer),
    "all wrong": SOME.assign(IsCorrect=0, AnswerValue=SOME.CorrectAnswer % 4 + 1),
}


@pytest.mark.parametrize(
    "train", FEW_OR_UNIFORM_ANSWERS.values(), ids=FEW_OR_UNIFORM_ANSWERS.keys()
)
@pytest.mark.parametrize("script", each_script(ACCEPTS_FEW_ANSWERS))
def test_few_or_uniform_answers_are_enough(
    script: str, train: pd.DataFrame, tmp_path: Path
) -> None:
    """A model predicts its own training answers, and any valid answer for a pair of unknown ids.

    `train` holds only a few training answers, or training answers that are all alike.
    """
    task = task_number(script)
    # No student and no question of the training answers has the id 1.
    unknown_pair = train[:1].assign(UserId=1, QuestionId=1)
    pairs = pd.concat([train, unknown_pair])
    # In task 1, the columns AnswerValue and CorrectAnswer may be missing.
    needed_columns = train[[*KEYS, "IsCorrect"]] if task == 1 else train
    flags = SHORT.get(short_name(script), [])

    # `predict` fails if a prediction is no valid answer.
    predicted = predict(script, tmp_path, *flags, train=needed_columns, pairs=pairs)

    # The last prediction is for the pair of unknown ids.
    predicted_of_train = predicted[:-1]
    assert np.mean(predicted_of_train == train[COLUMN[task]]) > 0.99


FEW = "train.csv: holds 90 right and 60 wrong answers, expected at least 100 of each"
AT_LEAST_1 = "--dimensions and --iterations must be at least 1"
# Cases that a sample model must refuse, because of its flags or of too few training answers. A key
# is the name of the model, followed by its flags. The value is a part of the model's message.
REFUSED = {
    "matrix_factorization --dimensions 0": AT_LEAST_1,
    "matrix_factorization --iterations 0": AT_LEAST_1,
    "item_response --dimensions 0": "n_dimensions is 0, expected at least 1",
    "item_response --guessing 1": "guessing is 1.0, expected 0 to 0.9",
    "partial_vae --steps 0": "--steps is 0, expected more than 0",
    "partial_vae --learning_rate nan": "--learning_rate is nan, expected more than 0",
    "partial_vae --learning_rate 1e30": "choose a smaller --learning_rate",
    "partial_vae --device cuda": "--device is cuda, but PyTorch finds no CUDA device",
    "gradient_boosting --features quiz": "'quiz' need the answer metadata",
    "gradient_boosting": FEW,
}


@needs_blocks(*LEARNED)
@TASKS
@pytest.mark.parametrize("case", REFUSED)
def test_flags_and_answers_that_are_not_valid_are_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, task: int, case: str
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    name, *flags = case.split()
    # The case without flags has too few training answers.
    train = TRAIN[: 500 if flags else 150]
    arguments = planted.command(f"task_{task}/sample_model_{name}.py", tmp_path, train)
    assert REFUSED[case] in fails([*arguments, *flags])
    assert not list(tmp_path.glob("submission_*"))


# Code of a program that runs a script and interrupts it, as Control-C does, in one step of its
# progress bar. `argv` is the script and its flags, and `step` the number of the step. A fit that
# only tries a setting has a disabled progress bar, and is not interrupted.
INTERRUPTED = """
import runpy, signal, sys, tqdm
update, calls = tqdm.tqdm.update, []
def update_and_stop(bar, *n):
    if not bar.disable:
        calls.append(1)
        if len(calls) == {step}:
            signal.raise_signal(signal.SIGINT)
    return update(bar, *n)
tqdm.tqdm.update = update_and_stop
sys.argv = {argv}
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize("script", each_script(STEPWISE))
def test_control_c_predicts_with_what_was_learned(script: str, tmp_path: Path) -> None:
    """A script that is interrupted while it learns stops learning, and predicts.

    Its predictions are better than the predictions of the majority model. The program INTERRUPTED
    runs the script and interrupts it. The program runs in a terminal, because a script shows a
    progress bar only in a terminal.
    """
    log = tmp_path / "fit.jsonl"
    # Drop the path of the script, which is given as an absolute path below.
    _, *flags = [*planted.command(script, tmp_path), "--log", log]
    # The step in which the script is interrupted. By this step the model has learned enough for
    # good predictions, but it has not finished.
    step = 120 if "partial_vae" in script else 4
    code = INTERRUPTED.format(step=step, argv=[str(ROOT / script), *map(str, flags)])
    shown = run_on_terminal(["-c", code], tmp_path, {"PYTHONPATH": str(ROOT)})

    assert shown.exit_code == 0, shown.lines
    # The script says that it was interrupted, and what it does then.
    consequence = "predicting with what has been learned so far"
    if "item_response" in script:
        consequence = f"going on with the model after step {step}"
    interrupted = [line for line in shown.lines if "interrupted: " in line]
    assert interrupted == [f"interrupted: {consequence}"]
    # The progress bar stays below 100 %.
    assert any("stopped early" in line and "100%" not in line for line in shown.lines)
    last_line_of_log = log.read_text().splitlines()[-1]
    assert json.loads(last_line_of_log)["step"] == step

    task = task_number(script)
    predicted = planted.read_prediction(script, tmp_path)
    gain = accuracy(task, predicted) - planted.majority_accuracy(task)
    # The gain is about 0.15 in task 1 and 0.05 in task 2, with a standard error of 0.012.
    assert gain > 0.01


def find_known_questions(name: str, kit: Path, answers: pd.DataFrame) -> set[int]:
    """Return the questions whose quality a sample model of task 3 can estimate.

    The model ranks all other questions of the template last. `answers` are the training answers
    that the model reads.
    """
    if name == "random":
        # This model needs no answers: the quality of every question is a random number.
        return {*pd.read_csv(kit / "submission_templates/submission_task_3.csv").QuestionId}
    if name == "confidence":
        # This model computes the quality from the confidence that students stated in their answers.
        metadata = pd.read_csv(kit / "data/metadata/answer_metadata_task_3_4.csv")
        stated = metadata.dropna(subset="Confidence")
        return {*answers.QuestionId[answers.AnswerId.isin(stated.AnswerId)]}
    return {*answers.QuestionId}


def write_training_answers(path: Path, kit: Path) -> pd.DataFrame:
    """Write the answers of 60 students, from which models of task 3 learn, and return them.

    Some of the questions that the models must rank have no answers.
    """
    answers = pd.read_csv(kit / "data/train_data/train_task_3_4.csv")
    answers = answers[answers.UserId.isin(answers.UserId.unique()[:60])]
    # Let all answers to one question be right, with option 1. A model must still rank this question
    # before the questions without answers.
    is_uniform = answers.QuestionId == answers.QuestionId.max()
    answers.loc[is_uniform, ["IsCorrect", "CorrectAnswer", "AnswerValue"]] = 1
    # Remove the answers to two questions, so that at least these two questions have no answers.
    answers = answers[~answers.QuestionId.isin(answers.QuestionId.unique()[:2])]
    answers.to_csv(path, index=False)
    return answers


def kit_with_few_steps(script: str, kit: Path, folder: Path) -> Path:
    """Return a copy of the kit in which a script learns for only 20 steps, to save time."""
    copy = Path(shutil.copytree(kit, folder))
    text = (copy / script).read_text(encoding="utf-8")
    text, n_changed = re.subn(r"^N_STEPS = \d+", "N_STEPS = 20", text, flags=re.MULTILINE)
    assert n_changed == 1
    (copy / script).write_text(text, encoding="utf-8")
    return copy


@dataclass(frozen=True)
class Ranker:
    """A sample model of task 3, the kit in which it runs, and the answers that it reads."""

    script: str
    name: str
    kit: Path
    answers: pd.DataFrame
    # The flags that name the files to read.
    flags: list[object]

    def rank(self, folder: Path, *flags: object) -> bytes:
        """Run the model with further flags; return the bytes of the ranking that it writes.

        A zip beside the ranking holds the same bytes.
        """
        command = [self.script, "--output_dir", folder, *self.flags, *flags]
        succeeds(command, kit=self.kit)
        written = (folder / "submission_task_3.csv").read_bytes()
        with zipfile.ZipFile(folder / "submission_task_3.zip") as archive:
            assert archive.read("submission_task_3.csv") == written
        return written


@pytest.fixture(params=each_script(RANKINGS))
def ranker(request: pytest.FixtureRequest, simulated_kit: Path, tmp_path: Path) -> Ranker:
    """Return a sample model of task 3. Each test runs once for each of these models."""
    script = request.param
    name = short_name(script)
    answers = write_training_answers(tmp_path / "train.csv", simulated_kit)
    flags: list[object] = []
    if name != "random":
        flags += ["--input_dir", tmp_path, "--train_data", "train.csv"]
    if name in ("confidence", "rank_average"):
        flags += ["--metadata_dir", simulated_kit / "data/metadata"]
    kit = simulated_kit
    if name == "partial_vae":
        kit = kit_with_few_steps(script, simulated_kit, tmp_path / "kit")
    return Ranker(script, name, kit, answers, flags)


def test_every_question_gets_one_rank(ranker: Ranker, tmp_path: Path) -> None:
    """A ranking has each rank once; questions whose quality the model cannot estimate come last.

    These last questions are ranked in the order of QuestionId.
    """
    ranker.rank(tmp_path)

    template = pd.read_csv(ranker.kit / "submission_templates/submission_task_3.csv")
    submission = pd.read_csv(tmp_path / "submission_task_3.csv")
    assert submission.columns.tolist() == ["QuestionId", "ranking"]
    assert submission.QuestionId.equals(template.QuestionId)
    assert sorted(submission.ranking) == list(range(1, len(template) + 1))
    known = find_known_questions(ranker.name, ranker.kit, ranker.answers)
    unknown = {*template.QuestionId} - known
    # The questions with the last ranks, from the very last rank backwards.
    last = submission.nlargest(len(unknown), "ranking").QuestionId
    assert last.tolist() == sorted(unknown, reverse=True)


def test_the_seed_alone_decides_on_a_ranking(ranker: Ranker, tmp_path: Path) -> None:
    """Two runs with the same seed give the same ranking.

    In the models "random" and "partial_vae", another seed gives another ranking.
    """
    default_seed = ranker.rank(tmp_path)
    if ranker.name in ("random", "partial_vae"):
        assert ranker.rank(tmp_path, "--seed", 0) == default_seed
        assert ranker.rank(tmp_path, "--seed", 1) != default_seed
    else:
        assert ranker.rank(tmp_path) == default_seed
