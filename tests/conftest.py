"""What all tests share: running scripts as a user does, a kit with tiny data, the real answers."""

import ast
import gc
import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from common import reading
from tools.kit_files import find_kit_files, glob_kit

import pandas as pd
import pytest
from hypothesis import settings
from run_scripts import ROOT, Done, run_process, run_script

# The same examples in every run; `pytest --hypothesis-profile exploring` looks for new ones. An
# example has no time limit, which a busy machine would exceed.
settings.register_profile("exploring", deadline=None)
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

# The tests run side by side, one on each core: threads of one would only wait for the others.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Nothing that is imported for the tests goes away; to look for it took a fifth of the time.
gc.disable()
# What a shell runs in the background ignores Control-C, and so would every script tried here.
signal.signal(signal.SIGINT, signal.default_int_handler)
# As does what nohup runs with a terminal's end; on Windows there is no such signal.
signal.signal(getattr(signal, "SIGHUP", signal.SIGTERM), signal.SIG_DFL)

# So that tests can import the modules that lie beside scripts, as these do.
sys.path += [str(ROOT / "data"), str(ROOT / "hosting"), str(ROOT / "task_3"), str(ROOT / "task_4")]
# Of `succeeds` and `fails`, and of the fixture `write`.
Says = Callable[..., str]
Write = Callable[[str, str | bytes], Path]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files of slow tests: one at the end would keep the other cores waiting."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_collection_finish() -> None:
    """Begin to keep the kit as it is, and to look for what can be forgotten."""
    # Tests look at which files a command writes: no compiled code is to be among them.
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True
    gc.freeze()
    gc.enable()


def run(arguments: Sequence[object], **options: Any) -> Done:
    """Run a script in this process; what is no script, or starts others, in one of its own."""
    first, *rest = map(str, arguments)
    is_module = first == "-m" and rest[0].startswith("tools.")
    if is_module or (first.endswith(".py") and not first.endswith("quickstart.py")):
        return run_script(arguments, **options)
    return run_process(arguments, **options)


def succeeds(arguments: Sequence[object], **options: Any) -> str:
    """Run a script that must succeed, and say nothing on stderr; return what it prints."""
    done = run(arguments, **options)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


def fails(arguments: Sequence[object], **options: Any) -> str:
    """Run a script that must fail with one line and exit code 2; return that line."""
    done = run(arguments, **options)
    assert done.returncode == 2, done.stdout + done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("error: ")
    assert "score" not in done.stdout
    return lines[0].removeprefix("error: ")


def copy_kit(destination: Path) -> Path:
    """Copy the kit's own files, and their compiled code; nothing that a user has added."""
    for path in find_kit_files():
        # Only Python files have compiled code, which spares the copy to compile them again.
        for source in (path, Path(cache_from_source(str(path)))):
            if source.is_file():
                target = destination / source.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
    return destination


@pytest.fixture(scope="session")
def simulated_kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the kit with tiny simulated data, shared by all tests: only read from it."""
    kit = copy_kit(tmp_path_factory.mktemp("simulated") / "kit")
    succeeds(["data/generate_sample.py", "--size", "tiny"], kit=kit)
    return kit


@pytest.fixture(scope="session")
def split_kit(simulated_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kit with the local splits of tasks 1, 2 and 4, shared by all tests: only read from it."""
    kit = Path(shutil.copytree(simulated_kit, tmp_path_factory.mktemp("split") / "kit"))
    for task in (1, 4):
        succeeds([f"task_{task}/local_data_split.py"], kit=kit)
    return kit


@pytest.fixture(scope="session")
def scored_kit(split_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kit with scores of all tasks, shared by all tests: only read from it.

    The record's lines: 1 and 2, local, majority and matrix factorisation of task 1; 3, majority of
    task 2; 4, public, majority of task 1; 5 and 6, public, random and entropy of task 3; 7, local,
    most popular of task 4, trained in task_4/numpy. Submissions of lines 1 to 3 lie in the kit's
    folder as 1_majority.csv and so on, and as zips.
    """
    kit = Path(shutil.copytree(split_kit, tmp_path_factory.mktemp("scored") / "kit"))
    for task, model in ((1, "majority"), (1, "matrix_factorization"), (2, "majority")):
        succeeds([f"task_{task}/sample_model_{model}.py", "--local"], kit=kit)
        succeeds([f"task_{task}/local_evaluation.py"], kit=kit)
        for suffix in ("csv", "zip"):
            written = kit / f"data/test_output/test_submission_task_{task}.{suffix}"
            shutil.copyfile(written, kit / f"{task}_{model}.{suffix}")
    succeeds(["task_1/sample_model_majority.py"], kit=kit)
    succeeds(["task_1/local_evaluation.py", "--phase", "public"], kit=kit)
    for model in ("random", "entropy"):
        succeeds([f"task_3/sample_model_{model}.py"], kit=kit)
        succeeds(["task_3/local_evaluation.py", "--phase", "public"], kit=kit)
    succeeds(["task_4/numpy/train_model.py", "--local"], kit=kit)
    succeeds(["task_4/numpy/local_evaluation.py", "--skip_curve"], kit=kit)
    return kit


@pytest.fixture
def tiny_kit(simulated_kit: Path, tmp_path: Path) -> Path:
    """A copy of the kit with tiny simulated data that a test may change."""
    return Path(shutil.copytree(simulated_kit, tmp_path / "kit"))


def scripts(*places: str) -> list[Path]:
    """Return the files of the kit that run as scripts, where these patterns find them."""
    paths = [path for place in places for path in glob_kit(f"{place}.py")]
    begins = '__name__ == "__main__"'
    return [path for path in paths if begins in path.read_text(encoding="utf-8")]


def imported(path: Path) -> list[str]:
    """Return the modules that a file imports, first those at its beginning, in order."""
    modules = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            modules.append(str(node.module))
    return modules


def keep_only(kit: Path, *names: str) -> None:
    """Remove all sample models of the four tasks but some, so that a test is quick."""
    for path in [*kit.glob("task_[123]/sample_model_*.py"), *kit.glob("task_4/*/train_model.py")]:
        if not {path.stem.removeprefix("sample_model_"), path.parent.name} & {*names}:
            path.unlink()


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Return the folder of real answers, or skip the test."""
    folder = os.environ.get("KIT_REAL_DATA")
    if not folder:
        pytest.skip("KIT_REAL_DATA is not set: no real answers to test on")
    return Path(folder)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Write a small file into the test's own folder."""

    def write_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


@pytest.fixture(params=["pandas", "pyarrow"])
def each_reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test twice: files are read by pyarrow, and as where it is not installed."""
    if request.param == "pandas":
        monkeypatch.setattr(reading, "_by_pyarrow", reading._by_pandas)


def blocks(page: Path, language: str) -> list[str]:
    """Return the code blocks of a language in a Markdown page."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[list[str]]:
    """Return the commands of a Markdown page: every line of its bash blocks, without comments."""
    lines = "".join(blocks(page, "bash")).splitlines()
    return [shlex.split(line, comments=True) for line in lines]


# All pages of the documentation, as seen from the kit's folder.
PAGES = [
    path.relative_to(ROOT)
    for path in find_kit_files()
    if path.suffix == ".md" and ".github" not in path.parts
]


def run_as_on(page: Path, arguments: Sequence[str], kit: Path) -> Done:
    """Run a command of a page in a kit: if the page is the first with it, in its own process."""
    first = next(path for path in PAGES if [*arguments] in [c[1:] for c in commands(ROOT / path)])
    if first != page:
        return run(arguments, kit=kit, cwd=kit)
    return run_process(arguments, kit=kit, cwd=kit)


def answers_frame(*columns: Any) -> pd.DataFrame:
    """Return answers as `common.answers.read_answers` does, with the first of these columns."""
    names = ("UserId", "QuestionId", "IsCorrect", "AnswerValue", "CorrectAnswer")
    return pd.DataFrame(dict(zip(names, columns, strict=False)))
