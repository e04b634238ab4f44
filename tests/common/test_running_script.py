"""Which script runs, and with which arguments."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import running_script

import pytest

# Arguments with which Jupyter and editors start a kernel, the process that runs the cells of a
# notebook. An editor may add a flag for each port.
KERNEL_ARGUMENTS = [
    ["-f", "/home/me/.local/share/jupyter/runtime/kernel-1.json"],
    ["--ip=127.0.0.1", "--stdin=9013", '--Session.key=b"3b5f"', "--f=C:\\Temp\\tmp-1.json"],
    ["--f=/run/user/1000/jupyter/runtime/kernel-v3.json"],
]


@pytest.fixture(params=KERNEL_ARGUMENTS)
def kernel_arguments(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Make this process look as if it was started with the arguments of a kernel; return them."""
    words: list[str] = request.param
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "ipykernel_launcher", *words])
    monkeypatch.setattr(sys, "argv", ["/lib/ipykernel_launcher.py", *words])
    return words


@pytest.fixture
def in_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this process look like a kernel, in which the module `ipykernel` is loaded."""
    monkeypatch.setitem(sys.modules, "ipykernel", sys)


def test_outside_a_kernel_all_arguments_are_those_of_the_script(
    kernel_arguments: list[str],
) -> None:
    assert running_script.arguments() == kernel_arguments


@pytest.mark.usefixtures("kernel_arguments", "in_kernel")
def test_arguments_of_a_kernel_are_not_those_of_a_script() -> None:
    assert running_script.arguments() == []


@pytest.mark.usefixtures("kernel_arguments", "in_kernel")
@pytest.mark.parametrize("flags", [["--local"], []])
def test_in_a_kernel_percent_run_sets_the_arguments_of_the_script(
    monkeypatch: pytest.MonkeyPatch, flags: list[str]
) -> None:
    """IPython's %run puts the script and its flags into `sys.argv`."""
    monkeypatch.setattr(sys, "argv", ["task_1/mine.py", *flags])
    assert running_script.arguments() == flags


# ---- The script ----------------------------------------------------------------------------------


def define_main(**names: Any) -> Callable[[], Path | None]:
    """Return the function `main` of a simulated module; it returns the path of the running script.

    `names` are global variables of the module, such as `__file__`.
    """
    code = "def build_parser(): ...\ndef main(): return find_script()"
    names["find_script"] = running_script.find_script
    exec(code, names)
    main: Callable[[], Path | None] = names["main"]
    return main


# The function `main` of the module task_1/mine.py.
MAIN_OF_MODULE = define_main(__file__="/kit/task_1/mine.py")


def test_the_script_is_the_program_that_python_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a program imports `main` from a module, the script is the program, not the module."""
    monkeypatch.setattr(sys, "argv", ["/kit/task_1/program.py"])
    assert MAIN_OF_MODULE() == Path("/kit/task_1/program.py")


@pytest.mark.parametrize("program", ["", "/usr/bin/ipython"])
def test_in_an_interactive_session_the_script_is_the_module_whose_main_runs(
    monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setattr(sys, "argv", [program])
    assert MAIN_OF_MODULE() == Path("/kit/task_1/mine.py")


@pytest.mark.usefixtures("in_kernel")
def test_in_a_kernel_the_script_is_the_module_whose_main_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/ipython"])
    assert MAIN_OF_MODULE() == Path("/kit/task_1/mine.py")


@pytest.mark.usefixtures("in_kernel")
def test_a_main_that_is_defined_in_a_cell_has_no_script(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code in the cell of a notebook has no file, so there is no script to return."""
    monkeypatch.setattr(sys, "argv", ["/usr/bin/ipython"])
    main_of_cell = define_main()
    assert main_of_cell() is None
