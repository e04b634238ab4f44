"""The partial VAE of tasks 1 and 2 in several processes, and on a graphics card."""

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from planted_answers import (
    TASKS,
    TRAIN,
    accuracy,
    command,
    majority_accuracy,
    predict,
    read_prediction,
)  # fmt: skip
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


def test_a_process_without_students_does_not_wait(tmp_path: Path) -> None:
    """Two processes share the answers of one student; started as torchrun starts them."""
    script = SCRIPT.format(2)
    arguments = command(script, tmp_path, TRAIN[:1])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
    with ThreadPoolExecutor() as both:
        first, second = both.map(
            lambda rank: run_process([*arguments, "--steps", 3], environment={**place, **rank}),
            ({"RANK": "0"}, {"RANK": "1"}),
        )
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert (first.stdout.count("written: "), second.stdout) == (1, "")
    read_prediction(script, tmp_path)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@TASKS
def test_cuda_predicts_what_the_processor_predicts(tmp_path: Path, task: int) -> None:
    predicted = predict(SCRIPT.format(task), tmp_path, "--device", "cuda")
    assert accuracy(task, predicted) > majority_accuracy(task) + 0.02
