"""Messages about scripts that run in a temporary copy of the kit."""

from pathlib import PurePosixPath, PureWindowsPath

from common import layout
from tools.script_runs import name_in_kit

import pytest


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"C:\temp\kit\task_1\a.py: fails", r"task_1\a.py: fails"),
        ("C:/temp/kit/task_1/a.py: fails", "task_1/a.py: fails"),
        (r"No such file: 'C:\\temp\\kit\\a.csv'", "No such file: 'a.csv'"),
        (r"in C:\temp\kit", f"in {layout.ROOT}"),
        (r"C:\other\kit\a.py", r"C:\other\kit\a.py"),
    ],
)
def test_a_path_of_windows_in_a_copy_is_named_in_the_kit(text: str, expected: str) -> None:
    assert name_in_kit(text, PureWindowsPath(r"C:\temp\kit")) == expected


def test_without_a_copy_a_text_stays() -> None:
    text = "/temp/kit/a.py: fails"
    assert name_in_kit(text, None) == text
    assert name_in_kit(text, PurePosixPath("/temp/kit")) == "a.py: fails"
