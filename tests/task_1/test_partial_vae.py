"""The partial VAE of tasks 1 and 2 in several processes, and on a graphics card."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import planted_answers as planted
import pytest
import torch
from planted_answers import TASKS, TRAIN, accuracy, command, predict
from run_scripts import ROOT, run_process

SCRIPT = "task_{}/sample_model_partial_vae.py"


def run_processes(n: int, task: int, folder: Path, steps: int, train: pd.DataFrame) -> Any:
    """Train as torchrun does; only one of the processes may predict."""
    script, *rest = command(SCRIPT.format(task), folder, train)
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", n, "--"]
    done = run_process([*launcher, ROOT / str(script), *rest, "--steps", steps])
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("written: ") == 1
    return planted.read_prediction(SCRIPT.format(task), folder)


def test_two_processes_predict_what_one_predicts(tmp_path: Path) -> None:
    alone = predict(SCRIPT.format(1), tmp_path, "--steps", 60)
    (tmp_path / "submission_task_1.csv").unlink()
    together = run_processes(2, 1, tmp_path, 60, TRAIN)
    assert accuracy(1, together) == pytest.approx(accuracy(1, alone), abs=0.02)
    assert np.mean(together == alone) > 0.9


def test_a_process_without_students_does_not_wait(tmp_path: Path) -> None:
    run_processes(2, 2, tmp_path, 3, TRAIN[:1])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@TASKS
def test_cuda_predicts_what_the_processor_predicts(tmp_path: Path, task: int) -> None:
    predicted = predict(SCRIPT.format(task), tmp_path, "--device", "cuda")
    assert accuracy(task, predicted) > planted.majority_accuracy(task) + 0.02
