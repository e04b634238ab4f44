"""Running the kit's scripts as a user does: in this process, which is quick, or in one of its own.

`run_script` pays no second for importing PyTorch again. It cannot see that a script works only
because an earlier one imported something, nor what happens when a process ends or is killed; that
is what `run_process` is for: every command of the READMEs, Control-C, torchrun and the like.
"""

import os
import runpy
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

# Before the first script runs: its paths are moved to where the script's kit is.
from common import provenance

ROOT = Path(__file__).resolve().parents[1]
# Where Python finds libraries: not the places that pytest adds for the tests.
LIBRARIES = [
    place
    for place in dict.fromkeys(sys.path)
    if place and (not Path(place).is_relative_to(ROOT) or "site-packages" in place)
]
# What is no module beside a script; also in a copy of the kit, `common` is that of this kit.
KEPT = tuple(f"{ROOT / name}{os.sep}" for name in ("common", "tools", "tests", ".venv"))

Done = subprocess.CompletedProcess[str]
# What takes this many seconds hangs: a busy machine may be twenty times slower than a quiet one.
PATIENCE = 600


def run_process(
    arguments: Sequence[object],
    *,
    kit: Path = ROOT,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    timeout: float = PATIENCE,
) -> Done:
    """Run Python with these arguments in a process of its own, from outside the kit by default."""
    first, *rest = map(str, arguments)
    command = [sys.executable, str(kit / first) if first.endswith(".py") else first, *rest]
    env = {**os.environ, "PYTHONPATH": str(kit), **(environment or {})}
    return subprocess.run(
        command, cwd=cwd or kit.parent, env=env, capture_output=True, text=True, timeout=timeout
    )


def wait_for(look: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """Look until something is found, or the time is over; return what was found."""
    deadline = time.monotonic() + seconds
    while not (found := look()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def ends(pid: int, seconds: float = 60) -> bool:
    """Return whether a process is gone, or a zombie, within some seconds (Unix)."""

    def is_over() -> bool:
        try:
            if sys.platform == "linux":
                stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
                return stat.rpartition(")")[2].split()[0] == "Z"
            os.kill(pid, 0)
        except (FileNotFoundError, ProcessLookupError):
            return True
        return False

    return bool(wait_for(is_over, seconds))


def run_script(
    arguments: Sequence[object],
    *,
    kit: Path = ROOT,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Done:
    """Run a script, or with ``-m`` a module, of a kit in this process.

    The script is that of the kit given, with the modules beside it; `common` and `tools` are this
    kit's, with their paths in the kit given. Of the process, what a script may change is put back:
    arguments, folder, environment, search path, modules, signal handlers, warnings.
    """
    first, *rest = words = [str(argument) for argument in arguments]
    kit = kit.resolve()
    if first == "-m":
        module, *rest = rest
        script, beside = kit / f"{module.replace('.', '/')}.py", Path(cwd or kit.parent)
    else:
        script = kit / first
        beside = script.parent
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    code: object = 0
    with (
        _captured(1, "stdout", "strict") as out,
        _captured(2, "stderr", "backslashreplace") as err,
        _paths_of(kit),
        without_modules_of(kit, beside),
        warnings.catch_warnings(),
        mock.patch.dict(os.environ, {"PYTHONPATH": str(kit), **(environment or {})}),
        mock.patch.object(sys, "argv", [str(script), *rest]),
        mock.patch.object(sys, "path", [str(beside), str(kit), *LIBRARIES]),
        chdir(cwd or kit.parent),
    ):
        warnings.resetwarnings()
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.filterwarnings("ignore", category=ResourceWarning)
        # As where nobody records warnings.
        warnings.showwarning = lambda *told: sys.stderr.write(warnings.formatwarning(*told[:4]))
        provenance.CHECKED.clear()
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as ended:
            code = ended.code
        except BaseException:
            traceback.print_exc()
            code = 1
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        if isinstance(code, str):
            print(code, file=sys.stderr)
    return Done(words, code if isinstance(code, int) else int(code is not None), *out, *err)


@contextmanager
def _captured(number: int, name: str, errors: str) -> Iterator[list[str]]:
    """Take what is written to a stream, by child processes too; it is in the list at last."""
    getattr(sys, name).flush()
    kept, texts = os.dup(number), list[str]()
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), number)
        stream = open(number, "w", encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115
        try:
            with mock.patch.object(sys, name, stream):
                yield texts
            stream.flush()
            file.seek(0)
            written = file.read().decode("utf-8", "backslashreplace")
            texts.append(written.replace(os.linesep, "\n"))
        finally:
            os.dup2(kept, number)
            os.close(kept)


@contextmanager
def _paths_of(kit: Path) -> Iterator[None]:
    """Let all constants of `common` that are paths be those of a copy of the kit."""

    def move(old: Path, new: Path) -> None:
        for name, module in [*sys.modules.items()]:
            if name.startswith(("common.", "tools.")):
                paths = {key: path for key, path in vars(module).items() if isinstance(path, Path)}
                for constant, path in paths.items():
                    if path.is_relative_to(old):
                        setattr(module, constant, new / path.relative_to(old))

    move(ROOT, kit)
    try:
        yield
    finally:
        # Also those of modules that have been imported meanwhile.
        move(kit, ROOT)


@contextmanager
def without_modules_of(*places: Path) -> Iterator[None]:
    """Hide the modules that lie beside scripts: several folders have the same names."""
    folders = tuple(f"{place}{os.sep}" for place in (ROOT, *places))

    def is_beside(module: ModuleType) -> bool:
        told = vars(module)
        # A folder of modules may have no file of its own.
        place = f"{told.get('__file__') or ''.join([*told.get('__path__', ())][:1])}{os.sep}"
        # A library may lie beside a kit too, in an environment of its own.
        is_library = "site-packages" in place
        return place.startswith(folders) and not place.startswith(KEPT) and not is_library

    def remove() -> dict[str, ModuleType]:
        modules = [*sys.modules.items()]
        # There are thousands of modules: only those of no package are looked at.
        beside = {name for name, one in modules if "." not in name and is_beside(one)}
        names = [name for name, _ in modules if name.partition(".")[0] in beside]
        return {name: sys.modules.pop(name) for name in names}

    hidden = remove()
    try:
        yield
    finally:
        remove()
        sys.modules.update(hidden)
