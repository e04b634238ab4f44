"""Ways out of an entry's process: to the hidden answers, to harm elsewhere, to another game.

The test copies this file into an entry's folder, where the entry tries the ways. A way is an
expression. `names_for` says which names it may use beside those of this module.
"""

import concurrent.futures
import contextlib
import ctypes
import json
import multiprocessing
import os
import platform
import socket
import sqlite3
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

SECRET = "hidden-answer"
TABLE = f"UserId,Answer\n1,{SECRET}\n2,{SECRET}\n"
# A file in the entry's own folder, into which a way may copy the answers.
OWN = "carried_out"
# The line with the outcomes begins with this.
MARK = "what came of it: "
# Names of things outside the entry's process. The test fills this in:
#   process      number of a process whose standard input is the file of the answers, whose
#                environment holds an answer, and whose working folder is the folder of the answers
#   environment  address and number of bytes of the environment in the memory of this process
#   port         of TCP and UDP, at which somebody listens
#   abstract     address of an abstract socket at which somebody listens
#   path         path of a socket at which somebody listens
#   note         name of a file, queue or key by which a game tells something to the next game
#   number       number of shared memory, a queue or a semaphore for the same purpose
OUTSIDE = {}
# Modules that ways use beside those imported above.
MODULES = ["fcntl", "io", "mmap", "pkgutil", "resource", "shutil", "signal"]
# These take long to import. They are imported only if ways to the answers are tried.
LIBRARIES = ["numpy", "pandas", "pyarrow", "torch"]


@dataclass(frozen=True)
class Way:
    """A way that an entry must not have."""

    # Python's expression for it.
    expression: str
    # Something that the way needs and that a machine may lack.
    needs: str = ""
    # The first version of Landlock that refuses it; None if no version does.
    landlock: int | None = 1
    # The walls, named as in `walls.Walls`, each of which refuses it.
    walls: tuple[str, ...] = ("root",)


@dataclass(frozen=True)
class Need:
    """Something that an entry must be able to do."""

    expression: str
    # The wall that makes it possible, or "" if it is always possible.
    only_with: str = ""


def names_for(place, to_answers):
    """Return the names that a way may use.

    For a way to the answers (`to_answers`), `place` is the path of their files without suffix. For
    any other way, `place` is the folder to harm, which holds a file and a folder.
    """
    if to_answers:
        about = {"file": f"{place}.csv", "folder": os.path.dirname(place)}
    else:
        about = {"file": f"{place}/file", "folder": f"{place}/folder"}
    return {**globals(), **about, "victim": place, "new": f"{place}/new", **OUTSIDE}


def prepare(folder):
    """Write the answers as a module, a zipped module and a database, which some ways read."""
    code = f"FIRST = {SECRET!r}\n"
    Path(f"{folder}/answers.py").write_text(code)
    with zipfile.ZipFile(f"{folder}/answers.zip", "w") as archive:
        archive.writestr("zipped_answers.py", code)
    with sqlite3.connect(f"{folder}/answers.sqlite") as base:
        base.execute("create table answers as select ? as answer", (SECRET,))


# --- What the ways are made of ---


def libc():
    return ctypes.CDLL(None, use_errno=True)


def c_call(number):
    """Raise an error if a function of libc has returned one, as Python's functions do."""
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


def copied(_copying):
    """Return the content of `OWN`.

    The argument is not used: Python evaluates it before the call, which copies the answers there.
    """
    return Path(OWN).read_bytes()


def read_text(path):
    return Path(path).read_text()


def send_text(path, connection):
    connection.send(read_text(path))


def open_own():
    return os.open(OWN, os.O_CREAT | os.O_RDWR)


def over_a_socket(path):
    """Return the contents of a file that a child process opens and hands over a socket."""
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    if not os.fork():
        with contextlib.suppress(BaseException):
            socket.send_fds(theirs, [b"."], [os.open(path, os.O_RDONLY)])
        os._exit(0)
    theirs.close()
    return read_descriptor(socket.recv_fds(ours, 1, 1)[1][0])


def by_multiprocessing(method, path):
    """Return the contents of a file that a process of `multiprocessing` reads."""
    context = multiprocessing.get_context(method)
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=send_text, args=(path, sending))
    process.start()
    sending.close()
    try:
        return receiving.recv() if receiving.poll(15) else None
    finally:
        process.join()


# --- Ways to the answers that the guard in Python's file functions sees too ---

GUARDED = [
    Way("open(file).read()"),
    Way('open(file.encode(), "rb").read()'),
    Way("open(file, opener=os.open).read()"),
    Way("io.FileIO(file).read()"),
    Way("io.open_code(file).read()"),
    Way("read_descriptor(os.open(file, os.O_RDONLY))"),
    Way("read_descriptor(os.open(file, os.O_RDWR))"),
    Way("read_text(os.path.relpath(file))"),
    Way('read_text(f"/proc/self/root{file}")'),
    Way("copied(os.symlink(file, OWN))"),
    Way("copied(shutil.copy(file, OWN))"),
    Way("copied(os.sendfile(open_own(), os.open(file, os.O_RDONLY), 0, 99))"),
    Way("copied(os.copy_file_range(os.open(file, os.O_RDONLY), open_own(), 99))"),
    Way("mmap.mmap(os.open(file, os.O_RDONLY), 0, access=mmap.ACCESS_READ)[:]"),
    Way('(sys.path.append(f"{folder}/answers.zip"), __import__("zipped_answers").FIRST)'),
    Way('pkgutil.get_importer(folder).find_spec("answers").loader.get_data(file)'),
    Way('by_multiprocessing("fork", file)'),
    Way("over_a_socket(file)"),
    Way('read_text(f"/proc/{process}/root{file}")'),
    Way('read_text(f"/proc/{process}/cwd/answers.csv")'),
    Way('read_text(f"/proc/1/root{file}")', needs="a privilege"),
    Way('read_text(f"/proc/{process}/fd/0")'),
    Way('read_text(f"/proc/{process}/environ")'),
    Way('os.pread(os.open(f"/proc/{process}/mem", 0), *environment[::-1])', needs="a privilege"),
    Way('numpy.fromfile(file, "u1").tobytes()'),
    Way('numpy.memmap(file, mode="r").tobytes()'),
    Way('pandas.read_csv(file, engine="c")'),
    Way('pandas.read_csv(file, engine="python")'),
]

# --- Ways to the answers past Python: by the kernel, by libraries and by other processes ---


def openat(path):
    """Open a file for reading by the system call openat, without a function of libc for it."""
    number = {"x86_64": 257, "aarch64": 56, "riscv64": 56}.get(platform.machine())
    return libc().syscall(number, ctypes.c_long(-100), path.encode(), 0, 0)


def openat2(path):
    """Open a file for reading by the system call openat2, for which libc has no function."""
    return libc().syscall(437, -100, path.encode(), bytes(24), ctypes.c_size_t(24))


def open_by_handle(path):
    """Return the contents of a file that is opened by its handle, as root may do."""
    handle = ctypes.create_string_buffer(8 + 128)
    ctypes.memmove(handle, (128).to_bytes(4, sys.byteorder), 4)
    mount = ctypes.c_int()
    c_call(libc().name_to_handle_at(-100, path.encode(), handle, ctypes.byref(mount), 0))
    # Any folder of the same file system identifies it.
    own = os.open(".", os.O_RDONLY)
    return read_descriptor(libc().open_by_handle_at(own, handle, os.O_RDONLY))


def read_memory_by_call(process, start, size):
    """Return some bytes of the memory of another process."""
    buffer = ctypes.create_string_buffer(size)
    own = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), size)
    other = (ctypes.c_size_t * 2)(start, size)
    c_call(libc().process_vm_readv(process, own, 1, other, 1, 0))
    return buffer.raw


def spawn_shell(command):
    """Run a shell command by `posix_spawn`; return how it ended."""
    return os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", command], os.environ), 0)


BEYOND = [
    Way('read_descriptor(os.open("answers.csv", os.O_RDONLY, dir_fd=os.open(folder, os.O_PATH)))'),
    Way('read_text(f"/proc/self/fd/{os.open(file, os.O_PATH)}")'),
    Way("copied(os.link(file, OWN))"),
    Way('list(sqlite3.connect(f"{folder}/answers.sqlite").execute("select * from answers"))'),
    Way('(sys.path.append(folder), __import__("answers").FIRST)'),
    Way("read_descriptor(libc().open(file.encode(), os.O_RDONLY))"),
    Way("read_descriptor(openat(file))"),
    Way("read_descriptor(openat2(file))"),
    Way("open_by_handle(file)", needs="a privilege"),
    Way("read_memory_by_call(process, *environment)", needs="a privilege"),
    Way("""copied(os.system(f"cat '{file}' > {OWN} 2> /dev/null"))"""),
    Way("copied(spawn_shell(f\"cat '{file}' > {OWN}\"))"),
    Way("""copied(run("sh", "-c", f"setsid sh -c 'cat {file} > {OWN}' & wait"))"""),
    Way('run("cat", file)'),
    Way('run("cat", stdin=open(file))'),
    Way('run("cat", "answers.csv", cwd=folder)'),
    Way('copied(run("ln", file, OWN))'),
    Way('run("grep", "-r", SECRET[:6], folder)'),
    Way('run(sys.executable, "-c", f"print(open({file!r}).read())")'),
    Way('by_multiprocessing("spawn", file)'),
    Way('by_multiprocessing("forkserver", file)'),
    Way('run("unshare", "-Ur", "chroot", "/", "cat", file)', needs="a privilege"),
    Way('run("unshare", "-Urm", "cat", f"/proc/1/root{file}")', needs="a privilege"),
    Way('run("nsenter", "-t", "1", "-m", "cat", file)', needs="a privilege"),
    Way(
        """run("unshare", "-Urm", "sh", "-c", f"touch me; mount -B '{file}' me; cat me")""",
        needs="a privilege",
    ),
    Way("pyarrow.OSFile(file).read()"),
    Way('pandas.read_csv(file, engine="pyarrow")'),
    Way("pandas.read_csv(file, memory_map=True)"),
    Way("pyarrow.memory_map(file).read()"),
    Way("bytes(torch.from_file(file, size=len(TABLE), dtype=torch.uint8).tolist())"),
]

# --- To harm elsewhere ---

# A command of fcntl, a family and a protocol of sockets, and the number of a system call.
F_SET_RW_HINT = 1036
AF_VSOCK = 40
MPTCP = 262
IO_URING_SETUP = 425


def connect(family, kind, protocol, address):
    with socket.socket(family, kind, protocol) as connection:
        connection.connect(address)


def changed(_changing, path, name, value):
    """Raise an error unless the attribute `name` of a file now has a value.

    The first argument is not used: Python evaluates it before the call, which should change the
    file. A way may pretend that it has done so.
    """
    now = getattr(os.stat(path), name)
    if now != value:
        raise OSError(f"{name} is {now}")


def trace(process):
    """Attach to a process, as a debugger does, and detach from it."""
    for request in (16, 17):
        c_call(libc().ptrace(request, process, None, None))


HARM = [
    Way("os.remove(file)"),
    Way("c_call(libc().unlink(file.encode()))"),
    Way('run("rm", file)'),
    Way("os.rmdir(folder)"),
    Way('open(file, "w").close()'),
    Way('open(file, "a").write("more")'),
    Way("os.close(os.open(file, os.O_WRONLY))"),
    Way('mmap.mmap(os.open(file, os.O_RDWR), 0).write(b"0")'),
    Way("os.truncate(file, 1)", landlock=3, walls=("root",)),
    Way("os.ftruncate(os.open(file, os.O_RDWR), 1)"),
    Way('Path(new).write_text("mine")'),
    Way("os.mkdir(new)"),
    Way("os.mkfifo(new)"),
    Way('os.symlink("/", new)'),
    Way("os.link(__file__, new)"),
    Way("socket.socket(socket.AF_UNIX).bind(new)"),
    Way("os.rename(file, new)"),
    Way("os.rename(file, OWN)"),
    Way("os.replace(shutil.copy(__file__, OWN), file)"),
    Way("os.listdir(victim)"),
    Way('os.listdir("/opt")', needs="such a folder"),
    Way('read_text("/etc/hostname")'),
    Way("os.stat(victim)", landlock=None, walls=("root",)),
    Way(
        'changed(os.chmod(file, 0o604), file, "st_mode", 0o100604)',
        landlock=None,
        walls=("root", "seccomp"),
    ),
    Way(
        'changed(os.utime(file, (7, 7)), file, "st_mtime", 7)',
        landlock=None,
        walls=("root", "seccomp"),
    ),
    Way(
        'os.setxattr(file, "user.note", b"mine")',
        landlock=None,
        walls=("root", "seccomp"),
        needs="a file system that has them",
    ),
    Way('changed(os.chown(file, -1, 7), file, "st_gid", 7)', needs="a privilege"),
    Way(
        'fcntl.fcntl(os.open(os.__file__, os.O_RDONLY), F_SET_RW_HINT, (2).to_bytes(8, "little"))',
        landlock=None,
        walls=("seccomp",),
    ),
    Way("trace(process)", needs="a privilege"),
    Way('socket.socket().bind(("127.0.0.1", 0))', landlock=4, walls=("seccomp", "namespaces")),
    Way(
        'connect(socket.AF_INET, socket.SOCK_STREAM, 0, ("127.0.0.1", port))',
        landlock=4,
        walls=("seccomp", "namespaces"),
    ),
    Way(
        'connect(socket.AF_INET, socket.SOCK_STREAM, MPTCP, ("127.0.0.1", port))',
        landlock=None,
        walls=("seccomp", "namespaces"),
    ),
    Way(
        'connect(socket.AF_INET, socket.SOCK_DGRAM, 0, ("127.0.0.1", port))',
        landlock=10,
        walls=("seccomp", "namespaces"),
    ),
    Way(
        "connect(AF_VSOCK, socket.SOCK_STREAM, 0, (2, 1))",
        landlock=None,
        walls=("seccomp",),
        needs="a machine around it",
    ),
    Way(
        "connect(socket.AF_UNIX, socket.SOCK_STREAM, 0, abstract)",
        landlock=6,
        walls=("seccomp", "namespaces"),
    ),
    Way(
        "connect(socket.AF_UNIX, socket.SOCK_STREAM, 0, path)",
        landlock=9,
        walls=("seccomp", "root"),
    ),
    Way("os.kill(process, 0)", landlock=6, walls=("namespaces",)),
    Way("os.killpg(os.getpgid(process), 0)", landlock=6, walls=("namespaces",)),
    Way('run("sh", "-c", f"kill -0 {process}")', landlock=6, walls=("namespaces",)),
    Way("c_call(libc().tgkill(process, process, 0))", landlock=6, walls=("namespaces",)),
    Way("signal.pidfd_send_signal(os.pidfd_open(process), 0)", landlock=6, walls=("namespaces",)),
    Way(
        "resource.prlimit(process, resource.RLIMIT_CORE, (0, 0))",
        landlock=None,
        walls=("seccomp", "namespaces"),
    ),
    Way(
        "c_call(libc().syscall(IO_URING_SETUP, 8, ctypes.create_string_buffer(120)))",
        landlock=None,
        walls=("seccomp",),
        needs="io_uring",
    ),
]

# --- Ways to tell something to the game with the next mask ---
#
# `LEAVE` leaves a file or a kernel object, and `FIND` finds it.


def named_queue(is_new):
    """Make a message queue with a name, or find it and remove it."""
    library = ctypes.CDLL("librt.so.1", use_errno=True)
    name = f"/{OUTSIDE['note']}".encode()
    c_call(library.mq_open(name, os.O_RDWR | (os.O_CREAT if is_new else 0), 0o600, None))
    if not is_new:
        library.mq_unlink(name)
    return SECRET


# Numbers of keyctl(2).
KEY_SPEC_USER_KEYRING = -4
KEYCTL_UNLINK = 9
KEYCTL_SEARCH = 10


def kept_key(is_new):
    """Add a key to the user's keyring in the kernel, or find it and remove it."""
    # Numbers of two system calls on x86_64, and on aarch64 and riscv64.
    add_key, keyctl = {"x86_64": (248, 250)}.get(platform.machine(), (217, 219))
    of_user = ctypes.c_long(KEY_SPEC_USER_KEYRING)
    name = OUTSIDE["note"].encode()
    if is_new:
        return c_call(libc().syscall(add_key, b"user", name, b".", ctypes.c_size_t(1), of_user))
    found = ctypes.c_long(c_call(libc().syscall(keyctl, KEYCTL_SEARCH, of_user, b"user", name, 0)))
    libc().syscall(keyctl, KEYCTL_UNLINK, found, of_user)
    return SECRET


# Each way of `LEAVE` has its counterpart in `FIND`.
LEAVE = [
    Way('Path(f"/tmp/{note}").write_text(SECRET)'),
    Way('Path(f"/dev/shm/{note}").write_text(SECRET)'),
    Way("c_call(libc().shmget(number, 64, 0o1600))"),
    Way("c_call(libc().msgget(number, 0o1600))"),
    Way("c_call(libc().semget(number, 1, 0o1600))"),
    Way("named_queue(True)"),
    Way("kept_key(True)"),
]
FIND = [
    Way('(read_text(f"/tmp/{note}"), os.remove(f"/tmp/{note}"))'),
    Way('(read_text(f"/dev/shm/{note}"), os.remove(f"/dev/shm/{note}"))'),
    Way("(found := c_call(libc().shmget(number, 64, 0)), libc().shmctl(found, 0, None), SECRET)"),
    Way("(found := c_call(libc().msgget(number, 0)), libc().msgctl(found, 0, None), SECRET)"),
    Way("(found := c_call(libc().semget(number, 1, 0)), libc().semctl(found, 0, 0), SECRET)"),
    Way("named_queue(False)"),
    Way("kept_key(False)"),
]

# --- What an entry needs ---

ALLOWED = [
    Need('open("own_new", "w").close()'),
    Need('os.rename("own_new", "own_renamed")'),
    Need('os.listdir("/dev/shm")', only_with="root"),
    Need("multiprocessing.Lock()", only_with="root"),
    Need('multiprocessing.Pool(1).map(len, ["ab"])', only_with="root"),
    Need('open(os.devnull, "w").close()'),
    Need('open("/dev/fd/0").close()'),
    Need('open("/proc/self/status").close()'),
    Need('open("/proc/cpuinfo").close()'),
    Need('open(os.path.expanduser("~/settings"), "w").close()'),
    Need('os.chmod("own_renamed", 0o600)'),
    Need('shutil.copy2("own_renamed", "own_copy")'),
    Need('(pair := socket.socketpair())[0].send(b".")'),
    Need('by_multiprocessing("spawn", os.devnull)'),
    Need('run(sys.executable, "-c", "import numpy")'),
    Need('run("sh", "-c", "ls / | wc -l")'),
    Need("os.sched_setaffinity(0, os.sched_getaffinity(0))"),
    Need("resource.setrlimit(resource.RLIMIT_CORE, (0, 0))"),
]


# --- Trying them ---

TABLES = {
    "GUARDED": GUARDED,
    "BEYOND": BEYOND,
    "HARM": HARM,
    "LEAVE": LEAVE,
    "FIND": FIND,
    "ALLOWED": ALLOWED,
}


def attempt(expression, names):
    """Return the value of an expression, or the error that it raises, within 30 seconds.

    A way that hangs does not stop the others.
    """
    try:
        return concurrent.futures.ThreadPoolExecutor().submit(eval, expression, names).result(30)
    except BaseException as error:
        return error


def show(value):
    """Return a value as text of at most 3,000 characters."""
    if isinstance(value, (bytes, bytearray)):
        value = value.decode(errors="replace")
    return (value if isinstance(value, str) else f"{value!r} {value}")[:3000]


def try_all(tables, folder, victims, outside):
    """Try the ways of some tables; print on one line, after `MARK`, what came of each.

    The outcome of a way is "done", or "met" with the obstacle. A way to the answers, or one of
    `FIND`, is done only if it yields the secret.

    Parameters
    ----------
    tables : list of str
        Keys of `TABLES`.
    folder : str
        Folder of the answers.
    victims : str
        Folder with a folder for each way to harm, named by its number.
    outside : dict
        Values for `OUTSIDE`.
    """
    OUTSIDE.update(outside)
    modules = MODULES + LIBRARIES if "GUARDED" in tables else MODULES
    globals().update({name: __import__(name) for name in modules})
    outcome = {}
    for table in tables:
        to_answers = table in ("GUARDED", "BEYOND")
        must_tell = to_answers or table == "FIND"
        for number, way in enumerate(TABLES[table]):
            place = f"{folder}/answers" if to_answers else f"{victims}/{number}"
            result = attempt(way.expression, names_for(place, to_answers))
            shown = show(result)
            is_done = not isinstance(result, BaseException) and (SECRET in shown or not must_tell)
            outcome[way.expression] = "done" if is_done else f"met {shown[:200]}"
            Path(OWN).unlink(missing_ok=True)
    print("\n" + MARK + json.dumps(outcome), flush=True)


if __name__ == "__main__":
    arguments = json.loads(sys.argv[1])
    if "GUARDED" in arguments[0]:
        prepare(arguments[1])
    try_all(*arguments)
