"""Helpers of the benchmarks: run a script as a user does, and measure its time and memory."""

import importlib.util
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from common.errors import InputError
from tools import script_runs


@dataclass(frozen=True)
class Cost:
    """Time and memory of a process.

    Attributes
    ----------
    seconds
        Wall time.
    processor_seconds
        Processor time of all its threads.
    peak_gb
        Largest resident memory, in 10⁹ bytes.
    """

    seconds: float
    processor_seconds: float
    peak_gb: float


def run_script(command: Sequence[object]) -> Cost:
    """Run a Python script to its end; Linux and macOS only.

    Parameters
    ----------
    command
        The script and its flags.

    Raises
    ------
    InputError
        If the script fails. It has then printed the reason to the terminal itself: its stderr is
        not captured.
    """
    words = [str(word) for word in command]
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL)
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except KeyboardInterrupt:
        # Ctrl+C interrupts the script too. Let it end before this process does.
        process.wait()
        raise
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise InputError(f"{words[0]}: ended with exit code {process.returncode}")
    # `ru_maxrss` is in kilobytes on Linux and in bytes on macOS.
    bytes_per_unit = 1024 if sys.platform != "darwin" else 1
    return Cost(
        seconds=time.perf_counter() - started,
        processor_seconds=usage.ru_utime + usage.ru_stime,
        peak_gb=usage.ru_maxrss * bytes_per_unit / 1e9,
    )


def median_cost(costs: Sequence[Cost]) -> Cost:
    """Return the median of each figure over several runs."""
    return Cost(
        statistics.median(cost.seconds for cost in costs),
        statistics.median(cost.processor_seconds for cost in costs),
        statistics.median(cost.peak_gb for cost in costs),
    )


def short_name(script: Path) -> str:
    """Return the name of a sample model, such as `majority`."""
    return script.stem.removeprefix("sample_model_")


def load_module(path: Path) -> ModuleType:
    """Import a file that is not in a package; it can import the modules beside it."""
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # `dataclass` looks up the module of its class in sys.modules.
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    sys.path.pop(0)
    return module


def metadata_flags(script: Path, folder: Path) -> list[str | Path]:
    """Return the flags that name the folder of metadata, or no flags if the model reads none."""
    return script_runs.metadata_flags(script, folder)
