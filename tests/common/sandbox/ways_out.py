"""Ways out of an entry's process: to the answers' contents, and to harm elsewhere.

The test copies this file into an entry's folder. A way is an expression, one a line, evaluated with
the names of this module and those that `names` adds. After "# needs" stands what a machine may lack
for it, after "# by" what refuses it: the first version of Landlock, or a wall of `walls.Walls`;
the others are refused by any Landlock and by a root of one's own. What is allowed only with a wall
has that after "# with".
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
from pathlib import Path

SECRET = "hidden-answer"
TABLE = f"UserId,Answer\n1,{SECRET}\n2,{SECRET}\n"
OWN = "carried_out"
MARK = "what came of it: "
# A process outside, which has the answers open, in its environment (where that lies in its memory,
# and how long it is) and as its working folder; a port of TCP and UDP, an abstract socket and one
# with a path that somebody listens at; name and number of a note.
OUTSIDE = {}
# What the ways need beside the modules above, and those to the contents, which takes a while.
MODULES = "fcntl io mmap pkgutil resource shutil signal"
LIBRARIES = " numpy pandas pyarrow torch"


def names(place, to_contents):
    """Return what a way is about: the answers, or a victim (a folder with a file and a folder)."""
    file = f"{place}.csv" if to_contents else f"{place}/file"
    folder = os.path.dirname(place) if to_contents else f"{place}/folder"
    about = {"file": file, "folder": folder, "victim": place, "new": f"{place}/new"}
    return {**globals(), **about, **OUTSIDE}


def prepare(folder):
    """Write the answers as modules and a database, which ways below read."""
    code = f"FIRST = {SECRET!r}\n"
    Path(f"{folder}/answers.py").write_text(code)
    with zipfile.ZipFile(f"{folder}/answers.zip", "w") as archive:
        archive.writestr("zipped_answers.py", code)
    with sqlite3.connect(f"{folder}/answers.sqlite") as base:
        base.execute("create table answers as select ? as answer", (SECRET,))


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


def copied(_what_copies):
    """Return what a way has carried into the own folder."""
    return Path(OWN).read_bytes()


def read_text(path):
    return Path(path).read_text()


def send_text(path, connection):
    connection.send(read_text(path))


def open_own():
    return os.open(OWN, os.O_CREAT | os.O_RDWR)


def over_a_socket(path):
    """A child opens it, and hands what is open over a socket."""
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    if not os.fork():
        with contextlib.suppress(BaseException):
            socket.send_fds(theirs, [b"."], [os.open(path, os.O_RDONLY)])
        os._exit(0)
    theirs.close()
    return read_descriptor(socket.recv_fds(ours, 1, 1)[1][0])


def by_multiprocessing(method, path):
    context = multiprocessing.get_context(method)
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=send_text, args=(path, sending))
    process.start()
    sending.close()
    try:
        return receiving.recv() if receiving.poll(15) else None
    finally:
        process.join()


# --- To the contents, by what Python's own guard sees too: files that are opened through Python ---

GUARDED = """
open(file).read()
open(file.encode(), "rb").read()
open(file, opener=os.open).read()
io.FileIO(file).read()
io.open_code(file).read()
read_descriptor(os.open(file, os.O_RDONLY))
read_descriptor(os.open(file, os.O_RDWR))
read_text(os.path.relpath(file))
read_text(f"/proc/self/root{file}")
copied(os.symlink(file, OWN))
copied(shutil.copy(file, OWN))
copied(os.sendfile(open_own(), os.open(file, os.O_RDONLY), 0, 99))
copied(os.copy_file_range(os.open(file, os.O_RDONLY), open_own(), 99))
mmap.mmap(os.open(file, os.O_RDONLY), 0, access=mmap.ACCESS_READ)[:]
(sys.path.append(f"{folder}/answers.zip"), __import__("zipped_answers").FIRST)
pkgutil.get_importer(folder).find_spec("answers").loader.get_data(file)
by_multiprocessing("fork", file)
over_a_socket(file)
read_text(f"/proc/{process}/root{file}")
read_text(f"/proc/{process}/cwd/answers.csv")
read_text(f"/proc/1/root{file}")  # needs a privilege
read_text(f"/proc/{process}/fd/0")
read_text(f"/proc/{process}/environ")
os.pread(os.open(f"/proc/{process}/mem", 0), *environment[::-1])  # needs a privilege
numpy.fromfile(file, "u1").tobytes()
numpy.memmap(file, mode="r").tobytes()
pandas.read_csv(file, engine="c")
pandas.read_csv(file, engine="python")
"""

# --- To the contents, past Python: by the kernel, by libraries and by other processes ---


OPENAT = {"x86_64": 257, "aarch64": 56, "riscv64": 56}.get(platform.machine())


def open_by_handle(path):
    # For root, or whoever has that capability.
    handle = ctypes.create_string_buffer(8 + 128)
    ctypes.memmove(handle, (128).to_bytes(4, sys.byteorder), 4)
    mount = ctypes.c_int()
    c_call(libc().name_to_handle_at(-100, path.encode(), handle, ctypes.byref(mount), 0))
    # Any folder of the same file system will do.
    own = os.open(".", os.O_RDONLY)
    return read_descriptor(libc().open_by_handle_at(own, handle, os.O_RDONLY))


def read_memory_by_call(process, start, size):
    buffer = ctypes.create_string_buffer(size)
    own = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), size)
    other = (ctypes.c_size_t * 2)(start, size)
    c_call(libc().process_vm_readv(process, own, 1, other, 1, 0))
    return buffer.raw


BEYOND = """
read_descriptor(os.open("answers.csv", os.O_RDONLY, dir_fd=os.open(folder, os.O_PATH)))
read_text(f"/proc/self/fd/{os.open(file, os.O_PATH)}")
copied(os.link(file, OWN))
list(sqlite3.connect(f"{folder}/answers.sqlite").execute("select * from answers"))
(sys.path.append(folder), __import__("answers").FIRST)
read_descriptor(libc().open(file.encode(), os.O_RDONLY))
read_descriptor(libc().syscall(OPENAT, ctypes.c_long(-100), file.encode(), 0, 0))
read_descriptor(libc().syscall(437, -100, file.encode(), bytes(24), ctypes.c_size_t(24)))
open_by_handle(file)  # needs a privilege
read_memory_by_call(process, *environment)  # needs a privilege
copied(os.system(f"cat '{file}' > {OWN} 2> /dev/null"))
copied(os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", f"cat '{file}' > {OWN}"], os.environ), 0))
copied(run("sh", "-c", f"setsid sh -c 'cat {file} > {OWN}' & wait"))
run("cat", file)
run("cat", stdin=open(file))
run("cat", "answers.csv", cwd=folder)
copied(run("ln", file, OWN))
run("grep", "-r", SECRET[:6], folder)
run(sys.executable, "-c", f"print(open({file!r}).read())")
by_multiprocessing("spawn", file)
by_multiprocessing("forkserver", file)
run("unshare", "-Ur", "chroot", "/", "cat", file)  # needs a privilege
run("unshare", "-Urm", "cat", f"/proc/1/root{file}")  # needs a privilege
run("nsenter", "-t", "1", "-m", "cat", file)  # needs a privilege
run("unshare", "-Urm", "sh", "-c", f"touch me; mount -B '{file}' me; cat me")  # needs a privilege
pyarrow.OSFile(file).read()
pandas.read_csv(file, engine="pyarrow")
pandas.read_csv(file, memory_map=True)
pyarrow.memory_map(file).read()
bytes(torch.from_file(file, size=len(TABLE), dtype=torch.uint8).tolist())
"""

# --- To harm elsewhere ---


def connect(family, kind, protocol, address):
    with socket.socket(family, kind, protocol) as connection:
        connection.connect(address)


def changed(_what_changes, path, name, value):
    """A call may say that it has done something and has not."""
    found = getattr(os.stat(path), name)
    if found != value:
        raise OSError(f"{name} is {found}")


HARM = """
os.remove(file)
c_call(libc().unlink(file.encode()))
run("rm", file)
os.rmdir(folder)
open(file, "w").close()
open(file, "a").write("more")
os.close(os.open(file, os.O_WRONLY))
mmap.mmap(os.open(file, os.O_RDWR), 0).write(b"0")
os.truncate(file, 1)  # by 3 root
os.ftruncate(os.open(file, os.O_RDWR), 1)
Path(new).write_text("mine")
os.mkdir(new)
os.mkfifo(new)
os.symlink("/", new)
os.link(__file__, new)
socket.socket(socket.AF_UNIX).bind(new)
os.rename(file, new)
os.rename(file, OWN)
os.replace(shutil.copy(__file__, OWN), file)
os.listdir(victim)
os.listdir("/opt")  # needs such a folder
read_text("/etc/hostname")
os.stat(victim)  # by root
changed(os.chmod(file, 0o604), file, "st_mode", 0o100604)  # by root seccomp
changed(os.utime(file, (7, 7)), file, "st_mtime", 7)  # by root seccomp
os.setxattr(file, "user.note", b"mine")  # by root seccomp  # needs a file system that has them
changed(os.chown(file, -1, 7), file, "st_gid", 7)  # needs a privilege
fcntl.fcntl(os.open(os.__file__, os.O_RDONLY), 1036, (2).to_bytes(8, "little"))  # by seccomp
[c_call(libc().ptrace(request, process, None, None)) for request in (16, 17)]  # needs a privilege
socket.socket().bind(("127.0.0.1", 0))  # by 4 seccomp namespaces
connect(socket.AF_INET, socket.SOCK_STREAM, 0, ("127.0.0.1", port))  # by 4 seccomp namespaces
connect(socket.AF_INET, socket.SOCK_STREAM, 262, ("127.0.0.1", port))  # by seccomp namespaces
connect(socket.AF_INET, socket.SOCK_DGRAM, 0, ("127.0.0.1", port))  # by 10 seccomp namespaces
connect(40, socket.SOCK_STREAM, 0, (2, 1))  # by seccomp  # needs a machine around it
connect(socket.AF_UNIX, socket.SOCK_STREAM, 0, abstract)  # by 6 seccomp namespaces
connect(socket.AF_UNIX, socket.SOCK_STREAM, 0, path)  # by 9 seccomp root
os.kill(process, 0)  # by 6 namespaces
os.killpg(os.getpgid(process), 0)  # by 6 namespaces
run("sh", "-c", f"kill -0 {process}")  # by 6 namespaces
c_call(libc().tgkill(process, process, 0))  # by 6 namespaces
signal.pidfd_send_signal(os.pidfd_open(process), 0)  # by 6 namespaces
resource.prlimit(process, resource.RLIMIT_CORE, (0, 0))  # by seccomp namespaces
c_call(libc().syscall(425, 8, ctypes.create_string_buffer(120)))  # by seccomp  # needs io_uring
"""

# --- To the game with the next mask: leave a note, be it only a thing that is there; find it ---


def named_queue(is_new):
    library, name = ctypes.CDLL("librt.so.1", use_errno=True), f"/{OUTSIDE['note']}".encode()
    c_call(library.mq_open(name, os.O_RDWR | (os.O_CREAT if is_new else 0), 0o600, None))
    if not is_new:
        library.mq_unlink(name)
    return SECRET


def kept_key(is_new):
    """Add a key that the user keeps, or find it and let go of it."""
    add_key, keyctl = {"x86_64": (248, 250)}.get(platform.machine(), (217, 219))
    of_user, name = ctypes.c_long(-4), OUTSIDE["note"].encode()
    if is_new:
        return c_call(libc().syscall(add_key, b"user", name, b".", ctypes.c_size_t(1), of_user))
    found = ctypes.c_long(c_call(libc().syscall(keyctl, 10, of_user, b"user", name, 0)))
    libc().syscall(keyctl, 9, found, of_user)
    return SECRET


LEAVE = """
Path(f"/tmp/{note}").write_text(SECRET)
Path(f"/dev/shm/{note}").write_text(SECRET)
c_call(libc().shmget(number, 64, 0o1600))
c_call(libc().msgget(number, 0o1600))
c_call(libc().semget(number, 1, 0o1600))
named_queue(True)
kept_key(True)
"""
FIND = """
(read_text(f"/tmp/{note}"), os.remove(f"/tmp/{note}"))
(read_text(f"/dev/shm/{note}"), os.remove(f"/dev/shm/{note}"))
(found := c_call(libc().shmget(number, 64, 0)), libc().shmctl(found, 0, None), SECRET)
(found := c_call(libc().msgget(number, 0)), libc().msgctl(found, 0, None), SECRET)
(found := c_call(libc().semget(number, 1, 0)), libc().semctl(found, 0, 0), SECRET)
named_queue(False)
kept_key(False)
"""

# What an entry needs.
ALLOWED = """
open("own_new", "w").close()
os.rename("own_new", "own_renamed")
os.listdir("/dev/shm")  # with root
multiprocessing.Lock()  # with root
multiprocessing.Pool(1).map(len, ["ab"])  # with root
open(os.devnull, "w").close()
open("/dev/fd/0").close()
open("/proc/self/status").close()
open("/proc/cpuinfo").close()
open(os.path.expanduser("~/settings"), "w").close()
os.chmod("own_renamed", 0o600)
shutil.copy2("own_renamed", "own_copy")
(pair := socket.socketpair())[0].send(b".")
by_multiprocessing("spawn", os.devnull)
run(sys.executable, "-c", "import numpy")
run("sh", "-c", "ls / | wc -l")
os.sched_setaffinity(0, os.sched_getaffinity(0))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
"""


# --- Trying them ---


def attempt(way, known):
    """Try a way; return what came of it. One that hangs must not stop the others."""
    try:
        return concurrent.futures.ThreadPoolExecutor().submit(eval, way, known).result(30)
    except BaseException as error:
        return error


def show(value):
    if isinstance(value, (bytes, bytearray)):
        value = value.decode(errors="replace")
    return (value if isinstance(value, str) else f"{value!r} {value}")[:3000]


def try_all(tables, folder, victims, outside):
    """Print that each way of some tables was "done" or what it "met", on a line after `MARK`."""
    OUTSIDE.update(outside)
    modules = MODULES + LIBRARIES * ("GUARDED" in tables)
    globals().update({name: __import__(name) for name in modules.split()})
    outcome = {}
    for table in tables:
        to_contents = table in ("GUARDED", "BEYOND")
        for number, way in enumerate(ways(table)):
            place = f"{folder}/answers" if to_contents else f"{victims}/{number}"
            result = attempt(way, names(place, to_contents))
            shown = show(result)
            tells = SECRET in shown or not (to_contents or table == "FIND")
            is_done = not isinstance(result, BaseException) and tells
            outcome[way] = "done" if is_done else f"met {shown[:200]}"
            Path(OWN).unlink(missing_ok=True)
    print("\n" + MARK + json.dumps(outcome), flush=True)


def ways(table):
    return globals()[table].strip().splitlines()


if __name__ == "__main__":
    arguments = json.loads(sys.argv[1])
    if "GUARDED" in arguments[0]:
        prepare(arguments[1])
    try_all(*arguments)
