"""Blends of real scripts' probabilities, from the command line to a checked submission."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.fingerprints import fingerprint
from common.probabilities import read_probabilities
from tools.blend import describe_weights, learn_weights, log_blend, logarithms
from tools.results import Result, read_results

import numpy as np
import pandas as pd
import pytest
from conftest import fails, succeeds
from platforms import on_unix, with_links
from recorded import made_by
from run_scripts import PATIENCE

BLEND = ["-m", "tools.blend"]
FILES = ["majority.parquet", "matrix_factorization.parquet"]


@pytest.fixture(scope="module")
def kit(split_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a kit with probabilities for the local splits of tasks 1 and 2.

    Two sample models have written the probabilities to `FILES`; the files of task 2 have the prefix
    "2_". The kit also has files that a blend refuses, or with which its score is doubtful. Tests
    may add files to the kit, but do not change the files that are there.
    """
    kit = Path(shutil.copytree(split_kit, tmp_path_factory.mktemp("blended") / "kit"))
    majority, factorization = FILES
    for task, prefix in ((1, ""), (2, "2_")):
        run_majority = [f"task_{task}/sample_model_majority.py", "--local"]
        run_majority += ["--probabilities", prefix + majority]
        succeeds(run_majority, kit=kit, cwd=kit)
        run_factorization = [f"task_{task}/sample_model_matrix_factorization.py", "--local"]
        run_factorization += ["--probabilities", prefix + factorization]
        # A blend must run the script again with these flags, whether a flag and its value are two
        # words or are joined by "=". But it must not write into the log that a flag names.
        run_factorization += ["--log", f"fit_{task}.jsonl", "--seed=4", "--dimensions", "2"]
        succeeds(run_factorization, kit=kit, cwd=kit)
    add_faulty_files(kit)
    return kit


def add_faulty_files(kit: Path) -> None:
    """Add files of probabilities that a blend refuses, or that make the blend's score doubtful."""
    # The record of this file names a script that fails if a blend runs it again.
    forge(kit, kit / "failing.parquet", script="task_1/failing.py")
    (kit / "task_1/failing.py").write_text("raise ValueError('changed')\n")
    # The record of this file names a script that does not end. The test that uses the file writes
    # the script.
    forge(kit, kit / "slow.parquet", script="task_1/slow.py")
    # The record of this file says that the model has learned from all answers, not only from the
    # training part of the local split.
    train = "data/train_data/train_task_1_2.csv"
    forge(kit, kit / "all.parquet", made_from={train: fingerprint(kit / train)})
    # This file has no record of its origin. Other files hold the record among the attributes of the
    # table.
    table = pd.read_parquet(kit / FILES[0])
    table.attrs.clear()
    table.to_parquet(kit / "other.parquet")
    # This file has no probabilities.
    table[["UserId"]].to_parquet(kit / "answers.parquet")


def forge(kit: Path, path: Path, **changed_fields: object) -> None:
    """Write the majority model's probabilities into a file with a forged record of their origin.

    `changed_fields` are the fields of the record that differ from the true record.
    """
    table = pd.read_parquet(kit / FILES[0])
    record = {**json.loads(table.attrs["origin"]), **changed_fields}
    table.attrs["origin"] = json.dumps(record)
    table.to_parquet(path)


@dataclass(frozen=True)
class Blended:
    """A blend of two files with learned weights: what the tool prints and writes."""

    task: int
    # The names of the two files, as on the command line.
    files: list[str]
    weights: list[float]
    # The log loss of each file and, as the last element, that of the blend.
    losses: list[float]
    # The path of the submission, without the suffix .csv.
    submission: Path
    # Whether the log is the same as before the blend. For a blend, a script is run again with the
    # flags of its first run; --log is one of them here, and must have no effect.
    is_log_unchanged: bool
    # The output of the evaluation that has scored the submission.
    evaluation: str
    # The line that the evaluation adds to the record of scores.
    result: Result


@pytest.fixture(scope="module", params=[1, 2])
def blended(request: pytest.FixtureRequest, kit: Path) -> Blended:
    """Blend the two files of a task and score the blend: first for task 1, then for task 2.

    The weights and the losses are read from the table that the tool prints.
    """
    task = request.param
    files = FILES if task == 1 else [f"2_{name}" for name in FILES]
    log = kit / f"fit_{task}.jsonl"
    log_before = log.read_text()
    printed = succeeds([*BLEND, *files, "--local"], kit=kit, cwd=kit)
    # The table has two lines of headings, a line for each of the two files and a line for the
    # blend. The columns are at least two blanks apart.
    _, _, *lines_of_files, line_of_blend = printed.splitlines()[:5]
    names = []
    weights = []
    losses = []
    for line in lines_of_files:
        name, weight, loss, _accuracy = re.split(r"\s{2,}", line)
        names.append(name)
        weights.append(float(weight))
        losses.append(float(loss))
    # The line of the blend has no column for a weight.
    name_of_blend, loss_of_blend, _accuracy = re.split(r"\s{2,}", line_of_blend)
    assert [*names, name_of_blend] == [*files, "the blend"]
    evaluation = succeeds([f"task_{task}/local_evaluation.py"], kit=kit)
    return Blended(
        task=task,
        files=files,
        weights=weights,
        losses=[*losses, float(loss_of_blend)],
        submission=kit / f"data/test_output/test_submission_task_{task}",
        is_log_unchanged=log.read_text() == log_before,
        evaluation=evaluation,
        result=read_results(kit / "data/test_output/results.jsonl")[-1],
    )


def test_a_blend_is_hardly_worse_than_the_better_of_its_scripts(blended: Blended) -> None:
    assert min(blended.weights) >= 0
    *losses_of_files, loss_of_blend = blended.losses
    assert loss_of_blend < min(losses_of_files) + 0.005


def test_a_script_that_a_blend_runs_again_does_not_append_to_its_log(blended: Blended) -> None:
    assert blended.is_log_unchanged


def test_a_blend_of_two_scripts_is_the_weighted_mean_of_their_log_probabilities(
    kit: Path, blended: Blended
) -> None:
    """The weighted mean is scaled so that the probabilities of each answer add up to 1.

    Probabilities below 1e-6 count as 1e-6, so that logarithms are finite. The weights are read from
    the printed table, in which they are rounded. So the test needs a tolerance.
    """
    # Beside the submission, the tool writes the probabilities of the blend.
    blend = read_probabilities(blended.submission.with_suffix(".parquet"), blended.task).value
    weighted_logs = np.zeros_like(blend)
    for file, weight in zip(blended.files, blended.weights, strict=True):
        probability = read_probabilities(kit / file, blended.task).value
        weighted_logs += weight * np.log(np.maximum(probability, 1e-6))
    unscaled = np.exp(weighted_logs)
    expected = unscaled / unscaled.sum(axis=1, keepdims=True)
    assert np.allclose(blend, expected, atol=0.005)


def test_a_blend_predicts_the_most_probable_outcome_or_option(blended: Blended) -> None:
    blend = read_probabilities(blended.submission.with_suffix(".parquet"), blended.task).value
    submission = pd.read_csv(blended.submission.with_suffix(".csv"))
    most_probable = blend.argmax(axis=1)
    if blended.task == 1:
        # The columns of the probabilities are wrong (0) and right (1).
        assert np.array_equal(submission["IsCorrect"], most_probable)
    else:
        # The columns 0 to 3 of the probabilities are the options 1 to 4.
        assert np.array_equal(submission["AnswerValue"], most_probable + 1)


def test_the_evaluation_scores_a_blend_and_records_its_command(blended: Blended) -> None:
    expected = f"python -m tools.blend {' '.join(blended.files)} --local"
    assert made_by(blended.result) == expected
    assert f"score {blended.result.score:.4f}" in blended.evaluation
    assert "note: " not in blended.evaluation


def blend_with_weights(kit: Path, *weights: str) -> np.ndarray:
    """Blend failing.parquet and the second of `FILES`; return the probabilities of the blend.

    The record of failing.parquet names a script that fails. So the blend succeeds only if it does
    not run this script.
    """
    words = [*BLEND, "failing.parquet", FILES[1], "--local", "--weights", *weights]
    assert "held out" not in succeeds(words, kit=kit, cwd=kit)
    blend = kit / "data/test_output/test_submission_task_1.parquet"
    return np.asarray(read_probabilities(blend, 1).value)


def test_with_given_weights_no_script_is_run(kit: Path) -> None:
    """With the weights 0 and 1, the blend is the second file, and no script is run."""
    second_file = read_probabilities(kit / FILES[1], 1).value
    blended = blend_with_weights(kit, "0", "1")
    assert np.allclose(blended, second_file, atol=1e-4)
    assert np.array_equal(blended.argmax(axis=1), second_file.argmax(axis=1))


def test_a_weight_above_1_makes_probabilities_more_extreme_and_changes_no_prediction(
    kit: Path,
) -> None:
    second_file = read_probabilities(kit / FILES[1], 1).value
    blended = blend_with_weights(kit, "0", "2.5")
    assert not np.allclose(blended, second_file, atol=1e-4)
    assert np.array_equal(blended.argmax(axis=1), second_file.argmax(axis=1))


def test_a_blend_is_refused_if_one_of_its_parts_has_seen_the_answers(kit: Path) -> None:
    words = [FILES[1], "all.parquet", "--local", "--weights", "1", "1"]
    succeeds([*BLEND, *words], kit=kit, cwd=kit)
    error = fails(["task_1/local_evaluation.py"], kit=kit)
    assert "was made from train_task_1_2.csv, which holds the answers that it is scored" in error


def test_a_blend_with_a_part_of_unknown_origin_is_of_unknown_origin(kit: Path) -> None:
    words = [FILES[1], "other.parquet", "--local", "--weights", "1", "1"]
    succeeds([*BLEND, *words], kit=kit, cwd=kit)
    printed = succeeds(["task_1/local_evaluation.py"], kit=kit)
    assert "note: may have seen these answers: no record says what it has learned from" in printed


@pytest.mark.parametrize("signs_of_edit", [{"code": "a" * 12}, {"code_changed": True}])
def test_a_blend_is_marked_if_the_code_of_a_part_was_edited(
    kit: Path, signs_of_edit: dict[str, object]
) -> None:
    """A blend is marked "made by earlier code" if code that made one of its files was edited since.

    The record of the file shows the edit: its fingerprint of the code differs from the present
    code, or it says that the code changed while it ran. `signs_of_edit` sets these fields of the
    record. The first blend is then a part of a second blend, whose score must have the same mark.
    """
    forge(kit, kit / "edited.parquet", **signs_of_edit)
    blend_and_check_doubt(kit, marked_file="edited.parquet")
    first_blend = kit / "data/test_output/test_submission_task_1.parquet"
    shutil.copy(first_blend, kit / "first_blend.parquet")
    blend_and_check_doubt(kit, marked_file="first_blend.parquet")


def blend_and_check_doubt(kit: Path, marked_file: str) -> None:
    """Blend `marked_file` with another file; check that the blend is "made by earlier code".

    The record of `marked_file` says that the code that made this file has been edited since.
    """
    weights = ["--local", "--weights", "1", "1"]
    succeeds([*BLEND, FILES[1], marked_file, *weights], kit=kit, cwd=kit)
    evaluation = succeeds(["task_1/local_evaluation.py"], kit=kit)
    note = (
        "note: task_1/sample_model_majority.py or a file that it imports has changed since it "
        "made a part of the blend"
    )
    assert note in evaluation
    score_of_blend = read_results(kit / "data/test_output/results.jsonl")[-1]
    assert score_of_blend.doubts == ["made by earlier code"]


@with_links
def test_only_scripts_of_this_kit_are_run_again(kit: Path, tmp_path: Path) -> None:
    """A file of probabilities may come from anywhere, and its record may name any script.

    To learn weights, the tool runs the script of each file again, as the record names it. In this
    test, each record names a script that the tool must not run. If the script outside the kit ran,
    it would leave a file, `sign_of_run`.
    """
    outside = tmp_path / "outside.py"
    sign_of_run = tmp_path / "ran"
    outside.write_text(f"open({str(sign_of_run)!r}, 'w')\n")
    (kit / "task_1/link.py").symlink_to(outside)
    scripts = [
        # Three ways to name a script outside the kit.
        str(outside),
        f"task_1/../{os.path.relpath(outside, kit)}",
        "task_1/link.py",
        # A folder, a script that is not a model, a model of another task, and a missing script.
        "task_1",
        "task_1/local_evaluation.py",
        "task_2/sample_model_majority.py",
        "task_1/gone.py",
    ]
    for script in scripts:
        error = error_of_forged_blend(kit, tmp_path, script=script, options={})
        assert "cannot be repeated, expected a script in task_1/" in error
    assert not sign_of_run.exists()


def test_a_script_whose_name_no_file_can_have_is_refused(kit: Path, tmp_path: Path) -> None:
    error = error_of_forged_blend(kit, tmp_path, script="task_1/a\0b.py", options={})
    assert "does not say which command made it" in error


@pytest.mark.parametrize(
    ("model", "options", "expected"),
    [
        # The script does not have this flag.
        ("majority", {"own": "1"}, "was made with '--own', which is no flag of task_1/sample_mo"),
        # On the command line, the value "--steps" would be a flag. The script has no such flag.
        ("majority", {"files": ["--steps"]}, "was made with '--steps', which is no flag"),
        # The script has the flag --metadata_dir. But on the command line, the first of its two
        # values would be the flag --output_dir, which changes where the script writes.
        ("item_response", {"metadata_dir": ["--output_dir", "else"]}, "with '--output_dir', "),
    ],
    ids=["unknown flag", "value like a flag", "value that redirects the output"],
)
def test_scripts_are_run_again_only_with_their_own_flags(
    kit: Path, tmp_path: Path, model: str, options: dict[str, Any], expected: str
) -> None:
    """A forged record must not add a flag to the script: a flag could name any file to write."""
    script = f"task_1/sample_model_{model}.py"
    error = error_of_forged_blend(kit, tmp_path, script=script, options=options)
    assert expected in error


def error_of_forged_blend(kit: Path, folder: Path, *, script: str, options: dict[str, Any]) -> str:
    """Blend a good file and a forged one, which the tool must refuse; return the error.

    The record of the forged file names this script and these options. The forged file is written
    into the folder.
    """
    forged = folder / "forged.parquet"
    forge(kit, forged, script=script, options=options)
    error = fails([*BLEND, kit / FILES[1], forged, "--local"], kit=kit, cwd=kit)
    assert error.startswith(f"{forged}: ")
    return error


BOTH = " ".join(FILES)
OVERWRITTEN = r".parquet: is an input or another output too and would be overwritten"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (BOTH, "majority.parquet: holds .* pairs, expected the .*, the template of this blend"),
        (f"{FILES[0]} --local", "majority.parquet: is only one file, expected two or more"),
        (f"{FILES[0]} other.parquet --local", "other.parquet: does not say which command made"),
        (f"{FILES[0]} 2_{FILES[0]} --local", "2_majority.parquet: is of task 2, and majority.par"),
        (f"{FILES[0]} answers.parquet --local", "answers.parquet: holds no probabilities of task"),
        (f"{BOTH} --local --output_dir . --output_file majority.csv", f"majority{OVERWRITTEN}"),
        (f"{BOTH} --local --output_file mine.parquet", f"/mine{OVERWRITTEN}"),
        (f"{BOTH} --local --weights 1", "1 weights for 2 files, expected as many"),
        (f"{BOTH} --local --weights 0 0", "--weights 0 0: expected numbers from 0 to 1,"),
        (f"{BOTH} --local --weights nan 1", "--weights nan 1: expected numbers from 0 "),
        (f"{BOTH} --local --weights 1e308 1", r"--weights 1e\+308 1: expected numbers from 0"),
        (f"{BOTH} --local --input_dir data/train_data", "expected the same training answe"),
        (f"failing.parquet {FILES[1]} --local", "task_1/failing.py: ended with exit code 1 on"),
        # The model of all.parquet has learned from all answers, also from those to predict. To
        # learn a weight, the tool would run the model again without these answers. This weight
        # would be wrong for the probabilities in the file.
        (f"{FILES[1]} all.parquet --local", "all.parquet: was learned from data/train_data/tr"),
    ],
)
def test_files_and_weights_that_cannot_be_blended_are_refused(
    kit: Path, words: str, expected: str
) -> None:
    before = sorted((kit / "data/test_output").iterdir())
    assert re.search(expected, fails([*BLEND, *words.split()], kit=kit, cwd=kit))
    assert sorted((kit / "data/test_output").iterdir()) == before


# This program writes a number into the file ALIVE every 0.05 s, as a sign that it runs. It ignores
# Control-C, as the sample models do until their step ends.
CHILD = """
import pathlib, signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
for number in range(600):
    pathlib.Path(ALIVE).write_text(str(number))
    time.sleep(0.05)
"""


@on_unix("signals that a process can end at in its own way")
@pytest.mark.parametrize(
    ("arguments", "signal_name"),
    [
        (f"tools.blend slow.parquet {FILES[0]} --local", "SIGTERM"),
        ("tools.cross_validate task_1/slow.py", "SIGINT"),
        ("tools.cross_validate task_1/slow.py", "SIGHUP"),
    ],
)
def test_a_tool_that_is_interrupted_while_it_runs_a_script_leaves_nothing_behind(
    kit: Path, tmp_path: Path, arguments: str, signal_name: str
) -> None:
    """An interrupted tool leaves no file, and it ends all processes that it has started.

    The tool runs the script task_1/slow.py, which starts the program `CHILD`. This program writes a
    file every 0.05 s, so the file shows whether the program still runs. `arguments` are the module
    and the arguments of the tool.
    """
    sign_of_life = tmp_path / "alive"
    child = tmp_path / "child.py"
    child.write_text(CHILD.replace("ALIVE", repr(str(sign_of_life))))
    start_child = f"import subprocess, sys\nsubprocess.run([sys.executable, {str(child)!r}])\n"
    (kit / "task_1/slow.py").write_text(start_child)
    outputs_before = sorted((kit / "data/test_output").iterdir())
    temporary = tmp_path / "temporary"
    temporary.mkdir()

    environment = {**os.environ, "PYTHONPATH": str(kit), "TMPDIR": str(temporary)}
    command = [sys.executable, "-m", *arguments.split()]
    process = subprocess.Popen(command, cwd=kit, env=environment, stderr=subprocess.DEVNULL)
    while not sign_of_life.exists():
        assert process.poll() is None
        time.sleep(0.05)
    signal_number = getattr(signal, signal_name)
    process.send_signal(signal_number)

    # By convention, a command that a signal has ended has the exit code 128 + the signal's number.
    assert process.wait(PATIENCE) == 128 + signal_number
    # If the program `CHILD` writes nothing more, it has ended, too.
    last_sign = sign_of_life.read_text()
    time.sleep(0.3)
    assert sign_of_life.read_text() == last_sign
    assert list(temporary.iterdir()) == []
    assert sorted((kit / "data/test_output").iterdir()) == outputs_before


@pytest.mark.parametrize(
    ("weights", "n_categories"),
    [([0.6, 0.4], 2), ([0.9, 0.0, 0.3], 4), ([1.5, 0.2], 2), ([1.0, -0.8], 2)],
)
def test_planted_weights_are_recovered(weights: list[float], n_categories: int) -> None:
    """Draw answers from a blend with known weights, and learn the weights again from the answers.

    The learned weights must be near the known ones, unless one of these is negative: learned
    weights are at least 0.
    """
    n_files = len(weights)
    n_answers = 100_000
    rng = np.random.default_rng(0)
    # Random probabilities of the categories, for each file and answer.
    probabilities = rng.dirichlet(np.full(n_categories, 2.0), (n_files, n_answers))
    logs = logarithms(probabilities)
    blended = np.exp(log_blend(logs, np.array(weights)))
    # Draw a category for each answer with the blended probabilities. The cumulative probabilities
    # divide the interval from 0 to 1 into a part for each category. The category is the part into
    # which a uniform random number falls: the number of limits between parts that lie below it.
    limits = blended.cumsum(axis=1)[:, :-1]
    uniform = rng.random((n_answers, 1))
    truth = (uniform > limits).sum(axis=1)

    learned = learn_weights(logs, truth)

    assert min(learned) >= 0
    if min(weights) >= 0:
        # The weights are learned by maximum likelihood. So the standard error of a weight is about
        # 1 / √(number of answers · Fisher information of an answer about the weight). The
        # information is the variance of the file's log probabilities over the categories, which is
        # at least 0.1 here. So the standard error is at most 1 / √(100,000 · 0.1) = 0.01. The test
        # allows three standard errors.
        assert learned == pytest.approx(weights, abs=0.03)


def test_the_blend_is_scored_on_answers_that_its_weights_were_not_learned_on() -> None:
    """Twelve files of random probabilities are blended, so no blend can be better than guessing.

    The loss of guessing is log 2. On the answers from which its weights were learned, a blend has a
    loss below log 2, because the weights fit these answers by chance. On other answers, it has a
    loss above log 2. So a loss above log 2 shows that the blend was scored on other answers.
    """
    n_files = 12
    n_answers = 60
    rng = np.random.default_rng(0)
    # The true category of an answer is 0 or 1. The probabilities of the two categories are random.
    truth = rng.integers(2, size=n_answers)
    probabilities = rng.dirichlet([2, 2], (n_files, n_answers))
    # The first file gives category 0 the probability 1 for nine answers. For some of these answers,
    # category 1 is true, and its probability is 0. The loss must still be finite.
    probabilities[0, :9] = [1, 0]
    logs = logarithms(probabilities)
    names = [f"file {number}" for number in range(n_files)]

    text = describe_weights(names, learn_weights(logs, truth), logs, truth)

    line_of_blend = text.splitlines()[-1]
    # The last two columns are log loss and accuracy.
    *_, loss, _ = line_of_blend.split()
    loss_of_blend = float(loss)
    loss_of_guessing = np.log(2)
    assert loss_of_guessing < loss_of_blend < np.inf
