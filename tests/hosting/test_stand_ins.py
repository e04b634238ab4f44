"""The stand-ins for pyarrow read what pyarrow reads, and refuse what it refuses, word for word.

    python tests/hosting/test_stand_ins.py FOLDER

prints what came of every file in a folder, read with the stand-ins: see `read_files`.
"""

import json
import random
import re
import sys
from pathlib import Path
from typing import Any

from common import schema

import numpy as np

# What is read of each kind of file.
COLUMNS = {
    "pairs": (schema.USER_ID, schema.QUESTION_ID, schema.IS_CORRECT),
    "ranking": (schema.QUESTION_ID, schema.RANKING),
    "answers": (*schema.ANSWER_COLUMNS, schema.is_target("IsTarget_0")),
    "students": (schema.USER_ID, schema.GENDER, schema.DATE_OF_BIRTH, schema.PREMIUM_PUPIL),
    "subjects": (schema.SUBJECT_ID, schema.SUBJECT_NAME, schema.PARENT_ID, schema.LEVEL),
    "circumstances": (schema.ANSWER_ID_OR_EMPTY, schema.DATE_ANSWERED, schema.CONFIDENCE),
}


CONTENTS = {
    "pairs": b"UserId,QuestionId,IsCorrect\n"
    + b"".join(b"%d,%d,%d\n" % (s, q, (s + q) % 2) for s in range(12) for q in range(7)),
    "ranking": b"QuestionId,ranking\n0,3\n1,1\n2,2\n3,4\n4,6\n5,5\n",
    "answers": b"QuestionId,UserId,AnswerId,IsCorrect,CorrectAnswer,AnswerValue,IsTarget_0\n"
    b"3,1,10,1,2,2,0\n4,1,11,0,1,3,1\n3,2,12,0,2,1,0\n",
    "students": b"UserId,Gender,DateOfBirth,PremiumPupil\n1,2,2007-05-01 00:00:00.000,1.0\n"
    b"2,0,,\n3,1,2008-11-01,0.0\n4,3,2006-02-01T12:30,\n",
    "subjects": b"SubjectId,Name,ParentId,Level\n3,Maths,NULL,0\n32,Number,3,1\n"
    b'71,"Add, subtract",32,2\n',
    "circumstances": b"AnswerId,DateAnswered,Confidence\n5.0,2020-03-01 10:20:30.500,75.0\n"
    b"6.0,2020-03-01 10:21,\n,2020-03-02,100.0\n",
}
CELLS = [
    *map(str, range(10)), "", " ", "1.0", "+1", "01", "1e0", "1_0", "٣", "nan", "inf", "True",
    "FALSE", "0x1", "2147483648", "99999999999999999999", '"1"', '"1', 'a"b', "é", "1;2", " 1 ",
    "-0", "1.5",
]  # fmt: skip


def read_files(folder: Path) -> dict[str, Any]:
    """Read every file in a folder, whose name says what it is: its columns, or why not."""
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


def as_pairs(rows: list[str]) -> bytes:
    return "\n".join(["UserId,QuestionId,IsCorrect", *rows, ""]).encode()


def variants(kind: str) -> dict[str, bytes]:
    """Return a file, damaged and rewritten in many ways."""
    import malformed

    item = malformed.Input("", "", "", columns=COLUMNS[kind])
    # Cells of megabytes take long; those of one column of one kind are enough.
    damaged = [
        data
        for name, data in malformed.damage_csv(item, CONTENTS[kind])
        if len(data) < 100_000 or (kind == "pairs" and name.startswith("UserId"))
    ]
    files = [CONTENTS[kind], *malformed.rewrite(item, CONTENTS[kind]).values(), *damaged]
    return {f"{kind}.{number}": data for number, data in enumerate(files)}


def large_files() -> dict[str, bytes]:
    """Return several blocks of rows, blank lines and rows with too many cells on the way."""
    keys = np.random.default_rng(0).permutation(140_000)
    rows = [f"{key // 500},{key % 500},{key % 2}" for key in keys.tolist()]
    right = as_pairs(rows)
    rows[70_000] += ",7"
    rows[135_000] = "\n" + rows[135_000][:-1] + "5"
    return {"pairs.large": right, "pairs.wrong": as_pairs(rows)}


def any_cells() -> dict[str, bytes]:
    """Return files of a few rows with anything in them."""
    draw, files = random.Random(0), {}
    for number in range(600):
        widths = draw.choices((2, 3, 3, 3, 3, 3, 4), k=draw.randrange(1, 5))
        rows = [",".join(draw.choices(CELLS, k=width)) for width in widths]
        files[f"pairs.any.{number}"] = as_pairs(rows)
    return files


def without_rows(came: list[object]) -> list[object]:
    """Return what came of a file without the text of rows cut off: only pyarrow shows quotes."""
    text = r"(columns, expected \d+): .*?(?= \(\d+ such|; is the file)"
    return [re.sub(text, r"\1", part) if isinstance(part, str) else part for part in came]


def test_files_are_read_as_pyarrow_reads_them(tmp_path: Path) -> None:
    from run_scripts import run_process

    damaged = {name: data for kind in CONTENTS for name, data in variants(kind).items()}
    for name, data in (damaged | large_files() | any_cells()).items():
        (tmp_path / name).write_bytes(data)
    expected = read_files(tmp_path)
    done = run_process(["tests/hosting/test_stand_ins.py", tmp_path])
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.keys() == expected.keys()
    for name, came in expected.items():
        # Of a header without a line end pyarrow says that it is no CSV.
        if "cannot infer number of columns" in str(came):
            assert "holds a header but no rows" in str(found[name])
        else:
            assert without_rows(found[name]) == without_rows(came), name
    assert all(not isinstance(expected[f"{kind}.0"][0], str) for kind in CONTENTS)
    assert sum(isinstance(expected[name][0], str) for name in damaged) > 200
    assert not isinstance(expected["pairs.large"][0], str)
    assert "row 70002 has 4 columns" in expected["pairs.wrong"][0]
    assert "row 135003 is '5'" in expected["pairs.wrong"][1]


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2] / "hosting/programs")
    import stand_ins

    stand_ins.install()
    print(json.dumps(read_files(Path(sys.argv[1]))))
