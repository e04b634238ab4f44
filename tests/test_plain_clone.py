"""In a plain clone, scripts start in their folders without an installed kit."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from common.adaptive import evaluation

import pandas as pd
import pytest
from conftest import ROOT, keep_only, run, shorten, succeeds
from platforms import on_unix, with_links
from run_scripts import LIBRARIES, Done

# The files that the commands of FROM_THE_GUIDE.md write, at the paths that the guide names.
WRITTEN_FILES = (
    "data/test_input/train_task_1_2.csv",
    "data/test_input/valid_task_1_2.csv",
    "data/test_input/train_task_4.csv",
    "data/test_input/valid_task_4.csv",
    "data/test_output/scores_task_1.txt",
    "data/test_output/scores_task_2.html",
    "submissions/submission_task_1.csv",
    "submissions/submission_task_2.csv",
    "submissions/submission_task_3.csv",
    "task_4/pytorch/model_task_4.pt",
    "task_4/numpy/model_task_4_most_popular.npy",
    "task_4/numpy/model_task_4_num_answers.npy",
)


@pytest.fixture
def bare_environment(tmp_path: Path) -> Path:
    """Return the folder of a new Python environment in which no package is installed."""
    folder = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder


def run_in(folder: Path, command: Sequence[str], environment: Path) -> Done:
    """Run a command in a folder with the Python of an environment, as a user would."""
    python = str(environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    unset = ("PYTHONPATH", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
    env = {name: value for name, value in os.environ.items() if name not in unset}
    return subprocess.run([python, *command], cwd=folder, env=env, capture_output=True, text=True)


def add_libraries(environment: Path, *folders: Path) -> None:
    """Let the Python of an environment find the libraries of this Python, and further folders.

    Python adds the folders that a .pth file names to the folders in which it finds modules.
    """
    (packages,) = environment.glob("[Ll]ib/**/site-packages")
    (packages / "installed.pth").write_text("\n".join(map(str, [*folders, *LIBRARIES])))


def test_the_quickstart_itself_needs_no_library(tiny_kit: Path, bare_environment: Path) -> None:
    """The Python that starts the quickstart has no libraries; the Python in .venv has them.

    A newcomer starts the quickstart before anything is installed.
    """
    keep_only(tiny_kit, "majority")
    venv = tiny_kit / ".venv"
    shutil.copytree(bare_environment, venv, symlinks=True)
    add_libraries(venv, tiny_kit)
    done = run_in(tiny_kit, ["quickstart.py"], bare_environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert "majority: score 0." in done.stdout
    assert "installing" not in done.stdout


class GuideCommand(NamedTuple):
    """A command of FROM_THE_GUIDE.md."""

    # The folder in which the command runs.
    folder: str
    # The script and its flags: the words of the command after `python`.
    words: list[str]


def guide_commands() -> list[GuideCommand]:
    """Return the commands of FROM_THE_GUIDE.md in their order."""
    page = (ROOT / "FROM_THE_GUIDE.md").read_text(encoding="utf-8")
    found = re.findall(r"\| in `([^`]+)`: `python ([^`]+)` \|$", page, re.MULTILINE)
    return [GuideCommand(folder, shlex.split(command)) for folder, command in found]


def test_every_command_of_the_table_is_read() -> None:
    page = (ROOT / "FROM_THE_GUIDE.md").read_text(encoding="utf-8")
    assert page.count("`python ") == len(guide_commands()) > 20


@pytest.mark.slow
def test_commands_of_the_guide_of_the_challenge_work_word_for_word(
    tiny_kit: Path, bare_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command of FROM_THE_GUIDE.md runs in its folder, in the order of the page.

    The first command of each folder runs in a process of its own, as for a user. To save time, the
    other commands run in the process of the test, training is short, and evaluations in this
    process do not measure the accuracy after each question.
    """
    # Train with few steps, to save time: no command needs a good score.
    shorten(tiny_kit, "task_4/pytorch/train_model.py", r"N_STEPS = \d+", "N_STEPS = 60")
    monkeypatch.setattr(evaluation, "measure_curves", lambda *_: "left out to save time")
    # ROOT, the folder of the tested kit, is a trap: the scripts in the copy `tiny_kit` must not
    # import from ROOT.
    add_libraries(bare_environment, ROOT)
    seen_folders = set()
    for command in guide_commands():
        folder = tiny_kit / command.folder
        script, *flags = command.words
        if command.folder not in seen_folders:
            # `run_in` starts a process with the Python of the environment.
            done = run_in(folder, command.words, bare_environment)
        else:
            # `run` runs the script in this process.
            done = run([Path(command.folder, script), *flags], kit=tiny_kit, cwd=folder)
        seen_folders.add(command.folder)
        assert (done.returncode, done.stderr) == (0, ""), (command, done)
        # Evaluations print a score, and no other command does.
        prints_score = "score 0." in done.stdout
        assert prints_score == (script == "local_evaluation.py"), done
    missing_files = [name for name in WRITTEN_FILES if not (tiny_kit / name).is_file()]
    assert missing_files == []


# There are two folders for predictions of the local split. The kit writes predictions to
# data/test_output. The guide of the challenge lets users write predictions to data/test_input,
# beside the local split.
PREDICTIONS = "test_submission_task_1.csv"
EVALUATE = ["task_1/local_evaluation.py"]


@pytest.fixture
def kit_with_two_predictions(split_kit: Path, tmp_path: Path) -> Path:
    """Return a kit with two files of predictions, in data/test_output and in data/test_input.

    The predictions in data/test_input, beside the local split, are newer, and all of them are
    right.
    """
    kit = Path(shutil.copytree(split_kit, tmp_path / "kit"))
    valid = pd.read_csv(kit / "data/test_input/valid_task_1_2.csv")
    (kit / "data/test_output").mkdir(exist_ok=True)
    valid.assign(IsCorrect=1).to_csv(kit / "data/test_output" / PREDICTIONS, index=False)
    valid.to_csv(kit / "data/test_input" / PREDICTIONS, index=False)
    return kit


def test_predictions_beside_the_local_split_are_scored_if_they_are_the_newer_ones(
    kit_with_two_predictions: Path,
) -> None:
    printed = succeeds(EVALUATE, kit=kit_with_two_predictions)
    assert printed.startswith(f"scored: data/test_input/{PREDICTIONS}\nscore 1.0000 ")
    assert f"\nnot scored, because it is older: data/test_output/{PREDICTIONS}\n" in printed
    scores = kit_with_two_predictions / "data/test_output/scores_task_1.txt"
    assert scores.read_text() == "score:1.0\n"


def test_predictions_in_the_folder_of_the_output_are_scored_if_they_are_the_newer_ones(
    kit_with_two_predictions: Path,
) -> None:
    (kit_with_two_predictions / "data/test_output" / PREDICTIONS).touch()
    printed = succeeds(EVALUATE, kit=kit_with_two_predictions)
    assert printed.startswith(f"scored: data/test_output/{PREDICTIONS}\n")
    assert "\nscore 1.0000" not in printed
    assert f"\nnot scored, because it is older: data/test_input/{PREDICTIONS}\n" in printed


def test_predictions_in_a_folder_that_a_flag_names_are_scored(
    kit_with_two_predictions: Path,
) -> None:
    named = [*EVALUATE, "--submission_dir", kit_with_two_predictions / "data/test_input"]
    assert "older" not in succeeds(named, kit=kit_with_two_predictions)


# For each task: a file of true answers, and further flags of the evaluation.
TRUE_ANSWERS = {
    1: ("data/test_input/valid_task_1_2.csv", []),
    3: ("data/test_data/quality_response_remapped_public.csv", []),
    4: ("data/test_input/valid_task_4.csv", ["task_4/numpy", "--skip_curve"]),
}


@pytest.mark.parametrize("task", TRUE_ANSWERS)
def test_true_answers_in_the_current_folder_are_found(
    scored_kit: Path, tmp_path: Path, task: int
) -> None:
    answers, flags = TRUE_ANSWERS[task]
    shutil.copy(scored_kit / answers, tmp_path / "mine.csv")
    flags = [str(scored_kit / flag) if "/" in flag else flag for flag in flags]
    command = [f"task_{task}/local_evaluation.py", *flags, "--ref_data", "mine.csv"]
    printed = succeeds([*command, "--output_dir", tmp_path], kit=scored_kit, cwd=tmp_path)
    assert "\nscore 0." in printed
    assert (tmp_path / f"scores_task_{task}_own.txt").is_file()


def test_without_a_local_ranking_task_3_scores_the_ranking_for_the_upload(tiny_kit: Path) -> None:
    """Without flags, a sample model of task 3 writes a ranking that is meant for an upload.

    There is no ranking for the local split, which a model writes with --local. So the evaluation
    without flags scores the ranking for the upload, as the challenge's guide says. Its first line
    says so.
    """
    succeeds(["task_3/sample_model_random.py"], kit=tiny_kit)
    printed = succeeds(["task_3/local_evaluation.py"], kit=tiny_kit)
    first_line, second_line, *_ = printed.splitlines()
    assert first_line == (
        "data/test_output/test_submission_task_3.csv: not there; scored: "
        "submissions/submission_task_3.csv, --phase public"
    )
    assert second_line.startswith("scored: submissions/")
    assert (tiny_kit / "data/test_output/scores_task_3_public.txt").is_file()


@with_links
@on_unix("libraries below lib/")
def test_the_majority_needs_numpy_and_pandas_only(tiny_kit: Path, bare_environment: Path) -> None:
    (packages,) = bare_environment.glob("lib/**/site-packages")
    for name in ("numpy", "numpy.libs", "pandas", "dateutil", "six.py"):
        for path in (Path(folder, name) for folder in LIBRARIES):
            if path.exists():
                (packages / name).symlink_to(path)
    for task in (1, 2):
        done = run_in(tiny_kit / f"task_{task}", ["sample_model_majority.py"], bare_environment)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.files
@pytest.mark.parametrize(
    ("folder", "script"),
    [
        ("task_1", "sample_model_majority.py"),
        ("task_4/numpy", "local_evaluation.py"),
        ("related_challenges/cloze", "sample_model_frequent.py"),
    ],
)
def test_a_package_that_is_missing_is_named(
    folder: str, script: str, bare_environment: Path
) -> None:
    pins = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    (pin,) = [line for line in pins if line.startswith("numpy==")]
    done = run_in(ROOT / folder, [script], bare_environment)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: this Python has no numpy: ")
    assert f"-m pip install {pin}` installs it" in line


@pytest.mark.files
def test_a_missing_module_that_no_list_of_packages_names_is_an_error_of_the_script(
    bare_environment: Path,
) -> None:
    done = run_in(ROOT / "task_1", ["-c", "import common, tools, no_module"], bare_environment)
    assert done.returncode == 1
    assert done.stderr.endswith("Error: No module named 'no_module'\n")


def test_scripts_copied_to_a_folder_without_a_kit_say_what_to_do(
    tmp_path: Path, bare_environment: Path
) -> None:
    for name in ("common.py", "sample_model_majority.py"):
        shutil.copyfile(ROOT / "task_1" / name, tmp_path / name)
    done = run_in(tmp_path, ["sample_model_majority.py"], bare_environment)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: {tmp_path}: the starter kit is not found; move this folder ")


@pytest.mark.parametrize("folder", [".", "task_1"])
def test_waiting_threads_spin_briefly_and_blas_has_one_thread(
    folder: str, bare_environment: Path
) -> None:
    names = "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "OPENBLAS_NUM_THREADS"
    code = f"import common, os; print(*map(os.environ.get, {names}))"
    assert run_in(ROOT / folder, ["-c", code], bare_environment).stdout == "PASSIVE 10000 1\n"
