"""The stand-ins for pyarrow read what pyarrow reads, and refuse what it refuses, word for word."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import malformed
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common import schema, source_code

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).with_name("reading.py")
READING = source_code.load_module(SCRIPT, "reading")

PAIRS = b"UserId,QuestionId,IsCorrect\n" + b"".join(
    f"{student},{question},{(student + question) % 2}\n".encode()
    for student in range(12)
    for question in range(7)
)
RANKING = b"QuestionId,ranking\n0,3\n1,1\n2,2\n3,4\n4,6\n5,5\n"
ANSWERS = (
    b"QuestionId,UserId,AnswerId,IsCorrect,CorrectAnswer,AnswerValue,IsTarget_0\n"
    b"3,1,10,1,2,2,0\n4,1,11,0,1,3,1\n3,2,12,0,2,1,0\n"
)
STUDENTS = (
    b"UserId,Gender,DateOfBirth,PremiumPupil\n"
    b"1,2,2007-05-01 00:00:00.000,1.0\n2,0,,\n3,1,2008-11-01,0.0\n4,3,2006-02-01T12:30,\n"
)
SUBJECTS = (
    b'SubjectId,Name,ParentId,Level\n3,Maths,NULL,0\n32,Number,3,1\n71,"Add, subtract",32,2\n'
)
CIRCUMSTANCES = (
    b"AnswerId,DateAnswered,Confidence\n"
    b"5.0,2020-03-01 10:20:30.500,75.0\n6.0,2020-03-01 10:21,\n,2020-03-02,100.0\n"
)


def by_stand_ins(folder: Path) -> dict[str, object]:
    """Read the files of a folder in a process without pyarrow."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, object] = json.loads(done.stdout)
    return result


def variants(kind: str, content: bytes, item: malformed.Input) -> dict[str, bytes]:
    """Return a file, damaged and rewritten in many ways."""
    found = {f"{kind}.right": content}
    damaged = list(malformed.damage_csv(item, content))
    found |= {f"{kind}.damaged {n}": data for n, (_, data) in enumerate(damaged)}
    rewritten = list(malformed.rewrite(item, content).values())
    return found | {f"{kind}.rewritten {n}": data for n, data in enumerate(rewritten)}


def test_damaged_and_unusual_files(tmp_path: Path, inputs: Mapping[str, malformed.Input]) -> None:
    contents = {
        "pairs": PAIRS, "ranking": RANKING, "answers": ANSWERS, "students": STUDENTS,
        "subjects": SUBJECTS, "circumstances": CIRCUMSTANCES,
    }  # fmt: skip
    for kind, content in contents.items():
        for name, data in variants(kind, content, inputs[kind]).items():
            (tmp_path / name).write_bytes(data)
    expected = READING.read_files(tmp_path)
    assert len(expected) > 300
    refused = [name for name, came in expected.items() if isinstance(came[0], str)]
    assert len(refused) > 150
    found = by_stand_ins(tmp_path)
    assert found == expected


def test_large_files(tmp_path: Path) -> None:
    """Several blocks of rows, blank lines and rows with too many cells on the way."""
    rng = np.random.default_rng(0)
    keys = rng.permutation(200_000)
    rows = [f"{key // 500},{key % 500},{key % 2}" for key in keys.tolist()]
    (tmp_path / "pairs.large").write_text("UserId,QuestionId,IsCorrect\n" + "\n".join(rows) + "\n")
    rows[70_000] += ",7"
    rows[150_000] = "\n" + rows[150_000][:-1] + "5"
    (tmp_path / "pairs.wrong").write_text("UserId,QuestionId,IsCorrect\n" + "\n".join(rows) + "\n")
    expected = READING.read_files(tmp_path)
    assert "row 70002 has 4 columns" in expected["pairs.wrong"][0]
    assert "row 150003 is '5'" in expected["pairs.wrong"][1]
    assert by_stand_ins(tmp_path) == expected


CELLS = st.one_of(
    st.integers(-3, 9).map(str),
    st.sampled_from(
        ["", " ", "1.0", "+1", "01", "1e0", "1_0", "٣", "nan", "inf", "True", "FALSE", "0x1",
         "2147483648", "99999999999999999999", '"1"', '"1', 'a"b', "é", "1;2", " 1 ", "-0", "1.5"]
    ),
)  # fmt: skip
FILES = st.lists(st.lists(CELLS, min_size=2, max_size=4).map(",".join), max_size=6)


@given(st.lists(FILES, min_size=30, max_size=30))
def test_any_cells(tmp_path_factory: pytest.TempPathFactory, files: list[list[str]]) -> None:
    folder = tmp_path_factory.mktemp("cells")
    for number, lines in enumerate(files):
        text = "\n".join(["UserId,QuestionId,IsCorrect", *lines])
        (folder / f"pairs.{number}").write_text(text, encoding="utf-8")
    assert by_stand_ins(folder) == READING.read_files(folder)


@pytest.fixture(scope="module")
def inputs() -> dict[str, malformed.Input]:
    """Describe the files to `malformed`, by their kind."""
    target = schema.is_target("IsTarget_0")
    columns = {
        "pairs": (schema.USER_ID, schema.QUESTION_ID, schema.IS_CORRECT),
        "ranking": (schema.QUESTION_ID, schema.RANKING),
        "answers": (*schema.ANSWER_COLUMNS, target),
        "students": (schema.USER_ID, schema.GENDER, schema.DATE_OF_BIRTH, schema.PREMIUM_PUPIL),
        "subjects": (schema.SUBJECT_ID, schema.SUBJECT_NAME, schema.PARENT_ID, schema.LEVEL),
        "circumstances": (schema.ANSWER_ID_OR_EMPTY, schema.DATE_ANSWERED, schema.CONFIDENCE),
    }
    return {kind: describe(of_kind) for kind, of_kind in columns.items()}


def describe(columns: tuple[schema.Column, ...]) -> malformed.Input:
    raise NotImplementedError


Make = Callable[..., malformed.Input]
