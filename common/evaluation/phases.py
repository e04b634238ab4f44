"""Tasks 1 to 3: which submission a `local_evaluation.py` scores if no flag names one."""

import argparse
from pathlib import Path

from common import cli, layout, reading
from common.tasks import LOCAL, Task


def choose_phase(options: argparse.Namespace, task: Task) -> str:
    """Return the phase to score: the value of the flag --phase, or else the local split.

    There is one exception, for a user who follows the challenge's guide. If no flag names a phase
    or an input, the public phase is scored if there is a submission to upload but none for the
    local split.
    """
    if options.phase:
        return str(options.phase)
    input_flags = [options.input_dir, options.ref_data, options.submission_dir, options.submit_data]
    if any(input_flags):
        return LOCAL
    local = task.submission_path(LOCAL)
    upload = task.submission_path("public")
    if not reading.is_there(local) and upload.is_file():
        print(f"{cli.show(local)}: not there; scored: {cli.show(upload)}, --phase public")
        return "public"
    return LOCAL


def name_older(options: argparse.Namespace, task: Task, submission: Path) -> list[str]:
    """Return the lines to print about an older submission that is not scored: one line or none.

    A submission for the local split may lie in data/test_output or in data/test_input. If both
    folders hold a submission, the newer submission is scored: `submission`. The line then names the
    older submission. There is no line if only one of the two folders holds a submission, or if a
    flag names the submission to score.
    """
    folders = [layout.TEST_OUTPUT_DIR, layout.TEST_INPUT_DIR]
    is_named_by_flag = bool(options.submission_dir or options.submit_data)
    if is_named_by_flag or submission.parent not in folders:
        return []
    folders.remove(submission.parent)
    (other_folder,) = folders
    older = other_folder / task.local_submission
    if not older.is_file():
        return []
    return [f"not scored, because it is older: {cli.show(older)}"]
