"""The kit's own code: clean for ruff and mypy, imports that go one way, text of the kit alone."""

import ast
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TASKS = ("task_1", "task_2", "task_3", "task_4")


def scripts(pattern: str) -> list[Path]:
    return sorted(path for path in ROOT.glob(pattern) if ".venv" not in path.parts)


def check(*command: str, cwd: Path = ROOT) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=cwd,
        env={**os.environ, "MYPYPATH": str(ROOT), "MYPY_CACHE_DIR": str(ROOT / ".mypy_cache")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_ruff() -> None:
    check("ruff", "check", "--no-cache", ".")
    check("ruff", "format", "--no-cache", "--check", ".")


def test_mypy() -> None:
    """The shared code, then each folder of scripts by itself: two tasks have the same names."""
    check("mypy", "common", "quickstart.py")
    folders = {
        path.parent for pattern in (*TASKS, "data") for path in scripts(f"{pattern}/**/*.py")
    }
    for folder in sorted(folders):
        names = [path.name for path in sorted(folder.glob("*.py"))]
        check("mypy", "--config-file", str(ROOT / "pyproject.toml"), *names, cwd=folder)


def imported(path: Path) -> set[str]:
    modules = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module or "")
    return modules


def test_common_imports_no_task_and_no_task_another() -> None:
    for path in scripts("common/**/*.py") + scripts("task_*/**/*.py"):
        tasks = {name for name in imported(path) if name.split(".")[0] in TASKS}
        assert not tasks, f"{path} imports {tasks}"


def test_scripts_that_need_no_torch_do_not_import_it() -> None:
    """A majority script pays no seconds for a library that it does not use."""
    code = (
        "import runpy, sys\n"
        "runpy.run_path(PATH)\n"
        "assert not {'torch', 'sklearn', 'matplotlib', 'pandas'} & set(sys.modules), sys.modules\n"
    )
    for task in (1, 2):
        path = ROOT / f"task_{task}/sample_model_majority.py"
        done = subprocess.run(
            [sys.executable, "-c", f"PATH = {str(path)!r}\n{code}"],
            capture_output=True, text=True, cwd=ROOT,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


def test_no_script_changes_the_search_path() -> None:
    for path in scripts("common/**/*.py") + scripts("task_*/**/*.py") + scripts("data/*.py"):
        if path.name in ("entry_runner.py", "isolation.py"):
            continue  # They start an entry as Python itself would start a script in its folder.
        assert "sys.path" not in path.read_text(encoding="utf-8"), path


def test_the_folder_called_numpy_hides_nothing(tmp_path: Path) -> None:
    """`import numpy` beside or inside task_4/numpy finds the library."""
    assert not (ROOT / "task_4/numpy/__init__.py").exists()
    for folder in (ROOT / "task_4", ROOT / "task_4/numpy"):
        done = subprocess.run(
            [sys.executable, "-c", "import numpy; print(numpy.int64(7))"],
            cwd=folder, capture_output=True, text=True,
        )  # fmt: skip
        assert done.stdout == "7\n", done.stderr
