"""Every script explains itself on one screen, with a command to copy."""

import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# Lines and columns of a usual terminal window.
SCREEN = (42, 100)
# Runs in the process of an entry of task 4, not from the command line.
NOT_FOR_USERS = {"common/adaptive/isolation.py"}


def scripts() -> list[str]:
    patterns = (
        "*.py",
        "common/**/*.py",
        "data/*.py",
        "hosting/*.py",
        "task_[1-4]/**/*.py",
        "related_challenges/*/*.py",
    )
    paths = [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]
    names = [path.relative_to(ROOT).as_posix() for path in paths if "__main__" in path.read_text()]
    return [name for name in names if name not in NOT_FOR_USERS]


@pytest.mark.parametrize("script", scripts())
def test_help(
    script: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = ROOT / script
    monkeypatch.setattr(sys, "argv", [str(path), "--help"])
    monkeypatch.setenv("COLUMNS", str(SCREEN[1]))
    # Scripts with modules beside them; two packages of task 4 both have a `model`.
    folders = ("data/", "hosting/", "task_3/", "task_4/", "related_challenges/")
    has_modules = script.startswith(folders)
    if has_modules:
        monkeypatch.syspath_prepend(path.parent)
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")
    for beside in path.parent.glob("*.py") if has_modules else ():
        sys.modules.pop(beside.stem, None)
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= SCREEN[0]
    assert max(map(len, lines)) <= SCREEN[1]
    module = script.removesuffix(".py").replace("/", ".")
    examples = (f"python {script}", f"python3 {script}", f"python -m {module}")
    assert any(example in "\n".join(lines) for example in examples)
