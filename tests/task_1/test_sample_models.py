"""Rules that every sample model of tasks 1 to 3 keeps, each tested on all scripts."""

import json
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

from common import metrics
from tools.kit_files import glob_kit

import numpy as np
import pandas as pd
import planted_answers as planted
import pytest
from conftest import fails, succeeds
from planted_answers import COLUMN, KEYS, TASKS, TEST, TRAIN, accuracy, predict
from run_scripts import ROOT
from sample_blocks import each_script, needs_blocks
from terminal import run_on_terminal


def find_scripts(tasks: str) -> list[str]:
    """Return the sample models of tasks, such as `12`, as paths from the kit's folder."""
    paths = glob_kit(f"task_[{tasks}]/sample_model_*.py")
    return [str(path.relative_to(ROOT)) for path in paths]


def short_name(script: str) -> str:
    """Return the name of a sample model, such as `majority`."""
    return Path(script).stem.removeprefix("sample_model_")


SCRIPTS = find_scripts("12")
RANKINGS = find_scripts("3")
LEARNED = [script for script in SCRIPTS if short_name(script) != "majority"]
# Gradient boosting refuses few answers.
ACCEPTS_FEW_ANSWERS = [script for script in SCRIPTS if short_name(script) != "gradient_boosting"]
# Models that learn in steps, after which Control-C ends their fits early.
STEPWISE = [script for script in ACCEPTS_FEW_ANSWERS if short_name(script) != "majority"]
# Flags that save time and still let a model learn the planted effects.
ENOUGH: dict[str, list[object]] = {
    "partial_vae": ["--steps", 150],
    "gradient_boosting": ["--features", "rates", "context"],
}
# Flags that save more time, for tests in which a model need not learn much.
SHORT = {**ENOUGH, "partial_vae": ["--steps", 30], "matrix_factorization": ["--iterations", 2]}


class Fit(NamedTuple):
    """A model that was fitted once, and its predictions."""

    task: int
    name: str
    script: str
    # The folder of its files: submission, probabilities and log.
    folder: Path
    # The pairs that it predicts: first those of TEST, then pairs with unknown ids.
    asked: pd.DataFrame
    predicted: Any
    # The predictions for pairs with unknown ids, by UserId and QuestionId.
    of_unknown: Any


# The student of each answer in TEST, numbered from 0.
STUDENT = TEST.UserId.factorize()[0]
RATE_BY_STUDENT = TRAIN.groupby("UserId").IsCorrect.mean()
ABLEST = int(RATE_BY_STUDENT.idxmax())
WEAKEST = int(RATE_BY_STUDENT.idxmin())


@pytest.fixture(scope="module", params=each_script(SCRIPTS))
def fit(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Fit:
    """Fit every model once for all tests."""
    script = request.param
    questions = [*TRAIN.QuestionId.unique(), planted.UNKNOWN_QUESTION]
    pairs = [(planted.UNKNOWN_STUDENT, question) for question in questions]
    pairs += [(ABLEST, planted.UNKNOWN_QUESTION), (WEAKEST, planted.UNKNOWN_QUESTION)]
    asked = pd.concat([TEST[KEYS], pd.DataFrame(pairs, columns=KEYS)], ignore_index=True)
    folder = tmp_path_factory.mktemp("fit")
    flags = [*ENOUGH.get(short_name(script), []), "--probabilities", folder / "p.parquet"]
    if script in LEARNED:
        flags += ["--log", folder / "fit.jsonl"]
    predicted = predict(script, folder, *flags, pairs=asked)
    of_unknown = pd.Series(predicted, pd.MultiIndex.from_frame(asked))[len(TEST) :]
    return Fit(int(script[5]), short_name(script), script, folder, asked, predicted, of_unknown)


def probability_of_truth(fit: Fit) -> np.ndarray:
    """Return the probability that the model gave to each actual answer in TEST."""
    p = pd.read_parquet(fit.folder / "p.parquet").filter(like="Probability").to_numpy()
    if fit.task == 1:
        p = np.column_stack([1 - p, p])
    result: np.ndarray = p[np.arange(len(TEST)), TEST[COLUMN[fit.task]] - (fit.task - 1)]
    return result


def test_it_learns_what_is_planted(fit: Fit) -> None:
    """The model beats the shares of the answers to each question, which ignore the student.

    Its probabilities have a lower log loss, and its predictions are usually more accurate.
    """
    score = accuracy(fit.task, fit.predicted[: len(TEST)])
    gain = score - planted.majority_accuracy(fit.task)
    if fit.name == "majority":
        assert abs(gain) < 0.01
        return
    counts = pd.crosstab(TRAIN.QuestionId, TRAIN[COLUMN[fit.task]]) + 1
    shares = counts.div(counts.sum(axis=1), axis=0).stack()
    pairs = pd.MultiIndex.from_frame(TEST[["QuestionId", COLUMN[fit.task]]])
    # Model and shares are compared answer by answer. Answers of one student are correlated.
    log_gain = np.log(probability_of_truth(fit)) - np.log(shares[pairs].to_numpy())
    error = metrics.clustered_standard_error(log_gain, STUDENT)
    assert log_gain.mean() > 4 * error
    # If a model differs from the majority in a third of 2,268 predictions, its gain in accuracy has
    # a standard error of √(1 / 3 / 2,268) = 0.012. The gains are 0.15 in task 1 and 0.05 in task 2.
    # Gradient boosting with two groups of features gains 0.09 in task 1. In task 2 only its
    # probabilities are better, not its predictions.
    least = {1: 0.1, 2: 0.02}[fit.task]
    if fit.name == "gradient_boosting":
        least = {1: 0.05, 2: -0.02}[fit.task]
    assert gain > least
    if fit.name == "matrix_factorization":
        # An accuracy over 2,268 answers has a standard error of 0.01, a quarter of the tolerance.
        assert score > planted.BEST[fit.task] - 0.04


# Flags with which a model learns less.
LESS: dict[str, list[tuple[object, ...]]] = {
    "matrix_factorization": [("--iterations", 1), ("--dimensions", 1)],
    "item_response": [("--dimensions", 1)],
    "partial_vae": [("--dimensions", 1), ("--steps", 5), ("--learning_rate", 1e-9)],
}


def test_fewer_dimensions_or_steps_lower_the_accuracy(fit: Fit, tmp_path: Path) -> None:
    """The answers depend on two abilities: one dimension or a few steps are not enough."""
    enough = ENOUGH.get(fit.name, [])
    whole = accuracy(fit.task, fit.predicted[: len(TEST)])
    for flags in LESS.get(fit.name, []):
        less = accuracy(fit.task, predict(fit.script, tmp_path, *enough, *flags))
        # The gains are 0.03 to 0.08. A fifth of 2,268 predictions differ, so that a gain has a
        # standard error of √(1 / 5 / 2,268) = 0.009.
        assert whole > less + 0.015, flags


def test_probabilities_belong_to_the_predictions(fit: Fit) -> None:
    written = pd.read_parquet(fit.folder / "p.parquet")
    pd.testing.assert_frame_equal(written[KEYS], fit.asked, check_dtype=False)
    p = written.filter(like="Probability").to_numpy()
    if fit.task == 1:
        p = np.column_stack([1 - p, p])
    assert np.allclose(p.sum(axis=1), 1, atol=1e-5)
    # The majority model gives 1/2 to tied and unknown questions: either answer may be predicted.
    is_decided = (np.abs(p - 0.5) > 1e-6).max(axis=1)
    most_probable = p.argmax(axis=1) + fit.task - 1
    assert np.array_equal(most_probable[is_decided], fit.predicted[is_decided])
    assert is_decided[: len(TEST)].mean() > 0.9


def test_probabilities_beat_the_shares_over_all_answers(fit: Fit) -> None:
    shares = TEST[COLUMN[fit.task]].map(TEST[COLUMN[fit.task]].value_counts(normalize=True))
    gain = np.log(probability_of_truth(fit)) - np.log(shares.to_numpy())
    # The majority, the weakest model, gains four standard errors in task 1; the others gain more.
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


def test_an_unknown_student_is_predicted_to_answer_like_the_majority(fit: Fit) -> None:
    """If the question is unknown too, the prediction is the majority of all answers.

    If only the question is unknown, the prediction depends on the student's ability.
    """
    column = TRAIN[COLUMN[fit.task]]
    counts = np.sort(pd.crosstab(TRAIN.QuestionId, column, normalize="index").to_numpy(), axis=1)
    most = planted.most_common(fit.task)
    # How far the most frequent answer leads, as a share of the answers to the question.
    lead = counts[:, -1] - counts[:, -2]
    predicted = fit.of_unknown[planted.UNKNOWN_STUDENT]
    if fit.name == "gradient_boosting":
        # The trees of this model may merge similar questions. A question has 140 answers, so that
        # the lead has a standard error of 1 / √140 = 0.085. Only questions with a lead of four
        # standard errors are compared, and one in ten of them may be predicted otherwise.
        clear = most[lead > 0.34]
        assert np.mean(predicted[clear.index] == clear) >= 0.9
    else:
        clear = most[lead > 0.2]
        assert (predicted[clear.index] == clear).all()
    assert predicted[planted.UNKNOWN_QUESTION] == column.mode()[0]
    if fit.task == 1 and fit.name != "majority":
        assert fit.of_unknown[ABLEST, planted.UNKNOWN_QUESTION] == 1
        assert fit.of_unknown[WEAKEST, planted.UNKNOWN_QUESTION] == 0


def test_one_seed_gives_the_same_bytes_and_another_seed_a_similar_model(
    fit: Fit, tmp_path: Path
) -> None:
    if fit.name == "majority":
        return
    predicted, written = [], []
    for seed in ([], ["--seed", 0], ["--seed", 1]):
        flags = [*SHORT.get(fit.name, []), *seed]
        predicted.append(predict(fit.script, tmp_path, *flags, pairs=fit.asked))
        written.append((tmp_path / f"submission_task_{fit.task}.csv").read_bytes())
    assert written[0] == written[1]
    # Two seeds agree on 0.96 of 2,331 predictions or more, with boosting on 0.87: these shares have
    # standard errors of 0.004 and 0.007, of which four are subtracted.
    least = 0.84 if fit.name == "gradient_boosting" else 0.94
    assert least < np.mean(predicted[1] == predicted[2]) < 1


@pytest.mark.parametrize("script", each_script(SCRIPTS))
def test_random_answers_are_predicted_at_chance(script: str, tmp_path: Path) -> None:
    """All that can be known is that option 3 is chosen most and that most answers are wrong."""
    rng = np.random.default_rng(0)
    task = int(script[5])
    # All students answer all questions, so that 9,500 answers are to be predicted.
    key = TRAIN.groupby("QuestionId").CorrectAnswer.first()
    pairs = [(student, question) for student in TRAIN.UserId.unique() for question in key.index]
    answers = pd.DataFrame(pairs, columns=KEYS).sample(frac=1, random_state=0, ignore_index=True)
    answers["CorrectAnswer"] = answers.QuestionId.map(key)
    answers["AnswerValue"] = rng.choice([1, 2, 3, 3, 4], len(answers))
    answers["IsCorrect"] = (answers.AnswerValue == answers.CorrectAnswer).astype(int)
    train, test = planted.split(answers, len(TRAIN))
    best = train.groupby("CorrectAnswer")[COLUMN[task]].agg(lambda values: values.mode()[0])
    chance = accuracy(task, test.CorrectAnswer.map(best), test)
    flags = ENOUGH.get(short_name(script), [])
    predicted = predict(script, tmp_path, *flags, train=train, pairs=test)
    # At most a third of the predictions differ from the best ones, so that the difference of the
    # accuracies has a standard error of √(1 / 3 / 9,500) = 0.006. A gain of 0.02 would be more than
    # three standard errors. A model that learns from noise loses more than 0.06.
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
    """The training answers themselves are predicted, and a pair of unknown ids."""
    task = int(script[5])
    pairs = pd.concat([train, train[:1].assign(UserId=1, QuestionId=1)])
    # Task 1 needs no options.
    learned = train[[*KEYS, "IsCorrect"]] if task == 1 else train
    flags = SHORT.get(short_name(script), [])
    predicted = predict(script, tmp_path, *flags, train=learned, pairs=pairs)
    assert np.mean(predicted[:-1] == train[COLUMN[task]]) > 0.99


FEW = "train.csv: holds 90 right and 60 wrong answers, expected at least 100 of each"
AT_LEAST_1 = "--dimensions and --iterations must be at least 1"
# A sample model with flags that it refuses, and the reason that it gives.
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


# Runs a script that sends itself SIGINT in a step of its progress bar.
INTERRUPTED = """
import runpy, signal, sys, tqdm
update, calls = tqdm.tqdm.update, []
def update_and_stop(bar, *n):
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
    """The script runs in a terminal, which shows a progress bar."""
    log = tmp_path / "fit.jsonl"
    first, *rest = map(str, [*planted.command(script, tmp_path), "--log", log])
    step = 120 if "partial_vae" in script else 4
    code = INTERRUPTED.format(step=step, argv=[str(ROOT / first), *rest])
    status, lines, _ = run_on_terminal(["-c", code], tmp_path, {"PYTHONPATH": str(ROOT)})
    assert status == 0, lines
    consequence = "predicting with what has been learned so far"
    if "item_response" in script:
        consequence = f"going on with the model after step {step}"
    assert [line for line in lines if "interrupted: " in line] == [f"interrupted: {consequence}"]
    assert any("stopped early" in line and "100%" not in line for line in lines)
    assert json.loads(log.read_text().splitlines()[-1])["step"] == step
    task, prediction = int(script[5]), planted.read_prediction(script, tmp_path)
    # The gains are 0.15 in task 1 and 0.05 in task 2, with a standard error of 0.012.
    assert accuracy(task, prediction) > planted.majority_accuracy(task) + 0.01


@pytest.mark.parametrize("script", each_script(RANKINGS))
def test_every_question_gets_one_rank(script: str, simulated_kit: Path, tmp_path: Path) -> None:
    """Questions of which nothing is known get the last ranks, by QuestionId."""
    template = pd.read_csv(simulated_kit / "submission_templates/submission_task_3.csv")
    answers = pd.read_csv(simulated_kit / "data/train_data/train_task_3_4.csv")
    answers = answers[answers.UserId.isin(answers.UserId.unique()[:60])]
    # Unknown questions come even after a question whose answers are all the same.
    is_uniform = answers.QuestionId == answers.QuestionId.max()
    answers.loc[is_uniform, ["IsCorrect", "CorrectAnswer", "AnswerValue"]] = 1
    unknown = [*answers.QuestionId.unique()[:2], *{*template.QuestionId} - {*answers.QuestionId}]
    answers[~answers.QuestionId.isin(unknown)].to_csv(tmp_path / "train.csv", index=False)
    name = short_name(script)
    flags = ["--input_dir", tmp_path, "--train_data", "train.csv"]
    metadata = simulated_kit / "data/metadata"
    if name == "random":
        # This model reads no answers, and ranks all questions at random.
        flags = []
        unknown = []
    if name in ("confidence", "rank_average"):
        flags += ["--metadata_dir", metadata]
    if name == "confidence":
        known = pd.read_csv(metadata / "answer_metadata_task_3_4.csv").dropna(subset="Confidence")
        # This model knows nothing of questions without a stated confidence either.
        stated = answers.QuestionId[answers.AnswerId.isin(known.AnswerId)]
        known_questions = {*stated} - {*unknown}
        unknown = [*({*template.QuestionId} - known_questions)]
    has_seed = name in ("random", "partial_vae")
    written = []
    for seed in ([], ["--seed", 0], ["--seed", 1]) if has_seed else ([], []):
        succeeds([script, "--output_dir", tmp_path, *flags, *seed], kit=simulated_kit)
        written.append((tmp_path / "submission_task_3.csv").read_bytes())
        with zipfile.ZipFile(tmp_path / "submission_task_3.zip") as archive:
            assert archive.read("submission_task_3.csv") == written[-1]
    assert written[0] == written[1]
    assert not has_seed or written[2] != written[0]
    submission = pd.read_csv(tmp_path / "submission_task_3.csv")
    assert submission.columns.tolist() == ["QuestionId", "ranking"]
    assert submission.QuestionId.equals(template.QuestionId)
    assert sorted(submission.ranking) == list(range(1, len(template) + 1))
    last = submission.nlargest(len(unknown), "ranking").QuestionId
    assert last.tolist() == sorted(unknown, reverse=True)
