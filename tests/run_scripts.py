"""Run the kit's scripts as a user does, in this process or in a process of their own.

`run_script` runs a script in this process. That is quick, since PyTorch is imported once for all
tests. However, it does not reveal a script that works only because an earlier one has imported
something, nor what happens when a process ends or is killed. For such tests there is `run_process`,
for example for commands of the READMEs, Control-C and torchrun.
"""

import functools
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
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any
from unittest import mock

# `_redirect_paths` changes the path constants of modules that are imported already. So import this
# module here, before a script does.
from common import provenance

ROOT = Path(__file__).resolve().parents[1]
# The folders where Python finds libraries: `sys.path` without the folders of the kit. Pytest has
# added those, but a user's Python does not search them.
LIBRARIES = [
    folder
    for folder in dict.fromkeys(sys.path)
    if folder and (not Path(folder).is_relative_to(ROOT) or "site-packages" in folder)
]
# Modules in these folders stay loaded, since importing them anew for each script would be slow. A
# script that runs in a copy of the kit also uses these modules, not the copied ones. `.venv` is
# listed because a user may have a virtual environment in the kit's folder.
STANDARD_LIBRARY = Path(os.__file__).parent
SHARED_FOLDERS = tuple(
    f"{folder}{os.sep}"
    for folder in (ROOT / "common", ROOT / "tools", ROOT / ".venv", STANDARD_LIBRARY)
)
# The names of the modules that are known to stay loaded: they lie in these folders or belong to a
# library. Without this set, the paths of several thousand modules would be checked for each script,
# which would be slow.
_STAYING_MODULES: set[str] = set()

Done = subprocess.CompletedProcess[str]
# If a process runs longer than this number of seconds, it is thought to hang. The time is enough
# even on a busy machine, which may be twenty times slower than a quiet one.
PATIENCE = 600


def run_process(
    arguments: Sequence[object],
    *,
    kit: Path = ROOT,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    timeout: float = PATIENCE,
) -> Done:
    """Run Python with these arguments in a process of its own.

    If the first argument ends with .py, it is a script's path, absolute or from the kit's folder.
    The process runs in the folder `cwd`, by default in the folder around the kit. After `timeout`
    seconds, the process is killed and an error is raised. Returns the exit code and the output.
    """
    first, *rest = map(str, arguments)
    if first.endswith(".py"):
        first = str(kit / first)
    command = [sys.executable, first, *rest]
    env = {**os.environ, "PYTHONPATH": str(kit), **(environment or {})}
    return subprocess.run(
        command, cwd=cwd or kit.parent, env=env, capture_output=True, text=True, timeout=timeout
    )


def wait_for(look: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """Call `look` until its result is true or the time is over; return the last result."""
    deadline = time.monotonic() + seconds
    while not (result := look()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return result


def ends_within(pid: int, seconds: float = 60) -> bool:
    """Wait at most some seconds for a process to end; return whether it has ended.

    On Linux, a zombie counts as ended: a process whose parent has not yet asked for the exit code.
    The function works on Unix only.
    """

    def is_over() -> bool:
        """Return whether the process no longer exists or, on Linux, is a zombie."""
        try:
            if sys.platform == "linux":
                # The file /proc/PID/stat begins with the number, the name and the state of the
                # process, for example "123 (python3) Z 1". The name may hold blanks. The state of a
                # zombie is Z.
                stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
                state = stat.rpartition(")")[2].split()[0]
                return state == "Z"
            # The signal 0 only asks whether the process exists.
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
    """Run a script, or with ``-m`` a module, in this process; return its exit code and its output.

    `kit` is the kit to which the script belongs, usually a copy with simulated data in a temporary
    folder. The script and the modules beside it are read from there. To save time, the packages
    `common` and `tools` are not read from there: the script uses the modules that the tests have
    imported. While the script runs, the paths in their constants, such as `layout.DATA_DIR`, point
    into `kit`.

    Everything that a script may change in the process is put back: arguments, folder, environment,
    search path, modules, signal handlers, warnings.
    """
    kit = kit.resolve()
    cwd = cwd or kit.parent
    words = [str(argument) for argument in arguments]
    if words[0] == "-m":
        script = kit / f"{words[1].replace('.', '/')}.py"
        flags = words[2:]
        module_folder = cwd
    else:
        script = kit / words[0]
        flags = words[1:]
        module_folder = script.parent
    with (
        _captured(1, "stdout", errors="strict") as out,
        _captured(2, "stderr", errors="backslashreplace") as err,
        _redirect_paths(kit),
        without_modules_of(kit, module_folder),
        mock.patch.object(SourceFileLoader, "source_to_code", _source_to_code),
        mock.patch.dict(os.environ, {"PYTHONPATH": str(kit), **(environment or {})}),
        mock.patch.object(sys, "argv", [str(script), *flags]),
        mock.patch.object(sys, "path", [str(module_folder), str(kit), *LIBRARIES]),
        chdir(cwd),
        _signal_handlers_put_back(),
        _warnings_on_stderr(),
    ):
        # `provenance.RUN` records the files that the running script reads and writes. Remove what
        # an earlier script in this process has left there.
        provenance.RUN = provenance.ThisRun()
        exit_code = _run_to_exit(script)
    # By now, `_captured` has put the captured text into each of the two lists.
    (stdout,) = out
    (stderr,) = err
    return Done(words, exit_code, stdout, stderr)


def _run_to_exit(script: Path) -> int:
    """Run a script in this process, write to stderr why it fails, and return its exit code."""
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as error:
        if error.code is None:
            return 0
        if isinstance(error.code, int):
            return error.code
        print(error.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


@functools.cache
def _compile(source: bytes, path: str) -> CodeType:
    """Compile the source of a module; the cache keeps the result for the same source and path."""
    return compile(source, path, "exec", dont_inherit=True)


def _source_to_code(_loader: SourceFileLoader, source: bytes, path: str) -> CodeType:
    """Compile a module, or take its compiled code from the cache of `_compile`.

    This function replaces a method of Python's import system, to save time. Every script imports
    the modules beside it anew. Since the tests write no .pyc files, Python would compile these
    modules for every script.
    """
    return _compile(source, path)


@contextmanager
def _signal_handlers_put_back() -> Iterator[None]:
    """At the end, restore the handlers of the signals that end a script."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


@contextmanager
def _warnings_on_stderr() -> Iterator[None]:
    """Write warnings to stderr, as a new process does. By default, pytest would collect them."""
    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.filterwarnings("ignore", category=ResourceWarning)
        warnings.showwarning = lambda *warning: sys.stderr.write(
            warnings.formatwarning(*warning[:4])
        )
        yield


@contextmanager
def _captured(descriptor: int, name: str, *, errors: str) -> Iterator[list[str]]:
    """Capture stdout or stderr of this process and of its child processes.

    `name` is "stdout" or "stderr". `descriptor` is the file descriptor of this stream: 1 for
    stdout, 2 for stderr. The context manager yields an empty list. At the end, it puts the text
    that was written into this list.
    """
    # Text that was written before must not get into the captured text.
    getattr(sys, name).flush()
    original = os.dup(descriptor)
    texts: list[str] = []
    with tempfile.TemporaryFile() as file:
        # Let the descriptor point to the temporary file. Child processes inherit the descriptor, so
        # their output gets into the file too.
        os.dup2(file.fileno(), descriptor)
        # Python code writes to the object `sys.stdout` or `sys.stderr`. Pytest may have replaced
        # this object by one that does not write to the descriptor. So use a new one that does.
        stream = open(descriptor, "w", encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115
        try:
            with mock.patch.object(sys, name, stream):
                yield texts
            stream.flush()
            file.seek(0)
            written = file.read().decode("utf-8", "backslashreplace")
            texts.append(written.replace(os.linesep, "\n"))
        finally:
            # Let the descriptor point to the same place as before.
            os.dup2(original, descriptor)
            os.close(original)


@contextmanager
def _redirect_paths(kit: Path) -> Iterator[None]:
    """Let the path constants of all modules of `common` and `tools` point into a copy of the kit.

    At the end, they point into this kit again.
    """

    def redirect(old: Path, new: Path) -> None:
        """Replace the folder `old` by `new` in all path constants that lie in `old`."""
        for name, module in list(sys.modules.items()):
            if not name.startswith(("common.", "tools.")):
                continue
            for constant in _names_of_paths(module):
                value = getattr(module, constant)
                if value.is_relative_to(old):
                    setattr(module, constant, new / value.relative_to(old))

    if kit == ROOT:
        yield
        return
    redirect(ROOT, kit)
    try:
        yield
    finally:
        # Modules that the script was the first to import have paths in `kit`, too. `redirect`
        # changes these as well.
        redirect(kit, ROOT)


# Cached to save time: for each script, `_redirect_paths` asks twice for the constants of all
# modules, before the script and after it.
@functools.cache
def _names_of_paths(module: ModuleType) -> list[str]:
    """Return the names of a module's constants that hold paths."""
    return [name for name, value in vars(module).items() if isinstance(value, Path)]


@contextmanager
def without_modules_of(*folders: Path) -> Iterator[None]:
    """Let a script import the modules in its own folder, and not other modules with these names.

    Two scripts in different folders may have modules of the same name beside them. So all loaded
    modules beside scripts, in the kit or in `folders`, are removed from `sys.modules`. At the end,
    the modules that the script has imported are removed, and the earlier modules are put back.
    Modules of `common`, `tools` and Python's libraries stay loaded.

    Modules of the tests are removed too: `cli.run` fingerprints all loaded modules of the kit, and
    two hundred modules of tests would make up a third of a script's time.
    """
    # Each folder here and each path below ends with a separator. Otherwise, the folder `kit` would
    # be a prefix of `kit_2`.
    folders_of_scripts = tuple(f"{folder}{os.sep}" for folder in (ROOT, *folders))

    def remove() -> dict[str, ModuleType]:
        """Remove the modules of the tests and the modules beside scripts from `sys.modules`.

        Returns the removed modules by name.
        """
        removed = {}
        names = [name for name in sys.modules if name not in _STAYING_MODULES]
        for name in names:
            module = sys.modules[name]
            path = f"{_path_of(module)}{os.sep}"
            if path.startswith(SHARED_FOLDERS) or "site-packages" in path:
                # The module belongs to `common`, `tools` or a library.
                _STAYING_MODULES.add(name)
            elif path.startswith(folders_of_scripts):
                removed[name] = module
        # The modules are removed only after the loop: `_path_of`, which is called in the loop,
        # needs the packages around a module to be loaded.
        for name in removed:
            del sys.modules[name]
        return removed

    hidden = remove()
    try:
        yield
    finally:
        remove()
        sys.modules.update(hidden)


def _path_of(module: ModuleType) -> str:
    """Return the path of a module's file, or of a package's folder if the package has no file.

    The result is an empty text for modules without a path, such as built-in ones.
    """
    attributes = vars(module)
    if attributes.get("__file__"):
        return str(attributes["__file__"])
    folders = list(attributes.get("__path__", ()))
    return str(folders[0]) if folders else ""
