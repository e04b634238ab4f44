"""Tell which task a script, a submission or a folder belongs to."""

import re
from pathlib import Path

from common import reading, zips
from common.errors import InputError, quote
from common.tasks import TASK_4, TASKS, Form, Task

# Tasks whose scripts predict a value for each pair of a student and a question.
_TASKS_WITH_PREDICTIONS = [task for task in TASKS.values() if task.form is Form.PREDICTIONS]
# Tasks whose submissions are CSV files.
_TASKS_WITH_CSV = [task for task in TASKS.values() if task.form is not Form.ENTRY]


def task_of(path: Path) -> Task:
    """Return the task of a script (by its folder) or of a submission (by its name or content).

    A folder, and a zip without a CSV file, is an entry of task 4.
    """
    if path.is_dir():
        return TASK_4
    reading.require_file(path)
    suffix = path.suffix.lower()
    if suffix == ".py":
        return _task_of_script(path)
    # A digit after task_ tells the task, unless another number follows: submission_task_1_2.csv,
    # for example, is the template of two tasks.
    in_name = re.search(r"task_([1234])(?!\d|_\d)", path.name)
    if in_name:
        return TASKS[int(in_name[1])]
    return _task_of_zip(path) if suffix == ".zip" else _task_of_columns(path)


def _task_of_script(path: Path) -> Task:
    """Return task 1 or 2, by the folder of a script."""
    folder = path.resolve().parent.name
    for task in _TASKS_WITH_PREDICTIONS:
        if task.folder.name == folder:
            return task
    raise InputError(f"{path}: expected a script in task_1/ or task_2/, or a folder of task 4")


def _task_of_zip(path: Path) -> Task:
    """Return the task of a zip, by the name of the CSV file in it."""
    with zips.open_zip(path) as archive:
        tables = [name for name in archive.namelist() if name.lower().endswith(".csv")]
    if not tables:
        return TASK_4
    for task in _TASKS_WITH_CSV:
        if task.submission == Path(tables[0]).name:
            return task
    expected = ", ".join(task.submission for task in _TASKS_WITH_CSV)
    raise InputError(f"{path}: holds {quote(tables[0])}, expected one of {expected}")


def _task_of_columns(path: Path) -> Task:
    """Return the task of a CSV file, by the column with the predictions."""
    header = reading.read_header(reading.file_source(path))
    # Accept a column's name in any letter case here. The check of the file asks the user to correct
    # the letter case.
    lower_case = {name.strip().lower() for name in header}
    matches = [task for task in _TASKS_WITH_CSV if task.column.name.lower() in lower_case]
    if len(matches) != 1:
        columns = ", ".join(task.column.name for task in _TASKS_WITH_CSV)
        raise InputError(
            f"{path}: does not tell the task: it has the columns {quote(', '.join(header))}, "
            f"expected a submission, with exactly one of {columns}, or a name "
            "such as submission_task_1.csv"
        )
    return matches[0]
