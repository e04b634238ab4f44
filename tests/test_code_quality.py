"""The structure of the code: which modules import which, complete packages, declared libraries."""

import ast
import importlib
import re
import sys
import tomllib
from pathlib import Path

from common import requirements
from tools.kit_files import glob_kit

import pytest
from conftest import ROOT, imported, scripts

pytestmark = pytest.mark.files
TASKS = ("task_1", "task_2", "task_3", "task_4")
CHALLENGES = {"cloze", "debiasing", "science_exam", "student_response"}


PRODUCT_FOLDERS = ("common", "tools", "data", "hosting", *TASKS)
SANDBOX = ROOT / "common/sandbox"


def python_files(*folders: str) -> list[Path]:
    """Return the kit's Python files in these folders and their subfolders."""
    return [path for folder in folders for path in glob_kit(f"{folder}/**/*.py")]


def top_level_imports(path: Path) -> list[str]:
    """Return the packages that a file imports, in the order of the imports.

    For `import numpy.linalg`, this is the package "numpy".
    """
    return [name.split(".")[0] for name in imported(path)]


def test_neither_common_nor_a_task_imports_a_task_or_a_related_challenge() -> None:
    """A user may delete the folder of any task or challenge, so other code must not import it."""
    for path in python_files("common", *TASKS):
        assert not {*top_level_imports(path)} & {*TASKS, *CHALLENGES, "related_challenges"}, path


def test_common_names_no_related_challenge() -> None:
    for path in python_files("common"):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        constants = {node.value for node in nodes if isinstance(node, ast.Constant)}
        assert not constants & CHALLENGES, path


def test_every_folder_in_common_is_a_package() -> None:
    """Each folder with Python files has a file `__init__.py`, or an installed kit would lack it."""
    for path in python_files("common"):
        assert (path.parent / "__init__.py").exists(), path.parent


def test_an_installed_kit_depends_on_what_requirements_txt_names() -> None:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    assert tools["setuptools"]["dynamic"]["dependencies"] == {"file": ["requirements.txt"]}


def test_every_library_that_is_imported_is_declared() -> None:
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    declared = {*re.findall(r"^([a-z0-9-]+)==[\d.]+$", text, re.MULTILINE)}
    # Every line must be a name and a version, because setuptools does not accept options of pip.
    assert len(declared) == len(re.findall("^[^#\n]", text, re.MULTILINE))
    files = python_files(*PRODUCT_FOLDERS)
    modules_beside_scripts = {path.stem for path in files}
    libraries = {name for path in files for name in top_level_imports(path)}
    libraries -= {*sys.stdlib_module_names, "common", "tools", "programs", *modules_beside_scripts}
    assert {requirements._PACKAGE_OF_MODULE.get(name, name) for name in libraries} <= declared


SCRIPTS = scripts("data/*", "hosting/*", "task_*/**/*", "related_challenges/*/*")


def test_every_folder_of_scripts_has_the_same_file_that_finds_the_kit() -> None:
    folders = {path.parent for path in SCRIPTS}
    # The kit has 14 folders of scripts. This check fails if the patterns of `SCRIPTS` miss one.
    assert len(folders) == 14
    # A user may also start a tool by its path, so the folder tools/ needs the file too.
    folders.add(ROOT / "tools")
    different_texts = {(folder / "common.py").read_text(encoding="utf-8") for folder in folders}
    assert len(different_texts) == 1


def test_every_script_imports_the_kit_before_any_library() -> None:
    """If the kit is imported first, it can report a missing library in one line."""
    for path in SCRIPTS:
        names = top_level_imports(path)
        not_of_python = [name for name in names if name not in sys.stdlib_module_names]
        assert not_of_python[0] in ("common", "tools"), path


def test_other_code_imports_from_the_sandbox_only_what_the_package_offers() -> None:
    offered = {*importlib.import_module("common.sandbox").__all__}
    for path in python_files(*PRODUCT_FOLDERS, "related_challenges"):
        if path.is_relative_to(SANDBOX):
            continue
        assert not [name for name in imported(path) if name.startswith("common.sandbox.")], path
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "common.sandbox":
                assert {alias.name for alias in node.names} <= offered, path


def test_the_sandbox_does_not_import_the_games_of_task_4() -> None:
    for path in SANDBOX.glob("*.py"):
        assert not [name for name in imported(path) if name.startswith("common.adaptive")], path


def test_code_that_runs_in_the_process_of_an_entry_imports_nothing_of_the_kit() -> None:
    for path in glob_kit("common/sandbox/inside/*.py"):
        assert {*top_level_imports(path)} <= {*sys.stdlib_module_names, "numpy"}, path
