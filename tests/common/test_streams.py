"""No printing fails or loses a result, even on closed, cut off, full or ASCII streams."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from platforms import on_linux, on_unix
from run_scripts import Done, run_process

# A script that prints before, while and after it writes a file. If a script starts with a closed
# stdout, the file could get stdout's descriptor, 1, and printed text would go into the file.
SCRIPT = """
import os, sys
from pathlib import Path
from common import cli
def main():
    print("score 0.7 ± 0.1, 团队", flush=True)
    print("warning: ± 团队", file=sys.stderr, flush=True)
    with Path("result.txt").open("w", encoding="utf-8") as file:
        for descriptor in (1, 2):
            try:
                os.write(descriptor, b"printed by a library\\n")
            except OSError:
                pass
        file.write("0.7 ± 0.1\\n")
    print("written: result.txt")
if __name__ == "__main__":
    cli.run(main)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """Write `SCRIPT` to a file in a folder of its own; return the path of the file."""
    path = tmp_path / "script.py"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


def assert_written(script: Path) -> None:
    """Require that the script has written its whole result to its file, as UTF-8."""
    written = script.with_name("result.txt").read_text(encoding="utf-8")
    assert written == "0.7 ± 0.1\n"


# Environment variables with which Python does not print UTF-8. Each entry of `ENCODINGS` has such
# variables, and the first line that `SCRIPT` must then print.
ASCII_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
AS_ESCAPES = rb"score 0.7 \xb1 0.1, \u56e2\u961f"
ENCODINGS = [
    ({"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}, AS_ESCAPES),
    ({"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii:strict"}, AS_ESCAPES),
    (
        {"PYTHONUTF8": "0", "PYTHONIOENCODING": "cp1252"},
        b"score 0.7 \xb1 0.1, \\u56e2\\u961f",
    ),
    (
        {"PYTHONUTF8": "0", "PYTHONIOENCODING": "cp437"},
        b"score 0.7 \xf1 0.1, \\u56e2\\u961f",
    ),
    pytest.param(ASCII_LOCALE, AS_ESCAPES, marks=on_linux("a locale of ASCII")),
]


@pytest.mark.parametrize(("environment", "expected"), ENCODINGS)
def test_a_character_that_the_encoding_lacks_is_escaped_and_files_are_utf_8(
    script: Path, environment: dict[str, str], expected: bytes
) -> None:
    command = [sys.executable, str(script)]
    unset = ("PYTHONIOENCODING", "LC_ALL", "LANG")
    env = {name: value for name, value in os.environ.items() if name not in unset}
    env |= {"PYTHONPATH": str(ROOT), **environment}
    done = subprocess.run(command, cwd=script.parent, env=env, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == expected
    assert_written(script)


@on_linux("a locale of ASCII")
def test_a_name_in_utf_8_is_the_same_in_a_locale_of_ascii(script: Path) -> None:
    """`printable` returns a file name as it is in UTF-8, even if the locale knows only ASCII.

    In such a locale, Python reads each byte of a non-ASCII character as one surrogate character.
    """
    code = (
        "import os; from common.errors import printable; "
        "name = os.listdir('names')[0]; assert not name.isprintable(); "
        "print(ascii(printable(name)))"
    )
    (script.parent / "names" / "Zoë").mkdir(parents=True)
    done = run_process(["-c", code], cwd=script.parent, environment=ASCII_LOCALE | {"LANG": "C"})
    assert (done.returncode, done.stdout) == (0, r"'Zo\xeb'" + "\n"), done.stderr


def run_in_shell(script: Path, redirections: str) -> Done:
    """Run the script with redirections of a shell, such as `>&-`, which closes stdout."""
    # The shell replaces "$0" by Python's path and "$1" by the script's path, whatever characters
    # these hold. `redirections` is a part of the command itself, so that the shell obeys it.
    command = ["sh", "-c", f'exec "$0" "$1" {redirections}', sys.executable, str(script)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, cwd=script.parent, env=env, capture_output=True, text=True, encoding="utf-8"
    )


@on_unix("shell that closes a stream")
@pytest.mark.parametrize("redirections", [">&-", "2>&-", "<&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_leads_nowhere(script: Path, redirections: str) -> None:
    done = run_in_shell(script, redirections)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert_written(script)


@on_unix("shell that closes a stream")
def test_a_mistake_has_its_exit_code_without_a_stderr(script: Path) -> None:
    script.write_text("from common import cli, errors\ncli.run(lambda: errors.stop('wrong'))\n")
    assert run_in_shell(script, "2>&-").returncode == 2


@on_linux("/dev/full")
def test_a_mistake_has_its_exit_code_where_stderr_cannot_be_written(script: Path) -> None:
    script.write_text("from common import cli, errors\ncli.run(lambda: errors.stop('wrong'))\n")
    assert run_in_shell(script, "2>/dev/full").returncode == 2


@on_linux("/dev/full")
def test_a_full_disk_under_stdout_loses_no_result_and_is_named(script: Path) -> None:
    done = run_in_shell(script, ">/dev/full")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "error: stdout: No space left on device"
    assert_written(script)


@on_linux("/dev/full")
def test_a_full_disk_under_stderr_loses_no_result(script: Path) -> None:
    assert run_in_shell(script, "2>/dev/full").returncode == 0
    assert_written(script)


@on_unix("error of its own for a pipe that is closed")
@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_reader_that_has_ended_loses_no_result(script: Path, name: str) -> None:
    """A script writes its files and ends with code 0 even if nobody reads its stdout or stderr.

    For instance, `head -1` in `python script.py | head -1` ends before the script.
    """
    reading_end, writing_end = os.pipe()
    os.close(reading_end)
    # Let nobody read the stream `name`: its pipe has no reading end. The test reads the other one.
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    streams[name] = writing_end
    command = [sys.executable, str(script)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}

    done = subprocess.run(command, cwd=script.parent, env=env, **streams)
    os.close(writing_end)

    assert done.returncode == 0
    # `done.stderr` is None if the test has not read the stream.
    assert b"Error" not in (done.stderr or b"")
    assert_written(script)
