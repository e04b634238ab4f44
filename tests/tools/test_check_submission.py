"""The checker and the evaluation refuse a malformed submission with file, row and rule.

The checker must name every fault, and the evaluation the first one in the same words. Nothing is
scored or written then. `test_reading.py` tests how a CSV is read, `test_zips.py` how a zip is.
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

# The text of a CSV, or for a zip the texts of its files by name.
Content = str | dict[str, str]
# The type of the fixture `submit`. Its function takes `evaluation` or `checker`, the task, the name
# and the content of a submission. It returns exit code, stdout and the lines of stderr.
Submit = Callable[[str, int, str, Content], tuple[int, str, list[str]]]


@dataclass(frozen=True)
class Malformed:
    """A malformed submission and the faults that the checker must name."""

    task: int
    content: Content
    # A part of each message, in order; {reference} is the path of the answers.
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
    """Write a file, or a zip of files."""
    if isinstance(content, dict):
        return write_zip(path, content)
    path.write_text(content)
    return path


@pytest.fixture
def submit(tmp_path: Path, write: Write) -> Submit:
    """Return a function that runs the evaluation or the checker on a submission."""
    input_dir = write("given/answers.csv", ANSWERS).parent
    submission_dir = tmp_path / "submitted"
    write("given/template.csv", RANKING_TEMPLATE)
    write("given/judgements.csv", JUDGEMENTS)
    submission_dir.mkdir()

    def run_on(program: str, task: int, name: str, content: Content) -> tuple[int, str, list[str]]:
        """Write a submission, run the program on it, and remove the submission."""
        path = put(submission_dir / name, content)
        # The pairs of tasks 1 and 2 are those of the answers, whose file also serves as template.
        template = "template.csv" if task == 3 else "answers.csv"
        input_flags = ["--input_dir", input_dir]
        template_flags = ["--submission_template_dir", input_dir]
        template_flags += ["--submission_template_file", template]
        command: list[object]
        if program == "evaluation":
            answers = "judgements.csv" if task == 3 else "answers.csv"
            command = [f"task_{task}/local_evaluation.py", "--ref_data", answers, *input_flags]
            command += ["--submission_dir", submission_dir, "--submit_data", name]
            command += ["--output_dir", tmp_path / "scores"]
            if task == 3:
                command += template_flags
        else:
            command = ["-m", "tools.check_submission", path, "--task", task]
            command += [*input_flags, *template_flags]
            command += ["--train_data", "answers.csv" if task == 1 else "none.csv"]
        done = run(command)
        assert [file.name for file in submission_dir.iterdir()] == [name], "left a file behind"
        path.unlink()
        return done.returncode, done.stdout, done.stderr.splitlines()

    return run_on


@pytest.mark.parametrize("case", MALFORMED.values(), ids=MALFORMED.keys())
def test_the_checker_names_every_fault_and_the_evaluation_the_first_one(
    submit: Submit, tmp_path: Path, case: Malformed
) -> None:
    is_csv = isinstance(case.content, str)
    name = f"submission_task_{case.task}.csv" if is_csv else "a.zip"

    code, out, errors = submit("checker", case.task, name, case.content)

    assert (code, out) == (2, "")
    assert len(errors) == len(case.messages), errors
    reference = tmp_path / "given/answers.csv"
    for error, message in zip(errors, case.messages, strict=True):
        assert error.startswith(f"error: {tmp_path / 'submitted' / name}")
        assert message.format(reference=reference) in error
    first_error = errors[:1]
    assert submit("evaluation", case.task, name, case.content) == (2, "", first_error)
    assert not (tmp_path / "scores").exists()


# Lines of the summary that the checker prints for each of the `GOOD` submissions, with single
# blanks between the columns of tables.
SUMMARIES = {
    1: ["6 rows: every pair of", "0 wrong 50.0% 33.3%", "1 right 50.0% 66.7%"],
    2: ["6 rows: every pair of", "1 16.7%", "2 16.7%", "3 33.3%", "4 33.3%"],
    3: ["4 rows: every question", "best QuestionId 21, 23, 20, 22", "worst QuestionId 21, 23, 20"],
}


@pytest.mark.parametrize("task", [1, 2, 3])
def test_well_formed_submissions_are_scored_and_a_malformed_one_removes_the_score(
    submit: Submit, tmp_path: Path, task: int
) -> None:
    content_of_zip = {f"submission_task_{task}.csv": GOOD[task]}
    submissions: dict[str, Content] = {"mine.csv": GOOD[task], "mine.zip": content_of_zip}
    for name, content in submissions.items():
        code, out, errors = submit("checker", task, name, content)
        assert (code, errors) == (0, []) and f"valid for task {task}" in out
        # Replace each run of white space by a single blank, and begin each line with a line end.
        summary = "".join(f"\n{' '.join(line.split())}" for line in out.splitlines())
        assert all(f"\n{expected}" in summary for expected in SUMMARIES[task]), summary
        hint = f"to upload: a zip that holds it as submission_task_{task}.csv"
        assert (hint in out) == (name == "mine.csv")
        code, out, errors = submit("evaluation", task, name, content)
        # Five of the six predictions of tasks 1 and 2 are right.
        score = 1 if task == 3 else 5 / 6
        assert (code, errors) == (0, []) and f"score {score:.4f}" in out
        written = sorted(path.name for path in (tmp_path / "scores").glob("scores_*"))
        assert written == [f"scores_task_{task}_own.{kind}" for kind in ("html", "txt")]
    assert submit("evaluation", task, "mine.csv", "UserId\n")[0] == 2
    assert not list((tmp_path / "scores").glob("scores_*"))


@pytest.mark.parametrize(
    ("task", "before", "after"),
    [(1, "1,11,0", "1,11,1"), (2, "1,11,3", "1,11,4"), (3, "20,3\n21,1", "20,1\n21,3")],
)
def test_a_csv_that_differs_from_the_zip_beside_it_is_not_valid(
    tmp_path: Path, write: Write, task: int, before: str, after: str
) -> None:
    """The zip is what would be uploaded."""
    write("template.csv", RANKING_TEMPLATE if task == 3 else ANSWERS)
    write_zip(tmp_path / "mine.zip", {f"submission_task_{task}.csv": GOOD[task]})
    path = write("mine.csv", GOOD[task])
    template = ["--submission_template_dir", tmp_path, "--submission_template_file", "template.csv"]
    check = ["-m", "tools.check_submission", path, "--task", task, *template]
    assert f"to upload: {tmp_path / 'mine.zip'}" in succeeds(check)

    write("mine.csv", GOOD[task].replace(before, after))
    error = fails(check)

    assert error.startswith(f"{path}: differs from submission_task_{task}.csv in mine.zip")


def test_the_evaluation_counts_and_names_rows_that_were_not_asked_for(
    submit: Submit, tmp_path: Path
) -> None:
    """The challenge's scorer ignores such rows, too; only the checker refuses them."""
    # Rows are numbered by the lines of the file: the blank line is row 4, and the first row that
    # was not asked for, of student 7, is row 5. The last row is the second such row.
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
    code, out, errors = submit("evaluation", 1, "submission_task_1.csv", content)
    # Five of the six pairs asked for are predicted right. With so few students, the score is shown
    # with an interval, but without a standard error.
    score = "score 0.8333, 95 % interval 0.1487 to 0.9931 (accuracy on 6 pairs of 3 students)"
    assert (code, errors, score in out) == (0, [], True)
    named = f"2 rows hold pairs that are not in {tmp_path}/given/answers.csv, first row 5 with User"
    assert named in out and "QuestionId 98; UserId 9 and QuestionId 99: ignored" in out
    assert named in read_page((tmp_path / "scores/scores_task_1_own.html").read_text()).text


# An entry with two faults in its main file and one in table.py. A file that is not imported is not
# checked.
BROKEN = {
    ENTRY_FILE: "from common import io\nimport model, table, tools.blend\n",
    "model.py": "",
    "table.py": "rows = [1,\n2\n",
    "not_imported.py": "import common\n",
}


@pytest.mark.parametrize(
    ("files", "flags", "expected"),
    [
        # Files with these names are weights.
        ({**entry(), "model_task_4.pt": "", "w/model_task_4_a.npy": ""}, "", []),
        (BROKEN, "", [
            f"{ENTRY_FILE}: row 1 imports common, the kit's shared code, which is",
            f"{ENTRY_FILE}: row 2 imports tools, the kit's shared code, which is",
            "table.py: row 1 is not Python: '[' was never closed",
        ]),
        ({ENTRY_FILE: entry()[ENTRY_FILE].replace("predict", "guess")}, "",
         ["starting Submission: class Submission has no method predict"]),
        # The guide calls the update of the model optional.
        ({ENTRY_FILE: entry()[ENTRY_FILE].replace("update_model", "learn")}, "", []),
        # Saved models, by their suffixes.
        ({**entry(), "model.pt": "", "w/a.npy": "", "table.csv": ""}, "", [
            ": model.pt seems to be a saved model, expected a name that begins with model_task_4_",
            ": w/a.npy seems to be a saved model, expected a name that begins with model_task_4_",
        ]),
        # This entry fails on negative numbers, like an entry that uses options as array indices.
        (entry(update="assert seen.min() >= 0"), "--unobserved 0 --targets_queryable", []),
        (entry(), "--time_limit 0.001", ["expected a whole game within 0.001 s"]),
    ],
)  # fmt: skip
def test_an_entry_of_task_4_is_played_once(
    files: dict[str, str], flags: str, expected: list[str], simulated_kit: Path, tmp_path: Path
) -> None:
    """The checker names faults in the code, then plays; a fault in the game is the last message.

    `sandbox/test_isolated_entry.py` tests all faults that the game finds.
    """
    path = write_zip(tmp_path / "submission_task_4.zip", files)
    done = run(["-m", "tools.check_submission", path, *flags.split()], kit=simulated_kit)
    assert done.returncode == (2 if expected else 0)
    assert ("valid for task 4" in done.stdout) == (not expected)
    weights = [name for name in files if "model_task_4" in name and name != ENTRY_FILE]
    its_files = f"its files: {', '.join([ENTRY_FILE, *sorted(weights)])}\n"
    assert (its_files in done.stdout) == (not expected)
    for line, part in zip(done.stderr.splitlines(), expected, strict=True):
        assert line.startswith(f"error: {path}") and part in line


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
    """Such a submission is not for upload, so that the checker names no zip to upload."""
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
