"""The table and the page on what students are expected to know of each subject."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import fails, succeeds
from page_reading import read_page

MASTERY = ["-m", "tools.mastery"]


def run_mastery(kit: Path, *flags: str) -> pd.DataFrame:
    """Run tools/mastery.py; return the table that it has written."""
    printed = succeeds([*MASTERY, *flags], kit=kit)
    assert "written: data/test_output/mastery.csv, data/test_output/mastery.html" in printed
    return pd.read_csv(kit / "data/test_output/mastery.csv")


def test_each_student_has_a_share_of_each_subject_with_answers(tiny_kit: Path) -> None:
    """The table has a row for each student and subject, at all levels of the tree of subjects.

    The subjects of level 1, such as Number or Algebra, are called areas. An answer belongs to at
    most one area, and nearly all answers belong to an area. `Share` is the share of right answers
    that is expected of the student, in the interval from `Low` to `High`. The more of a student's
    answers are right, the larger is `Share`.
    """
    table = run_mastery(tiny_kit)
    assert list(table) == [
        "UserId",
        "Level",
        "SubjectId",
        "Name",
        "Answers",
        "Share",
        "Low",
        "High",
    ]
    # The column "Name" holds the name of the subject in the metadata.
    tree = pd.read_csv(tiny_kit / "data/metadata/subject_metadata.csv", encoding="utf-8-sig")
    name_by_id = tree.set_index("SubjectId")["Name"]
    assert (table["Name"] == name_by_id.loc[table["SubjectId"]].to_numpy()).all()

    answers = pd.read_csv(tiny_kit / "data/train_data/train_task_3_4.csv")
    areas = table[table["Level"] == 1]
    n_in_areas = areas.groupby("UserId")["Answers"].sum()
    n_answers = answers["UserId"].value_counts().loc[n_in_areas.index]
    assert (n_in_areas <= n_answers).all()
    assert n_in_areas.sum() > 0.9 * len(answers)

    assert table["Share"].between(table["Low"], table["High"]).all()
    share_right = answers.groupby("UserId")["IsCorrect"].mean()
    expected_share = areas.groupby("UserId")["Share"].mean()
    assert share_right.loc[expected_share.index].corr(expected_share) > 0.8


def test_the_page_shows_the_class_that_the_flag_names(tiny_kit: Path) -> None:
    """The flag --students names three students. The page has a row for each, ordered by UserId.

    The page has a cell for each student and each area (a subject of level 1). The cell holds the
    number of answers, and the share and its interval in percent.
    """
    students = pd.read_csv(tiny_kit / "data/train_data/train_task_3_4.csv")["UserId"].unique()
    class_of_three = sorted(int(student) for student in students[:3])
    table = run_mastery(tiny_kit, "--students", *map(str, reversed(class_of_three)))
    page = (tiny_kit / "data/test_output/mastery.html").read_text(encoding="utf-8")
    assert "From simulated answers." in page
    shown_students = re.findall(r'<th scope="row">(\d+)</th>', page)
    assert shown_students == [str(student) for student in class_of_three]

    # A cell holds the name of the area, the number of answers, the share, and its interval.
    pattern = r'title="([^:"]+): (\d+) answers">(\d+)<small>(\d+) to (\d+)</small>'
    cells = re.findall(pattern, page)
    areas = table[(table["Level"] == 1) & table["UserId"].isin(class_of_three)]
    assert len(cells) == len(areas)

    # The page must show the first row of the table. Among the cells of the same area, one must hold
    # the numbers of this row; the test takes the cell with the nearest numbers.
    first_row = areas.iloc[0]
    percents = (100 * first_row[["Share", "Low", "High"]]).round()
    expected_numbers = np.array([first_row["Answers"], *percents], float)
    distances = []
    for name, *numbers in cells:
        if name == first_row["Name"]:
            differences = np.array(numbers, float) - expected_numbers
            distances.append(np.abs(differences).max())
    # The page shows whole percents, rounded from exact shares. The expected percents are rounded
    # from the four decimals of the table, so they may differ by 1.
    assert min(distances) <= 1
    # This raises an error if the page is not well formed.
    read_page(page)


def test_a_table_of_concepts_takes_the_place_of_subjects(tiny_kit: Path) -> None:
    questions = pd.read_csv(tiny_kit / "data/train_data/train_task_1_2.csv")["QuestionId"].unique()
    concepts = pd.DataFrame({"QuestionId": questions[:40]})
    concepts["Concept"] = ["fractions" if q % 2 else "angles, degrees" for q in questions[:40]]
    path = tiny_kit / "concepts.csv"
    concepts.to_csv(path, index=False)
    table = run_mastery(tiny_kit, "--tasks", "1/2", "--concepts", str(path))
    assert set(table["Name"]) == {"fractions", "angles, degrees"}
    assert (table["SubjectId"] == -1).all()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--students", "999999"], r"--students 999999: has no answers in .*, expected UserIds su"),
        (["--train_data", "absent.csv"], r"absent.csv: file not found"),
        (["--metadata_dir", "absent"], r"question_metadata_task_3_4.csv: file not found"),
        (
            ["--concepts", "{kit}/submission_templates/submission_task_3.csv"],
            r"Concept",
        ),
    ],
)
def test_faults_are_named(flags: list[str], message: str, tiny_kit: Path) -> None:
    flags = [flag.format(kit=tiny_kit) for flag in flags]
    assert re.search(message, fails([*MASTERY, *flags], kit=tiny_kit))
    assert not (tiny_kit / "data/test_output/mastery.csv").exists()
