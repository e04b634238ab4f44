"""The stand-ins for pyarrow read what pyarrow reads, and refuse what it refuses, word for word."""

import json
import random
import re
from pathlib import Path
from typing import Any

import malformed
import numpy as np
from run_scripts import run_process

from common import schema, source_code

READING = source_code.load_module(Path(__file__).with_name("reading.py"), "reading")

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
READ = {
    "pairs": (schema.USER_ID, schema.QUESTION_ID, schema.IS_CORRECT),
    "ranking": (schema.QUESTION_ID, schema.RANKING),
    **READING.COLUMNS,
}


def without_rows(came: list[object]) -> list[object]:
    """Return what came of a file without the text of rows cut off: only pyarrow shows quotes."""
    text = r"(columns, expected \d+): .*?(?= \(\d+ such|; is the file)"
    return [re.sub(text, r"\1", part) if isinstance(part, str) else part for part in came]


def read_both_ways(folder: Path) -> dict[str, list[Any]]:
    """Return what comes of the files of a folder, which must be the same without pyarrow."""
    expected: dict[str, list[Any]] = READING.read_files(folder)
    done = run_process(["tests/hosting/reading.py", folder])
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.keys() == expected.keys()
    for name, came in expected.items():
        # Of a header without a line end pyarrow says that it is no CSV.
        if "cannot infer number of columns" in str(came):
            assert "holds a header but no rows" in str(found[name])
        else:
            assert without_rows(found[name]) == without_rows(came)
    return expected


def variants(kind: str) -> dict[str, bytes]:
    """Return a file, damaged and rewritten in many ways."""
    item = malformed.Input("", "", "", columns=READ[kind])
    # Cells of megabytes take long; those of one column of one kind are enough.
    damaged = [
        data
        for name, data in malformed.damage_csv(item, CONTENTS[kind])
        if len(data) < 100_000 or (kind == "pairs" and name.startswith("UserId"))
    ]
    files = [CONTENTS[kind], *malformed.rewrite(item, CONTENTS[kind]).values(), *damaged]
    return {f"{kind}.{number}": data for number, data in enumerate(files)}


def test_damaged_and_unusual_files(tmp_path: Path) -> None:
    for kind in CONTENTS:
        for name, data in variants(kind).items():
            (tmp_path / name).write_bytes(data)
    came = read_both_ways(tmp_path)
    assert all(not isinstance(came[f"{kind}.0"][0], str) for kind in CONTENTS)
    assert sum(isinstance(each[0], str) for each in came.values()) > 200


def test_large_files(tmp_path: Path) -> None:
    """Several blocks of rows, blank lines and rows with too many cells on the way."""
    keys = np.random.default_rng(0).permutation(140_000)
    rows = [f"{key // 500},{key % 500},{key % 2}" for key in keys.tolist()]
    (tmp_path / "pairs.large").write_text("UserId,QuestionId,IsCorrect\n" + "\n".join(rows) + "\n")
    rows[70_000] += ",7"
    rows[135_000] = "\n" + rows[135_000][:-1] + "5"
    (tmp_path / "pairs.wrong").write_text("UserId,QuestionId,IsCorrect\n" + "\n".join(rows) + "\n")
    came = read_both_ways(tmp_path)
    assert "row 70002 has 4 columns" in came["pairs.wrong"][0]
    assert "row 135003 is '5'" in came["pairs.wrong"][1]


CELLS = [
    *map(str, range(10)), "", " ", "1.0", "+1", "01", "1e0", "1_0", "٣", "nan", "inf", "True",
    "FALSE", "0x1", "2147483648", "99999999999999999999", '"1"', '"1', 'a"b', "é", "1;2", " 1 ",
    "-0", "1.5",
]  # fmt: skip


def test_any_cells(tmp_path: Path) -> None:
    """Files of a few rows with anything in them."""
    draw = random.Random(0)
    for number in range(600):
        rows = [
            ",".join(draw.choices(CELLS, k=draw.choice((2, 3, 3, 3, 3, 3, 4))))
            for _ in range(draw.randrange(1, 5))
        ]
        text = "\n".join(["UserId,QuestionId,IsCorrect", *rows, ""])
        (tmp_path / f"pairs.{number}").write_text(text, encoding="utf-8")
    read_both_ways(tmp_path)
