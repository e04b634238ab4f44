"""The files outside its own folder that an entry may read: Python, its packages, the system."""

import contextlib
import os
import site
import sys
from collections.abc import Iterable
from pathlib import Path

# Parts of a Python installation, below each of Python's prefixes.
_PYTHON_PARTS = (
    "bin", "lib", "lib32", "lib64", "libexec", "include", "share", "etc", "ssl", "pyvenv.cfg",
    # Names on Windows and macOS.
    "DLLs", "Frameworks", "Lib", "Library", "Resources", "Scripts", "python3.dll",
)  # fmt: skip
_PROGRAMS_AND_LIBRARIES = (
    "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
    "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/libexec",
    "/usr/local/bin", "/usr/local/lib", "/usr/local/lib64", "/nix/store", "/gnu/store",
    "/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
)  # fmt: skip
_LOCALE_AND_NAMES = (
    "/etc/group", "/etc/nsswitch.conf", "/etc/passwd", "/etc/localtime", "/etc/timezone",
    "/etc/locale.alias", "/etc/mime.types", "/etc/os-release", "/etc/fonts",
    "/usr/share/fonts", "/usr/share/fontconfig", "/usr/share/i18n", "/usr/share/icu",
    "/usr/share/locale", "/usr/share/mime", "/usr/share/terminfo", "/usr/share/zoneinfo",
)  # fmt: skip
_CERTIFICATES = (
    "/etc/ca-certificates", "/etc/pki/ca-trust", "/etc/pki/tls", "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates",
)  # fmt: skip
# Files about the process itself, and constant facts about the machine. No counter, such as one of
# disk usage, is among them. An entry is a model that plays several games, with other answers hidden
# in each game. It could change a counter in one game, and read it in the next.
_MACHINE = (
    "/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/filesystems", "/proc/version",
    "/proc/sys/kernel/osrelease", "/proc/sys/kernel/pid_max", "/proc/sys/vm",
    "/sys/devices/system/cpu", "/sys/devices/system/node", "/sys/kernel/mm",
    "/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/memory.max",
)  # fmt: skip
_SYSTEM = (*_PROGRAMS_AND_LIBRARIES, *_LOCALE_AND_NAMES, *_CERTIFICATES, *_MACHINE)
# Paths that drivers of GPUs read, and that an entry may read only if there is a GPU.
_GPU = (
    "/proc/devices", "/proc/driver", "/proc/modules", "/sys/bus", "/sys/class", "/sys/devices",
    "/sys/module", "/etc/OpenCL", "/usr/share/nvidia",
)  # fmt: skip

# Devices in /dev that an entry may use: these are the beginnings of their names. None is a disk.
_PLAIN_DEVICES = ("null", "zero", "full", "random", "urandom")
_GPU_DEVICES = ("nvidia", "dri", "kfd")


def readable_paths(hidden: Iterable[str]) -> list[str]:
    """List the files and folders of Python and of the system that an entry may read.

    No path in the list contains one of the `hidden` folders. Raises `ValueError` if a hidden folder
    lies in a path that every entry needs, such as the folder of Python's library.
    """
    needed = _needed_paths()
    hidden_folders = [os.path.realpath(path) for path in hidden]
    readable = set()
    for path in [*needed, *_search_paths()]:
        real_path = os.path.realpath(path)
        # The hidden folders that this path would make readable.
        exposed = [folder for folder in hidden_folders if lies_in(folder, real_path)]
        if not exposed:
            readable.add(os.path.abspath(path))
        elif path in needed:
            raise ValueError(
                f"{exposed[0]}: lies in {path}, which an entry has to read for its libraries; "
                "expected the answers, the kit's data and the working folder elsewhere"
            )
    return sorted(readable)


def devices() -> list[str]:
    """List the devices that an entry may use."""
    return _devices_named(_PLAIN_DEVICES + _GPU_DEVICES)


def lies_in(path: str, folder: str) -> bool:
    """Return whether `path` is `folder` itself or lies in it; both are absolute, without links."""
    return (path + os.sep).startswith(folder.rstrip(os.sep) + os.sep)


def _needed_paths() -> list[str]:
    """List the paths that an entry needs, whether they exist or not."""
    prefixes = {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}
    # If Python is installed in /usr, do not list its parts there: they hold much that no entry
    # needs. `_SYSTEM` lists what Python needs of /usr.
    prefixes.discard("/usr")
    paths = [f"{prefix}/{part}" for prefix in prefixes for part in _PYTHON_PARTS]
    paths += [sys.executable, os.path.dirname(os.__file__), *site.getsitepackages(), *_SYSTEM]
    if _devices_named(_GPU_DEVICES):
        paths += _GPU
    return [path for path in paths if path]


def _search_paths() -> list[str]:
    """List the folders in which Python looks for packages and the system's linker for libraries."""
    paths = [*sys.path, *os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)]
    for file in Path("/etc/ld.so.conf.d").glob("*.conf"):
        with contextlib.suppress(OSError, ValueError):
            paths += [line for line in file.read_text("utf-8").splitlines() if line.startswith("/")]
    return [path for path in paths if path]


def _devices_named(beginnings: tuple[str, ...]) -> list[str]:
    with contextlib.suppress(OSError):
        return [f"/dev/{name}" for name in os.listdir("/dev") if name.startswith(beginnings)]
    return []
