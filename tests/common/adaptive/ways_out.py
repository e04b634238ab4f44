"""Ways out of an entry's process: to the answers' contents, and to harm elsewhere.

This file is self-contained. The test copies it into an entry's folder, and runs it once isolated
and once not, which shows that each way leads somewhere. A way to the contents is a function of the
folder of the answers, where `prepare` has written the same secret in several formats. A way to harm
is a function of its victim.
"""

import asyncio
import codecs
import concurrent.futures
import configparser
import contextlib
import csv
import ctypes
import fileinput
import gzip
import importlib.machinery
import io
import json
import linecache
import mmap
import multiprocessing
import os
import pkgutil
import runpy
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tarfile
import threading
import tokenize
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
    import joblib
    import pandas as pd
    import torch

    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    (folder / "answers.csv").write_text(TABLE)
    (folder / "answers.json").write_text(json.dumps([SECRET]))
    (folder / "answers.ini").write_text(f"[answers]\nfirst = {SECRET}\n")
    (folder / "answers.py").write_text(f"FIRST = {SECRET!r}\n")
    np.save(folder / "answers.npy", np.array([SECRET]))
    np.savez(folder / "answers.npz", answers=np.array([SECRET]))
    with gzip.open(folder / "answers.csv.gz", "wt") as file:
        file.write(TABLE)
    with zipfile.ZipFile(folder / "answers.zip", "w") as archive:
        archive.writestr("answers.csv", TABLE)
        archive.writestr("zipped_answers.py", f"FIRST = {SECRET!r}\n")
    with sqlite3.connect(folder / "answers.sqlite") as base:
        base.execute("create table answers as select ? as answer", (SECRET,))
    joblib.dump([SECRET], folder / "answers.joblib")
    torch.save({"answer": SECRET}, folder / "answers.pt")
    frame = pd.DataFrame({"answer": [SECRET]})
    frame.to_parquet(folder / "answers.parquet")
    frame.to_feather(folder / "answers.feather")
    frame.to_pickle(folder / "answers.pkl")
    (folder / "answers.svm").write_text("1 1:7.25\n")


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
    Path(OWN).unlink(missing_ok=True)
    copy(OWN)
    return Path(OWN).read_bytes()


def read_text(path):
    return Path(path).read_text()


def send_text(path, connection):
    connection.send(Path(path).read_text())


# --- To the contents: Python's own ways of opening a file ---


def chdir_and_open(folder):
    here = os.getcwd()
    os.chdir(folder)
    try:
        return open("answers.csv").read()
    finally:
        os.chdir(here)


def open_beside_a_folder(folder):
    descriptor = os.open(folder, os.O_PATH)
    try:
        return read_descriptor(os.open("answers.csv", os.O_RDONLY, dir_fd=descriptor))
    finally:
        os.close(descriptor)


def open_what_is_open_as_a_name(folder):
    descriptor = os.open(f"{folder}/answers.csv", os.O_PATH)
    try:
        return open(f"/proc/self/fd/{descriptor}").read()
    finally:
        os.close(descriptor)


def map_file(folder):
    with open(f"{folder}/answers.csv", "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)[:]


def send_file(folder):
    with open(OWN, "wb") as to, open(f"{folder}/answers.csv", "rb") as source:
        os.sendfile(to.fileno(), source.fileno(), 0, 1000)
    return Path(OWN).read_bytes()


def copy_file_range(folder):
    with open(OWN, "wb") as to, open(f"{folder}/answers.csv", "rb") as source:
        os.copy_file_range(source.fileno(), to.fileno(), 1000)
    return Path(OWN).read_bytes()


def archive_and_read(folder):
    def pack(own):
        with tarfile.open(own, "w") as archive:
            archive.add(f"{folder}/answers.csv")

    return copied(pack)


def open_in_a_thread(folder):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        return pool.submit(read_text, f"{folder}/answers.csv").result()


def read_configuration(folder):
    parser = configparser.ConfigParser()
    parser.read(f"{folder}/answers.ini")
    return dict(parser["answers"])


def read_database(folder, address="{}/answers.sqlite"):
    with contextlib.closing(sqlite3.connect(address.format(folder), uri=True)) as base:
        return base.execute("select * from answers").fetchall()


def attach_database(folder):
    with contextlib.closing(sqlite3.connect(":memory:")) as base:
        base.execute("attach ? as other", (f"{folder}/answers.sqlite",))
        return base.execute("select * from other.answers").fetchall()


def import_module(folder):
    sys.path.append(folder)
    try:
        return __import__("answers").FIRST
    finally:
        sys.path.remove(folder)


def import_from_zip(folder):
    sys.path.append(f"{folder}/answers.zip")
    try:
        return __import__("zipped_answers").FIRST
    finally:
        sys.path.remove(f"{folder}/answers.zip")


def read_history(folder):
    import readline

    readline.read_history_file(f"{folder}/answers.csv")
    return [readline.get_history_item(number) for number in range(1, 4)]


PYTHON = {
    "open": lambda folder: open(f"{folder}/answers.csv").read(),
    "open bytes": lambda folder: open(f"{folder}/answers.csv".encode(), "rb").read(),
    "io.FileIO": lambda folder: io.FileIO(f"{folder}/answers.csv").read(),
    "io.open_code": lambda folder: io.open_code(f"{folder}/answers.csv").read(),
    "opener": lambda folder: open(f"{folder}/answers.csv", opener=os.open).read(),
    "os.open": lambda folder: read_descriptor(os.open(f"{folder}/answers.csv", os.O_RDONLY)),
    "os.open to write": lambda folder: read_descriptor(os.open(f"{folder}/answers.csv", os.O_RDWR)),
    "os.open beside a folder": open_beside_a_folder,
    "open after O_PATH": open_what_is_open_as_a_name,
    "chdir": chdir_and_open,
    "pathlib": lambda folder: read_text(f"{folder}/answers.csv"),
    "through ..": lambda folder: read_text(os.path.relpath(f"{folder}/answers.csv")),
    "/proc/self/root": lambda folder: read_text(f"/proc/self/root{folder}/answers.csv"),
    "codecs": lambda folder: codecs.open(f"{folder}/answers.csv").read(),
    "fileinput": lambda folder: list(fileinput.input(f"{folder}/answers.csv")),
    "linecache": lambda folder: linecache.getlines(f"{folder}/answers.csv"),
    "tokenize": lambda folder: tokenize.open(f"{folder}/answers.csv").read(),
    "csv": lambda folder: list(csv.reader(open(f"{folder}/answers.csv"))),
    "json": lambda folder: json.load(open(f"{folder}/answers.json")),
    "gzip": lambda folder: gzip.open(f"{folder}/answers.csv.gz").read(),
    "zipfile": lambda folder: zipfile.ZipFile(f"{folder}/answers.zip").read("answers.csv"),
    "configparser": read_configuration,
    "sqlite3": read_database,
    "sqlite3 immutable": lambda folder: read_database(
        folder, "file:{}/answers.sqlite?mode=ro&immutable=1"
    ),
    "sqlite3 attach": attach_database,
    "mmap": map_file,
    "sendfile": send_file,
    "copy_file_range": copy_file_range,
    "urllib file:": lambda folder: urllib.request.urlopen(f"file://{folder}/answers.csv").read(),
    "import": import_module,
    "import from a zip": import_from_zip,
    "runpy": lambda folder: runpy.run_path(f"{folder}/answers.py")["FIRST"],
    "source loader": lambda folder: importlib.machinery.SourceFileLoader(
        "answers", f"{folder}/answers.py"
    ).get_source("answers"),
    "pkgutil": lambda folder: (
        pkgutil.get_importer(folder).find_spec("answers").loader.get_data(f"{folder}/answers.csv")
    ),
    "readline": read_history,
    "thread": open_in_a_thread,
    "shutil.copy": lambda folder: copied(lambda own: shutil.copy(f"{folder}/answers.csv", own)),
    "shutil.copytree": lambda folder: [
        path.read_bytes() for path in Path(shutil.copytree(folder, f"{OWN}_tree")).iterdir()
    ],
    "tarfile": archive_and_read,
    "hard link": lambda folder: copied(lambda own: os.link(f"{folder}/answers.csv", own)),
    "symbolic link": lambda folder: copied(lambda own: os.symlink(f"{folder}/answers.csv", own)),
    "link to the folder": lambda folder: (
        os.symlink(folder, f"{OWN}_folder"),
        read_text(f"{OWN}_folder/answers.csv"),
    ),
}

# --- To the contents: libraries that open files themselves ---


def numpy_ways():
    return {
        "np.fromfile": lambda folder: np.fromfile(f"{folder}/answers.csv", np.uint8).tobytes(),
        "np.memmap": lambda folder: np.memmap(f"{folder}/answers.csv", mode="r").tobytes(),
        "np.loadtxt": lambda folder: np.loadtxt(f"{folder}/answers.csv", str, delimiter=","),
        "np.genfromtxt": lambda folder: np.genfromtxt(f"{folder}/answers.csv", str, delimiter=","),
        "np.load": lambda folder: np.load(f"{folder}/answers.npy"),
        "np.load memory map": lambda folder: np.load(f"{folder}/answers.npy", mmap_mode="r")[:],
        "np.load zip": lambda folder: np.load(f"{folder}/answers.npz")["answers"],
        "np.fromregex": lambda folder: np.fromregex(
            f"{folder}/answers.csv", r"(hidden-answer)", [("answer", "S13")]
        ),
        "np.DataSource": lambda folder: (
            np.lib.npyio.DataSource(None).open(f"{folder}/answers.csv").read()
        ),
    }


def pandas_ways():
    import pandas as pd

    ways = {
        f"pd.read_csv {engine}": lambda folder, engine=engine: pd.read_csv(
            f"{folder}/answers.csv", engine=engine
        )
        for engine in ("c", "python", "pyarrow")
    }
    return ways | {
        "pd.read_csv mapped": lambda folder: pd.read_csv(f"{folder}/answers.csv", memory_map=True),
        "pd.read_csv file:": lambda folder: pd.read_csv(f"file://{folder}/answers.csv"),
        "pd.read_table": lambda folder: pd.read_table(f"{folder}/answers.csv"),
        "pd.read_fwf": lambda folder: pd.read_fwf(f"{folder}/answers.csv"),
        "pd.read_json": lambda folder: pd.read_json(f"{folder}/answers.json"),
        "pd.read_parquet": lambda folder: pd.read_parquet(f"{folder}/answers.parquet"),
        "pd.read_feather": lambda folder: pd.read_feather(f"{folder}/answers.feather"),
        "pd.read_pickle": lambda folder: pd.read_pickle(f"{folder}/answers.pkl"),
    }


def pyarrow_ways():
    import pyarrow
    import pyarrow.csv
    import pyarrow.dataset
    import pyarrow.feather
    import pyarrow.fs
    import pyarrow.parquet

    local = pyarrow.fs.LocalFileSystem

    def copy(folder):
        pyarrow.fs.copy_files(f"{folder}/answers.csv", os.path.abspath(OWN))
        return Path(OWN).read_bytes()

    return {
        "pa.OSFile": lambda folder: pyarrow.OSFile(f"{folder}/answers.csv").read(),
        "pa.memory_map": lambda folder: pyarrow.memory_map(f"{folder}/answers.csv").read(),
        "pa.input_stream": lambda folder: pyarrow.input_stream(f"{folder}/answers.csv").read(),
        "pa.csv": lambda folder: pyarrow.csv.read_csv(f"{folder}/answers.csv").to_pylist(),
        "pa.csv stream": lambda folder: (
            pyarrow.csv.open_csv(f"{folder}/answers.csv").read_all().to_pylist()
        ),
        "pa.dataset": lambda folder: (
            pyarrow.dataset.dataset(f"{folder}/answers.csv", format="csv").to_table().to_pylist()
        ),
        "pa.parquet": lambda folder: pyarrow.parquet.read_table(
            f"{folder}/answers.parquet"
        ).to_pylist(),
        "pa.feather": lambda folder: pyarrow.feather.read_table(
            f"{folder}/answers.feather"
        ).to_pylist(),
        "pa.fs file": lambda folder: local().open_input_file(f"{folder}/answers.csv").read(),
        "pa.fs stream": lambda folder: local().open_input_stream(f"{folder}/answers.csv").read(),
        "pa.fs mapped": lambda folder: (
            local(use_mmap=True).open_input_file(f"{folder}/answers.csv").read()
        ),
        "pa.fs copy": copy,
    }


def torch_ways():
    import torch

    size = len(TABLE)
    return {
        "torch.from_file": lambda folder: bytes(
            torch.from_file(f"{folder}/answers.csv", size=size, dtype=torch.uint8).tolist()
        ),
        "torch.from_file shared": lambda folder: bytes(
            torch.from_file(
                f"{folder}/answers.csv", shared=True, size=size, dtype=torch.uint8
            ).tolist()
        ),
        "torch storage": lambda folder: bytes(
            torch.UntypedStorage.from_file(f"{folder}/answers.csv", False, size).tolist()
        ),
        "torch.load": lambda folder: torch.load(f"{folder}/answers.pt"),
        "torch.load mapped": lambda folder: torch.load(f"{folder}/answers.pt", mmap=True),
    }


def other_libraries():
    import joblib
    from sklearn.datasets import load_files

    return {
        "joblib.load": lambda folder: joblib.load(f"{folder}/answers.joblib"),
        "joblib.Parallel": lambda folder: joblib.Parallel(2)(
            joblib.delayed(read_text)(f"{folder}/answers.csv") for _ in range(2)
        ),
        "sklearn load_files": lambda folder: (
            load_files(str(Path(folder).parent), categories=[Path(folder).name]).data
        ),
    }


# --- To the contents: past Python, and by other processes ---


def open_by_libc(folder):
    return read_descriptor(libc().open(f"{folder}/answers.csv".encode(), os.O_RDONLY))


def open_by_fopen(folder):
    functions = libc()
    functions.fopen.restype = ctypes.c_void_p
    file = functions.fopen(f"{folder}/answers.csv".encode(), b"r")
    if not file:
        c_call(-1)
    buffer = ctypes.create_string_buffer(1000)
    functions.fread(buffer, 1, 999, ctypes.c_void_p(file))
    return buffer.value


def open_by_system_call(folder):
    at_here = ctypes.c_long(-100)
    path = f"{folder}/answers.csv".encode()
    numbers = {"x86_64": 257, "aarch64": 56, "riscv64": 56}
    return read_descriptor(libc().syscall(numbers[os.uname().machine], at_here, path, 0, 0))


def open_by_openat2(folder):
    how = (ctypes.c_uint64 * 3)(0, 0, 0)
    path = f"{folder}/answers.csv".encode()
    return read_descriptor(libc().syscall(437, ctypes.c_long(-100), path, how, ctypes.c_size_t(24)))


def open_by_handle(folder):
    # For root, or whoever has that capability.
    handle = ctypes.create_string_buffer(8 + 128)
    ctypes.memmove(handle, (128).to_bytes(4, sys.byteorder), 4)
    mount = ctypes.c_int()
    path = f"{folder}/answers.csv".encode()
    c_call(libc().name_to_handle_at(-100, path, handle, ctypes.byref(mount), 0))
    # Any folder of the same file system will do.
    own = os.open(".", os.O_RDONLY)
    try:
        return read_descriptor(libc().open_by_handle_at(own, handle, os.O_RDONLY))
    finally:
        os.close(own)


def fork_and_read(folder):
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            os.write(writing, Path(f"{folder}/answers.csv").read_bytes())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    return read_descriptor(reading)


def spawn_posix(folder):
    code = f"cat '{folder}/answers.csv' > {OWN}_spawned"
    os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", code], os.environ), 0)
    return Path(f"{OWN}_spawned").read_bytes()


def detach_and_read(folder):
    """A grandchild with a session of its own."""
    code = f"cat '{folder}/answers.csv' > {OWN}_detached; echo . >> {OWN}_detached"
    subprocess.run(["sh", "-c", f'setsid sh -c "{code}" & wait'], stderr=subprocess.DEVNULL)
    return Path(f"{OWN}_detached").read_bytes()


def by_multiprocessing(method):
    def way(folder):
        context = multiprocessing.get_context(method)
        receiving, sending = context.Pipe(duplex=False)
        process = context.Process(target=send_text, args=(f"{folder}/answers.csv", sending))
        process.start()
        sending.close()
        try:
            return receiving.recv() if receiving.poll(15) else None
        finally:
            process.join()

    return way


def by_pool(folder):
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(read_text, (f"{folder}/answers.csv",))


def by_executor(folder):
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(read_text, f"{folder}/answers.csv").result()


def by_asyncio(folder):
    async def read():
        process = await asyncio.create_subprocess_exec(
            "cat", f"{folder}/answers.csv", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        return (await process.communicate())[0]

    return asyncio.run(read())


def pass_descriptor(folder):
    """A child opens it, and hands what is open over a socket."""
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            socket.send_fds(theirs, [b"."], [os.open(f"{folder}/answers.csv", os.O_RDONLY)])
        os._exit(0)
    theirs.close()
    os.waitpid(child, 0)
    return read_descriptor(socket.recv_fds(ours, 1, 1)[1][0])


def by_process(name):
    """What the kernel shows of another process."""
    return lambda _folder: Path(f"/proc/{OUTSIDE['process']}/{name}").read_bytes()


def read_memory(_folder):
    start, size = OUTSIDE["environment"]
    with open(f"/proc/{OUTSIDE['process']}/mem", "rb") as file:
        file.seek(start)
        return file.read(size)


def read_memory_by_call(_folder):
    start, size = OUTSIDE["environment"]
    buffer = ctypes.create_string_buffer(size)

    class Vector(ctypes.Structure):
        _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))

    own, other = Vector(ctypes.addressof(buffer), size), Vector(start, size)
    process = OUTSIDE["process"]
    c_call(libc().process_vm_readv(process, ctypes.byref(own), 1, ctypes.byref(other), 1, 0))
    return buffer.raw


def mount_elsewhere(folder):
    """For root, or in a user namespace: the folder under another name."""
    os.makedirs(f"{OWN}_mounted", exist_ok=True)
    code = f"mount --bind '{folder}' {OWN}_mounted && cat {OWN}_mounted/answers.csv"
    try:
        return run("unshare", "-m", "sh", "-c", code)
    except OSError:
        return run("unshare", "-Urm", "sh", "-c", code)


def change_root(folder):
    return run("unshare", "-Ur", "chroot", "/", "/bin/sh", "-c", f"cat '{folder}/answers.csv'")


PROCESSES = {
    "libc open": open_by_libc,
    "libc fopen": open_by_fopen,
    "openat": open_by_system_call,
    "openat2": open_by_openat2,
    "open_by_handle_at": open_by_handle,
    "libc system": lambda folder: copied(
        lambda own: libc().system(f"cat '{folder}/answers.csv' > {own}".encode())
    ),
    "os.system": lambda folder: copied(
        lambda own: os.system(f"cat '{folder}/answers.csv' > {own} 2> /dev/null")
    ),
    "os.popen": lambda folder: os.popen(f"cat '{folder}/answers.csv' 2> /dev/null").read(),
    "cat": lambda folder: run("cat", f"{folder}/answers.csv"),
    "shell redirection": lambda folder: run("sh", "-c", f"cat < '{folder}/answers.csv'"),
    "cp": lambda folder: copied(lambda own: run("cp", f"{folder}/answers.csv", own)),
    "ln": lambda folder: copied(lambda own: run("ln", f"{folder}/answers.csv", own)),
    "dd": lambda folder: run("dd", f"if={folder}/answers.csv", "status=none"),
    "grep": lambda folder: run("grep", "-r", SECRET[:6], folder),
    "tar": lambda folder: run("tar", "-cf", "-", "-C", folder, "answers.csv"),
    "find": lambda folder: run("find", folder, "-name", "answers.csv", "-exec", "cat", "{}", "+"),
    "awk": lambda folder: run("awk", "{print}", f"{folder}/answers.csv"),
    "sed": lambda folder: run("sed", "", f"{folder}/answers.csv"),
    "perl": lambda folder: run("perl", "-pe", "", f"{folder}/answers.csv"),
    "python": lambda folder: run(
        sys.executable, "-c", f"print(open({folder + '/answers.csv'!r}).read())"
    ),
    "python, isolated": lambda folder: run(
        sys.executable, "-I", "-S", "-c", f"print(open({folder + '/answers.csv'!r}).read())"
    ),
    "cwd of a process": lambda folder: run("cat", "answers.csv", cwd=folder),
    "stdin of a process": lambda folder: run("cat", stdin=open(f"{folder}/answers.csv")),
    "fork": fork_and_read,
    "posix_spawn": spawn_posix,
    "session of its own": detach_and_read,
    "multiprocessing fork": by_multiprocessing("fork"),
    "multiprocessing spawn": by_multiprocessing("spawn"),
    "multiprocessing forkserver": by_multiprocessing("forkserver"),
    "multiprocessing pool": by_pool,
    "process pool": by_executor,
    "asyncio": by_asyncio,
    "descriptor over a socket": pass_descriptor,
    "root of a process": lambda folder: by_process(f"root{folder}/answers.csv")(folder),
    "folder of a process": by_process("cwd/answers.csv"),
    "descriptor of a process": by_process("fd/0"),
    "environment of a process": by_process("environ"),
    "memory of a process": read_memory,
    "process_vm_readv": read_memory_by_call,
    "mount": mount_elsewhere,
    "user namespace": change_root,
}


# --- To harm elsewhere; each gets a victim: a folder with a file and a folder, and a process ---


def c_unlink(victim):
    c_call(libc().unlink(f"{victim}/file".encode()))


def write_by_mapping(victim):
    with open(f"{victim}/file", "r+b") as file:
        mmap.mmap(file.fileno(), 0)[0] = 0


def truncate_descriptor(victim):
    with open(f"{victim}/file", "r+b") as file:
        file.truncate(1)


def move_out(victim):
    Path(OWN).write_text("mine")
    os.replace(OWN, f"{victim}/file")


def listen(_victim):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))


def connect(_victim):
    with socket.create_connection(("127.0.0.1", OUTSIDE["port"]), timeout=5):
        pass


def join_abstract_socket(_victim):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(OUTSIDE["socket"])


def signal_by_descriptor(process):
    descriptor = os.pidfd_open(process)
    try:
        signal.pidfd_send_signal(descriptor, 0)
    finally:
        os.close(descriptor)


def trace(process):
    c_call(libc().ptrace(16, process, None, None))
    libc().ptrace(17, process, None, None)


FILES_HARMED = {
    "os.remove": lambda victim: os.remove(f"{victim}/file"),
    "libc unlink": c_unlink,
    "os.rmdir": lambda victim: os.rmdir(f"{victim}/folder"),
    "shutil.rmtree": lambda victim: shutil.rmtree(victim),
    "rm": lambda victim: run("rm", f"{victim}/file"),
    "rm in a session of its own": lambda victim: run("setsid", "-w", "rm", f"{victim}/file"),
    "open to write": lambda victim: open(f"{victim}/file", "w").close(),
    "open to append": lambda victim: open(f"{victim}/file", "a").write("more"),
    "os.open to change": lambda victim: os.close(os.open(f"{victim}/file", os.O_WRONLY)),
    "write by mmap": write_by_mapping,
    "os.truncate": lambda victim: os.truncate(f"{victim}/file", 1),
    "os.ftruncate": truncate_descriptor,
    "new file": lambda victim: Path(f"{victim}/new").write_text("mine"),
    "new folder": lambda victim: os.mkdir(f"{victim}/new"),
    "new pipe": lambda victim: os.mkfifo(f"{victim}/new"),
    "new symbolic link": lambda victim: os.symlink("/", f"{victim}/new"),
    "new hard link": lambda victim: os.link(__file__, f"{victim}/new"),
    "new socket": lambda victim: socket.socket(socket.AF_UNIX).bind(f"{victim}/new"),
    "rename within": lambda victim: os.rename(f"{victim}/file", f"{victim}/new"),
    "move in": lambda victim: os.rename(f"{victim}/file", OWN),
    "move out": move_out,
    "touch": lambda victim: run("touch", f"{victim}/new"),
    "np.save": lambda victim: np.save(f"{victim}/new.npy", np.ones(1)),
    "list a folder": lambda victim: os.listdir(victim),
    "scan a folder": lambda victim: list(os.scandir(victim)),
    "process that removes": lambda victim: subprocess.run(
        [sys.executable, "-c", f"import os; os.remove({victim + '/file'!r})"],
        check=True, stderr=subprocess.DEVNULL,
    ),
}  # fmt: skip
NETWORK = {"TCP bind": listen, "TCP connect": connect}
OTHER_PROCESSES = {
    "os.kill": lambda process: os.kill(process, 0),
    "os.kill to go on": lambda process: os.kill(process, signal.SIGCONT),
    "os.killpg": lambda process: os.killpg(os.getpgid(process), 0),
    "libc kill": lambda process: c_call(libc().kill(process, 0)),
    "tgkill": lambda process: c_call(libc().tgkill(process, process, 0)),
    "pidfd_send_signal": signal_by_descriptor,
    "kill": lambda process: run("sh", "-c", f"kill -0 {process}"),
}
ABSTRACT_SOCKET = {"abstract socket": join_abstract_socket}
DEBUGGED = {"ptrace": trace}


# --- Trying them ---


def contents():
    """All ways to the contents, by name; those of libraries that are not there are left out."""
    found = PYTHON | PROCESSES
    for ways in (numpy_ways, pandas_ways, pyarrow_ways, torch_ways, other_libraries):
        with contextlib.suppress(ImportError):
            found |= ways()
    return found


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
    thread.join(20)
    return result[0] if result else TimeoutError("hangs")


def show(value):
    if isinstance(value, (bytes, bytearray)):
        value = value.decode(errors="replace")
    return (value if isinstance(value, str) else f"{value!r} {value}")[:3000]


def try_contents(folder):
    """Say for each way whether it got at the contents, or what it met."""
    outcome = {}
    for name, way in contents().items():
        result = attempt(way, folder)
        refused = isinstance(result, BaseException)
        shown = show(result)
        outcome[name] = "got" if SECRET in shown and not refused else f"met {shown[:200]}"
        for path in Path().glob(f"{OWN}*"):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    return outcome


def try_harm(victims):
    """Say for each way whether it did harm; each has a victim of its own, a folder of its name."""
    outcome = {}
    for group in (FILES_HARMED, NETWORK, OTHER_PROCESSES, ABSTRACT_SOCKET, DEBUGGED):
        of_process = group in (OTHER_PROCESSES, DEBUGGED)
        for name, way in group.items():
            result = attempt(way, OUTSIDE["process"] if of_process else f"{victims}/{name}")
            refused = isinstance(result, BaseException)
            outcome[name] = f"met {show(result)[:200]}" if refused else "done"
    return outcome


def try_all(folder, victims, outside):
    """Try everything, and print what came of it on a line of its own that begins with `MARK`."""
    OUTSIDE.update(outside)
    print("\n" + MARK + json.dumps(try_contents(folder) | try_harm(victims)), flush=True)


if __name__ == "__main__":
    prepare(sys.argv[1])
    try_all(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
