"""Work that an entry does in processes and threads, by the libraries that entries use.

`test_library_workers.py` copies this file into an entry's folder, where the entry does the work.
Each function in `WORK` returns True if its workers have done it. Other results are faults.
"""

import importlib.util
import json
import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

# `do_all` prints the results of all functions on a line that begins with this text.
MARK = "results of the workers: "
START_METHODS = ("fork", "spawn", "forkserver")


def uses_memory(_=None):
    """Return whether this process can read how much memory it uses, as the library psutil does."""
    # The second number in this file is the number of memory pages in use.
    return int(Path("/proc/self/statm").read_text().split()[1]) > 0


def fill(name):
    """Write the number 7 to shared memory of this name, which another process has made."""
    memory = SharedMemory(name)
    memory.buf[0] = 7
    memory.close()


def by_pools():
    """Let processes of a `multiprocessing.Pool` read their memory use, for each start method."""
    results = []
    for method in START_METHODS:
        with multiprocessing.get_context(method).Pool(2) as pool:
            results += pool.map(uses_memory, range(2))
    return results == [True] * 6


def by_executors():
    """Let a process of a `ProcessPoolExecutor` read its memory use, for each start method."""
    results = []
    for method in START_METHODS:
        context = multiprocessing.get_context(method)
        with ProcessPoolExecutor(1, mp_context=context) as executor:
            results.append(executor.submit(uses_memory).result())
    return results == [True] * 3


def by_manager():
    """Share a dictionary through a manager, a process that listens at a local socket."""
    with multiprocessing.Manager() as manager:
        return dict(manager.dict(answer=1)) == {"answer": 1}


def by_shared_memory():
    """Share memory with a process that runs in a new Python interpreter ("spawn")."""
    memory = SharedMemory(create=True, size=10)
    process = multiprocessing.get_context("spawn").Process(target=fill, args=(memory.name,))
    process.start()
    process.join()
    filled = memory.buf[0] == 7
    memory.close()
    memory.unlink()
    return filled


def by_joblib():
    """Work in processes of joblib, as scikit-learn does for `n_jobs=2`, and end them by force."""
    from joblib.externals.loky import get_reusable_executor

    executor = get_reusable_executor(max_workers=2)
    results = list(executor.map(uses_memory, range(4)))
    executor.shutdown(wait=True, kill_workers=True)
    return results == [True] * 4


def by_psutil():
    """Ask psutil for a child process and its memory, as joblib does where psutil is installed.

    Returns True if psutil finds both, or is not installed.
    """
    if importlib.util.find_spec("psutil") is None:
        return True
    import psutil

    with subprocess.Popen(["sleep", "60"]) as child:
        children = psutil.Process().children(recursive=True)
        memory = psutil.Process(child.pid).memory_info().rss
        child.kill()
    return child.pid in [process.pid for process in children] and memory > 0


def by_data_loader():
    """Load data by PyTorch's DataLoader in two processes, which send tensors in shared memory."""
    from torch.utils.data import DataLoader

    loader = DataLoader(range(8), batch_size=2, num_workers=2)
    return sum(int(batch.sum()) for batch in loader) == 28


def by_bound_threads():
    """Cluster points by scikit-learn in threads that are bound to processors.

    Computing centres often set OMP_PROC_BIND, which binds the threads of OpenMP. OpenMP reads this
    variable when it is loaded, so the work is done in a new Python process.

    Returns True if the work is done, and otherwise what the process has written to stderr.
    """
    code = (
        "import numpy; from sklearn.cluster import KMeans;"
        "print(len(KMeans(2, n_init=1).fit(numpy.eye(1000, 3)).labels_))"
    )
    environment = {**os.environ, "OMP_PROC_BIND": "true", "OMP_NUM_THREADS": "2"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    # The process prints the number of labels: one for each of the 1000 points.
    return done.stdout == "1000\n" or done.stderr


def by_many_threads():
    """Multiply matrices in more threads than there are processors.

    Returns True if the work is done, and otherwise what the process has written to stderr.
    """
    code = "import numpy; a = numpy.ones((500, 500)); print((a @ a).sum())"
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "32", "OMP_NUM_THREADS": "32"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    return done.stdout == "125000000.0\n" or done.stderr


def by_shell():
    """Let a shell join two commands by a pipe that the second one opens as a file (/dev/fd/63)."""
    command = ["bash", "-c", "cat <(echo joined) > /dev/stdout"]
    return subprocess.run(command, capture_output=True, text=True).stdout == "joined\n"


WORK = {
    "multiprocessing.Pool": by_pools,
    "concurrent.futures": by_executors,
    "multiprocessing.Manager": by_manager,
    "SharedMemory": by_shared_memory,
    "joblib": by_joblib,
    "psutil": by_psutil,
    "DataLoader": by_data_loader,
    "OMP_PROC_BIND": by_bound_threads,
    "32 threads": by_many_threads,
    "shell": by_shell,
}


def do_all():
    """Do all work, and print the results on one line, after `MARK`, as a JSON object."""
    results = {}
    for name, function in WORK.items():
        try:
            results[name] = function()
        except BaseException as error:
            results[name] = repr(error)
    print("\n" + MARK + json.dumps(results), flush=True)
