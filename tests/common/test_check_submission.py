"""Malformed submissions: each is refused with file, row and rule, by evaluation and checker alike.

The checker must name every fault, the evaluation the first of them, in the same words. Nothing is
ever scored or written then.
"""

import io
import runpy
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from common import check_submission, layout, schema
from common.errors import InputError

ROOT = Path(__file__).resolve().parents[2]

ANSWERS = """UserId,QuestionId,IsCorrect,AnswerValue
1,10,1,4
1,11,0,3
2,10,1,4
2,12,0,1
3,11,1,2
3,12,1,2
"""
GOOD = {
    1: "UserId,QuestionId,IsCorrect\n1,10,1\n1,11,0\n2,10,1\n2,12,0\n3,11,0\n3,12,1\n",
    2: "UserId,QuestionId,AnswerValue\n1,10,4\n1,11,3\n2,10,4\n2,12,1\n3,11,2\n3,12,3\n",
    3: "QuestionId,ranking\n20,3\n21,1\n22,4\n23,2\n",
}
RANKING_TEMPLATE = "QuestionId,ranking\n20,\n21,\n22,\n23,\n"
JUDGEMENTS = ",left,right,T1_ALR,T2_CL,T3_GF,T4_MQ,T5_NS\n0,20,21,1,2,,1,2\n1,22,23,2,2,1,,1\n"

Run = Callable[..., tuple[int, str, list[str]]]


def good(task: int, *changes: tuple[str, str]) -> str:
    text = GOOD[task]
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def zipped(**members: str | bytes) -> bytes:
    """Make a zip; in the names, __ is a / and _DOT_ a dot."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/").replace("_DOT_", "."), content)
    return buffer.getvalue()


def damaged(content: bytes) -> bytes:
    """Change bytes in the middle of the compressed content of a zip."""
    start = content.index(b"csv") + 3
    return (
        content[:start]
        + bytes(byte ^ 0x55 for byte in content[start : start + 8])
        + (content[start + 8 :])
    )


@dataclass(frozen=True)
class Case:
    """A malformed submission: task, name, content, and a part of each message that is expected."""

    task: int
    content: str | bytes
    expected: tuple[str, ...]
    name: str = ""

    @property
    def file(self) -> str:
        return self.name or f"submission_task_{self.task}.csv"


def case(task: int, content: str | bytes, *expected: str, name: str = "") -> Case:
    return Case(task, content, expected, name)


ZIP_1 = zipped(submission_task_1_DOT_csv=GOOD[1])
CASES = {
    # The file
    "empty": case(1, "", "is empty, expected a header with column names in row 1"),
    "blank": case(1, "\n\n", "is empty, expected a header"),
    "header only": case(1, "UserId,QuestionId,IsCorrect\n", "holds a header but no rows"),
    "no header": case(1, GOOD[1].partition("\n")[2], "column '1' appears twice in row 1"),
    "not text": case(1, b"PK\xff\xfe\x00\x01", "row 1 is not UTF-8 text, expected CSV"),
    "a row is not text": case(
        1, good(1, ("2,10", "\udcff,10")).encode(errors="surrogateescape"),
        "column 'UserId': row 4 is not UTF-8 text",
    ),
    "UTF-16": case(1, GOOD[1].encode("utf-16"), "row 1 is not UTF-8 text"),
    "separated by semicolons": case(
        1,
        GOOD[1].replace(",", ";"),
        "column 'UserId' is missing, found: UserId;QuestionId;IsCorrect",
        "column 'QuestionId' is missing",
        "column 'IsCorrect' is missing",
    ),
    # The columns
    "column named otherwise": case(
        1, good(1, ("IsCorrect", "is_correct")),
        "column 'IsCorrect' is missing, found: UserId, QuestionId, is_correct; is it 'is_correct'?",
    ),
    "column of another task": case(
        2, GOOD[1], "column 'AnswerValue' is missing, found: UserId, QuestionId, IsCorrect"
    ),
    "two columns missing": case(
        1, good(1, ("UserId", "Student"), ("IsCorrect", "Right")),
        "column 'UserId' is missing", "column 'IsCorrect' is missing",
    ),
    "column twice": case(
        1, good(1, ("UserId,QuestionId", "UserId,UserId")), "column 'UserId' appears twice in row 1"
    ),
    "ranking under another name": case(
        3, good(3, ("ranking", "rank")), "column 'ranking' is missing, found: QuestionId, rank"
    ),
    # The values
    "text for a number": case(
        1, good(1, ("2,10,1", "2,10,yes")),
        "column 'IsCorrect': row 4 is 'yes', expected a whole number from 0 to 1",
    ),
    "NaN": case(1, good(1, ("2,10,1", "2,10,NaN")), "column 'IsCorrect': row 4 is 'NaN', expected"),
    "nothing": case(1, good(1, ("2,10,1", "2,10,")), "column 'IsCorrect': row 4 is empty, exp"),
    "probability": case(
        1, good(1, ("2,10,1", "2,10,0.7"), ("3,12,1", "3,12,0.2")),
        "column 'IsCorrect': row 4 is '0.7'; row 7 is '0.2', expected a whole number from 0 to 1",
    ),
    "infinity": case(1, good(1, ("2,10,1", "2,10,inf")), "row 4 is 'inf'"),
    "true and false for an option": case(
        2, good(2, ("2,12,1", "2,12,True")), "column 'AnswerValue': row 5 is 'True', expected",
    ),
    "after blank lines": case(
        1, "\n\n".join(good(1, ("2,10,1", "2,10,x")).splitlines()) + "\n\n",
        "column 'IsCorrect': row 7 is 'x'",
    ),
    "hexadecimal": case(1, good(1, ("2,10,1", "2,0xa,1")), "'QuestionId': row 4 is '0xa'",
                        "1 of 6 pairs are missing"),
    "NUL byte": case(2, good(2, ("2,10,4", "2,10,4\0")), "row 4 holds a NUL byte: '2,10,4\\x00'"),
    "an option of 0": case(
        2, good(2, ("2,10,4", "2,10,0")),
        "column 'AnswerValue': row 4 is '0', expected a whole number from 1 to 4",
    ),
    "an option of 5": case(2, good(2, ("2,10,4", "2,10,5")), "row 4 is '5', expected a whole"),
    "option letters": case(2, good(2, ("2,10,4", "2,10,D")), "row 4 is 'D', expected a whole"),
    "negative student": case(
        1, good(1, ("2,10,1", "-2,10,1")),
        "column 'UserId': row 4 is '-2', expected a whole number of at least 0",
        "1 of 6 pairs are missing, first UserId 2 and QuestionId 10",
    ),
    "huge question": case(
        1, good(1, ("2,10,1", "2,99999999999,1")),
        "column 'QuestionId': row 4 is '99999999999', expected a whole number from 0 to 9999999",
        "1 of 6 pairs are missing",
    ),
    "two numbers in a cell": case(
        1, good(1, ("2,10,1", "2 3,10,1")), "column 'UserId': row 4 is '2 3'", "1 of 6 pairs are"
    ),
    # The rows
    "cut off in a row": case(
        1, GOOD[1][:-4],
        "row 7 has 2 columns, expected 3: '3,1'; is the file cut off?",
        "1 of 6 pairs are missing, first UserId 3 and QuestionId 12",
    ),
    "too many columns in a row": case(
        1, good(1, ("2,10,1", "2,10,1,1"), ("3,11,0", "3,11,0,0")),
        "row 4 has 4 columns, expected 3: '2,10,1,1' (2 such rows); is the file cut off?",
        "2 of 6 pairs are missing, first UserId 2 and QuestionId 10; UserId 3 and QuestionId 11",
    ),
    "pair missing": case(
        1, good(1, ("2,10,1\n", "")),
        "1 of 6 pairs are missing, first UserId 2 and QuestionId 10, expected every pair of",
    ),
    "pair too many and one missing": case(
        1, good(1, ("2,10,1\n", "")) + "9,99,1\n",
        "1 of 6 pairs are missing, first UserId 2 and QuestionId 10",
        "1 rows hold pairs that are not in {reference}, first row 7 with UserId 9",
    ),
    "pair twice": case(
        1, GOOD[1] + "1,11,1\n", "row 8 repeats row 3: UserId 1 and QuestionId 11 (1 repeated rows)"
    ),
    "pair twice for another": case(
        2, good(2, ("2,12,1", "1,11,3")),
        "row 5 repeats row 3: UserId 1 and QuestionId 11",
        "1 of 6 pairs are missing, first UserId 2 and QuestionId 12",
    ),
    "columns swapped": case(
        1, good(1, ("UserId,QuestionId", "QuestionId,UserId")),
        "6 of 6 pairs are missing", "6 rows hold pairs that are not in {reference}, first row 2",
    ),
    "everything at once": case(
        1,
        good(1, ("1,10,1\n", ""), ("2,10,1", "2,10,maybe"), ("2,12,0", "2,12")) + "1,11,0\n9,9,1\n",
        "row 4 has 2 columns, expected 3",
        "column 'IsCorrect': row 3 is 'maybe'",
        "row 7 repeats row 2: UserId 1 and QuestionId 11",
        "2 of 6 pairs are missing, first UserId 1 and QuestionId 10; UserId 2 and QuestionId 12",
        "1 rows hold pairs that are not in {reference}, first row 8 with UserId 9 and QuestionId 9",
    ),
    # The ranking
    "rank twice": case(
        3, good(3, ("22,4", "22,2")),
        "column 'ranking': row 5 repeats rank 2 (1 such rows) and rank 4 is missing, expected "
        "every rank from 1 to 4 once",
    ),
    "ranks from 0": case(
        3, "QuestionId,ranking\n20,2\n21,0\n22,3\n23,1\n",
        "column 'ranking': row 3 is '0', expected a whole number of at least 1",
    ),
    "rank too large": case(
        3, good(3, ("22,4", "22,5")),
        "column 'ranking': row 4 is 5 (1 such rows), expected every rank from 1 to 4 once",
    ),
    "ranks with fractions": case(3, good(3, ("22,4", "22,3.5")), "'ranking': row 4 is '3.5'"),
    "ranks left empty": case(
        3, RANKING_TEMPLATE, "row 2 is empty; row 3 is empty; row 4 is empty and 1 more rows"
    ),
    "question missing": case(
        3, "QuestionId,ranking\n20,3\n21,1\n23,2\n",
        "1 of 4 questions are missing, first QuestionId 22",
    ),
    "question unknown": case(
        3, good(3, ("22,4", "77,4")),
        "1 of 4 questions are missing, first QuestionId 22",
        "column 'QuestionId': row 4 is 77, which is not in the template (1 such rows)",
    ),
    "question twice": case(
        3, good(3, ("23,2", "21,2")),
        "column 'QuestionId': row 5 repeats 21 (1 such rows), expected each once",
        "1 of 4 questions are missing, first QuestionId 23",
    ),
    # The zip
    "zip that is none": case(1, GOOD[1], "is not a zip file, or is cut off", name="a.zip"),
    "zip cut off": case(1, ZIP_1[:-30], "is not a zip file, or is cut off", name="a.zip"),
    "zip damaged": case(1, damaged(ZIP_1), "damaged", name="a.zip"),
    "zip that is empty": case(
        1, zipped(), "holds 0 files (nothing), expected only submission_task_1.csv", name="a.zip"
    ),
    "wrong name in the zip": case(
        1, zipped(my_entry_DOT_csv=GOOD[1]),
        "holds my_entry.csv, expected only submission_task_1.csv at the top level", name="a.zip",
    ),
    "name of another task in the zip": case(
        2, zipped(submission_task_1_DOT_csv=GOOD[1]),
        "holds submission_task_1.csv, expected only submission_task_2.csv",
        "submission_task_1.csv: column 'AnswerValue' is missing", name="a.zip",
    ),
    "folder in the zip": case(
        1, zipped(entry__submission_task_1_DOT_csv=good(1, ("2,10,1", "2,10,2"))),
        "holds a folder (entry/submission_task_1.csv), expected only submission_task_1.csv",
        "column 'IsCorrect': row 4 is '2'", name="a.zip",
    ),
    "zip in the zip": case(
        1, zipped(submission_task_1_DOT_zip=ZIP_1),
        "holds another zip (submission_task_1.zip)", name="a.zip",
    ),
    "two files in the zip": case(
        1, zipped(submission_task_1_DOT_csv=GOOD[1], readme_DOT_txt="hello"),
        "holds 2 files (submission_task_1.csv, readme.txt), expected only", name="a.zip",
    ),
    "faults inside the zip": case(
        3, zipped(submission_task_3_DOT_csv=good(3, ("22,4", "22,2"), ("20,3", "20,x"))),
        "a.zip/submission_task_3.csv: column 'ranking': row 2 is 'x'",
        "row 5 repeats rank 2", name="a.zip",
    ),
}  # fmt: skip


@pytest.fixture
def submitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Run evaluation or checker on a submission; return exit code, stdout, lines of stderr."""

    def run_main(
        program: str, task: int, name: str, content: str | bytes
    ) -> tuple[int, str, list[str]]:
        given = tmp_path / "given"
        given.mkdir(exist_ok=True)
        (given / "answers.csv").write_text(ANSWERS)
        (given / "template.csv").write_text(RANKING_TEMPLATE)
        (given / "judgements.csv").write_text(JUDGEMENTS)
        folder = tmp_path / "submitted"
        folder.mkdir(exist_ok=True)
        path = folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        template = "template.csv" if task == 3 else "answers.csv"
        flags = ["--submission_template_dir", str(given), "--submission_template_file", template]
        if program == "evaluation":
            script = str(ROOT / f"task_{task}" / "local_evaluation.py")
            reference = "judgements.csv" if task == 3 else "answers.csv"
            arguments = ["--input_dir", str(given), "--ref_data", reference]
            arguments += ["--submission_dir", str(folder), "--submit_data", name]
            arguments += ["--output_dir", str(tmp_path / "scores")]
            arguments += flags if task == 3 else []
        else:
            script = check_submission.__file__
            arguments = [str(path), "--task", str(task), *flags, "--input_dir", str(given)]
        monkeypatch.setattr(sys, "argv", [script, *arguments])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(script, run_name="__main__")
        out, err = capsys.readouterr()
        assert {entry.name for entry in folder.iterdir()} == {name}, "left a file behind"
        code = ended.value.code
        assert isinstance(code, int)
        return code, out, err.splitlines()

    return run_main


def test_there_are_at_least_40_malformed_submissions() -> None:
    assert len(CASES) >= 40


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_malformed_submissions_are_refused(submitted: Run, tmp_path: Path, case: Case) -> None:
    code, out, lines = submitted("checker", case.task, case.file, case.content)
    assert (code, out) == (2, "")
    assert len(lines) == len(case.expected), lines
    reference = tmp_path / "given" / "answers.csv"
    for line, expected in zip(lines, case.expected, strict=True):
        assert line.startswith(f"error: {tmp_path / 'submitted' / case.file}")
        assert expected.format(reference=reference) in line

    code, out, evaluation_lines = submitted("evaluation", case.task, case.file, case.content)
    assert (code, out) == (2, "")
    assert evaluation_lines == lines[:1]
    assert not (tmp_path / "scores").exists()


def test_true_and_false_are_1_and_0(submitted: Run) -> None:
    content = GOOD[1].replace(",1\n", ",True\n").replace(",0\n", ",FALSE\n")
    assert content.count("True") + content.count("FALSE") == 6
    outputs = []
    for text in (GOOD[1], content):
        for program in ("checker", "evaluation"):
            code, out, lines = submitted(program, 1, "submission_task_1.csv", text)
            assert (code, lines) == (0, [])
            outputs.append(out)
    assert outputs[:2] == outputs[2:]


def test_rows_that_were_not_asked_for_are_counted_and_named(submitted: Run, tmp_path: Path) -> None:
    """The challenge's scorer ignores them; an upload must have none."""
    content = GOOD[1].replace("2,10,1\n", "\n7,98,0\n2,10,1\n") + "9,99,1\n"
    code, out, lines = submitted("evaluation", 1, "submission_task_1.csv", content)
    assert (code, lines) == (0, [])
    # The standard error of three students with 1, 1 and 1/2 of two answers right.
    assert "score 0.8333 ± 0.1667 (accuracy on 6 pairs)" in out
    reference = tmp_path / "given/answers.csv"
    named = f"2 rows hold pairs that are not in {reference}, first row 5 with UserId 7 and"
    assert f"{named} QuestionId 98; UserId 9 and QuestionId 99: ignored" in out
    page = (tmp_path / "scores/scores_task_1.html").read_text()
    assert named in page.replace("<wbr>", "")
    code, out, lines = submitted("checker", 1, "submission_task_1.csv", content)
    assert (code, out) == (2, "")
    assert [named in line for line in lines] == [True]


@pytest.mark.parametrize("task", [1, 2, 3])
def test_a_failed_evaluation_leaves_no_earlier_score(
    submitted: Run, tmp_path: Path, task: int
) -> None:
    name = f"submission_task_{task}.csv"
    assert submitted("evaluation", task, name, GOOD[task])[0] == 0
    assert len(list((tmp_path / "scores").glob(f"scores_task_{task}*"))) == 2
    assert submitted("evaluation", task, name, "UserId\n")[0] == 2
    assert not list((tmp_path / "scores").glob("scores_task_*"))


@pytest.mark.parametrize("task", [1, 2, 3])
@pytest.mark.parametrize("kind", ["csv", "zip"])
def test_well_formed_submissions_are_valid_and_scored(
    submitted: Run, tmp_path: Path, task: int, kind: str
) -> None:
    content: str | bytes = GOOD[task]
    if kind == "zip":
        content = zipped(**{f"submission_task_{task}_DOT_csv": content})
    code, out, lines = submitted("checker", task, f"mine.{kind}", content)
    assert (code, lines) == (0, [])
    assert f"valid for task {task}" in out
    assert ("to upload: a zip that holds it as" in out) == (kind == "csv")
    code, out, lines = submitted("evaluation", task, f"mine.{kind}", content)
    assert (code, lines) == (0, [])
    assert "score 0.8333" in out if task < 3 else "score 1.0000" in out
    assert (tmp_path / "scores" / f"scores_task_{task}{'_public' * (task == 3)}.txt").exists()


ENTRY = """
import numpy as np
class Submission:
    def select_feature(self, masked_data, masked_binary_data, can_query):
        return can_query.argmax(axis=1)
    def update_model(self, masked_data, masked_binary_data, can_query):
        pass
    def predict(self, masked_data, masked_binary_data):
        return np.ones(masked_data.shape)
"""
FAULTY_ENTRY = """
import numpy as np
from common.answers import Answers
import model, table
class Submission:
    def select_questions(self, masked_data, masked_binary_data, can_query):
        return can_query.argmax(axis=1)
    def forecast(self, masked_data, masked_binary_data):
        return 1
"""
# It uses what it finds as an index, as one that embeds the options does.
FOR_ZEROS = ENTRY.replace(
    "        pass",
    "        if masked_data.min() < 0: raise IndexError('index -1 is out of bounds')",
)
ENTRIES: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "published style": ({"submission_model_task_4.py": ENTRY}, ()),
    "all faults at once": (
        {
            "submission_model_task_4.py": FAULTY_ENTRY,
            "model.py": "class Model:\n    pass\n",
            "table.py": "rows = [1,\n2\n",
            "not_imported.py": "import common\n",
        },
        (
            "submission_model_task_4.py: row 3 imports common, the kit's shared code, which is",
            "table.py: row 1 is not Python: '[' was never closed",
            "submission_model_task_4.py: row 5: class Submission has no method update_model",
            "submission_model_task_4.py: row 5: class Submission has no method predict",
        ),
    ),
    "probabilities": (
        {"submission_model_task_4.py": ENTRY.replace("np.ones(", "0.7 * np.ones(")},
        ("after round 10, predict: student 0 (UserId ",),
    ),
    "another class": (
        {"submission_model_task_4.py": ENTRY.replace("class Submission", "class Entry")},
        ("has no class Submission",),
    ),
    "in a folder": (
        {"entry/submission_model_task_4.py": ENTRY},
        ("holds a folder (entry/submission_model_task_4.py), expected submission_model_task_4.py",),
    ),
    "no entry": ({"model.py": "x = 1"}, ("holds no submission_model_task_4.py",)),
    "weights by their rule": (
        {"submission_model_task_4.py": ENTRY, "model_task_4.pt": "", "w/model_task_4_a.npy": ""},
        (),
    ),
    "weights by another name": (
        {"submission_model_task_4.py": ENTRY, "weights.pt": "", "w/model.npy": "", "a/b.py": ""},
        (
            "submission_task_4.zip/w/model.npy: is neither Python nor called model_task_4…",
            "submission_task_4.zip/weights.pt: is neither Python nor called model_task_4…",
        ),
    ),
    "written for zeros": (
        {"submission_model_task_4.py": FOR_ZEROS},
        ("; an entry written for 0 as unobserved needs --unobserved 0",),
    ),
}


@pytest.mark.parametrize(("files", "expected"), ENTRIES.values(), ids=ENTRIES.keys())
def test_entries_of_task_4(
    files: dict[str, str],
    expected: tuple[str, ...],
    simulated_kit: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "submission_task_4.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    train = simulated_kit / "data" / "train_data"
    monkeypatch.setattr(sys, "argv", ["check_submission", str(path), "--input_dir", str(train)])
    if not expected:
        check_submission.main()
        assert "valid for task 4" in capsys.readouterr().out
        return
    with pytest.raises(SystemExit) as ended:
        check_submission.main()
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (2, "")
    lines = err.splitlines()
    assert len(lines) == len(expected), lines
    for line, part in zip(lines, expected, strict=True):
        assert line.startswith(f"error: {path}")
        assert part in line


def test_shares_are_compared_with_the_training_answers(tmp_path: Path) -> None:
    train = tmp_path / "train.csv"
    train.write_text("UserId,QuestionId,IsCorrect\n1,1,1\n1,2,1\n1,3,1\n2,1,0\n")
    lines = check_submission.compare_shares(np.array([0, 1]), schema.IS_CORRECT, train)
    assert [line.split() for line in lines[1:]] == [
        ["0", "wrong", "50.0%", "25.0%"],
        ["1", "right", "50.0%", "75.0%"],
    ]
    lines = check_submission.compare_shares(np.array([2]), schema.ANSWER_VALUE, tmp_path / "no")
    assert [line.split() for line in lines[1:]] == [
        ["1", "0.0%"], ["2", "100.0%"], ["3", "0.0%"], ["4", "0.0%"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("submission_task_1.csv", 1),
        ("test_submission_task_2.csv", 2),
        ("submission_task_3.zip", 3),
        ("my_task_2_run_7.zip", 2),
    ],
)
def test_the_name_tells_the_task(name: str, task: int) -> None:
    assert check_submission.guess_task(Path(name)) == task


@pytest.mark.parametrize("name", ["mine.csv", "submission_task_1_2.csv", "task_12.csv"])
def test_a_name_may_not_tell_the_task(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(InputError, match="--task"):
        check_submission.guess_task(tmp_path / name)


def test_a_slip_in_the_name_of_a_folder_is_named_as_such() -> None:
    with pytest.raises(InputError, match=r"task_4/nmpy: file not found"):
        check_submission.guess_task(layout.ROOT / "task_4/nmpy")


def test_the_local_split_is_known_by_name() -> None:
    assert check_submission.is_local(Path(layout.local_submission_name(1)))
    assert not check_submission.is_local(Path(layout.submission_name(1)))


def test_the_flags_of_the_evaluation_are_there(
    simulated_kit: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An entry written for 0 as unobserved is valid with that reading; limits hold here too."""
    (tmp_path / "submission_model_task_4.py").write_text(FOR_ZEROS)
    train = simulated_kit / "data" / "train_data"
    command = ["check_submission", str(tmp_path), "--input_dir", str(train)]
    monkeypatch.setattr(sys, "argv", [*command, "--unobserved", "0", "--targets_queryable"])
    check_submission.main()
    assert "valid for task 4" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", [*command, "--unobserved", "0", "--time_limit", "0.001"])
    with pytest.raises(SystemExit) as ended:
        check_submission.main()
    assert ended.value.code == 2
    assert "expected a whole game within 0.001 s" in capsys.readouterr().err
