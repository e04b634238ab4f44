"""The sample models that blend others, run as a user runs them on planted answers."""

from pathlib import Path

from common import provenance
from common.probabilities import read_probabilities

import numpy as np
import planted_answers as planted
import pytest
from ability import load_module
from conftest import fails
from planted_answers import TASKS, TEST, TRAIN
from run_scripts import ROOT, run_script
from sample_blocks import needs_blocks

SCRIPTS = ["task_1/sample_model_blend.py", "task_2/sample_model_blend.py"]
ITEM_RESPONSE = "item_response"
# The answers of 30 students. With fewer than 1,000 training answers, an item response model does
# not choose its settings, which would take most of the time.
SOME_STUDENTS = TRAIN.UserId.unique()[:30]
FEW_TRAIN = TRAIN[TRAIN.UserId.isin(SOME_STUDENTS)]
FEW_TEST = TEST[TEST.UserId.isin(SOME_STUDENTS)]
assert len(FEW_TRAIN) < 1_000


@TASKS
@needs_blocks(*SCRIPTS)
def test_a_blend_of_one_model_is_the_model_to_the_power_of_its_weight(
    task: int, tmp_path: Path
) -> None:
    """The blend of one model raises the model's probabilities to a power, the weight of the model.

    A blend chooses a weight w for each model and raises the model's probabilities to the power w.
    Then it multiplies these powers over the models, and divides the products by their sum over the
    possible answers. With one model, a probability p becomes p^w / Σ p^w. To compare, the test runs
    the model's own script, which fits the model to all training answers.
    """
    blend = SCRIPTS[task - 1]
    model = blend.replace("blend", "item_response")
    model_folder = tmp_path / "model"
    blend_folder = tmp_path / "blend"
    model_folder.mkdir()
    blend_folder.mkdir()
    model_file = model_folder / "p.parquet"
    blend_file = blend_folder / "p.parquet"

    answers = {"train": FEW_TRAIN, "pairs": FEW_TEST}
    predicted = planted.predict(model, model_folder, "--probabilities", model_file, **answers)
    arguments = planted.command(blend, blend_folder, **answers)
    arguments += ["--models", ITEM_RESPONSE, "--probabilities", blend_file]
    done = run_script(arguments)

    assert (done.returncode, done.stderr) == (0, "")
    assert np.array_equal(planted.read_prediction(blend, blend_folder, FEW_TEST), predicted)
    weight = printed_weight(done.stdout)
    power = read_probabilities(model_file, task).value ** weight
    expected = power / power.sum(axis=1, keepdims=True)
    tolerance = error_of_rounded_weight(weight) + 1e-5
    assert read_probabilities(blend_file, task).value == pytest.approx(expected, abs=tolerance)

    record = provenance.read(blend_folder / f"submission_task_{task}.csv")
    assert record is not None
    assert set(record.code_of_parts) == {model}
    assert set(record.made_from) == {"train.csv", "template.csv"}


def printed_weight(printed: str) -> float:
    """Return the weight of the item response model in the table that a blend prints."""
    # A line of the table has four columns: name, weight, log loss and accuracy.
    (row,) = [line for line in printed.splitlines() if line.startswith(ITEM_RESPONSE)]
    weight, _log_loss, _accuracy = row.removeprefix(ITEM_RESPONSE).split()
    return float(weight)


def error_of_rounded_weight(weight: float) -> float:
    """Return the largest error of a blended probability if the weight has three decimals."""
    largest_error_of_weight = 0.0005
    # The derivative of a blended probability q with respect to the weight is q · (log q − m) /
    # weight, where m is the mean of log q over the possible answers, weighted by their
    # probabilities. The terms q · log q and −q · m have opposite signs, and with up to four
    # possible answers neither exceeds log(4) in absolute value. So the derivative is at most
    # log(4) / weight.
    return largest_error_of_weight * float(np.log(4)) / weight


@TASKS
@needs_blocks(*SCRIPTS)
def test_a_model_that_fails_is_named_and_nothing_is_written(task: int, tmp_path: Path) -> None:
    """Gradient boosting refuses to learn from 150 answers, because they are too few."""
    arguments = planted.command(SCRIPTS[task - 1], tmp_path, TRAIN[:150])
    line = fails([*arguments, "--models", "gradient_boosting"])
    assert f"task_{task}/sample_model_gradient_boosting.py: ended with exit code 2 on 80 %" in line
    assert "expected at least 100 of each" in line
    assert not list(tmp_path.glob("submission_*"))


@TASKS
@needs_blocks(*SCRIPTS)
def test_each_fit_of_the_trees_has_another_seed(task: int) -> None:
    """A blend fits gradient boosting several times, each time with another seed.

    Two blends with different seeds have no seed of a fit in common.
    """
    blend = load_module(ROOT / SCRIPTS[task - 1], f"blend_of_task_{task}")
    seeds = []
    for seed in (0, 1):
        commands = blend.list_commands("gradient_boosting", seed)
        seeds += [flags[flags.index("--seed") + 1] for _, flags in commands]
    assert len(set(seeds)) == len(seeds) == 2 * blend.N_FITS["gradient_boosting"] > 2
