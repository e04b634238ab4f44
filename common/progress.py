"""Run the steps of a fit with a progress bar, a log, and a way to stop the fit early."""

import math
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common import provenance, run_log

from tqdm import tqdm


def announce(seconds: float) -> None:
    """Print how long a fit takes, if it takes more than a minute.

    Parameters
    ----------
    seconds
        The expected time on two cores, such as ``len(answers) / 250_000``.
    """
    if seconds > 60:
        print(f"this takes about {math.ceil(seconds / 60)} minutes on two cores", flush=True)


def stop_early(bar: "tqdm[Any]", consequence: str) -> None:
    """End the progress bar of a fit that the user has stopped with Control-C.

    The user gets a message. The files that are written afterwards get a record of how they were
    made, and the record notes the interrupt.

    Parameters
    ----------
    bar
        The progress bar of the fit.
    consequence
        How the program continues, for the message: ``interrupted: <consequence>``.
    """
    bar.set_postfix_str("stopped early")
    bar.close()
    provenance.note_interrupt()
    print(f"interrupted: {consequence}", file=sys.stderr)


@contextmanager
def steps(
    n_steps: int, name: str, log: Path | None = None, *, disable: bool | None = None
) -> Iterator[tuple[Iterable[int], Callable[..., None]]]:
    """Show a progress bar for the steps of a fit, log them, and let the user stop them early.

    Use it in this way::

        with progress.steps(options.steps, "training", options.log) as (steps, show):
            for step in steps:
                ...
                show(loss=loss)

    Control-C ends the `with` block without an exception and prints a message. The script continues
    after the block, and predicts with what the model has learned so far.

    Parameters
    ----------
    n_steps
        The number of steps.
    name
        The text beside the bar.
    log
        The log file, as the flag --log names it (`run_log.add_log_flag`). With None, there is no
        log.
    disable
        With True, there is no bar. With None, there is a bar on a terminal only.

    Yields
    ------
    iterable of int
        The step numbers, from 0 to `n_steps` - 1.
    function
        To be called at the end of each step, such as ``show(loss=0.53)``. The function moves the
        bar, shows the numbers beside the bar and logs them.

    Raises
    ------
    InputError
        If the log file is not a log.
    """
    log_event = run_log.open_log(log)
    step = 0
    with tqdm(total=n_steps, desc=name, disable=disable) as bar:

        def show(**values: Any) -> None:
            nonlocal step
            step += 1
            shown = {key: f"{float(value):.4f}" for key, value in values.items()}
            bar.set_postfix(shown, refresh=False)
            bar.update()
            log_event("step", step=step, **values)

        try:
            yield range(n_steps), show
        except KeyboardInterrupt:
            stop_early(bar, "predicting with what has been learned so far")
            log_event("stopped early", step=step)
