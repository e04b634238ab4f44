"""Attempts of an entry to break out of its process, as a dishonest entry might make them.

The attempts try to read the hidden answers, to do damage outside the entry's folder, or to pass a
message to the game with the next mask. `test_isolation.py` copies this file into an entry's folder,
where the entry makes the attempts. Each attempt is a Python expression. It may use the names of
this module, and further names that `names_to_read_answers` or `names_to_do_damage` returns.
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
# An attempt is a Python expression. If it copies the answers, it copies them to this file in the
# entry's own folder.
OWN = "carried_out"
# `try_all` prints the outcomes on a line that begins with this text.
MARK = "outcomes of the attempts: "
# Things outside the entry's process that expressions try to reach, by name. `try_all` gets the
# values from the test:
#   process      id of a process whose standard input is the file of the answers, whose environment
#                holds an answer, and whose working folder is the folder of the answers
#   environment  address and number of bytes of the environment in the memory of this process
#   port         port of TCP and UDP at which a server of the test listens
#   abstract     address of a socket of the test in Linux's abstract namespace, without a path
#   path         path of another socket of the test
#   note         name of a file, queue or key by which a game passes a message to the next game
#   number       number of shared memory, a queue or a semaphore for the same purpose
OUTSIDE = {}
# Modules that expressions use besides those imported above.
MODULES = ["fcntl", "io", "mmap", "pkgutil", "resource", "shutil", "signal", "threading"]
# These modules take long to import, and only attempts to read the answers need them.
LIBRARIES = ["numpy", "pandas", "pyarrow", "torch"]


@dataclass(frozen=True)
class Attempt:
    """Something that a dishonest entry may try, and that the isolation must block."""

    # The Python expression that makes the attempt.
    expression: str
    # The expression needs this, such as a privilege, and some machines lack it. There, the
    # expression fails even without isolation. Empty if every machine has all that is needed.
    needs: str = ""
    # Landlock is the Linux kernel's control of access to files, and in later versions also to
    # networks and signals. This is the first version that blocks the expression; None if no version
    # does.
    landlock: int | None = 1
    # Other protections of the operating system (fields of `Protections` in
    # common/sandbox/inside/protections.py). Each of them alone blocks the expression.
    protections: tuple[str, ...] = ("root",)


@dataclass(frozen=True)
class Allowed:
    """Something that an entry must be able to do."""

    # The Python expression that must succeed.
    expression: str
    # The protection (field of `Protections`) that the expression needs to work, or "" if it always
    # works. For example, an entry may list /dev/shm only if it has a file system root of its own
    # ("root"), in which /dev/shm is an empty folder.
    only_with: str = ""


def names_to_read_answers(folder):
    """Return the variables of an expression that tries to read the answers, by name."""
    return {**globals(), "file": f"{folder}/answers.csv", "folder": folder, **OUTSIDE}


def names_to_do_damage(target):
    """Return the variables of an expression that does not try to read the answers, by name.

    `target` is the folder to damage, which holds a file and a folder. The name `new` is a path in
    this folder at which nothing exists.
    """
    inside = {"file": f"{target}/file", "folder": f"{target}/folder", "new": f"{target}/new"}
    return {**globals(), "target": target, **inside, **OUTSIDE}


def prepare(folder):
    """Write the answers in further formats that expressions try to read.

    These are a Python module, a module in a zip, and a database.
    """
    code = f"FIRST = {SECRET!r}\n"
    Path(f"{folder}/answers.py").write_text(code)
    with zipfile.ZipFile(f"{folder}/answers.zip", "w") as archive:
        archive.writestr("zipped_answers.py", code)
    with sqlite3.connect(f"{folder}/answers.sqlite") as base:
        base.execute("create table answers as select ? as answer", (SECRET,))


# --- Functions that the attempts call (each attempt is a Python expression) ---


def libc():
    return ctypes.CDLL(None, use_errno=True)


def c_call(number):
    """Return the result of a function of libc; raise an error if the result is negative."""
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
    """Return the content of the file `OWN`, to which the answers should have been copied.

    The argument is an expression that copies the answers to this file. Python evaluates it before
    the call; its value is not used.
    """
    return Path(OWN).read_bytes()


def read_text(path):
    return Path(path).read_text()


def send_text(path, connection):
    connection.send(read_text(path))


def open_own():
    return os.open(OWN, os.O_CREAT | os.O_RDWR)


def over_a_socket(path):
    """Return the contents of a file that a child process opens and sends through a socket."""
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


# --- Attempts to read the answers by Python's own file functions ---
#
# The protections of the operating system refuse these attempts. Where it cannot protect files, the
# kit's guard refuses them: it watches Python's file functions in the entry's process.

READ_BY_PYTHON = [
    Attempt("open(file).read()"),
    Attempt('open(file.encode(), "rb").read()'),
    Attempt("open(file, opener=os.open).read()"),
    Attempt("io.FileIO(file).read()"),
    Attempt("io.open_code(file).read()"),
    Attempt("read_descriptor(os.open(file, os.O_RDONLY))"),
    Attempt("read_descriptor(os.open(file, os.O_RDWR))"),
    Attempt("read_text(os.path.relpath(file))"),
    Attempt('read_text(f"/proc/self/root{file}")'),
    Attempt("copied(os.symlink(file, OWN))"),
    Attempt("copied(shutil.copy(file, OWN))"),
    Attempt("copied(os.sendfile(open_own(), os.open(file, os.O_RDONLY), 0, 99))"),
    Attempt("copied(os.copy_file_range(os.open(file, os.O_RDONLY), open_own(), 99))"),
    Attempt("mmap.mmap(os.open(file, os.O_RDONLY), 0, access=mmap.ACCESS_READ)[:]"),
    Attempt('(sys.path.append(f"{folder}/answers.zip"), __import__("zipped_answers").FIRST)'),
    Attempt('pkgutil.get_importer(folder).find_spec("answers").loader.get_data(file)'),
    Attempt('by_multiprocessing("fork", file)'),
    Attempt("over_a_socket(file)"),
    Attempt('read_text(f"/proc/{process}/root{file}")'),
    Attempt('read_text(f"/proc/{process}/cwd/answers.csv")'),
    Attempt('read_text(f"/proc/1/root{file}")', needs="a privilege"),
    Attempt('read_text(f"/proc/{process}/fd/0")'),
    Attempt('read_text(f"/proc/{process}/environ")'),
    Attempt(
        'os.pread(os.open(f"/proc/{process}/mem", 0), *environment[::-1])', needs="a privilege"
    ),
    Attempt('numpy.fromfile(file, "u1").tobytes()'),
    Attempt('numpy.memmap(file, mode="r").tobytes()'),
    Attempt('pandas.read_csv(file, engine="c")'),
    Attempt('pandas.read_csv(file, engine="python")'),
]

# --- Attempts to read the answers by the kernel, by libraries and by other processes ---
#
# The kit's guard in Python's file functions does not notice these attempts.

# The calls openat and openat2 open a path relative to a folder. They take the folder's file
# descriptor, or this number for the working folder.
AT_FDCWD = -100
# The number of the system call openat2, the same for x86_64, aarch64 and riscv64.
OPENAT2 = 437


def openat(path):
    """Open a file for reading by the system call openat, not by libc's `openat`."""
    number = {"x86_64": 257, "aarch64": 56, "riscv64": 56}.get(platform.machine())
    return libc().syscall(number, ctypes.c_long(AT_FDCWD), path.encode(), 0, 0)


def openat2(path):
    """Open a file for reading by the system call openat2, for which libc has no function."""
    # A `struct open_how` of 24 zero bytes asks for reading only.
    open_how = bytes(24)
    n_bytes = ctypes.c_size_t(len(open_how))
    return libc().syscall(OPENAT2, AT_FDCWD, path.encode(), open_how, n_bytes)


def open_by_handle(path):
    """Return the contents of a file that is opened by its handle, as root may do."""
    # A `struct file_handle` consists of 8 bytes and the handle itself. The first 4 bytes state how
    # many bytes the handle may have, here 128.
    handle = ctypes.create_string_buffer(8 + 128)
    ctypes.memmove(handle, (128).to_bytes(4, sys.byteorder), 4)
    mount = ctypes.c_int()
    c_call(libc().name_to_handle_at(AT_FDCWD, path.encode(), handle, ctypes.byref(mount), 0))
    # `open_by_handle_at` needs a descriptor of any file or folder in the same file system.
    own = os.open(".", os.O_RDONLY)
    return read_descriptor(libc().open_by_handle_at(own, handle, os.O_RDONLY))


def read_memory_by_call(process, start, size):
    """Return some bytes of the memory of another process."""
    buffer = ctypes.create_string_buffer(size)
    # Each `struct iovec` is an address and a number of bytes.
    own = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), size)
    other = (ctypes.c_size_t * 2)(start, size)
    c_call(libc().process_vm_readv(process, own, 1, other, 1, 0))
    return buffer.raw


def spawn_shell(command):
    """Run a shell command by `posix_spawn`; return how it ended."""
    return os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", command], os.environ), 0)


READ_BY_SYSTEM = [
    Attempt(
        'read_descriptor(os.open("answers.csv", os.O_RDONLY, dir_fd=os.open(folder, os.O_PATH)))'
    ),
    Attempt('read_text(f"/proc/self/fd/{os.open(file, os.O_PATH)}")'),
    Attempt("copied(os.link(file, OWN))"),
    Attempt('list(sqlite3.connect(f"{folder}/answers.sqlite").execute("select * from answers"))'),
    Attempt('(sys.path.append(folder), __import__("answers").FIRST)'),
    Attempt("read_descriptor(libc().open(file.encode(), os.O_RDONLY))"),
    Attempt("read_descriptor(openat(file))"),
    Attempt("read_descriptor(openat2(file))"),
    Attempt("open_by_handle(file)", needs="a privilege"),
    Attempt("read_memory_by_call(process, *environment)", needs="a privilege"),
    Attempt("""copied(os.system(f"cat '{file}' > {OWN} 2> /dev/null"))"""),
    Attempt("copied(spawn_shell(f\"cat '{file}' > {OWN}\"))"),
    Attempt("""copied(run("sh", "-c", f"setsid sh -c 'cat {file} > {OWN}' & wait"))"""),
    Attempt('run("cat", file)'),
    Attempt('run("cat", stdin=open(file))'),
    Attempt('run("cat", "answers.csv", cwd=folder)'),
    Attempt('copied(run("ln", file, OWN))'),
    Attempt('run("grep", "-r", SECRET[:6], folder)'),
    # A child process of the entry reads the environment and the files of another process, which
    # the test has started (see `OUTSIDE`).
    Attempt('run("cat", f"/proc/{process}/environ")'),
    Attempt('run("cat", f"/proc/{process}/cwd/answers.csv")'),
    Attempt('run("cat", f"/proc/{process}/root{file}")'),
    Attempt('run("sh", "-c", f"cat /proc/[0-9]*/environ 2> /dev/null | grep -ao {SECRET}")'),
    Attempt('run(sys.executable, "-c", f"print(open({file!r}).read())")'),
    Attempt('by_multiprocessing("spawn", file)'),
    Attempt('by_multiprocessing("forkserver", file)'),
    Attempt('run("unshare", "-Ur", "chroot", "/", "cat", file)', needs="a privilege"),
    Attempt('run("unshare", "-Urm", "cat", f"/proc/1/root{file}")', needs="a privilege"),
    Attempt('run("nsenter", "-t", "1", "-m", "cat", file)', needs="a privilege"),
    Attempt(
        """run("unshare", "-Urm", "sh", "-c", f"touch me; mount -B '{file}' me; cat me")""",
        needs="a privilege",
    ),
    Attempt("pyarrow.OSFile(file).read()"),
    Attempt('pandas.read_csv(file, engine="pyarrow")'),
    Attempt("pandas.read_csv(file, memory_map=True)"),
    Attempt("pyarrow.memory_map(file).read()"),
    Attempt("bytes(torch.from_file(file, size=len(TABLE), dtype=torch.uint8).tolist())"),
]

# --- Attempts to do damage outside the entry's folder ---

# A command of the system call fcntl: set a hint about how long written data will live.
F_SET_RW_HINT = 1036
# A family of sockets, and a protocol of sockets.
AF_VSOCK = 40
MPTCP = 262
# The number of the system call io_uring_setup.
IO_URING_SETUP = 425
# Requests of the system call ptrace.
PTRACE_ATTACH = 16
PTRACE_DETACH = 17


def connect(family, kind, protocol, address):
    with socket.socket(family, kind, protocol) as connection:
        connection.connect(address)


def changed(_changing, path, name, value):
    """Raise an error unless the attribute `name` of a file, such as `st_mode`, equals `value`.

    The first argument is an expression that changes the attribute. Python evaluates it before the
    call. It may seem to succeed although the file is unchanged, because the filter of system calls
    (seccomp) may pretend success. So its value is not used, and the file is checked instead.
    """
    now = getattr(os.stat(path), name)
    if now != value:
        raise OSError(f"{name} is {now}")


def trace(process):
    """Attach to a process, as a debugger does, and detach from it."""
    for request in (PTRACE_ATTACH, PTRACE_DETACH):
        c_call(libc().ptrace(request, process, None, None))


DAMAGE = [
    Attempt("os.remove(file)"),
    Attempt("c_call(libc().unlink(file.encode()))"),
    Attempt('run("rm", file)'),
    Attempt("os.rmdir(folder)"),
    Attempt('open(file, "w").close()'),
    Attempt('open(file, "a").write("more")'),
    Attempt("os.close(os.open(file, os.O_WRONLY))"),
    Attempt('mmap.mmap(os.open(file, os.O_RDWR), 0).write(b"0")'),
    Attempt("os.truncate(file, 1)", landlock=3, protections=("root",)),
    Attempt("os.ftruncate(os.open(file, os.O_RDWR), 1)"),
    Attempt('Path(new).write_text("mine")'),
    Attempt("os.mkdir(new)"),
    Attempt("os.mkfifo(new)"),
    Attempt('os.symlink("/", new)'),
    Attempt("os.link(__file__, new)"),
    Attempt("socket.socket(socket.AF_UNIX).bind(new)"),
    Attempt("os.rename(file, new)"),
    Attempt("os.rename(file, OWN)"),
    Attempt("os.replace(shutil.copy(__file__, OWN), file)"),
    Attempt("os.listdir(target)"),
    Attempt('os.listdir("/opt")', needs="such a folder"),
    Attempt('read_text("/etc/hostname")'),
    Attempt("os.stat(target)", landlock=None, protections=("root",)),
    Attempt(
        'changed(os.chmod(file, 0o604), file, "st_mode", 0o100604)',
        landlock=None,
        protections=("root", "seccomp"),
    ),
    Attempt(
        'changed(os.utime(file, (7, 7)), file, "st_mtime", 7)',
        landlock=None,
        protections=("root", "seccomp"),
    ),
    Attempt(
        'os.setxattr(file, "user.note", b"mine")',
        landlock=None,
        protections=("root", "seccomp"),
        needs="a file system that has them",
    ),
    Attempt('changed(os.chown(file, -1, 7), file, "st_gid", 7)', needs="a privilege"),
    Attempt(
        'fcntl.fcntl(os.open(os.__file__, os.O_RDONLY), F_SET_RW_HINT, (2).to_bytes(8, "little"))',
        landlock=None,
        protections=("seccomp",),
    ),
    Attempt("trace(process)", needs="a privilege"),
    Attempt(
        'socket.socket().bind(("127.0.0.1", 0))', landlock=4, protections=("seccomp", "namespaces")
    ),
    Attempt(
        'connect(socket.AF_INET, socket.SOCK_STREAM, 0, ("127.0.0.1", port))',
        landlock=4,
        protections=("seccomp", "namespaces"),
    ),
    Attempt(
        'connect(socket.AF_INET, socket.SOCK_STREAM, MPTCP, ("127.0.0.1", port))',
        landlock=None,
        protections=("seccomp", "namespaces"),
    ),
    Attempt(
        'connect(socket.AF_INET, socket.SOCK_DGRAM, 0, ("127.0.0.1", port))',
        landlock=10,
        protections=("seccomp", "namespaces"),
    ),
    Attempt(
        "connect(AF_VSOCK, socket.SOCK_STREAM, 0, (2, 1))",
        landlock=None,
        protections=("seccomp",),
        needs="a machine around it",
    ),
    Attempt(
        "connect(socket.AF_UNIX, socket.SOCK_STREAM, 0, abstract)",
        landlock=6,
        protections=("seccomp", "namespaces"),
    ),
    Attempt(
        "connect(socket.AF_UNIX, socket.SOCK_STREAM, 0, path)",
        landlock=9,
        protections=("seccomp", "root"),
    ),
    Attempt("os.kill(process, 0)", landlock=6, protections=("namespaces",)),
    Attempt("os.killpg(os.getpgid(process), 0)", landlock=6, protections=("namespaces",)),
    Attempt('run("sh", "-c", f"kill -0 {process}")', landlock=6, protections=("namespaces",)),
    Attempt("c_call(libc().tgkill(process, process, 0))", landlock=6, protections=("namespaces",)),
    Attempt(
        "signal.pidfd_send_signal(os.pidfd_open(process), 0)",
        landlock=6,
        protections=("namespaces",),
    ),
    Attempt(
        "resource.prlimit(process, resource.RLIMIT_CORE, (0, 0))",
        landlock=None,
        protections=("seccomp", "namespaces"),
    ),
    Attempt(
        "c_call(libc().syscall(IO_URING_SETUP, 8, ctypes.create_string_buffer(120)))",
        landlock=None,
        protections=("seccomp",),
        needs="io_uring",
    ),
]

# --- Attempts to pass a message to the next game ---
#
# An entry plays a game for each mask (a choice of the answers to predict). Expression i of
# `LEAVE_MESSAGE` leaves a file or an object of the kernel. Expression i of `FIND_MESSAGE` looks for
# it.


def named_queue(is_new):
    """Make a message queue with a name if `is_new`; otherwise find the queue and remove it.

    An entry could tell its next game something in this way: that the queue exists is the message.
    The function returns `SECRET` if it succeeds, and otherwise raises an error.
    """
    library = ctypes.CDLL("librt.so.1", use_errno=True)
    name = f"/{OUTSIDE['note']}".encode()
    c_call(library.mq_open(name, os.O_RDWR | (os.O_CREAT if is_new else 0), 0o600, None))
    if not is_new:
        library.mq_unlink(name)
    return SECRET


# Numbers that stand for a keyring and for requests in the system call keyctl.
KEY_SPEC_USER_KEYRING = -4
KEYCTL_UNLINK = 9
KEYCTL_SEARCH = 10


def numbers_of_key_calls():
    """Return the numbers of the system calls add_key and keyctl; libc has no functions for them."""
    if platform.machine() == "x86_64":
        return 248, 250
    # These are the numbers of aarch64 and riscv64.
    return 217, 219


def kept_key(is_new):
    """Add a key to the user's keyring in the kernel if `is_new`; otherwise find and remove it.

    An entry could tell its next game something in this way: that the key exists is the message. If
    the key is found, the function returns `SECRET`. It raises an error if a system call fails.
    """
    add_key, keyctl = numbers_of_key_calls()
    keyring = ctypes.c_long(KEY_SPEC_USER_KEYRING)
    name_of_key = OUTSIDE["note"].encode()
    if is_new:
        content = b"."
        n_bytes = ctypes.c_size_t(len(content))
        return c_call(libc().syscall(add_key, b"user", name_of_key, content, n_bytes, keyring))
    # The last argument, 0, means that the kernel does not link the found key to another keyring.
    found = c_call(libc().syscall(keyctl, KEYCTL_SEARCH, keyring, b"user", name_of_key, 0))
    libc().syscall(keyctl, KEYCTL_UNLINK, ctypes.c_long(found), keyring)
    return SECRET


LEAVE_MESSAGE = [
    Attempt('Path(f"/tmp/{note}").write_text(SECRET)'),
    Attempt('Path(f"/dev/shm/{note}").write_text(SECRET)'),
    Attempt("c_call(libc().shmget(number, 64, 0o1600))"),
    Attempt("c_call(libc().msgget(number, 0o1600))"),
    Attempt("c_call(libc().semget(number, 1, 0o1600))"),
    Attempt("named_queue(True)"),
    Attempt("kept_key(True)"),
]
FIND_MESSAGE = [
    Attempt('(read_text(f"/tmp/{note}"), os.remove(f"/tmp/{note}"))'),
    Attempt('(read_text(f"/dev/shm/{note}"), os.remove(f"/dev/shm/{note}"))'),
    Attempt(
        "(found := c_call(libc().shmget(number, 64, 0)), libc().shmctl(found, 0, None), SECRET)"
    ),
    Attempt("(found := c_call(libc().msgget(number, 0)), libc().msgctl(found, 0, None), SECRET)"),
    Attempt("(found := c_call(libc().semget(number, 1, 0)), libc().semctl(found, 0, 0), SECRET)"),
    Attempt("named_queue(False)"),
    Attempt("kept_key(False)"),
]

# --- What an entry must be able to do ---

ALLOWED = [
    Allowed('open("own_new", "w").close()'),
    Allowed('os.rename("own_new", "own_renamed")'),
    Allowed('os.listdir("/dev/shm")', only_with="root"),
    Allowed("multiprocessing.Lock()", only_with="root"),
    Allowed('multiprocessing.Pool(1).map(len, ["ab"])', only_with="root"),
    Allowed('open(os.devnull, "w").close()'),
    Allowed('open("/dev/fd/0").close()'),
    Allowed('open("/proc/self/status").close()'),
    Allowed('open("/proc/cpuinfo").close()'),
    Allowed('open(os.path.expanduser("~/settings"), "w").close()'),
    Allowed('os.chmod("own_renamed", 0o600)'),
    Allowed('shutil.copy2("own_renamed", "own_copy")'),
    Allowed('(pair := socket.socketpair())[0].send(b".")'),
    Allowed('by_multiprocessing("spawn", os.devnull)'),
    Allowed('run(sys.executable, "-c", "import numpy")'),
    Allowed('run("sh", "-c", "ls / | wc -l")'),
    Allowed("os.sched_setaffinity(0, os.sched_getaffinity(0))"),
    Allowed("os.sched_setaffinity(threading.get_native_id(), os.sched_getaffinity(0))"),
    Allowed("resource.setrlimit(resource.RLIMIT_CORE, (0, 0))"),
]


# --- Making the attempts ---

# The lists of attempts, by the names that `test_isolation.py` passes to `try_all`.
TABLES = {
    "READ_BY_PYTHON": READ_BY_PYTHON,
    "READ_BY_SYSTEM": READ_BY_SYSTEM,
    "DAMAGE": DAMAGE,
    "LEAVE_MESSAGE": LEAVE_MESSAGE,
    "FIND_MESSAGE": FIND_MESSAGE,
    "ALLOWED": ALLOWED,
}


def evaluate(expression, names):
    """Return the value of an expression, or the error that it raises.

    If the expression takes longer than 30 seconds, the result is a timeout error, so that the next
    expressions can run.
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


def try_all(tables, folder, targets, outside):
    """Evaluate the expressions of some tables; print their outcomes on one line, after `MARK`.

    The line is a JSON object with the outcome of each expression: "succeeded", or "blocked: " and
    the reason. An expression counts as blocked if it raises an error. The answers and the messages
    to the next game hold the text `SECRET`. An expression that tries to read them also counts as
    blocked if it returns a value without this text.

    Parameters
    ----------
    tables : list of str
        Keys of `TABLES`.
    folder : str
        The folder of the answers.
    targets : str
        A folder that contains a folder to damage for each expression of a table. The name of a
        folder to damage is the number of the expression, from 0.
    outside : dict
        Values for `OUTSIDE`.
    """
    OUTSIDE.update(outside)
    modules = MODULES + LIBRARIES if "READ_BY_PYTHON" in tables else MODULES
    # The expressions of the attempts use these modules as global variables.
    globals().update({name: __import__(name) for name in modules})
    outcomes = {}
    for table in tables:
        reads_answers = table in ("READ_BY_PYTHON", "READ_BY_SYSTEM")
        must_yield_secret = reads_answers or table == "FIND_MESSAGE"
        for number, attempt in enumerate(TABLES[table]):
            # Choose the variables that the expression may use, by name.
            if reads_answers:
                names = names_to_read_answers(folder)
            else:
                names = names_to_do_damage(f"{targets}/{number}")
            outcomes[attempt.expression] = try_one(attempt.expression, names, must_yield_secret)
    print("\n" + MARK + json.dumps(outcomes), flush=True)


def try_one(expression, names, must_yield_secret):
    """Evaluate an expression and return its outcome: "succeeded", or "blocked" and the reason."""
    result = evaluate(expression, names)
    Path(OWN).unlink(missing_ok=True)
    shown = show(result)
    has_failed = isinstance(result, BaseException)
    lacks_secret = must_yield_secret and SECRET not in shown
    if has_failed or lacks_secret:
        return f"blocked: {shown[:200]}"
    return "succeeded"


if __name__ == "__main__":
    arguments = json.loads(sys.argv[1])
    if "READ_BY_PYTHON" in arguments[0]:
        prepare(arguments[1])
    try_all(*arguments)
