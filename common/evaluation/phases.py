"""Tasks 1 to 3: which submission a `local_evaluation.py` scores if no flag names one."""

import argparse
from pathlib import Path

from common import cli, layout, reading
from common.tasks import LOCAL, Task


def choose_phase(options: argparse.Namespace, task: Task) -> str:
    """Return the phase that the flags name.

    Without flags it is the local split. But it is the public phase if a sample model has been run
    without --local, as in the challenge's guide: then there is a submission to upload, but none for
    the local split.
    """
    has_input_flags = any(
        [
            options.phase,
            options.input_dir,
            options.ref_data,
            options.submission_dir,
            options.submit_data,
        ]
    )
    local = task.submission_path(LOCAL)
    upload = task.submission_path("public")
    if not has_input_flags and not reading.is_there(local) and upload.is_file():
        print(f"{cli.show(local)}: not there; scored: {cli.show(upload)}, --phase public")
        return "public"
    return str(options.phase or LOCAL)


def name_older(options: argparse.Namespace, task: Task, submission: Path) -> list[str]:
    """Return a line about a second submission for the local split, which is not scored.

    Such a submission may lie in data/test_output and in data/test_input (`Task.submission_path`).
    The list is empty if there is only one, or if a flag names the `submission` that is scored.
    """
    folders = [layout.TEST_OUTPUT_DIR, layout.TEST_INPUT_DIR]
    if options.submission_dir or options.submit_data or submission.parent not in folders:
        return []
    folders.remove(submission.parent)
    older = folders[0] / task.local_submission
    if not older.is_file():
        return []
    return [f"not scored, because it is older: {cli.show(older)}"]
