"""Print on which machine the kit runs: the facts that a bug report needs.

    python -m tools.machine

Scores may differ in their last digits between processors, since the linear algebra rounds
differently. `python3 quickstart.py --test` prints these lines first.
"""

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# Importing `common` sets the number of threads: import it before numpy.
from common.layout import ROOT
from tools import pinned

# Environment variables that change the numbers of threads, or the kernel of OpenBLAS. The kernel is
# the code that OpenBLAS chooses for this processor.
VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_CORETYPE",
)
LIBRARY_TITLES = {"openblas": "OpenBLAS", "mkl": "MKL", "blis": "BLIS", "flexiblas": "FlexiBLAS"}


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    raw_text = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(
        prog="python -m tools.machine", description=__doc__, formatter_class=raw_text
    )


def main() -> None:
    """Print the facts about this machine, one per line."""
    build_parser().parse_args()
    for title, text in describe_machine().items():
        print(f"{title + ':':<16}{text}")


def describe_machine() -> dict[str, str]:
    """Return the facts about this machine. The keys are their titles."""
    return {
        "kit": describe_kit(ROOT),
        "processor": f"{find_processor()}, {platform.machine()}, {describe_cores()}",
        "linear algebra": describe_linear_algebra(),
        "threads": describe_variables(os.environ),
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
        "system": describe_system(),
        "packages": describe_packages(ROOT),
    }


def output_of(command: Sequence[str]) -> str | None:
    """Return a command's output without the line end; None if the command is missing or fails."""
    try:
        done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")
    except OSError:
        return None
    return None if done.returncode else done.stdout.strip()


def describe_kit(root: Path) -> str:
    """Return the revision of the kit, if its folder is a git repository."""
    revision = None
    # Without this check, git would name the revision of a repository around the kit.
    if (root / ".git").exists():
        revision = output_of(["git", "-C", str(root), "describe", "--always", "--dirty"])
    return revision or "revision unknown: not a git repository, or git is missing"


# ---- Processor and system --------------------------------------------------------------------


def find_processor() -> str:
    """Return the processor's product name, or a general name if the system does not tell it."""
    name: str | None = None
    if sys.platform == "linux":
        name = read_cpuinfo(Path("/proc/cpuinfo"))
    elif sys.platform == "darwin":
        name = output_of(["sysctl", "-n", "machdep.cpu.brand_string"])
    elif sys.platform == "win32":
        name = read_windows_registry()
    return name or platform.processor() or "unknown processor"


def read_cpuinfo(path: Path) -> str | None:
    """Return the name of the first processor in Linux's /proc/cpuinfo; None if there is none.

    For an ARM processor, the file holds two numbers instead: then these are returned as a text.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The file describes one processor after another: `setdefault` keeps the first value of a key.
    facts: dict[str, str] = {}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    if "model name" in facts:
        return facts["model name"]
    if "CPU implementer" in facts:
        return f"implementer {facts['CPU implementer']} part {facts.get('CPU part', 'unknown')}"
    return None


def read_windows_registry() -> str | None:
    """Return the name of the first processor in the registry of Windows; None if there is none."""
    import winreg

    # `Any`, because mypy finds no functions in winreg except on Windows.
    registry: Any = winreg
    path = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"
    try:
        with registry.OpenKey(registry.HKEY_LOCAL_MACHINE, path) as key:
            return str(registry.QueryValueEx(key, "ProcessorNameString")[0]).strip()
    except OSError:
        return None


def describe_cores() -> str:
    """Return how many logical cores there are, and how many this process may use."""
    n_cores = os.cpu_count() or 1
    n_usable = n_cores
    if sys.platform == "linux":
        n_usable = len(os.sched_getaffinity(0))
    return f"{n_usable} of {n_cores} logical cores usable"


def describe_system() -> str:
    """Return the operating system with its version."""
    kernel = platform.platform()
    try:
        distribution = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        # The system is not Linux, or the distribution does not state its name.
        return kernel
    return f"{distribution}, {kernel}"


# ---- Linear algebra, threads, packages ---------------------------------------------------------


def describe_linear_algebra() -> str:
    """Return the library of linear algebra that numpy uses, with its version and kernel.

    The kernel is the code that the library has chosen for this processor.
    """
    try:
        import numpy as np
    except ImportError:
        return "numpy cannot be imported"
    # If threadpoolctl finds no library that is in use, name the one that numpy was built with.
    build: Any = np.show_config(mode="dicts")
    dependencies = build.get("Build Dependencies", {})
    built_with = dependencies.get("blas", {}).get("name", "unknown library")
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return f"{built_with}, kernel unknown: threadpoolctl cannot be imported"
    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
    if not libraries:
        # threadpoolctl does not know every library, such as Apple's Accelerate.
        return f"{built_with}, kernel unknown"
    return "; ".join(describe_library(library) for library in libraries)


def describe_library(library: Mapping[str, Any]) -> str:
    """Return name, version, kernel and threads of a library that threadpoolctl describes."""
    name = library["internal_api"]
    n_threads = library["num_threads"]
    threads = "1 thread" if n_threads == 1 else f"{n_threads} threads"
    title = LIBRARY_TITLES.get(name, name)
    version = library["version"] or "of unknown version"
    # Only OpenBLAS and BLIS name their kernel.
    kernel = library.get("architecture") or "unknown"
    return f"{title} {version}, kernel {kernel}, {threads}"


def describe_variables(environment: Mapping[str, str]) -> str:
    """Return the values of the environment variables in `VARIABLES`, as text.

    Variables that are not set are left out, except OMP_NUM_THREADS.
    """
    settings = [f"{name}={environment[name]}" for name in VARIABLES if name in environment]
    if "OMP_NUM_THREADS" not in environment:
        settings.append("OMP_NUM_THREADS is not set")
    return ", ".join(settings)


def describe_packages(root: Path) -> str:
    """Return the packages that differ from the pinned ones.

    Packages of requirements-dev.txt count only where they are installed.
    """
    differences = pinned.find_differences(pinned.read_pins(root / "requirements.txt"))
    for difference in pinned.find_differences(pinned.read_pins(root / "requirements-dev.txt")):
        if difference.installed is not None:
            differences.append(difference)
    return ", ".join(difference.describe() for difference in differences) or "all as pinned"


if __name__ == "__main__":
    main()
