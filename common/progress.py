"""The steps of a fit: a bar on a terminal, a line of the log for each, and a way to stop early."""

import math
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common import run_log

from tqdm import tqdm


def announce(seconds: float) -> None:
    """Say how long a fit takes, if over a minute, such as ``len(answers) / 250_000`` seconds."""
    if seconds > 60:
        print(f"this takes about {math.ceil(seconds / 60)} minutes on two cores", flush=True)


@contextmanager
def steps(
    n_steps: int, name: str, log: Path | None = None, *, disable: bool | None = None
) -> Iterator[tuple[Iterable[int], Callable[..., None]]]:
    """Go through the steps of a fit.

        with progress.steps(options.steps, "training", options.log) as (steps, show):
            for step in steps:
                ...
                show(loss=loss)

    Control-C leaves the block, says so, and the script goes on with what has been learned so far.

    Parameters
    ----------
    n_steps
        How many steps there are.
    name
        What they do, for the bar.
    log
        What `run_log.add_log_flag` reads: the log gets a line for each step. None: no log.
    disable
        True: no bar. None: a bar on a terminal only.

    Yields
    ------
    iterable of int
        0, 1, … to `n_steps` - 1.
    function
        ``show(loss=0.53)``, at the end of each step, moves the bar, and shows numbers beside it and
        logs them.
    """
    log_event = run_log.open_log(log)
    step = 0
    with tqdm(total=n_steps, desc=name, disable=disable) as bar:

        def show(**values: Any) -> None:
            nonlocal step
            step += 1
            bar.set_postfix({key: f"{float(value):.4f}" for key, value in values.items()}, False)
            bar.update()
            log_event("step", step=step, **values)

        try:
            yield range(n_steps), show
        except KeyboardInterrupt:
            bar.set_postfix_str("stopped early")
            bar.close()
            log_event("stopped early", step=step)
            print("interrupted: predicting with what has been learned so far", file=sys.stderr)
