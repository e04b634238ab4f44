"""What all tests share: running scripts as a user does, a kit with tiny data, the real answers."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples in every run; `pytest --hypothesis-profile exploring` looks for new ones. An
# example has no time limit, which a busy machine would exceed.
settings.register_profile("exploring", deadline=None)
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

# The tests run side by side, one on each core: threads of one would only wait for the others.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# What a shell runs in the background ignores Control-C, and so would every script tried here.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent
# So that tests can import the modules that lie beside scripts, as these do.
sys.path += [str(ROOT / "data"), str(ROOT / "hosting"), str(ROOT / "task_3"), str(ROOT / "task_4")]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def run_python(
    arguments: Sequence[object], *, kit: Path = ROOT, cwd: Path | None = None, timeout: float = 120
) -> "subprocess.CompletedProcess[str]":
    """Run Python on a script of a kit, from another folder than the kit's, as a user might."""
    first, *rest = (str(argument) for argument in arguments)
    script = str(kit / first) if first.endswith(".py") else first
    return subprocess.run(
        [sys.executable, script, *rest],
        cwd=cwd or kit.parent,
        env={**os.environ, "PYTHONPATH": str(kit)},
        capture_output=True,
        text=True,
        timeout=timeout,
    )


@pytest.fixture(scope="session")
def run() -> Run:
    """Run a script of the kit: `run(["task_1/local_evaluation.py", "--phase", "public"])`."""
    return run_python


@pytest.fixture
def fails() -> Callable[..., str]:
    """Run a script that must fail with one line and exit code 2; return that line."""

    def check(arguments: Sequence[object], **options: object) -> str:
        done = run_python(arguments, **options)  # type: ignore[arg-type]
        assert done.returncode == 2, done.stdout + done.stderr
        lines = done.stderr.strip().splitlines()
        assert len(lines) == 1, done.stderr
        assert lines[0].startswith("error: ")
        assert "score" not in done.stdout
        return lines[0].removeprefix("error: ")

    return check


def copy_kit(destination: Path) -> Path:
    """Copy the kit's own files, without data, caches and environments."""
    ignored = shutil.ignore_patterns(
        ".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "*.egg-info", "train_data",
        "metadata", "test_data", "test_input", "test_output", "images", "SIMULATED.json",
        "submissions", "submission_*.csv", "model_task_4*", "*.zip",
    )  # fmt: skip

    def ignore(folder: str, names: list[str]) -> set[str]:
        # common/metadata is a package of that name.
        return ignored(folder, names) - ({"metadata"} if Path(folder).name == "common" else set())

    shutil.copytree(ROOT, destination, ignore=ignore)
    return destination


@pytest.fixture(scope="session")
def simulated_kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the kit with tiny simulated data, shared by all tests: only read from it."""
    kit = copy_kit(tmp_path_factory.mktemp("simulated") / "kit")
    done = run_python(["data/generate_sample.py", "--size", "tiny"], kit=kit)
    assert done.returncode == 0, done.stderr
    return kit


@pytest.fixture
def tiny_kit(simulated_kit: Path, tmp_path: Path) -> Path:
    """Return a copy of the kit with tiny simulated data that a test may change."""
    return Path(shutil.copytree(simulated_kit, tmp_path / "kit"))


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


def blocks(page: Path, language: str) -> list[str]:
    """Return the code blocks of a language in a Markdown page."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[list[str]]:
    """Return the commands of a Markdown page: every line of its bash blocks, without comments."""
    lines = "".join(blocks(page, "bash")).splitlines()
    return [shlex.split(line, comments=True) for line in lines]
