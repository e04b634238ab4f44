"""Which task a file or folder is of."""

import re
from pathlib import Path

from common import reading, schema, zips
from common.errors import InputError, quote

_COLUMNS = {task: column.name for task, column in schema.PREDICTED_COLUMN.items()}
_COLUMNS[3] = schema.RANKING.name


def task_of(path: Path) -> int:
    """Return the task of a script, by its folder, or of a submission, by its name, or content."""
    if path.is_dir():
        return 4
    reading.require_file(path)
    kind = path.suffix.lower()
    if kind == ".py":
        folder = path.resolve().parent.name
        if folder in ("task_1", "task_2"):
            return int(folder[-1])
        raise InputError(
            f"{path}: is no script in task_1/ or task_2/, nor a folder of task 4, expected one"
        )
    named = re.search(r"task_([1234])(?!\d|_\d)", path.name)
    if kind == ".zip" and not named:
        with zips.open_zip(path) as archive:
            inside = [name for name in archive.namelist() if name.lower().endswith(".csv")]
        if not inside:
            return 4
        named = re.fullmatch(r"submission_task_([123])\.csv", Path(inside[0]).name)
        if not named:
            raise InputError(
                f"{path}: holds {quote(inside[0])}, expected submission_task_1.csv to 3"
            )
    if named:
        return int(named[1])
    header = reading.read_header(reading.file_source(path))
    tasks = [task for task, name in _COLUMNS.items() if name in header]
    if len(tasks) != 1:
        raise InputError(
            f"{path}: does not tell the task: it has the columns {quote(', '.join(header))}, "
            f"expected a submission, with exactly one of {', '.join(_COLUMNS.values())}, or a name "
            "such as submission_task_1.csv"
        )
    return tasks[0]
