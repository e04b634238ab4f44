"""The structure of the code: imports that go one way, packages whole, dependencies declared."""

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


def test_common_imports_no_task_and_no_task_another() -> None:
    """Nor does common name a related challenge: any of these folders may be deleted."""
    for path in [*glob_kit("common/**/*.py"), *glob_kit("task_*/**/*.py")]:
        names = {name.split(".")[0] for name in imported(path)}
        assert not names & {*TASKS, *CHALLENGES, "related_challenges"}, path
    for path in glob_kit("common/**/*.py"):
        # Folders without this file would be left out of an installed package.
        assert (path.parent / "__init__.py").exists(), path.parent
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        assert not {node.value for node in nodes if isinstance(node, ast.Constant)} & CHALLENGES


def test_every_library_that_is_imported_is_declared() -> None:
    """An installed package finds what it imports: pyproject.toml reads requirements.txt."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    assert tools["setuptools"]["dynamic"]["dependencies"] == {"file": ["requirements.txt"]}
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    declared = {*re.findall(r"^([a-z0-9-]+)==[\d.]+$", text, re.MULTILINE)}
    # Only names and versions: setuptools takes no options of pip.
    assert len(declared) == len(re.findall("^[^#\n]", text, re.MULTILINE))
    places = ("common", "tools", "data", "hosting", *TASKS)
    code = [path for place in places for path in glob_kit(f"{place}/**/*.py")]
    beside = {path.stem for path in code}
    libraries = {name.split(".")[0] for path in code for name in imported(path)}
    libraries -= {*sys.stdlib_module_names, "common", "tools", "programs", *beside}
    assert {requirements._PACKAGES.get(name, name) for name in libraries} <= declared


def test_every_script_finds_the_kit_and_imports_it_first() -> None:
    """Before any library, so that the first missing one is named."""
    found = scripts("data/*", "hosting/*", "task_*/**/*", "related_challenges/*/*")
    folders = {path.parent for path in found}
    assert len(folders) == 13
    assert len({(folder / "common.py").read_text(encoding="utf-8") for folder in folders}) == 1
    for path in found:
        names = [name.split(".")[0] for name in imported(path)]
        libraries = [name for name in names if name not in sys.stdlib_module_names]
        assert libraries[0] in ("common", "tools"), path


def test_the_sandbox_is_closed_and_has_one_door() -> None:
    """Other code takes what `common.sandbox` offers, and nothing from the modules in it."""
    sandbox = ROOT / "common/sandbox"
    offered = {*importlib.import_module("common.sandbox").__all__}
    for path in scripts_and_modules():
        if path.is_relative_to(sandbox):
            continue
        assert not [name for name in imported(path) if name.startswith("common.sandbox.")], path
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "common.sandbox":
                assert {alias.name for alias in node.names} <= offered, path
    for path in sandbox.glob("*.py"):
        assert not [name for name in imported(path) if name.startswith("common.adaptive")], path


def test_what_runs_beside_an_entry_needs_no_kit() -> None:
    for path in glob_kit("common/sandbox/inside/*.py"):
        names = {name.split(".")[0] for name in imported(path)}
        assert names <= {*sys.stdlib_module_names, "numpy"}, path


def scripts_and_modules() -> list[Path]:
    """Return the Python files of the product."""
    places = ("common", "tools", "data", "hosting", "related_challenges", *TASKS)
    return [path for place in places for path in glob_kit(f"{place}/**/*.py")]
