"""Blends of real scripts' probabilities, from the command line to a checked submission."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from conftest import Run

from common.probabilities import read_probabilities

BLEND = ["-m", "common.blend"]


@pytest.fixture(scope="module")
def kit(simulated_kit: Path, tmp_path_factory: pytest.TempPathFactory, run: Run) -> Path:
    """Return a kit with probabilities of two models for the local split, task 1; add to it only."""
    kit = tmp_path_factory.mktemp("blended") / "kit"
    shutil.copytree(simulated_kit, kit)
    assert run(["task_1/local_data_split.py"], kit=kit).returncode == 0
    for model, flags in (("majority", []), ("matrix_factorization", ["--dimensions", "2"])):
        script = f"task_1/sample_model_{model}.py"
        words = [script, "--local", *flags, "--probabilities", f"{model}.parquet"]
        done = run(words, kit=kit, cwd=kit)
        assert done.returncode == 0, done.stderr
    return kit


FILES = ["majority.parquet", "matrix_factorization.parquet"]


@pytest.mark.parametrize("task", [1, 2])
def test_a_blend_of_two_scripts(tiny_kit: Path, run: Run, task: int) -> None:
    def ok(*words: str) -> str:
        done = run(words, kit=tiny_kit, cwd=tiny_kit)
        assert done.returncode == 0, done.stderr
        return str(done.stdout)

    ok(f"task_{task}/local_data_split.py")
    for name in ("majority", "matrix_factorization"):
        flags = ["--log", "fit.jsonl", "--seed=4"] * (name != "majority")
        script = f"task_{task}/sample_model_{name}.py"
        ok(script, "--local", "--probabilities", f"{name}.parquet", *flags)
    log = (tiny_kit / "fit.jsonl").read_text()
    printed = ok(*BLEND, *FILES, "--local")
    # The log was the first run's, and is not continued.
    assert (tiny_kit / "fit.jsonl").read_text() == log
    rows = [re.split(r"\s{2,}", line) for line in printed.splitlines()[2:5]]
    assert [row[0] for row in rows] == [*FILES, "the blend"]
    assert all(float(row[1]) >= 0 for row in rows[:2])
    losses = [float(row[-2]) for row in rows]
    assert losses[2] < min(losses[:2]) + 0.005

    evaluation = ok(f"task_{task}/local_evaluation.py")
    written = tiny_kit / f"data/test_output/test_submission_task_{task}"
    p = read_probabilities(written.with_suffix(".parquet"), task)
    weights = [row[1] for row in rows[:2]]
    apart = [read_probabilities(tiny_kit / file, task) for file in FILES]
    logs = [np.log(np.maximum(file.value, 1e-6)) for file in apart]
    total = np.exp(np.tensordot(np.array(weights, float), logs, axes=1))
    assert np.allclose(p.value, total / total.sum(axis=1, keepdims=True), atol=0.005)
    column = np.loadtxt(written.with_suffix(".csv"), str, delimiter=",")
    name = "IsCorrect" if task == 1 else "AnswerValue"
    value = column[1:, column[0].tolist().index(name)].astype(int)
    assert np.array_equal(value, p.value.argmax(axis=1) + (task == 2))
    line = json.loads((tiny_kit / "data/test_output/results.jsonl").read_text().splitlines()[-1])
    assert line["made_by"] == f"python -m common.blend {' '.join(FILES)} --local"
    assert f"score {line['score']:.4f}" in evaluation
    page = (tiny_kit / f"data/test_output/scores_task_{task}.html").read_text()
    assert "<td>python -m common.blend " in page
    assert "blend majority matrix_factorization" in ok("-m", "common.scoreboard")


def test_given_weights_run_nothing(kit: Path, tmp_path: Path, run: Run) -> None:
    kit = Path(shutil.copytree(kit, tmp_path / "kit"))
    for path in kit.glob("task_1/sample_model_*.py"):
        path.unlink()
    for weights in (["0", "1"], ["0", "2.5"]):
        words = [*BLEND, *FILES, "--local", "--weights", *weights]
        done = run(words, kit=kit, cwd=kit)
        assert done.returncode == 0, done.stderr
        assert "held out" not in done.stdout
        blended, own = (
            read_probabilities(kit / name, 1).value
            for name in ("data/test_output/test_submission_task_1.parquet", FILES[1])
        )
        assert np.array_equal(blended.argmax(axis=1), own.argmax(axis=1))
        assert np.allclose(blended, own, atol=1e-4) == (weights == ["0", "1"])


def without_origin(path: Path) -> None:
    pq.write_table(pq.read_table(path).replace_schema_metadata(None), path)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([*FILES], "majority.parquet: holds .* pairs, expected the .*, the template of this blend"),
        ([FILES[0], "--local"], "majority.parquet: is only one file, expected two or more"),
        ([FILES[0], "other.parquet", "--local"], "other.parquet: does not say which command made"),
        ([FILES[0], "task_2.parquet", "--local"], "task_2.parquet: is of task 2, and majority.par"),
        ([FILES[0], "text.parquet", "--local"], "text.parquet: holds no probabilities of task 1"),
        ([FILES[0], "gone.parquet", "--local"], "gone.parquet: file not found"),
        (
            [*FILES, "--local", "--output_dir", ".", "--output_file", "majority.csv"],
            "^majority.parquet: is where the blend's own probabilities go",
        ),
        (
            [*FILES, "--local", "--output_file", "mine.parquet"],
            "mine.parquet: is where the blend's own probabilities go",
        ),
        ([*FILES, "--local", "--weights", "1"], "1 weights for 2 files, expected as many"),
        ([*FILES, "--local", "--weights", "0", "0"], "--weights 0 0: expected numbers of at least"),
        ([*FILES, "--local", "--weights", "nan", "1"], "--weights nan 1: expected numbers of at l"),
        ([*FILES, "--local", "--input_dir", "data/train_data"], "expected the same training answe"),
        (
            [FILES[1], "removed.parquet", "--local"],
            "made by task_1/removed.py, which cannot be rep",
        ),
        ([FILES[1], "failing.parquet", "--local"], "task_1/failing.py: ended with exit code 1 on"),
    ],
)
def test_what_cannot_be_blended(
    kit: Path, run: Run, fails: Callable[..., str], words: list[str], expected: str
) -> None:
    def make(script: str, name: str) -> Path:
        done = run([script, "--local", "--probabilities", name], kit=kit, cwd=kit)
        assert done.returncode == 0, done.stderr
        return kit / name

    if "other.parquet" in words:
        without_origin(make("task_1/sample_model_majority.py", "other.parquet"))
    if "task_2.parquet" in words:
        make("task_2/sample_model_majority.py", "task_2.parquet")
    (kit / "text.parquet").write_text("UserId,QuestionId,ProbabilityCorrect\n")
    for name in ("removed", "failing"):
        if f"{name}.parquet" in words:
            script = kit / f"task_1/{name}.py"
            script.write_text((kit / "task_1/sample_model_majority.py").read_text())
            make(f"task_1/{name}.py", f"{name}.parquet")
            script.unlink()
            if name == "failing":
                script.write_text("raise ValueError('changed')\n")
    before = sorted((kit / "data/test_output").iterdir())
    assert re.search(expected, fails([*BLEND, *words], kit=kit, cwd=kit))
    assert sorted((kit / "data/test_output").iterdir()) == before


def test_no_weight_is_learned_from_what_is_predicted(kit: Path, run: Run) -> None:
    """A file that learned from all answers, the local template's too, must not enter a local one.

    Its weights would be learned from answers that it never saw, but its predictions are not.
    """
    template = ["--submission_template_dir", "data/test_input"]
    template += ["--submission_template_file", "test_submission_task_1_2.csv"]
    words = ["task_1/sample_model_majority.py", *template, "--probabilities", "all.parquet"]
    assert run(words, kit=kit, cwd=kit).returncode == 0
    done = run([*BLEND, FILES[1], "all.parquet", "--local"], kit=kit, cwd=kit)
    assert done.returncode == 2
    assert "all.parquet: was learned from data/train_data/train_task_1_2.csv" in done.stderr
