"""Fixtures and helpers of all tests.

They run scripts as a user would, copy the kit (this repository) with tiny simulated data, and read
the commands in its Markdown pages.
"""

import ast
import compileall
import functools
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
from sample_blocks import find_edited

# Hypothesis generates examples for some tests. By default, it tries the same examples in every run;
# `pytest --hypothesis-profile exploring` tries new ones. There is no time limit for an example,
# because a busy machine would exceed any limit.
settings.register_profile("exploring", deadline=None)
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

# The tests run in parallel, in one process on each core. So use a single thread in each process.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Garbage collection finds nothing while tests are collected, but takes a fifth of that time. It is
# switched on again in `pytest_collection_finish`.
gc.disable()
# Some tests interrupt scripts with SIGINT or SIGHUP. If a shell runs pytest in the background, or
# with nohup, pytest ignores one of these signals, and the scripts would inherit this setting.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Windows has no SIGHUP.
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Scripts import modules from their own folder. Let the tests import these modules, too.
sys.path += [str(ROOT / name) for name in ("data", "hosting", "task_3", "task_4")]
# The type of the fixture `write`.
Write = Callable[[str, str | bytes], Path]


def pytest_configure(config: pytest.Config) -> None:
    """Compile the kit's packages once, instead of in each process and each copy of the kit."""
    is_worker = hasattr(config, "workerinput")
    if is_worker:
        return
    for package in ("common", "tools"):
        # Folders that cannot be written are left as they are.
        compileall.compile_dir(ROOT / package, quiet=2)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the files with slow tests first.

    Otherwise, at the end, a slow test might run alone while the other processes have nothing to do.
    """
    slow_files = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow_files)


def pytest_collection_finish() -> None:
    """Write no compiled code from now on, and switch garbage collection on again."""
    # Some tests check that a command has written no files, so Python must not write bytecode.
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True
    # Imported modules stay in memory until the end. Exclude their objects from garbage collection,
    # which makes every later collection quicker.
    gc.freeze()
    gc.enable()


def run(arguments: Sequence[object], **options: Any) -> Done:
    """Run Python with these arguments.

    The kit's scripts and the modules of `tools` run in this process, which is quicker. Everything
    else runs in a new process, and so does the quickstart, which starts further processes.
    """
    first, *rest = map(str, arguments)
    is_tool = first == "-m" and rest[0].startswith("tools.")
    is_script = first.endswith(".py") and not first.endswith("quickstart.py")
    if is_tool or is_script:
        return run_script(arguments, **options)
    return run_process(arguments, **options)


def succeeds(arguments: Sequence[object], **options: Any) -> str:
    """Run a script that must succeed and write nothing to stderr; return its output."""
    done = run(arguments, **options)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


def fails(arguments: Sequence[object], **options: Any) -> str:
    """Run a script that must fail with one line on stderr and exit code 2; return that line.

    The `error: ` at the beginning of the line is left out. The script must print no score.
    """
    done = run(arguments, **options)
    assert done.returncode == 2, done.stdout + done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("error: ")
    assert "score" not in done.stdout
    return lines[0].removeprefix("error: ")


def copy_kit(destination: Path) -> Path:
    """Copy the kit's files and their bytecode, but no files that a user has added.

    The tests are left out, to save time: hardly any test needs them, see `copy_tests`.
    """
    for path in find_kit_files():
        if path.is_relative_to(ROOT / "tests"):
            continue
        sources = [path]
        # Scripts start faster if `common` and `tools` are compiled. Folders of scripts stay without
        # compiled code, as in a clone where no script has run.
        if path.is_relative_to(ROOT / "common") or path.is_relative_to(ROOT / "tools"):
            sources.append(Path(cache_from_source(str(path))))
        for source in sources:
            if source.is_file():
                target = destination / source.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
    return destination


def copy_tests(kit: Path) -> None:
    """Copy the tests into a copy of the kit."""
    for path in find_kit_files():
        if path.is_relative_to(ROOT / "tests"):
            target = kit / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target)


@pytest.fixture(scope="session")
def simulated_kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the kit with tiny simulated data; tests share it and only read it."""
    kit = copy_kit(tmp_path_factory.mktemp("simulated") / "kit")
    succeeds(["data/generate_sample.py", "--size", "tiny"], kit=kit)
    return kit


@pytest.fixture(scope="session")
def split_kit(simulated_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a kit with the local splits of tasks 1, 2 and 4; tests share it and only read it."""
    kit = Path(shutil.copytree(simulated_kit, tmp_path_factory.mktemp("split") / "kit"))
    for task in (1, 4):
        succeeds([f"task_{task}/local_data_split.py"], kit=kit)
    return kit


@pytest.fixture(scope="session")
def scored_kit(split_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a kit with scores of all tasks; tests share it and only read it.

    The kit's record of scores, results.jsonl, has these lines:

        1  task 1, local split, majority
        2  task 1, local split, matrix_factorization
        3  task 2, local split, majority
        4  task 1, public test, majority
        5  task 3, public test, random
        6  task 3, public test, entropy
        7  task 4, local split, numpy

    The kit's folder holds the submissions of lines 1 to 3, named after task and model:
    1_majority.csv, 1_majority.zip and so on.
    """
    kit = Path(shutil.copytree(split_kit, tmp_path_factory.mktemp("scored") / "kit"))
    # Make lines 1 to 3 of results.jsonl. Without --phase, local_evaluation.py scores on the local
    # split.
    for task, model in ((1, "majority"), (1, "matrix_factorization"), (2, "majority")):
        succeeds([f"task_{task}/sample_model_{model}.py", "--local"], kit=kit)
        succeeds([f"task_{task}/local_evaluation.py"], kit=kit)
        for suffix in ("csv", "zip"):
            written = kit / f"data/test_output/test_submission_task_{task}.{suffix}"
            shutil.copyfile(written, kit / f"{task}_{model}.{suffix}")
    # Line 4.
    succeeds(["task_1/sample_model_majority.py"], kit=kit)
    succeeds(["task_1/local_evaluation.py", "--phase", "public"], kit=kit)
    # Lines 5 and 6.
    for model in ("random", "entropy"):
        succeeds([f"task_3/sample_model_{model}.py"], kit=kit)
        succeeds(["task_3/local_evaluation.py", "--phase", "public"], kit=kit)
    # Line 7.
    succeeds(["task_4/numpy/train_model.py", "--local"], kit=kit)
    succeeds(["task_4/numpy/local_evaluation.py", "--skip_curve"], kit=kit)
    return kit


@pytest.fixture
def tiny_kit(simulated_kit: Path, tmp_path: Path) -> Path:
    """Return a copy of the kit with tiny simulated data that the test may change."""
    return Path(shutil.copytree(simulated_kit, tmp_path / "kit"))


def scripts(*patterns: str) -> list[Path]:
    """Return the kit's scripts whose path without `.py` matches a pattern, such as "task_1/*"."""
    paths = [path for pattern in patterns for path in glob_kit(f"{pattern}.py")]
    main_guard = '__name__ == "__main__"'
    return [path for path in paths if main_guard in path.read_text(encoding="utf-8")]


# Cached, because several tests ask for all files of the kit.
@functools.cache
def imported(path: Path) -> tuple[str, ...]:
    """Return the names of the modules that a file imports, those at its top level first."""
    modules: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            modules.append(str(node.module))
    return tuple(modules)


def keep_only(kit: Path, *names: str) -> None:
    """Remove all sample models of the four tasks except those of these names, to save time."""
    for path in kit.glob("task_[123]/sample_model_*.py"):
        if path.stem.removeprefix("sample_model_") not in names:
            path.unlink()
    for path in kit.glob("task_4/*/train_model.py"):
        if path.parent.name not in names:
            path.unlink()


def shorten(kit: Path, script: str, long: str, quick: str) -> None:
    """Make a script quicker, in a copy of the kit: replace the text that matches `long` by `quick`.

    The regular expression `long` must match once. A user may have replaced the code of a sample
    model by code of their own, as the kit invites users to do. In such a model, `long` need not
    match.
    """
    text, n_replaced = re.subn(long, quick, (kit / script).read_text(encoding="utf-8"))
    assert n_replaced == 1 or script in find_edited(), (script, long)
    (kit / script).write_text(text, encoding="utf-8")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Return the folder of real answers, or skip the test."""
    folder = os.environ.get("KIT_REAL_DATA")
    if not folder:
        pytest.skip("KIT_REAL_DATA is not set: no real answers to test on")
    return Path(folder)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Return a function that writes a small file into the test's folder and returns its path."""

    def write_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


@pytest.fixture(params=["pandas", "pyarrow"])
def each_reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test twice: pandas reads the files in one run, and pyarrow in the other.

    The kit reads small files by pandas. It reads large files by pyarrow, unless pyarrow is missing.
    """
    # Let pyarrow read files of any size, since the files of tests are small.
    monkeypatch.setattr(reading, "_MIN_BLOCK_OF_PYARROW", 0)
    if request.param == "pandas":
        monkeypatch.setattr(reading, "_parse_with_pyarrow", reading._parse_with_pandas)


def blocks(page: Path, language: str) -> list[str]:
    """Return the code blocks of a language in a Markdown page."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[list[str]]:
    """Return the commands of a Markdown page as words: the lines of its bash blocks."""
    lines = "".join(blocks(page, "bash")).splitlines()
    return [shlex.split(line, comments=True) for line in lines]


# All pages of the documentation, as paths from the kit's folder.
PAGES = [
    path.relative_to(ROOT)
    for path in find_kit_files()
    if path.suffix == ".md" and ".github" not in path.parts
]


def script_of(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a command that name the script: its path, or `-m` and a module.

    `arguments` are the words after `python`.
    """
    return tuple(arguments[: 2 if arguments[0] == "-m" else 1])


@functools.cache
def first_commands() -> dict[tuple[str, ...], tuple[Path, list[str]]]:
    """Return for each script the page that shows the script first, and the first command there."""
    first: dict[tuple[str, ...], tuple[Path, list[str]]] = {}
    for page in PAGES:
        for _, *arguments in commands(ROOT / page):
            first.setdefault(script_of(arguments), (page, arguments))
    return first


def run_page_command(page: Path, arguments: Sequence[str], kit: Path) -> Done:
    """Run a command that a Markdown page shows.

    The first command of each script runs in a new process, as for a user. There the script cannot
    rely on modules that an earlier script has imported. All other commands run in this process,
    which is quicker.
    """
    if first_commands().get(script_of(arguments)) == (page, [*arguments]):
        return run_process(arguments, kit=kit, cwd=kit)
    return run(arguments, kit=kit, cwd=kit)


def answers_frame(*columns: Any) -> pd.DataFrame:
    """Return a table of answers with the same columns as the result of `read_answers`.

    `columns` are UserId, QuestionId, IsCorrect, AnswerValue and CorrectAnswer, in this order. The
    last ones may be left out.
    """
    names = ("UserId", "QuestionId", "IsCorrect", "AnswerValue", "CorrectAnswer")
    return pd.DataFrame(dict(zip(names, columns, strict=False)))
