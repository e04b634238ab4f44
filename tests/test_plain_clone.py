"""Scripts run where they lie in a plain clone: the kit is not installed, only libraries are."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import ROOT
from run_scripts import LIBRARIES, Done, run_process


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


def test_the_first_thing_that_a_newcomer_types(tiny_kit: Path, bare: Path) -> None:
    (packages,) = bare.glob("[Ll]ib/**/site-packages")
    (packages / "libraries.pth").write_text("\n".join(map(str, LIBRARIES)))
    for folder, *command in (
        ("task_1", "local_data_split.py"),
        ("task_1", "sample_model_majority.py", "--local"),
        ("task_1", "local_evaluation.py"),
        ("task_1", "sample_model_majority.py"),
        ("task_4/numpy", "train_model.py"),
    ):
        done = run_in(tiny_kit / folder, command, bare)
        assert (done.returncode, done.stderr) == (0, ""), (command, done.stdout, done.stderr)
    assert (tiny_kit / "data/test_output/scores_task_1.html").is_file()
    assert (tiny_kit / "submissions/submission_task_1.zip").is_file()
    assert list((tiny_kit / "task_4/numpy").glob("model_task_4*"))


@pytest.mark.skipif(sys.platform == "win32", reason="needs links")
def test_the_majority_needs_numpy_and_pandas_only(tiny_kit: Path, bare: Path) -> None:
    (packages,) = bare.glob("lib/**/site-packages")
    for name in ("numpy", "numpy.libs", "pandas", "dateutil", "six.py"):
        for place in (Path(folder, name) for folder in LIBRARIES if Path(folder, name).exists()):
            (packages / name).symlink_to(place)
    for task in (1, 2):
        done = run_in(tiny_kit / f"task_{task}", ["sample_model_majority.py"], bare)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_package_that_is_missing_is_named(bare: Path) -> None:
    pins = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    (pin,) = [line for line in pins if line.startswith("numpy==")]
    for script in (
        "task_1/sample_model_majority.py",
        "task_4/local_evaluation.py",
        "task_4/numpy/local_evaluation.py",
        "related_challenges/cloze/sample_model_frequent.py",
    ):
        path = ROOT / script
        done = run_in(path.parent, [path.name], bare)
        assert (done.returncode, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        assert line.startswith("error: this Python has no numpy: ")
        assert f"-m pip install {pin}` installs it" in line


def test_threads_that_wait_soon_sleep_and_blas_has_one(bare: Path) -> None:
    names = "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "OPENBLAS_NUM_THREADS"
    code = f"import common, os; print(*map(os.environ.get, {names}))"
    for folder in (ROOT, ROOT / "task_1"):
        assert run_in(folder, ["-c", code], bare).stdout == "PASSIVE 10000 1\n"


def test_other_faults_are_shown_as_ever(tmp_path: Path) -> None:
    script = tmp_path / "entry.py"
    script.write_text("import common\nimport another_idea_of_mine\n")
    done = run_process([script])
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback")
    assert done.stderr.endswith("ModuleNotFoundError: No module named 'another_idea_of_mine'\n")
