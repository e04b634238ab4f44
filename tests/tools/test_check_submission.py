"""The checker and the evaluation refuse a malformed submission with file, row and rule.

The checker must name every fault, and the evaluation the first one in the same words. For a
malformed submission nothing is scored or written. `test_reading.py` tests how a CSV is read,
`test_zips.py` how a zip is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from common import layout
from common.adaptive.entry_files import ENTRY_FILE
from common.errors import InputError
from tools.which_task import task_of

import pytest
from conftest import Write, fails, run, succeeds
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

# The content of a submission: the text of a CSV, or for a zip the texts of its files by name.
Content = str | dict[str, str]


@dataclass(frozen=True)
class Ended:
    """How the checker or the evaluation has ended."""

    code: int
    stdout: str
    # The lines of stderr.
    errors: list[str]


# The type of the function that the fixture `submit` returns. The arguments are the program
# ("evaluation" or "checker"), the task, and the name and the content of a submission.
Submit = Callable[[str, int, str, Content], Ended]


@dataclass(frozen=True)
class Malformed:
    """A malformed submission and the faults that the checker must name."""

    task: int
    content: Content
    # A part of each message, in the order of the messages. {reference} stands for the path of the
    # file of answers.
    messages: list[str]


MALFORMED = {
    "options beyond 1 to 4": Malformed(
        2,
        GOOD[2].replace("10,4", "10,0").replace("12,1", "12,5"),
        [
            "column 'AnswerValue': row 2 is '0'; row 4 is '0'; row 5 is '5', "
            "expected a whole number fro"
        ],
    ),
    "everything at once": Malformed(
        1,
        "UserId,QuestionId,IsCorrect\n1,11,0\n2,10,maybe\n2,12\n3,11,0\n3,12,1\n1,11,0\n9,9,1\n",
        [
            "row 4 has 2 columns, expected 3: '2,12'; is the file cut off?",
            "column 'IsCorrect': row 3 is 'maybe'",
            "row 7 repeats row 2: UserId 1 and QuestionId 11",
            "2 of 6 pairs are missing, first UserId 1 and QuestionId 10; UserId 2 and QuestionId 1",
            "1 rows hold pairs that are not in {reference}, first row 8 with UserId 9 and Questio",
        ],
    ),
    "ranks from 0 or left empty": Malformed(
        3,
        "QuestionId,ranking\n20,2\n21,0\n22,\n23,1\n",
        ["'ranking': row 3 is '0'; row 4 is empty, expected a whole number from 1 to 2147483647"],
    ),
    "question twice and one unknown": Malformed(
        3,
        "QuestionId,ranking\n20,3\n21,1\n77,4\n21,2\n",
        [
            "column 'QuestionId': row 5 repeats 21 of row 3, expected each once",
            "column 'QuestionId': row 4 is 77, which is not in the template",
            "2 of 4 QuestionIds are missing, first 22, 23, expected every QuestionId of the templ",
        ],
    ),
    "column in other letter case": Malformed(
        3,
        GOOD[3].replace("ranking", "Ranking"),
        [
            "column 'ranking' is missing, found: QuestionId, Ranking; rename the column 'Ranking' "
            "to 'ranking'"
        ],
    ),
    "zip of another task": Malformed(
        2,
        {"submission_task_1.csv": GOOD[1]},
        [
            "holds submission_task_1.csv, expected only submission_task_2.csv",
            "submission_task_1.csv: column 'AnswerValue' is missing",
        ],
    ),
    "folder in the zip": Malformed(
        1,
        {"a/submission_task_1.csv": GOOD[1].replace("2,10,1", "2,10,2")},
        [
            "holds a folder (a/submission_task_1.csv), expected only submission_task_1.csv",
            "column 'IsCorrect': row 4 is '2'",
        ],
    ),
    "rank twice": Malformed(
        3,
        {"submission_task_3.csv": GOOD[3].replace("22,4\n23,2", "22,3\n23,5")},
        [
            "column 'ranking': row 5 is 5 (1 such rows), expected every rank from 1 to 4 once",
            "row 4 repeats rank 3 (1 such rows) and rank 2 is missing, "
            "expected every rank from 1 t",
        ],
    ),
}


def put(path: Path, content: Content) -> Path:
    """Write the content to a CSV or a zip; return its path."""
    if isinstance(content, dict):
        return write_zip(path, content)
    path.write_text(content)
    return path


@pytest.fixture
def submit(tmp_path: Path, write: Write) -> Submit:
    """Return a function that runs the evaluation or the checker on a submission.

    The function writes the submission first and removes it at the end.
    """
    write("given/answers.csv", ANSWERS)
    write("given/template.csv", RANKING_TEMPLATE)
    write("given/judgements.csv", JUDGEMENTS)
    submission_dir = tmp_path / "submitted"
    submission_dir.mkdir()

    def run_on(program: str, task: int, name: str, content: Content) -> Ended:
        """Write a submission, run the program on it, and remove the submission."""
        path = put(submission_dir / name, content)
        if program == "evaluation":
            command = evaluation_command(task, path, tmp_path)
        else:
            command = checker_command(task, path, tmp_path)
        done = run(command)
        assert [file.name for file in submission_dir.iterdir()] == [name], "left a file behind"
        path.unlink()
        return Ended(done.returncode, done.stdout, done.stderr.splitlines())

    return run_on


def evaluation_command(task: int, submission: Path, folder: Path) -> list[object]:
    """Return the command that scores a submission with the files in the subfolder `given`."""
    input_dir = folder / "given"
    answers = "judgements.csv" if task == 3 else "answers.csv"
    command: list[object] = [f"task_{task}/local_evaluation.py", "--ref_data", answers]
    command += ["--input_dir", input_dir, "--output_dir", folder / "scores"]
    command += ["--submission_dir", submission.parent, "--submit_data", submission.name]
    if task == 3:
        command += ["--submission_template_dir", input_dir]
        command += ["--submission_template_file", "template.csv"]
    return command


def checker_command(task: int, submission: Path, folder: Path) -> list[object]:
    """Return the command that checks a submission with the files in the subfolder `given`."""
    input_dir = folder / "given"
    # In tasks 1 and 2, the file of answers is also used as the template, because it holds the same
    # pairs of student and question.
    template = "template.csv" if task == 3 else "answers.csv"
    # The checker must also work without training answers. So the command names a file of training
    # answers that does not exist, except in task 1.
    train_data = "answers.csv" if task == 1 else "none.csv"
    command: list[object] = ["-m", "tools.check_submission", submission]
    command += ["--task", task, "--input_dir", input_dir, "--train_data", train_data]
    command += ["--submission_template_dir", input_dir, "--submission_template_file", template]
    return command


@pytest.mark.parametrize("case", MALFORMED.values(), ids=MALFORMED.keys())
def test_the_checker_names_every_fault_and_the_evaluation_the_first_one(
    submit: Submit, tmp_path: Path, case: Malformed
) -> None:
    """Both programs get a malformed submission; `case.messages` are the expected messages in order.

    Neither program prints a result, and the evaluation writes no scores.
    """
    is_csv = isinstance(case.content, str)
    name = f"submission_task_{case.task}.csv" if is_csv else "a.zip"

    checked = submit("checker", case.task, name, case.content)
    assert checked.code == 2
    assert checked.stdout == ""
    assert len(checked.errors) == len(case.messages), checked.errors
    for error, message in zip(checked.errors, case.messages, strict=True):
        assert error.startswith(f"error: {tmp_path / 'submitted' / name}")
        # A message may name the file of answers.
        assert message.format(reference=tmp_path / "given/answers.csv") in error

    evaluated = submit("evaluation", case.task, name, case.content)
    assert evaluated.code == 2
    assert evaluated.stdout == ""
    assert evaluated.errors == checked.errors[:1]
    assert not (tmp_path / "scores").exists()


# Lines of the summary that the checker prints for each of the `GOOD` submissions, with single
# blanks between the columns of tables.
SUMMARIES = {
    1: ["6 rows: every pair of", "0 wrong 50.0% 33.3%", "1 right 50.0% 66.7%"],
    2: ["6 rows: every pair of", "1 16.7%", "2 16.7%", "3 33.3%", "4 33.3%"],
    3: ["4 rows: every question", "best QuestionId 21, 23, 20, 22", "worst QuestionId 21, 23, 20"],
}


# The names of well-formed submissions: a CSV, and a zip that holds it.
as_csv_and_as_zip = pytest.mark.parametrize("name", ["mine.csv", "mine.zip"])


def good_content(task: int, name: str) -> Content:
    """Return the content of a well-formed submission called mine.csv or mine.zip."""
    if name == "mine.csv":
        return GOOD[task]
    return {f"submission_task_{task}.csv": GOOD[task]}


@pytest.mark.parametrize("task", [1, 2, 3])
@as_csv_and_as_zip
def test_the_checker_summarises_well_formed_submissions(
    submit: Submit, task: int, name: str
) -> None:
    """The checker shows the predictions of a submission in lines that begin as in `SUMMARIES`.

    For a CSV, the checker also says how to make a zip to upload. A zip can be uploaded as it is.
    """
    checked = submit("checker", task, name, good_content(task, name))
    assert checked.code == 0
    assert checked.errors == []
    assert f"valid for task {task}" in checked.stdout
    lines = [" ".join(line.split()) for line in checked.stdout.splitlines()]
    for begin_of_line in SUMMARIES[task]:
        assert any(line.startswith(begin_of_line) for line in lines), lines
    says_how_to_upload = (
        f"to upload: a zip that holds it as submission_task_{task}.csv" in checked.stdout
    )
    assert says_how_to_upload == (name == "mine.csv")


@pytest.mark.parametrize("task", [1, 2, 3])
@as_csv_and_as_zip
def test_the_evaluation_scores_well_formed_submissions(
    submit: Submit, tmp_path: Path, task: int, name: str
) -> None:
    evaluated = submit("evaluation", task, name, good_content(task, name))
    # Five of the six predictions of tasks 1 and 2 are right.
    score = 1 if task == 3 else 5 / 6
    assert evaluated.code == 0
    assert evaluated.errors == []
    assert f"score {score:.4f}" in evaluated.stdout
    written = sorted(path.name for path in (tmp_path / "scores").glob("scores_*"))
    assert written == [f"scores_task_{task}_own.html", f"scores_task_{task}_own.txt"]


@pytest.mark.parametrize("task", [1, 2, 3])
def test_a_malformed_submission_removes_the_score_of_an_earlier_one(
    submit: Submit, tmp_path: Path, task: int
) -> None:
    assert submit("evaluation", task, "mine.csv", GOOD[task]).code == 0
    assert submit("evaluation", task, "mine.csv", "UserId\n").code == 2
    assert not list((tmp_path / "scores").glob("scores_*"))


@pytest.mark.parametrize(
    ("task", "rows", "changed_rows"),
    [(1, "1,11,0", "1,11,1"), (2, "1,11,3", "1,11,4"), (3, "20,3\n21,1", "20,1\n21,3")],
)
def test_a_csv_that_differs_from_the_zip_beside_it_is_not_valid(
    tmp_path: Path, write: Write, task: int, rows: str, changed_rows: str
) -> None:
    """Users upload the zip, so the CSV beside it must be the same.

    First the CSV and the zip are the same. Then some rows of the CSV are changed.
    """
    # In tasks 1 and 2, the file of answers is also used as the template, because it holds the same
    # pairs of student and question.
    write("template.csv", RANKING_TEMPLATE if task == 3 else ANSWERS)
    write_zip(tmp_path / "mine.zip", {f"submission_task_{task}.csv": GOOD[task]})
    csv = write("mine.csv", GOOD[task])
    template = ["--submission_template_dir", tmp_path, "--submission_template_file", "template.csv"]
    check = ["-m", "tools.check_submission", csv, "--task", task, *template]
    assert f"to upload: {tmp_path / 'mine.zip'}" in succeeds(check)

    write("mine.csv", GOOD[task].replace(rows, changed_rows))
    error = fails(check)

    assert error.startswith(f"{csv}: differs from submission_task_{task}.csv in mine.zip")


def test_the_evaluation_counts_and_names_rows_that_were_not_asked_for(
    submit: Submit, tmp_path: Path
) -> None:
    """A submission has the six pairs of the file of answers, and two rows for other pairs.

    The evaluation ignores the two rows, as the challenge's scorer does. Only the checker refuses
    them.
    """
    # The rows of students 7 and 9 are for the other pairs. The number of a row is its line in the
    # file, and the blank line counts as row 4. So the row of student 7 is row 5.
    content = """UserId,QuestionId,IsCorrect
1,10,1
1,11,0

7,98,0
2,10,1
2,12,0
3,11,0
3,12,1
9,99,1
"""
    evaluated = submit("evaluation", 1, "submission_task_1.csv", content)
    assert evaluated.code == 0
    assert evaluated.errors == []
    # The predictions of five of the six pairs are right: 5 / 6 = 0.8333. Because there are so few
    # students, the score is shown with an interval and without a standard error.
    score = "score 0.8333, 95 % interval 0.1487 to 0.9931 (accuracy on 6 pairs of 3 students)"
    assert score in evaluated.stdout
    counted = "2 rows hold pairs that are not in"
    note = f"{counted} {tmp_path}/given/answers.csv, first row 5 with User"
    assert note in evaluated.stdout
    assert "QuestionId 98; UserId 9 and QuestionId 99: ignored" in evaluated.stdout
    page = read_page((tmp_path / "scores/scores_task_1_own.html").read_text())
    assert note in page.text


# An entry with two faults in its main file and one fault in table.py. The file not_imported.py has
# a fault too, but the checker does not look at a file that is not imported.
BROKEN = {
    ENTRY_FILE: "from common import io\nimport model, table, tools.blend\n",
    "model.py": "",
    "table.py": "rows = [1,\n2\n",
    "not_imported.py": "import common\n",
}


@pytest.mark.parametrize(
    ("files", "flags", "expected"),
    [
        # Files whose name begins with model_task_4 are weights.
        ({**entry(), "model_task_4.pt": "", "w/model_task_4_a.npy": ""}, "", []),
        (BROKEN, "", [
            f"{ENTRY_FILE}: row 1 imports common, the kit's shared code, which is",
            f"{ENTRY_FILE}: row 2 imports tools, the kit's shared code, which is",
            "table.py: row 1 is not Python: '[' was never closed",
        ]),
        ({ENTRY_FILE: entry()[ENTRY_FILE].replace("predict", "guess")}, "",
         ["starting Submission: class Submission has no method predict"]),
        # The challenge's guide allows an entry without `update_model`.
        ({ENTRY_FILE: entry()[ENTRY_FILE].replace("update_model", "learn")}, "", []),
        # The checker recognises saved models by suffixes such as .pt and .npy.
        ({**entry(), "model.pt": "", "w/a.npy": "", "table.csv": ""}, "", [
            ": model.pt seems to be a saved model, expected a name that begins with model_task_4_",
            ": w/a.npy seems to be a saved model, expected a name that begins with model_task_4_",
        ]),
        # This entry fails if an unrevealed answer is -1. With the flag --unobserved 0, an
        # unrevealed answer is 0, so the entry is valid.
        (entry(update="assert seen.min() >= 0"), "--unobserved 0 --targets_queryable", []),
        (entry(), "--time_limit 0.001", ["expected a whole game within 0.001 s"]),
    ],
)  # fmt: skip
def test_an_entry_of_task_4_is_checked_by_its_code_and_a_game(
    files: dict[str, str], flags: str, expected: list[str], simulated_kit: Path, tmp_path: Path
) -> None:
    """The checker first names faults in the code of an entry, and then plays a game with it.

    `files` are the entry's files. `expected` has a part of each message of a fault; if the game
    finds a fault, its message is the last one. If an entry has no faults, the checker calls it
    valid. It then lists the file that holds the entry's class, and the files of weights.

    `sandbox/test_isolated_entry.py` tests all faults that a game can find.
    """
    path = write_zip(tmp_path / "submission_task_4.zip", files)
    done = run(["-m", "tools.check_submission", path, *flags.split()], kit=simulated_kit)

    errors = done.stderr.splitlines()
    for error, part in zip(errors, expected, strict=True):
        assert error.startswith(f"error: {path}")
        assert part in error

    other_files = set(files) - {ENTRY_FILE}
    weights = sorted(name for name in other_files if "model_task_4" in name)
    list_of_files = f"its files: {', '.join([ENTRY_FILE, *weights])}\n"
    is_valid = not expected
    assert done.returncode == (0 if is_valid else 2)
    assert ("valid for task 4" in done.stdout) == is_valid
    assert (list_of_files in done.stdout) == is_valid


@pytest.mark.parametrize(
    ("name", "content", "task"),
    [
        ("submission_task_3.zip", "", 3),
        ("my_task_2_run_7.zip", "", 2),
        ("mine.csv", GOOD[1], 1),
        ("submission_task_1_2.csv", GOOD[2], 2),
        ("mine.csv", GOOD[3].replace("ranking", "Ranking"), 3),
        ("mine.zip", {"submission_task_3.csv": GOOD[3]}, 3),
        ("mine.zip", {"submission_model_task_4.py": ""}, 4),
    ],
)
def test_the_task_follows_from_the_name_or_else_from_the_columns(
    tmp_path: Path, name: str, content: Content, task: int
) -> None:
    assert task_of(put(tmp_path / name, content)).number == task


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("mine.csv", ANSWERS, "does not tell the task: it has the columns"),
        ("mine.zip", {"mine.csv": GOOD[1]}, r"holds 'mine.csv', expected one of submission_task_1"),
    ],
)
def test_a_file_that_does_not_tell_its_task_is_refused(
    tmp_path: Path, name: str, content: Content, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        task_of(put(tmp_path / name, content))


def test_a_folder_that_does_not_exist_is_named() -> None:
    with pytest.raises(InputError, match=r"task_4/nmpy: file not found"):
        task_of(layout.ROOT / "task_4/nmpy")


def test_a_submission_for_the_local_split_is_compared_with_the_files_of_the_split(
    scored_kit: Path,
) -> None:
    """A submission for the local split is not for upload: the checker names no zip."""
    path = scored_kit / "data/test_output/test_submission_task_1.csv"
    out = succeeds(["-m", "tools.check_submission", path], kit=scored_kit)
    assert "every pair of data/test_input/test_submission_task_1_2.csv once" in out
    assert "predicted   data/test_input/train_task_1_2.csv" in out
    assert "to upload" not in out


def test_a_submission_for_the_challenge_is_compared_with_the_official_files(
    scored_kit: Path,
) -> None:
    path = scored_kit / "submissions/submission_task_1.csv"
    out = succeeds(["-m", "tools.check_submission", path], kit=scored_kit)
    assert "every pair of submission_templates/submission_task_1_2.csv once" in out
    assert "predicted   data/train_data/train_task_1_2.csv" in out
    assert "to upload: submissions/submission_task_1.zip" in out
