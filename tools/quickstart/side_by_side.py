"""Runs steps side by side, and shows on a terminal which of them run."""

import os
import shutil
import sys
import time
from collections import deque
from collections.abc import Collection, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from tools.quickstart.finished import data_files
from tools.quickstart.processes import Children, CommandError
from tools.quickstart.run_step import run_step
from tools.quickstart.steps import LOCAL_SPLIT, Step

# The models that take longest on the simulated data, the slowest one last. The models at the end of
# the list start first. `partial_vae` and `pytorch` import PyTorch. The first of them makes Python
# compile PyTorch's modules, and the second one uses the compiled modules. So they must not start
# together, and are no neighbours in the list.
SLOW = ("item_response", "partial_vae", "similarity_boosting", "gradient_boosting", "pytorch")
# If the data have more bytes than this, only one step (a model, for instance) runs at a time: two
# might need more memory than there is.
LARGE_DATA = 100e6
# Time between two updates of the line that shows the running steps.
SECONDS_BETWEEN_UPDATES = 0.2


@dataclass(frozen=True)
class Running:
    """A step that runs now."""

    step: Step
    # By `time.perf_counter`.
    started: float


@dataclass
class Progress:
    """Prints every step that ends, and keeps why steps failed."""

    n_steps: int
    n_ended: int = 0
    # A message for each step that failed.
    failures: dict[Step, str] = field(default_factory=dict)

    def report(self, step: Step, future: Future[str]) -> None:
        """Print the result of a step that has ended."""
        try:
            result = future.result()
        except CommandError as error:
            result = "failed"
            self.failures[step] = f"failed: {step.title}, {step.name}: {error}"
        self.n_ended += 1
        show_line("")
        counter = f"[{self.n_ended}/{self.n_steps}]"
        print(f"{counter} {step.title}  {step.name}: {result}", flush=True)


def run_side_by_side(python: str, steps: Sequence[Step]) -> list[str]:
    """Run the steps that make the local splits, then the steps of the models, several at a time.

    Returns a message for each step that failed, in the order of `steps`.
    """
    n_workers = count_workers(steps)
    n_threads = max(1, (os.cpu_count() or 1) // n_workers)
    # An OMP_NUM_THREADS that the user has set replaces this value, because it comes later in the
    # dict.
    children = Children({"OMP_NUM_THREADS": str(n_threads), **os.environ})
    splits = [step for step in steps if step.name == LOCAL_SPLIT]
    models = [step for step in steps if step.name != LOCAL_SPLIT]
    # Sort the models from quick to slow. All models outside `SLOW` count as equally quick (key -1).
    # They keep their order, because the sort is stable.
    models.sort(key=lambda step: SLOW.index(step.name) if step.name in SLOW else -1)
    progress = Progress(len(steps))
    with ThreadPoolExecutor(n_workers) as pool:
        try:
            for group in (splits, models):
                run_group(python, group, n_workers, pool, children, progress)
        finally:
            # After Control-C or an error, the pool would wait for children that still run.
            children.stop()
            show_line("")
    return [progress.failures[step] for step in steps if step in progress.failures]


def count_workers(steps: Sequence[Step]) -> int:
    """Return how many steps run at a time."""
    folders = {folder for step in steps for folder in step.data}
    n_bytes = sum(path.stat().st_size for path in data_files(folders))
    if n_bytes > LARGE_DATA:
        return 1
    return os.cpu_count() or 1


def run_group(
    python: str,
    steps: Sequence[Step],
    n_workers: int,
    pool: ThreadPoolExecutor,
    children: Children,
    progress: Progress,
) -> None:
    """Run steps, which are sorted from quick to slow, until all have ended.

    One worker always takes the quickest waiting step, so that scores appear soon. All other workers
    take the slowest waiting step, so that no slow step is left for the end.
    """
    waiting = deque(steps)
    running: dict[Future[str], Running] = {}
    # The latest step of the worker that takes the quickest steps; None before its first step.
    latest_of_quick_worker: Future[str] | None = None
    while waiting or running:
        while waiting and len(running) < n_workers:
            # If the quick worker's latest step is no longer in `running`, it has ended.
            quick_worker_is_free = latest_of_quick_worker not in running
            step = waiting.popleft() if quick_worker_is_free else waiting.pop()
            future = pool.submit(run_step, python, step, children)
            running[future] = Running(step, time.perf_counter())
            if quick_worker_is_free:
                latest_of_quick_worker = future
        show_running(running.values())
        ended, _ = wait(running, SECONDS_BETWEEN_UPDATES, return_when=FIRST_COMPLETED)
        for future in ended:
            progress.report(running.pop(future).step, future)


def show_running(running: Collection[Running]) -> None:
    """Show on a terminal the steps that run, each with its seconds so far."""
    now = time.perf_counter()
    shown = []
    for each in running:
        seconds = now - each.started
        shown.append(f"{each.step.title}  {each.step.name} {seconds:.0f} s")
    show_line(f"running: {', '.join(shown)}")


def show_line(text: str) -> None:
    """Show a text in the last line of a terminal; it replaces the text that was there."""
    if sys.stdout.isatty():
        columns = shutil.get_terminal_size().columns - 1
        print(f"\r{' ' * columns}\r{text[:columns]}", end="", flush=True)
