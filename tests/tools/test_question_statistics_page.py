"""The tables and the page on what the answers say about the questions."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import fails, succeeds
from page_reading import read_page

STATISTICS = ["-m", "tools.question_statistics"]
NAMES = ["questions.csv", "question_pairs.csv", "question_groups.csv", "questions.html"]


def run_statistics(kit: Path, *flags: str) -> str:
    """Run tools/question_statistics.py; return the page that it has written."""
    printed = succeeds([*STATISTICS, *flags], kit=kit)
    assert "written: data/test_output/questions.csv" in printed
    return (kit / "data/test_output/questions.html").read_text(encoding="utf-8")


def read(kit: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(kit / "data/test_output" / name)


def test_tables_describe_the_questions_of_the_answers(tiny_kit: Path) -> None:
    """The table holds the number of answers to each question, and the share of right ones.

    The more difficult a question, the smaller the share. The page shows the numbers of answers,
    students and questions.
    """
    page = run_statistics(tiny_kit)
    assert "From simulated answers." in page
    # This raises an error if the page is not well formed.
    read_page(page)

    answers = pd.read_csv(tiny_kit / "data/train_data/train_task_3_4.csv")
    is_correct_by_question = answers.groupby("QuestionId")["IsCorrect"]
    questions = read(tiny_kit, "questions.csv").set_index("question")
    assert (questions["n_answers"] == is_correct_by_question.size()).all()
    # The shares in the table are rounded.
    assert np.allclose(questions["share_right"], is_correct_by_question.mean(), atol=1e-3)
    assert questions["difficulty"].corr(questions["share_right"]) < -0.7

    n_students = answers["UserId"].nunique()
    for number in (len(answers), n_students, len(questions)):
        assert f"<td>{number:,}</td>" in page


def test_students_are_grouped_by_their_gender_in_the_metadata(tiny_kit: Path) -> None:
    """The table compares how two groups of students, female and male, answer a question.

    The columns `group` and `reference` name the two groups. `n_group` and `n_reference` are the
    numbers of their answers to the question.
    """
    answers = pd.read_csv(tiny_kit / "data/train_data/train_task_3_4.csv")
    students = pd.read_csv(tiny_kit / "data/metadata/student_metadata_task_3_4.csv")
    gender = students.set_index("UserId")["Gender"]
    # The number of answers to each question (row) by students of each gender (column).
    n_answers = pd.crosstab(answers["QuestionId"], answers["UserId"].map(gender))
    run_statistics(tiny_kit)
    table = read(tiny_kit, "question_groups.csv")
    # The values of the column `Gender` in the metadata.
    gender_of_group = {"female": 1, "male": 2}
    assert {*table["group"], *table["reference"]} == set(gender_of_group)
    for row in table.itertuples():
        n_answers_by_gender = n_answers.loc[row.question]
        assert row.n_group == n_answers_by_gender[gender_of_group[row.group]]
        assert row.n_reference == n_answers_by_gender[gender_of_group[row.reference]]


def test_a_table_of_groups_takes_the_place_of_the_metadata(tiny_kit: Path) -> None:
    students = pd.read_csv(tiny_kit / "data/train_data/train_task_3_4.csv")["UserId"].unique()
    groups = pd.DataFrame({"UserId": students, "Group": "class <b>"})
    groups.loc[: len(groups) // 3, "Group"] = "class a"
    groups.to_csv(tiny_kit / "classes.csv", index=False)
    page = run_statistics(tiny_kit, "--groups", str(tiny_kit / "classes.csv"))
    table = read(tiny_kit, "question_groups.csv")
    assert (table["reference"] == "class <b>").all() and (table["group"] == "class a").all()
    assert "class &lt;b&gt;" in page and "class <b>" not in page


def test_without_groups_there_is_no_table_of_groups(tiny_kit: Path) -> None:
    page = run_statistics(tiny_kit, "--group", "none", "--tasks", "1/2")
    assert "easier for one group" not in page
    assert not (tiny_kit / "data/test_output/question_groups.csv").exists()


def test_without_groups_the_table_of_groups_of_an_earlier_run_is_removed(tiny_kit: Path) -> None:
    table = tiny_kit / "data/test_output/question_groups.csv"
    table.parent.mkdir(exist_ok=True)
    table.write_text("question,group,reference\n")
    printed = succeeds([*STATISTICS, "--group", "none"], kit=tiny_kit)
    path = "data/test_output/question_groups.csv"
    assert f"removed: {path}, of an earlier run; there are no groups now\n" in printed
    assert "written: " in printed
    assert "question_groups.csv" not in printed.partition("written: ")[2]
    assert not table.exists()


def test_few_answers_have_a_page_that_says_so(tiny_kit: Path) -> None:
    rows = pd.DataFrame({"QuestionId": [1, 2, 1], "UserId": [5, 5, 6], "IsCorrect": [1, 0, 0]})
    rows.to_csv(tiny_kit / "data/train_data/few.csv", index=False)
    page = run_statistics(tiny_kit, "--train_data", "few.csv", "--group", "none")
    assert "No question has at least 30 answers." in page
    assert read(tiny_kit, "question_pairs.csv").empty
    assert read(tiny_kit, "questions.csv")["difficulty"].isna().all()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--train_data", "absent.csv"], r"absent\.csv: file not found"),
        (["--metadata_dir", "absent"], r"student_metadata_task_3_4\.csv: file not found"),
        (["--groups", "{kit}/one_group.csv"], r"one_group\.csv: column 'Group': has fewer than"),
        (["--groups", "{kit}/twice.csv"], r"twice\.csv: row 3: column 'UserId': 1 appears a sec"),
    ],
)
def test_faults_are_named(flags: list[str], message: str, tiny_kit: Path) -> None:
    pd.DataFrame({"UserId": [1, 2], "Group": "a"}).to_csv(tiny_kit / "one_group.csv", index=False)
    pd.DataFrame({"UserId": [1, 1], "Group": "a"}).to_csv(tiny_kit / "twice.csv", index=False)
    flags = [flag.format(kit=tiny_kit) for flag in flags]
    assert re.search(message, fails([*STATISTICS, *flags], kit=tiny_kit))
    assert not any((tiny_kit / "data/test_output" / name).exists() for name in NAMES)
