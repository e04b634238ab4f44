"""Every sample model of tasks 1 and 2 says its probabilities, and learned ones log their steps."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT, Run, run_python

SCRIPTS = sorted(
    path.relative_to(ROOT).as_posix() for path in ROOT.glob("task_[12]/sample_model_*.py")
)
# Fewer steps than by default, and groups of features that need no other model.
FAST = {
    "partial_vae": ["--steps", "200"],
    "gradient_boosting": ["--features", "rates", "context"],
}
KEYS = ["UserId", "QuestionId"]


@pytest.fixture(scope="module")
def kit(simulated_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    kit = Path(shutil.copytree(simulated_kit, tmp_path_factory.mktemp("probabilities") / "kit"))
    assert run_python(["task_1/local_data_split.py"], kit=kit).returncode == 0
    return kit


@pytest.mark.parametrize("script", SCRIPTS)
def test_probabilities_belong_to_the_predictions(
    kit: Path, run: Run, tmp_path: Path, script: str
) -> None:
    task, name = int(script[5]), Path(script).stem.removeprefix("sample_model_")
    log = [] if name == "majority" else ["--log", tmp_path / "fit.jsonl"]
    here = ["--local", "--output_dir", tmp_path, "--probabilities", tmp_path / "p.parquet"]
    done = run([script, *here, *log, *FAST.get(name, [])], kit=kit)
    assert done.returncode == 0, done.stderr
    predicted = pd.read_csv(tmp_path / f"test_submission_task_{task}.csv")
    written = pd.read_parquet(tmp_path / "p.parquet")
    truth = pd.read_csv(kit / "data/test_input/valid_task_1_2.csv")
    pd.testing.assert_frame_equal(written[KEYS], predicted[KEYS], check_dtype=False)
    pd.testing.assert_frame_equal(truth[KEYS], predicted[KEYS])
    if task == 1:
        p = written.ProbabilityCorrect.to_numpy()
        # Of questions that are tied or unknown, the majority model says 1/2.
        decided = np.abs(p - 0.5) > 1e-6
        assert np.array_equal((p > 0.5)[decided], predicted.IsCorrect.to_numpy()[decided] == 1)
        assert decided.mean() > 0.9
        p_of_truth = np.where(truth.IsCorrect == 1, p, 1 - p)
        share = truth.IsCorrect.mean()
        base = -(share * np.log(share) + (1 - share) * np.log(1 - share))
    else:
        p = written[[f"ProbabilityOption{o}" for o in range(1, 5)]].to_numpy()
        assert np.allclose(p.sum(axis=1), 1, atol=1e-5)
        assert np.array_equal(1 + p.argmax(axis=1), predicted.AnswerValue)
        p_of_truth = p[np.arange(len(p)), truth.AnswerValue - 1]
        shares = truth.AnswerValue.value_counts(normalize=True)
        base = -(shares * np.log(shares)).sum()
    # They tell more than the shares over all answers do.
    assert -np.log(p_of_truth).mean() < base - 0.01
    if log:
        start, *steps = map(json.loads, (tmp_path / "fit.jsonl").read_text().splitlines())
        assert start["event"] == "start"
        assert len(steps) > 2
        first = 0 if name == "gradient_boosting" else 1
        assert [step["step"] for step in steps] == list(range(first, first + len(steps)))
        loss = "held_out_loss" if name == "item_response" else "loss"
        assert steps[-1][loss] < steps[0][loss]
