"""The structure of the code: imports that go one way, packages whole, dependencies declared."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TASKS = ("task_1", "task_2", "task_3", "task_4")
CHALLENGES = ("cloze", "debiasing", "science_exam", "student_response")


def scripts(pattern: str) -> list[Path]:
    return sorted(path for path in ROOT.glob(pattern) if ".venv" not in path.parts)


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


def test_common_imports_and_reads_no_related_challenge() -> None:
    """Their folders may be deleted: only examples in docstrings and help name them."""
    modules = {path.stem for path in scripts("related_challenges/*/*.py")}
    modules -= {path.stem for path in scripts("common/**/*.py")}
    for path in scripts("common/**/*.py"):
        assert not imported(path) & {*modules, "related_challenges"}, path
        names = {
            node.value
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        assert not names & {*CHALLENGES}, path


def test_every_library_that_is_imported_is_declared() -> None:
    """An installed package finds what it imports: pyproject.toml reads requirements.txt."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    dynamic = project["tool"]["setuptools"]["dynamic"]
    assert dynamic["dependencies"] == {"file": ["requirements.txt"]}
    assert set(project["project"]["dynamic"]) == {"dependencies", "optional-dependencies"}
    lines = [
        line
        for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    # Only names and versions: setuptools takes no options of pip.
    assert all(re.fullmatch(r"[a-z-]+==[\d.]+", line) for line in lines), lines
    declared = {line.split("==")[0] for line in lines}
    code = [
        path
        for place in ("common", "data", "hosting", *TASKS)
        for path in scripts(f"{place}/**/*.py")
    ]
    beside = {path.stem for path in code}
    libraries = {name.split(".")[0] for path in code for name in imported(path)}
    libraries -= {*sys.stdlib_module_names, "common", "programs", *beside}
    packages = {"sklearn": "scikit-learn", "PIL": "pillow", "yaml": "pyyaml"}
    packages["dateutil"] = "python-dateutil"
    assert {packages.get(name, name) for name in libraries} <= declared


def test_every_folder_of_common_is_a_package() -> None:
    """Folders without this file would be left out of an installed package."""
    for path in scripts("common/**/*.py"):
        assert (path.parent / "__init__.py").exists(), path.parent


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
