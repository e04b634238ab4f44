"""Blends of real scripts' probabilities, from the command line to a checked submission."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from common.fingerprints import fingerprint
from common.probabilities import read_probabilities
from tools.blend import describe_weights, learn_weights, log_blend, logarithms
from tools.results import read_results

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
    """Return a kit with probabilities of both tasks for the local split; tests only add to it."""
    kit = Path(shutil.copytree(split_kit, tmp_path_factory.mktemp("blended") / "kit"))
    for task, prefix in ((1, ""), (2, "2_")):
        flags = ["--local", "--log", f"fit_{task}.jsonl", "--seed=4", "--dimensions", 2]
        for name, more in zip(FILES, (["--local"], flags), strict=True):
            script = f"task_{task}/sample_model_{name.removesuffix('.parquet')}.py"
            succeeds([script, "--probabilities", prefix + name, *more], kit=kit, cwd=kit)
    # Files whose scripts do not finish or fail if they run again.
    for name in ("slow", "failing"):
        forge(kit, kit / f"{name}.parquet", script=f"task_1/{name}.py")
    (kit / "task_1/failing.py").write_text("raise ValueError('changed')\n")
    # A file whose model has learned from all answers, not from the local split.
    train = "data/train_data/train_task_1_2.csv"
    forge(kit, kit / "all.parquet", made_from={train: fingerprint(kit / train)})
    table = pd.read_parquet(kit / FILES[0])
    table.attrs.clear()
    # A file without a record of its origin, and one without probabilities.
    table.to_parquet(kit / "other.parquet")
    table[["UserId"]].to_parquet(kit / "answers.parquet")
    return kit


def forge(kit: Path, path: Path, **origin: object) -> None:
    """Write the majority model's probabilities with a forged record of their origin.

    `origin` replaces fields of the record.
    """
    table = pd.read_parquet(kit / FILES[0])
    table.attrs["origin"] = json.dumps({**json.loads(table.attrs["origin"]), **origin})
    table.to_parquet(path)


@pytest.mark.parametrize("task", [1, 2])
def test_a_blend_of_two_scripts_is_the_weighted_mean_of_their_log_probabilities(
    kit: Path, task: int
) -> None:
    """Its loss is hardly above that of the better script; the evaluation scores it."""
    files = FILES if task == 1 else [f"2_{name}" for name in FILES]
    log = (kit / f"fit_{task}.jsonl").read_text()
    printed = succeeds([*BLEND, *files, "--local"], kit=kit, cwd=kit)
    # The blend runs the script again on fewer answers; that run must not append to its log.
    assert (kit / f"fit_{task}.jsonl").read_text() == log
    rows = [re.split(r"\s{2,}", line) for line in printed.splitlines()[2:5]]
    assert [row[0] for row in rows] == [*files, "the blend"]
    weights = [float(row[1]) for row in rows[:2]]
    assert min(weights) >= 0
    losses = [float(row[-2]) for row in rows]
    assert losses[2] < min(losses[:2]) + 0.005

    written = kit / f"data/test_output/test_submission_task_{task}"
    p = read_probabilities(written.with_suffix(".parquet"), task)
    apart = [read_probabilities(kit / file, task) for file in files]
    logs = [np.log(np.maximum(file.value, 1e-6)) for file in apart]
    total = np.exp(np.tensordot(weights, logs, axes=1))
    assert np.allclose(p.value, total / total.sum(axis=1, keepdims=True), atol=0.005)
    value = pd.read_csv(written.with_suffix(".csv"))[{1: "IsCorrect", 2: "AnswerValue"}[task]]
    assert np.array_equal(value, p.value.argmax(axis=1) + (task == 2))
    if task == 2:
        return
    evaluation = succeeds(["task_1/local_evaluation.py"], kit=kit)
    line = read_results(kit / "data/test_output/results.jsonl")[-1]
    assert made_by(line) == f"python -m tools.blend {' '.join(files)} --local"
    assert f"score {line.score:.4f}" in evaluation


def test_with_given_weights_no_script_is_run(kit: Path) -> None:
    own = read_probabilities(kit / FILES[1], 1).value
    for weights in (["0", "1"], ["0", "2.5"]):
        words = [*BLEND, "failing.parquet", FILES[1], "--local", "--weights", *weights]
        assert "held out" not in succeeds(words, kit=kit, cwd=kit)
        written = kit / "data/test_output/test_submission_task_1.parquet"
        blended = read_probabilities(written, 1).value
        assert np.array_equal(blended.argmax(axis=1), own.argmax(axis=1))
        # A weight of 2.5 makes the probabilities more extreme, but changes no prediction.
        assert np.allclose(blended, own, atol=1e-4) == (weights == ["0", "1"])


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


@with_links
def test_only_scripts_of_this_kit_are_run_again(kit: Path, tmp_path: Path) -> None:
    """A file of probabilities may come from anywhere and name any script."""
    outside = tmp_path / "outside.py"
    ran = tmp_path / "ran"
    outside.write_text(f"open({str(ran)!r}, 'w')\n")
    (kit / "task_1/link.py").symlink_to(outside)
    majority = "task_1/sample_model_majority.py"
    reads_metadata = "task_1/sample_model_item_response.py"
    not_entries = (
        str(outside),
        f"task_1/../{os.path.relpath(outside, kit)}",
        "task_1/link.py",
        "task_1",
        "task_1/local_evaluation.py",
        "task_2/sample_model_majority.py",
        "task_1/gone.py",
    )
    cases: list[tuple[str, dict[str, Any], str]] = [
        *((name, {}, "cannot be repeated, expected a script in task_1/") for name in not_entries),
        (majority, {"own": "1"}, "was made with '--own', which is no flag of task_1/sample_mo"),
        (majority, {"files": ["--steps"]}, "was made with '--steps', which is no flag"),
        (
            reads_metadata,
            {"metadata_dir": ["--output_dir", str(tmp_path)]},
            "with '--output_dir', ",
        ),
        ("task_1/a\0b.py", {}, "does not say which command made it"),
    ]
    forged = tmp_path / "forged.parquet"
    for script, options, expected in cases:
        forge(kit, forged, script=script, options=options)
        line = fails([*BLEND, kit / FILES[1], forged, "--local"], kit=kit, cwd=kit)
        assert line.startswith(f"{forged}: ") and expected in line
    assert not ran.exists()


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
        # The model of this file has also learned from the answers to be predicted. Its weight would
        # come from a run without those answers, so that it would not fit these predictions.
        (f"{FILES[1]} all.parquet --local", "all.parquet: was learned from data/train_data/tr"),
    ],
)
def test_files_and_weights_that_cannot_be_blended_are_refused(
    kit: Path, words: str, expected: str
) -> None:
    before = sorted((kit / "data/test_output").iterdir())
    assert re.search(expected, fails([*BLEND, *words.split()], kit=kit, cwd=kit))
    assert sorted((kit / "data/test_output").iterdir()) == before


@on_unix("signals that a process can end at in its own way")
@pytest.mark.parametrize(
    ("words", "name"),
    [
        (f"tools.blend slow.parquet {FILES[0]} --local", "SIGTERM"),
        ("tools.cross_validate task_1/slow.py", "SIGINT"),
        ("tools.cross_validate task_1/slow.py", "SIGHUP"),
    ],
)
def test_a_tool_that_is_interrupted_while_it_runs_a_script_leaves_nothing_behind(
    kit: Path, tmp_path: Path, words: str, name: str
) -> None:
    """No file is left, and neither the script nor a process that it has started goes on."""
    sign_of_life = tmp_path / "alive"
    child = tmp_path / "child.py"
    temporary = tmp_path / "temporary"
    # The child goes on after Control-C, as the sample models do.
    child.write_text(f"""import pathlib, signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
for number in range(600):
    pathlib.Path({str(sign_of_life)!r}).write_text(str(number))
    time.sleep(0.05)
""")
    slow = f"import subprocess, sys\nsubprocess.run([sys.executable, {str(child)!r}])\n"
    (kit / "task_1/slow.py").write_text(slow)
    before = sorted((kit / "data/test_output").iterdir())
    temporary.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(kit), "TMPDIR": str(temporary)}
    command = [sys.executable, "-m", *words.split()]
    process = subprocess.Popen(command, cwd=kit, env=environment, stderr=subprocess.DEVNULL)
    while not sign_of_life.exists():
        assert process.poll() is None
        time.sleep(0.05)
    number = getattr(signal, name)
    process.send_signal(number)
    assert process.wait(PATIENCE) == 128 + number
    last = sign_of_life.read_text()
    time.sleep(0.3)
    assert sign_of_life.read_text() == last
    assert not [*temporary.iterdir()]
    assert sorted((kit / "data/test_output").iterdir()) == before


@pytest.mark.parametrize(
    ("weights", "n_categories"),
    [([0.6, 0.4], 2), ([0.9, 0.0, 0.3], 4), ([1.5, 0.2], 2), ([1.0, -0.8], 2)],
)
def test_planted_weights_are_recovered(weights: list[float], n_categories: int) -> None:
    """A file that makes the blend worse, with a negative weight, gets the weight 0."""
    rng = np.random.default_rng(0)
    logs = logarithms(rng.dirichlet(np.full(n_categories, 2.0), (len(weights), 100_000)))
    blended = np.exp(log_blend(logs, np.array(weights)))
    truth = (rng.random((100_000, 1)) > blended.cumsum(axis=1)[:, :-1]).sum(axis=1)
    learned = learn_weights(logs, truth)
    assert min(learned) >= 0
    if min(weights) >= 0:
        # Each answer has a Fisher information of at least 0.1 about a weight, the variance of the
        # log probabilities. The standard error of a weight is at most 1 / √(100,000 · 0.1) = 0.01.
        # The tolerance is three standard errors.
        assert learned == pytest.approx(weights, abs=0.03)


def test_the_blend_is_scored_on_answers_that_its_weights_were_not_learned_on() -> None:
    """On the answers that the weights are learned on, even random probabilities seem to help."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=60)
    p = rng.dirichlet([2, 2], (12, 60))
    # The first file gives a probability of 0 to some true answers; the loss must stay finite.
    p[0, :9] = 1, 0
    logs = logarithms(p)
    paths = [Path(f"{number}.parquet") for number in range(12)]
    text = describe_weights(paths, learn_weights(logs, truth), logs, truth)
    loss_of_blend = float(text.splitlines()[-1].split()[-2])
    # The blend is worse than guessing, whose loss is log 2.
    assert np.log(2) < loss_of_blend < np.inf
