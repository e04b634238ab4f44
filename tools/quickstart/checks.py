"""Runs the static checks and the tests for --test, after printing facts about the machine."""

import os
import subprocess
import sys
import tempfile

from common.layout import ROOT

MACHINE = ("-m", "tools.machine")
STATIC_CHECKS = ("tests/static_checks.py",)
TESTS = ("-m", "pytest", "-q", "-n", "auto", "--dist", "worksteal", "--durations=10")


def run_checks(python: str) -> int:
    """Describe the machine, then check the code while the tests run; return the exit code.

    A failure of the checks does not stop the tests, nor does a failed test stop the checks.
    """
    subprocess.call([python, *MACHINE], cwd=ROOT)
    print("running ruff and mypy, and the tests", flush=True)
    # On Windows, the system's encoding is not UTF-8: let the tests read and write UTF-8 there too.
    environment = os.environ | {"PYTHONUTF8": "1"}
    with tempfile.TemporaryFile() as output:
        static_checks = subprocess.Popen(
            [python, *STATIC_CHECKS], cwd=ROOT, env=environment, stdout=output, stderr=output
        )
        tests_code = subprocess.call([python, *TESTS], cwd=ROOT, env=environment)
        static_checks_code = static_checks.wait()
        output.seek(0)
        print(output.read().decode(errors="replace"), end="", flush=True)
    failed = []
    if tests_code:
        failed.append("tests")
    if static_checks_code:
        failed.append("ruff and mypy")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0
