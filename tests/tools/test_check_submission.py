"""Malformed submissions: each is refused with file, row and rule, by evaluation and checker alike.

The checker must name every fault, the evaluation the first of them, in the same words. Nothing is
ever scored or written then. How a CSV is read is tested in test_reading.py, a zip in test_zips.py.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import layout
from common.adaptive.entry_files import ENTRY_FILE
from common.errors import InputError
from tools.which_task import task_of

import pytest
from conftest import Write, run, succeeds
from page_reading import read_page
from toy_bundle import entry, write_zip

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

# The text of a CSV, or of the files in a zip by their names.
Content = str | dict[str, str]
# Runs evaluation or checker of a task on a submission: exit code, stdout, lines of stderr.
Submit = Callable[[str, int, str, Content], tuple[int, str, list[str]]]


# Name, task, content, and a part of each message that is expected.
CASES: list[tuple[Any, ...]] = [
    ("options beyond 1 to 4", 2, GOOD[2].replace("10,4", "10,0").replace("12,1", "12,5"),
     "column 'AnswerValue': row 2 is '0'; row 4 is '0'; row 5 is '5', expected a whole number fro"),
    ("everything at once", 1,
     "UserId,QuestionId,IsCorrect\n1,11,0\n2,10,maybe\n2,12\n3,11,0\n3,12,1\n1,11,0\n9,9,1\n",
     "row 4 has 2 columns, expected 3: '2,12'; is the file cut off?",
     "column 'IsCorrect': row 3 is 'maybe'",
     "row 7 repeats row 2: UserId 1 and QuestionId 11",
     "2 of 6 pairs are missing, first UserId 1 and QuestionId 10; UserId 2 and QuestionId 1",
     "1 rows hold pairs that are not in {reference}, first row 8 with UserId 9 and Questio"),
    ("ranks from 0 or left empty", 3, "QuestionId,ranking\n20,2\n21,0\n22,\n23,1\n",
     "'ranking': row 3 is '0'; row 4 is empty, expected a whole number from 1 to 2147483647"),
    ("question twice and one unknown", 3, "QuestionId,ranking\n20,3\n21,1\n77,4\n21,2\n",
     "column 'QuestionId': row 5 repeats 21 of row 3, expected each once",
     "column 'QuestionId': row 4 is 77, which is not in the template",
     "2 of 4 QuestionIds are missing, first 22, 23, expected every QuestionId of the templ"),
    ("zip of another task", 2, {"submission_task_1.csv": GOOD[1]},
     "holds submission_task_1.csv, expected only submission_task_2.csv",
     "submission_task_1.csv: column 'AnswerValue' is missing"),
    ("folder in the zip", 1, {"a/submission_task_1.csv": GOOD[1].replace("2,10,1", "2,10,2")},
     "holds a folder (a/submission_task_1.csv), expected only submission_task_1.csv",
     "column 'IsCorrect': row 4 is '2'"),
    ("rank twice", 3, {"submission_task_3.csv": GOOD[3].replace("22,4\n23,2", "22,3\n23,5")},
     "column 'ranking': row 5 is 5 (1 such rows), expected every rank from 1 to 4 once",
     "row 4 repeats rank 3 (1 such rows) and rank 2 is missing, expected every rank from 1 t"),
]  # fmt: skip


def put(path: Path, content: Content) -> Path:
    """Write a file, or a zip of files."""
    if isinstance(content, dict):
        return write_zip(path, content)
    path.write_text(content)
    return path


@pytest.fixture
def submit(tmp_path: Path, write: Write) -> Submit:
    given, folder = write("given/answers.csv", ANSWERS).parent, tmp_path / "submitted"
    write("given/template.csv", RANKING_TEMPLATE)
    write("given/judgements.csv", JUDGEMENTS)
    folder.mkdir()

    def run_on(program: str, task: int, name: str, content: Content) -> tuple[int, str, list[str]]:
        path = put(folder / name, content)
        template, answers = ("template", "judgements") if task == 3 else ("answers", "answers")
        which = ["--input_dir", given, "--submission_template_dir", given]
        which += ["--submission_template_file", f"{template}.csv"]
        if program == "evaluation":
            command = [f"task_{task}/local_evaluation.py", "--ref_data", f"{answers}.csv"]
            command += ["--submission_dir", folder, "--submit_data", name]
            command += ["--output_dir", tmp_path / "scores", *which[: None if task == 3 else 2]]
        else:
            command = ["-m", "tools.check_submission", path, "--task", task, *which]
            command += ["--train_data", "answers.csv" if task == 1 else "none.csv"]
        done = run(command)
        assert [entry.name for entry in folder.iterdir()] == [name], "left a file behind"
        path.unlink()
        return done.returncode, done.stdout, done.stderr.splitlines()

    return run_on


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_malformed_submissions(submit: Submit, tmp_path: Path, case: tuple[Any, ...]) -> None:
    _, task, content, *expected = case
    name = f"submission_task_{task}.csv" if isinstance(content, str) else "a.zip"
    code, out, lines = submit("checker", task, name, content)
    assert (code, out) == (2, "")
    assert len(lines) == len(expected), lines
    reference = tmp_path / "given/answers.csv"
    for line, part in zip(lines, expected, strict=True):
        assert line.startswith(f"error: {tmp_path / 'submitted' / name}")
        assert part.format(reference=reference) in line
    assert submit("evaluation", task, name, content) == (2, "", lines[:1])
    assert not (tmp_path / "scores").exists()


SUMMARIES = {
    1: ["6 rows: every pair of", "0 wrong 50.0% 33.3%", "1 right 50.0% 66.7%"],
    2: ["6 rows: every pair of", "1 16.7%", "2 16.7%", "3 33.3%", "4 33.3%"],
    3: ["4 rows: every question", "best QuestionId 21, 23, 20, 22", "worst QuestionId 21, 23, 20"],
}


@pytest.mark.parametrize("task", [1, 2, 3])
def test_well_formed_submissions_are_scored(submit: Submit, tmp_path: Path, task: int) -> None:
    """A later one that is malformed leaves no earlier score."""
    inside = {f"submission_task_{task}.csv": GOOD[task]}
    for name, content in (("mine.csv", GOOD[task]), ("mine.zip", inside)):
        code, out, lines = submit("checker", task, name, content)
        assert (code, lines) == (0, []) and f"valid for task {task}" in out
        said = "".join(f"\n{' '.join(line.split())}" for line in out.splitlines())
        assert all(f"\n{expected}" in said for expected in SUMMARIES[task]), said
        how = f"to upload: a zip that holds it as submission_task_{task}.csv"
        assert (how in out) == (name == "mine.csv")
        code, out, lines = submit("evaluation", task, name, content)
        assert (code, lines) == (0, []) and f"score {1 if task == 3 else 5 / 6:.4f}" in out
        phase = "_public" if task == 3 else ""
        written = sorted(path.name for path in (tmp_path / "scores").glob("scores_*"))
        assert written == [f"scores_task_{task}{phase}.{kind}" for kind in ("html", "txt")]
    assert submit("evaluation", task, "mine.csv", "UserId\n")[0] == 2
    assert not list((tmp_path / "scores").glob("scores_*"))


def test_rows_that_were_not_asked_for_are_counted_and_named(submit: Submit, tmp_path: Path) -> None:
    """The challenge's scorer ignores them; the checker does not, see above."""
    content = GOOD[1].replace("2,10,1\n", "\n7,98,0\n2,10,1\n") + "9,99,1\n"
    code, out, lines = submit("evaluation", 1, "submission_task_1.csv", content)
    # The standard error of three students with 1, 1 and 1/2 of two answers right.
    assert (code, lines, "score 0.8333 ± 0.1667 (accuracy on 6 pairs)" in out) == (0, [], True)
    named = f"2 rows hold pairs that are not in {tmp_path}/given/answers.csv, first row 5 with User"
    assert named in out and "QuestionId 98; UserId 9 and QuestionId 99: ignored" in out
    assert named in read_page((tmp_path / "scores/scores_task_1.html").read_text()).text


BROKEN = {
    ENTRY_FILE: "from common import io\nimport model, table, tools.blend\n",
    "model.py": "",
    "table.py": "rows = [1,\n2\n",
    "not_imported.py": "import common\n",
}


@pytest.mark.parametrize(
    ("files", "flags", "expected"),
    [
        # Weights are known by their names.
        ({**entry(), "model_task_4.pt": "", "w/model_task_4_a.npy": ""}, "", []),
        (BROKEN, "", [
            f"{ENTRY_FILE}: row 1 imports common, the kit's shared code, which is",
            f"{ENTRY_FILE}: row 2 imports tools, the kit's shared code, which is",
            "table.py: row 1 is not Python: '[' was never closed",
        ]),
        ({ENTRY_FILE: entry()[ENTRY_FILE].replace("update_model", "learn")}, "",
         ["starting Submission: class Submission has no method update_model"]),
        # It uses what it finds as an index, as one that embeds the options does.
        (entry(update="assert seen.min() >= 0"), "--unobserved 0 --targets_queryable", []),
        (entry(), "--time_limit 0.001", ["expected a whole game within 0.001 s"]),
    ],
)  # fmt: skip
def test_entries_of_task_4(
    files: dict[str, str], flags: str, expected: list[str], simulated_kit: Path, tmp_path: Path
) -> None:
    """What the game itself finds is tried in sandbox/test_isolated_entry.py."""
    path = write_zip(tmp_path / "submission_task_4.zip", files)
    done = run(["-m", "tools.check_submission", path, *flags.split()], kit=simulated_kit)
    assert done.returncode == (2 if expected else 0)
    assert ("valid for task 4" in done.stdout) == (not expected)
    for line, part in zip(done.stderr.splitlines(), expected, strict=True):
        assert line.startswith(f"error: {path}") and part in line


def test_the_name_tells_the_task_or_else_the_columns(tmp_path: Path) -> None:
    cases: list[tuple[str, Content, int]] = [
        ("submission_task_3.zip", "", 3),
        ("my_task_2_run_7.zip", "", 2),
        ("mine.csv", GOOD[1], 1),
        ("submission_task_1_2.csv", GOOD[2], 2),
        ("mine.zip", {"submission_task_3.csv": GOOD[3]}, 3),
        ("mine.zip", {"submission_model_task_4.py": ""}, 4),
    ]
    for name, content, task in cases:
        assert task_of(put(tmp_path / name, content)).number == task
    for name, content, expected in (
        ("mine.csv", ANSWERS, "does not tell the task: it has the columns"),
        ("mine.zip", {"mine.csv": GOOD[1]}, r"holds 'mine.csv', expected one of submission_task_1"),
    ):
        with pytest.raises(InputError, match=expected):
            task_of(put(tmp_path / name, content))
    # A slip in the name of a folder is named as such.
    with pytest.raises(InputError, match=r"task_4/nmpy: file not found"):
        task_of(layout.ROOT / "task_4/nmpy")


def test_a_submission_is_compared_with_files_of_its_own_split(scored_kit: Path) -> None:
    for file, template, train in (
        ("data/test_output/test_submission_task_1", "data/test_input/test_", "data/test_input"),
        ("submissions/submission_task_1", "submission_templates/", "data/train_data"),
    ):
        path = scored_kit / f"{file}.csv"
        out = succeeds(["-m", "tools.check_submission", path], kit=scored_kit)
        assert f"every pair of {template}submission_task_1_2.csv once" in out
        assert f"predicted   {train}/train_task_1_2.csv" in out
        assert (f"to upload: {file}.zip" in out) == ("to upload" in out) == ("/test_" not in file)
