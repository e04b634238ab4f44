"""Ways out of an entry's process: to the answers' contents, and to harm elsewhere.

This file is self-contained. The test copies it into an entry's folder, and runs it once isolated
and once not, which shows that each way leads somewhere. There is one way for each function of the
kernel, of Python or of a library that opens files. A way to the contents is a function of where the
answers are, without the suffixes of the formats that `prepare` has written. A way to harm is a
function of its victim.
"""

import contextlib
import ctypes
import io
import json
import multiprocessing
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import urllib.request
import zipfile
from pathlib import Path

import numpy as np

SECRET = "hidden-answer"
TABLE = f"UserId,Answer\n1,{SECRET}\n2,{SECRET}\n"
OWN = "carried_out"
MARK = "what came of it: "
# A process outside, which has the answers open, in its environment (where that lies in its memory,
# and how long it is) and as its working folder; a TCP port and an abstract socket that somebody
# listens at.
OUTSIDE = {"process": 0, "environment": (0, 0), "port": 0, "socket": ""}


def prepare(folder):
    """Write the answers in every format that a way below reads."""
    folder = Path(folder)
    (folder / "answers.csv").write_text(TABLE)
    (folder / "answers.py").write_text(f"FIRST = {SECRET!r}\n")
    with zipfile.ZipFile(folder / "answers.zip", "w") as archive:
        archive.writestr("zipped_answers.py", f"FIRST = {SECRET!r}\n")
    with sqlite3.connect(folder / "answers.sqlite") as base:
        base.execute("create table a as select ? as answer", (SECRET,))


def libc():
    return ctypes.CDLL(None, use_errno=True)


def c_call(number):
    """Refuse what a call of libc's refuses, as Python's functions do."""
    if number is None or number < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return number


def read_descriptor(descriptor):
    with os.fdopen(c_call(descriptor), "rb") as file:
        return file.read()


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, timeout=15, **options)
    if done.returncode:
        raise OSError(done.stderr.decode(errors="replace")[-200:])
    return done.stdout


def copied(copy):
    """Return what a way has carried into the own folder."""
    copy(OWN)
    return Path(OWN).read_bytes()


def read_text(path):
    return Path(path).read_text()


def read_linked(path, name=""):
    os.symlink(path, OWN)
    return read_text(f"{OWN}{name}")


# --- To the contents, by what Python's own guard sees too ---


def chdir_and_open(at):
    with contextlib.chdir(os.path.dirname(at)):
        return open("answers.csv").read()


def by_multiprocessing(method):
    def way(at):
        with multiprocessing.get_context(method).Pool(1) as pool:
            return pool.apply(read_text, (f"{at}.csv",))

    return way


def import_from(place, name):
    sys.path.append(place)
    try:
        return __import__(name).FIRST
    finally:
        sys.path.remove(place)


def by_process(name):
    """What the kernel shows of another process."""
    return lambda _at: Path(f"/proc/{OUTSIDE['process']}/{name}").read_bytes()


def read_memory(_at):
    start, size = OUTSIDE["environment"]
    return os.pread(os.open(f"/proc/{OUTSIDE['process']}/mem", os.O_RDONLY), size, start)


# What the guard promises without Landlock: it covers files that are opened through Python.
GUARDED = {
    "open": lambda at: open(f"{at}.csv").read(),
    "open bytes": lambda at: open(f"{at}.csv".encode(), "rb").read(),
    "io.open_code": lambda at: io.open_code(f"{at}.csv").read(),
    "os.open": lambda at: read_descriptor(os.open(f"{at}.csv", os.O_RDONLY)),
    "os.open to write": lambda at: read_descriptor(os.open(f"{at}.csv", os.O_RDWR)),
    "chdir": chdir_and_open,
    "through ..": lambda at: read_text(os.path.relpath(f"{at}.csv")),
    "/proc/self/root": lambda at: read_text(f"/proc/self/root{at}.csv"),
    "symbolic link": lambda at: read_linked(f"{at}.csv"),
    "link to the folder": lambda at: read_linked(os.path.dirname(at), "/answers.csv"),
    "shutil.copy": lambda at: copied(lambda own: shutil.copy(f"{at}.csv", own)),
    "import from a zip": lambda at: import_from(f"{at}.zip", "zipped_answers"),
    "urllib file:": lambda at: urllib.request.urlopen(f"file://{at}.csv").read(),
    "multiprocessing fork": by_multiprocessing("fork"),
    "root of a process": lambda at: by_process(f"root{at}.csv")(at),
    "folder of a process": by_process("cwd/answers.csv"),
    "descriptor of a process": by_process("fd/0"),
    "environment of a process": by_process("environ"),
    "memory of a process": read_memory,
    "np.loadtxt": lambda at: np.loadtxt(f"{at}.csv", str, delimiter=","),
    "pd.read_csv": lambda at: __import__("pandas").read_csv(f"{at}.csv"),
}

# --- To the contents, past Python, and by other processes ---


def open_by_openat2(at):
    how = (ctypes.c_uint64 * 3)(0, 0, 0)
    path = f"{at}.csv".encode()
    return read_descriptor(libc().syscall(437, ctypes.c_long(-100), path, how, ctypes.c_size_t(24)))


def open_by_handle(at):
    # For root, or whoever has that capability.
    handle = ctypes.create_string_buffer(8 + 128)
    ctypes.memmove(handle, (128).to_bytes(4, sys.byteorder), 4)
    mount = ctypes.c_int()
    path = f"{at}.csv".encode()
    c_call(libc().name_to_handle_at(-100, path, handle, ctypes.byref(mount), 0))
    # Any folder of the same file system will do.
    own = os.open(".", os.O_RDONLY)
    return read_descriptor(libc().open_by_handle_at(own, handle, os.O_RDONLY))


def read_memory_by_call(_at):
    start, size = OUTSIDE["environment"]
    buffer = ctypes.create_string_buffer(size)
    own = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), size)
    other, process = (ctypes.c_size_t * 2)(start, size), OUTSIDE["process"]
    c_call(libc().process_vm_readv(process, own, 1, other, 1, 0))
    return buffer.raw


BEYOND = {
    "os.open beside a folder": lambda at: read_descriptor(
        os.open("answers.csv", os.O_RDONLY, dir_fd=os.open(os.path.dirname(at), os.O_PATH))
    ),
    "open after O_PATH": lambda at: read_text(f"/proc/self/fd/{os.open(f'{at}.csv', os.O_PATH)}"),
    "hard link": lambda at: copied(lambda own: os.link(f"{at}.csv", own)),
    "import": lambda at: import_from(os.path.dirname(at), "answers"),
    "sqlite3": lambda at: list(sqlite3.connect(f"{at}.sqlite").execute("select * from a")),
    "libc open": lambda at: read_descriptor(libc().open(f"{at}.csv".encode(), os.O_RDONLY)),
    "openat2": open_by_openat2,
    "open_by_handle_at": open_by_handle,
    "cat": lambda at: run("cat", f"{at}.csv"),
    "cwd of a process": lambda at: run("cat", "answers.csv", cwd=os.path.dirname(at)),
    "session of its own": lambda at: run("setsid", "-w", "cat", f"{at}.csv"),
    "multiprocessing spawn": by_multiprocessing("spawn"),
    "multiprocessing forkserver": by_multiprocessing("forkserver"),
    "process_vm_readv": read_memory_by_call,
    "user namespace": lambda at: run("unshare", "-Ur", "chroot", "/", "cat", f"{at}.csv"),
    "mount": lambda at: run(
        "unshare", "-Urm", "sh", "-c", f"touch own; mount --bind '{at}.csv' own && cat own"
    ),
}
# What the rights of an ordinary user may not be enough for anyway.
PRIVILEGED = {
    "open_by_handle_at", "memory of a process", "process_vm_readv", "mount", "user namespace",
    "ptrace",
}  # fmt: skip


def tensor(path, **options):
    torch = __import__("torch")
    return bytes(torch.from_file(path, size=len(TABLE), dtype=torch.uint8, **options).tolist())


# Libraries that open files themselves.
LIBRARIES = {
    "pa.OSFile": lambda at: __import__("pyarrow").OSFile(f"{at}.csv").read(),
    "pa.memory_map": lambda at: __import__("pyarrow").memory_map(f"{at}.csv").read(),
    "torch.from_file": lambda at: tensor(f"{at}.csv"),
    "torch.from_file shared": lambda at: tensor(f"{at}.csv", shared=True),
}


# --- To harm elsewhere; each gets a victim: a folder with a file and a folder, and a process ---


def trace(_victim):
    c_call(libc().ptrace(16, OUTSIDE["process"], None, None))
    libc().ptrace(17, OUTSIDE["process"], None, None)


HARM = {
    "os.remove": lambda victim: os.remove(f"{victim}/file"),
    "libc unlink": lambda victim: c_call(libc().unlink(f"{victim}/file".encode())),
    "os.rmdir": lambda victim: os.rmdir(f"{victim}/folder"),
    "rm in a session of its own": lambda victim: run("setsid", "-w", "rm", f"{victim}/file"),
    "open to write": lambda victim: open(f"{victim}/file", "w").close(),
    "os.truncate": lambda victim: os.truncate(f"{victim}/file", 1),
    "new file": lambda victim: Path(f"{victim}/new").write_text("mine"),
    "new folder": lambda victim: os.mkdir(f"{victim}/new"),
    "new pipe": lambda victim: os.mkfifo(f"{victim}/new"),
    "new symbolic link": lambda victim: os.symlink("/", f"{victim}/new"),
    "new hard link": lambda victim: os.link(__file__, f"{victim}/new"),
    "new socket": lambda victim: socket.socket(socket.AF_UNIX).bind(f"{victim}/new"),
    "rename within": lambda victim: os.rename(f"{victim}/file", f"{victim}/new"),
    "move in": lambda victim: os.rename(f"{victim}/file", OWN),
    "move out": lambda victim: os.replace(shutil.copy(__file__, OWN), f"{victim}/file"),
    "list a folder": lambda victim: os.listdir(victim),
    "ptrace": trace,
    "TCP bind": lambda _: socket.socket().bind(("127.0.0.1", 0)),
    "TCP connect": lambda _: socket.create_connection(("127.0.0.1", OUTSIDE["port"]), timeout=5),
    "abstract socket": lambda _: socket.socket(socket.AF_UNIX).connect(OUTSIDE["socket"]),
    "os.kill": lambda _: os.kill(OUTSIDE["process"], 0),
    "os.killpg": lambda _: os.killpg(os.getpgid(OUTSIDE["process"]), 0),
    "tgkill": lambda _: c_call(libc().tgkill(OUTSIDE["process"], OUTSIDE["process"], 0)),
    "pidfd_send_signal": lambda _: signal.pidfd_send_signal(os.pidfd_open(OUTSIDE["process"]), 0),
    "kill": lambda _: run("sh", "-c", f"kill -0 {OUTSIDE['process']}"),
}
# Landlock refuses the others from its first version on.
SINCE = {"os.truncate": 3, "TCP bind": 4, "TCP connect": 4, "abstract socket": 6, "os.kill": 6}
SINCE |= dict.fromkeys(("os.killpg", "tgkill", "pidfd_send_signal", "kill"), 6)
# What an entry needs.
ALLOWED = {
    "own file": lambda _: open("own_new", "w").close(),
    "own rename": lambda _: os.rename("own_new", "own_renamed"),
    "shared memory": lambda _: os.listdir("/dev/shm"),
    "null": lambda _: open(os.devnull, "w").close(),
    "status": lambda _: open("/proc/self/status").close(),
    "home": lambda _: open(os.path.expanduser("~/settings"), "w").close(),
}


# --- Trying them ---


def attempt(way, target):
    """Try a way; return what came of it."""
    result = []

    def run_it():
        try:
            result.append(way(target))
        except BaseException as error:
            result.append(error)

    # A way that hangs must not stop the others.
    thread = threading.Thread(target=run_it, daemon=True)
    thread.start()
    thread.join(30)
    return result[0] if result else TimeoutError("hangs")


def show(value):
    if isinstance(value, (bytes, bytearray)):
        value = value.decode(errors="replace")
    return (value if isinstance(value, str) else f"{value!r} {value}")[:3000]


def try_all(tables, folder, victims, outside):
    """Print that each way of some tables was "done" or what it "met", on a line after `MARK`."""
    OUTSIDE.update(outside)
    outcome = {}
    for table in tables:
        ways = globals()[table]
        to_contents = ways.keys().isdisjoint({**HARM, **ALLOWED})
        for name, way in ways.items():
            result = attempt(way, f"{folder}/answers" if to_contents else f"{victims}/{name}")
            shown = show(result)
            is_done = not isinstance(result, BaseException) and (SECRET in shown or not to_contents)
            outcome[name] = "done" if is_done else f"met {shown[:200]}"
            Path(OWN).unlink(missing_ok=True)
    print("\n" + MARK + json.dumps(outcome), flush=True)


if __name__ == "__main__":
    arguments = json.loads(sys.argv[1])
    prepare(arguments[1])
    try_all(*arguments)
