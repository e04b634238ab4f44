"""Scripts run where they lie in a plain clone: the kit is not installed, only libraries are."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest
from conftest import ROOT, succeeds
from platforms import on_unix, with_links
from run_scripts import LIBRARIES, Done

# Typed in these folders, as the challenge's guide says.
GUIDE = {
    "task_1": ("local_data_split.py", "sample_model_majority.py", "local_evaluation.py"),
    "task_2": ("local_data_split.py", "sample_model_majority.py", "local_evaluation.py"),
    "task_3": ("sample_model_entropy.py", "sample_model_random.py"),
    "task_4": ("local_data_split.py",),
    "task_4/numpy": ("train_model.py", "local_evaluation.py"),
    "task_4/pytorch": ("train_model.py", "local_evaluation.py"),
}
PLACES = """
data/test_input/train_task_1_2.csv data/test_input/valid_task_1_2.csv
data/test_input/train_task_4.csv data/test_input/valid_task_4.csv submissions/submission_task_1.csv
submissions/submission_task_2.csv submissions/submission_task_3.csv task_4/pytorch/model_task_4.pt
task_4/numpy/model_task_4_most_popular.npy task_4/numpy/model_task_4_num_answers.npy
"""


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    folder = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder


def run_in(folder: Path, command: Sequence[str], environment: Path) -> Done:
    """Run a script by its bare name, as typed in its folder."""
    python = str(environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    unset = ("PYTHONPATH", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
    env = {name: value for name, value in os.environ.items() if name not in unset}
    return subprocess.run([python, *command], cwd=folder, env=env, capture_output=True, text=True)


@pytest.mark.slow
def test_commands_and_places_of_the_challenges_guide(tiny_kit: Path, bare: Path) -> None:
    """Word for word, in an environment with another copy of the kit, whose data stay alone."""
    (packages,) = bare.glob("[Ll]ib/**/site-packages")
    (packages / "installed.pth").write_text("\n".join(map(str, [ROOT, *LIBRARIES])))
    for folder, scripts in GUIDE.items():
        for script in scripts:
            done = run_in(tiny_kit / folder, [script], bare)
            assert (done.returncode, done.stderr) == (0, ""), (folder, script, done)
        assert ("score 0." in done.stdout) == (script == "local_evaluation.py"), done
    assert not [place for place in PLACES.split() if not (tiny_kit / place).is_file()]

    # Predictions of the local split: the guide keeps them beside it. Of two, the newer one counts.
    valid = pd.read_csv(tiny_kit / "data/test_input/valid_task_1_2.csv")
    here = tiny_kit / "data/test_output/test_submission_task_1.csv"
    valid.assign(IsCorrect=1).to_csv(here, index=False)
    valid.to_csv(tiny_kit / "data/test_input" / here.name, index=False)
    evaluate = ["task_1/local_evaluation.py"]
    assert succeeds(evaluate, kit=tiny_kit).startswith("score 1.0000 ")
    assert here.with_name("scores_task_1.txt").read_text() == "score:1.0\n"
    here.touch()
    assert "score 1.0000" not in succeeds(evaluate, kit=tiny_kit)


@with_links
@on_unix("libraries below lib/")
def test_the_majority_needs_numpy_and_pandas_only(tiny_kit: Path, bare: Path) -> None:
    (packages,) = bare.glob("lib/**/site-packages")
    for name in ("numpy", "numpy.libs", "pandas", "dateutil", "six.py"):
        for place in (Path(folder, name) for folder in LIBRARIES if Path(folder, name).exists()):
            (packages / name).symlink_to(place)
    for task in (1, 2):
        done = run_in(tiny_kit / f"task_{task}", ["sample_model_majority.py"], bare)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.files
def test_a_package_that_is_missing_is_named(bare: Path) -> None:
    pins = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    (pin,) = [line for line in pins if line.startswith("numpy==")]
    for folder, script in (
        ("task_1", "sample_model_majority.py"),
        ("task_4/numpy", "local_evaluation.py"),
        ("related_challenges/cloze", "sample_model_frequent.py"),
    ):
        done = run_in(ROOT / folder, [script], bare)
        assert (done.returncode, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        assert line.startswith("error: this Python has no numpy: ")
        assert f"-m pip install {pin}` installs it" in line
    # The kit's own are found; what no list of packages names is the script's fault, shown as ever.
    done = run_in(ROOT / "task_1", ["-c", "import common, tools, no_module"], bare)
    assert done.returncode == 1 and done.stderr.endswith("Error: No module named 'no_module'\n")


def test_a_folder_without_the_kit_says_what_to_do(tmp_path: Path, bare: Path) -> None:
    """Scripts that were copied to a place where no kit is."""
    for name in ("common.py", "sample_model_majority.py"):
        shutil.copyfile(ROOT / "task_1" / name, tmp_path / name)
    done = run_in(tmp_path, ["sample_model_majority.py"], bare)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: {tmp_path}: the starter kit is not found; move this folder ")


def test_threads_that_wait_soon_sleep_and_blas_has_one(bare: Path) -> None:
    names = "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "OPENBLAS_NUM_THREADS"
    code = f"import common, os; print(*map(os.environ.get, {names}))"
    for folder in (ROOT, ROOT / "task_1"):
        assert run_in(folder, ["-c", code], bare).stdout == "PASSIVE 10000 1\n"
