"""The challenges' checks: every fault at once, each in a line, and a summary of a valid file."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import clicks
import exam
import pytest
import queries
import responses

Write = Callable[[str, str | bytes], Path]


def messages(path: Path, faults: list[str]) -> list[str]:
    assert all(fault.startswith(f"{path}: ") for fault in faults)
    return [fault.removeprefix(f"{path}: ") for fault in faults]


def test_every_fault_of_guesses(write: Write) -> None:
    path = write("a.csv", "id,ret\na,[]\na,[1]\nx,\nb,no\nd,[]\n")
    faults: list[str] = []
    queries.read_guesses(path, ["a", "b", "c"], faults.append)
    first, repeated, unknown, missing, wrong = messages(path, faults)
    assert first == "column 'ret': row 4 is empty, expected text"
    assert repeated.startswith("column 'id': row 3 repeats 'a' of row 2")
    assert unknown == "column 'id': row 4 is 'x', which is not in the queries (2 such rows)"
    assert missing.startswith("1 of 3 ids are missing, first 'c'")
    assert wrong.startswith("column 'ret': row 3 is '[1]'; row 5 is 'no', expected a JSON list")


def test_every_fault_of_labels_of_options(write: Write) -> None:
    path = write("a.csv", "id,prediction\n1,A F\n1,A B C\n3,\n")
    faults: list[str] = []
    exam.read_predictions(path, ["1", "2"], faults.append)
    empty, repeated, unknown, missing, wrong = messages(path, faults)
    assert empty.startswith("column 'prediction': row 4 is empty")
    assert repeated.startswith("column 'id': row 3 repeats '1'")
    assert unknown.startswith("column 'id': row 4 is '3', which is not in the questions")
    assert missing.startswith("1 of 2 ids are missing, first '2'")
    assert wrong.startswith("column 'prediction': row 2 is 'A F', expected up to 3 of A, B")


def test_every_fault_of_grades(write: Write) -> None:
    question = "<questionText>q</questionText>"
    reference = "<referenceAnswers><referenceAnswer>r</referenceAnswer></referenceAnswers>"
    answers = "".join(
        f'<studentAnswer id="{name}" accuracy="{label}">x</studentAnswer>'
        for name, label in (("a", "correct"), ("b", "incorrect"), ("c", "contradictory"))
    )
    answers = f"<studentAnswers>{answers}</studentAnswers>"
    xml = f'<question id="1">{question}{reference}{answers}</question>'
    known = responses.read_responses(write("data/1.xml", xml).parent)
    path = write("a.csv", "id,label\na,right\nb,wrong\nb,correct\n")
    faults: list[str] = []
    responses.read_predictions(path, known, faults.append)
    repeated, missing, wrong = messages(path, faults)
    assert repeated.startswith("column 'id': row 4 repeats 'b' of row 3")
    assert missing.startswith("1 of 3 ids are missing, first 'c'")
    assert wrong.startswith("column 'label': row 2 is 'right' (2 such rows), expected one of")


def test_every_fault_of_recommendations(write: Write) -> None:
    rows = [[user, *range(50)] for user in (11, 22, 22)]
    rows[1][50] = rows[1][49]
    text = "\n".join(",".join(map(str, row)) for row in rows).replace("11,0,", "11,x,")
    path = write("a.csv", text + "\n")
    faults: list[str] = []
    user, items = clicks.read_recommendations(path, faults.append)
    clicks.select_users(path, user, items, user[:1] + 22, faults.append)
    wrong, repeated, same, missing = messages(path, faults)
    assert wrong.startswith("column 'item_1': row 1 is 'x', expected")
    assert repeated.startswith("column 'user_id': row 3 repeats user 22")
    assert same.startswith("row 2: user 22 has 49 different items")
    assert missing.startswith("1 of 1 test users are missing, first user_id 33")


@pytest.mark.parametrize(
    ("challenge", "model", "flags", "said"),
    [
        ("cloze", "frequent", ["--local"], "600 rows: every query of "),
        ("cloze", "frequent", [], "200 rows: every query of "),
        ("science_exam", "constant", [], "first guesses: A 200, B 0"),
        ("student_response", "majority", [], "correct 100.0%"),
        ("debiasing", "popularity", ["--local"], "different items recommended"),
    ],
)
def test_a_valid_submission(
    challenge: str,
    model: str,
    flags: list[str],
    said: str,
    challenge_kit: Callable[[str], Path],
    succeeds: Callable[..., str],
    tmp_path: Path,
) -> None:
    kit = challenge_kit(challenge)
    folder = f"related_challenges/{challenge}"
    if (kit / folder / "local_data_split.py").exists():
        succeeds([f"{folder}/local_data_split.py"], kit=kit)
    to = ["--output_dir", tmp_path]
    succeeds([f"{folder}/sample_model_{model}.py", *flags, *to], kit=kit)
    out = succeeds([f"{folder}/check_submission.py", tmp_path / "submission.csv"], kit=kit)
    assert f"submission.csv: valid for {challenge}\n" in out
    assert said in out


def test_the_common_check_finds_the_challenge(
    challenge_kit: Callable[[str], Path],
    run: Callable[..., "subprocess.CompletedProcess[str]"],
    fails: Callable[..., str],
) -> None:
    """By the place of the file, or by a flag; an unknown flag is none of a task."""
    kit = challenge_kit("science_exam")
    test = (kit / "related_challenges/science_exam/data/train_data/test.csv").read_text()
    ids = [line.partition(",")[0] for line in test.splitlines()[1:]]
    inside = kit / "related_challenges/science_exam/mine.csv"
    inside.write_text("id,prediction\n" + "".join(f"{number},A B C\n" for number in ids))
    done = run(["-m", "common.check_submission", inside], kit=kit)
    assert "valid for science_exam" in done.stdout, done.stderr
    outside = kit / "mine_task_1.csv"
    outside.write_text("id,prediction\n0,F\n")
    check = ["-m", "common.check_submission", outside]
    done = run([*check, "--challenge", "science_exam", "--test_data", "test.csv"], kit=kit)
    assert done.returncode == 2
    assert [line.partition(": ")[0] for line in done.stderr.splitlines()] == ["error"] * 2
    done = run([*check, "--challenge", "science_exam", "--unobserved", "0"], kit=kit)
    assert done.returncode == 2
    assert "argument --unobserved: is for the tasks 1 to 4, not for science_exam" in done.stderr
    done = run([*check, "--test_data", "test.csv"], kit=kit)
    assert done.returncode == 2
    assert "unrecognized arguments: --test_data" in done.stderr
