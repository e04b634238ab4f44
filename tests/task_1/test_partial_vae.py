"""The partial VAE of tasks 1 and 2: several processes, a graphics card."""

from pathlib import Path

import numpy as np
import planted_answers as planted
import pytest
import torch
from planted_answers import TASKS, TRAIN, accuracy, command, predict, read_prediction
from run_scripts import ROOT, run_process

SCRIPT = "task_{}/sample_model_partial_vae.py"


def test_torchrun_with_two_processes_predicts_what_one_predicts(tmp_path: Path) -> None:
    """Only one of the processes may predict."""
    script = SCRIPT.format(1)
    arguments = command(script, tmp_path, TRAIN)
    alone = predict(script, tmp_path, "--steps", 60)
    (tmp_path / "submission_task_1.csv").unlink()
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", 2, "--"]
    done = run_process([*launcher, ROOT / script, *arguments[1:], "--steps", 60])
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("written: ") == 1
    together = read_prediction(script, tmp_path)
    assert accuracy(1, together) == pytest.approx(accuracy(1, alone), abs=0.02)
    assert np.mean(together == alone) > 0.9


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@TASKS
def test_cuda_predicts_what_the_processor_predicts(tmp_path: Path, task: int) -> None:
    predicted = predict(SCRIPT.format(task), tmp_path, "--device", "cuda")
    assert accuracy(task, predicted) > planted.majority_accuracy(task) + 0.02
