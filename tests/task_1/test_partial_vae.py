"""The partial VAE of tasks 1 and 2: its optimiser, several processes, a graphics card."""

import atexit
import os
import sys
from pathlib import Path

import numpy as np
import planted_answers as planted
import pytest
import torch
from planted_answers import TASKS, TRAIN, accuracy, command, predict, read_prediction
from platforms import on_unix
from run_scripts import ROOT, run_process, run_script
from sample_blocks import needs_blocks

SCRIPT = "task_{}/sample_model_partial_vae.py"
# This code fits the same network first with the kit's Adam and then with PyTorch's. It prints
# whether the resulting weights are equal. After each fit it notes whether PyTorch's compiler,
# `torch._dynamo`, is imported, and prints this, too.
FIT_WITH_BOTH_OPTIMISERS = """
import sys, torch
from common.adam import Adam
from torch.optim.lr_scheduler import OneCycleLR
weights, is_imported = [], []
for optimiser in (Adam, torch.optim.Adam):
    torch.manual_seed(0)
    network = torch.nn.Linear(9, 5)
    adam = optimiser(network.parameters(), betas=(0.9, 0.99), fused=True)
    schedule = OneCycleLR(adam, 0.02, 30, pct_start=0.03)
    for _ in range(30):
        adam.zero_grad()
        network(torch.randn(7, 9)).square().sum().backward()
        adam.step()
        schedule.step()
    weights.append(network.weight)
    is_imported.append("torch._dynamo" in sys.modules)
print(torch.equal(*weights), is_imported)
"""


def test_the_optimiser_equals_pytorchs_but_does_not_import_its_compiler() -> None:
    """The kit has its own Adam to start sooner: PyTorch's Adam imports PyTorch's compiler.

    Importing the compiler takes as long as importing the rest of PyTorch.
    """
    done = run_process(["-c", FIT_WITH_BOTH_OPTIMISERS])
    assert (done.stdout, done.stderr) == ("True [False, True]\n", "")


@needs_blocks(SCRIPT.format(1))
@on_unix("libuv in its PyTorch, which torchrun needs")
def test_torchrun_with_two_processes_predicts_what_one_predicts(tmp_path: Path) -> None:
    """Two processes that fit a model together predict what one process predicts.

    Only the first of the two processes writes predictions.
    """
    script = SCRIPT.format(1)
    arguments = command(script, tmp_path, TRAIN)
    alone = predict(script, tmp_path, "--steps", 60)

    # Remove the submission of the single process, so that only the two processes can write one.
    (tmp_path / "submission_task_1.csv").unlink()
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", 2, "--"]
    # torchrun needs the absolute path of the script. The remaining arguments are its flags.
    _, *flags = arguments
    done = run_process([*launcher, ROOT / script, *flags, "--steps", 60])

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("written: ") == 1
    together = read_prediction(script, tmp_path)
    assert np.mean(together == alone) > 0.9
    # At most a tenth of the 2,268 predictions differ between one and two processes. If they differ
    # at random, the difference of the two accuracies has a standard error of √(0.1 / 2,268) =
    # 0.0066. The tolerance is three standard errors.
    assert accuracy(1, together) == pytest.approx(accuracy(1, alone), abs=0.02)


def disconnect_from_other_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the calls by which a process of torchrun depends on the other processes.

    Then a test can run one of several processes alone, inside the process of the test.
    """
    monkeypatch.setattr(torch.distributed, "init_process_group", lambda backend: None)
    monkeypatch.setattr(torch.nn.parallel, "DistributedDataParallel", lambda network: network)
    # The script registers a function that closes the connection to the other processes when Python
    # ends. There is no connection here, so nothing is registered.
    monkeypatch.setattr(atexit, "register", lambda function: function)
    # All processes of the script except the first end by `os._exit`. Here this call would end the
    # whole test run, so `sys.exit` takes its place.
    monkeypatch.setattr(os, "_exit", sys.exit)


@needs_blocks(SCRIPT.format(1), SCRIPT.format(2))
@TASKS
def test_a_process_without_students_takes_part_in_torchrun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: int
) -> None:
    """The third of three processes fits without students, prints nothing and writes no file.

    The students of a batch are dealt to the processes in turn. This batch holds only two students:
    one with answers, and one without answers, whose predictions serve for all unknown ids. So the
    third process gets no student.
    """
    answers_of_one_student = TRAIN[TRAIN.UserId == TRAIN.UserId[0]]
    arguments = command(SCRIPT.format(task), tmp_path, answers_of_one_student)
    disconnect_from_other_processes(monkeypatch)
    # RANK counts from 0: this is the third of three processes.
    third_of_three = {"RANK": "2", "WORLD_SIZE": "3"}

    done = run_script([*arguments, "--steps", 2], environment=third_of_three)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not list(tmp_path.glob("submission_*"))


@needs_blocks(SCRIPT.format(1), SCRIPT.format(2))
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@TASKS
def test_cuda_predicts_what_the_processor_predicts(tmp_path: Path, task: int) -> None:
    predicted = predict(SCRIPT.format(task), tmp_path, "--device", "cuda")
    assert accuracy(task, predicted) > planted.majority_accuracy(task) + 0.02
