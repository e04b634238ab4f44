"""The page about the data: the script on simulated, real, mixed, partial and missing files."""

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from conftest import Write, fails, run, succeeds
from drawn import draw
from page_reading import Page, read_page
from run_scripts import ROOT

SCRIPT = "data/explore.py"
TRAIN = "train_data/train_task_{}.csv"
SECTIONS = [
    "Answers", "Difficulty", "Options", "Times", "Quizzes and groups", "Confidence", "Subjects",
    "Students", "What is missing",
]  # fmt: skip


def sections(page: Page) -> list[str]:
    """Return the headings but the first and those of charts and of groups of students."""
    return [name for name in page.headings if name in SECTIONS or name.startswith("Tasks ")]


def explore(folder: Path, output: Path) -> dict[str, Page]:
    """Run the script on a folder; return the pages that it has written, by name."""
    done = run([SCRIPT, "--data_dir", folder, "--output_dir", output])
    assert done.returncode == 0, done.stderr
    written = [Path(path) for path in re.findall(r"^written: (.*)$", done.stdout, re.MULTILINE)]
    assert done.stdout.count("\n") == len(written)
    return {path.name: read_page(path.read_text(encoding="utf-8")) for path in written}


def test_a_page_about_simulated_data(simulated_kit: Path, tmp_path: Path) -> None:
    (page,) = explore(simulated_kit / "data", tmp_path).values()
    assert "Nothing on this page is about real students" in page.text
    assert sections(page) == ["Tasks 1/2", *SECTIONS, "Tasks 3/4", *SECTIONS]
    # Every chart has a sentence on how to read it.
    assert len(page.charts) > 25 and all(len(chart.key) > 40 for chart in page.charts)


# 40 students: the weak half answers questions 0 to 19, in March, the strong half, with higher ids,
# all 30, in December. To questions 0 to 9 all answers are right; of ten in a row to questions 10 to
# 19 five, while three choose the most attractive wrong option; to the others eight.
CHOSEN = [[1] * 10, [1, 1, 1, 1, 1, 4, 4, 4, 2, 3], [3, 3, 3, 3, 3, 3, 3, 3, 1, 2]]
TREE = """SubjectId,Name,ParentId,Level
1,Maths,NULL,0
2,Algebra,1,1
3,Number,1,1
4,Fractions,3,2
5,Geometry,1,1
6,Area,5,2
"""
# Question 28 has no subject, and that of question 29 is there without those above it.
SUBJECTS = ["[1, 3, 4]"] * 10 + ["[1, 2]"] * 9 + ["[1, 2, 3]"] + ["[1, 3]"] * 8
WEEK = ["Mon 10:00 to 10:59: 600 answers, 77% right", "Tue 9:00 to 9:59: 400 answers, 75% right"]
PLANTED = {
    "Answers per student": ["20: 20 students", "30: 20 students"],
    "Answers per question": ["20: 10 questions", "40: 20 questions"],
    "How sparse it is": [
        f"students {10 * row}–{10 * row + 10}%, questions {10 * column}–{10 * column + 10}%: "
        f"{'100.00%' if row < 5 or column < 6 else '66.67%'} answered"
        for row in range(10)
        for column in range(10 if row < 5 else 7)
    ],
    "How difficult the questions are": [
        "50% to 55%: 10 questions", "80% to 85%: 10 questions", "95% to 100%: 10 questions",
    ],
    "How able the students are": ["75% to 80%: 40 students"],
    "The four options": [
        "chosen, 1: 62%", "chosen, 2: 6%", "chosen, 3: 20%", "chosen, 4: 12%",
        "is right, 1: 80%", "is right, 2: 0%", "is right, 3: 20%", "is right, 4: 0%",
        "chosen where right, 1: 75%", "chosen where right, 2: 100%",
        "chosen where right, 3: 80%", "chosen where right, 4: 0%",
    ],
    "Which distractor attracts": [
        "most attractive: 0.55", "middle attractive: 0.35", "least attractive: 0.10",
    ],
    "How often distractors are chosen": [
        "0% to 5%: 40 distractors", "10% to 15%: 40 distractors", "30% to 35%: 10 distractors",
    ],
    "Answers by month": [
        "Dec 2019: 600 answers, 77% right", "Mar 2020: 400 answers, 75% right",
    ],
    "What in which month": [
        "Number, Dec 2019: 360 answers of 560", "Number, Mar 2020: 200 answers of 400",
        "Algebra, Dec 2019: 200 answers of 560", "Algebra, Mar 2020: 200 answers of 400",
    ],
    "Right when in the week": WEEK,
    "When in the week": WEEK,
    "Questions per quiz": ["10: 1 quizzes", "18: 1 quizzes"],
    "Answers of a student in a quiz": ["10: 60 sittings", "18: 20 sittings"],
    # Too many numbers for a column each.
    "Students per group": ["1: 1 groups", "35 to 40: 1 groups"],
    "Confidence and correctness": [
        "25% sure (20): 0.25", "25% sure (20): 0.50", "75% sure (20): 0.75", "75% sure (20): 0.80",
    ],
    "Year of birth": [
        "born in 2008: 5 students, 75% of their answers right",
        "born in 2010: 3 students, 75% of their answers right",
    ],
}  # fmt: skip
SAID = """1,000training answers 40students 30questions 83.33%of all pairs answered
76.0%of the answers right 2quizzes 2groups (classes)
so many answers; half have 25 or more. The tenth with most answers gave 12% of them
questions have so many answers; half have 40 or more.
Of the 20 questions with at least 20 answers, some of them wrong, the mean share
44% of them are chosen in less than 5% of the
From 2 Dec 2019 to 3 Mar 2020, a column for each month.
most in that of Mon 10:00.
mostly a class; the median size is 20;
5.0% of the answers come with a confidence
5 of the 6 subjects have questions.
to see what lies below. Maths28 questions · 960 answers · 76% right Number
Number19 questions · 600 answers · 91% right Fractions
Fractions10 questions · 400 answers · 100% right Algebra
Algebra10 questions · 400 answers · 50% right Area
Area1 question · 20 answers · 80% right Students
Gender unspecified1 students (2.6%) · 20 answers · 75.0% right female
female19 students (48.7%) · 380 answers · 75.0% right male
male19 students (48.7%) · 570 answers · 76.7% right Pupil premium
not entitled15 students (75.0%) · 300 answers · 75.0% right entitled
entitled5 students (25.0%) · 100 answers · 75.0% right
most common year, 2008, turned 12 in 2020
SubjectId3.3% · 1 of 30 questions Gender
Gender2.5% · 1 of 40 students Gender unspecified2.5% · 1 of 40 students DateOfBirth
DateOfBirth75.0% · 30 of 40 students DateOfBirth is nonsense5.0% · 2 of 40 students PremiumPupil
PremiumPupil50.0% · 20 of 40 students
Confidence95.0% · 950 of 1,000 answers GroupId0.0% · 0 of 1,000 answers QuizId
QuizId4.0% · 40 of 1,000 answers"""


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the page about files of tasks 3/4 in which everything can be counted by hand."""
    folder = tmp_path_factory.mktemp("planted")
    pairs = [(s, q) for s in range(40) for q in range(20 if s < 20 else 30)]
    student, question = np.array(pairs).T
    weak, chosen = student < 20, np.array(CHOSEN)[question // 10, (student + question) % 10]
    key = np.where(question < 20, 1, 3)
    # Of one question the key has been changed.
    key[0] = chosen[0] = 2
    answers = pd.DataFrame({"QuestionId": question, "UserId": student, "AnswerId": range(1000)})
    answers = answers.assign(AnswerValue=chosen, CorrectAnswer=key, IsCorrect=1 * (chosen == key))
    known = answers[["AnswerId"]].assign(GroupId=np.where(student == 0, 7, 8))
    known["DateAnswered"] = np.where(weak, "2020-03-03 09:59", "2019-12-02 10:00")
    known["QuizId"] = np.select([question < 10, question < 28], ["1", "2"], "")
    # Who is wholly sure are ten, too few for a dot.
    sure = [(question == 0) & (student < 10), (question == 10) & weak, question == 20]
    known["Confidence"] = np.select(sure, ["100", "25", "75"], "")
    students = pd.DataFrame({"UserId": range(39), "Gender": [0] + [1] * 19 + [2] * 19})
    born = ["2008-09-01"] * 5 + ["2010-05-01"] * 3 + ["1900-01-01"] * 2
    students["DateOfBirth"] = pd.Series(born)
    students["PremiumPupil"] = pd.Series([1] * 5 + [0] * 15, dtype="Int8")
    lists = pd.Series([*SUBJECTS, "[6]"], [*range(28), 29], name="SubjectId")
    for name, table in (
        (TRAIN, answers),
        ("metadata/answer_metadata_task_{}.csv", known[::-1]),
        ("metadata/student_metadata_task_{}.csv", students),
        ("metadata/question_metadata_task_{}.csv", lists.rename_axis("QuestionId").reset_index()),
    ):
        path = folder / name.format("3_4")
        path.parent.mkdir(exist_ok=True)
        table.to_csv(path, index=False)
    (folder / "metadata/subject_metadata.csv").write_text(TREE)
    assert [*explore(folder, folder)] == ["explore.html"]
    return (folder / "explore.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("heading", "titles"), PLANTED.items(), ids=PLANTED)
def test_charts(planted: str, heading: str, titles: list[str]) -> None:
    found = read_page(planted).chart(heading).titles
    empty = re.compile(r": (0 |0\.00% answered)")
    assert [title for title in found if not empty.search(title)] == titles


def test_columns_and_shades_are_to_scale(planted: str) -> None:
    svgs = re.findall(r"<svg.*?</svg>", planted, re.DOTALL)
    headings = [chart.heading for chart in read_page(planted).charts]
    drawn = dict(zip(headings, map(draw, svgs), strict=True))
    december, *_, march = drawn["Answers by month"].shapes.values()
    assert np.ptp(march[:, 1]) == pytest.approx(400 / 600 * np.ptp(december[:, 1]), abs=0.01)
    # The median and the number below it stand in the middle of their column.
    chart = drawn["Answers per question"]
    places = [chart.dashed[0][0], *(text.middle[0] for text in chart.texts if text.text == "40")]
    assert places == pytest.approx([chart.shapes["40: 20 questions"][:, 0].mean()] * 2, abs=0.1)
    monday, tuesday = (drawn["When in the week"].styles[title] for title in WEEK)
    assert "opacity" not in monday and f"opacity: {0.1 + 0.9 * 400 / 600:.1f}" in tuesday


def test_what_is_said(planted: str) -> None:
    page = read_page(planted)
    assert not [said for said in SAID.splitlines() if said not in page.text]
    assert "not on this page: train_data/train_task_1_2.csv is not there." in page.text


def test_real_and_simulated_never_share_a_page(tiny_kit: Path, tmp_path: Path) -> None:
    for name in ("train_data/train_task_1_2.csv", "metadata/subject_metadata.csv"):
        path = tiny_kit / "data" / name
        # As little as possible, so that the file is no longer that of the simulation.
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    pages = explore(tiny_kit / "data", tmp_path / "out")
    assert [*pages] == ["explore.html", "explore_simulated.html"]
    real, simulated = pages.values()
    assert "not simulated by the kit" in real.text
    assert sections(real) == ["Tasks 1/2", "Answers", "Difficulty", "Options"]
    assert sections(simulated)[0] == "Tasks 3/4" and "Subjects" not in sections(simulated)
    assert "Tasks 3/4 are not on this page, being simulated: see explore_simulated." in real.text
    assert "Tasks 1/2 are not on this page, being not simulated: see explore." in simulated.text
    # Simulated metadata tell nothing about real answers, nor the other way round.
    left_out = "student_metadata_task_1_2.csv, answer_metadata_task_1_2.csv."
    assert f"not: question_metadata_task_1_2.csv, {left_out}" in real.text
    assert "as the answers are: subject_metadata.csv." in simulated.text


def test_faults(write: Write, tmp_path: Path) -> None:
    def fault(folder: Path) -> str:
        return fails([SCRIPT, "--data_dir", folder, "--output_dir", tmp_path / "out"])

    missing, folder = tmp_path / "nowhere", tmp_path / "train_data"
    assert fault(missing) == f"{missing}: not found, expected a folder laid out like data/"
    assert fault(tmp_path).startswith(f"{folder}: holds neither train_task_1_2.csv nor ")
    train = write(TRAIN.format("3_4"), "QuestionId,UserId,IsCorrect\n5,2,1\n7,3,2\n")
    assert fault(tmp_path).startswith(f"{train}: column 'IsCorrect': row 3 is '2'")
    assert not (tmp_path / "out").exists()


def test_the_pictures_of_the_readme_are_of_the_page(tmp_path: Path) -> None:
    succeeds(["data/generate_sample.py", "--size", "small", "--output_dir", tmp_path])
    # They are of tasks 1/2.
    (tmp_path / "train_data/train_task_3_4.csv").unlink()
    succeeds(["data/explore.py", "--data_dir", tmp_path, "--output_dir", tmp_path])
    command = ["tests/benchmarks/readme_pictures.py", "--input_dir", tmp_path]
    succeeds([*command, "--output_dir", tmp_path / "pictures"])
    for path in (ROOT / "data/pictures").iterdir():
        picture = path.read_text(encoding="utf-8")
        assert (tmp_path / "pictures" / path.name).read_text(encoding="utf-8") == picture
        assert "Simulated data: " in "".join(ElementTree.fromstring(picture).itertext())


def test_a_page_about_real_answers(real_data: Path, tmp_path: Path) -> None:
    for folder, tasks in (("eedi_tasks_3_4", "3/4"), ("eedi_tasks_1_2_sample", "1/2")):
        page = explore(real_data / folder, tmp_path)["explore.html"]
        assert "not simulated by the kit" in page.text
        without = ("Times", "Quizzes and groups", "Confidence")
        assert sections(page) == [f"Tasks {tasks}", *(s for s in SECTIONS if s not in without)]
        assert f"Not there: answer_metadata_task_{tasks.replace('/', '_')}.csv." in page.text


def test_few_answers_and_dates_that_are_missing_or_nonsense(write: Write, tmp_path: Path) -> None:
    """With too few for any share; some without options, all without quizzes."""
    header = "QuestionId,UserId,IsCorrect,AnswerId"
    write(TRAIN.format("1_2"), f"{header}\n5,2000000000,1,8\n7,3,0,9\n")
    nonsense = "AnswerId,DateAnswered\n8,9999-01-01 00:00:00.000\n9,\n"
    write("metadata/answer_metadata_task_1_2.csv", nonsense)
    dates = ("2019-12-30 00:00", "2020-02-29 23:59", "2020-02-29 23:00", "", "9999-01-01 00:00")
    own = pd.DataFrame({"AnswerId": range(5), "QuestionId": range(5), "UserId": [8, 8, 7, 9, 8]})
    own["IsCorrect"], own["DateAnswered"] = [1, 0, 1, 1, 1], dates
    options = own.assign(CorrectAnswer=1, AnswerValue=2 - own["IsCorrect"])
    write(TRAIN.format("3_4"), options.drop(columns="DateAnswered").to_csv(index=False))
    metadata = own[["AnswerId", "DateAnswered"]].to_csv(index=False)
    write("metadata/answer_metadata_task_3_4.csv", metadata)
    page = explore(tmp_path, tmp_path)["explore.html"]
    first, second = ["Tasks 1/2", "Answers"], ["Tasks 3/4", "Answers", "Options", "Times"]
    assert sections(page) == [*first, "What is missing", *second, "What is missing"]
    absent = [f"{kind}_metadata_task_3_4.csv" for kind in ("question", "student")]
    assert f"Not there: {', '.join(absent)}, subject_metadata.csv." in page.text
    for said in ("", " is nonsense"):
        for missing in ("50.0% · 1 of 2", "20.0% · 1 of 5"):
            assert f"DateAnswered{said}{missing} answers" in page.text
    assert page.chart("Answers by month").titles == [
        "Dec 2019: 1 answers, 100% right", "Jan 2020: 0 answers", "Feb 2020: 2 answers, 50% right",
    ]  # fmt: skip
