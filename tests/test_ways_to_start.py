"""However Python starts, a script uses the code of its own kit, or says in one line why not.

Python may be told not to search the script's folder (-P, -I, PYTHONSAFEPATH), not to find installed
packages (-S), or to run a module (-m). Another copy of the kit may be installed.
"""

import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from common.adaptive.entry_files import ENTRY_FILE

import pytest
from conftest import ROOT, copy_kit
from entry_folders import WELL_BEHAVED
from run_scripts import LIBRARIES, Done


def make_environment(folder: Path, *installed: Path) -> Path:
    """Make an environment in which the libraries and kits are installed; return its Python.

    `installed` are the folders of the kits.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("[Ll]ib/**/site-packages")
    # Act like pip: to install a kit in editable mode, it writes the kit's folder into a .pth file.
    (packages / "installed.pth").write_text("\n".join(map(str, [*installed, *LIBRARIES])))
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a Python in which this kit is installed."""
    return make_environment(tmp_path_factory.mktemp("own") / "environment", ROOT)


@pytest.fixture(scope="module")
def other_kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return another copy of the kit, in another folder."""
    return copy_kit(tmp_path_factory.mktemp("other") / "kit")


def run_in(folder: Path, command: Sequence[object], variables: Mapping[str, str]) -> Done:
    """Run a command in a folder, with `variables` as further environment variables."""
    unset = ("PYTHONPATH", "PYTHONSAFEPATH")
    env = {name: value for name, value in os.environ.items() if name not in unset}
    env |= variables
    words = [str(word) for word in command]
    return subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True)


# Ways to start a script: the command after `python`, and environment variables. The script
# train_model.py imports the module `model` beside it, and make_bundle.py imports `competition`. The
# tests must write no compiled code. With -I, Python ignores the variable that forbids this
# (PYTHONDONTWRITEBYTECODE), so the flag -B is used instead.
WAYS = [
    ("-P task_4/numpy/train_model.py", {}),
    ("-I -B task_4/numpy/train_model.py", {}),
    ("task_4/numpy/train_model.py", {"PYTHONSAFEPATH": "1"}),
    ("hosting/make_bundle.py", {"PYTHONSAFEPATH": "1"}),
    ("-m task_4.numpy.train_model", {}),
    ("-m tools.scoreboard", {}),
    ("-P tools/scoreboard.py", {}),
]


@pytest.mark.parametrize(("words", "variables"), WAYS)
def test_a_script_finds_the_modules_beside_it(
    python: Path, words: str, variables: dict[str, str]
) -> None:
    done = run_in(ROOT, [python, *words.split(), "--help"], variables)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: ")


@pytest.mark.parametrize("words", ["tools/scoreboard.py", "-P quickstart.py"])
def test_a_script_that_no_environment_knows_finds_the_kit(tmp_path: Path, words: str) -> None:
    bare_python = make_environment(tmp_path / "environment")
    done = run_in(ROOT, [bare_python, *words.split(), "--help"], {})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: ")


def test_a_package_elsewhere_finds_the_modules_beside_it(python: Path, tmp_path: Path) -> None:
    """A training script imports the modules beside it, even if the variable PYTHONSAFEPATH is set.

    With PYTHONSAFEPATH, Python itself does not search the folder of the script. The package lies
    outside the kit.
    """
    for path in (ROOT / "task_4/numpy").glob("*.py"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    command = [python, tmp_path / "train_model.py", "--help"]
    done = run_in(tmp_path, command, {"PYTHONSAFEPATH": "1"})
    assert (done.returncode, done.stderr) == (0, "")


def test_an_entry_is_played_if_python_does_not_search_the_current_folder(
    split_kit: Path, tmp_path: Path
) -> None:
    """PYTHONSAFEPATH keeps Python from searching the current folder for modules.

    To play an entry, the evaluation starts `python -m inside` in the folder that holds the kit's
    package `inside`. Python must find this package despite PYTHONSAFEPATH.
    """
    entry = tmp_path / "entry"
    entry.mkdir()
    (entry / ENTRY_FILE).write_text(WELL_BEHAVED, encoding="utf-8")
    script = split_kit / "task_4/local_evaluation.py"
    command = [sys.executable, script, entry, "--skip_curve", "--output_dir", tmp_path]
    variables = {"PYTHONSAFEPATH": "1", "PYTHONPATH": str(split_kit)}
    done = run_in(tmp_path, command, variables)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\nscore 0." in done.stdout


def list_files(folder: Path) -> list[Path]:
    """Return the files in a folder, without compiled code."""
    return sorted(path for path in folder.rglob("*") if "__pycache__" not in path.parts)


# Commands that must not use another, installed copy of the kit. Each is the words after `python`,
# and the folder of this kit in which the command runs.
WITH_ANOTHER_KIT = [
    ("-P task_1/sample_model_majority.py", "."),
    ("-I -B task_4/numpy/train_model.py", "."),
    ("-P -m tools.scoreboard", "."),
    ("-m tools.scoreboard", "task_1"),
]


@pytest.mark.parametrize(("words", "folder"), WITH_ANOTHER_KIT)
def test_code_and_data_of_another_kit_are_never_used_silently(
    other_kit: Path, tmp_path: Path, words: str, folder: str
) -> None:
    """A script of this kit is started by a Python in which another copy of the kit is installed.

    `words` are the command after `python`, which runs in a `folder` of this kit. Python would find
    the modules of the other kit first. The script refuses to run, and writes nothing into the other
    kit.
    """
    python_of_other_kit = make_environment(tmp_path / "environment", other_kit)
    files_before = list_files(other_kit)
    done = run_in(ROOT / folder, [python_of_other_kit, *words.split()], variables={})
    assert (done.returncode, done.stdout) == (2, "")
    (message,) = done.stderr.splitlines()
    assert "Python uses another copy of the kit than that in " in message
    assert str(ROOT) in message
    assert str(other_kit) in message
    assert list_files(other_kit) == files_before


def test_tools_are_those_of_the_kit_that_runs(other_kit: Path, tmp_path: Path) -> None:
    both = make_environment(tmp_path / "environment", other_kit, ROOT)
    code = "import common, tools; print(tools.__file__)"
    done = run_in(ROOT / "task_1", [both, "-c", code], {})
    assert Path(done.stdout.strip()).is_relative_to(ROOT), done.stderr


def test_without_site_packages_one_line_says_why(python: Path) -> None:
    done = run_in(ROOT, [python, "-S", "task_1/sample_model_majority.py"], {})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: Python was started with -S, which hides numpy and all other packages: start it "
        "without -S\n"
    )


def test_a_kit_in_a_zip_is_refused_in_one_line(python: Path, tmp_path: Path) -> None:
    archive = tmp_path / "kit.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for name in ("common", "tools"):
            for path in (ROOT / name).rglob("*.py"):
                file.write(path, path.relative_to(ROOT))
    # Python searches the current folder before the zip, so the current folder must not be the kit.
    done = run_in(tmp_path, [python, "-m", "tools.scoreboard"], {"PYTHONPATH": str(archive)})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: {archive}: is not a folder: unzip the starter kit\n"
