"""Read CSV files as the evaluations do, with pyarrow or, as a script, with the stand-ins for it.

    python tests/hosting/reading.py FOLDER

prints what came of every file in a folder, as JSON: the message that refuses it, or its columns.
"""

import json
import sys
from pathlib import Path

import numpy as np

from common import schema

# What is read of each kind of file.
COLUMNS = {
    "pairs": (schema.USER_ID, schema.QUESTION_ID, schema.IS_CORRECT),
    "ranking": (schema.QUESTION_ID, schema.RANKING),
    "answers": (*schema.ANSWER_COLUMNS, schema.is_target("IsTarget_0")),
    "students": (schema.USER_ID, schema.GENDER, schema.DATE_OF_BIRTH, schema.PREMIUM_PUPIL),
    "subjects": (schema.SUBJECT_ID, schema.SUBJECT_NAME, schema.PARENT_ID, schema.LEVEL),
    "circumstances": (schema.ANSWER_ID_OR_EMPTY, schema.DATE_ANSWERED, schema.CONFIDENCE),
}


def read_files(folder: Path) -> dict[str, object]:
    """Read every file in a folder, whose name says what it is; return what came of each."""
    return {path.name: read_file(path) for path in sorted(folder.iterdir())}


def read_file(path: Path) -> object:
    # Not at the top: the stand-ins have to be in place before.
    from common import io
    from common.errors import InputError
    from common.submission import read_pair_values, read_ranking

    kind, _, _ = path.name.partition(".")
    faults: list[str] = []
    try:
        source = io.file_source(path)
        if kind == "pairs":
            pairs = read_pair_values(source, schema.IS_CORRECT, faults.append)
            arrays = [pairs.student, pairs.question, pairs.value]
        elif kind == "ranking":
            arrays = list(read_ranking(source, np.arange(6, dtype=np.int32), faults.append))
        else:
            arrays = list(io.read_columns(path, COLUMNS[kind]).values())
    except InputError as fault:
        return [*faults, str(fault)]
    return [*faults, *([str(array.dtype), *map(str, array.tolist())] for array in arrays)]


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2] / "hosting/programs")
    import stand_ins

    stand_ins.install()
    print(json.dumps(read_files(Path(sys.argv[1]))))
