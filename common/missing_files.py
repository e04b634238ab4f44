"""Find the command that makes or fetches a file that is missing."""

import re
from pathlib import Path

from common import layout
from common.tasks import TASKS

# Names of official files. Simulated files have the same names.
_OFFICIAL = re.compile(
    r"train_task_(1_2|3_4)\.csv|(question|student|answer)_metadata_task_(1_2|3_4)\.csv"
    r"|subject_metadata\.csv|quality_response_remapped_(public|private)\.csv"
    r"|test_(public|private)_(answers_task_[12]|task_4_more_splits)\.csv"
)
# The name of a submission. For the local split, it begins with test_.
_SUBMISSION = re.compile(r"(?P<local>test_)?submission_task_(?P<task>[123])\.(csv|zip)")
# Each of these two names stands for different files in different folders: in data/train_data,
# `train_task_1_2.csv` is the official file; in data/test_input, it is a part of the local split.
# `layout.RECORD_OF_FILE` names the record of the file in the folder given here.
_MADE_ONLY_IN = {
    layout.TRAIN_TASK_1_2: layout.TEST_INPUT_DIR,
    layout.TEMPLATE_TASK_3: layout.TEMPLATE_DIR,
}


def where_to_get(path: Path) -> str:
    """Return a phrase that names the command that makes or fetches a missing file.

    Error messages end with the phrase. Returns "" if no command makes or fetches the file.
    """
    if path.is_relative_to(layout.RELATED_DIR):
        return _where_to_get_related(path)
    # If the name is in `_MADE_ONLY_IN`, `layout.RECORD_OF_FILE` is only about the file in the
    # folder given there. In another folder, the name stands for another file.
    only_folder = _MADE_ONLY_IN.get(path.name)
    may_be_made_here = only_folder is None or only_folder == path.parent
    if may_be_made_here:
        # The name of the record beside the file tells which script makes both. For instance,
        # split_task_1_2.json is the record of the files that task_1/local_data_split.py makes. The
        # name is "" if scripts of the kit write no record for a file of this name.
        record_name = layout.RECORD_OF_FILE.get(path.name, "")
        split = re.fullmatch(r"split_task_(?P<task>\d).*", record_name)
        if split is not None:
            return f"`python task_{split['task']}/local_data_split.py` makes it"
        if record_name.startswith("template"):
            return "`python -m tools.templates` builds it from the files in data/"
    submission = _SUBMISSION.fullmatch(path.name)
    if submission is not None:
        task = TASKS[int(submission["task"])]
        flag = " --local" if submission["local"] else ""
        script = f"{task.folder.name}/sample_model_{task.simplest_model}.py"
        return f"`python {script}{flag}` makes one"
    if path.name == layout.RESULTS_NAME:
        return "`python task_1/local_evaluation.py` and those of the other tasks append to it"
    official_folders = (layout.TRAIN_DIR, layout.METADATA_DIR, layout.TEST_DIR)
    if path.parent in official_folders and _OFFICIAL.fullmatch(path.name):
        return (
            "`python data/download.py` fetches the official file, "
            "`python data/generate_sample.py` simulates one"
        )
    return ""


def _where_to_get_related(path: Path) -> str:
    """Return which command makes a file of a related challenge; "" if no command does."""
    challenge = f"related_challenges/{path.relative_to(layout.RELATED_DIR).parts[0]}"
    command_by_folder = {
        layout.TRAIN_DIR.name: f"`python {challenge}/generate_sample.py` simulates the "
        "challenge's files",
        layout.TEST_INPUT_DIR.name: f"`python {challenge}/local_data_split.py` makes it",
        layout.TEST_OUTPUT_DIR.name: f"every sample model in {challenge} makes one",
    }
    return command_by_folder.get(path.parent.name, "")
