"""Which script runs, and with which arguments."""

import sys
from pathlib import Path

from common import running_script

import pytest

# Arguments of kernels: of Jupyter, and of an editor that passes one flag for each port.
KERNEL_ARGUMENTS = [
    ["-f", "/home/me/.local/share/jupyter/runtime/kernel-1.json"],
    ["--ip=127.0.0.1", "--stdin=9013", '--Session.key=b"3b5f"', "--f=C:\\Temp\\tmp-1.json"],
    ["--f=/run/user/1000/jupyter/runtime/kernel-v3.json"],
]


@pytest.mark.parametrize("words", KERNEL_ARGUMENTS)
def test_arguments_of_a_kernel_are_not_those_of_a_script(
    monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "ipykernel_launcher", *words])
    monkeypatch.setattr(sys, "argv", ["/lib/ipykernel_launcher.py", *words])
    assert running_script.arguments() == words
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    assert running_script.arguments() == []
    # IPython's %run sets the arguments of the script.
    monkeypatch.setattr(sys, "argv", ["task_1/mine.py", "--local"])
    assert running_script.arguments() == ["--local"]
    monkeypatch.setattr(sys, "argv", ["task_1/mine.py"])
    assert running_script.arguments() == []


def test_the_script_is_the_program_or_the_running_main(monkeypatch: pytest.MonkeyPatch) -> None:
    # An imported script, and the code of a cell, which has no file.
    code = "def build_parser(): ...\ndef main(): return find_script()"
    names = {"__file__": "/kit/task_1/mine.py", "find_script": running_script.find_script}
    exec(code, names)
    cell = {"find_script": running_script.find_script}
    exec(code, cell)
    monkeypatch.setattr(sys, "argv", ["/kit/task_1/program.py"])
    assert names["main"]() == Path("/kit/task_1/program.py")
    # An interactive session of Python or IPython.
    for program in ("", "/usr/bin/ipython"):
        monkeypatch.setattr(sys, "argv", [program])
        assert names["main"]() == Path("/kit/task_1/mine.py")
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    assert names["main"]() == Path("/kit/task_1/mine.py")
    assert cell["main"]() is None
