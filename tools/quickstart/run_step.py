"""Runs one step: a local split, or a sample model from training to its score."""

import re
import shlex
import shutil
import time
from pathlib import Path

from common.adaptive.weights import (
    TRAINED_STUDENTS,
    WEIGHTS,
    copy_package,
    move_record,
    read_record,
)
from tools.quickstart import finished, run_commands
from tools.quickstart.processes import Children, failure
from tools.quickstart.steps import PACKAGES_DIR, Step

# The beginning of the line in which an evaluation prints its result.
SCORE = re.compile(r"^score [\d.]+", re.MULTILINE)


def run_step(python: str, step: Step, children: Children) -> str:
    """Run a step unless it is finished; return its score and time as a text for the user.

    A package is the folder of an entry of task 4. It may hold weights that were trained on all
    students. The step trains in a copy of the folder, so that these weights are not lost.
    """
    fingerprint = finished.fingerprint_of(step)
    if finished.is_finished(step, fingerprint):
        return "done already"
    # The mark is a file which says that the step is finished. Remove it while the step runs.
    mark = finished.mark_path(step)
    mark.unlink(missing_ok=True)
    started = time.perf_counter()
    if step.package:
        copy = PACKAGES_DIR / step.name
        shutil.rmtree(copy, ignore_errors=True)
        copy_package(step.package, copy)
        printed = run_in_one_process(python, step, children)
        bring_back_weights(copy, step.package)
    else:
        printed = run_in_one_process(python, step, children)
    mark.write_bytes(fingerprint.encode())
    seconds = time.perf_counter() - started
    # A step with a sample model prints a score, such as "score 0.6123". The step that splits the
    # answers prints none.
    score = SCORE.search(printed)
    return f"{score[0]}, {seconds:.1f} s" if score else f"{seconds:.1f} s"


def run_in_one_process(python: str, step: Step, children: Children) -> str:
    """Run a step's commands one after the other; return what they printed.

    Raises `CommandError` with the output of the command that failed.
    """
    commands = [shlex.join(command) for command in step.commands]
    ended = children.run([python, run_commands.__file__, *commands])
    if ended.code:
        # Before each command, `run_commands` prints a line with the prompt and the command. The
        # last such line names the command that failed. The output of this command follows. A line
        # break in front of all lets `rpartition` find also a prompt in the first line.
        all_output = f"\n{ended.printed}"
        _, _, after_prompt = all_output.rpartition(f"\n{run_commands.PROMPT}")
        command, _, printed = after_prompt.partition("\n")
        raise failure(f"python {command}", ended.code, printed)
    return ended.printed


def bring_back_weights(copy: Path, package: Path) -> None:
    """Replace the weights in a package by those that were trained in a copy of the package.

    The copy is trained with --local: without the students whose answers the local split hides. The
    function does not replace weights that were trained without --local or in an unknown way.
    """
    old_weights = list(package.glob(f"{WEIGHTS}*"))
    record = read_record(package)
    old_weights_are_local = record is not None and "local" in record.options
    if old_weights and not old_weights_are_local:
        return
    for path in old_weights:
        remove(path)
    new_weights = sorted(copy.glob(f"{WEIGHTS}*"))
    # Copy the list of training students first (`False` sorts before `True`): after an interruption,
    # the package never has weights without this list.
    new_weights.sort(key=lambda path: path.name != TRAINED_STUDENTS)
    for path in new_weights:
        if path.is_dir():
            shutil.copytree(path, package / path.name)
        else:
            shutil.copyfile(path, package / path.name)
    # The record of the training was copied with the weights. It names the folder `copy`: rewrite it
    # to name the package.
    move_record(folder=package, copy=copy, package=package)


def remove(path: Path) -> None:
    """Remove a file, or a folder with all that it holds."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
