"""The lines that describe the machine, even if a file, a package or git is missing."""

import os
import platform
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tools import machine

import numpy as np
import pytest
import threadpoolctl
from conftest import ROOT, succeeds
from run_scripts import run_process

INTEL = "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Intel(R) Xeon(R) CPU @ 2.80GHz\n"
AMD = "\nprocessor\t: 1\nmodel name\t: AMD EPYC 7B13\n"
ARM = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"
OPENBLAS = {
    "user_api": "blas",
    "internal_api": "openblas",
    "num_threads": 1,
    "version": "0.3.31",
    "architecture": "Haswell",
}
MKL = {"user_api": "blas", "internal_api": "mkl", "num_threads": 8, "version": "2024.1"}
OPENMP = {"user_api": "openmp", "internal_api": "openmp", "num_threads": 8, "version": None}


def test_each_fact_is_a_line() -> None:
    lines = succeeds(["-m", "tools.machine"]).splitlines()
    facts = dict(line.split(":", 1) for line in lines)
    titles = ["kit", "processor", "linear algebra", "threads", "Python", "system", "packages"]
    assert list(facts) == titles
    assert all(text.strip() for text in facts.values())
    assert facts["Python"].split()[0] == platform.python_version()


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64") or sys.platform == "darwin",
    reason="this kernel of OpenBLAS is for x86",
)
def test_the_kernel_is_the_one_that_numpy_uses() -> None:
    done = run_process(["-m", "tools.machine"], environment={"OPENBLAS_CORETYPE": "Nehalem"})
    assert ", kernel Nehalem, 1 thread\n" in done.stdout
    assert "OPENBLAS_CORETYPE=Nehalem" in done.stdout


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (INTEL + AMD, "Intel(R) Xeon(R) CPU @ 2.80GHz"),
        (ARM, "implementer 0x41 part 0xd0c"),
        ("processor\t: 0\n", None),
        (None, None),
    ],
    ids=["first of two", "ARM", "nameless", "no file"],
)
def test_processor_on_linux(text: str | None, name: str | None, tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    if text is not None:
        path.write_text(text)
    assert machine.read_cpuinfo(path) == name


def test_processor_on_macos(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(command: list[str]) -> str:
        assert command == ["sysctl", "-n", "machdep.cpu.brand_string"]
        return "Apple M2"

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(machine, "output_of", answer)
    assert machine.find_processor() == "Apple M2"


class Key:
    """An open key of the registry of Windows."""

    def __enter__(self) -> "Key":
        return self

    def __exit__(self, *error: object) -> None:
        pass


def test_processor_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    def open_key(root: str, place: str) -> Key:
        assert (root, place) == ("root", r"HARDWARE\DESCRIPTION\System\CentralProcessor\0")
        return Key()

    def query(key: Key, name: str) -> tuple[str, int]:
        assert name == "ProcessorNameString"
        return "Intel(R) Core(TM) i7  ", 1

    registry = SimpleNamespace(HKEY_LOCAL_MACHINE="root", OpenKey=open_key, QueryValueEx=query)
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setitem(sys.modules, "winreg", registry)
    assert machine.find_processor() == "Intel(R) Core(TM) i7"


def test_processor_on_a_system_that_does_not_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "freebsd14")
    monkeypatch.setattr(platform, "processor", lambda: "")
    assert machine.find_processor() == "unknown processor"


@pytest.mark.parametrize(
    ("libraries", "expected"),
    [
        ([OPENMP, OPENBLAS], "OpenBLAS 0.3.31, kernel Haswell, 1 thread"),
        ([MKL], "MKL 2024.1, kernel unknown, 8 threads"),
        ([OPENMP], "accelerate, kernel unknown"),
    ],
    ids=["OpenBLAS", "MKL", "Accelerate"],
)
def test_linear_algebra(
    libraries: list[dict[str, Any]], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = {"Build Dependencies": {"blas": {"name": "accelerate"}}}
    monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda: libraries)
    monkeypatch.setattr(np, "show_config", lambda mode: build)
    assert machine.describe_linear_algebra() == expected


def test_linear_algebra_without_the_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    # If a module is None in sys.modules, importing it fails.
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    assert machine.describe_linear_algebra().endswith(
        "kernel unknown: threadpoolctl cannot be imported"
    )
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert machine.describe_linear_algebra() == "numpy cannot be imported"


def test_variables_that_set_threads_and_kernel() -> None:
    environment = {"PATH": "/bin", "OPENBLAS_CORETYPE": "Haswell", "OMP_NUM_THREADS": "2"}
    description = machine.describe_variables(environment)
    assert description == "OMP_NUM_THREADS=2, OPENBLAS_CORETYPE=Haswell"
    assert machine.describe_variables({}) == "OMP_NUM_THREADS is not set"


def test_revision_is_that_of_the_kit_and_not_of_a_repository_around_it(tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@y.z"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    subprocess.run([*git, "tag", "-a", "-m", "version", "v1"], check=True)
    assert machine.describe_kit(tmp_path) == "v1"
    inside = tmp_path / "kit"
    inside.mkdir()
    assert machine.describe_kit(inside).startswith("revision unknown: not a git repository")


def test_revision_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.setitem(os.environ, "PATH", "")
    assert machine.describe_kit(tmp_path).endswith("or git is missing")


def test_packages_that_differ_from_the_pinned_ones_are_named(tmp_path: Path) -> None:
    """A package is named if its version differs, or if it is missing.

    The packages that only tests need, in requirements-dev.txt, may be missing: then they are not
    named.
    """
    requirements = tmp_path / "requirements.txt"
    requirements_of_tests = tmp_path / "requirements-dev.txt"
    requirements.write_text(f"numpy=={np.__version__}\n")
    requirements_of_tests.write_text(f"numpy=={np.__version__}\n")
    assert machine.describe_packages(tmp_path) == "all as pinned"

    requirements.write_text("numpy==0.1\nno-such-package==2.0\n")
    requirements_of_tests.write_text("pytest==0.2\nno-such-test-package==2.0\n")
    assert machine.describe_packages(tmp_path) == (
        f"numpy {np.__version__} (pinned: 0.1), "
        "no-such-package is not installed (pinned: 2.0), "
        f"pytest {pytest.__version__} (pinned: 0.2)"
    )


def test_the_issue_template_asks_for_these_lines() -> None:
    text = (ROOT / ".github/ISSUE_TEMPLATE/bug.md").read_text(encoding="utf-8")
    assert "`python -m tools.machine`" in text
